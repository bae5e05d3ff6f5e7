"""Where a repository begins, and the few settings of git that decide what it ignores.

Config files are read as text; `include` directives are not followed and `GIT_DIR` is not heeded, because the folder
a user opened is what counts here, not the environment the editor happened to be started from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}

# Config files are a few kilobytes; this bounds what a hostile one can cost.
_MAX_CONFIG = 1_000_000


@dataclass(frozen=True, slots=True)
class Repository:
    """`top` is the working tree's root; `common_dir` holds `info/exclude` and `config`, also for worktrees."""

    top: Path
    common_dir: Path


def find_repository(folder: Path) -> Repository | None:
    """The innermost repository whose working tree holds `folder` (absolute, links resolved)."""
    for candidate in (folder, *folder.parents):
        repository = repository_at(candidate)
        if repository is not None:
            return repository
    return None


def repository_at(folder: Path) -> Repository | None:
    """The repository whose working tree begins exactly at `folder`, if there is one."""
    marker = folder / ".git"
    if marker.is_dir():
        git_dir = marker
    else:
        text = _read(marker)
        if not text.startswith("gitdir:"):
            return None
        git_dir = folder / text.removeprefix("gitdir:").strip()
    if not os.path.lexists(git_dir / "HEAD"):
        return None
    common = _read(git_dir / "commondir").strip()
    return Repository(folder, git_dir / common if common else git_dir)


def global_excludes(repository: Repository | None) -> Path | None:
    """The user's own ignore file: `core.excludesFile`, else the default place; it need not exist."""
    value = _setting("excludesfile", repository)
    if value is None:
        return _config_home() / "git" / "ignore"
    if not value:
        return None
    path = Path(os.path.expanduser(value))
    if path.is_absolute():
        return path
    return repository.top / path if repository is not None else None


def ignores_case(repository: Repository | None) -> bool:
    """Whether names are compared without regard to ASCII case, as git sets up on such file systems."""
    return (_setting("ignorecase", repository) or "false").lower() in ("true", "yes", "on", "1")


def _setting(key: str, repository: Repository | None) -> str | None:
    """The last value of `core.<key>`, in git's order of files."""
    found: str | None = None
    for file in _config_files(repository):
        for name, value in _core_settings(_read(file)):
            if name == key:
                found = value
    return found


def _config_files(repository: Repository | None) -> Iterator[Path]:
    if os.environ.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on"):
        yield Path(os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    override = os.environ.get("GIT_CONFIG_GLOBAL")
    if override is not None:
        yield Path(override)
    else:
        yield _config_home() / "git" / "config"
        yield Path(os.path.expanduser("~/.gitconfig"))
    if repository is not None:
        yield repository.common_dir / "config"


def _config_home() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME")
    return Path(configured) if configured else Path(os.path.expanduser("~/.config"))


def _core_settings(text: str) -> Iterator[tuple[str, str]]:
    in_core = False
    for raw in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        line = raw.strip()
        if line.startswith("["):
            header, _, line = line[1:].partition("]")
            in_core = header.strip().lower() == "core"
            line = line.strip()
        if not in_core or not line or line[0] in "#;":
            continue
        name, equals, value = line.partition("=")
        yield name.strip().lower(), _unquote(value.strip()) if equals else "true"


def _unquote(value: str) -> str:
    """A config value without quotes, escapes, trailing comment and trailing blanks."""
    out: list[str] = []
    keep = 0  # characters that trailing blanks must not be cut from
    quoted = False
    characters = iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            out.append(_ESCAPES.get(escaped, escaped))
            keep = len(out)
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            out.append(character)
            if quoted or not character.isspace():
                keep = len(out)
    return "".join(out[:keep])


def _read(file: Path) -> str:
    """The file's text, or nothing when it cannot be read: a missing setting is the normal case."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as handle:
            return os.fsdecode(handle.read(_MAX_CONFIG))
    except (OSError, ValueError):
        return ""
