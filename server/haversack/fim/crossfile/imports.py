"""Which files of the workspace a text imports, read from its lines: a text being typed in rarely parses."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

_PYTHON = re.compile(
    r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|^[ \t]*import[ \t]+([\w., \t]+)", re.M
)
_SCRIPT = re.compile(
    r"(?:import|export)\s+(?:type\s+)?([^;'\"]*?)\s*from\s*['\"]([^'\"\n]+)['\"]"
    r"|import\s*['\"]([^'\"\n]+)['\"]"
    r"|(?:(?:const|let|var)\s+([^=;]+?)\s*=\s*)?(?:require|import)\(\s*['\"]([^'\"\n]+)['\"]\s*\)"
)
_GO_BLOCK = re.compile(r"^import\s*(\([^)]*\)|[^\n]+)", re.M)
_QUOTED = re.compile(r"\"([^\"\n]+)\"")
_RUST = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?(?:use[ \t]+([^;]+);|mod[ \t]+(\w+)[ \t]*;)", re.M)
_JAVA = re.compile(r"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]+(?:\.\*)?)[ \t]*;", re.M)
_C = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.M)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_SCRIPT_ENDINGS = (".ts", ".tsx", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs", ".d.ts")
_FAMILY = {
    "typescriptreact": "script", "javascriptreact": "script", "typescript": "script", "tsx": "script",
    "javascript": "script", "jsx": "script", "python": "python", "go": "go", "rust": "rust", "java": "java",
    "c": "c", "cpp": "c",
}  # fmt: skip
# Files of a Go package or a Rust module that one import may stand for.
_MOST_FILES = 12


@dataclass(frozen=True, slots=True)
class Import:
    """A module as written and the names taken from it; () stands for the module itself or for all of it."""

    module: str
    names: tuple[str, ...] = ()


class Paths:
    """The paths of a folder, made to be asked by their last parts."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.all = frozenset(paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_folder: dict[str, list[str]] = defaultdict(list)
        for path in sorted(paths):
            folder, _, name = path.rpartition("/")
            self._by_name[name].append(path)
            self._by_folder[folder].append(path)

    def ending_with(self, suffix: str, near: str = "") -> str | None:
        """The path that ends in these parts; of several the one that shares most of its folders with `near`."""
        name = suffix.rsplit("/", 1)[-1]
        found = [path for path in self._by_name.get(name, ()) if path == suffix or path.endswith("/" + suffix)]
        return min(found, key=lambda path: (-len(posixpath.commonprefix([path, near])), len(path), path), default=None)

    def within(self, folder: str) -> Sequence[str]:
        return self._by_folder.get(folder, ())

    def folders_ending_with(self, suffix: str) -> list[str]:
        return [folder for folder in self._by_folder if folder == suffix or folder.endswith("/" + suffix)]


def family_of(language: str) -> str:
    """The languages that import alike: python, script, go, rust, java, c; "" for the others."""
    return _FAMILY.get(language, "")


def imports_of(text: str, language: str) -> tuple[Import, ...]:
    family = family_of(language)
    found: list[Import] = []
    if family == "python":
        for match in _PYTHON.finditer(text):
            if match[1]:
                found.append(Import(match[1], _taken(re.sub(r"#[^\n]*", "", match[2]))))
            else:
                found += [Import(each.split(" as ")[0].strip()) for each in match[3].split(",") if each.strip()]
    elif family == "script":
        for names, module, bare, bound, required in _SCRIPT.findall(text):
            found.append(Import(module or bare or required, _taken(names or bound)))
    elif family == "go":
        found = [Import(module) for block in _GO_BLOCK.findall(text) for module in _QUOTED.findall(block)]
    elif family == "rust":
        for used, module in _RUST.findall(text):
            found += [Import(path) for path in _rust_paths(used)] if used else [Import(f"self::{module}")]
    elif family == "java":
        found = [Import(module) for module in _JAVA.findall(text)]
    elif family == "c":
        found = [Import(module) for module in _C.findall(text)]
    return tuple(found)


def resolve(each: Import, path: str, language: str, paths: Paths) -> tuple[str, ...]:
    """The files that hold what is imported; () for what is not of this workspace."""
    family = family_of(language)
    if family == "python":
        return _python(each, path, paths)
    if family == "script":
        return _script(each.module, path, paths)
    if family == "go":
        parts = each.module.split("/")
        for start in range(len(parts)):
            folders = paths.folders_ending_with("/".join(parts[start:]))
            if folders:
                files = paths.within(min(folders, key=len))
                return tuple(file for file in files if file.endswith(".go") and not file.endswith("_test.go"))[
                    :_MOST_FILES
                ]
        # A module's own root is named for the repository, which no folder inside it is.
        return ()
    if family == "rust":
        return _rust(each.module, path, paths)
    if family == "java":
        return _java(each.module, path, paths)
    if family == "c":
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), each.module))
        found = beside if beside in paths.all else paths.ending_with(each.module, path)
        return (found,) if found else ()
    return ()


