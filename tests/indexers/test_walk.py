"""Which files a walk finds, that one path asked alone gets the same verdict, and that reading is safe."""

from __future__ import annotations

import itertools
import os
import random
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from haversack_index.types import SkipReason
from haversack_index.walk import CannotRead, Checker, Found, Skipped, WalkRules, check, content_skip, read_file, walk

RULES = WalkRules()


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ignore file of whoever runs the tests must not decide them."""
    monkeypatch.setenv("HOME", os.fspath(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)


def plant(folder: Path, *paths: str, **contents: str) -> Path:
    """Empty files (folders when ending in a slash) and, by keyword, rule files: gitignore=, haversackignore=."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (folder / path).mkdir(exist_ok=True)
        else:
            (folder / path).touch()
    for name, text in contents.items():
        (folder / f".{name}").write_text(text)
    return folder


def refused(folder: Path, path: str) -> Skipped:
    """The verdict on a path that must be skipped."""
    verdict = check(folder, path, RULES)
    assert isinstance(verdict, Skipped)
    return verdict


def found(folder: Path, rules: WalkRules = RULES) -> set[str]:
    """The paths a walk would index."""
    return {row.path for row in walk(folder, rules) if isinstance(row, Found)}


def skipped(folder: Path, rules: WalkRules = RULES) -> dict[str, str]:
    """Path to reason of what a walk leaves out."""
    return {row.path: row.reason.value for row in walk(folder, rules) if isinstance(row, Skipped)}


def test_walk_is_lazy_sorted_and_carries_stat(tmp_path: Path) -> None:
    """Rows come in order of names, folder by folder, with size and time, and only as they are asked for."""
    plant(tmp_path, "b/z.py", "b/a.py", "a.py", "c.py")
    (tmp_path / "a.py").write_bytes(b"12345")
    rows = walk(tmp_path, RULES)
    assert next(rows) == Found("a.py", 5, (tmp_path / "a.py").stat().st_mtime_ns)
    (tmp_path / "b" / "late.py").touch()
    assert [row.path for row in rows] == ["b/a.py", "b/late.py", "b/z.py", "c.py"]


def test_a_tool_rule_brings_back_what_git_ignores_but_no_secret(tmp_path: Path) -> None:
    """Git's rules first, the tool's after: `!schemas` works; `.env` stays out unless the user's settings allow it."""
    plant(tmp_path, "schemas/a.graphql", "schemas/b.log", ".env", gitignore="schemas\n.env\n*.log\n")
    plant(tmp_path, haversackignore="!schemas\n!.env\n")
    assert found(tmp_path) == {"schemas/a.graphql"}
    assert check(tmp_path, ".env", RULES) == Skipped(".env", SkipReason.SECRET_NAME, "file name .env")
    assert refused(tmp_path, "schemas/b.log").rule == ".gitignore:3:*.log"
    assert ".env" in found(tmp_path, WalkRules(allow_secret_names=True))


def test_a_tool_rule_opens_an_ignored_folder_only_where_it_says(tmp_path: Path) -> None:
    """`!out/keep/*.txt` enters `out/` for those files alone; `!*.txt` and `!**/c.txt` enter no ignored folder."""
    plant(
        tmp_path,
        "out/keep/a.txt",
        "out/keep/b.bin",
        "out/x.txt",
        "logs/c.txt",
        "logs/deep/c.txt",
        "node_modules/p/d.txt",
    )
    plant(tmp_path, "node_modules/mine/e.txt", gitignore="out/\nlogs/\n")
    plant(tmp_path, haversackignore="!*.txt\n!**/deep/c.txt\n!out/keep/*.txt\n!/node_modules/mine/\n")
    assert found(tmp_path) == {"out/keep/a.txt", "out/x.txt", "node_modules/mine/e.txt"}
    reasons = skipped(tmp_path)
    assert reasons["logs/"] == reasons["out/keep/b.bin"] == "git-ignored"
    assert reasons["node_modules/p/"] == "vendored"


