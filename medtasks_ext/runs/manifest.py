"""The manifest of a run, `RUN/run.json`: whose responses a folder holds, and the state of every task."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from medtasks_ext.atomic import check_all_regular
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.privacy import text_hash
from medtasks_ext.runs.settings import dropped_secrets, is_harmless
from medtasks_ext.strict import Config, validated

if TYPE_CHECKING:
    from medtasks_ext.harness import LM

#: How the words of drawn documents begin.
DRAWN = "drawn for "
#: Of `generation_config.json`: ids of tokens and notes, which are no settings.
_NO_SETTINGS = frozenset({"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"})
_NO_SETTINGS |= {"transformers_version", "_from_model_config", "max_length", "max_new_tokens"}


class Drawn(BaseModel):
    """Documents that were drawn so that scores have a stated error (`stats.sampling`)."""

    model_config = ConfigDict(frozen=True)

    error: float  # half of the 95 % interval that was aimed at, in points
    scores: tuple[str, ...]  # groups whose scores have that error
    documents: int  # of the task, of which these are some
    units: int  # of the task: documents, or clusters of them


class Choice(BaseModel):
    """Documents of one task; all of them without a limit and without samples."""

    model_config = ConfigDict(frozen=True)

    limit: float | None = None  # how many from the first on, or below 1 their share
    samples: tuple[int, ...] | None = None  # places in the test file, in its order
    drawn: Drawn | None = None  # how the samples were drawn; None of others

    @classmethod
    def of(cls, task: str, limit: float | None, samples: Mapping[str, Sequence[int]] | None) -> Choice:
        """A task without a list in `samples` is under the limit."""
        if listed := (samples or {}).get(task):
            return cls(samples=tuple(sorted(set(listed))))
        return cls(limit=limit)

    @property
    def whole(self) -> bool:
        return self.limit is None and self.samples is None

    @property
    def words(self) -> str:
        if self.drawn is not None:
            return f"{DRAWN}±{self.drawn.error:g} points"
        if self.limit is None:
            return "all" if self.whole else "chosen documents"
        return f"the first {int(self.limit)}" if self.limit >= 1 else f"the first {100 * self.limit:g} %"

    def places(self, n: int) -> Sequence[int]:
        """A share is rounded up, which is lm-eval's rule; samples may name places beyond `n`."""
        if self.samples is not None:
            return self.samples
        if self.limit is None:
            return range(n)
        return range(min(n, int(self.limit) if self.limit >= 1 else math.ceil(n * self.limit)))


FILE = "run.json"
#: Schema of the manifest that this version writes and reads.
RUN_SCHEMA: Literal[6] = 6

#: Names of tasks: files are called by them, with endings; most file systems take 255 bytes.
_NAME, _LONGEST = re.compile(r"[\w|@,=:+-][\w|@,=:+. -]*"), 200


class TaskState(str, Enum):
    WAITING = "waiting"  # not begun, or begun and not finished
    INCOMPLETE = "incomplete"  # every request has its outcome, and some of them are faults: there is no score
    DONE = "done"
    FAILED = "failed"  # the score could not be computed
    MISSING = "missing"  # its rows are not here


class TaskEntry(BaseModel):
    state: TaskState = TaskState.WAITING
    #: documents that the last call which asked or scored it chose; what is said here is of them
    choice: Choice = Choice()
    #: the rows and words that the last call asked about: their origin and hashes
    bound: dict[str, str] = Field(default_factory=dict)
    asked: int | None = None  # documents that the last call which asked it chose
    n: int | None = None  # documents of a finished task
    generated: int | None = None  # answers that the last call asked for
    faults: dict[str, int] = Field(default_factory=dict)  # kind -> requests without an answer
    reason: str = ""  # of the faults that are most frequent, in words
    error: str = ""  # why the task failed or is missing
    traceback: str = ""


class Identity(BaseModel):
    """What can change responses. Which documents are asked changes none: that is a choice of each task."""

    model: Config  # `model` (lm-eval's type) and `model_args`
    settings: Config

    @property
    def model_name(self) -> str:
        arguments = self.model["model_args"]
        return str(arguments.get("pretrained") or arguments.get("model") or self.model["model"])

    def differs_from(self, other: Identity) -> list[str]:
        return _differences(self.model_dump(), other.model_dump())

    @property
    def digest(self) -> str:
        """Of the model alone: a part of the key of every request."""
        return sha256(json.dumps(self.model, sort_keys=True, default=str).encode()).hexdigest()[:16]


def identity_of(model: str, arguments: Mapping[str, Any], settings: Mapping[str, Any]) -> Identity:
    """Its arguments without those of place, speed and login."""
    kept = {name: value for name, value in arguments.items() if not is_harmless(name)}
    content = {"model": {"model": model, "model_args": kept}, "settings": dict(settings)}
    # as JSON has it, so that what is compared later is of the same types
    return Identity(**json.loads(json.dumps(dropped_secrets(content), default=str)))


