"""Lists of objects in a row as the JSON text that answers are written in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from medtasks_ext.privacy import RowValueError, excerpt


def json_objects(items: Any, fields: list[str] | Mapping[str, str]) -> str:
    """A JSON array with an object per line, of the named fields in their order, without repeats.

    Args:
        fields: names; or name -> where the value lies, `object.@value` for a field of a field. Fields that
            an object lacks, and nulls, are left out.

    Raises:
        ValueError: it is no list of objects.
    """
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise RowValueError(f"{excerpt(items)} is no list of objects")
    paths = fields if isinstance(fields, dict) else {name: name for name in fields}
    objects = []
    for item in items:
        found = {name: value for name, path in paths.items() if (value := _at(item, path)) is not None}
        objects.append(json.dumps(found, ensure_ascii=False))
    return "[\n" + ",\n".join(dict.fromkeys(objects)) + "\n]" if objects else "[]"


def _at(item: Any, path: str) -> Any:
    for name in path.split("."):
        item = item.get(name) if isinstance(item, dict) else None
    return item


def renamed(objects: Any, **names: str) -> Any:
    """Objects with keys of other names: `rubrics | renamed(text='criterion', weight='points')`.

    Args:
        objects: a list of objects; anything else is given back as it is, for whoever checks it.
        names: new key -> old key. Other keys stay.
    """
    if not isinstance(objects, list):
        return objects
    return [
        {**item, **{new: item[old] for new, old in names.items() if old in item}}
        if isinstance(item, dict)
        else item
        for item in objects
    ]