def test_tool_rules_skip_and_name_their_line(tmp_path: Path) -> None:
    """The tool's own file leaves out what git keeps; nested files and hidden files work as in git."""
    plant(tmp_path, "docs/a.md", "docs/b.md", ".github/ci.yml", "old/x.py", haversackignore="/old\n!.github\n")
    plant(tmp_path / "docs", haversackignore="b.*\n")
    assert found(tmp_path) == {"docs/a.md", ".github/ci.yml"}
    assert check(tmp_path, "old/x.py", RULES) == Skipped(
        "old/x.py", SkipReason.HAVERSACK_IGNORED, ".haversackignore:1:/old"
    )
    assert refused(tmp_path, "docs/b.md").rule == "docs/.haversackignore:1:b.*"


def test_git_itself_is_never_entered(tmp_path: Path) -> None:
    """Neither a setting nor a tool rule opens the version control folder."""
    plant(tmp_path, ".git/config", ".git/logs/x", "sub/.git", "sub/a.py", haversackignore="!.git/\n!.git/**\n")
    assert found(tmp_path, WalkRules(include_hidden=True, allow_secret_names=True)) == {"sub/a.py", ".haversackignore"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        *((name, "secret-name") for name in (".env", ".env.local", "prod.env", "id_rsa", "x.pem", "a/credentials")),
        *((name, "secret-name") for name in ("id_ed25519", "ks.p12", "app.keystore", ".npmrc", ".netrc", "ID_RSA")),
        *((name, "secret-name") for name in ("db-secret.yaml", "k8s/app.secrets.yml", "secret-db.yml", "Secret.yaml")),
        *((name, "secret-name") for name in ("secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml")),
        *((name, "secret-name") for name in (".htpasswd", "pass.kdbx", "service-account-prod.json")),
        *((name, "secret-name") for name in ("my-service_account.json", "client_secret_12.apps.json")),
        *((name, "secret-name") for name in ("shop-firebase-adminsdk-x1.json",)),
        *((name, "lock-file") for name in ("package-lock.json", "yarn.lock", "Cargo.lock", "go.sum", "uv.lock")),
        *((name, "minified") for name in ("a.min.js", "b.min.css")),
        *((name, "generated") for name in ("a.js.map", "m_pb2.py", "m.pb.go", "m.g.dart", "Form.Designer.cs")),
        *((name, "hidden") for name in (".editorconfig", ".gitlab-ci.yml", ".env.example")),
    ],
)
def test_names_that_are_skipped(tmp_path: Path, path: str, reason: str) -> None:
    """A name alone says secret, lock, minified, generated or hidden."""
    plant(tmp_path, path)
    assert skipped(tmp_path) == {path: reason}


@pytest.mark.parametrize(
    "path",
    [
        *("id_rsa.pub", "env.py", "lock.py", "mapping.ts", "keys.py", "Makefile", "build.gradle", "credentials.py"),
        *("secret_santa.py", "docs/secrets.md", "secretary.yaml", "unsecret.yml", "secrets.py", "secret/values.yaml"),
        *("sealed-secret.yaml", "external-secret.yaml", "secret.example.yaml", "service-account.schema.json"),
        *("service-account.ts", "service-accounts.json", "client_secrets.py", "htpasswd.c"),
    ],
)
def test_names_that_only_resemble_skipped_ones_are_kept(tmp_path: Path, path: str) -> None:
    """Public keys and code about secrets, locks and maps are ordinary files."""
    plant(tmp_path, path)
    assert found(tmp_path) == {path}


def test_an_example_of_settings_is_no_secret(tmp_path: Path) -> None:
    """With hidden files wanted, `.env.example` is read and `.env.production` is not."""
    plant(tmp_path, ".env.example", ".env.sample", ".env.production")
    assert found(tmp_path, WalkRules(include_hidden=True)) == {".env.example", ".env.sample"}