def _differences(old: Any, new: Any, path: str = "") -> list[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else [f"{path} was {old!r}, is {new!r}"]
    found = (_differences(old.get(key), new.get(key), f"{path}.{key}".strip(".")) for key in {**old, **new})
    return [line for lines in found for line in lines]


@dataclass(frozen=True)
class EngineRecord:
    """What answered in one session of a run. None: nobody tells, as of a model behind a server."""

    dtype: str | None = None  # of the weights, as loaded
    template: str | None = None  # hash of the chat template that laid prompts out; empty: none
    local_template: str | None = None  # the same, where nobody knows whether the model's repository has it
    generation: Mapping[str, Any] | None = None  # settings that the model's own file adds to requests


def described(lm: LM, *, template: bool | str | None, layout: str | None) -> EngineRecord:
    """What a loaded model says of itself.

    `layout` is a template that a model's file writes out in place of the chat template.
    """
    kinds = {kind.__name__ for kind in type(lm).__mro__}  # their modules need packages of their own
    used: str | None = text_hash(layout) if layout else ""
    local = None
    if not kinds & {"VLLM", "HFLM"}:
        return EngineRecord(template=used or None)
    model, generation = cast("Any", lm).model, dict[str, Any]()
    if "VLLM" in kinds:  # gets whole sampling parameters by lm-eval: those of the model's file do not count
        model = getattr(getattr(model, "llm_engine", None), "model_config", None)
    elif brought := getattr(model, "generation_config", None):
        settings = brought.to_diff_dict()
        generation = {key: settings[key] for key in sorted(settings) if key not in _NO_SETTINGS}
    if template:
        tokenizer = getattr(lm, "tokenizer", None)
        source = getattr(tokenizer, "chat_template", None)
        if isinstance(source, Mapping):
            source = source.get(template if isinstance(template, str) else "default")
        used = text_hash(source) if isinstance(source, str) else None
        place = str(getattr(tokenizer, "name_or_path", "") or "")
        # a folder may hold anything; a name on the hub holds what its repository has
        local = used if not place or Path(place).exists() else None
    dtype = str(getattr(model, "dtype", None) or "").removeprefix("torch.")
    return EngineRecord(dtype or None, used, local, generation)


class Session(BaseModel):
    started: str  # local time
    host: str  # name of the machine
    model_args: Config = Field(default_factory=dict)  # all of them, without secrets
    #: of Python and of the packages that answers and scores depend on
    versions: dict[str, str] = Field(default_factory=dict)
    engine: EngineRecord | None = None  # what the loaded model says of itself; None where none was loaded


class Manifest(BaseModel):
    schema_version: Literal[6] = Field(default=RUN_SCHEMA, alias="schema")  # of the folder
    identity: Identity
    versions: dict[str, str] = Field(default_factory=dict)  # of the first call
    started: str = Field(
        default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S"),
        pattern=r"^\d{4}(-\d\d){2}T\d\d(:\d\d){2}$",
    )
    requested: list[str] = Field(default_factory=list)  # names that were asked for
    tasks: dict[str, TaskEntry] = Field(default_factory=dict)
    #: what a reader must know, said again at the end of every call
    notes: list[str] = Field(default_factory=list)
    preflight: dict[str, list[str]] | None = None  # `warnings` of the look at one answer
    context: int | None = None  # tokens of prompt and answer together that the model takes, where it says so
    system_role: bool | None = None  # False where the chat template refused a system turn
    sessions: list[Session] = Field(default_factory=list)
    #: that calls permitted to receive text that is not open
    allowed_hosts: list[str] = Field(default_factory=list)
    #: host other than this machine -> datasets whose text, not open to everyone, it got
    sent: dict[str, list[str]] = Field(default_factory=dict)

    @field_validator("tasks")
    @classmethod
    def _are_named(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Files are named after tasks: a name leads nowhere else, and file systems take it."""
        for name in given:
            if not _NAME.fullmatch(name) or len(name.encode()) > _LONGEST:
                raise ValueError(f"{name[:40]!r} is no name of a task")
        return given

    def note(self, notes: list[str]) -> None:
        self.notes = list(dict.fromkeys([*self.notes, *notes]))

    def record(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def write(self, folder: Path) -> None:
        write_json(folder / FILE, self.record())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder; MedtasksError where it is damaged or of another schema."""
        check_all_regular(folder)
        path, remedy = folder / FILE, "restore the file, or run the tasks again in another folder"
        content = read_json(path)
        return validated(lambda: cls.model_validate(content), where=path, remedy=remedy)
