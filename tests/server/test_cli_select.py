"""`haversack select` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haversack.__main__ import main
from haversack.cli import arguments

Run = tuple[Path, Path]

GUIDE = (
    "# Guide\n\nHow to use it.\n\n## Install\n\nRun the installer twice.\n\n## Retry\n\n"
    + "It tries again. " * 60
    + "\n"
)
POLICY = {
    "version": 1,
    "documents": {"privilegedPaths": ["legal/"], "strategyPaths": ["plans/"], "tenants": {"acme": ["acme/"]}},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("docs")
    files = {
        "guide.md": GUIDE,
        "legal/opinion.md": "# Opinion\n\ncanary words\n",
        "plans/offer.md": "# Offer\n\ncanary words\n",
        "acme/deal.md": "# Deal\n\ncanary words\n",
        ".haversack/policy.json": json.dumps(POLICY),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root, tmp_path_factory.mktemp("cache")


def typed(capsys: pytest.CaptureFixture[str], place: Run, *words: str) -> tuple[int, str, str]:
    code = main(["select", *words, "--workspace", str(place[0]), "--cache-dir", str(place[1])])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows(out: str) -> dict[str, str]:
    """The rows of the table of sections, by the last of their headings."""
    lines = out.split("Sections, in the order of the document\n")[1].split("\n\n", maxsplit=1)[0].split("\n")[1:]
    return {name: line for line in lines for name in ("Guide/Install", "Guide/Retry", "Guide ") if name in line}


def test_card_sections_and_manifest_are_shown(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """One row a section, in a pipe one line each; a long summary says that it is cut."""
    code, out, err = typed(capsys, place, "guide.md")
    assert (code, err) == (arguments.OK, "")
    card = out.split("\n\n")[0]
    assert all(part in card for part in ("guide.md", "Guide", "markdown", "saved", "How to use it."))
    found = rows(out)
    assert "Run the installer twice." in found["Guide/Install"]
    assert "(cut)" in found["Guide/Retry"]
    assert not any("> " in line for line in found.values())
    assert "(cut)" not in found["Guide/Install"]
    (line,) = [line for line in out.split("\n") if line.startswith("Manifest: ")]
    assert "3 of 3 sections" in line
    assert "truncated" not in line
    assert " · record " in line


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("guide.md:7",), "Guide/Install"),
        (("guide.md:9-11",), "Guide/Retry"),
        (("guide.md", "--quote", "installer twice"), "Guide/Install"),
        (("guide.md", "--section", "Guide/Retry"), "Guide/Retry"),
    ],
)
def test_the_focus_is_marked_and_stays(
    capsys: pytest.CaptureFixture[str], place: Run, words: tuple[str, ...], name: str
) -> None:
    """By lines from 1, by words or by id; a budget for nothing leaves it, and both is said."""
    code, out, _ = typed(capsys, place, *words)
    assert [each for each, line in rows(out).items() if line.startswith(">")] == [name]
    code, out, _ = typed(capsys, place, *words, "--budget", "1")
    assert (code, [*rows(out)]) == (arguments.OK, [name])
    assert "Manifest: 1 of 3 sections (over budget) · truncated · " in out
    assert "! document: The card and the sections in focus take " in out


def test_a_question_chooses_without_a_focus(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """What speaks of it is served before what comes first in the text."""
    _, out, _ = typed(capsys, place, "guide.md", "--question", "which installer?", "--budget", "85")
    assert [*rows(out)] == ["Guide/Install"]


def test_select_as_json_is_the_reply_of_the_server(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """A script reads what an editor reads; a refusal is in `error`."""
    _, out, _ = typed(capsys, place, "guide.md:7", "--quote", "installer", "--json")
    found = json.loads(out)
    assert found["identity"]["title"] == "Guide"
    assert [section["id"] for section in found["sections"] if section["focus"]] == ["Guide/Install"]
    assert (found["focusAxis"]["range"]["start"]["line"], found["focusAxis"]["quote"]) == (6, "installer")
    code, out, _ = typed(capsys, place, "legal/opinion.md", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (arguments.FAILED, "document_privileged")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("legal/opinion.md",), "(document_privileged)"),
        (("legal/opinion.md", "--view"), "(document_privileged)"),
        (("plans/offer.md",), "(document_strategy)"),
        (("acme/deal.md",), "(document_not_found)"),
        (("acme/deal.md", "--tenant", "globex"), "(document_not_found)"),
        (("nosuch.md",), "(document_not_found)"),
        (("../other.md",), "(path_outside_workspace)"),
    ],
)
def test_what_may_not_be_had_ends_with_one(
    capsys: pytest.CaptureFixture[str], place: Run, words: tuple[str, ...], said: str
) -> None:
    """With the stable code on stderr and nothing of the document anywhere."""
    code, out, err = typed(capsys, place, *words)
    assert (code, out) == (arguments.FAILED, "")
    assert said in err
    assert "canary" not in err


def test_a_person_may_view_and_a_tenant_has_its_own(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """A view is made for no model."""
    code, out, _ = typed(capsys, place, "plans/offer.md", "--view")
    assert (code, "canary words" in out, " · for a person · " in out) == (arguments.OK, True, True)
    code, out, _ = typed(capsys, place, "acme/deal.md", "--tenant", "acme")
    assert (code, "canary words" in out) == (arguments.OK, True)


def test_a_wrong_command_line_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """No document, a line 0, no number; help has examples and the codes."""
    for words in ([], ["a.md:0"], ["a.md", "--budget", "some"]):
        with pytest.raises(SystemExit) as end:
            main(["select", *words])
        assert end.value.code == arguments.USAGE
    with pytest.raises(SystemExit):
        main(["select", "--help"])
    out = capsys.readouterr().out
    assert "haversack select docs/guide.md:40-60" in out
    assert f"\n  {arguments.BROKEN_PIPE}" in out
