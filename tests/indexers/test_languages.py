"""Languages by file name and first line."""

from __future__ import annotations

import pytest

from haversack_index.languages import LANGUAGES, canonical_name, language_of, settle

CASES = [
    ("a/b.py", "", "python"),
    ("a/B.PY", "", "python"),
    ("x.d.ts", "", "typescript"),
    ("x.tsx", "", "tsx"),
    ("lib/x.jsx", "", "javascript"),
    ("x.hpp", "", "cpp"),
    ("Dockerfile.dev", "", "dockerfile"),
    ("CMakeLists.txt", "", "cmake"),
    ("sub/Makefile", "", "make"),
    ("README", "", "markdown"),
    ("run", "#!/bin/sh\n", "bash"),
    ("run", "#!/usr/bin/env python3.11\n", "python"),
    ("run", "#!/usr/bin/env -S A=1 node --flag\n", "javascript"),
    ("run", "#!/opt/x/ruby -w\n", "ruby"),
    ("run", "", "text"),
    ("archive.tar.weird", "", "text"),
    (".py", "", "python"),
]


@pytest.mark.parametrize(("path", "first_line", "expected"), CASES)
def test_language_of(path: str, first_line: str, expected: str) -> None:
    """Names come before extensions, extensions before shebangs."""
    assert language_of(path, first_line) == expected


@pytest.mark.parametrize(
    ("editor_id", "expected"),
    [("typescriptreact", "tsx"), ("shellscript", "bash"), ("Python", "python"), ("klingon", "text")],
)
def test_editor_ids(editor_id: str, expected: str) -> None:
    """Ids that editors send become ours."""
    assert canonical_name(editor_id) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("struct a;\nint f(void);\n", "c"),
        ('#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int class_size);\n', "c"),
        ("namespace a {\n", "cpp"),
        ("template <class T>\nvoid f();\n", "cpp"),
        ("class A : public B\n{\n", "cpp"),
    ],
)
def test_headers_tell_their_language(text: str, expected: str) -> None:
    """A `.h` file is C unless its text can only be C++."""
    assert settle("c", "x.h", text) == expected


def test_every_row_has_a_place_to_be_found_by() -> None:
    """No language is dead data."""
    assert all(row.extensions or row.filenames or row.shebangs for row in LANGUAGES.values())
