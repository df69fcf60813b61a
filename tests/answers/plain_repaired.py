"""The repaired reading of events once more: character by character, apart from the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SEPARATORS = ",;、|"
EMPHASIS = "*`"


def names_in(line: str, names: Sequence[str]) -> list[tuple[int, int, str, str]]:
    """(start of its separator, end of its colon, separator, name) of each field that counts in a line."""
    found: list[tuple[int, int, str, str]] = []
    i, last_end = 0, 0
    while i < len(line):
        for name in sorted(names, key=len, reverse=True):
            end = i + len(name)
            while (
                line.startswith(name, i)
                and end < len(line)
                and (line[end].isspace() or line[end] in EMPHASIS)
            ):
                end += 1
            if not line.startswith(name, i) or line[end : end + 1] != ":":
                continue
            back = i - 1
            while back >= last_end and (line[back].isspace() or line[back] in EMPHASIS):
                back -= 1
            if back >= last_end and line[back] in SEPARATORS and found:
                found.append((back, end + 1, line[back], name))
            elif not found and (i == 0 or not (line[i - 1].isalnum() or line[i - 1] == "_")):
                found.append((0, end + 1, "", name))
            else:
                continue
            last_end = i = end + 1
            break
        else:
            i += 1
    return found


def bare(value: str) -> str:
    value = value.strip()
    while value and value[-1] in SEPARATORS:
        value = value[:-1].rstrip(SEPARATORS + " ")
    inside = value
    while inside and inside[0] in EMPHASIS + " ":
        inside = inside[1:]
    while inside and inside[-1] in EMPHASIS + " ":
        inside = inside[:-1]
    return inside or value


def events(
    text: str,
    names: Sequence[str],
    *,
    subject: str,
    absent: Mapping[str, str] | None = None,
    lists: Sequence[str] = (),
) -> list[list[str]]:
    found = []
    for line in text.split("\n"):
        places = names_in(line, names)
        groups: list[dict[str, str]] = [{}]
        for number, (_, end, separator, name) in enumerate(places):
            if number + 1 < len(places):
                value = line[end : places[number + 1][0]]
            else:
                value = line[end:]
                if ";" in value:
                    value = value[: value.rindex(";")]
            if name in groups[-1]:
                if name != subject and separator != ";":
                    continue
                groups.append({})
            groups[-1][name] = bare(value)
        for group in groups:
            event = [group.get(name, (absent or {}).get(name)) for name in names]
            if group.get(subject) and None not in event:
                found.append(
                    [
                        as_set(value) if name in lists else value
                        for name, value in zip(names, event, strict=True)
                    ]
                )
    return found


def as_set(value: Any) -> str:
    value = value.strip("[]【】")
    for mark in "、;":
        value = value.replace(mark, ",")
    return ",".join(sorted({item.strip() for item in value.split(",") if item.strip()}))


def reading(block: Mapping[str, Any], text: str) -> list[list[str]] | None:
    """What a task's `answer:` block makes of a normalised response."""
    fields = [name.lower() for name in block["fields"]]
    if block["kind"] == "attribute_lines":
        found = events(text, fields, subject=fields[0], absent=dict.fromkeys(fields, "not mentioned"))
        return found or None
    every = [name.lower() for name in block.get("all_fields", fields)]
    lists = fields[1:3] if block["patterns"] == ["bracketed"] else []
    absent = dict.fromkeys([*lists, *every[len(fields) :]], "")
    found = events(text, every, subject=block.get("subject", fields[0]), absent=absent, lists=lists)
    if block["kind"] == "relation_lines":
        found = [[*sorted(event[:2]), event[2]] for event in found]
    return found or None
