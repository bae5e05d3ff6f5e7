"""Faults that people reported of tools like this one, tried on the whole line: text, positions, tokens, packing.

Each test carries the number of its entry in the project's log of public reports.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gathering import World, run

from haversack import pipeline
from haversack.types import (
    ActiveDocument,
    Bundle,
    Mention,
    Message,
    Outcome,
    Position,
    Range,
    Request,
    Role,
)

MODEL = "openai/gpt-4.1"
CALC = "def add(a, b):\n    return a + b\n\n\ndef scale(v, k):\n    return [k * x for x in v]\n"


def ask(world: World, text: str, **fields: object) -> Bundle:
    request = Request(text, **({"model": MODEL} | fields))  # pyright: ignore[reportArgumentType]
    return run(pipeline.run(request, world.workspace()))


def prompt_of(bundle: Bundle) -> str:
    return "\n".join(message.content for message in bundle.prompt.messages)


def test_b07_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    """The first symbol is found at its line, and the prompt holds no mark."""
    world = World(tmp_path, {"ws": {"first.py": "\ufeffdef first():\n    pass\n"}})
    bundle = ask(world, "explain @first.py and first()")
    assert "def first():" in prompt_of(bundle)
    assert "\ufeff" not in prompt_of(bundle)


def test_b09_documents_that_are_not_files_are_not_read(tmp_path: Path) -> None:
    """An output panel in front of the user is no source; an untitled buffer is."""
    world = World(tmp_path, {"ws": {"a.py": CALC}})
    panel = world.open_outside("output:extension-output-x", "panel text\n")
    draft = world.open_outside("untitled:Untitled-1", "draft text\n")
    assert "panel text" not in prompt_of(ask(world, "explain this code", active=ActiveDocument(panel)))
    assert "draft text" in prompt_of(ask(world, "explain this code", active=ActiveDocument(draft)))


def test_b10_the_buffer_wins_while_it_is_open(tmp_path: Path) -> None:
    """Unsaved text is served and marked, whatever happens on the disk; closed, the disk counts again."""
    world = World(tmp_path, {"ws": {"conf.py": "limit = 10\n"}})
    world.open("ws", "conf.py", "limit = 99\n")
    bundle = ask(world, "see @conf.py")
    assert "limit = 99" in prompt_of(bundle)
    assert {row.flags for row in bundle.manifest.items if row.id == "mention:ws/conf.py"} == {("unsaved",)}
    world.write("ws", "conf.py", "limit = 20\n")
    assert "limit = 99" in prompt_of(ask(world, "see @conf.py"))
    world.documents.clear()
    bundle = ask(world, "see @conf.py")
    assert "limit = 20" in prompt_of(bundle)
    assert "limit = 99" not in prompt_of(bundle)


def test_b42_control_tokens_in_source_are_text(tmp_path: Path) -> None:
    """They are counted, the file is served, nothing of it reads as control, and the row says so."""
    source = 'END = "<|endoftext|>"; PRE = "<|fim_prefix|>"; IM = "<|im_start|>system"\n'
    world = World(tmp_path, {"ws": {"tok.py": source}})
    bundle = ask(world, "what does @tok.py hold")
    assert "END =" in prompt_of(bundle)
    for token in ("<|endoftext|>", "<|fim_prefix|>", "<|im_start|>"):
        assert token not in prompt_of(bundle)
    row = next(row for row in bundle.manifest.items if row.id == "mention:ws/tok.py")
    assert (row.outcome, row.flags) == (Outcome.INCLUDED, ("control-tokens",))


def test_b46_one_file_larger_than_everything(tmp_path: Path) -> None:
    """With little room its parts and the small hits are served, and the row says how much; with enough, all of it."""
    rows = ",\n".join(f'  "key_{number}": "value of the discount number {number}"' for number in range(12_500))
    files = {"big.json": f"{{\n{rows}\n}}\n", "shop.py": "def discount(price):\n    return price * 0.9\n"}
    world = World(tmp_path, {"ws": files})
    assert len(files["big.json"]) > 620_000
    bundle = ask(world, "where is the discount", mentions=(Mention("big.json"),), budget_tokens=4_000)
    row = next(row for row in bundle.manifest.items if row.id == "mention:ws/big.json")
    assert row.outcome is Outcome.SHORTENED
    assert "lines" in row.note
    assert bundle.manifest.tokens.context <= 4_000
    assert "def discount(price)" in prompt_of(bundle)
    bundle = ask(world, "where is the discount", mentions=(Mention("big.json"),), budget_tokens=1_000_000)
    row = next(row for row in bundle.manifest.items if row.id == "mention:ws/big.json")
    assert row.outcome is Outcome.INCLUDED
    assert '"key_12499"' in prompt_of(bundle)


def test_b47_nothing_is_cut_inside_a_character(tmp_path: Path) -> None:
    """A digest of long messages full of wide characters is whole characters; half of one from a client does no harm."""
    world = World(tmp_path, {"ws": {"a.py": CALC}})
    wide = "x" * 79 + "\N{GAME DIE}" * 2_000
    history = tuple(Message(Role.USER, f"{number} {wide}") for number in range(20))
    bundle = ask(world, "explain scale \ud83c", history=history, model="ollama/qwen2.5-coder:7b")
    assert bundle.history.tokens_after < bundle.history.tokens_before
    for message in bundle.prompt.messages[:-1]:
        assert "\ufffd" not in message.content
        message.content.encode("utf-8")


def test_b59_the_same_text_is_served_once(tmp_path: Path) -> None:
    """A mention, a selection in it, a hit and a symbol share lines; a copy elsewhere is named, not repeated."""
    world = World(tmp_path, {"ws": {"calc.py": CALC, "copy/calc.py": CALC}})
    selection = Range(Position(2, 0), Position(6, 0))
    active = ActiveDocument(world.uri("ws", "calc.py"), selection=selection)
    mentions = (Mention("calc.py"), Mention("copy/calc.py"))
    bundle = ask(world, "how does add() scale with scale()?", active=active, mentions=mentions)
    assert prompt_of(bundle).count("return a + b") == 1
    assert prompt_of(bundle).count("return [k * x for x in v]") == 1
    lines = [line for block in bundle.blocks for start, end in block.spans for line in range(start, end)]
    assert len(lines) == len(set(lines))
    copies = [row for row in bundle.manifest.items if row.path == "copy/calc.py" and row.outcome is Outcome.EXCLUDED]
    assert all("same text" in reason for row in copies for reason in row.reasons)
    assert "copy/calc.py" in prompt_of(bundle)
    selected = next(row for row in bundle.manifest.items if row.id.startswith("selection:"))
    assert selected.outcome is Outcome.INCLUDED


def test_b52_equal_scores_keep_one_order(tmp_path: Path) -> None:
    """Five files that match alike come in the same order, whatever order they were found in."""
    files = {f"note{number}.md": f"# Note {number}\n\nThe zebra rests.\n" for number in range(5)}
    world = World(tmp_path, {"ws": files})
    first = ask(world, "where does the zebra rest")
    again = World(tmp_path, {"ws": dict(reversed(files.items()))})
    assert prompt_of(ask(again, "where does the zebra rest")) == prompt_of(first)


def test_b53_no_clock_in_the_prompt(tmp_path: Path) -> None:
    """A minute later the prompt is the same, byte by byte."""
    world = World(tmp_path, {"ws": {"a.py": CALC}})
    first = ask(world, "explain scale()")
    later = ask(replace(world, now=world.now + 61), "explain scale()")
    assert (prompt_of(later), later.version_hash) == (prompt_of(first), first.version_hash)
