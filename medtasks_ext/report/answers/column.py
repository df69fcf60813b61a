"""The answers of one run to one task: figures of all documents, and their records as they are needed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, lru_cache
from itertools import islice
from os.path import commonprefix
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.jsonfile import read_json
from medtasks_ext.prompts.documents import document_key, shown
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.results.error_clusters import TEXTS, error_of
from medtasks_ext.results.experiments import Entry, Fault
from medtasks_ext.results.reading import add_judgement, asked_task, run_folder, runs_below
from medtasks_ext.run.store import Answers, files_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState
from medtasks_ext.runs.records import RESCORE, SampleFile, parsed_of

if TYPE_CHECKING:
    from medtasks_ext.engines import Answer
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.experiments import Experiment
    from medtasks_ext.runs.records import Sample

#: What writes the samples of plain lm_eval.
LOG_SAMPLES = "run lm_eval again with --log_samples"
#: Records that are scored at once.
_BLOCK = 1000
#: Characters that are kept of a prompt, and of the beginning and the end of a reply.
_LINE = 400


class Flag(IntFlag):
    """What is known of an answer; the filters of the page."""

    RIGHT = 1  # its score is 1
    WRONG = 2  # its score is below 1; not of running text, whose scores are graded
    UNREADABLE = 4
    TRUNCATED = 8  # the budget ran out, or a reasoning trace never ended
    EMPTY = 16
    DAMAGED = 32  # its record cannot be read
    WAITING = 64  # it is not scored yet


@dataclass(frozen=True)
class Source:
    """Where the answers of one run to one task lie."""

    label: str  # of the run
    task: str  # as the files of the run name it
    dataset: Dataset
    strategy: str
    samples: Path  # lm-eval's records; there is no such file before the task is scored
    folder: Path | None  # of the run; None of plain lm_eval
    sample: bool  # whether its rows are synthetic
    outcomes: Outcomes | None  # of the run; plain lm_eval keeps none
    item: Experiment | None = None  # None before it is scored

    @property
    def place(self) -> Path:
        """What a command names."""
        return self.folder or self.samples.parent


class Row(NamedTuple):
    """What is kept of a document; its texts are read again when they are shown."""

    key: str
    flags: Flag
    score: float = math.nan  # of it alone; NaN where it has none
    cluster: str | None = None  # of errors
    prompt: str = ""  # in one line, from where those of the task differ
    reply: str = ""
    gold: Any = None
    answer: Any = None  # as it was read; None where nothing could be


class Outcomes(Answers):
    """What a run's folder holds by now, and how its answers ended."""

    def __init__(self, folder: Path) -> None:
        self.times = list[float]()  # when each answer came
        self.ends = Counter[str]()
        super().__init__(folder, write=False)

    def see(self, row: Json) -> None:
        """Take note of a line, and how its answer ended."""
        super().see(row)
        if row["outcome"] == "answer":
            self.times.append(row["at"])
            self.ends.update(empty=int(not row["text"].strip()), cut=int(row.get("finish") == "length"))


