"""Cuts source trees into (first sentence of a doc comment, code without that comment) pairs, as JSON lines.

    python pairs.py OUT.jsonl NAME=FOLDER [NAME=FOLDER ...]

Each line: {"package", "language", "path", "heading", "query", "code"}.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

# Copies of other projects inside a package, tests, and what is made by a program.
SKIPPED_FOLDERS = frozenset(
    [
        "test", "tests", "testing", "testdata", "__tests__", "spec", "_vendor", "vendor", "vendored", "third_party",
        "thirdparty", "node_modules", "_distutils", "blib2to3", "lib2to3", "idlelib", "__pycache__", "generated", "gen",
        "typeshed", "esm2015", "cjs", "umd", "fixtures", "site-packages", "bundled", "spf13",
    ]
)  # fmt: skip
LANGUAGES = {
    ".py": "python", ".go": "go", ".rs": "rust", ".java": "java", ".js": "javascript", ".mjs": "javascript",
    ".ts": "typescript", ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".php": "php",
}  # fmt: skip

# Characters of a larger file, lines and characters of a piece of code, words of a query: what lies outside is data,
# generated, or says too little to be found by.
MAX_FILE = 1_000_000
MIN_LINES, MAX_LINES = 3, 90
MIN_CODE, MAX_CODE = 100, 1600
MIN_WORDS, MAX_WORDS = 4, 30


@dataclass(frozen=True, slots=True)
class Pair:
    package: str
    language: str
    path: str
    heading: str
    query: str
    code: str


def pairs_of(package: str, folder: Path) -> Iterator[Pair]:
    """All pairs below one folder, without repeated queries or code."""
    seen: set[str] = set()
    for file in sorted(folder.rglob("*")):
        language = LANGUAGES.get(file.suffix)
        inner = file.relative_to(folder)
        if language is None or SKIPPED_FOLDERS & {part.lower() for part in inner.parts} or not file.is_file():
            continue
        if file.name.endswith((".min.js", "_test.go", ".test.js", ".spec.ts", ".pb.go", ".d.ts")):
            continue
        if file.is_symlink() or file.stat().st_size > MAX_FILE:
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        found = _python(text) if language == "python" else _braces(text, language)
        # The last folders and the name say where a chunk stands; longer paths only repeat the package.
        path = "/".join(inner.parts[-3:])
        for heading, doc, code in found:
            query = sentence(doc)
            if query and query not in seen and code not in seen and len(code) >= MIN_CODE:
                seen.update((query, code))
                yield Pair(package, language, path, heading, query, code[:MAX_CODE])


def sentence(doc: str) -> str:
    """The first sentence in plain words; empty when it is unfit for a query."""
    doc = re.sub(r"\{@\w+\s+([^}]*)\}", r"\1", doc.strip())
    doc = re.sub(r"<[^<>]{1,40}>", " ", doc)
    first = re.split(r"(?<=[.!?])\s|\n\s*\n|\n\s*[@:#*\-]", doc)[0]
    first = re.sub(r"\s+", " ", re.sub(r":\w+:`|[`*]{1,2}|\[|\]\([^)]*\)|\]", " ", first)).strip()
    words = first.split()
    fit = MIN_WORDS <= len(words) <= MAX_WORDS and first.isascii() and not first.startswith(("@", "TODO", "Copyright"))
    return first if fit and sum(w.isalpha() for w in words) * 2 >= len(words) else ""


def _python(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.split("\n")

    def visit(node: ast.AST, heading: str) -> Iterator[tuple[str, str, str]]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            end = child.end_lineno or child.lineno
            doc = ast.get_docstring(child)
            if doc and len(child.body) > 1 and end - child.lineno >= MIN_LINES:
                first = child.body[0]
                stop = end if not isinstance(child, ast.ClassDef) else min(end, child.lineno + MAX_LINES)
                if stop - child.lineno <= MAX_LINES:
                    kept = lines[child.lineno - 1 : first.lineno - 1] + lines[first.end_lineno or 0 : stop]
                    yield heading, doc, textwrap.dedent("\n".join(kept))
            yield from visit(child, f"{heading} {child.name}" if isinstance(child, ast.ClassDef) else heading)

    yield from visit(tree, "")


# A doc comment (block, or a run of line comments) and what follows it.
_COMMENT = re.compile(r"^[ \t]*(/\*.*?\*/[ \t]*\n|(?:[ \t]*//[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_JAVASCRIPT = (
    r"export|async|function|class|const|let|var|static|get |set "
    r"|[\w$.]+\s*[:=]\s*(async )?(function|\()|[\w$]+\([^;]*\)\s*\{"
)
_C = r"static|inline|extern|struct|enum|typedef|union|const|unsigned|[A-Za-z_]\w*[ *]+\w|[A-Za-z_]\w*\s*$|#define"
_DECLARES = {
    "go": re.compile(r"(func|type|var|const)\b"),
    "rust": re.compile(
        r"(pub(\([^)]*\))? )?(default |const |async |unsafe |extern \"C\" )*"
        r"(fn|struct|enum|trait|impl|type|static|mod|macro_rules!)\b"
    ),
    "java": re.compile(
        r"@\w|public|private|protected|static|final|abstract|class|interface|enum|default|<"
        r"|[A-Z]\w*(<[^;={]*>)? \w+\("
    ),
    "javascript": re.compile(_JAVASCRIPT),
    "typescript": re.compile(_JAVASCRIPT + r"|public|private|protected|readonly|interface|type |abstract|declare"),
    "c": re.compile(_C),
    "cpp": re.compile(_C + r"|template|class|virtual|explicit|namespace|~"),
    "php": re.compile(r"abstract |final |public|private|protected|static|function|class|interface|trait"),
}
_CONTAINER = re.compile(
    r"^[ \t]{0,4}(?:\w+ )*(?:class|interface|trait|impl(?:<[^>]*>)?|struct|enum)\s+([A-Za-z_][\w:<>, ]*)", re.MULTILINE
)


def _braces(text: str, language: str) -> Iterator[tuple[str, str, str]]:
    containers = [(m.start(), m.group(1).split("<")[0].strip()) for m in _CONTAINER.finditer(text)]
    for match in _COMMENT.finditer(text):
        after = text[match.end() : match.end() + 8000]
        # Attributes and annotations stay with the code.
        body = re.sub(r"^(\s*#!?\[[^\n]*\n)+", "", after)
        # Some code bases leave one blank line between a block comment and what it describes.
        if match.group(1).lstrip().startswith("/**"):
            body = body.removeprefix("\n")
        if not _DECLARES[language].match(body.lstrip(" \t")):
            continue
        code = _block(body)
        if code is None:
            continue
        raw = match.group(1)
        doc = "\n".join(re.sub(r"^\s*(/\*+|\*+/|///?|//!|\*(?!/))\s?", "", line) for line in raw.split("\n"))
        doc = re.sub(r"\*/\s*$", "", doc).strip()
        # PostgreSQL and older C repeat the name with a dash before the sentence.
        doc = re.sub(r"^\w+(\(\))?\s*(--?|:)\s*", "", doc)
        outer = [name for start, name in containers if start < match.start()]
        heading = outer[-1] if outer and language != "c" and raw[:1] in " \t" else ""
        yield heading, doc, textwrap.dedent(code)


def _block(text: str) -> str | None:
    """The declaration at the start of text, to its closing brace or semicolon; None when it has a bad length."""
    lines = text.split("\n")
    depth, opened = 0, False
    for number, line in enumerate(lines[: MAX_LINES + 1]):
        bare = re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])'|//.*", "", line)
        depth += bare.count("{") - bare.count("}") + bare.count("(") - bare.count(")")
        opened = opened or "{" in bare
        if depth <= 0 and (opened or bare.rstrip().endswith((";", ","))):
            return "\n".join(lines[: number + 1]) if number + 1 >= MIN_LINES else None
        if depth <= 0 and number > 12 and not opened:
            return None
    # A long type or function: its head is enough.
    return "\n".join(lines[:MAX_LINES]) if opened and len(lines) > MAX_LINES else None


def main(out: str, *sources: str) -> None:
    with Path(out).open("w", encoding="utf-8") as file:
        for source in sources:
            package, _, folder = source.partition("=")
            count = 0
            for pair in pairs_of(package, Path(folder)):
                file.write(json.dumps(asdict(pair)) + "\n")
                count += 1
            print(package, count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
