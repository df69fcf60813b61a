"""Known defects of the suites' official scorers, as data: what they do, and what is computed beside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from medtasks_ext.registry.yamlfile import read_yaml

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

_Strict = ConfigDict(extra="forbid", frozen=True)


class Defect(BaseModel):
    """One rule of an official scorer that errs.

    Attributes:
        rule: what the scorer does.
        example: what comes of it.
        beside: what is computed without the defect; empty where nothing is, or where the group says it.
        datasets: ids of those that have it.
        suites: whose datasets have it, where none are named; by default those of the group.
        kinds: of their answers; by default those of the group, else any.
    """

    model_config = _Strict
    rule: str
    example: str = ""
    beside: str = ""
    datasets: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


class Defects(BaseModel):
    """The defects of one kind of scorer.

    Attributes:
        of: the suite, and the kind of answers.
        suites: whose scorer it is.
        kinds: of answers that it reads; none: any.
        beside: metrics without any of these defects.
        defects: one by one.
    """

    model_config = _Strict
    of: str
    suites: Annotated[tuple[str, ...], Field(min_length=1)]
    kinds: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    defects: Annotated[tuple[Defect, ...], Field(min_length=1)]

    def has(self, defect: Defect, dataset: Dataset) -> bool:
        """Whether a dataset's official score has one of these defects."""
        if defect.datasets:
            return dataset.id in defect.datasets
        kinds = defect.kinds or self.kinds
        suites = defect.suites or self.suites
        return dataset.metadata.suite in suites and (
            not kinds or str(dataset.config["answer"]["kind"]) in kinds
        )


@lru_cache(maxsize=1)
def known_defects() -> tuple[Defects, ...]:
    """All of them, in the order of the page."""
    said = read_yaml(Path(__file__).with_name("known_defects.yaml"))
    return TypeAdapter(tuple[Defects, ...]).validate_python(said["suites"])


def defects_of(dataset: Dataset) -> Iterator[tuple[Defect, Defects]]:
    """The known defects of a dataset's official score, each with its group."""
    for group in known_defects():
        for defect in group.defects:
            if group.has(defect, dataset):
                yield defect, group
