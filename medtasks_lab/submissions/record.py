"""What a submission says: `submission.json`. Every text is one short line; unknown keys are refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, ValidationError, model_validator

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.rows.transfer import WEB
from medtasks_ext.runs.conditions import Conditions, RunConditions
from medtasks_ext.strict import Strict
from medtasks_lab.submissions.older import submission_of_today
from medtasks_lab.submissions.trust import Trust

#: Version of the format, of both files. 2 has no answers and no levels of trust, 1 its conditions in words.
SCHEMA: Literal[3] = 3
RECORD, DOCUMENTS = "submission.json", "documents.parquet"
FILES = (RECORD, DOCUMENTS)
#: Bytes of the record at most: a run of 489 tasks takes half a megabyte.
MOST_BYTES = 8_000_000
#: Bytes of the folders of a pull request at most, together; answers to 226,446 documents take more.
MOST_OF_A_PULL_REQUEST = 2_000_000
#: Characters of a text at most: what is longer is no name and no setting.
LONGEST = 240

#: A line of names, numbers and signs.
_LINE = re.compile(rf"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]{{0,{LONGEST}}}")
#: A name of an organisation, a model or a site.
NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}"
_DATE = r"\d{4}-\d{2}-\d{2}"

#: Why a person looks at a submission before it has a rank.
FlagKind = Literal[
    "answers that do not give the scores",
    "answers of another submission",
    "scores of another submission",
    "far above the best published",
    "answers in the gold's own words",
    "the same model and conditions twice",
]

#: Nothing of the machine that checks, or of its network.
_ADDRESS = rf"^{WEB}$"

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Place:
    """Where a submission lies: `…/ORG/MODEL/DATE`."""

    folder: Path
    model: str  # ORG/MODEL
    date: str  # YYYY-MM-DD

    @classmethod
    def of(cls, folder: Path) -> Place:
        """The place that a path names.

        Raises:
            MedtasksError: its last three parts are no organisation, model and date.
        """
        parts = folder.absolute().parts[-3:]
        names = len(parts) == 3 and all(re.fullmatch(NAME, part) for part in parts[:2])
        if not names or not _is_date(parts[2]):
            raise MedtasksError(
                "is not ORG/MODEL/DATE",
                where=folder,
                remedy="such as results/submissions/Qwen/Qwen3-8B/2026-05-01",
            )
        return cls(folder, "/".join(parts[:2]), parts[2])

    @property
    def name(self) -> str:
        """ORG/MODEL/DATE."""
        return f"{self.model}/{self.date}"

    @property
    def root(self) -> Path:
        """The folder of all submissions."""
        return self.folder.absolute().parents[2]


def _is_date(text: str) -> bool:
    try:
        return bool(re.fullmatch(_DATE, text)) and bool(time.strptime(text, "%Y-%m-%d"))
    except ValueError:
        return False


class Spread(Strict):
    """How sure a score is: documents resampled."""

    low: float  # lower end of the 95 % interval
    high: float  # upper end
    sd: Annotated[float, Field(ge=0)]  # of the score on the resamples


class TaskResult(Strict):
    """One task: its score, and what that follows from.

    Attributes:
        n: documents that were answered: rows of `documents.parquet`.
        statistic: how the score follows from the counts of documents.
        sums: column sums of these counts, where the counts of single documents are not public.
        score: 0-1; None without a gold answer or a judge's word.
        valid: share of readable answers.
        unclosed: share of answers whose reasoning never ended.
        spread: of the score; None where there are fewer than two documents.
        conditions: under which it came about.
        tokens: of prompts and answers.
        answers: digest of the final answers (`answers.answers_digest`), where the file of answers has them.
        trust: the level that `submit` found. The check finds it again, and refuses a higher one.
    """

    n: Annotated[int, Field(gt=0)]
    statistic: str
    sums: list[float] | None = None
    score: Share | None = None
    valid: Share | None = None
    unclosed: Share | None = None
    spread: Spread | None = None
    conditions: Conditions
    tokens: dict[Literal["input", "output"], Count] | None = None
    answers: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    trust: Trust = Trust.SELF

    @property
    def version(self) -> str:
        """`N-X` of the task; empty where it is not said."""
        return self.conditions.asked.version or ""


class GroupResult(Strict):
    """A suite's score."""

    score: Share
    tasks: Count  # that have a score
    of: Count  # that the suite's score is taken over


class About(Strict):
    """What is said of the model itself."""

    parameters_b: Annotated[float, Field(gt=0, lt=1e5)] | None = None  # billions of parameters
    access: Literal["open", "proprietary"] | None = None  # of its weights
    domain: Literal["general", "medical"] | None = None
    reasoning: Literal["yes", "no"] | None = None
    release_date: Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")] | None = None
    license: str | None = None
    hub_id: Annotated[str, Field(pattern=rf"^{NAME}/{NAME}$")] | None = None