@pytest.mark.parametrize("folder", ["node_modules", "__pycache__", ".venv", ".tox", "a/node_modules", "x.egg-info"])
def test_dependency_folders_are_one_row(tmp_path: Path, folder: str) -> None:
    """A skipped folder is one row with a trailing slash, however much is in it."""
    plant(tmp_path, f"{folder}/a.js", f"{folder}/b/c.js")
    assert skipped(tmp_path, WalkRules(include_hidden=True)) == {f"{folder}/": "vendored"}
    assert refused(tmp_path, f"{folder}/b/c.js").reason == SkipReason.VENDORED


@pytest.mark.parametrize(
    ("folder", "mark"),
    [
        ("target", "Cargo.toml"),
        ("dist", "package.json"),
        ("vendor", "go.mod"),
        ("build", "build/CMakeCache.txt"),
        ("venv", "venv/pyvenv.cfg"),
        ("build", "build.gradle"),
        ("obj", "obj/project.assets.json"),
    ],
)
def test_output_folders_need_a_mark(tmp_path: Path, folder: str, mark: str) -> None:
    """A folder named like an output is code unless the tool that makes such outputs left its mark."""
    plant(tmp_path, f"{folder}/a.py")
    assert found(tmp_path) == {f"{folder}/a.py"}
    plant(tmp_path, mark)
    assert skipped(tmp_path)[f"{folder}/"] == "vendored"
    assert mark.rpartition("/")[2] in refused(tmp_path, folder).rule


def test_links_are_never_followed(tmp_path: Path) -> None:
    """Loops, aliases, dangling links and links out of the tree: each a row of its own, each real file once."""
    plant(tmp_path, "outside/secret.txt", "ws/lv0/f.py", "ws/p/")
    root = tmp_path / "ws"
    for k in range(1, 17):
        (root / f"lv{k}").mkdir()
        for side in ("left", "right"):
            (root / f"lv{k}" / side).symlink_to(f"../lv{k - 1}")
    links = {"me": "me", "here": ".", "p/up": "../p", "dangling": "gone", "out": "../outside", "f": "lv0/f.py"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    (tmp_path / "alias").symlink_to(root)
    started = time.perf_counter()
    for top in (root, tmp_path / "alias"):
        rows = list(walk(top, RULES))
        assert [row.path for row in rows if isinstance(row, Found)] == ["lv0/f.py"]
        assert sum(isinstance(row, Skipped) and row.reason is SkipReason.SYMLINK for row in rows) == 32 + len(links)
    assert time.perf_counter() - started < 1
    assert check(root, "out/secret.txt", RULES) == Skipped("out/secret.txt", SkipReason.SYMLINK)


def test_awkward_files_are_skipped_with_a_reason(tmp_path: Path) -> None:
    """Sparse giants, FIFOs, sockets and names that are not UTF-8 neither block the walk nor stop it."""
    with (tmp_path / "huge.py").open("wb") as handle:
        handle.truncate((4 << 30) + 1)
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tmp_path / "sock.py"))
    (tmp_path / os.fsdecode(b"bad\xff.py")).touch()
    (tmp_path / os.fsdecode(b"dir\xff")).mkdir()
    plant(tmp_path, "new\nline.py", "n" * 252 + ".py", "empty.py")
    assert found(tmp_path) == {"new\nline.py", "n" * 252 + ".py", "empty.py"}
    assert skipped(tmp_path) == {
        "huge.py": "too-large",
        "pipe.py": "special-file",
        "sock.py": "special-file",
        "bad\\xff.py": "bad-name",
        "dir\\xff/": "bad-name",
    }
    assert refused(tmp_path, "n" * 256).reason == SkipReason.BAD_NAME
    assert refused(tmp_path, "/".join(["d" * 100] * 50)).reason in ("bad-name", "gone")


def test_the_size_limit_is_inclusive(tmp_path: Path) -> None:
    """A file of exactly the limit is read, one byte more is not."""
    (tmp_path / "a.py").write_bytes(b"x" * 10)
    (tmp_path / "b.py").write_bytes(b"x" * 11)
    assert found(tmp_path, WalkRules(max_file_size=10)) == {"a.py"}


