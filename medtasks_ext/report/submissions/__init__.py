"""Submissions: what of a run may be public, in a folder `ORG/MODEL/DATE`; making, checking, reading."""

from __future__ import annotations

import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import AliasChoices, Field, TypeAdapter, ValidationError, model_validator

from medtasks_ext.answers.text import fold
from medtasks_ext.atomic import check_regular
from medtasks_ext.engines import Answer
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.process import collector_paused
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.strategies import by_likelihood, reasons, shots_of
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.runs.manifest import Choice
from medtasks_ext.runs.records import iter_samples, request_of
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.strict import Strict, read_mapping

if TYPE_CHECKING:
    from medtasks_ext.harness import Task
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runs.records import Sample


RECORD, ANSWERS, NOTES = "submission.json", "answers", "README.md"
#: Bytes of a file at most: the record of 489 tasks takes half a megabyte.
MOST_BYTES = 50_000_000
#: Characters of a text at most: what is longer is no name and no setting.
LONGEST = 240

_LINE = re.compile(rf"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]{{0,{LONGEST}}}")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}"
_MODEL = rf"^{_NAME}/{_NAME}$"
#: A maintainer's line in a submission's README, after a second site has checked a task.
_CONFIRMED = re.compile(r"^confirmed: (\S+) by (.+)$", re.MULTILINE)
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


#: How far a result is trusted: what the check found, never what somebody says. A third one is
#: `self-reported: WHY`. What judges said is the submitter's word.
CHECKED, JUDGED = "answers checked", "answers checked, verdicts as submitted"
#: sums of other versions of NumPy differ in their last digits
_TOLERANCE = 1e-9
_ANEW = "submit the run anew, with its answers"


def levels_words(verdicts: Iterable[str]) -> str:
    """How many results have which level: `answers checked: 2 of 5, self-reported: 3 of 5`."""
    found = Counter(sorted(item.partition(":")[0] for item in verdicts))
    return ", ".join(f"{level}: {n} of {found.total()}" for level, n in found.items())


def undetected() -> list[str]:
    """What no check of submissions can tell from honest work, in words for readers."""
    return list(map(str, read_mapping(Path(__file__).with_name("undetected.yaml")).values()))


@dataclass
class Checked:
    record: Submission | None = None  # None where it cannot be read
    faults: list[Fault] = field(default_factory=list)  # what does not fit
    verdicts: dict[str, str] = field(default_factory=dict)  # task -> how far its score is trusted
    confirmed: list[tuple[str, str]] = field(default_factory=list)  # task, site that has checked it, too


def check_submission(folder: Path, tasks: Registry) -> Checked:
    """Look at everything in a submission that can be looked at."""
    try:
        place = place_of(folder)
        if any(item.is_symlink() for item in (folder, folder.parent, folder.parent.parent)):
            raise MedtasksError("is a symbolic link", where=folder, remedy="put the folder itself there")
        record = read_record(folder)
        # what else lies there could be text
        given = (f"{ANSWERS}/{name}.json" for name in record.tasks if not why_unchecked(name, tasks))
        known = {RECORD, ANSWERS, NOTES, *given}
        what = f"is no file of a submission ({RECORD}, {ANSWERS}/TASK.json, {NOTES})"
        faults = [
            Fault(ascii(name)[1:-1][:80], what, "delete it")
            for item in sorted(folder.rglob("*"))
            if (name := item.relative_to(folder).as_posix()) not in known
            or item.is_symlink()
            or not (item.is_dir() if name == ANSWERS else item.is_file())
        ]
        if (record.model, record.date) != place:
            words = f"is of {record.model}, {record.date}, and the folder says {', '.join(place)}"
            faults.append(Fault(RECORD, words, "move the folder, or submit anew"))
        if faults:
            return Checked(record, faults)
        found = check_record(record, tasks, lambda task: read_answers(folder, task))
        notes = _read(folder / NOTES, bytes.decode) if (folder / NOTES).exists() else ""
        found.confirmed = _CONFIRMED.findall(notes)
        for task, site in found.confirmed:
            if task not in record.tasks or not _LINE.fullmatch(site):
                words = (
                    f"confirms {task[:80]!a}, which is no task of this submission, or by no name of a site"
                )
                found.faults.append(Fault(NOTES, words, "write lines `confirmed: TASK by SITE`"))
        return found
    except MedtasksError as error:
        return Checked(
            None, [Fault(Path(str(error.where or folder)).name, error.what, error.remedy or _ANEW)]
        )