class Column:
    """MedtasksError where there are no records, or these do not fit the task.

    `first`: documents that are read, and kept with their texts; by default all of them, whose texts are read
    again when they are shown.
    """

    def __init__(self, source: Source, first: int | None = None) -> None:
        self.source = source
        self._outcomes = source.outcomes
        judged = RunFolder(source.folder).judged_file(source.task) if source.folder else None
        self.judged: dict[str, Json] | None = None
        if judged and judged.is_file():
            self.judged = {item["document"]: item for item in read_json(judged)["documents"]}
        self._file = SampleFile(source.samples, remedy=RESCORE if source.folder else LOG_SAMPLES)
        self._kept: list[Sample | None] = []
        if source.item or source.samples.is_file():
            try:
                self.rows = [*self._read(first)]
            except (KeyError, TypeError, ValueError) as error:
                what = f"damaged, or its scores are not such as the task gives ({type(error).__name__})"
                raise MedtasksError(what, where=source.samples, remedy=RESCORE) from None
        else:
            self._kept += self._waiting()
            self.rows = [self._waits(sample) for sample in self._kept if sample]

    def record(self, place: int) -> Sample:
        kept = self._kept[place] if self._kept else None
        return self._file.record(place) if kept is None else kept

    def answer_of(self, sample: Sample) -> Answer | None:
        """The stored outcome, which plain lm_eval does not keep."""
        key = sample.get("request", "")
        return self._outcomes.known([key]).get(key) if self._outcomes and key else None

    def _waiting(self) -> Iterator[Any]:
        """The answers of a task that is not scored yet, as records without readings."""
        if self._outcomes is None:
            return
        asked = self._outcomes.answered(self.source.task)
        known = self._outcomes.known(item.key for item in asked.values())
        for number, (document, item) in enumerate(asked.items()):
            yield {
                "doc_id": number,
                "doc": {"id": document, "system": "", "prompt": "", "target": "", "gold": None},
                "arguments": {"gen_args_0": {"arg_0": ""}},
                "resps": [[known[item.key].text]],
                "filtered_resps": [{}],
                "request": item.key,
            }

    def _waits(self, sample: Sample) -> Row:
        response = response_of(sample)
        flags = Flag.WAITING | _ending(self.answer_of(sample), response)
        return Row(document_key(sample["doc"]), flags, reply=_in_one_line(response))

    def _read(self, first: int | None) -> Iterator[Row]:
        source, item = islice(self._file, first), self.source.item
        statistic = score_statistic(self.source.dataset, repeats=item.conditions.repeats if item else 1)
        number, alike = 0, None  # characters with which all prompts begin
        while block := list(islice(source, _BLOCK)):
            self._kept += block if first else []
            sound = [sample for sample in block if sample is not None]
            if alike is None:
                alike = _alike([_one_line(shown(sample["doc"])) for sample in sound])
            for sample in sound if self.judged is not None else ():
                add_judgement(sample, self.judged or {})
            keys = [sample.get("request", "") for sample in sound]
            answers = self._outcomes.known(filter(None, keys)) if self._outcomes else {}
            frame = document_scores(sound, statistic)
            figures = zip(frame.scores.tolist(), frame.valid.tolist(), frame.unclosed.tolist(), strict=True)
            known = dict(zip(frame.documents, figures, strict=True))
            for one in block:
                number += 1
                if one is None:
                    yield Row(f"damaged record {number}", Flag.DAMAGED)
                else:
                    answer, prompt = answers.get(one.get("request", "")), _one_line(shown(one["doc"]))
                    prompt = f"{'… ' if alike else ''}{prompt[alike : alike + _LINE]}"
                    yield self._row(one, answer, prompt, *known[document_key(one["doc"])])

    def _row(
        self, sample: Sample, answer: Answer | None, prompt: str, score: float, valid: float, unclosed: float
    ) -> Row:
        document, response = sample["doc"], response_of(sample)
        kind = str(self.source.dataset.config["answer"]["kind"])
        readings = [parsed_of(sample, draw) for draw in range(len(sample["resps"][0]))]
        sample["filtered_resps"] = [readings]  # who shows it need not read it again
        value: Any = sample.get("score")
        parsed = readings[0]
        if "trial" in document and isinstance(value, list | tuple):
            # it is right or wrong by itself, also where all of them make a score
            score = fmean(trial[2] for trial in (value if len(readings) > 1 else [value]))
        flags = _ending(answer, response)
        flags |= Flag.TRUNCATED if unclosed > 0 else Flag(0)
        flags |= Flag.UNREADABLE if valid < 1 else Flag(0)
        if score >= 1 - 1e-9:
            flags |= Flag.RIGHT
        elif not math.isnan(score) and kind not in TEXTS:
            flags |= Flag.WRONG
        alone, cut = None if math.isnan(score) else score, bool(flags & Flag.TRUNCATED)
        cluster = error_of(kind, response, alone, readable=bool(parsed.get("valid", True)), cut=cut)
        reply, read = without_reasoning(response), parsed.get("answer") if parsed.get("valid") else None
        of = cluster, prompt, _in_one_line(reply), document.get("gold"), read
        return Row(document_key(document), flags, score, *of)


