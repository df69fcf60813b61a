"""Reading a judge's reply: strictly, and never anything but the judge's own last object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers.normalise import strip_reasoning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


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
    shown. It must have exactly the schema's keys and values; nothing is repaired or guessed.

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
    return verdict


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


def _objects(text: str) -> Iterator[tuple[str, Any]]:
    """(source, value) of the top-level objects. What an unfinished object holds is not top-level."""
    place = text.find("{")
    while place >= 0:
        try:
            value, end = _decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
                return
            end = place + 1
        except RecursionError:
            raise UnreadableError("nested too deeply") from None
        else:
            yield text[place:end], value
        place = text.find("{", end)
