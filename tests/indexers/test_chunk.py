"""Files to chunks: what is kept together, what is cut, and that nothing is lost."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haversack_index.chunk import parse_file
from haversack_index.text import decode, split_lines
from haversack_index.types import ChunkKind, ParsedFile


def check_cover(parsed: ParsedFile, text: str) -> None:
    """Chunks are disjoint, sorted, equal to the file's lines, and hold every line that is not blank."""
    lines = split_lines(text)
    at = 0
    for chunk in parsed.chunks:
        assert chunk.span.start >= at
        assert not "".join(lines[at : chunk.span.start]).strip()
        assert chunk.text == "".join(lines[chunk.span.start : chunk.span.end])
        assert chunk.text.strip()
        assert chunk.span.start <= chunk.signature_end <= chunk.span.end
        at = chunk.span.end
    assert not "".join(lines[at:]).strip()
    assert parsed.n_lines == len(lines)
    for symbol in parsed.symbols:
        assert symbol.span.start <= symbol.line < symbol.span.end <= len(lines)
        assert symbol.span.start < symbol.signature_end <= symbol.span.end
        assert len(symbol.signature) <= 200
        assert "\n" not in symbol.signature


def outline(parsed: ParsedFile) -> list[tuple[str, str]]:
    return [(chunk.kind.value, ".".join(chunk.heading)) for chunk in parsed.chunks]


HARD_TEXTS = {
    "empty.py": "",
    "blank.py": "\n\n \t\n",
    "comments.py": "# one\n# two\n",
    "feed.py": "# part one\x0c end\ndef f():\n    pass\n\x0c\ndef g():\n    return 's\u2028t'\n",
    "crlf.py": "def f():\r\n    pass\r\n\r\nclass A:\r\n    x = 1\r\n",
    "cr.py": "def f():\r    pass\r\rclass A:\r    x = 1\r",
    "tabs.c": "int f(void)\n{\n\treturn\t1;\n}\n",
    "deep.js": "(" * 20_000 + "1" + ")" * 20_000,
    "deep.json": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "deep.py": "[" * 2_000 + "]" * 2_000,
    "deep.html": "<div>" * 3_000 + "</div>" * 3_000,
    "open.rs": "(" * 200_000,
    "open.py": "(" * 200_000,
    "try.js": "try { a() } catch { (, b",
    "line.txt": "word " * 60_000,
    "line.md": "# " + "word " * 60_000,
    "line.js": "a" * 300_000,
    "wrong.py": "def f(:\n  class ???\n    return }\n\ndef g():\n    pass\n",
    "surrogate.py": 'x = "\ud800"\n',
    "nested.py": "".join(" " * depth + f"def f{depth}():\n" for depth in range(300)) + " " * 300 + "pass\n",
    "one.js": "function a() {} function b() {}\n" * 200,
    "shared.js": "x = {\n" + "  a: function () {\n    go();\n  }, b: function () {\n    go();\n  },\n" * 80 + "}\n",
    "list.py": "x = [\n" + "    1,\n" * 3_000 + "]\n",
    "string.py": '"""' + "words of a text\n" * 3_000 + '"""\n',
    "suite.js": "describe('a', () => {\n" + "  it('b', () => {\n    expect(1).toBe(1);\n  });\n" * 100 + "});\n",
}


@pytest.mark.parametrize("path", HARD_TEXTS)
def test_hard_texts_are_covered(path: str) -> None:
    """No text fails, and no text loses a line."""
    check_cover(parse_file(path, HARD_TEXTS[path]), HARD_TEXTS[path])


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ("deep.js", "too deep"),
        ("deep.py", "too deep"),
        ("open.rs", "too broken"),
        ("open.py", "too broken"),
        ("feed.py", ""),
        ("wrong.py", ""),
    ],
)
def test_a_given_up_parse_says_why(path: str, note: str) -> None:
    """Line blocks with a note stand in for what could not be parsed."""
    parsed = parse_file(path, HARD_TEXTS[path])
    assert parsed.note == note
    if note:
        assert {chunk.kind for chunk in parsed.chunks} == {ChunkKind.LINES}


@pytest.mark.parametrize("path", ["crlf.py", "cr.py"])
def test_lines_do_not_depend_on_line_ends(path: str) -> None:
    """Carriage returns alone end lines for the parser as for the editor."""
    symbols = parse_file(path, HARD_TEXTS[path]).symbols
    assert [(symbol.name, symbol.line, symbol.span.end) for symbol in symbols] == [
        ("f", 0, 2),
        ("A", 3, 5),
        ("x", 4, 5),
    ]


