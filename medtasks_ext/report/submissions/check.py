"""Whether a submission holds: its answers are read and scored again, on rows and prompts made anew here.

The scores come from where those of a run come from (`runner.evaluate`), with the same readers and metrics.
What no answers prove is self-reported: closed data, and results whose answers cannot be had.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.collector import collector_paused
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.strategies import by_likelihood, reasons, shots_of
from medtasks_ext.registry.yamlfile import read_mapping
from medtasks_ext.report.submissions.answers import FinalAnswer, read_answers, the_file
from medtasks_ext.report.submissions.record import RECORD, Place, read_record
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.results.experiments import Fault
from medtasks_ext.runs.choice import Choice
from medtasks_ext.runs.samples import request_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.report.submissions.record import Submission, TaskResult
    from medtasks_ext.runs.conditions import Conditions
    from medtasks_ext.runs.records import Sample

#: sums of other versions of NumPy differ in their last digits
TOLERANCE = 1e-9
_ANEW = "submit the run anew, with its answers"


@dataclass(frozen=True)
class Verdict:
    """How far a result is trusted: what the check found, never what somebody says."""

    level: str
    why: str = ""  # it is no more
    is_proven: bool = False  # somebody else than the submitter has seen that the score follows

    @property
    def words(self) -> str:
        """The level, and why it is no more."""
        return self.level + (f": {self.why}" if self.why else "")


ANSWERS = Verdict("answers checked", is_proven=True)
JUDGED = Verdict("answers checked, verdicts as submitted")  # what judges said is the submitter's word


def self_reported(why: str) -> Verdict:
    return Verdict("self-reported", why)


def levels_words(verdicts: Iterable[Verdict]) -> str:
    """How many results have which level: `answers checked: 2 of 5, self-reported: 3 of 5`."""
    found = Counter(sorted(item.level for item in verdicts))
    return ", ".join(f"{level}: {n} of {found.total()}" for level, n in found.items())


def undetected() -> list[str]:
    """What no check of submissions can tell from honest work, in words for readers."""
    return list(map(str, read_mapping(Path(__file__).with_name("undetected.yaml")).values()))


@dataclass
class Checked:
    record: Submission | None = None  # None where it cannot be read
    faults: list[Fault] = field(default_factory=list)  # what does not fit
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # task -> how far its score is trusted


def check_submission(folder: Path, tasks: Registry, answers: Path | None = None) -> Checked:
    """Look at everything in a submission that can be looked at; without `answers` they are downloaded."""
    found = Checked()
    try:
        place = Place.of(folder)
        found.faults += _files(folder)
        if found.faults:
            return found
        record = found.record = read_record(folder)
        if (record.model, record.date) != (place.model, place.date):
            what = f"is of {record.model}, {record.date}, and the folder says {place.model}, {place.date}"
            found.faults.append(Fault(RECORD, what, "move the folder, or submit anew"))
        for name, item in record.tasks.items():
            found.faults += _known(name, item, tasks)
        if not found.faults:
            found.verdicts = _verdicts(record, tasks, answers, found.faults)
    except MedtasksError as error:
        found.faults.append(Fault(Path(str(error.where or folder)).name, error.what, error.remedy or _ANEW))
    return found


def _files(folder: Path) -> Iterator[Fault]:
    """Only the record, no links: what else lies there could be text."""
    if any(item.is_symlink() for item in (folder, folder.parent, folder.parent.parent)):
        yield Fault(str(folder), "is a symbolic link", "put the folder itself there")
    elif not folder.is_dir():
        yield Fault(str(folder), "no such folder", "name a folder ORG/MODEL/DATE")
    else:
        for item in sorted(os.scandir(folder), key=lambda item: item.name):
            if item.name != RECORD or not stat.S_ISREG(item.stat(follow_symlinks=False).st_mode):
                yield Fault(
                    ascii(item.name)[1:-1][:80], f"is no file of a submission ({RECORD})", "delete it"
                )


def _known(name: str, item: TaskResult, tasks: Registry) -> Iterator[Fault]:
    """What a task's record says beside its score, and cannot be."""
    asked = tasks.asked(name)
    if asked is None:
        remedy = "submit with the version of medtasks of this repository"
        yield Fault(f"tasks.{name}", "no task is called so", remedy)
        return
    said, seen = item.conditions.asked, item.conditions.observed
    here = seen.n_here or 0
    if item.conditions.synthetic or said.rows.origin == "sample":
        yield Fault(f"tasks.{name}", "the rows are synthetic sample rows", "run on the task's own data")
    for key, value, right in (
        ("asked.strategy", said.strategy, asked[1]),
        ("asked.rows.n_of_suite", said.rows.n_of_suite or 0, asked[0].n_documents),
        ("observed.n", seen.n, item.n),
    ):
        if value != right:
            yield Fault(f"tasks.{name}.conditions.{key}", f"is {value}, and must be {right}", _ANEW)
    if item.n > here or ((said.rows.documents or "all") == "all" and item.n < here):
        yield Fault(f"tasks.{name}.n", f"{item.n:,} documents, and {here:,} were asked", _ANEW)


class OtherDocumentsError(Exception):
    """Rows, prompts or documents here are not those of a submission; in words."""


