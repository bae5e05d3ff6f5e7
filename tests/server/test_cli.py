"""Commands as a person types them, each in the process of the test."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID

import apsw
import psutil
import pytest

from haversack.__main__ import main
from haversack.cli import arguments

Run = tuple[Path, Path]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small workspace and a cache folder of its own, indexed by the first command that asks."""
    root = tmp_path_factory.mktemp("shop")
    (root / "cart.py").write_text(
        "def add_item(cart, item):\n    cart.append(item)\n\n\ndef total(cart):\n    return 7\n"
    )
    (root / ".env").write_text("KEY=hunter2\n")
    return root, tmp_path_factory.mktemp("cache")


def typed(capsys: pytest.CaptureFixture[str], place: Run, command: str, *words: str) -> tuple[int, str, str]:
    where = ["--workspace", str(place[0]), "--cache-dir", str(place[1])]
    code = main([command, *words, *where])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_context_in_three_shapes(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """A readable table, the prompt alone, or the whole bundle as JSON."""
    code, out, _ = typed(capsys, place, "context", "How does add_item work?", "--budget", "2k")
    assert code == arguments.OK
    assert "cart.append(item)" in out
    assert "included" in out
    _, out, _ = typed(capsys, place, "context", "How does add_item work?", "--prompt")
    assert "cart.append(item)" in out
    assert "included" not in out
    _, out, _ = typed(capsys, place, "context", "How does add_item work?", "--json")
    bundle = json.loads(out)
    assert bundle["blocks"][0]["path"] == "cart.py"
    assert bundle["manifest"]["tokens"]["context"] == sum(block["tokens"] for block in bundle["blocks"])


def test_a_guessed_window_is_called_one(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """Of a model that the catalogue lacks, and of one that somebody may run with any window."""
    _, out, _ = typed(capsys, place, "context", "How does add_item work?", "--model", "acme/seer")
    assert "Tokens for acme/seer, which is not in the catalogue: " in out
    assert " of an assumed 16,000 (estimated" in out
    _, out, _ = typed(capsys, place, "context", "How does add_item work?", "--model", "openai/gpt-4o")
    assert " of 128,000 (exact" in out


def test_nothing_gathered_is_said(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """Small talk needs no files, and the reader sees that this was a decision."""
    _, out, _ = typed(capsys, place, "context", "hi")
    assert "Nothing was gathered (small talk)." in out


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("cart.py", "is in the context"),
        ("cart.py:2", "is in the context"),
        (".env", "not in the index: secret-name"),
        ("nosuch.py", "There is no file nosuch.py."),
        ("cart.py:1-2", "cart.py:1-2 is in the context."),
        ("cart.py:900", "cart.py has 6 lines."),
        (".", "is a folder"),
    ],
)
def test_explain_says_why(capsys: pytest.CaptureFixture[str], place: Run, what: str, said: str) -> None:
    """A file that is in, a line of it, one that rules leave out, and one that is not there."""
    code, out, _ = typed(capsys, place, "explain", what, "How does add_item work?")
    assert code == arguments.OK
    assert said in out
    assert "hunter2" not in out


def test_explain_counts_a_line_in_only_when_it_is_read(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """An outline stands for a whole file, and still shows few of its lines."""
    long = place[0] / "long.py"
    body = "".join(f"    step_{n} = walrus(step_{n})  # and so on, to have a line that costs\n" for n in range(300))
    long.write_text(f"def walrus_parade(cart):\n{body}    return cart\n")
    words = ("Where is walrus_parade?", "--budget", "60")
    _, out, _ = typed(capsys, place, "explain", "long.py", *words)
    assert "long.py is in the context, with lines 1" in out
    _, out, _ = typed(capsys, place, "explain", "long.py:1", *words)
    assert "long.py:1 is in the context." in out
    _, out, _ = typed(capsys, place, "explain", "long.py:200", *words)
    assert "long.py:200 is not in the context, but other lines of its file are." in out
    _, out, _ = typed(capsys, place, "explain", "long.py:1-200", *words)
    assert "long.py:1-200 is in the context in part, with " in out
    long.unlink()


def test_explain_as_json_gives_the_manifest_rows(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """Scripts read the rows of one place."""
    _, out, _ = typed(capsys, place, "explain", "cart.py:6", "How does total work?", "--json")
    rows = json.loads(out)
    assert rows
    assert {row["path"] for row in rows} == {"cart.py"}
    _, out, err = typed(capsys, place, "explain", ".env", "How does total work?", "--json")
    assert json.loads(out) == []
    assert "secret-name" in err


def test_an_answer_is_logged_and_verified(capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path) -> None:
    """A table, one record as rows, its check, and the same for scripts; other commands leave no record."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def add_item(cart, item):\n    cart.append(item)\n")
    here = (folder, place[1])
    _, out, _ = typed(capsys, here, "log")
    assert "There are no records of this folder." in out
    typed(capsys, here, "explain", "cart.py", "How does add_item work?")
    _, out, _ = typed(capsys, here, "context", "How does add_item work?", "--json")
    id = json.loads(out)["recordId"]
    code, out, _ = typed(capsys, here, "log", "--limit", "1")
    assert (code, out.count("\n")) == (arguments.OK, 2)
    assert id[:12] in out
    _, out, _ = typed(capsys, here, "log", "--json")
    assert [each["id"] for each in json.loads(out)["records"]] == [id]
    code, out, _ = typed(capsys, here, "log", id[:5])
    assert code == arguments.OK
    assert f"Record {id}" in out
    assert "cart.py:1-2" in out
    assert "add_item" not in out
    code, out, _ = typed(capsys, here, "verify", id[:5])
    assert code == arguments.OK
    assert "is as it was written" in out
    assert "unchanged  cart.py:1-2" in out
    (folder / "cart.py").unlink()
    code, out, _ = typed(capsys, here, "verify", id, "--json")
    assert code == arguments.OK
    assert {entry["state"] for entry in json.loads(out)["entries"]} == {"gone"}


def test_a_changed_record_ends_verify_with_1(
    capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown and an ambiguous id as well, each with its own words."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    ids = ["0123456789abcdef", "0123fedcba987654"]
    monkeypatch.setattr("haversack.recorder.uuid4", lambda: UUID(hex=ids[0].ljust(32, "0")))
    typed(capsys, place, "context", "How does add_item work?")
    monkeypatch.setattr("haversack.recorder.uuid4", lambda: UUID(hex=ids[1].ljust(32, "0")))
    typed(capsys, place, "context", "How does add_item work?")
    code, _, err = typed(capsys, place, "verify", "0123")
    assert (code, "record_ambiguous" in err) == (arguments.FAILED, True)
    code, _, err = typed(capsys, place, "log", "fff")
    assert (code, "There is no record 'fff'" in err) == (arguments.FAILED, True)
    connection = apsw.Connection(str(next(tmp_path.glob("haversack/records/*.db"))))
    connection.execute("UPDATE records SET time = 1e300")
    connection.close()
    for command in ("verify", "log"):
        code, out, _ = typed(capsys, place, command, ids[0])
        assert code == arguments.FAILED
        assert "is not as it was written: its id, time or hash" in out
    code, out, _ = typed(capsys, place, "verify", ids[0], "--json")
    assert (code, json.loads(out)["verified"]) == (arguments.FAILED, False)
    code, out, _ = typed(capsys, place, "log")
    assert (code, out.count("changed since it was written")) == (arguments.OK, 2)


def test_what_a_prompt_had_to_do_without_is_said_beside_it(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """Whoever pipes a prompt on must hear that a file they named is not in it."""
    _, out, err = typed(capsys, place, "context", "Review @nosuch.py", "--mention", "other.py", "--prompt")
    assert "'other.py' names no file" in err
    assert "@nosuch.py names no file" in err
    assert "names no file" not in out


def test_a_cache_that_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path) -> None:
    """The answer comes all the same, from counted words."""
    (tmp_path / "cache").write_text("a file in the place of the folder")
    code, out, err = typed(capsys, (place[0], tmp_path / "cache"), "context", "How does add_item work?")
    assert code == arguments.OK
    assert "cart.append(item)" in out
    assert "cannot be written" in err


def test_an_empty_folder_has_nothing_to_answer_with(
    capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path
) -> None:
    """That is said once, and vectors that will never come are not waited for."""
    code, out, err = typed(capsys, (tmp_path, place[1]), "context", "How does add_item work?")
    assert code == arguments.OK
    assert "Nothing was found" in out
    assert "No vectors" not in out
    assert "No file of this folder is indexed" in err


def test_rows_in_a_pipe_are_one_line_each(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """However long the path: other programs read lines."""
    folder = place[0] / ("deep" * 20) / ("deeper" * 20)
    folder.mkdir(parents=True)
    (folder / "walrus.py").write_text("def walrus():\n    return 1\n")
    _, out, _ = typed(capsys, place, "context", "Where is walrus?")
    rows = [line for line in out.splitlines() if line.startswith("included") and "walrus.py:1-2" in line]
    assert rows
    assert str(folder.relative_to(place[0])) in rows[0]
    (folder / "walrus.py").rename(folder / "new\nline.py")
    _, out, _ = typed(capsys, place, "context", "Where is walrus?")
    assert [line for line in out.splitlines() if line.startswith("included") and "new\ufffdline.py:1-2" in line]
    (folder / "new\nline.py").unlink()


def test_explain_tells_of_a_file_that_could_not_be_parsed(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """Its parts are worse than they could be, and the reader should know why; so with one that is no source."""
    deep, bundle = place[0] / "deep.js", place[0] / "bundle.js"
    deep.write_text("const zebra = " + "(\n" * 3_000 + "1" + ")\n" * 3_000 + ";\n")
    bundle.write_text("const zebra=" + "f(1)+" * 3_000 + "1;")
    _, out, _ = typed(capsys, place, "explain", "deep.js", "Where is zebra?")
    assert "It is cut in line blocks: too deep" in out
    _, out, _ = typed(capsys, place, "explain", "bundle.js", "Where is zebra?")
    assert "bundle.js is not in the index: minified." in out
    deep.unlink()
    bundle.unlink()


def test_a_place_outside_is_refused(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """With exit code 1 and the stable code on stderr."""
    code, out, err = typed(capsys, place, "explain", "../other.py", "add_item")
    assert (code, out) == (arguments.FAILED, "")
    assert "path_outside_workspace" in err


def test_index_tells_its_state(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """The same counts before and after, and files left out by reason."""
    code, _, _ = typed(capsys, place, "index")
    assert code == arguments.OK
    code, out, _ = typed(capsys, place, "index", "--status", "--json")
    status = json.loads(out)
    assert code == arguments.OK
    assert (status["state"], status["files"], status["skipped"]) == ("ready", 1, {"secret-name": 1})


def test_an_index_that_was_never_made_is_not_called_under_way(
    capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path
) -> None:
    """`--status` starts nothing, so nothing is scanning."""
    _, out, _ = typed(capsys, (place[0], tmp_path), "index", "--status")
    assert "not built yet" in out
    assert "scanning" not in out


def test_a_rebuild_makes_the_index_once(capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path) -> None:
    """From nothing, in one pass: its generation is that of a first build."""
    _, out, _ = typed(capsys, (place[0], tmp_path), "index", "--json")
    first = json.loads(out)
    code, out, _ = typed(capsys, (place[0], tmp_path), "index", "--rebuild", "--json")
    rebuilt = json.loads(out)
    assert code == arguments.OK
    assert (rebuilt["state"], rebuilt["files"]) == ("ready", 1)
    assert rebuilt["generation"] == first["generation"]


def test_doctor_checks_every_part(capsys: pytest.CaptureFixture[str], place: Run) -> None:
    """Each with ok or with what to do."""
    code = main(["doctor", "--json", "--cache-dir", str(place[1])])
    found = json.loads(capsys.readouterr().out)
    assert {"sqlite", "vector extension", "embedding model", "grammars", "cache folder"} <= {
        row["name"] for row in found
    }
    assert all(row["ok"] or row["remedy"] for row in found)
    assert code == (arguments.OK if all(row["ok"] for row in found) else arguments.TO_MEND)


def test_a_missing_package_is_a_row_of_the_doctor_and_a_sentence_elsewhere(place: Run) -> None:
    """Never a traceback: that is what the doctor is for."""
    start = "import sys; sys.modules['apsw'] = None; from haversack.__main__ import main; sys.exit(main(sys.argv[1:]))"
    where = ["--cache-dir", str(place[1])]
    doctor = subprocess.run(
        [sys.executable, "-c", start, "doctor", "--json", *where], capture_output=True, check=False, text=True
    )
    assert (doctor.returncode, doctor.stderr) == (arguments.TO_MEND, "")
    rows = {row["name"]: row for row in json.loads(doctor.stdout)}
    assert not rows["sqlite"]["ok"]
    assert rows["grammars"]["ok"]
    index = subprocess.run([sys.executable, "-c", start, "index", *where], capture_output=True, check=False, text=True)
    assert index.returncode == arguments.FAILED
    assert index.stderr.startswith("haversack: the package apsw is missing.")
    assert index.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["context"],
        ["context", "x", "--budget", "many"],
        ["context", "x", "--workspace", "/no/such/folder"],
        ["context", "x", "--json", "--prompt"],
        ["index", "--status", "--rebuild"],
        ["serve", "--tcp", "nowhere"],
        ["explain", "a.py"],
        ["explain", "a.py:0", "x"],
    ],
)
def test_a_wrong_command_line_ends_with_two(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """And a sentence on stderr."""
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == arguments.USAGE
    assert "error:" in capsys.readouterr().err


def test_every_command_has_every_option_it_could_be_asked_for() -> None:
    """Code that serves several commands reads options that only some of them take."""
    fields = set(arguments.Options.__dataclass_fields__)
    for words in (["context", "x"], ["explain", "a.py", "x"], ["select", "a.md"], ["index"], ["doctor"], ["serve"]):
        options = arguments.parse(words)
        assert fields <= {name for name in fields if hasattr(options, name)}


@pytest.mark.parametrize("command", [(), ("context",), ("explain",), ("index",), ("doctor",), ("serve",)])
def test_help_shows_examples_and_exit_codes(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    """Of every command, all codes that the module names."""
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    out = capsys.readouterr().out
    assert "examples:" in out
    for code in (arguments.OK, arguments.FAILED, arguments.USAGE, arguments.TO_MEND, arguments.INTERRUPTED):
        assert f"\n  {code}" in out
    assert f"\n  {arguments.BROKEN_PIPE}" in out


@pytest.mark.parametrize("command", [["context", "How does add_item work?"], ["doctor"]])
def test_a_reader_that_goes_away_has_a_code_of_its_own(place: Run, command: list[str]) -> None:
    """`haversack context ... | head` ends quietly, with a code that tells it from a failure."""
    where = [] if command == ["doctor"] else ["--workspace", str(place[0])]
    words = [*command, *where, "--cache-dir", str(place[1])]
    with subprocess.Popen(
        [sys.executable, "-m", "haversack", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == arguments.BROKEN_PIPE


def test_an_interrupt_ends_the_command_and_its_worker_quietly(place: Run, tmp_path: Path) -> None:
    """Ctrl-C goes to all processes in the terminal's foreground; only the command may hear it, and ends the rest."""
    words = ["index", "--workspace", str(place[0]), "--cache-dir", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "haversack", *words], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stderr is not None
        workers: list[psutil.Process] = []
        while not workers and process.poll() is None:
            workers = psutil.Process(process.pid).children(recursive=True)
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == arguments.INTERRUPTED
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []


def test_pipes_carry_utf8_whatever_the_locale_says(place: Run, tmp_path: Path) -> None:
    """Windows gives pipes a code page of its own; prompts, and questions from stdin, are not limited to it."""
    (tmp_path / "café.py").write_text("def señor():\n    return '猫'\n", encoding="utf-8")
    words = ["context", "-", "--prompt", "--workspace", str(tmp_path), "--cache-dir", str(place[1])]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "haversack", *words],
        input="Where is señor?".encode() + b"\xff",
        capture_output=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (arguments.OK, b"")
    out = done.stdout.decode("utf-8")
    assert "café.py" in out
    assert "猫" in out
    assert "Where is señor?\ufffd" in out


def test_a_folder_whose_name_is_no_utf8(capsys: pytest.CaptureFixture[str], place: Run, tmp_path: Path) -> None:
    """It answers like any other."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "cart.py").write_text("def add_item(cart, item):\n    cart.append(item)\n")
    code, out, err = typed(capsys, (folder, place[1]), "context", "How does add_item work in this architecture?")
    assert (code, err) == (arguments.OK, "")
    assert "cart.append(item)" in out
    assert "\n! " not in out


def test_a_port_in_use_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    """With exit code 1; the server ends the process, so it runs in its own."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([sys.executable, "-m", "haversack", "serve", "--tcp", address], check=False, timeout=30)
    assert done.returncode == arguments.FAILED
    assert f"{address} cannot be listened on" in capfd.readouterr().err
