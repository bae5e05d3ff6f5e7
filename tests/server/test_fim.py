"""The line of inline completion: from a cursor to a prompt, with what may not leave and what did not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, run

from haversack.fim.complete import DOCUMENT_ID, FimServices, LatelyEdited, complete
from haversack.fim.nouns import Cursor, FimBundle, FimRequest, Found, Ring
from haversack.tokens import TokenCounter
from haversack.types import (
    Candidate,
    Detail,
    Form,
    HaversackError,
    Kind,
    Outcome,
    Position,
    Request,
    Settings,
    Source,
)
from haversack.workspace import Workspace

LOCAL = "ollama/qwen2.5-coder:7b"
REMOTE = "mistral/codestral-latest"
MAIN = "from store import load\n\n\ndef main():\n    return load(\n"
STORE = "def load(name):\n    return name\n"


def finder(*paths: str) -> FimServices:
    """Finds these files, whole."""

    def find(cursor: Cursor, workspace: Workspace, ring: Ring | None, most_tokens: int, counter: TokenCounter) -> Found:
        del cursor, ring, most_tokens, counter
        found: list[Candidate] = []
        for path in paths:
            file = workspace.read("app", path)
            assert file is not None
            forms = (Form(Detail.FULL, ((0, len(file.lines)),)),)
            found.append(
                Candidate(path, Source.SYMBOLS, Kind.SYMBOL, path, 0.5, (), "used", file=file, forms=forms,
                          origins=(f"app/{path}",))
            )  # fmt: skip
        return Found(tuple(found))

    return FimServices(find=find)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"app": {"main.py": MAIN, "store.py": STORE, "private/keys.py": "TOP = 1\n"}})


def ask(
    world: World, line: int, column: int, *, uri: str = "", services: FimServices | None = None, **changes: object
) -> FimBundle:
    uri = uri or world.open("app", "main.py", MAIN)
    request = replace(FimRequest(uri, Position(line, column), model=LOCAL), **changes)

    async def prepare(asked: Request) -> tuple[Request, Workspace]:
        return asked, world.workspace(asked)

    return run(complete(request, prepare, services or finder()))


def test_a_cursor_becomes_the_prompt_of_the_models_family(world: World) -> None:
    found = ask(world, 4, 16)
    assert (found.prefix, found.suffix) == (MAIN[:-1], "\n")
    assert found.prompt.text == f"<|fim_prefix|>{MAIN[:-1]}<|fim_suffix|>\n<|fim_middle|>"
    assert "<|file_sep|>" in found.stops
    assert found.model == LOCAL
    assert found.local
    assert [(row.id, row.outcome) for row in found.manifest.items] == [(DOCUMENT_ID, Outcome.INCLUDED)]
    assert found.manifest.hash


def test_text_of_other_files_goes_in_with_a_row_each(world: World) -> None:
    found = ask(world, 4, 16, services=finder("store.py"))
    assert f"<|file_sep|>store.py\n{STORE}<|file_sep|>main.py\n<|fim_prefix|>" in found.prompt.text
    rows = {row.id: row for row in found.manifest.items}
    assert rows["store.py"].outcome is Outcome.INCLUDED
    assert rows["store.py"].content_hash


def test_a_model_without_fim_gets_the_prefix_alone_and_the_answer_says_so(world: World) -> None:
    found = ask(world, 4, 16, model="ollama/llama3.2:3b", services=finder("store.py"))
    assert found.prompt.text == MAIN[:-1]
    assert "fim_not_supported" in {problem.code for problem in found.problems}
    assert {row.id for row in found.manifest.items} == {DOCUMENT_ID, "store.py"}


def test_a_model_that_nobody_knows_reads_the_form_that_the_user_gives_it(world: World) -> None:
    world.settings = Settings(fim_families={"llama3.2": "[S]{suffix}[P]{prefix}"})
    found = ask(world, 4, 16, model="ollama/llama3.2:3b")
    assert found.prompt.text == f"[S]\n[P]{MAIN[:-1]}"
    assert "fim_not_supported" not in {problem.code for problem in found.problems}


def test_a_restricted_document_never_goes_to_a_remote_model(world: World) -> None:
    world.settings = Settings(restricted_paths=("main.py",))
    with pytest.raises(HaversackError) as refused:
        ask(world, 4, 16, model=REMOTE)
    assert refused.value.code == "fim_restricted"
    assert ask(world, 4, 16).prefix == MAIN[:-1]


def test_restricted_text_of_other_files_stays_here(world: World) -> None:
    world.settings = Settings(restricted_paths=("private/**",))
    services = finder("private/keys.py", "store.py")
    found = ask(world, 4, 16, model=REMOTE, services=services)
    assert "TOP" not in found.prompt.text
    assert "load(name)" in found.prompt.text
    rows = {row.id: row for row in found.manifest.items}
    assert rows["private/keys.py"].outcome is Outcome.EXCLUDED
    assert "TOP" in ask(world, 4, 16, services=services).prompt.text


def test_a_request_that_wants_nothing_to_leave_gets_no_remote_model(world: World) -> None:
    with pytest.raises(HaversackError):
        ask(world, 4, 16, model=REMOTE, local_only=True)


def test_secrets_near_the_cursor_are_hidden_from_remote_models_also_across_it(world: World) -> None:
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    text = f'token = "{key}"\nother = 1\n'
    uri = world.open("app", "main.py", text)
    for column in (9, 20, len(text.split("\n", maxsplit=1)[0])):
        found = ask(world, 0, column, uri=uri, model=REMOTE)
        assert key[:8] not in found.prompt.text
        assert key[-8:] not in found.prompt.text
        assert "secret_redacted" in {problem.code for problem in found.problems}
        assert key[-8:] in ask(world, 0, column, uri=uri).prompt.text
    assert "other = 1" in found.prompt.text


def test_control_tokens_in_the_source_are_broken_and_told(world: World) -> None:
    uri = world.open("app", "main.py", 'x = "<|fim_suffix|>"\ny = 1\n')
    found = ask(world, 1, 4, uri=uri)
    assert found.prompt.text.count("<|fim_suffix|>") == 1
    assert "control_tokens_broken" in {problem.code for problem in found.problems}


@pytest.mark.parametrize(
    ("position", "text", "prefix", "suffix"),
    [
        ((0, 0), "", "", ""),
        ((9, 9), "a\n", "a\n", ""),
        ((0, 99), "ab\r\nc", "ab", "\r\nc"),
        ((0, 7), 'm = "\U0001f98ao"', 'm = "\U0001f98ao', '"'),
    ],
)
def test_a_place_that_is_not_there_is_the_nearest_before_it(
    world: World, position: tuple[int, int], text: str, prefix: str, suffix: str
) -> None:
    found = ask(world, *position, uri=world.open("app", "main.py", text))
    assert (found.prefix, found.suffix) == (prefix, suffix)


def test_a_buffer_without_a_path_is_completed_and_no_address_is_told(world: World) -> None:
    uri = world.open_outside("untitled:Untitled-1", "x = \n")
    assert ask(world, 0, 4, uri=uri, model=REMOTE).prefix == "x = "
    elsewhere = world.open_outside("file:///home/somebody/m.py", "x = \n")
    found = ask(world, 0, 4, uri=elsewhere, services=finder("store.py"))
    assert "somebody" not in found.prompt.text


@pytest.mark.parametrize(
    ("uri", "code"),
    [("output:extension-x", "document_not_source"), ("git:/ws/a.py", "document_not_source"),
     ("file:///none.py", "document_not_open")],
)  # fmt: skip
def test_what_is_no_open_source_is_refused_by_name(world: World, uri: str, code: str) -> None:
    world.open_outside("output:extension-x", "log\n")
    with pytest.raises(HaversackError) as refused:
        ask(world, 0, 0, uri=uri)
    assert refused.value.code == code


def test_imports_above_the_prefix_go_in(world: World) -> None:
    text = '"""Doc."""\nimport os\nfrom store import (\n    load,\n)\n' + "x = 1\n" * 400 + "y = "
    uri = world.open("app", "main.py", text)
    found = ask(world, 405, 4, uri=uri, prefix_tokens=200)
    assert found.imports == "import os\nfrom store import (\n    load,\n)\n"
    assert "Doc." not in found.prompt.text
    assert f"{found.imports}{found.prefix}" in found.prompt.text
    assert ask(world, 405, 4, uri=uri, prefix_tokens=200, context_tokens=0).imports == ""


def test_settings_and_request_set_the_shares(world: World) -> None:
    text = "x = 1\n" * 400
    uri = world.open("app", "main.py", text)
    usual = ask(world, 200, 0, uri=uri)
    world.settings = Settings(fim_prefix_tokens=100, fim_suffix_tokens=50, fim_context_tokens=0, fim_reply_tokens=99)
    small = ask(world, 200, 0, uri=uri, services=finder("store.py"))
    assert 0 < len(small.prefix) < len(usual.prefix)
    assert 0 < len(small.suffix) < len(usual.suffix)
    assert small.snippets == ()
    assert small.manifest.tokens.reply_reserve == 99
    assert len(ask(world, 200, 0, uri=uri, prefix_tokens=0).prefix) == 0


def test_a_small_window_holds_prompt_and_reply(world: World) -> None:
    """The form's own tokens count."""
    uri = world.open("app", "main.py", "x = 1\n" * 100)
    world.settings = Settings(context_window=300)
    found = ask(world, 50, 0, uri=uri, reply_tokens=100, services=finder("store.py"))
    tokens = found.manifest.tokens
    assert tokens.system > 0
    assert tokens.question > 0
    assert tokens.total + tokens.reply_reserve <= tokens.window == 300


def test_the_same_choice_is_the_same_text_in_whatever_order_it_was_found(world: World) -> None:
    one = ask(world, 4, 16, services=finder("store.py", "private/keys.py"))
    two = ask(world, 4, 16, services=finder("private/keys.py", "store.py"))
    assert one.prompt.text == two.prompt.text


def test_definitions_in_other_files_are_found_through_the_index(world: World) -> None:
    """With the finder that sessions use."""
    found = ask(world, 4, 16, services=FimServices())
    assert "def load(name)" in found.prompt.text


def test_places_lately_edited_are_handed_to_the_finder_newest_document_first(world: World) -> None:
    world.open("app", "store.py", STORE, changed=((0, 1),))
    main = world.open("app", "main.py", MAIN, changed=((4, 5),))
    recent = (world.uri("app", "store.py"), main, "untitled:1")
    places = LatelyEdited(replace(world.snapshot(), recent=recent)).places()
    assert [(each.path, each.lines, each.edited) for each in places] == [
        ("store.py", (0, 1), True),
        ("main.py", (4, 5), True),
    ]