def _taken(names: str) -> tuple[str, ...]:
    """The names in `{a, b as c}`, `(a, b)` or `a as b, c`, as their own module calls them."""
    taken = [re.split(r"\s+as\s+|:", part)[0].strip() for part in names.strip("(){} \t\n").split(",")]
    return tuple(name for part in taken for name in _NAME.findall(part)[-1:] if name != "as")


def _python(each: Import, path: str, paths: Paths) -> tuple[str, ...]:
    dots = len(each.module) - len(each.module.lstrip("."))
    inner = each.module[dots:].replace(".", "/")
    if dots:
        folder = posixpath.dirname(path)
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        base = posixpath.join(folder, inner) if inner else folder
        found = [one for one in (f"{base}.py", f"{base}/__init__.py") if one in paths.all]
        found += [one for name in each.names if (one := posixpath.join(base, f"{name}.py")) in paths.all]
        return tuple(found)
    found = [paths.ending_with(f"{inner}.py", path), paths.ending_with(f"{inner}/__init__.py", path)]
    found += [paths.ending_with(f"{inner}/{name}.py", path) for name in each.names]
    return tuple(dict.fromkeys(one for one in found if one))


def _script(module: str, path: str, paths: Paths) -> tuple[str, ...]:
    if not module.startswith("."):
        # `@/x` and `~/x` are what builds call the source folder.
        inner = module.removeprefix("@/").removeprefix("~/")
        if inner == module:
            return ()
        candidates = [paths.ending_with(inner + ending, path) for ending in _SCRIPT_ENDINGS]
        return tuple(one for one in candidates if one)[:1]
    base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
    stem = re.sub(r"\.[mc]?jsx?$", "", base)
    tried = [base, *(stem + ending for ending in _SCRIPT_ENDINGS), *(f"{base}/index{end}" for end in _SCRIPT_ENDINGS)]
    return tuple(one for one in tried if one in paths.all)[:1]


def _rust_paths(used: str) -> list[str]:
    """`a::{b, c::d}` is a::b and a::c::d; groups inside groups are taken apart by their braces."""
    used = re.sub(r"\s+as\s+\w+", "", re.sub(r"//[^\n]*|\s+", " ", used)).replace(" ", "")
    found: list[str] = []
    stack: list[str] = [""]
    current = ""
    for character in used:
        if character == "{":
            stack.append(stack[-1] + current)
            current = ""
        elif character in ",}":
            if current:
                found.append(stack[-1] + current)
            current = ""
            if character == "}" and len(stack) > 1:
                stack.pop()
        else:
            current += character
    return [*found, stack[-1] + current] if current else found


def _rust(module: str, path: str, paths: Paths) -> tuple[str, ...]:
    parts = [part for part in module.split("::") if part and part != "*"]
    if not parts:
        return ()
    folder = posixpath.dirname(path)
    name = posixpath.basename(path)
    # A module's inner ones lie in the folder of its name, those of `mod.rs`, `lib.rs` and `main.rs` beside it.
    inner = folder if name in {"mod.rs", "lib.rs", "main.rs"} else posixpath.join(folder, name.removesuffix(".rs"))
    if parts[0] == "self":
        bases, parts = [inner], parts[1:]
    elif parts[0] == "super":
        bases, parts = [posixpath.dirname(inner)], parts[1:]
    elif parts[0] == "crate":
        root = (
            path.split("/src/", maxsplit=1)[0] + "/src"
            if "/src/" in path
            else ("src" if path.startswith("src/") else folder)
        )
        bases, parts = [root, folder], parts[1:]
    else:
        crate = parts[0].replace("_", "-")
        bases = paths.folders_ending_with(f"{crate}/src") or paths.folders_ending_with(f"{crate.split('-')[-1]}/src")
        bases = [*bases, inner]
        if bases and bases[0].endswith("/src"):
            parts = parts[1:]
    for base in bases:
        for end in range(len(parts), 0, -1):
            stem = posixpath.join(base, *parts[:end])
            for one in (f"{stem}.rs", f"{stem}/mod.rs"):
                if one in paths.all:
                    return (one,)
        for one in (f"{base}/lib.rs", f"{base}/mod.rs"):
            if one in paths.all and one != path:
                return (one,)
    return ()


def _java(module: str, path: str, paths: Paths) -> tuple[str, ...]:
    if module.endswith(".*"):
        folders = paths.folders_ending_with(module.removesuffix(".*").replace(".", "/"))
        return tuple(one for folder in folders for one in paths.within(folder) if one.endswith(".java"))[:_MOST_FILES]
    parts = module.split(".")
    # `import static a.B.c` and `import a.B.Inner` lie in B.java.
    for end in range(len(parts), max(0, len(parts) - 2), -1):
        found = paths.ending_with("/".join(parts[:end]) + ".java", path)
        if found:
            return (found,)
    return ()