def _verdicts(
    record: Submission, tasks: Registry, here: Path | None, faults: list[Fault]
) -> dict[str, Verdict]:
    """Task -> what its answers prove; answers that give something else are a fault."""
    why = "no answers were given"
    found: dict[str, Verdict] = {}
    try:
        for name, answers in read_answers(the_file(record.answers, here)) if record.answers else ():
            if name in record.tasks:
                try:
                    with collector_paused():
                        found[name] = _verdict(name, record.tasks[name], answers, tasks)
                except OtherDocumentsError as error:
                    faults.append(Fault(f"tasks.{name}", str(error), _ANEW))
    except MedtasksError as error:
        why = f"its answers cannot be checked: {error.what}"
    return {
        name: found.get(name) or self_reported(why_unchecked(name, tasks) or why) for name in record.tasks
    }


def why_unchecked(name: str, tasks: Registry) -> str:
    """Why answers to a known task are not checked, whoever gives them; empty where they are."""
    asked = tasks.asked(name)
    if asked is None or asked[0].metadata.access != "open":
        return "its data is not open"
    return "it was asked by likelihood" if by_likelihood(asked[1]) else ""


def _verdict(name: str, item: TaskResult, answers: Sequence[FinalAnswer], tasks: Registry) -> Verdict:
    asked = tasks.asked(name)
    assert asked is not None  # `_known` looked
    dataset, strategy = asked
    if why := why_unchecked(name, tasks):
        return self_reported(why)
    version = item.conditions.asked.version or "none"
    if version.partition("-")[0] != dataset.version.partition("-")[0]:
        return self_reported(f"scored by version {version}, and is {dataset.version} here")
    given = {answer.document: answer.answer for answer in answers}
    if len(given) != len(answers) or len(given) != item.n:
        raise OtherDocumentsError(f"answers to {len(given):,} documents, and the record says {item.n:,}")
    try:
        samples = rebuilt(name, item.conditions, given, tasks)
    except MedtasksError as error:
        return self_reported(f"its rows cannot be had here: {error.what}")
    prompts = {document_key(sample["doc"]): prompt_hash(sample) for sample in samples}
    if [answer.document for answer in answers] != list(prompts):
        raise OtherDocumentsError("the answers stand in another order than the documents")
    if other := sum(prompts[answer.document] != answer.prompt for answer in answers):
        raise OtherDocumentsError(f"{other:,} of {len(answers):,} prompts are others here")
    scores = document_scores(samples, score_statistic(dataset, strategy))
    interval = scores.interval(dataset.id) if scores.scored.any() else None
    figures = [("share of readable answers", item.valid, _mean(scores.valid))]
    if "judge" not in dataset.config:  # else they follow from verdicts, which nobody here has
        low, high = item.interval or (None, None)
        figures.append(("score", item.score, scores.value))
        figures.append(("lower end", low, None if interval is None else interval.low))
        figures.append(("upper end", high, None if interval is None else interval.high))
    for what, stated, value in figures:
        if not _same(stated, value):
            raise OtherDocumentsError(f"the {what} is {stated}, and the answers give {value}")
    return JUDGED if "judge" in dataset.config else ANSWERS


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _mean(values: Any) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def prompt_hash(sample: Sample) -> str:
    """Over the turns of a document, as the task renders them here."""
    return sha256(str(request_of(sample)[0]).encode(errors="surrogatepass")).hexdigest()[:32]


def rebuilt(name: str, record: Conditions, answers: Mapping[str, str], tasks: Registry) -> list[Sample]:
    """Build a task as a record says that it was asked, and score answers to it.

    Args:
        answers: document -> answer.

    Returns:
        Samples in the order of the test file, whose requests are the turns as JSON.

    Raises:
        OtherDocumentsError: rows, prompts or documents are other ones here.
    """
    from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
    from medtasks_ext.runner.run import loaded_record

    asked = tasks.asked(name)
    assert asked is not None  # the caller looked
    dataset, strategy = asked
    built = "cot" if reasons(strategy) else "five_shot" if strategy == "five_shot" else "zero_shot"
    said, shots = record.asked, record.asked.shots.k or 0
    settings = Settings(
        num_fewshot=None if shots == shots_of(built) else shots,
        apply_chat_template=bool(said.layout.chat_template),
        fewshot_as_multiturn=said.layout.shots_as_turns,
        system_role=said.layout.system_role is not False,
        prompts="own" if said.wording.kind == "own" else None,
        drop_faulty=bool(record.observed.n_faulty) or None,
    )
    task = build_task(tasks, dataset.task(built), settings)
    loaded = loaded_record(task)
    for what, stated, here in (
        ("rows", said.rows.hash, loaded["rows_hash"]),
        ("words", said.wording.hash, loaded["prompt_hash"]),
        ("number of rows", record.observed.n_here, len(task.eval_docs)),
    ):
        if stated is not None and stated != here:
            raise OtherDocumentsError(f"other documents: {what} {stated}, and here {here}")
    places = {document_key(row): place for place, row in enumerate(task.eval_docs)}
    if strange := answers.keys() - places.keys():
        raise OtherDocumentsError(f"{len(strange):,} answers are to documents that are not here")
    chosen = Choice(samples=tuple(sorted(places[key] for key in answers)))
    outcome = evaluate_task(_turns_lm(answers), task, settings, chosen)
    assert outcome is not None
    return sorted(outcome.samples, key=lambda sample: sample["doc_id"])


def _turns_lm(answers: Mapping[str, str]) -> Any:
    """A model that gives these answers, and whose template writes the turns as they are."""
    from medtasks_ext.runner.stored import StoredLM

    class Turns(StoredLM):
        def apply_chat_template(
            self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
        ) -> str:
            turns = [{"role": turn["role"], "content": turn["content"]} for turn in chat_history]
            return json.dumps(turns, ensure_ascii=False)

    return Turns(answers, {}, Path("answers"))