def test_an_unreadable_folder_is_one_row_and_the_walk_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are unknown, not gone: one UNREADABLE row for the folder, and linked rule files are noted too."""
    plant(tmp_path, "locked/a.py", "z.py", "sub/b.py")
    (tmp_path / ".gitignore").symlink_to("/nowhere/rules")
    (tmp_path / "sub" / ".gitignore").symlink_to("/etc/hostname")
    real = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if os.fspath(path).rstrip("/").endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert found(tmp_path) == {"z.py", "sub/b.py"}
    assert skipped(tmp_path) == {".gitignore": "symlink", "locked/": "unreadable", "sub/.gitignore": "symlink"}


def test_a_file_that_vanishes_between_listing_and_stat_is_gone(tmp_path: Path) -> None:
    """200 files, one deleted, one turned into a folder and one folder removed while the walk is under way."""
    plant(tmp_path, *(f"a/{n:03}.py" for n in range(200)), "b/x.py", "c/y.py")
    rows = walk(tmp_path, RULES)
    first = next(rows)  # `a/` is listed by now
    (tmp_path / "b" / "x.py").unlink()
    (tmp_path / "b").rmdir()
    (tmp_path / "a" / "050.py").unlink()
    rest = list(rows)
    assert Skipped("b/", SkipReason.GONE) in rest
    assert len([first, *rest]) == 202
    with pytest.raises(CannotRead) as caught:
        read_file(tmp_path, "a/050.py", 100)
    assert caught.value.reason is SkipReason.GONE
    (tmp_path / "a" / "060.py").unlink()
    (tmp_path / "a" / "060.py").mkdir()
    with pytest.raises(CannotRead) as caught:
        read_file(tmp_path, "a/060.py", 100)
    assert caught.value.reason is SkipReason.SPECIAL


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "a//b", "./a", "", "a\0b", ".."])
def test_paths_outside_the_folder_are_refused_by_their_words(tmp_path: Path, path: str) -> None:
    """Both doors refuse them alike, whether or not they exist, and a sibling with a longer name is outside."""
    plant(tmp_path, "ws/a/b", "ws-evil/x", "x")
    assert refused(tmp_path / "ws", path).reason == SkipReason.BAD_NAME
    with pytest.raises(CannotRead) as caught:
        read_file(tmp_path / "ws", path, 100)
    assert caught.value.reason is SkipReason.BAD_NAME


def _random_tree(rng: random.Random, root: Path) -> list[str]:
    """A tree of names that meet every rule, and all its paths."""
    words = (
        "a",
        "b.py",
        "node_modules",
        ".h",
        ".env",
        "out",
        "x.log",
        "dist",
        "package.json",
        "yarn.lock",
        "k.pem",
        "é",
    )
    lines = (
        "*.log",
        "out/",
        "!out/",
        "out/*",
        "!out/a",
        "a/",
        "!a/b.py",
        "!.h/",
        "!node_modules/",
        "!/node_modules/a",
        "*",
    )
    places = [root]
    root.mkdir()
    for _ in range(rng.randint(2, 9)):
        place = rng.choice(places) / rng.choice(words)
        if not place.exists():
            place.mkdir()
            places.append(place)
    for place in places:
        for name in rng.sample(words, rng.randint(1, 4)):
            path = place / name
            if not os.path.lexists(path):
                path.symlink_to("a") if rng.random() < 0.05 else path.write_bytes(b"x" * rng.choice((1, 20)))
        for name in (".gitignore", ".haversackignore"):
            if rng.random() < 0.4:
                (place / name).write_text("\n".join(rng.sample(lines, rng.randint(1, 3))))
    paths: list[str] = []
    for place, folders, files in os.walk(root):
        prefix = os.path.relpath(place, root) + "/"
        paths.extend(prefix.removeprefix("./") + name for name in itertools.chain(folders, files))
    return paths


def test_walk_and_check_agree_on_every_path(tmp_path: Path) -> None:
    """One path asked alone gets the row of the walk, or of the skipped folder above it."""
    rng = random.Random(7)
    for number in range(150):
        root = tmp_path / str(number)
        paths = _random_tree(rng, root)
        rules = WalkRules(include_hidden=rng.random() < 0.5, max_file_size=10, allow_secret_names=rng.random() < 0.3)
        rows = {row.path: row for row in walk(root, rules)}
        checker = Checker(root, rules)
        for path in paths:
            verdict = checker.check(path)
            above = next((rows[p] for p in _prefixes(path) if p in rows), None)
            if above is not None:
                assert isinstance(verdict, Skipped)
                assert isinstance(above, Skipped)
                assert (verdict.reason, verdict.rule) == (above.reason, above.rule), path
            elif (root / path).is_dir() and not (root / path).is_symlink():
                if path + "/" in rows:
                    assert verdict == rows[path + "/"], path
                elif isinstance(verdict, Found):
                    assert verdict.path == path + "/"
            else:
                assert verdict == rows[path], path


def _prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:i]) + "/" for i in range(1, len(parts))]


def test_walking_holds_one_folder_at_a_time(tmp_path: Path) -> None:
    """Memory does not grow with the number of folders."""
    plant(tmp_path, *(f"d{i:03}/f{j}.py" for i in range(300) for j in range(3)))
    rows = walk(tmp_path, RULES)
    list(itertools.islice(rows, 30))
    tracemalloc.start()
    for _ in rows:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000


# Reading


def test_read_file_gives_the_bytes_up_to_the_cap(tmp_path: Path) -> None:
    """Exactly the cap is read; one byte more is refused before anything is read."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.bin").write_bytes(b"\0" * 10)
    assert read_file(tmp_path, "d/a.bin", 10) == b"\0" * 10
    with pytest.raises(CannotRead) as caught:
        read_file(tmp_path, "d/a.bin", 9)
    assert caught.value.reason is SkipReason.TOO_LARGE


