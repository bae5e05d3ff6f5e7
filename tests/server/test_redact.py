"""Secrets do not leave: on remote routes they are hidden everywhere in a prompt, and nothing else changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gathering import World, run
from hypothesis import given
from hypothesis import strategies as st

from haversack import pipeline
from haversack.memory import MemoryStore
from haversack.policy.secrets import find_secrets, rules
from haversack.redact import hidden
from haversack.tokens import counter
from haversack.types import (
    ActiveDocument,
    Bundle,
    Kind,
    Mention,
    Message,
    Outcome,
    Position,
    Range,
    Request,
    Role,
    Settings,
    Supplied,
    ToolCall,
)

REMOTE, LOCAL = "openai/gpt-4o", "ollama/qwen2.5-coder:7b"
KEY = "AKIA" + "Q3EGRN7TWY2LKZ5M"
TOKEN = "ghp_" + "B7kQ2xWn9Lp4VtRd6MhJ8uGfEa1oZi5NcYs3"
BODY = tuple(f"{at:02}" + "q7Vx2LnPz9KdWm4sYtRb6HcJuG8fEa1oNi5TqZx7VB7kQ2xWn9Lp4VtRd6MhJ8" for at in range(8))
PEM = ("-----BEGIN RSA " + "PRIVATE KEY-----", *BODY, "-----END RSA " + "PRIVATE KEY-----")
CONF = f'"""Settings."""\n\nREGION = "eu"\nACCESS = "{KEY}"\n\n\ndef connect_bucket():\n    return ACCESS\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    pem = "".join(f"{line}\n" for line in PEM)
    files = {
        "src/conf.py": CONF,
        "src/key.txt": f"# deploy key\n{pem}# end\n",
        "src/other.py": "def other():\n    pass\n",
    }
    return World(tmp_path, {"ws": files})


def ask(world: World, text: str, model: str = REMOTE, **fields: object) -> Bundle:
    request = Request(text, **({"model": model} | fields))  # pyright: ignore[reportArgumentType]
    return run(pipeline.run(request, world.workspace()))


def everything(bundle: Bundle) -> str:
    """All of a reply, but for messages that say nothing of a secret."""
    return repr(bundle)


def test_b82_a_key_in_a_file_is_hidden_on_a_remote_route(world: World) -> None:
    """Its line keeps its place, the row names kind and line of the file, and the value is nowhere in the reply."""
    bundle = ask(world, "see @src/conf.py")
    block = next(block for block in bundle.blocks if block.path == "src/conf.py")
    assert 'ACCESS = "[redacted: aws-access-key]"\n' in block.text
    assert block.text.count("\n") == CONF.count("\n")
    row = next(row for row in bundle.manifest.items if row.id == "mention:ws/src/conf.py")
    assert row.outcome is Outcome.REDACTED
    assert row.reasons == ("holds a secret, which was hidden",)
    assert row.note == "aws-access-key at line 4"
    assert "secret" in row.flags
    assert KEY not in everything(bundle)


def test_a_local_route_gets_the_text_and_a_flag(world: World) -> None:
    """Nothing changes but the row's flag."""
    bundle = ask(world, "see @src/conf.py", LOCAL)
    assert next(block for block in bundle.blocks if block.path == "src/conf.py").text == CONF
    row = next(row for row in bundle.manifest.items if row.id == "mention:ws/src/conf.py")
    assert (row.outcome, row.reasons, row.note, row.flags) == (Outcome.INCLUDED, (), "", ("secret",))


def test_a_user_may_switch_it_off(world: World) -> None:
    """Then the text goes as it is, flagged."""
    world.settings = Settings(redact_secrets=False)
    bundle = ask(world, f"see @src/conf.py {TOKEN}")
    assert KEY in bundle.prompt.messages[-1].content
    assert TOKEN in bundle.prompt.messages[-1].content
    assert TOKEN not in repr(bundle.manifest)


@pytest.mark.parametrize("lines", [(4, 7), (1, 3), (8, 10), (9, 11)])
def test_a_part_of_a_key_is_known_by_the_whole_file(world: World, lines: tuple[int, int]) -> None:
    """Lines from the middle of a private key hold none of its marks, and are hidden all the same, line by line."""
    bundle = ask(world, "what is this", mentions=(Mention("src/key.txt", lines=lines),))
    block = next(block for block in bundle.blocks if block.path == "src/key.txt")
    assert block.spans == (lines,)
    assert block.text.count("\n") == lines[1] - lines[0]
    assert not any(line in everything(bundle) for line in BODY)
    row = next(row for row in bundle.manifest.items if row.outcome is Outcome.REDACTED)
    first = max(lines[0], 2) + 1
    assert re.match(rf"private-key at lines? {first}\b", row.note)


def test_a_selection_that_ends_in_a_key_is_hidden(world: World) -> None:
    """Selections are whole lines of the file."""
    uri = world.open("ws", "src/key.txt", world.folders["ws"]["src/key.txt"], dirty=False)
    active = ActiveDocument(uri, selection=Range(Position(0, 0), Position(4, 0)))
    bundle = ask(world, "explain this", active=active)
    assert any(block.kind is Kind.SELECTION for block in bundle.blocks)
    assert not any(line in everything(bundle) for line in BODY)


