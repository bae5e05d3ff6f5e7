"""The forms in which models that fill in the middle read a prompt: one table, a row for each family.

A row's templates have `{prefix}` and `{suffix}`; that for several files has `{files}` as well, and may have `{repo}`,
`{path}` and `{language}`. Whatever stands around them is written as the maker documents it, blanks and line ends
included. A model without a row gets its prefix alone: control tokens mean nothing to a model that never saw them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from haversack.templates.chat import neutralised as without_chat_tokens


class FimForm(StrEnum):
    FILE = "file"  # one file with a hole
    FILES = "files"  # other files before it, as the family's documentation has them
    PREFIX = "prefix"  # no FIM: the text before the cursor, to be continued


@dataclass(frozen=True, slots=True)
class FimFamily:
    """`many` and `file` are "" where no form for several files is documented: they then stand as comments in front
    of the prefix. `tokens` are what the tokenizer reads as control, `source` says where the form is documented."""

    name: str
    template: str
    tokens: tuple[str, ...]
    ends: tuple[str, ...]
    source: str
    many: str = ""
    file: str = ""

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a reply ends. A control token in a reply is always past its end."""
        return tuple(dict.fromkeys((*self.ends, *self.tokens)))


@dataclass(frozen=True, slots=True)
class FimFile:
    """Lines of another file. `path` is as the prompt shows it."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class FimPrompt:
    """The finished prompt, to be sent as it is (`raw`, without a chat template around it).

    `family` is "" for a model that fills in no middles. `parted` says that source text had control tokens in it,
    which are broken in `text`.
    """

    text: str
    stops: tuple[str, ...]
    family: str
    form: FimForm
    parted: bool = False


_STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>")
_PIPED = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>")
_PSM = "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>"
_PIPED_PSM = "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"

FAMILIES: Mapping[str, FimFamily] = {
    row.name: row
    for row in (
        FimFamily(
            "deepseek",
            "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
            ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
            ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<|EOT|>"),
            "deepseek-ai/DeepSeek-Coder README, Code Insertion; Repository Level Code Completion for the files",
            many="<｜fim▁begin｜>{files}{comment}{path}\n{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
            file="{comment}{path}\n{text}\n",
        ),
        FimFamily(
            "codellama",
            "<PRE> {prefix} <SUF>{suffix} <MID>",
            ("<PRE>", "<SUF>", "<MID>"),
            ("<EOT>", "</s>"),
            "meta-llama/codellama, llama/generation.py: infilling_prompt_tokens",
        ),
        FimFamily(
            "starcoder",
            _PSM,
            _STARCODER,
            ("<|endoftext|>", "<filename>", "<reponame>", "<gh_stars>"),
            "bigcode/starcoder model card, Fill-in-the-middle",
        ),
        FimFamily(
            "starcoder2",
            _PSM,
            _STARCODER,
            ("<|endoftext|>", "<file_sep>", "<repo_name>"),
            "StarCoder 2 and The Stack v2, section 5.1",
            many="<repo_name>{repo}{files}<file_sep><fim_prefix>{path}\n{prefix}<fim_suffix>{suffix}<fim_middle>",
            file="<file_sep>{path}\n{text}",
        ),
        FimFamily(
            "codestral",
            "[SUFFIX]{suffix}[PREFIX]{prefix}",
            ("[SUFFIX]", "[PREFIX]", "[MIDDLE]"),
            ("</s>", "\n+++++ "),
            "mistralai/mistral-common, encode_fim; the files as Mistral trained them",
            many="[SUFFIX]{suffix}[PREFIX]{files}+++++ {path}\n{prefix}",
            file="+++++ {path}\n{text}\n\n",
        ),
        FimFamily(
            "qwen",
            _PIPED_PSM,
            (*_PIPED, "<|repo_name|>", "<|file_sep|>"),
            ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
            "QwenLM/Qwen2.5-Coder README, file and repository level code completion; QwenLM/Qwen2.5-Coder#343",
            many="<|repo_name|>{repo}\n{files}<|file_sep|>{path}\n" + _PIPED_PSM,
            file="<|file_sep|>{path}\n{text}\n",
        ),
        FimFamily(
            "codeqwen",
            _PSM,
            _STARCODER,
            ("<|endoftext|>", "<file_sep>", "<reponame>"),
            "QwenLM/CodeQwen1.5 README, Fill in the middle",
        ),
        FimFamily(
            "codegemma",
            _PIPED_PSM,
            (*_PIPED[:3], "<|file_separator|>"),
            ("<eos>", "<end_of_turn>"),
            "google/codegemma-7b model card, For Code Completion; Google's page on its formatting for the files",
            many="{files}{path}\n" + _PIPED_PSM,
            file="{path}\n{text}<|file_separator|>",
        ),
        FimFamily(
            "granite-code",
            _PSM,
            _STARCODER,
            ("<|endoftext|>", "<|end_of_text|>", "<reponame>", "<filename>"),
            "Granite Code Models, section 3.2; ibm-granite/granite-3.3-8b-instruct card, Fill-in-the-Middle",
        ),
        FimFamily(
            "granite4",
            _PIPED_PSM,
            _PIPED,
            ("<|end_of_text|>", "<|endoftext|>"),
            "IBM Granite 4.0 documentation, Fill-in-the-Middle",
        ),
        FimFamily(
            "stable-code",
            _PSM,
            _STARCODER,
            ("<|endoftext|>",),
            "stabilityai/stable-code-3b model card, Fill in Middle",
        ),
        FimFamily(
            "seed-coder",
            "<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
            ("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"),
            ("<[end▁of▁sentence]>", "<[begin▁of▁sentence]>", "<[PAD▁TOKEN]>", "<[SEP▁TOKEN]>"),
            "Seed-Coder technical report, Fill-in-the-Middle",
        ),
        FimFamily(
            "codegeex",
            "<|user|>\n###PATH:{path}\n###LANGUAGE:{language}\n###MODE:BLOCK\n"
            "<|code_suffix|>{suffix}<|code_prefix|>{prefix}<|code_middle|><|assistant|>\n",
            ("<|code_suffix|>", "<|code_prefix|>", "<|code_middle|>"),
            ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|observation|>"),
            "THUDM/CodeGeeX4 guides/Infilling_guideline.md, contextual and cross-file completion",
            many="<|user|>\n{files}###PATH:{path}\n###LANGUAGE:{language}\n###MODE:BLOCK\n"
            "<|code_suffix|>{suffix}<|code_prefix|>{prefix}<|code_middle|><|assistant|>\n",
            file="###REFERENCE:\n###PATH:{path}\n{text}\n",
        ),
        FimFamily(
            "mellum",
            "<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
            _STARCODER,
            ("<|endoftext|>", "<filename>", "<reponame>", "<file_sep>"),
            "JetBrains/Mellum-4b-base model card, Fill in the middle with additional files as context",
            many="{files}<filename>{path}\n<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
            file="<filename>{path}\n{text}\n",
        ),
    )
}

# Which names are of which family, tried in order; "" for models whose makers document no FIM: chat and instruct
# tunings, sizes trained without it, next-edit models (Zeta rewrites a region, it fills in nothing at a cursor).
_NAMES: tuple[tuple[str, str], ...] = (
    (r"zeta|embed|rerank", ""),
    (r"mellum", "mellum"),
    (r"code-?qwen.*chat", ""),
    (r"code-?qwen", "codeqwen"),
    (r"qwen[-_]?(?:2\.5|3(?:\.\d)?)[-_]?coder", "qwen"),
    # Documented for the base models; the tag without a word after the size is the instruct tuning of version 2, whose
    # template on Ollama takes a suffix.
    (r"deepseek[-_]coder.*(?:instruct|chat)", ""),
    (r"deepseek[-_](?:coder|chat|v2|v3)", "deepseek"),  # `deepseek-chat`: the maker's FIM completion service
    (r"code-?llama.*(?:34b|70b|python)|phind", ""),  # trained without infilling
    (r"code-?llama", "codellama"),
    (r"star(?:chat|coder.*(?:instruct|chat))", ""),
    (r"starcoder[-_:]?2", "starcoder2"),
    (r"starcoder", "starcoder"),
    (r"codestral[-_]mamba|mamba[-_]codestral", ""),
    (r"codestral", "codestral"),
    (r"codegemma.*(?:instruct|[-_]it\b)|codegemma(?::latest|:7b(?:-v[\d.]+)?)?$", ""),  # on Ollama: the instruct tuning
    (r"codegemma", "codegemma"),
    (r"granite.*code.*instruct", ""),
    (r"granite[-_]code|granite-\d+b-code|granite[-_]?3\.3", "granite-code"),
    (r"granite[-_]?4", "granite4"),
    (r"stable-?code.*instruct", ""),
    (r"stable-?code", "stable-code"),
    (r"seed-?coder.*base", "seed-coder"),
    (r"codegeex-?4", "codegeex"),
)
_MATCHERS = tuple((re.compile(pattern), family) for pattern, family in _NAMES)


def family_of(model: str, added: Mapping[str, str]) -> FimFamily | None:
    """The family of `provider/model`, None for a model that is not known to fill in middles.

    `added` are the user's own: a part of the name, and a row's name or a template. They go first.
    """
    name = model.strip().lower()
    for part, form in added.items():
        if part.lower() in name:
            return FAMILIES.get(form) or _of_template(part, form)
    bare = name.rsplit("/", 1)[-1]
    # Quantised copies are named after their model: `Qwen2.5-Coder-7B-GGUF`, `codellama-7b.Q4_K_M.gguf`.
    for pattern, family in _MATCHERS:
        if pattern.search(bare):
            return FAMILIES.get(family)
    return None


def _of_template(name: str, form: str) -> FimFamily:
    """What stands around the fields is what the model reads as control."""
    tokens = tuple(token for each in _FIELD.split(form)[::2] if (token := each.strip()))
    return FimFamily(name, form, tokens, (), "the setting haversack.fim.families")


# Where a reply of a model without FIM ends: it goes on for ever, or begins to talk.
PREFIX_STOPS = ("\n\n", "```")

_FIELD = re.compile(r"\{(prefix|suffix|files|repo|path|language|comment|text)\}")


def render(
    family: FimFamily | None,
    prefix: str,
    suffix: str,
    *,
    path: str = "",
    repo: str = "",
    language: str = "",
    files: Sequence[FimFile] = (),
) -> FimPrompt:
    """The prompt, byte for byte in the family's form. Control tokens in what is put into it are broken."""
    given = (prefix, suffix, path, repo, *(part for each in files for part in (each.path, each.text)))
    safe = {text: broken(text, family) for text in given}
    parted = any(safe[text] != text for text in given)
    if family is None:
        return FimPrompt(safe[prefix], PREFIX_STOPS, "", FimForm.PREFIX, parted)
    comment = comment_mark(language)
    values = {
        "prefix": safe[prefix],
        "suffix": safe[suffix],
        "path": _line(safe[path]),
        "repo": _line(safe[repo]),
        "language": language_tag(language),
        "comment": comment,
    }
    if not files:
        return FimPrompt(_filled(family.template, values), family.stops, family.name, FimForm.FILE, parted)
    if family.many:
        each = [
            _filled(
                family.file, {"path": _line(safe[file.path]), "text": safe[file.text].rstrip("\n"), "comment": comment}
            )
            for file in files
        ]
        values["files"] = "".join(each)
        return FimPrompt(_filled(family.many, values), family.stops, family.name, FimForm.FILES, parted)
    values["prefix"] = "".join(_commented(safe[file.path], safe[file.text], comment) for file in files) + safe[prefix]
    return FimPrompt(_filled(family.template, values), family.stops, family.name, FimForm.FILE, parted)


