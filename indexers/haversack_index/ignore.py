"""Ignore rules: git's, exactly, and after them the tool's own `.haversackignore` files.

Git's rules come from the `.gitignore` of each directory (deeper ones are stronger), then `.git/info/exclude`, then the
user's global file; in one file the last match wins. A tool rule that matches a path decides it, whatever git says.

Everything here works on bytes, as git does: paths are relative to `top`, the root of the repository that holds the
workspace folder, or the folder itself where there is none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from pathlib import Path

from haversack_index.gitconfig import Repository, find_repository, global_excludes, ignores_case, repository_at
from haversack_index.globs import compile_glob, literal_prefix

GIT_FILE = ".gitignore"
TOOL_FILE = ".haversackignore"

# A rule file larger than this is not written by a person; reading it would stall every walk.
MAX_RULE_FILE = 4 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file. `source` is the file's path relative to `top`, or absolute if elsewhere."""

    text: str
    source: str
    line: int  # from 1, as git counts
    negated: bool

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.text}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is in force within one directory. Lists are strongest first, each with the base its patterns start from."""

    top: str
    git: tuple[tuple[int, RuleList], ...] = ()
    tool: tuple[tuple[int, RuleList], ...] = ()
    fold: bool = False

    def git_match(self, path: bytes, is_directory: bool) -> Rule | None:
        """The git rule that decides `path`, not looking at its parents."""
        return _last_match(self.git, path, is_directory)

    def tool_match(self, path: bytes, is_directory: bool) -> Rule | None:
        """The tool rule that decides `path`, not looking at its parents."""
        return _last_match(self.tool, path, is_directory) if self.tool else None

    def tool_opens(self, directory: bytes) -> bool:
        """Whether a tool rule re-includes something under an ignored directory.

        Only a rule with a slash says where to look: `!out/keep.txt` opens `out/`; `!keep.txt` and `!**/keep.txt` do
        not, or one such line would send every walk through all dependencies.
        """
        return any(rules.opens(directory[base:]) for base, rules in self.tool)

    def entering(self, directory: bytes, names: Container[str] | None = None) -> Rules:
        """The rules within `directory` (relative to `top`, no trailing slash). `names` are its entries, if known."""
        inner = self
        folder = os.path.join(self.top, os.fsdecode(directory)) if directory else self.top
        base = len(directory) + 1 if directory else 0
        if directory and (names is None or ".git" in names):
            repository = repository_at(Path(folder))
            if repository is not None:  # another repository: the outer one's rules end here
                inner = replace(inner, git=_outside_rules(repository, base), fold=ignores_case(repository))
        prefix = os.fsdecode(directory) + "/" if directory else ""
        if names is None or GIT_FILE in names:
            rules = read_rules(os.path.join(folder, GIT_FILE), prefix + GIT_FILE, inner.fold)
            if rules is not None:
                inner = replace(inner, git=((base, rules), *inner.git))
        if names is None or TOOL_FILE in names:
            rules = read_rules(os.path.join(folder, TOOL_FILE), prefix + TOOL_FILE, inner.fold)
            if rules is not None:
                inner = replace(inner, tool=((base, rules), *inner.tool))
        return inner


def rules_for(folder: Path) -> tuple[Rules, bytes]:
    """The rules above a workspace folder (absolute, links resolved), and the folder's path relative to their `top`.

    The folder's own files are not yet read: call `entering` for that. A folder that its surrounding repository
    ignores was opened on purpose, so that repository's rules say nothing about it and are left out.
    """
    repository = find_repository(folder)
    if repository is None:
        outside = _outside_rules(None, 0)
        return Rules(os.fspath(folder), git=outside), b""
    rules = Rules(os.fspath(repository.top), git=_outside_rules(repository, 0), fold=ignores_case(repository))
    parts = [os.fsencode(part) for part in folder.relative_to(repository.top).parts]
    for i in range(len(parts)):
        rules = rules.entering(b"/".join(parts[:i]))
        rule = rules.git_match(b"/".join(parts[: i + 1]), True)
        if rule is not None and not rule.negated:
            return Rules(os.fspath(folder), git=_outside_rules(None, 0)), b""
    return rules, b"/".join(parts)


def _outside_rules(repository: Repository | None, base: int) -> tuple[tuple[int, RuleList], ...]:
    """The rules that stand outside the working tree, strongest first: `info/exclude`, then the global file."""
    fold = ignores_case(repository)
    files = [global_excludes(repository)]
    if repository is not None:
        files.insert(0, repository.common_dir / "info" / "exclude")
    found: list[tuple[int, RuleList]] = []
    for file in files:
        if file is None:
            continue
        source = os.fspath(file)
        if repository is not None and file.is_relative_to(repository.top):
            source = file.relative_to(repository.top).as_posix()
        rules = read_rules(os.fspath(file), source, fold, follow_links=True)
        if rules is not None:
            found.append((base, rules))
    return tuple(found)


def read_rules(file: str, source: str, fold: bool = False, follow_links: bool = False) -> RuleList | None:
    """The rules of one file; None when there are none or the file must not be read (a link, a FIFO, too large)."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        if not follow_links and os.path.islink(file):
            return None
        descriptor = os.open(file, flags)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_RULE_FILE:
            return None
        data = os.read(descriptor, MAX_RULE_FILE)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    rules = parse_rules(data, source, fold)
    return rules if rules.rules else None