def test_a_pasted_piece_of_a_key_is_hidden(world: World) -> None:
    """Two or more lines that can only be a key's, in a supplied text or a diff, without its first line."""
    text = "".join(f"+{line}\n" for line in BODY[2:6])
    bundle = ask(world, "how does connect_bucket() work", supplied=(Supplied("s", "paste", f"before\n{text}after\n"),))
    assert not any(line in everything(bundle) for line in BODY)
    assert any("before" in block.text and "after" in block.text for block in bundle.blocks)


def test_history_question_and_system_prompt_are_hidden(world: World) -> None:
    """Each place is named in a problem with its kind; the value is nowhere, not even among the search words."""
    call = ToolCall("1", "run", json.dumps({"cmd": f'export T="{TOKEN}"\n', "password": "h7Kd2mQz!", "n": [1, KEY]}))
    history = (
        Message(Role.USER, f"my key is {KEY}, remember"),
        Message(Role.ASSISTANT, "", tool_calls=(call,)),
        Message(Role.TOOL, f"AWS: {KEY}\n", tool_call_id="1"),
    )
    world.settings = Settings(system_prompt=f"Use {TOKEN} for all calls.")
    bundle = ask(world, f"why does connect_bucket() fail with {KEY}", history=history)
    assert not any(secret in everything(bundle) for secret in (KEY, TOKEN, "h7Kd2mQz!"))
    told = [problem for problem in bundle.problems if problem.code == "secret_redacted"]
    assert len(told) == 5
    assert "your question (aws-access-key)" in told[0].message
    assert "system prompt (github-token)" in told[1].message
    arguments = json.loads(next(m for m in bundle.prompt.messages if m.tool_calls).tool_calls[0].arguments)
    assert arguments["n"][0] == 1
    assert arguments["cmd"].endswith('"\n')
    local = ask(world, f"why does connect_bucket() fail with {KEY}", LOCAL, history=history)
    assert [message.content for message in local.history.messages] == [message.content for message in history]
    assert KEY in local.prompt.messages[-1].content
    assert KEY not in repr(local.manifest)


def test_arguments_that_are_no_json_are_hidden_as_text(world: World) -> None:
    """A model may have written half of it."""
    call = ToolCall("1", "run", '{"cmd": "login ' + TOKEN)
    history = (Message(Role.ASSISTANT, "", tool_calls=(call,)), Message(Role.TOOL, "ok", tool_call_id="1"))
    bundle = ask(world, "what happened", history=history)
    assert TOKEN not in everything(bundle)


def test_titles_and_memories_are_hidden(world: World) -> None:
    """A short text's hash is of what is left, so that nobody can try passwords against it."""
    world.memory = MemoryStore(world.tmp / "memories.db")
    world.memory.add("rule", f"Deploy with {TOKEN}", 'password = "h7Kd!2mQz"', "user", now=0)
    bundle = ask(world, "how does connect_bucket work")
    row = next(row for row in bundle.manifest.items if row.kind is Kind.MEMORY)
    assert not any(secret in everything(bundle) for secret in (TOKEN, "h7Kd!2mQz"))
    assert row.note == "password at its line 1, github-token in its title"
    world.memory.update(row.id.removeprefix("memory:"), now=0, content='password = "x9Pw?4vRt"')
    again = ask(world, "how does connect_bucket work")
    assert next(each for each in again.manifest.items if each.id == row.id).content_hash == row.content_hash


def test_tokens_add_up_after_hiding(world: World) -> None:
    """The use of the window, the blocks and the rows agree, and nothing became dearer."""
    bundle = ask(world, "see @src/conf.py and @src/key.txt")
    use = bundle.manifest.tokens
    assert use.context == sum(block.tokens for block in bundle.blocks)
    assert use.context == sum(row.tokens_after for row in bundle.manifest.items)
    world.settings = Settings(redact_secrets=False)
    plain = ask(world, "see @src/conf.py and @src/key.txt")
    assert use.context <= plain.manifest.tokens.context


SECRETS = [text for rule in rules() for text in rule.finds]
WORDS = st.sampled_from(["x = 1\n", "def f():\n", "\r\n", "é\U0001f511 ", "\ud800", "\u2028", "\n", " ", "# note\n"])


@given(st.lists(st.one_of(WORDS, st.sampled_from(SECRETS)), max_size=8), st.sampled_from(["o200k", "llama3", "chars"]))
def test_what_is_hidden_is_gone_and_costs_no_more(pieces: list[str], family: str) -> None:
    """In any text: the same number of lines, no secret left, no token more, and nothing else touched."""
    text = "\n".join(pieces)
    count = counter(family).count
    clean, kinds = hidden(text, count)
    assert count(clean) <= count(text)
    assert clean.count("\n") == text.count("\n")
    assert bool(kinds) == bool(find_secrets(text, fragment=True))
    # A mark is shorter than what it stands for, so a word may now stand near enough to tell of another secret.
    near = {rule.id for rule in rules() if rule.around}
    assert {secret.kind for secret in find_secrets(clean, fragment=True)} <= near
    if not kinds:
        assert clean == text