def check_record(
    record: Submission, tasks: Registry, answers_of: Callable[[str], Sequence[FinalAnswer]]
) -> Checked:
    """Read and score its answers again; those that give something else are a fault."""
    found = Checked(record)
    for name, item in record.tasks.items():
        found.faults += [Fault(f"tasks.{name}{key}", what, _ANEW) for key, what in _unlike(name, item, tasks)]
    for name, item in () if found.faults else record.tasks.items():
        try:
            with collector_paused():
                found.verdicts[name] = _verdict(name, item, answers_of(name), tasks)
        except OtherDocumentsError as error:
            found.faults.append(Fault(f"tasks.{name}", str(error), _ANEW))
    return found


def _unlike(name: str, item: TaskResult, tasks: Registry) -> Iterator[tuple[str, str]]:
    """What a task's record says beside its score, and cannot be: where, and what."""
    asked, record = tasks.asked(name), item.conditions
    if asked is None:
        yield "", "no task is called so"
        return
    if record.synthetic or record.origin == "sample":
        yield "", "the rows are synthetic sample rows"
    for key, value, right in (
        ("strategy", record.strategy, asked[1]),
        ("n_of_suite", record.n_of_suite or 0, asked[0].n_documents),
        ("n", record.n, item.n),
    ):
        if value != right:
            yield f".conditions.{key}", f"is {value}, and must be {right}"
    n_here = record.n_here or 0
    if item.n > n_here or ((record.documents or "all") == "all" and item.n < n_here):
        yield ".n", f"{item.n:,} documents, and {n_here:,} were asked"


class OtherDocumentsError(Exception):
    """Rows, prompts or documents here are not those of a submission; in words."""


def why_unchecked(name: str, tasks: Registry) -> str:
    """Why answers to a known task are not checked, whoever gives them; empty where they are."""
    asked = tasks.asked(name)
    if asked is None or asked[0].metadata.access != "open":
        return "its data is not open"
    return "it was asked by likelihood" if by_likelihood(asked[1]) else ""


def _verdict(name: str, item: TaskResult, answers: Sequence[FinalAnswer], tasks: Registry) -> str:
    dataset, strategy = tasks.known(name)
    if why := why_unchecked(name, tasks) or ("" if answers else "no answers were given"):
        return f"self-reported: {why}"
    version = item.conditions.version or "none"
    if version.partition("-")[0] != dataset.version.partition("-")[0]:
        return f"self-reported: scored by version {version}, and is {dataset.version} here"
    given = {answer.document: answer.answer for answer in answers}
    if len(given) != len(answers) or len(given) != item.n:
        raise OtherDocumentsError(f"answers to {len(given):,} documents, and the record says {item.n:,}")
    try:
        samples = rebuilt(name, item.conditions, given, tasks)
    except MedtasksError as error:
        return f"self-reported: its rows cannot be had here: {error.what}"
    prompts = {document_key(sample["doc"]): prompt_hash(sample) for sample in samples}
    if [answer.document for answer in answers] != list(prompts):
        raise OtherDocumentsError("the answers stand in another order than the documents")
    if other := sum(prompts[answer.document] != answer.prompt for answer in answers):
        raise OtherDocumentsError(f"{other:,} of {len(answers):,} prompts are others here")
    scores, judged = document_scores(samples, score_statistic(dataset, strategy)), "judge" in dataset.config
    interval = scores.interval(dataset.id) if scores.scored.any() else None
    low, high = item.interval or (None, None)
    readable = scores.valid[~np.isnan(scores.valid)]
    figures = [("share of readable answers", item.valid, float(readable.mean()) if len(readable) else None)]
    if not judged:  # else they follow from verdicts, which nobody here has
        figures.append(("score", item.score, scores.value))
        figures.append(("lower end", low, None if interval is None else interval.low))
        figures.append(("upper end", high, None if interval is None else interval.high))
    for what, stated, value in figures:
        pair = [math.nan if one is None else one for one in (stated, value)]
        if stated is not value and not math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise OtherDocumentsError(f"the {what} is {stated}, and the answers give {value}")
    return JUDGED if judged else CHECKED


def prompt_hash(sample: Sample) -> str:
    """Over the turns of a document, as the task renders them here."""
    return sha256(str(request_of(sample)[0]).encode(errors="surrogatepass")).hexdigest()[:32]


def _built(name: str, record: Conditions, tasks: Registry) -> tuple[Task, Settings]:
    """The task as a record says that it was asked, and the settings that do so."""
    from medtasks_ext.runner.evaluate import Settings, build_task

    dataset, strategy = tasks.known(name)
    built = "cot" if reasons(strategy) else "five_shot" if strategy == "five_shot" else "zero_shot"
    shots = record.shots or 0
    settings = Settings(
        num_fewshot=None if shots == shots_of(built) else shots,
        apply_chat_template=bool(record.template),
        fewshot_as_multiturn=record.turns,
        system_role=record.system is not False,
        prompts="own" if record.wording == "own" else None,
        drop_faulty=bool(record.n_faulty) or None,
    )
    return build_task(tasks, dataset.task(built), settings), settings


