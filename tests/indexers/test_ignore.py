"""Ignore rules against git itself, and what a tool rule adds to them."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from haversack_index.globs import compile_glob
from haversack_index.ignore import Rules, parse_rules, read_rules, rules_for
from haversack_index.walk import Found, WalkRules, check, walk

# More trees for a longer hunt: HAVERSACK_IGNORE_TREES=2000 pytest tests/indexers/test_ignore.py
GENERATED_TREES = int(os.environ.get("HAVERSACK_IGNORE_TREES", "200"))
SEED = int(os.environ.get("HAVERSACK_IGNORE_SEED", "20261130"))

Answer = tuple[str, int, str]


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither git nor the code under test may read the settings of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", os.fspath(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)


def make_repository(folder: Path, config: str = "") -> Path:
    """An empty repository without the cost of running git."""
    for part in ("objects", "refs/heads", "info"):
        (folder / ".git" / part).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n" + config)
    return folder


def build(folder: Path, tree: dict[str, bytes | str | None]) -> None:
    """Files by content, folders as None, links as "-> target"."""
    for name, content in tree.items():
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("-> "):
            path.symlink_to(content.removeprefix("-> "))
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def paths_below(folder: Path) -> list[str]:
    """Every path of the tree that git may be asked about: not through links, not inside `.git`."""
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        relative = os.path.relpath(place, folder)
        prefix = "" if relative == "." else relative + "/"
        found.extend(prefix + name for name in [*folders, *sorted(files)])
    return found


def ask_git(folder: Path, paths: list[str]) -> dict[str, Answer | None]:
    """The deciding rule of each path, from one git process."""
    command = ["git", "check-ignore", "--stdin", "-z", "-v", "-n", "--no-index"]
    data = b"".join(os.fsencode(path) + b"\0" for path in paths)
    run = subprocess.run(command, cwd=folder, input=data, capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    fields = [os.fsdecode(field) for field in run.stdout.split(b"\0")[:-1]]
    rows = [fields[i : i + 4] for i in range(0, len(fields), 4)]
    return {path: (source, int(line), text) if source else None for source, line, text, path in rows}


def ask_rules(rules: Rules, folder: Path, paths: list[str]) -> dict[str, Answer | None]:
    """The same from the code under test, by git's way of going down a path."""
    inside: dict[bytes, Rules] = {b"": rules.entering(b"")}

    def answer(key: bytes, is_directory: bool) -> Answer | None:
        parent = key.rpartition(b"/")[0]
        if parent:
            above = answer(parent, True)
            if above is not None and not above[2].startswith("!"):
                return above
            if parent not in inside:
                inside[parent] = inside[parent.rpartition(b"/")[0]].entering(parent)
        rule = inside[parent].git_match(key, is_directory)
        return (rule.source, rule.line, rule.text) if rule is not None else None

    def real_directory(path: str) -> bool:
        return (folder / path).is_dir() and not (folder / path).is_symlink()

    return {path: answer(os.fsencode(path), real_directory(path)) for path in paths}


def differences(folder: Path) -> list[str]:
    """Every path whose deciding rule is not git's."""
    paths = paths_below(folder)
    assert paths
    ours = ask_rules(rules_for(folder.resolve())[0], folder, paths)
    theirs = ask_git(folder, paths)
    return [f"{path}: ours {ours[path]}, git {theirs[path]}" for path in paths if ours[path] != theirs[path]]


Tree = dict[str, bytes | str | None]

_KIT: Tree = {"kit/sub/h.js": "", "top.ts": "", "src/com/a.c": "", "src/x.c": "", "out/keep.txt": ""}
_DEEP: Tree = {"a/b/c/d.txt": "", "a/d.txt": "", "d.txt": "", "b/a/x": "", "ab/c": "", "a.b/c.txt": "", "abc": ""}
_ODD: Tree = {
    **dict.fromkeys(("sp ace", "end ", "tab\t", "#hash", "!bang", "back\\slash", "star*", "q?", "[x]", "]", "-"), ""),
    **dict.fromkeys(("a-b", "new\nline", "é", "日本", "A", "a", "1", "_", "^", "a]b", "x/[y]/z", "\x7f"), ""),
}

