"""Haversack's own messages from and to JSON.

Reading is strict (a number is never taken for text) and names the field that does not fit. Fields that nobody knows are
ignored; `unknown_fields` lists them.
"""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from haversack.lsp import supplied_messages
from haversack.lsp.protocol import MAX_UINT, Share, Uint
from haversack.lsp.supplied_messages import MAX_SAFE_UINT, PATTERNS, Instant, SafeUint
from haversack.types import Authorization, Classification, Priority, Treatment

T = TypeVar("T")


def read(raw: object, cls: type[T]) -> T:
    """`raw` JSON as `cls`; raises what `explain` can put into words."""
    return _converter.structure(raw, cls)


def write(value: object) -> Any:
    """An attrs value of this module as plain JSON data."""
    return _converter.unstructure(value)


def explain(error: BaseException, path: str = "params") -> str:
    """The first field that did not fit, as `params.activeDocument.uri: expected a string`."""
    if isinstance(error, cattrs.ClassValidationError) and error.group_exceptions()[0]:
        inner, note = error.group_exceptions()[0][0]
        return explain(inner, f"{path}.{camel(note.name)}".lstrip("."))
    if isinstance(error, cattrs.IterableValidationError):
        inner, note = error.group_exceptions()[0][0]
        return explain(inner, f"{path}[{note.index}]")
    if isinstance(error, KeyError):
        return f"{path}: missing"
    if isinstance(error, _Unfit):
        return f"{path}: {error}"
    return f"{path}: does not fit"


def unknown_fields(raw: object, cls: object, path: str = "params") -> Iterator[str]:
    """Paths of the fields in `raw` that `cls` does not have; not in closed objects, which are refused for them."""
    for member in (cls, *get_args(cls)):
        if _is_closed(member):
            return
        if isinstance(raw, dict) and isinstance(member, type) and attrs.has(member):
            known = _fields(member)
            for name, value in cast("dict[str, object]", raw).items():
                if name not in known:
                    yield f"{path}.{name}"
                elif isinstance(value, dict | list):
                    yield from unknown_fields(cast("object", value), known[name], f"{path}.{name}")
            return
    if isinstance(raw, list) and (kinds := get_args(cls)) and attrs.has(kinds[0]):
        for place, value in enumerate(cast("list[object]", raw)):
            yield from unknown_fields(value, kinds[0], f"{path}[{place}]")


@cache
def _fields(cls: type) -> Mapping[str, Any]:
    """Names in JSON and types of the fields of an attrs class; looked up once, a conversation has many messages."""
    hints = get_type_hints(cls)
    return {camel(field.name): hints[field.name] for field in attrs.fields(cls)}


def _is_closed(cls: object) -> bool:
    return getattr(cls, "__module__", "") == supplied_messages.__name__ and attrs.has(cast("type", cls))


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class _Unfit(ValueError):
    """A value of the wrong kind, with words for it that name no content."""


def _text(raw: object, _: object) -> str:
    if not isinstance(raw, str):
        raise _Unfit("expected a string")
    return raw


def _object(raw: object, _: object) -> object:
    if not isinstance(raw, dict):
        raise _Unfit("expected an object")
    return cast("dict[str, object]", raw)


def _truth(raw: object, _: object) -> bool:
    if not isinstance(raw, bool):
        raise _Unfit("expected true or false")
    return raw


