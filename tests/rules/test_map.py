"""The map of the project, and the links on its pages, lead to what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "server/haversack", ROOT / "indexers/haversack_index")
PAGES = (
    "README.md",
    "docs/architecture.md",
    "docs/protocol.md",
    "docs/policy.md",
    "docs/conversations.md",
    "docs/memory.md",
    "docs/dependencies.md",
    "editor-client/README.md",
)
# Promises in each table of the policy page, numbered from 1.
PROMISES = {
    "Choosing what a question gets": 22,
    "Routing and the choice of a model": 23,
    "Selected documents": 18,
    "Supplied candidates": 20,
    "Sealed history: promises": 20,
}


def test_every_module_is_on_the_map() -> None:
    """A file that `docs/architecture.md` does not name is one that nobody finds."""
    named = set(re.findall(r"\w+", " ".join(_code())))
    modules = {path.stem for package in PACKAGES for path in package.rglob("*.py") if path.stem != "__init__"}
    assert modules - named == set()


def test_every_file_on_the_map_exists() -> None:
    """Files and folders are named with their ending or a slash, within the repository or one of the packages."""
    names = [name for name in _code() if re.fullmatch(r"[\w./-]+(?:\.(?:py|toml|md)|/)", name)]
    folders = (
        ROOT,
        ROOT / "server",
        ROOT / "indexers",
        ROOT / "editor-client/vscode",
        *PACKAGES,
        *(ROOT / "tests").iterdir(),
    )
    assert len(names) > 30
    assert [name for name in names if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """To files beside the page, and to headings on it."""
    text = (ROOT / page).read_text("utf-8")
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.M)
    }
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if link.startswith("#"):
            assert link[1:] in headings
        elif not link.startswith("https://"):
            assert (ROOT / page).parent.joinpath(link).exists()


def test_tests_that_the_policy_page_names_exist() -> None:
    """A promise whose test was renamed away would be one that nobody keeps."""
    files = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py")}
    page = (ROOT / "docs/policy.md").read_text("utf-8")
    defined = set(re.findall(r"def (test_\w+)\(", "".join(files.values())))
    assert set(re.findall(r"`(test_\w+)`", page)) - defined == set()
    named = re.findall(r"`((?:[\w/]+/)?test_\w+\.py)`", page)
    assert named
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in files)] == []


@pytest.mark.parametrize("title", PROMISES)
def test_every_promise_has_its_row_with_a_test(title: str) -> None:
    """A table has all its numbers, once and in order, and each row names a test."""
    promises = (ROOT / "docs/policy.md").read_text("utf-8").split("\n## Promises and their tests\n")[1]
    table = promises.split(f"\n### {title}\n")[1].split("\n### ")[0]
    rows = [(found[1], line) for line in table.splitlines() if (found := re.match(r"\| (\d+(?:, \d+)*) ", line))]
    numbers = [int(number) for given, _ in rows for number in given.split(", ")]
    assert numbers == list(range(1, PROMISES[title] + 1))
    assert [line for _, line in rows if not re.search(r"`(?:[\w/]+/)?test_\w+(?:\.py)?`", line)] == []


def _code() -> list[str]:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