def response_of(sample: Sample) -> str:
    given = sample["resps"][0][0]
    return given if isinstance(given, str) else ""


def _in_one_line(text: str) -> str:
    """What a list needs of a reply: its beginning and its end."""
    return _one_line(f"{text[:_LINE]} … {text[-_LINE:]}" if len(text) > 2 * _LINE else text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _alike(texts: Sequence[str]) -> int:
    """With how many characters all of several texts begin, up to the beginning of a word."""
    prefix = commonprefix(texts)  # noqa: RUF071  characters are meant
    return 0 if prefix in texts else prefix.rfind(" ") + 1


def _ending(answer: Answer | None, response: str) -> Flag:
    cut = Flag.TRUNCATED if answer is not None and answer.finish == "length" else Flag(0)
    return cut | (Flag(0) if response.strip() else Flag.EMPTY)


def outcomes_in(folder: Path) -> Outcomes:
    found = _outcomes_in(folder, tuple(path.stat().st_ino for path in files_of(folder)))
    found.refresh()
    return found


@lru_cache(maxsize=8)
def _outcomes_in(folder: Path, files: tuple[int, ...]) -> Outcomes:
    return Outcomes(folder)


Sources: TypeAlias = "dict[str, list[Source]]"


def sources_of(entries: Sequence[Entry], tasks: Registry, paths: Sequence[Path] = ()) -> Sources:
    """Dataset -> where its answers lie, in the registry's order; answers by likelihood are no texts.

    `paths`: of runs whose answers to tasks without a score count, too.
    """
    found: Sources = {name: [] for name in tasks.datasets}
    outcomes = cache(outcomes_in)
    for entry in entries:
        for item in entry.experiments.values():
            if item.samples is not None and item.task in tasks.tasks:
                folder = item.samples.parent if entry.kind == "medtasks" else None
                named = item.samples.stem.removeprefix("samples_").rpartition("_")[0]
                task = named if folder else item.task
                where = item.samples, folder, item.sample, outcomes(folder) if folder else None
                source = Source(entry.label, task, item.dataset, item.strategy, *where, item)
                found[item.dataset.id].append(source)
    for folder, manifest in runs_of(paths):
        for name in outcomes(folder).asked:
            entered = manifest.tasks.get(name)
            if name in tasks.tasks and entered and entered.state is not TaskState.DONE:
                dataset, strategy = asked_task(tasks, name, {})
                sample = manifest.identity.settings.get("data") == "sample"
                where = RunFolder(folder).samples_file(name), folder, sample, outcomes(folder)
                label = manifest.identity.model_name
                found[dataset.id].append(Source(label, name, dataset, strategy, *where))
    return {name: sources for name, sources in found.items() if sources}


def sources_named(found: Sources, name: str, tasks: Registry) -> list[Source]:
    """By the dataset's id, or by the name of one of its tasks."""
    dataset = name if name in found or name not in tasks.tasks else tasks.tasks[name][0].id
    if dataset not in found:
        named = f"name one of: {some([*found], 8)}" if found else "look again when a task has answers"
        raise MedtasksError(f"no answers to {name!r}{near(name, found)}", remedy=named)
    return found[dataset]


def runs_of(paths: Iterable[Path]) -> Iterator[tuple[Path, Manifest]]:
    """The runs of medtasks that paths name, those that can be read."""
    for path in paths:
        own = run_folder(path)
        for folder in [own] if own else runs_below(path):
            with suppress(MedtasksError):  # who reads the results names it
                yield folder, Manifest.read(folder)


def columns_of(sources: Sequence[Source], faults: list[Fault], first: int | None = None) -> list[Column]:
    """Those that can be read; what cannot is added to the faults."""
    found = []
    for source in sources:
        try:
            found.append(column := Column(source, first))
        except MedtasksError as error:
            faults.append(Fault(source.task, f"no answers: {error.what}", error.remedy, skipped=False))
            continue
        if damaged := sum(bool(row.flags & Flag.DAMAGED) for row in column.rows):
            what = f"{damaged:,} of {len(column.rows):,} records of {source.samples.name} are damaged"
            faults.append(Fault(source.task, what, RESCORE, skipped=False))
    return found
