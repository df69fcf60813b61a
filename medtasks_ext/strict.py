"""The base of what users write: task files, juries, forms; and what is wrong with such a file, in words."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError

from medtasks_ext.errors import MedtasksError, near

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails

MadeT = TypeVar("MadeT")


class Strict(BaseModel):
    """Refuses fields that it does not know, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """What editors and pages of reference say of a field is its comment `#:`, beside or above it."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, said in _comments(cls.__module__).get(cls.__name__, {}).items():
            if field := cls.model_fields.get(name):
                properties[field.alias or name]["description"] = said
        return schema


@cache
def _comments(module: str) -> dict[str, dict[str, str]]:
    source = inspect.getsource(sys.modules[module])
    lines, found = source.split("\n"), dict[str, dict[str, str]]()
    for made in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for node in made.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                said, place = [lines[(node.end_lineno or 0) - 1].partition("  #: ")[2]], node.lineno - 2
                while (above := lines[place].strip()).startswith("#: "):
                    said.insert(0, above[3:])
                    place -= 1
                if text := " ".join(filter(None, said)):
                    found.setdefault(made.name, {})[node.target.id] = text
    return found


#: what pydantic calls a fault -> what is wrong, in plain words
_FAULTS = {
    "missing": "missing key",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "bool_parsing": "should be true or false",
    "string_type": "should be a text (put it in quotes: YAML reads a bare no, a number or a date as such)",
    "list_type": "should be a list",
    "dict_type": "should be a mapping of keys",
    "model_type": "should be a mapping of keys",
}


def fault_of(error: ErrorDetails, root: str = "", known: Iterable[str] = ()) -> str:
    """As `root.path: message`, in plain words and without the value; near names are those of `known` keys."""
    path = ".".join(str(part) for part in (root, *error["loc"]) if part != "" and not _is_form(part))
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    message = _FAULTS.get(error["type"], message)
    if error["type"] == "extra_forbidden":
        message = f"unknown key{near(str(error['loc'][-1]), known)}"
    return f"{path}: {message}" if path else message


def faults_of(error: ValidationError, root: str = "", known: Iterable[str] = ()) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(fault_of(item, root, known) for item in nearest_faults(error)))


def nearest_faults(error: ValidationError) -> list[ErrorDetails]:
    """The faults; where a value may have several forms, those of the form that it comes nearest to."""
    faults, deepest = error.errors(), dict[tuple[int | str, ...], int]()
    forms = [next((at for at, part in enumerate(item["loc"]) if _is_form(part)), None) for item in faults]
    for item, at in zip(faults, forms, strict=True):
        if at is not None:
            deepest[item["loc"][:at]] = max(len(item["loc"]), deepest.get(item["loc"][:at], 0))
    return [
        item
        for item, at in zip(faults, forms, strict=True)
        if at is None or len(item["loc"]) == deepest[item["loc"][:at]]
    ]


def _is_form(part: int | str) -> bool:
    """Whether a part of a fault's place is the form that a value might have, as pydantic calls it."""
    return isinstance(part, str) and re.fullmatch(r"(list|dict)\[.*\]", part) is not None


def validated(
    make: Callable[[], MadeT],
    root: str = "",
    *,
    where: object,
    remedy: str = "",
    first: bool = False,
    known: Iterable[str] = (),
) -> MadeT:
    """What is made of a user's content; MedtasksError with its faults, or the first, in plain words."""
    try:
        return make()
    except ValidationError as error:
        faults = faults_of(error, root, known)
        what = faults[0] if first else "; ".join(faults)
        raise MedtasksError(what, where=where, remedy=remedy) from None