class AnswersFile(Strict):
    """The file of final answers, which is not in the folder."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(gt=0)]  # bytes
    #: where it is had, in the order in which they are asked; a stranger names them, so they are of the web
    addresses: list[Annotated[str, Field(pattern=_ADDRESS)]] = Field(default=[], max_length=8)


class Submission(Strict):
    """The record of a submission.

    Attributes:
        schema_version: of the format.
        model: ORG/MODEL.
        date: of the submission.
        called: what the run called the model; None where that was a path.
        about: the model itself.
        invented: why its scores are no scores; None of real ones.
        run: what all its tasks share.
        versions: of the packages that answers and scores depend on.
        started: when the run began.
        tasks: task -> its result, in the order of the rows of `documents.parquet`.
        groups: suite, with the suffix of a strategy -> its score.
        root: of the run's folder when this was written (`medtasks verify RUN --root`); None of older runs.
        heads: file of the run -> the chain of its last line: `medtasks verify RUN --against` compares them;
            none of results of plain `lm_eval`.
        answers: the file of final answers; None where no task has data that is open, and of older versions.
    """

    schema_version: Literal[3] = Field(
        default=SCHEMA,
        validation_alias=AliasChoices("schema", "schema_version"),
        serialization_alias="schema",
    )
    model: Annotated[str, Field(pattern=rf"^{NAME}/{NAME}$")]
    date: Annotated[str, Field(pattern=rf"^{_DATE}$")]
    called: str | None = None
    about: About = About()
    invented: str | None = None
    run: RunConditions
    versions: dict[str, str] = Field(default_factory=dict)
    started: str | None = None
    tasks: Annotated[dict[str, TaskResult], Field(min_length=1)]
    groups: dict[str, GroupResult] = Field(default_factory=dict)
    root: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    heads: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]] = Field(default_factory=dict)
    answers: AnswersFile | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_lines(cls, content: Any) -> Any:
        return _lines(content)

    def write(self, folder: Path) -> None:
        """Write it; what is not known is left out."""
        write_json(folder / RECORD, self.model_dump(mode="json", by_alias=True, exclude_none=True))


def record_digest(record: Submission) -> str:
    """Identifies what a record says of results; where answers are had and levels of trust may change."""
    said = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    said.get("answers", {}).pop("addresses", None)
    for item in said["tasks"].values():
        item.pop("trust")
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _lines(content: Any) -> Any:
    """Content whose texts are short lines.

    Raises:
        ValueError: another one.
    """
    for key, value in _texts(content):
        if not _LINE.fullmatch(value):
            what = f"{key or 'a key'} holds a text of {len(value):,} characters or of several lines"
            raise ValueError(what)
    return content


def _texts(content: Any) -> Iterator[tuple[str, str]]:
    """Key -> text of every text in it, keys themselves among them."""
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, str):
            yield key, item
        elif isinstance(item, Mapping):
            yield from ((key, str(name)) for name in item)
            waiting += [(f"{key}.{name}" if key else str(name), value) for name, value in item.items()]
        elif isinstance(item, list):
            waiting += [(key, value) for value in item]


def read_record(folder: Path) -> Submission:
    """The record of a submission.

    Raises:
        MedtasksError: there is none, or it is too large, of another version, or not of this format.
    """
    path = folder / RECORD
    check_regular(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MedtasksError(
                f"is larger than {MOST_BYTES:,} bytes", where=path, remedy="write it with `medtasks submit`"
            )
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="write it with `medtasks submit`") from None
    except (OSError, ValueError, RecursionError):
        raise MedtasksError("is no JSON", where=path, remedy="write it with `medtasks submit`") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema == 1:
        content = _of_today(content, path)
    if isinstance(content, dict) and content.get("schema") == 2:
        content = {**content, "schema": SCHEMA}
    elif schema != SCHEMA:
        raise MedtasksError(
            f"schema: is {_short(schema)}, and this version reads {SCHEMA}",
            where=path,
            remedy="`medtasks submit` of this version writes it anew from the run",
        )
    try:
        return Submission.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(_short(part) for part in first["loc"]) or "the whole"
        raise MedtasksError(
            f"{place}: {first['msg'].removeprefix('Value error, ').lower()}",
            where=path,
            remedy="the file is written by `medtasks submit`, never by hand",
        ) from None


def _of_today(content: Any, path: Path) -> Any:
    """A record of schema 1 in the form of today; its texts are lines."""
    try:
        return submission_of_today(_lines(content))
    except ValueError as error:
        what = str(error)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"is no record of schema 1 ({_short(error)})"
    raise MedtasksError(what, where=path, remedy="the file is written by `medtasks submit`, never by hand")


def _short(value: object) -> str:
    """A value of somebody else's file in a message."""
    text = repr(value) if not isinstance(value, str) else value
    return re.sub(r"[^\x20-\x7e]", "?", text)[:80]
