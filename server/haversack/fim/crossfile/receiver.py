"""What stands before the dot at a cursor, and of what type it is, as far as the lines above tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BEFORE = re.compile(r"([A-Za-z_]\w*)(?:\(\))?[ \t]*(?:\?\.|\.|->|::)[ \t]*\w*$")
_SELF = frozenset({"self", "this", "cls", "super", "Self"})
_CLASS = re.compile(
    r"^[ \t]*(?:[\w@]+[ \t]+)*(?:class|struct|interface|trait|impl(?:<[^>]*>)?)[ \t]+(?:.*\bfor[ \t]+)?([A-Za-z_]\w*)"
)
_GO_METHOD = re.compile(r"^func[ \t]*\([ \t]*(\w+)[ \t]+\*?(\w+)")
_BASES = re.compile(r"class[ \t]+\w+[ \t]*(?:\(([^)]*)\)|(?:<[^>]*>)?[ \t]*(?:extends|:)[ \t]*([^{]*))")
_TYPE_WORD = re.compile(r"[A-Za-z_]\w*")
_WRAPPERS = frozenset(
    re.findall(
        r"\w+",
        """Optional List Sequence Iterable Iterator Union Final ClassVar Annotated None const mut dyn impl Box Rc Arc
        Option Result Vec Promise Array Readonly Partial std unique_ptr shared_ptr vector static final public private
        protected struct string number boolean str int float bool dict list tuple set Dict Type type""",
    )
)
# A declaration stands within a screen or a few above its use.
_MOST_LINES = 400


def receiver_of(line_before: str) -> str:
    """The name before the last dot, arrow or `::`; "" when the cursor stands after none."""
    match = _BEFORE.search(line_before)
    return match[1] if match else ""


def types_of(name: str, lines: Sequence[str], line: int) -> tuple[str, ...]:
    """Types that the lines above give to a name: annotations, parameters, constructors; the class for self and this.

    Nearest first. A name that begins with a capital may itself be the type.
    """
    if name in _SELF:
        return enclosing_types(lines, line)
    escaped = re.escape(name)
    forms = (
        rf"\b{escaped}\??[ \t]*:[ \t]*&?(?:mut[ \t]+|'\w+[ \t]+)*([\w.\[\]<>, |:]+)",  # name: Type
        rf"\b{escaped}[ \t]*:?=[ \t]*(?:await[ \t]+|new[ \t]+|&|\*)*([A-Za-z_][\w.:]*)[ \t]*[({{<]",  # name = Type(
        rf"\b([A-Za-z_][\w.]*(?:<[\w, .?<>]*>)?)[ \t*&]+{escaped}\b[ \t]*[=;,)\[:]",  # Type name
        rf"\b{escaped}[ \t]+[*\[\]]*([A-Za-z_][\w.]*)",  # name Type, in Go
    )
    found: dict[str, None] = {}
    for number in range(min(line, len(lines) - 1), max(-1, line - _MOST_LINES), -1):
        text = lines[number]
        if name not in text:
            continue
        for form in forms:
            for match in re.finditer(form, text):
                for word in _TYPE_WORD.findall(match[1]):
                    if word not in _WRAPPERS and (word[:1].isupper() or "_t" in word[-2:] or form is forms[3]):
                        found[word] = None
        method = _GO_METHOD.match(text)
        if method and method[1] == name:
            found[method[2]] = None
        if len(found) >= 4:
            break
    if name[:1].isupper():
        found[name] = None
    return tuple(found)


def enclosing_types(lines: Sequence[str], line: int) -> tuple[str, ...]:
    """The class around a line by its indentation, and its bases."""
    depth = 10_000
    for number in range(min(line, len(lines) - 1), max(-1, line - 4 * _MOST_LINES), -1):
        text = lines[number]
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip())
        match = _CLASS.match(text)
        if match and indent < depth:
            return (match[1], *bases_of(text))
        method = _GO_METHOD.match(text)
        if method:
            return (method[2],)
        if number != line:
            depth = min(depth, indent)
    return ()


def bases_of(header: str) -> tuple[str, ...]:
    match = _BASES.search(header)
    words = _TYPE_WORD.findall(match[1] or match[2] or "") if match else []
    return tuple(word for word in words if word[:1].isupper() and word not in _WRAPPERS)