# name -> (rules, tree): one tree each, all of them in one repository.
HAND_MADE: dict[str, tuple[bytes, Tree]] = {
    "allow-list": (b"*\n!/kit/\n!/kit/**\n", _KIT),
    "allow-list-deep": (b"*\n!src/\n!src/com/\n!src/com/**\n", _KIT),
    "excluded-parent": (b"out/\n!out/keep.txt\n", _KIT),
    "all-but-c": (b"*\n!*/\n!*.c\n", _KIT),
    "contents-then-keep": (b"out/*\n!out/keep.txt\n", _KIT),
    "bom-crlf-blanks": (b"\xef\xbb\xbfsecret.txt\r\nbuild/   \r\n", {"secret.txt": "", "build/x": "", "n": ""}),
    "bom-twice": (b"\xef\xbb\xbf\xef\xbb\xbfsecret.txt\n", {"secret.txt": "", "\ufeffsecret.txt": ""}),
    "bare-cr": (b"a\rb\nd.txt\r\r\n", _DEEP),
    "no-newline-at-end": (b"d.txt", _DEEP),
    "nul-in-line": (b"d.txt\0junk\n", _DEEP),
    "only-cr": (b"\r\n!\r\n/\r\n", _DEEP),
    "name-anywhere": (b"d.txt\n", _DEEP),
    "name-at-top": (b"/d.txt\n", _DEEP),
    "path-is-anchored": (b"a/d.txt\n", _DEEP),
    "directory-only": (b"a/\nabc/\n", _DEEP),
    "link-to-directory": (b"ln/\nreal/\n", {"real/f": "", "ln": "-> real", "dangling": "-> gone"}),
    "link-by-name": (b"ln\n", {"real/f": "", "ln": "-> real"}),
    "star": (b"*.txt\n", _DEEP),
    "star-alone": (b"*\n", _DEEP),
    "star-in-path": (b"a/*\n", _DEEP),
    "star-slash": (b"*/c\n", _DEEP),
    "star-middle": (b"a*c\n", _DEEP),
    "question": (b"?bc\n?\n", _DEEP),
    "question-is-a-byte": (b"?\n", _ODD),
    "two-questions-for-e-acute": (b"??\n", _ODD),
    "starstar-lead": (b"**/d.txt\n", _DEEP),
    "starstar-tail": (b"a/**\n", _DEEP),
    "starstar-middle": (b"a/**/d.txt\n", _DEEP),
    "starstar-alone": (b"**\n", _DEEP),
    "starstar-slash": (b"**/\n", _DEEP),
    "starstar-anchored": (b"/**\n", _DEEP),
    "starstar-twice": (b"**/b/**/d.txt\n", _DEEP),
    "starstar-glued-left": (b"a**/c/d.txt\n", _DEEP),
    "starstar-glued-left-2": (b"a**/d.txt\n", _DEEP),
    "starstar-glued-right": (b"a/**c/d.txt\n", _DEEP),
    "starstar-glued-both": (b"a/x**y/d.txt\n", {"a/xqy/d.txt": "", "a/xq/qy/d.txt": ""}),
    "starstar-after-wild": (b"?**/d.txt\n", _DEEP),
    "three-stars": (b"a/***/d.txt\n", _DEEP),
    "starstar-escaped-slash": (b"a/**\\/d.txt\n", _DEEP),
    "starstar-escaped-slash-2": (b"**\\/d.txt\n", _DEEP),
    "prefix-then-starstar": (b"/ab**\n", {"ab": "", "abx/y": "", "c/ab": ""}),
    "double-slash": (b"a//b\n//a\n", _DEEP),
    "slash-alone": (b"/\n//\n", _DEEP),
    "trailing-double-slash": (b"a//\n", _DEEP),
    "dot-slash": (b"./a\n", _DEEP),
    "dot-dot": (b"../a\n", _DEEP),
    "negate-then-ignore": (b"!d.txt\nd.txt\n", _DEEP),
    "ignore-then-negate": (b"*.txt\n!d.txt\n", _DEEP),
    "double-bang": (b"*\n!!bang\n", _ODD),
    "bang-escaped": (b"\\!bang\n", _ODD),
    "hash": (b"#hash\n", _ODD),
    "hash-escaped": (b"\\#hash\n", _ODD),
    "blank-start": (b" sp ace\n", _ODD),
    "blank-inside": (b"sp ace\n", _ODD),
    "blank-end-cut": (b"end \n", _ODD),
    "blank-end-kept": (b"end\\ \n", _ODD),
    "blank-end-kept-more": (b"end\\    \n", _ODD),
    "blank-end-even-backslashes": (b"end\\\\   \n", _ODD),
    "tab-end": (b"tab\t\n", _ODD),
    "tab-end-not-cut": (b"a\t\n", _ODD),
    "backslash": (b"back\\\\slash\n", _ODD),
    "backslash-end": (b"a\\\n", _ODD),
    "backslash-slash-end": (b"x\\/\n", _ODD),
    "star-escaped": (b"star\\*\n", _ODD),
    "letter-escaped": (b"\\a\n", _ODD),
    "question-escaped": (b"q\\?\n", _ODD),
    "bracket-escaped": (b"\\[x\\]\n", _ODD),
    "class": (b"[aA]\n", _ODD),
    "class-range": (b"[0-9]\n[A-Z]\n", _ODD),
    "class-range-backward": (b"[z-a]\n", _ODD),
    "class-negated": (b"[!a]\n", _ODD),
    "class-negated-caret": (b"[^a]\n", _ODD),
    "class-caret-later": (b"[a^]\n", _ODD),
    "class-bracket-first": (b"[]]\n", _ODD),
    "class-bracket-first-negated": (b"[!]a]\n", _ODD),
    "class-dash-first": (b"[-a]\n", _ODD),
    "class-dash-last": (b"[a-]\n", _ODD),
    "class-escape": (b"[\\]]\n[\\\\]\n", _ODD),
    "class-range-escape": (b"[\\a-\\c]\n", _ODD),
    "class-range-then-dash": (b"[0-1-_]\n", _ODD),
    "class-named": (b"[[:alpha:]]\n", _ODD),
    "class-named-digit": (b"[[:digit:][:punct:]]\n", _ODD),
    "class-named-unknown": (b"[[:nope:]]\n", _ODD),
    "class-named-open": (b"[[:alpha]\n[[:]\n[[:a-z]b]\n", _ODD),
    "class-named-cntrl": (b"[[:cntrl:]]\n", _ODD),
    "class-then-named-dash": (b"[[:digit:]-a]\n", _ODD),
    "class-open": (b"[a\n", _ODD),
    "class-open-negated": (b"[!\n", _ODD),
    "class-empty": (b"[]\n[!]\n", _ODD),
    "class-slash": (b"x[/][[]y]/z\n", _ODD),
    "class-with-slash-inside": (b"x/[[/]y]/z\n", _ODD),
    "class-bytes": (b"[\xc3]?\n", _ODD),
    "class-in-path": (b"x/[[]?[]]\n", _ODD),
    "non-ascii": ("é\n日*\n".encode(), _ODD),
    "not-utf8-rule": (b"\xff\xfe\nd.txt\n", _DEEP),
    "braces-are-literal": (b"{a,d.txt}\n*.{txt,c}\n", {**_DEEP, "{a,d.txt}": "", "x.{txt,c}": ""}),
    "bare-prefix": (b"a/b\n", {"a/b": "", "a/bc": "", "x/a/b": ""}),
    "newline-name": (b"new*line\nnew?line\n", _ODD),
    "suffix-whole-name": (b"*.txt\n*d.txt\n", {".txt": "", "d.txt": "", "xd.txt": ""}),
    "order-across-kinds": (b"d.txt\n!*.txt\n/d.txt\n!**/d.txt\na/d.*\n", _DEEP),
}