@pytest.mark.parametrize(
    ("path", "data", "names"),
    [("a.md", b"# Title\n\n## Part\n", ["Title", "Part"]), ("a.py", b"def f():\n    pass\n", ["f"])],
)
def test_byte_order_mark_does_not_hide_the_first_symbol(path: str, data: bytes, names: list[str]) -> None:
    """The mark is gone before the parse and in no chunk."""
    decoded = decode(codecs.BOM_UTF8 + data)
    assert decoded is not None
    parsed = parse_file(path, decoded[0])
    assert [symbol.name for symbol in parsed.symbols] == names
    assert parsed.symbols[0].line == 0
    assert "\ufeff" not in parsed.chunks[0].text


def test_truncated_source_keeps_its_symbols() -> None:
    """The first part of a file cut off in a function still has the functions before."""
    text = "".join(f"def f{number}(a, b):\n    return g(a, b, {number})\n\n\n" for number in range(50))[:1_500]
    parsed = parse_file("a.py", text)
    assert {"f0", "f20"} <= {symbol.name for symbol in parsed.symbols}
    check_cover(parsed, text)


BODY = "".join(f"        value_{number} = self.call({number})\n" for number in range(44))
CLASS = (
    "import os\n\n\n# What a box is.\nclass Box(Base):\n    '''A box.'''\n\n    size = 1\n\n"
    + "".join(f"    # Does {name}.\n    @wrap\n    def {name}(self):\n{BODY}\n" for name in ("alpha", "beta", "gamma"))
    + "".join(f"    def get_{name}(self):\n        return self.{name}\n\n" for name in "abc")
    + "    def __init__(self):\n"
    + BODY * 5
)


def test_a_large_class_is_cut_into_methods() -> None:
    """A head, one chunk a method with its comment and decorator, small ones together, a huge one by statements."""
    parsed = parse_file("box.py", CLASS)
    check_cover(parsed, CLASS)
    assert outline(parsed)[:6] == [
        ("group", ""),
        ("definition", "Box"),
        ("definition", "Box.alpha"),
        ("definition", "Box.beta"),
        ("definition", "Box.gamma"),
        ("group", "Box"),
    ]
    head, alpha, small = parsed.chunks[1], parsed.chunks[2], parsed.chunks[5]
    assert head.text.startswith("# What a box is.\nclass Box(Base):")
    assert head.names == ("Box", "size")
    assert alpha.text.startswith("    # Does alpha.\n    @wrap\n    def alpha(self):\n")
    assert alpha.signature_end == alpha.span.start + 3
    assert small.names == ("get_a", "get_b", "get_c")
    parts = parsed.chunks[6:]
    assert len(parts) > 1
    assert {chunk.heading for chunk in parts} == {("Box", "__init__")}
    assert all(len(chunk.text) <= 3_000 for chunk in parts)
    assert [chunk.names for chunk in parts] == [("__init__",), *[()] * (len(parts) - 1)]


def test_a_function_up_to_the_cap_stays_whole() -> None:
    """A hundred lines of one function are one chunk."""
    text = "def f():\n" + "    call(1, 2, 3)\n" * 110
    assert len(parse_file("a.py", text).chunks) == 1
    assert len(parse_file("a.py", text * 2).chunks) == 2
    assert len(parse_file("a.py", "def f():\n" + "    call(1, 2, 3)\n" * 600).chunks) > 2


def test_small_definitions_share_a_chunk() -> None:
    """One-line functions and constants stand together with all their names."""
    text = "A = 1\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
    (chunk,) = parse_file("a.py", text).chunks
    assert (chunk.kind, chunk.heading, chunk.names) == (ChunkKind.GROUP, (), ("A", "f", "g"))


def test_long_data_is_cut_between_its_items() -> None:
    """A table too large for one chunk is cut at entries, never inside one."""
    entry = '    {\n        "name": "value",\n        "other": [1, 2, 3],\n    },\n'
    parsed = parse_file("a.py", "TABLE = [\n" + entry * 200 + "]\n")
    assert len(parsed.chunks) > 3
    assert all(chunk.text.startswith("    {\n") for chunk in parsed.chunks[1:])


CLOSING_TEXTS = {
    "a.js": "(function () {\n" + f"function run() {{\n{'  go(1, 2, 3);' * 100}\n}}\n" * 2 + "}());\n",
    "a.c": "#ifdef A\n" + f"int run(void)\n{{\n{'  go(1, 2, 3);' * 100}\n}}\n" * 2 + "#endif /* A */\n",
    "a.rb": "module A\n  class B\n" + f"  def run\n{'    go(1, 2, 3);' * 100}\n  end\n" * 2 + "  end\nend\n",
}


