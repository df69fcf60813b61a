"""Reading a judge's reply: strictly, and never anything but the judge's own verdict.

A verdict in our words carries a code that is computed from all texts of the request, so that none of
them can know it. An object without the code is no verdict, whoever wrote it and however it is spelt.
A suite's own words ask for no code. There a reply counts only if it is one object and nothing else, so
that no quotation can stand beside the verdict, or in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.answers.text import tagged
from medtasks_ext.jsonfile import Json, JsonError, parse_json

if TYPE_CHECKING:
    from medtasks_ext.registry.blocks import OfficialJury

#: How judges write a truth value.
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: The key of the code.
CODE = "code"
_LONGEST = 200_000
_NO_OBJECT = "no JSON object in the reply"

#: axis or point -> field -> value
Verdict: TypeAlias = dict[str, Json]
#: field of a verdict -> the values that it may have, or `text`
Fields: TypeAlias = Mapping[str, list[Any] | str]


class UnreadableError(Exception):
    """A reply that holds no verdict; says why in a few words."""


def verdict_schema(names: Iterable[str], fields: Fields, *, coded: bool) -> Json:
    """JSON Schema of a verdict: an object per name, each with all fields and nothing else.

    The value of the code is left to the judge: a server that forced it would put it into a copy, too.
    """
    types = {bool: "boolean", int: "integer", str: "string"}
    text: Json = {"type": "string"}
    one = {
        key: text if isinstance(kind, str) else {"type": types[type(kind[0])], "enum": list(kind)}
        for key, kind in fields.items()
    }
    return _object({**({CODE: text} if coded else {}), **{name: _object(one) for name in names}})


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_verdict(reply: str, names: list[str], fields: Fields, code: str) -> Verdict:
    """The verdict in a reply: the last top-level JSON object that carries the request's code.

    It must have exactly the schema's keys and values; nothing is repaired or guessed. Two such objects
    that satisfy the schema and disagree in a rating are no verdict (UnreadableError).
    """
    text = reply[-_LONGEST:]
    sources = _sources(without_reasoning(text))
    own = _coded(sources, code) or _coded(_sources(text), code)  # a verdict may quote the end of a trace
    if not own:
        raise UnreadableError("no object with the request's code" if sources else _NO_OBJECT)
    verdicts = [{key: value for key, value in item.items() if key != CODE} for item in own]
    verdict = _checked(verdicts[-1], names, fields)
    for item in verdicts[:-1]:
        with suppress(UnreadableError):
            if _ratings(_checked(item, names, fields), fields) != _ratings(verdict, fields):
                break
    else:
        return verdict
    raise UnreadableError("two verdicts that disagree")


def read_only_verdict(
    reply: str, names: list[str], fields: Fields, shown: Iterable[str], *, bare: str | None = None
) -> Verdict:
    """The verdict that a reply is: one JSON object, in a fence or not, and nothing else.

    An object of the texts under review (`shown`), compared by value, is not the judge's own where a verdict
    holds an explanation in the judge's words. `bare`: the one key that the object leaves out.
    """
    said = without_reasoning(reply).strip()
    try:
        given = parse_json(fence[1] if (fence := _FENCED.fullmatch(said)) else said, strict=True)
    except JsonError as error:
        raise UnreadableError("the reply is not one JSON object" if error.line else str(error)) from None
    verdict = _checked({bare: given} if bare else given, names, fields)
    texts = [key for key, kind in fields.items() if isinstance(kind, str)]
    explained = any(verdict[name][key].strip() for name in names for key in texts)
    least = len("{}") if bare else sum(map(len, names))  # other spellings are longer
    if explained and any(
        given == _value(source) for text in shown for source in _sources(text) if len(source) > least
    ):
        raise UnreadableError("a copy of an object in the rated text")
    return verdict


_FENCED = re.compile(r"```(?:json)?[^\S\n]*\n(.*)\n[^\S\n]*```", re.IGNORECASE | re.DOTALL)


def _ratings(verdict: Verdict, fields: Fields) -> dict[str, list[Any]]:
    rated = [key for key, kind in fields.items() if not isinstance(kind, str)]
    return {name: [value[key] for key in rated] for name, value in verdict.items()}


def _checked(given: Any, names: list[str], fields: Fields) -> Verdict:
    """What satisfies the schema; a truth value may be written as models write one."""
    _check_keys(given, names, "the object")
    verdict: Verdict = {}
    for name in names:
        _check_keys(given[name], fields, name)
        verdict[name] = dict(given[name])
        for key, kind in fields.items():
            value = given[name][key]
            if isinstance(kind, str):
                if not isinstance(value, str):
                    raise UnreadableError(f"{name}.{key} is not a text")
                continue
            if isinstance(kind[0], bool):
                value = verdict[name][key] = _TRUTH.get(str(value).strip().lower(), value)
            if not any(type(value) is type(allowed) and value == allowed for allowed in kind):
                raise UnreadableError(f"{name}.{key} is not one of {', '.join(map(str, kind))}")
    return verdict


def _check_keys(value: Any, wanted: Iterable[str], what: str) -> None:
    if not isinstance(value, dict) or set(value) != set(wanted):
        raise UnreadableError(f"{what} does not have exactly the keys {', '.join(wanted)}")


#: Marks that say where objects, their strings and reasoning traces begin and end.
_MARK = re.compile(r'\\.|["{}]|</?think>', re.DOTALL)
#: What follows the brace of an object; a brace in prose is none.
_OPENS = re.compile(r'\{\s*["}]')


def _sources(text: str) -> list[str]:
    """The top-level objects outside of reasoning traces, in one pass; an unfinished object holds none."""
    sources: list[str] = []
    depth, start, in_string, thinks = 0, 0, False, False
    for match in _MARK.finditer(text):
        mark, place = match[0], match.start()
        if depth == 0:
            if mark[0] == "\\":  # escapes nothing outside of strings
                mark, place = mark[1], place + 1
            if mark == "{" and _OPENS.match(text, place):
                depth, start = 1, place
            elif mark == "</think>":
                sources, thinks = [], False
            elif mark == "<think>":
                thinks = True
        elif mark == '"':
            in_string = not in_string
        elif not in_string and mark in "{}":
            depth += 1 if mark == "{" else -1
            if depth == 0 and not thinks:
                sources.append(text[start : place + 1])
    return sources


def _value(source: str) -> Any:
    """What an object holds; None for prose in braces, a key twice, a number of thousands of digits."""
    try:
        return parse_json(source, strict=True)
    except JsonError:
        return None


def _coded(sources: list[str], code: str) -> list[Json]:
    values = [_value(source) for source in sources if code in source]
    return [value for value in values if value is not None and value.get(CODE) == code]


_MOST_BRACES = 2_000  # that are tried as the beginning of an object


def read_released(reply: str, jury: OfficialJury, axes: Iterable[str], rating: str, *, rated: str) -> Verdict:
    """The verdict in a reply, by the rule of a released jury; none in favour of an answer that holds one."""
    text = reply[-_LONGEST:]
    names = {axis: jury.fields.get(axis, axis) for axis in axes}
    verdict = _verdict(text, jury, names, rating)
    held = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), rated)
    if any(verdict[axis][rating] and _may_be_quoted(text, held, name, jury) for axis, name in names.items()):
        raise UnreadableError("the answer itself holds a verdict of this form")
    return verdict


def _verdict(
    text: str, jury: OfficialJury, names: Mapping[str, str], rating: str
) -> dict[str, dict[str, bool]]:
    if jury.form == "yes":
        lower = text.lower()
        return {axis: {rating: "yes" in lower and "no" not in lower} for axis in names}
    spans = {name: next(tagged(text, name), None) for name in names.values()}
    in_tags = {name: text[slice(*span)] for name, span in spans.items() if span}
    found: Mapping[str, object] = in_tags if jury.form == "tags" else _last_object(text)
    if not found:
        raise UnreadableError("no tag of a verdict" if jury.form == "tags" else _NO_OBJECT)
    return {
        axis: {rating: _said(found.get(name), inverted=axis in jury.inverted)} for axis, name in names.items()
    }


def _may_be_quoted(reply: str, rated: str, name: str, jury: OfficialJury) -> bool:
    if jury.form == "tags":
        return f"<{name}>" in rated
    if jury.form == "object":
        return f'"{name}"' in rated
    return "yes" in rated.lower() and re.sub(r"\W|_", "", reply).lower() != "yes"


def _last_object(text: str) -> dict[str, object]:
    end = text.rfind("}") + 1
    begin = end
    for _ in range(_MOST_BRACES):
        begin = text.rfind("{", 0, begin)
        if begin < 0:
            break
        try:
            value = json.loads(text[begin:end])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value or {"": None}
    return {}


def _said(value: object, *, inverted: bool) -> bool:
    """Whether a value counts for the answer; what is not said never does."""
    if value is None:
        return False
    if isinstance(value, str):
        lower = value.strip().lower()
        value = "true" in lower and "false" not in lower
    return bool(value) != inverted