def test_hand_made_rules_decide_as_git(tmp_path: Path) -> None:
    """Each hand-made rule file names the same deciding rule as git for every path of its tree."""
    repository = make_repository(tmp_path)
    for name, (rules, tree) in HAND_MADE.items():
        build(repository / name, {**tree, ".gitignore": rules})
    assert differences(repository) == []


_NAMES = ("a", "b", "ab", "a.c", "b.txt", "c", "sp x", "é", "A", "x-y", ".h", "abc", "[k]", "b\\b")
_ATOMS = (
    *("a", "b", "c", "x", "ab", ".c", ".txt", "*", "*", "**", "?", "/", "/", "**/", "/**", "/**/", "***"),
    *("[ab]", "[!a]", "[a-c]", "[^b-z]", "[]a]", "[[:alpha:]]", "[[:nope:]]", "[", "]", "[a", "[[:alpha]", "[!]]"),
    *("\\", "\\a", "\\*", "\\[", "\\/", " ", "\\ ", "!", "#", "é", ".", "-", "{a,b}", "[\\]k]", "[a-]"),
)


def random_pattern(rng: random.Random) -> str:
    """A rule as people write them, or as nobody would."""
    if rng.random() < 0.55:
        parts: list[str] = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
            word = rng.choice(_NAMES)
            shapes = (
                word,
                word,
                "*",
                "**",
                word[0] + "*",
                "*" + word[-1],
                "?" * len(word),
                "[" + word + "]*",
                "**" + word,
            )
            parts.append(rng.choice(shapes))
        pattern = ("/" if rng.random() < 0.3 else "") + "/".join(parts) + ("/" if rng.random() < 0.3 else "")
    else:
        pattern = "".join(rng.choice(_ATOMS) for _ in range(rng.randint(1, 6)))
    return ("!" if rng.random() < 0.3 else "") + pattern


