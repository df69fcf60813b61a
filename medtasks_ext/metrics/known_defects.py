"""Known defects of the suites' official scorers, as data: what they do, and what is computed beside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from medtasks_ext.registry.yamlfile import read_yaml

_Strict = ConfigDict(extra="forbid", frozen=True)


class Defect(BaseModel):
    """One rule of an official scorer that errs.

    Attributes:
        rule: what the scorer does.
        example: what comes of it.
        beside: what is computed without the defect; empty where nothing is, or where the group says it.
    """

    model_config = _Strict
    rule: str
    example: str = ""
    beside: str = ""


class Defects(BaseModel):
    """The defects of one kind of scorer.

    Attributes:
        of: the suite, and the kind of answers.
        beside: metrics without any of these defects.
        defects: one by one.
    """

    model_config = _Strict
    of: str
    beside: tuple[str, ...] = ()
    defects: Annotated[tuple[Defect, ...], Field(min_length=1)]


def known_defects() -> tuple[Defects, ...]:
    """All of them, in the order of the page."""
    said = read_yaml(Path(__file__).with_name("known_defects.yaml"))
    return TypeAdapter(tuple[Defects, ...]).validate_python(said["suites"])