def test_a_file_that_grows_while_read_is_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log written to between its stat and the read never yields more than the cap."""
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 10)
    real = os.read

    def read(descriptor: int, count: int) -> bytes:
        with log.open("ab") as handle:
            handle.write(b"y" * 1000)
        return real(descriptor, count)

    monkeypatch.setattr(os, "read", read)
    with pytest.raises(CannotRead) as caught:
        read_file(tmp_path, "a.log", 100)
    assert caught.value.reason is SkipReason.TOO_LARGE


def test_read_file_refuses_links_and_special_files_without_waiting(tmp_path: Path) -> None:
    """Links to files and folders, chains, FIFOs, sockets and folders raise at once, each with its reason."""
    plant(tmp_path, "outside/secret.txt", "ws/real/a.py")
    root = tmp_path / "ws"
    for name, target in {
        "out": "../outside",
        "name.txt": "../outside/secret.txt",
        "chain": "out",
        "in": "real",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(root / "sock"))
    cases = {
        **dict.fromkeys(("out/secret.txt", "name.txt", "chain/secret.txt", "in/a.py"), SkipReason.SYMLINK),
        **dict.fromkeys(("pipe", "sock", "real"), SkipReason.SPECIAL),
        **dict.fromkeys(("gone.py", "gone/a.py", "real/a.py/b"), SkipReason.GONE),
        "n" * 300: SkipReason.BAD_NAME,
    }
    outcomes: dict[str, SkipReason] = {}
    for path in cases:
        with pytest.raises(CannotRead) as caught:
            read_file(root, path, 100)
        outcomes[path] = caught.value.reason
        assert os.fspath(tmp_path) not in str(caught.value)
    assert outcomes == cases
    (tmp_path / "alias").symlink_to(root)
    assert read_file(tmp_path / "alias", "real/a.py", 100) == b""


def test_a_swap_between_check_and_read_leaks_nothing(tmp_path: Path) -> None:
    """A file and its folder are swapped for links out of the tree as fast as can be while they are read."""
    plant(tmp_path, "outside/f.txt", "ws/d/f.txt")
    (tmp_path / "outside" / "f.txt").write_bytes(b"SECRET")
    (tmp_path / "ws" / "d" / "f.txt").write_bytes(b"public")
    folder, stop = tmp_path / "ws" / "d", threading.Event()
    hidden, link = tmp_path / "ws" / "hidden", tmp_path / "ws" / "link"

    def swap() -> None:
        while not stop.is_set():
            link.symlink_to("../outside")
            folder.rename(hidden)
            link.rename(folder)
            folder.unlink()
            hidden.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes | SkipReason] = set()
    try:
        for _ in range(3000):
            try:
                seen.add(read_file(tmp_path / "ws", "d/f.txt", 100))
            except CannotRead as error:
                seen.add(error.reason)
    finally:
        stop.set()
        swapper.join()
    assert b"SECRET" not in seen
    assert b"public" in seen


@pytest.mark.parametrize("relative", [True, False], ids=["by handle", "by comparing"])
def test_both_ways_of_opening_refuse_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool) -> None:
    """Systems that cannot open relative to a folder compare real paths instead."""
    if not relative:
        monkeypatch.setattr(os, "supports_dir_fd", frozenset())
    plant(tmp_path, "outside/s", "ws/d/a")
    (tmp_path / "ws" / "l").symlink_to("../outside")
    (tmp_path / "ws" / "f").symlink_to("../outside/s")
    assert read_file(tmp_path / "ws", "d/a", 10) == b""
    for path in ("l/s", "f"):
        with pytest.raises(CannotRead) as caught:
            read_file(tmp_path / "ws", path, 10)
        assert caught.value.reason is SkipReason.SYMLINK


# Contents

_CODE = b"def add(a, b):\n    return a + b\n\n\n"
_BASE64 = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        ("n.txt", b"\x00text", SkipReason.BINARY),
        ("late.txt", b"plain text\n" * 800 + b"\x00\x01", SkipReason.BINARY),
        ("notes.txt", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", SkipReason.BINARY),
        ("utf16.txt", "text\n".encode("utf-16"), None),
        ("b.txt", _BASE64 * 24_000, SkipReason.BINARY),
        ("b.txt", b"\n".join([_BASE64 + _BASE64[:32]] * 200), SkipReason.BINARY),
        ("icons.py", b"ICON = '" + _BASE64 * 20 + b"'\n" + _CODE * 100, None),
        ("a.py", _CODE * 1000, None),
        ("a.py", b"", None),
        ("a.js", b"var a=function(b){return b+1};" * 1000, SkipReason.MINIFIED),
        ("small.js", b"var a=function(b){return b+1};" * 20, None),
        ("a.md", b"A long paragraph of prose without a line break. " * 500, None),
        ("a.go", b"// Code generated by protoc-gen-go. DO NOT EDIT.\npackage a\n", SkipReason.GENERATED),
        ("a.js", b"/**\n * @generated\n */\nx\n", SkipReason.GENERATED),
        ("a.py", b"#!/usr/bin/env python\n# This file was automatically generated by SWIG.\n", SkipReason.GENERATED),
        ("a.py", b'MARK = "@generated"\n' + _CODE, None),
        ("a.py", _CODE * 20 + b"# DO NOT EDIT\n", None),
        ("README.md", b"Files say DO NOT EDIT when they are generated.\n", None),
    ],
)
def test_content_that_is_not_worth_indexing(path: str, data: bytes, reason: SkipReason | None) -> None:
    """Binary by a zero byte anywhere, generated by a marker in a leading comment, minified by its long lines."""
    assert content_skip(path, data) == reason


def test_content_is_judged_in_linear_time() -> None:
    """A megabyte made to be nearly base64 costs little."""
    started = time.process_time()
    for data in (b"A" * 511 + b" ", (b"A" * 60 + b"\n") * 11 + b" ", b"A" * 600 + b"\n"):
        content_skip("a.txt", data * (1_000_000 // len(data)))
    assert time.process_time() - started < 0.5
