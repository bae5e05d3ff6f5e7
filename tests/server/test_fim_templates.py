"""The forms of fill-in-the-middle, byte for byte, which names they are for, and control tokens in source text."""

from __future__ import annotations

import pytest

from haversack.settings_fim import FAMILY_NAMES, read_families
from haversack.templates.fim import FAMILIES, PREFIX_STOPS, FimFile, FimForm, broken, family_of, render

FILES = (FimFile("a.py", "A = 1\n"), FimFile("b.py", "B = 2\n"))

ONE_FILE = {
    "deepseek": "<\uff5cfim\u2581begin\uff5c>P<\uff5cfim\u2581hole\uff5c>S<\uff5cfim\u2581end\uff5c>",
    "codellama": "<PRE> P <SUF>S <MID>",
    "starcoder": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "starcoder2": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "codestral": "[SUFFIX]S[PREFIX]P",
    "qwen": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "codeqwen": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "codegemma": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "granite-code": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "granite4": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "stable-code": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "seed-coder": "<[fim-suffix]>S<[fim-prefix]>P<[fim-middle]>",
    "codegeex": "<|user|>\n###PATH:m.py\n###LANGUAGE:Python\n###MODE:BLOCK\n"
    "<|code_suffix|>S<|code_prefix|>P<|code_middle|><|assistant|>\n",
    "mellum": "<fim_suffix>S<fim_prefix>P<fim_middle>",
}
AS_COMMENTS = "# Path: a.py\n# A = 1\n# Path: b.py\n# B = 2\n"
SEVERAL = {
    "deepseek": "<\uff5cfim\u2581begin\uff5c>#a.py\nA = 1\n#b.py\nB = 2\n#m.py\nP"
    "<\uff5cfim\u2581hole\uff5c>S<\uff5cfim\u2581end\uff5c>",
    "codellama": f"<PRE> {AS_COMMENTS}P <SUF>S <MID>",
    "starcoder2": "<repo_name>r<file_sep>a.py\nA = 1<file_sep>b.py\nB = 2"
    "<file_sep><fim_prefix>m.py\nP<fim_suffix>S<fim_middle>",
    "codestral": "[SUFFIX]S[PREFIX]+++++ a.py\nA = 1\n\n+++++ b.py\nB = 2\n\n+++++ m.py\nP",
    "qwen": "<|repo_name|>r\n<|file_sep|>a.py\nA = 1\n<|file_sep|>b.py\nB = 2\n<|file_sep|>m.py\n"
    "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "codegemma": "a.py\nA = 1<|file_separator|>b.py\nB = 2<|file_separator|>m.py\n"
    "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "granite4": f"<|fim_prefix|>{AS_COMMENTS}P<|fim_suffix|>S<|fim_middle|>",
    "seed-coder": f"<[fim-suffix]>S<[fim-prefix]>{AS_COMMENTS}P<[fim-middle]>",
    "codegeex": "<|user|>\n###REFERENCE:\n###PATH:a.py\nA = 1\n###REFERENCE:\n###PATH:b.py\nB = 2\n###PATH:m.py\n"
    "###LANGUAGE:Python\n###MODE:BLOCK\n<|code_suffix|>S<|code_prefix|>P<|code_middle|><|assistant|>\n",
    "mellum": "<filename>a.py\nA = 1\n<filename>b.py\nB = 2\n<filename>m.py\n<fim_suffix>S<fim_prefix>P<fim_middle>",
}


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_one_file_is_in_the_documented_form(name: str) -> None:
    prompt = render(FAMILIES[name], "P", "S", path="m.py", repo="r", language="python")
    assert prompt.text == ONE_FILE[name]
    assert (prompt.family, prompt.form, prompt.parted) == (name, FimForm.FILE, False)
    assert FAMILIES[name].source


