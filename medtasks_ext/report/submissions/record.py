"""What a submission says: `submission.json`. Every text is one short line; unknown keys are refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, Field, ValidationError, model_validator

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.rows.transfer import WEB
from medtasks_ext.runs.conditions import Conditions, RunConditions
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.strict import Strict

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

RECORD = "submission.json"
#: Version of the format.
SCHEMA: Literal[4] = 4
#: Bytes of the record at most: a run of 489 tasks takes half a megabyte.
MOST_BYTES = 8_000_000
#: Characters of a text at most: what is longer is no name and no setting.
LONGEST = 240

_LINE = re.compile(rf"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]{{0,{LONGEST}}}")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}"
_MODEL = rf"^{_NAME}/{_NAME}$"
_Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Place:
    """Where a submission lies: `…/ORG/MODEL/DATE`."""

    model: str  # ORG/MODEL
    date: str  # YYYY-MM-DD

    @classmethod
    def of(cls, folder: Path) -> Place:
        *model, date = folder.absolute().parts[-3:]
        try:
            if not re.fullmatch(_MODEL, "/".join(model)) or len(date) != 10:
                raise ValueError
            time.strptime(date, "%Y-%m-%d")
        except ValueError:
            remedy = "such as results/submissions/Qwen/Qwen3-8B/2026-05-01"
            raise MedtasksError("is not ORG/MODEL/DATE", where=folder, remedy=remedy) from None
        return cls("/".join(model), date)


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


class AnswersFile(Strict):
    """The file of final answers, which is not in the folder."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(gt=0)]  # bytes
    #: where it is had; a stranger names it, so it is of the web, and not of the network of who checks
    address: Annotated[str, Field(pattern=rf"^{WEB}$")] | None = None


class Submission(Strict):
    schema_version: Literal[4] = Field(
        default=SCHEMA,
        validation_alias=AliasChoices("schema", "schema_version"),
        serialization_alias="schema",
    )
    model: Annotated[str, Field(pattern=_MODEL)]  # ORG/MODEL
    date: str  # of the submission
    about: About = About()
    run: RunConditions  # what all its tasks share
    versions: dict[str, str] = Field(default_factory=dict)  # of packages
    tasks: Annotated[dict[str, TaskResult], Field(min_length=1)]
    answers: AnswersFile | None = None  # None where no task has data that is open

    @model_validator(mode="before")
    @classmethod
    def _only_lines(cls, content: Any) -> Any:
        for text in _texts(content):
            if not _LINE.fullmatch(text):
                raise ValueError(f"holds a text of {len(text):,} characters or of several lines")
        return content

    def write(self, folder: Path) -> None:
        write_json(folder / RECORD, self.model_dump(mode="json", by_alias=True, exclude_none=True))

    def entry(self, folder: Path, tasks: Registry) -> Entry:
        return Entry(
            model=self.model,
            label="",
            kind="medtasks",
            conditions=self.run,
            experiments={name: _experiment(name, item, tasks) for name, item in self.tasks.items()},
            folders=(folder,),
            manifest={"versions": self.versions},
            details={name: str(said) for name, said in self.about.model_dump(exclude_none=True).items()},
        )


def _texts(content: Any) -> Iterator[str]:
    waiting = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += [*map(str, item), *item.values()]
        elif isinstance(item, list):
            waiting += item


def _experiment(name: str, item: TaskResult, tasks: Registry) -> Experiment:
    known = tasks.asked(name)
    assert known is not None  # the check looked
    measured = {"score": item.score, "valid": item.valid, "judged": item.conditions.observed.judged}
    return Experiment(
        task=name,
        dataset=known[0],
        conditions=item.conditions,
        metrics={metric: value for metric, value in measured.items() if value is not None},
        intervals={"score": Interval(*item.interval)} if item.interval else {},
        n=item.n,
    )


def read_record(folder: Path) -> Submission:
    """The record of a submission."""
    path = folder / RECORD
    check_regular(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES:,} bytes")
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"is no JSON with `schema` {SCHEMA}, which this version reads")
        return Submission.model_validate(content)
    except FileNotFoundError:
        what = "no such file"
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        what = f"{place[:160]}: {first['msg'].removeprefix('Value error, ').lower()}"
    except json.JSONDecodeError:
        what = "is no JSON"
    except (OSError, ValueError, RecursionError) as error:
        what = str(error)
    what = re.sub(r"[^\x20-\x7e]", "?", what)  # nothing that a terminal would obey
    raise MedtasksError(what, where=path, remedy="`medtasks submit` writes the file, nobody edits it")
