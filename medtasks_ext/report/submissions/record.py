"""What a submission holds: `submission.json`, and the final answers to open data, a file for each task.

Every text of the record is one short line; unknown keys are refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AliasChoices, Field, TypeAdapter, ValidationError, model_validator

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.strict import Strict

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

RECORD, ANSWERS = "submission.json", "answers"
#: Bytes of a file at most: the record of 489 tasks takes half a megabyte.
MOST_BYTES = 50_000_000
#: Characters of a text at most: what is longer is no name and no setting.
LONGEST = 240

_LINE = re.compile(rf"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]{{0,{LONGEST}}}")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}"
_MODEL = rf"^{_NAME}/{_NAME}$"
_Read = TypeVar("_Read")
_Share = Annotated[float, Field(ge=0, le=1)]


def place_of(folder: Path) -> tuple[str, str]:
    """Model (`ORG/MODEL`) and date of a folder `…/ORG/MODEL/DATE`."""
    *model, date = folder.absolute().parts[-3:]
    try:
        if not re.fullmatch(_MODEL, "/".join(model)) or len(date) != 10:
            raise ValueError
        time.strptime(date, "%Y-%m-%d")
    except ValueError:
        remedy = "such as results/submissions/Qwen/Qwen3-8B/2026-05-01"
        raise MedtasksError("is not ORG/MODEL/DATE", where=folder, remedy=remedy) from None
    return "/".join(model), date


class TaskResult(Strict):
    n: Annotated[int, Field(gt=0)]  # documents that were answered
    score: _Share
    interval: tuple[_Share, _Share] | None = None  # of 95 %; None for fewer than two documents
    valid: _Share | None = None  # share of readable answers
    conditions: Conditions  # under which the score came about


class About(Strict):
    parameters_b: Annotated[float, Field(gt=0, lt=1e5)] | None = None  # billions of parameters
    access: Literal["open", "proprietary"] | None = None  # of its weights
    domain: Literal["general", "medical"] | None = None
    reasoning: Literal["yes", "no"] | None = None
    release_date: Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")] | None = None
    license: str | None = None
    hub_id: Annotated[str, Field(pattern=_MODEL)] | None = None


class FinalAnswer(NamedTuple):
    document: str  # its key within the task
    prompt: str  # hash of its turns as the task renders them
    answer: str  # without its reasoning


class Submission(Strict):
    schema_version: Literal[5] = Field(
        5, validation_alias=AliasChoices("schema", "schema_version"), serialization_alias="schema"
    )
    model: Annotated[str, Field(pattern=_MODEL)]  # ORG/MODEL
    date: str  # of the submission
    about: About = About()
    run: Conditions  # what all its tasks share
    versions: dict[str, str] = Field(default_factory=dict)  # of packages
    tasks: Annotated[dict[str, TaskResult], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _only_lines(cls, content: Any) -> Any:
        waiting = [content]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str) and not _LINE.fullmatch(item):
                raise ValueError(f"holds a text of {len(item):,} characters or of several lines")
            waiting += (
                [*item, *item.values()] if isinstance(item, dict) else item if type(item) is list else ()
            )
        return content

    def write(self, folder: Path, answers: Mapping[str, Sequence[FinalAnswer]]) -> None:
        for task, items in answers.items():
            write_json(folder / ANSWERS / f"{task}.json", [item._asdict() for item in items])
        write_json(folder / RECORD, self.model_dump(mode="json", by_alias=True, exclude_none=True))

    def entry(self, folder: Path, tasks: Registry) -> Entry:
        experiments = {}
        for name, item in self.tasks.items():
            measured = {"score": item.score, "valid": item.valid, "judged": item.conditions.judged}
            experiments[name] = Experiment(
                task=name,
                dataset=tasks.known(name)[0],
                conditions=item.conditions,
                metrics={metric: value for metric, value in measured.items() if value is not None},
                intervals={"score": Interval(*item.interval)} if item.interval else {},
                n=item.n,
            )
        return Entry(
            model=self.model,
            label="",
            kind="medtasks",
            conditions=self.run,
            experiments=experiments,
            folders=(folder,),
            manifest={"versions": self.versions},
            details={name: str(said) for name, said in self.about.model_dump(exclude_none=True).items()},
        )


def read_record(folder: Path) -> Submission:
    return _read(folder / RECORD, Submission.model_validate_json)


def read_answers(folder: Path, task: str) -> list[FinalAnswer]:
    """None where none are given."""
    path = folder / ANSWERS / f"{task}.json"
    return _read(path, TypeAdapter(list[FinalAnswer]).validate_json) if path.exists() else []


def _read(path: Path, read: Callable[[bytes], _Read]) -> _Read:
    check_regular(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES:,} bytes")
        return read(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        what = f"{place[:160]}: {first['msg'].removeprefix('Value error, ').lower()}"
    except (OSError, ValueError) as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else str(error)
    what = re.sub(r"[^\x20-\x7e]", "?", what)  # nothing that a terminal would obey
    raise MedtasksError(
        what, where=path, remedy="`medtasks card --layout medtasks` writes the file, nobody edits it"
    )