def rebuilt(name: str, record: Conditions, answers: Mapping[str, str], tasks: Registry) -> list[Sample]:
    """Score answers (document -> answer) to a task that is built as a record says that it was asked.

    The samples come in the order of the test file; their requests are the turns as JSON.
    """
    from medtasks_ext.engines.lm import StoredLM
    from medtasks_ext.runner.evaluate import evaluate_task
    from medtasks_ext.runner.run import loaded_record

    task, settings = _built(name, record, tasks)
    loaded = loaded_record(task)
    for what, stated, here in (
        ("rows", record.rows, loaded["rows_hash"]),
        ("words", record.prompt, loaded["prompt_hash"]),
        ("number of rows", record.n_here, len(task.eval_docs)),
    ):
        if stated is not None and stated != here:
            raise OtherDocumentsError(f"other documents: {what} {stated}, and here {here}")
    places = {document_key(row): place for place, row in enumerate(task.eval_docs)}
    if strange := answers.keys() - places.keys():
        raise OtherDocumentsError(f"{len(strange):,} answers are to documents that are not here")
    chosen = Choice(samples=tuple(sorted(places[key] for key in answers)))
    model: Any = StoredLM({key: Answer(text) for key, text in answers.items()}, {}, Path("answers"))
    model.apply_chat_template = lambda turns, *_, **__: json.dumps(
        [{"role": turn["role"], "content": turn["content"]} for turn in turns], ensure_ascii=False
    )
    outcome = evaluate_task(model, task, settings, chosen)
    assert outcome is not None
    return sorted(outcome.samples, key=lambda sample: sample["doc_id"])


def spot_check(
    folder: Path, tasks: Registry, n: int, ask: Callable[[list[str], Path], object]
) -> dict[str, tuple[int, int, int]]:
    """Ask random documents of a submission again: task -> how many, equal answers, equal scores.

    `ask` gets the arguments of `medtasks run` but for the model, and the folder to which the run goes.
    """
    record = read_record(folder)
    given = {name: {one.document: one.answer for one in read_answers(folder, name)} for name in record.tasks}
    every = [
        (name, key) for name, answers in given.items() for key in answers if not why_unchecked(name, tasks)
    ]
    if not every:
        raise MedtasksError("holds no answers to open data", where=folder, remedy="name another one")
    chosen: dict[str, list[str]] = {}
    for name, key in random.SystemRandom().sample(every, min(n, len(every))):
        chosen.setdefault(name, []).append(key)
    found = {}
    for name, keys in chosen.items():
        asked = record.tasks[name].conditions
        task, settings = _built(name, asked, tasks)
        places = {document_key(row): place for place, row in enumerate(task.eval_docs)}
        if strange := [key for key in keys if key not in places]:
            raise MedtasksError(f"{len(strange)} answers are to documents that are not here", where=folder)
        named = json.dumps({task.config.task: sorted(places[key] for key in keys)})
        said = ["--tasks", task.config.task, "--samples", named]
        said += ["--prompts", settings.prompts] if settings.prompts else []
        said += ["--apply_chat_template"] if settings.apply_chat_template else []
        said += [] if settings.num_fewshot is None else ["--num_fewshot", str(settings.num_fewshot)]
        with TemporaryDirectory() as place:
            ask(said, Path(place))
            [file] = Path(place).glob("samples_*.jsonl")
            samples = {document_key(one["doc"]): str(one["resps"][0][0]) for one in iter_samples(file)}
        old, new = {key: given[name][key] for key in keys}, {key: final_answer(samples[key]) for key in keys}
        statistic = score_statistic(*tasks.known(name))
        one, other = (document_scores(rebuilt(name, asked, item, tasks), statistic) for item in (old, new))
        same = int(np.isclose(one.scores, other.scores, equal_nan=True).sum())
        found[name] = (len(keys), sum(old[key] == new[key] for key in keys), same)
    return found


def final_answer(text: str) -> str:
    """Without its reasoning, which every reader reads as it reads the whole.

    The marks of a trace stay. A trace that never ended stays whole: some official readers read it.
    """
    head, end, rest = text.partition("</think>")
    if not end or end in fold(head):  # an official reader folds letters, and would cut before
        return text
    return f"{'<think>' if '<think>' in head else ''}{end}{rest}"