def random_tree(rng: random.Random, folder: Path) -> None:
    """A few folders and files, with ignore files here and there."""
    places = [folder]
    folder.mkdir()
    for _ in range(rng.randint(2, 7)):
        place = rng.choice(places) / rng.choice(_NAMES)
        place.mkdir(exist_ok=True)
        places.append(place)
    for place in places:
        for name in rng.sample(_NAMES, rng.randint(0, 4)):
            if not (place / name).exists():
                (place / name).touch()
    link = rng.choice(places) / "b"
    if rng.random() < 0.2 and not os.path.lexists(link):
        link.symlink_to(folder)
    for place in {folder, *rng.sample(places, min(2, len(places)))}:
        lines = [random_pattern(rng) for _ in range(rng.randint(1, 6))]
        ending = rng.choice(("\n", "\n", "\r\n"))
        (place / ".gitignore").write_bytes(os.fsencode(ending.join(lines) + rng.choice(("", ending))))


def test_generated_rules_decide_as_git(tmp_path: Path) -> None:
    """Random rules over random trees: the deciding rule and the set of walked files are git's."""
    repository = make_repository(tmp_path)
    rng = random.Random(SEED)
    for number in range(GENERATED_TREES):
        random_tree(rng, repository / f"t{number:05}")
    assert differences(repository) == []

    command = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout
    theirs = {path for path in os.fsdecode(listed).split("\0") if path and not (repository / path).is_symlink()}
    ours = {row.path for row in walk(repository, WalkRules(include_hidden=True)) if isinstance(row, Found)}
    assert sorted(ours ^ theirs) == []