def overhead(family: FimFamily | None, path: str, repo: str, language: str) -> str:
    """What the form itself puts into a prompt, for counting: everything but prefix, suffix and other files."""
    return render(family, "", "", path=path, repo=repo, language=language, files=(FimFile("", ""),)).text


def broken(text: str, family: FimFamily | None) -> str:
    """`text` with a backslash in every control token of the family and of chat formats; twice changes nothing."""
    clean = without_chat_tokens(text)
    for token in _ALL_TOKENS if family is None else (*_ALL_TOKENS, *family.stops):
        if token.strip() == token and token in clean:
            clean = clean.replace(token, f"{token[0]}\\{token[1:]}")
    return clean


# Of every family: the server behind a name may have loaded another model than its name says.
_ALL_TOKENS = tuple(
    dict.fromkeys(token for family in FAMILIES.values() for token in family.stops if token.strip() == token)
)


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: values.get(field[1], ""), template)


def _commented(path: str, text: str, comment: str) -> str:
    lines = [f"Path: {_line(path)}", *text.rstrip("\n").split("\n")]
    return "".join(f"{comment} {line}".rstrip() + "\n" for line in lines)


def _line(name: str) -> str:
    """A name on one line: legal paths may hold line ends."""
    return re.sub(r"[\x00-\x1f\x7f\u2028\u2029]", "?", name)


_HASH = frozenset(
    [
        "python",
        "ruby",
        "perl",
        "r",
        "shellscript",
        "bash",
        "sh",
        "fish",
        "yaml",
        "toml",
        "dockerfile",
        "makefile",
        "elixir",
        "julia",
        "nix",
    ]
)
_DASHES = frozenset(["lua", "sql", "haskell", "ada", "elm"])


def comment_mark(language: str) -> str:
    """What begins a comment of one line: by far the most languages have `//`, `#` or `--`."""
    name = language.lower()
    return "#" if name in _HASH else "--" if name in _DASHES else "//"


_TAGS = {
    "javascript": "JavaScript",
    "javascriptreact": "JavaScript",
    "typescript": "TypeScript",
    "typescriptreact": "TypeScript",
    "tsx": "TypeScript",
    "cpp": "C++",
    "csharp": "C#",
    "php": "PHP",
    "sql": "SQL",
    "html": "HTML",
    "css": "CSS",
    "shellscript": "Shell",
    "bash": "Shell",
    "text": "",
    "plaintext": "",
}


def language_tag(language: str) -> str:
    """A language as CodeGeeX names it; nothing where it is not known, which its guide allows."""
    return _TAGS.get(language.lower(), language[:1].upper() + language[1:])
