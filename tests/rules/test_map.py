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
    "docs/dependencies.md",
    "editor-client/README.md",
)


def test_every_module_is_on_the_map() -> None:
    """A file that `docs/architecture.md` does not name is one that nobody finds."""
    named = set(re.findall(r"\w+", " ".join(_code())))
    modules = {path.stem for package in PACKAGES for path in package.rglob("*.py") if path.stem != "__init__"}
    assert modules - named == set()


def test_every_file_on_the_map_exists() -> None:
    """Files and folders are named with their ending or a slash, within the repository or one of the packages."""
    names = [name for name in _code() if re.fullmatch(r"[\w./-]+(?:\.(?:py|toml|md)|/)", name)]
    folders = (ROOT, ROOT / "server", ROOT / "indexers", *PACKAGES, *(ROOT / "tests").iterdir())
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
    text = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/policy.md").read_text("utf-8")))
    assert named - set(re.findall(r"def (test_\w+)\(", text)) == set()


def _code() -> list[str]:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