def _integer(raw: object, _: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise _Unfit("expected an integer")
    return raw


def _uint(raw: object, _: object) -> Uint:
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 <= raw <= MAX_UINT:
        raise _Unfit(f"expected an integer from 0 to {MAX_UINT}")
    return Uint(raw)


def _share(raw: object, _: object) -> Share:
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not math.isfinite(raw) or not 0 <= raw <= 1:
        raise _Unfit("expected a number from 0 to 1")
    return Share(float(raw))


def _safe_uint(raw: object, _: object) -> SafeUint:
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 <= raw <= MAX_SAFE_UINT:
        raise _Unfit(f"expected an integer from 0 to {MAX_SAFE_UINT}")
    return SafeUint(raw)


def _patterned(kind: Any) -> Callable[[object, object], str]:
    pattern, words = PATTERNS[kind]

    def matching(raw: object, _: object) -> str:
        if not isinstance(raw, str) or pattern.fullmatch(raw) is None or (kind is Instant and not _is_instant(raw)):
            raise _Unfit(f"expected {words}")
        return raw

    return matching


def _is_instant(text: str) -> bool:
    """Whether there is such a day and such a time of day: read and written again, it is the same."""
    try:
        instant = datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return False
    return f"{instant.isoformat(timespec='milliseconds')}Z" == text


def _one_of(kind: Any) -> Callable[[object, object], object]:
    """For a set of words: a `Literal` or an enum."""
    known = {str(word): word for word in (get_args(kind) or kind)}

    def member(raw: object, _: object) -> object:
        if not isinstance(raw, str) or raw not in known:
            raise _Unfit(f"expected {' or '.join(known)}")
        return known[raw]

    return member


def _text_or_integer(raw: object, _: object) -> int | str | None:
    if raw is None or isinstance(raw, str) or (isinstance(raw, int) and not isinstance(raw, bool)):
        return raw
    raise _Unfit("expected a string or an integer")


def _is_union_of_objects(kind: Any) -> bool:
    return sum(attrs.has(member) for member in get_args(kind)) > 1


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter()

    def names(cls: type) -> dict[str, Any]:
        return {field.name: override(rename=camel(field.name)) for field in attrs.fields(cls)}

    def structure(cls: type) -> Callable[[object, object], object]:
        fields = cast("Callable[[Any, Any], object]", make_dict_structure_fn(cls, converter, **names(cls)))

        def from_object(raw: object, _: object) -> object:
            if not isinstance(raw, dict):
                raise _Unfit("expected an object")
            given = cast("dict[str, Any]", raw)
            if closed and not given.keys() <= known.keys():
                raise _Unfit(f"has a field that is none of {', '.join(known)}")
            return fields(given, cls)

        closed, known = _is_closed(cls), _fields(cls)
        return from_object

    def union(kind: Any) -> Callable[[object, object], object]:
        """Of objects that say by `kind` which one they are; null where the union has it."""
        members = {get_args(_fields(cls)["kind"])[0]: cls for cls in get_args(kind) if attrs.has(cls)}
        hooks = {name: converter.get_structure_hook(cls) for name, cls in members.items()}

        def from_kind(raw: object, _: object) -> object:
            if raw is None and type(None) in get_args(kind):
                return None
            if not isinstance(raw, dict):
                raise _Unfit("expected an object")
            name = cast("dict[str, object]", raw).get("kind")
            if not isinstance(name, str) or name not in hooks:
                raise _Unfit(f"expected kind {' or '.join(hooks)}")
            return hooks[name](raw, members[name])

        return from_kind

    def unstructure(cls: type) -> Any:
        return cast("Callable[[Any], dict[str, Any]]", make_dict_unstructure_fn(cls, converter, **names(cls)))

    def sequence(kind: Any) -> Any:
        item = get_args(kind)[0]
        each = list[item]

        def from_array(raw: object, _: object) -> object:
            if not isinstance(raw, list):
                raise _Unfit("expected an array")
            return tuple(inner(cast("list[object]", raw), each))

        inner = converter.get_structure_hook(each)
        return from_array

    converter.register_structure_hook_factory(attrs.has, structure)
    converter.register_unstructure_hook_factory(attrs.has, unstructure)
    converter.register_structure_hook_factory(lambda kind: getattr(kind, "__origin__", None) is tuple, sequence)
    converter.register_structure_hook_func(lambda kind: getattr(kind, "__origin__", None) is abc.Mapping, _object)
    converter.register_structure_hook(str, _text)
    for words in (Authorization, Classification, Priority, Treatment):
        converter.register_structure_hook(words, _one_of(words))
    converter.register_structure_hook(bool, _truth)
    converter.register_structure_hook(int, _integer)
    converter.register_structure_hook_func(lambda kind: kind is Uint, _uint)
    converter.register_structure_hook_func(lambda kind: kind is Share, _share)
    converter.register_structure_hook_func(lambda kind: kind is SafeUint, _safe_uint)
    converter.register_structure_hook_factory(lambda kind: kind in PATTERNS, _patterned)
    converter.register_structure_hook_factory(lambda kind: get_origin(kind) is Literal, _one_of)
    converter.register_structure_hook_factory(_is_union_of_objects, union)
    converter.register_structure_hook_func(lambda kind: kind == int | str | None, _text_or_integer)
    return converter


_converter = _make_converter()