def parse_rules(data: bytes, source: str, fold: bool = False) -> RuleList:
    """Rules from a file's bytes; a byte order mark, CRLF, blanks at line ends and escapes are read as git does."""
    rules: list[tuple[Rule, bytes, bool]] = []
    for number, raw in enumerate(data.removeprefix(_BOM).split(b"\n"), start=1):
        if not raw or raw.startswith(b"#"):
            continue
        line = _trim(raw.removesuffix(b"\r").partition(b"\0")[0])
        pattern = line
        negated = pattern.startswith(b"!")
        if negated:
            pattern = pattern[1:]
        directory_only = pattern.endswith(b"/")
        if directory_only:
            pattern = pattern[:-1]
        if pattern:
            rules.append((Rule(os.fsdecode(line), source, number, negated), pattern, directory_only))
    return RuleList(rules, fold)


def _trim(line: bytes) -> bytes:
    """The line without trailing blanks, unless a backslash keeps one. Tabs stay."""
    cut = line.rstrip(b" ")
    if cut == line:
        return line
    backslashes = len(cut) - len(cut.rstrip(b"\\"))
    return cut + b" " if backslashes % 2 else cut


Match = Callable[[bytes, int], object]


@dataclass(slots=True)
class _Table:
    """The patterns that concern files, or directories, by how they are looked up; values are positions in the list."""

    names: dict[bytes, int] = field(default_factory=dict[bytes, int])
    suffixes: dict[int, dict[bytes, int]] = field(default_factory=dict[int, dict[bytes, int]])
    paths: dict[bytes, int] = field(default_factory=dict[bytes, int])
    # (position, whether to look at the whole path, literal prefix, match), last first
    globs: list[tuple[int, bool, bytes, Match]] = field(default_factory=list[tuple[int, bool, bytes, Match]])


class RuleList:
    """The rules of one file, arranged so that the usual kinds (a name, `*.suffix`, a path) cost one look-up for all."""

    def __init__(self, rules: list[tuple[Rule, bytes, bool]], fold: bool) -> None:
        self.rules = [rule for rule, _, _ in rules]
        self._fold = fold
        self._files, self._directories = _Table(), _Table()
        self._openers: list[list[bytes]] = []
        for position, (rule, pattern, directory_only) in enumerate(rules):
            self._add(self._directories, position, pattern)
            if not directory_only:
                self._add(self._files, position, pattern)
            components = pattern.removeprefix(b"/").split(b"/")
            if rule.negated and components[0] != b"**":
                self._openers.append(components)
        self._files.globs.reverse()
        self._directories.globs.reverse()

    def match(self, path: bytes, is_directory: bool) -> Rule | None:
        """The last rule that matches `path`, which is relative to the rules' base."""
        if self._fold:
            path = path.lower()
        table = self._directories if is_directory else self._files
        name = path[path.rfind(b"/") + 1 :]
        best = table.names.get(name, -1)
        for length, suffixes in table.suffixes.items():
            if length <= len(name):
                best = max(best, suffixes.get(name[len(name) - length :], -1))
        if table.paths:
            best = max(best, table.paths.get(path, -1))
        for position, whole, prefix, match in table.globs:
            if position < best:
                break
            subject = path if whole else name
            if subject.startswith(prefix) and match(subject, len(prefix)):
                best = position
                break
        return self.rules[best] if best >= 0 else None

    def opens(self, directory: bytes) -> bool:
        """Whether a negated rule with a slash can match something under `directory`."""
        if not self._openers:
            return False
        parts = (directory.lower() if self._fold else directory).split(b"/")
        return any(_leads_below(components, parts, self._fold) for components in self._openers)

    def _add(self, table: _Table, position: int, pattern: bytes) -> None:
        whole = b"/" in pattern
        if whole:
            pattern = pattern.removeprefix(b"/")
        plain = literal_prefix(pattern)
        if not pattern:
            return
        if plain == len(pattern):
            (table.paths if whole else table.names)[pattern.lower() if self._fold else pattern] = position
        elif not whole and pattern.startswith(b"*") and literal_prefix(tail := pattern[1:]) == len(tail):
            table.suffixes.setdefault(len(pattern) - 1, {})[tail.lower() if self._fold else tail] = position
        else:
            # Git compares the literal beginning first and matches only what is left, so that `a**/b`
            # begins a component with its stars; names are matched as a whole.
            prefix = pattern[:plain]
            glob = compile_glob(pattern[plain:], self._fold)
            if glob is not None:
                table.globs.append((position, whole, prefix.lower() if self._fold else prefix, glob.match))


def _leads_below(components: list[bytes], parts: list[bytes], fold: bool) -> bool:
    for i, part in enumerate(parts):
        if i >= len(components):
            return False
        if components[i] == b"**":
            return True
        glob = compile_glob(components[i], fold)
        if glob is None or not glob.match(part):
            return False
    return len(components) > len(parts)


def _last_match(lists: tuple[tuple[int, RuleList], ...], path: bytes, is_directory: bool) -> Rule | None:
    for base, rules in lists:
        rule = rules.match(path[base:], is_directory)
        if rule is not None:
            return rule
    return None
