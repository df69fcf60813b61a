"""Reading a judge's reply: strictly, and never anything but the judge's own last object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from medtasks_ext.answers.normalise import strip_reasoning

_LONGEST = 200_000


class UnreadableError(Exception):
    """A reply that holds no verdict; says why in a few words."""


def verdict_schema(names: Iterable[str], fields: Mapping[str, list[Any] | str]) -> dict[str, Any]:
    """JSON Schema of a verdict: an object per name, each with all fields and nothing else."""
    return _object({name: _object({key: _field(kind) for key, kind in fields.items()}) for name in names})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _field(kind: list[Any] | str) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"type": "string"}
    types = {bool: "boolean", int: "integer", str: "string"}
    return {"type": types[type(kind[0])], "enum": list(kind)}


def read_verdict(
    reply: str, names: list[str], fields: Mapping[str, list[Any] | str], shown: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """The verdict in a reply.

    It is the last complete top-level JSON object that the judge did not copy from a text it was
    shown. It must have exactly the schema's keys and values; nothing is repaired or guessed. Two objects
    that satisfy the schema and disagree are no verdict.

    Args:
        reply: what the judge wrote; a reasoning trace is left out.
        names: keys of the object.
        fields: keys of each value, with the values they may have.
        shown: the texts that were under review, as the judge saw them.

    Raises:
        UnreadableError: there is no such object, or it does not satisfy the schema.
    """
    found = list(_objects(strip_reasoning(reply)[-_LONGEST:]))
    if not found:
        raise UnreadableError("no JSON object in the reply")
    seen = [_squeezed(text) for text in shown if "{" in text]
    own = [value for source, value in found if not any(_squeezed(source) in text for text in seen)]
    if not own:
        raise UnreadableError("only a copy of an object in the rated text")
    verdict: dict[str, dict[str, Any]] = own[-1]
    _check(verdict, names, fields)
    if any(value != verdict and _is_valid(value, names, fields) for value in own[:-1]):
        raise UnreadableError("two verdicts that disagree")
    return verdict


def _is_valid(value: Any, names: list[str], fields: Mapping[str, list[Any] | str]) -> bool:
    try:
        _check(value, names, fields)
    except UnreadableError:
        return False
    return True


def _check(verdict: Any, names: list[str], fields: Mapping[str, list[Any] | str]) -> None:
    _check_keys(verdict, names, "the object")
    for name in names:
        _check_keys(verdict[name], fields, name)
        for key, kind in fields.items():
            value = verdict[name][key]
            if isinstance(kind, str):
                if not isinstance(value, str):
                    raise UnreadableError(f"{name}.{key} is not a text")
            elif not any(type(value) is type(allowed) and value == allowed for allowed in kind):
                raise UnreadableError(f"{name}.{key} is not one of {', '.join(map(str, kind))}")


def _check_keys(value: Any, wanted: Iterable[str], what: str) -> None:
    if not isinstance(value, dict) or set(value) != set(wanted):
        raise UnreadableError(f"{what} does not have exactly the keys {', '.join(wanted)}")


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise UnreadableError("a key occurs twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise UnreadableError(f"{name} is not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)
#: Marks that say where objects and their strings begin and end.
_MARK = re.compile(r'\\.|["{}]', re.DOTALL)
#: What follows the brace of an object; a brace in prose is none.
_OPENS = re.compile(r'\{\s*["}]')


def _objects(text: str) -> Iterator[tuple[str, Any]]:
    """(source, value) of the top-level objects, in one pass; an unfinished object holds none."""
    depth, start, in_string = 0, 0, False
    for found in _MARK.finditer(text):
        mark, place = found[0], found.start()
        if depth == 0:
            if mark == "{" and _OPENS.match(text, place):
                depth, start = 1, place
        elif mark == '"':
            in_string = not in_string
        elif not in_string and mark in "{}":
            depth += 1 if mark == "{" else -1
            if depth == 0:
                source = text[start : place + 1]
                try:
                    yield source, _decoder.decode(source)
                except RecursionError:
                    raise UnreadableError("nested too deeply") from None
                except ValueError:  # no JSON, or a number with thousands of digits
                    continue
