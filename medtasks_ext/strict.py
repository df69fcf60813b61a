"""The base of what users write: task files, juries, forms; and what is wrong with such a file, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from medtasks_ext.errors import MedtasksError, near

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MadeT = TypeVar("MadeT")


class Strict(BaseModel):
    """Refuses fields that it does not know, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
) -> MadeT:
    """What is made of a user's content; MedtasksError with its faults, or the first, in plain words."""
    try:
        return make()
    except ValidationError as error:
        faults = faults_of(error, root)
        what = faults[0] if first else "; ".join(faults)
        raise MedtasksError(what, where=where, remedy=remedy) from None