@pytest.mark.parametrize("path", CLOSING_TEXTS)
def test_closing_lines_stay_with_what_they_close(path: str) -> None:
    """No chunk is only brackets, `end` or `#endif`, and the last definition keeps its own heading."""
    parsed = parse_file(path, CLOSING_TEXTS[path])
    check_cover(parsed, CLOSING_TEXTS[path])
    assert all("go(" in chunk.text for chunk in parsed.chunks[-2:])
    assert parsed.chunks[-1].heading[-1:] == ("run",)
    assert parsed.chunks[-1].signature_end < parsed.chunks[-1].span.end


def test_definitions_that_share_a_line_share_a_chunk() -> None:
    """A line is never in two chunks: two functions on one line are cut together."""
    text = f"function one() {{\n{'  go();' * 300}\n}} function two() {{\n{'  go();' * 300}\n}}\n"
    parsed = parse_file("a.js", text)
    check_cover(parsed, text)
    assert [chunk.names for chunk in parsed.chunks] == [("one", "two")]


def test_a_failing_query_costs_only_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks come from the tree even when its query cannot run."""

    def fail(*_arguments: object) -> None:
        raise ValueError("no such node")

    monkeypatch.setattr("haversack_index.chunk.extract", fail)
    text = "def f():\n    pass\n"
    parsed = parse_file("a.py", text)
    assert (parsed.symbols, parsed.note) == ((), "no symbols: no such node")
    check_cover(parsed, text)


SECTION_CASES = {
    "a.md": (
        "---\ntitle: x\n---\n# One\ntext\n```sh\n# not a title\n```\n## Two\n\nThree\n-----\n",
        ["One", "Two", "Three"],
    ),
    "a.rst": ("=====\nTitle\n=====\n\nPart\n----\ntext\n\nOther\n-----\n", ["Title", "Part", "Other"]),
    "a.toml": ("top = 1\n[tool.x]\na = '''\n[no]\n'''\n[[list]]\nb = 1\n", ["tool.x", "list"]),
    "a.ini": ('[core]\na = [1]\n[remote "origin"]\nb = 1\n', ["core", 'remote "origin"']),
    "a.yaml": (
        "# c\nname: x\njobs:\n  build:\n    steps: [1]\n  test:\n    run: |\n      a\n",
        ["name", "jobs", "build", "test"],
    ),
    "a.json": ('{\n  "name": "x",\n  "scripts": {\n    "build": "y"\n  }\n}\n', ["name", "scripts", "build"]),
    "a.html": (
        "<body>\n<h1>Top</h1>\n<section id='s'>\n<h2 class=a>In <b>it</b></h2>\n</section>\n",
        ["Top", "section#s", "In it"],
    ),
    "a.css": (
        "/* a { */\n.a,\n.b { color: red }\n@media print {\n  .c { x: y }\n}\n",
        [".a, .b", "@media print", ".c"],
    ),
    "a.vue": ("<template>\n<a/>\n</template>\n<script>\nx\n</script>\n", ["template", "script"]),
}


@pytest.mark.parametrize("path", SECTION_CASES)
def test_headings(path: str) -> None:
    """Prose and config files have their headings as symbols and lose no line."""
    text, titles = SECTION_CASES[path]
    parsed = parse_file(path, text)
    assert [symbol.name for symbol in parsed.symbols] == titles
    check_cover(parsed, text)


def test_sections_have_heading_paths() -> None:
    """A long document is cut at headings, and a section knows what it stands under."""
    prose = "Some words of a sentence that goes on.\n" * 25
    text = f"# Guide\n{prose}## Install\n{prose}### From source\n{prose}## Use\n{prose * 4}"
    parsed = parse_file("a.md", text)
    check_cover(parsed, text)
    headings = [chunk.heading for chunk in parsed.chunks]
    assert headings[:3] == [("Guide",), ("Guide", "Install"), ("Guide", "Install", "From source")]
    assert set(headings[3:]) == {("Guide", "Use")}
    assert len(headings) > 4


PIECES = st.sampled_from(
    [
        "def f():",
        "class A:",
        "    x = 1",
        "}",
        "{",
        "function f(a) {",
        "# c",
        "/* ",
        "*/",
        "'''",
        "(",
        ")",
        ";",
        "x",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\x0c",
        "\u2028",
        "\t",
        " ",
        "`",
        "${",
        "é",
        "🦊",
        "if",
        "=>",
        "[a]",
        "- b",
        "a: 1",
        "<h1>t</h1>",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PIECES, max_size=60).map("".join),
    st.sampled_from(
        ["a.py", "a.js", "a.tsx", "a.c", "a.cpp", "a.go", "a.rb", "a.sh", "a.md", "a.yaml", "a.css", "a.txt"]
    ),
)
def test_any_text_is_covered(text: str, path: str) -> None:
    """Whatever the text, chunks are disjoint, sorted, complete and equal to the lines."""
    check_cover(parse_file(path, text), text)