def test_case_is_ignored_where_the_repository_says_so(tmp_path: Path) -> None:
    """With core.ignorecase git compares ASCII letters without case, with its own ideas about classes."""
    repository = make_repository(tmp_path, "\tignorecase = true\n")
    build(repository / "hand", {**_ODD, "DIR/File.TXT": "", "dir2/x": "", ".gitignore": b"[A-Z]\n*.txt\nDiR/\n[!B]\n"})
    build(repository / "upper", {**_ODD, ".gitignore": b"[[:upper:]]\n"})
    build(repository / "lower", {**_ODD, ".gitignore": b"[[:lower:]]\n"})
    build(repository / "one", {**_ODD, ".gitignore": b"[A]\n"})
    rng = random.Random(SEED + 1)
    for number in range(GENERATED_TREES // 5):
        random_tree(rng, repository / f"t{number:05}")
    assert differences(repository) == []


@pytest.mark.parametrize("place", ["xdg", "home", "setting", "setting-in-home-path", "setting-in-repository", "empty"])
def test_global_and_repository_excludes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The global file is found where git finds it, and is weaker than info/exclude, which is weaker than .gitignore."""
    home = Path(os.environ["HOME"])
    rules = b"global.txt\nboth.txt\nfrom-global/\n"
    quoted = f'\t excludesFile = "{tmp_path}/my ignore" ; here\n'
    make_repository(tmp_path / "repo", quoted if place == "setting-in-repository" else "")
    if place == "xdg":
        monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path / "xdg"))
        build(tmp_path, {"xdg/git/ignore": rules})
    elif place == "home":
        build(home, {".config/git/ignore": rules})
    elif place == "setting-in-home-path":
        build(home, {".gitconfig": "[user]\nname = x\n[Core]\n# c\nExcludesFile = ~/mine # here\n", "mine": rules})
    elif place == "empty":
        build(home, {".gitconfig": "[core]\nexcludesFile =\n", ".config/git/ignore": rules})
    else:
        build(tmp_path, {"my ignore": rules})
    if place == "setting":
        build(home, {".gitconfig": "[core]\n" + quoted})
    build(
        tmp_path / "repo",
        {
            ".git/info/exclude": b"info.txt\n!both.txt\n",
            ".gitignore": b"!info.txt\n",
            **dict.fromkeys(("global.txt", "both.txt", "info.txt", "from-global/x", "s/global.txt", "plain"), ""),
        },
    )
    assert differences(tmp_path / "repo") == []
    ignored = [row for row in walk(tmp_path / "repo", WalkRules()) if str(getattr(row, "reason", "")) == "git-ignored"]
    assert bool(ignored) == (place != "empty")


def test_parent_rules_reach_a_folder_inside_a_repository(tmp_path: Path) -> None:
    """A workspace folder below the repository's root obeys the rules above it, with their own bases."""
    repository = make_repository(tmp_path)
    tree: Tree = {f"pkg/app/{name}": "" for name in ("a.log", "keep.log", "x.tmp", "sub/y.gen", "gen/z", "src.py")}
    build(repository, {**tree, ".gitignore": b"*.log\n/pkg/*/gen/\n", "pkg/.gitignore": b"!keep.log\n*.tmp\n"})
    build(repository, {"pkg/app/.gitignore": b"sub/*.gen\n", "other/.gitignore": b"src.py\n"})
    found = {row.path for row in walk(repository / "pkg" / "app", WalkRules()) if isinstance(row, Found)}
    assert found == {"keep.log", "src.py"}


def test_a_folder_ignored_by_its_surroundings_is_indexed_when_opened(tmp_path: Path) -> None:
    """A home folder kept in git with a rule `*` does not empty every project below it."""
    repository = make_repository(tmp_path)
    build(repository, {".gitignore": b"*\n", "project/a.py": "", "project/b.log": "", "project/.gitignore": b"*.log\n"})
    assert isinstance(check(repository / "project", "a.py", WalkRules()), Found)
    assert not isinstance(check(repository / "project", "b.log", WalkRules()), Found)


def test_a_repository_inside_a_repository_has_its_own_rules(tmp_path: Path) -> None:
    """Rules of the outer repository end at a nested one (clone, submodule or worktree), as git run inside it says."""
    outer = make_repository(tmp_path / "outer")
    build(
        outer, {".gitignore": b"*.log\n/sub/never\n", "a.log": "", "sub/a.log": "", "sub/b.tmp": "", "tree/c.bak": ""}
    )
    make_repository(outer / "sub")
    build(
        outer, {"sub/.git/info/exclude": b"*.tmp\n", "sub/never": "", "sub/deep/.gitignore": b"x\n", "sub/deep/x": ""}
    )
    common = make_repository(tmp_path / "main") / ".git"
    build(common, {"worktrees/tree/HEAD": "ref: refs/heads/w\n", "worktrees/tree/commondir": "../..\n"})
    build(common, {"info/exclude": b"*.bak\n", "worktrees/tree/gitdir": f"{outer}/tree/.git\n"})
    build(outer, {"tree/.git": f"gitdir: {common}/worktrees/tree\n", "tree/d.log": ""})
    found = {row.path for row in walk(outer, WalkRules()) if isinstance(row, Found)}
    assert found == {"sub/a.log", "sub/never", "tree/d.log"}
    for nested in ("sub", "tree"):
        paths = [path for path in paths_below(outer / nested) if path != ".git"]
        theirs = ask_git(outer / nested, paths)
        assert {path for path in paths if theirs[path] is None and (outer / nested / path).is_file()} >= {
            path.removeprefix(nested + "/") for path in found if path.startswith(nested + "/")
        }


def test_a_linked_rule_file_is_refused(tmp_path: Path) -> None:
    """A `.gitignore` that is a link (out of the tree, or broken), a folder or a FIFO gives no rules and no error."""
    repository = make_repository(tmp_path / "repo")
    build(tmp_path, {"outside": b"a\n"})
    build(repository, {"l/.gitignore": "-> ../../outside", "l/a": "", "m/.gitignore": "-> gone", "m/a": ""})
    build(repository, {"d/.gitignore": None, "d/a": "", "f/a": ""})
    assert differences(repository) == []
    os.mkfifo(repository / "f" / ".gitignore")
    assert {row.path for row in walk(repository, WalkRules()) if isinstance(row, Found)} == {"l/a", "m/a", "d/a", "f/a"}


def test_foreign_ignore_files_are_not_read(tmp_path: Path) -> None:
    """Only named rule files count: a formatter's allow-list must not empty the index."""
    build(tmp_path, {".prettierignore": b"*\n!docs/**\n", ".dockerignore": b"*\n", ".npmignore": b"*\n", "app.py": ""})
    assert isinstance(check(tmp_path, "app.py", WalkRules()), Found)


HOSTILE = {
    "double stars": b"**/b/" * 30 + b"**/b",
    "double stars, other end": b"**/b/" * 30 + b"x",
    "stars": b"*a" * 100 + b"b",
    "stars in path": b"x/" + b"*a" * 100 + b"b",
    "star star path": b"/".join([b"*a*a*"] * 200),
    "double stars with stars": b"**/*b*/" * 40 + b"c",
    "questions and stars": b"?*" * 200 + b"b",
    "classes": b"[a-z]*" * 200 + b"b",
    "open class": b"[" * 4000,
    "open class with stars": b"*[" * 2000,
    "named classes": b"[[:alpha:]" * 300,
    "braces": b"{" * 2000 + b"," * 70 + b"}" * 5,
    "brace range": b"{1..100000000}",
    "backslashes": b"\\" * 4001,
    "long": b"a*" * 50_000,
    "long plain": b"a" * 100_000,
    "many slashes": b"/" * 4000 + b"*",
    "nested negation": b"!" * 4000 + b"*",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_patterns_are_fast(name: str) -> None:
    """No pattern takes 50 ms, compiling included, on paths made to defeat backtracking."""
    paths = [
        b"/".join([b"b"] * 2000),
        b"/".join([b"a" * 250] * 16),
        b"a" * 255,
        b"x/" + b"a" * 255,
        b"ab/" * 1300 + b"a",
    ]
    compile_glob.cache_clear()
    started = time.process_time()
    rules = parse_rules(HOSTILE[name] + b"\n", ".gitignore")
    parsed = time.process_time() - started
    slowest = 0.0
    for path in paths:
        started = time.process_time()
        rules.match(path, False)
        slowest = max(slowest, time.process_time() - started)
    assert parsed < 0.05
    assert slowest < 0.05


def test_a_rule_file_of_absurd_size_is_not_read(tmp_path: Path) -> None:
    """A sparse `.gitignore` of 4 GiB costs nothing."""
    with (tmp_path / ".gitignore").open("wb") as handle:
        handle.write(b"*.py\n")
        handle.truncate(4 << 30)
    assert read_rules(os.fspath(tmp_path / ".gitignore"), ".gitignore") is None