@pytest.mark.parametrize("name", sorted(SEVERAL))
def test_several_files_are_in_the_documented_form(name: str) -> None:
    prompt = render(FAMILIES[name], "P", "S", path="m.py", repo="r", language="python", files=FILES)
    assert prompt.text == SEVERAL[name]


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("ollama/qwen2.5-coder:7b", "qwen"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen"),
        ("ollama/qwen3-coder:30b", "qwen"),
        ("Qwen/CodeQwen1.5-7B", "codeqwen"),
        ("ollama/qwen2.5:7b", ""),
        ("ollama/deepseek-coder:6.7b-base", "deepseek"),
        ("ollama/deepseek-coder-v2:16b", "deepseek"),
        ("deepseek/deepseek-chat", "deepseek"),
        ("deepseek-ai/deepseek-coder-6.7b-instruct", ""),
        ("deepseek/deepseek-reasoner", ""),
        ("ollama/codellama:7b-code", "codellama"),
        ("codellama/CodeLlama-13b-hf", "codellama"),
        ("codellama/CodeLlama-34b-hf", ""),
        ("ollama/codellama:7b-python", ""),
        ("bigcode/starcoder2-3b", "starcoder2"),
        ("bigcode/starcoderbase-1b", "starcoder"),
        ("bigcode/starcoder2-15b-instruct-v0.1", ""),
        ("mistral/codestral-latest", "codestral"),
        ("mistral/codestral-embed", ""),
        ("ollama/mamba-codestral", ""),
        ("google/codegemma-2b", "codegemma"),
        ("ollama/codegemma:7b-code", "codegemma"),
        ("ollama/codegemma:latest", ""),
        ("google/codegemma-7b-it", ""),
        ("ibm-granite/granite-8b-code-base", "granite-code"),
        ("ollama/granite3.3:8b", "granite-code"),
        ("ibm-granite/granite-4.0-h-tiny", "granite4"),
        ("ollama/granite4:3b", "granite4"),
        ("stabilityai/stable-code-3b", "stable-code"),
        ("stabilityai/stable-code-instruct-3b", ""),
        ("ByteDance-Seed/Seed-Coder-8B-Base", "seed-coder"),
        ("ByteDance-Seed/Seed-Coder-8B-Instruct", ""),
        ("THUDM/codegeex4-all-9b", "codegeex"),
        ("JetBrains/Mellum-4b-base", "mellum"),
        ("zed-industries/zeta-2", ""),
        ("openai/gpt-4o", ""),
        ("anthropic/claude-sonnet-4", ""),
    ],
)
def test_a_name_says_which_form(model: str, family: str) -> None:
    found = family_of(model, {})
    assert (found.name if found is not None else "") == family


def test_a_chat_model_gets_no_control_token() -> None:
    prompt = render(None, "def f():\n", "\n", files=FILES)
    assert (prompt.text, prompt.stops, prompt.form) == ("def f():\n", PREFIX_STOPS, FimForm.PREFIX)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_control_tokens_in_source_cannot_move_the_hole(name: str) -> None:
    """Tokens of every family, in every place that text can stand in: only those of the form are left."""
    every = " ".join(token for family in FAMILIES.values() for token in family.stops if token.strip() == token)
    family = FAMILIES[name]
    files = (FimFile(f"x{every}", every),)
    prompt = render(family, every, every, path=every, repo=every, language="python", files=files)
    plain = render(family, "P", "S", path="m", repo="r", language="python", files=(FimFile("x", "t"),))
    for token in family.stops:
        assert prompt.text.count(token) == plain.text.count(token), token
    assert prompt.parted
    assert not plain.parted


def test_breaking_twice_changes_nothing_and_every_stop_ends_a_reply() -> None:
    text = 'x = "<|fim_suffix|> <PRE> <\uff5cfim\u2581hole\uff5c> [SUFFIX]"'
    once = broken(text, FAMILIES["qwen"])
    assert broken(once, FAMILIES["qwen"]) == once != text
    assert "<|file_sep|>" in FAMILIES["qwen"].stops
    assert "<|im_end|>" in FAMILIES["qwen"].stops


def test_a_path_stays_on_its_line() -> None:
    prompt = render(FAMILIES["mellum"], "P", "S", path="m\n<x>.py", files=FILES)
    assert "<filename>m?<x>.py\n" in prompt.text


def test_the_setting_knows_each_row() -> None:
    assert tuple(FAMILIES) == FAMILY_NAMES


def test_a_form_of_the_users_own_goes_first() -> None:
    """By a part of the name: a row of the table, or a template, whose marks are then control tokens."""
    assert family_of("ollama/qwen2.5-coder:7b", {"QWEN": "starcoder2"}) is FAMILIES["starcoder2"]
    own = family_of("acme/seer", {"seer": "<pre> {prefix}<suf>{suffix} <mid>"})
    assert own is not None
    made = render(own, "a <pre> b", "c")
    assert made.text.startswith("<pre> a ")
    assert made.text.endswith("<suf>c <mid>")
    assert (made.text.count("<pre>"), made.parted, "<mid>" in made.stops) == (1, True, True)
    assert family_of("acme/other", {"seer": "qwen"}) is None


@pytest.mark.parametrize(
    "given",
    [{"m": "no-family"}, {"m": "<pre>{prefix}"}, {"m": "{prefix}{suffix}{suffix}"}, {" ": "qwen"}, {"m": 1}, []],
)
def test_a_form_that_cannot_be_filled_is_refused(given: object) -> None:
    with pytest.raises(ValueError):
        read_families(given)
