"""Results of any origin in one form: runs of `medtasks run`, of plain `lm_eval`, stores, published scores.

An `Experiment` is one task of one model under one set of settings; an `Entry` is a line of a leaderboard,
all experiments that were made in the same way. What cannot be used is a `Fault`, which is said, never
dropped in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.prompts.documents import LoadedRecord
from medtasks_ext.registry.yamlfile import Config
from medtasks_ext.results.conditions import (
    Asked,
    Comparability,
    Difference,
    asked,
    beside_the_paper,
    kept_apart,
    of_run,
)
from medtasks_ext.stats.bootstrap import Interval

if TYPE_CHECKING:
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.runs.records import Sample
    from medtasks_ext.stats.statistic import Array

Kind = Literal["medtasks", "lm_eval", "published"]


@dataclass(frozen=True)
class Fault:
    """Something that was left out of results, or must be known beside them."""

    where: str  # file, folder or task
    what: str  # in plain words
    remedy: str  # how to mend it
    skipped: bool = True  # whether something was left out because of it

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  → {self.remedy}"


@dataclass(frozen=True)
class Coverage:
    """How much of a suite's dataset a score stands on."""

    answers: int  # documents that were answered
    here: int | None  # documents of the rows that were read; None where nobody counted
    rows: int  # rows that are accounted for: those here, and those that serve as examples or have no gold
    of_suite: int | None  # rows that the suite states; None where it states none, and of synthetic rows
    judged: float  # share of the answers that were judged, of those that are to be

    @property
    def short(self) -> bool:
        """Whether rows of the suite are missing here, or were not asked."""
        return (self.here is not None and self.answers < self.here) or self.lacks_rows

    @property
    def lacks_rows(self) -> bool:
        """Whether there are fewer rows here than the suite states."""
        return self.of_suite is not None and self.rows < self.of_suite

    @property
    def whole(self) -> bool:
        """Whether the score rests on all rows, answers and judgements."""
        return not self.short and self.judged == 1

    @property
    def words(self) -> str:
        """What is missing, n of n; empty where nothing is."""
        return ", ".join(
            [
                *([f"{self.rows:,} of the suite's {self.of_suite:,} rows"] if self.lacks_rows else []),
                *(
                    [f"{self.answers:,} of {self.here:,} answers"]
                    if self.here is not None and self.answers < self.here
                    else []
                ),
                *([f"{self.judged:.0%} of the judgements"] if self.judged < 1 else []),
            ]
        )


@dataclass
class Experiment:
    """One task of one model."""

    task: str  # its name, strategy suffix included
    dataset: Dataset  # the dataset, with all metadata
    strategy: str  # `zero_shot`, `cot` or `five_shot`
    version: str  # comparability version `N-X` of the task when it was run
    #: metric -> value, without NaN; `score` is absent without gold or before judging
    metrics: dict[str, float]
    intervals: dict[str, Interval]  # metric -> 95 % interval, where there is one
    n: int  # documents
    #: what decides whether its score can be compared, in words (`task_settings`), and which documents were
    #: asked; the latter not of published scores
    settings: dict[str, str]
    #: the record of what was loaded (origin, revision, hashes, counts)
    loaded: LoadedRecord = field(default_factory=LoadedRecord)
    cut: dict[str, int] = field(default_factory=dict)  # counts of answers and prompts that did not fit
    tokens: dict[str, int] | None = None  # input and output tokens, where they were counted
    sample: bool = False  # whether its rows are synthetic
    #: lm-eval's record of the task's configuration; empty for published scores
    config: Config = field(default_factory=dict)
    #: the conditions as a run recorded them (`runs.conditions`); empty where nobody did
    recorded: dict[str, Any] = field(default_factory=dict)
    #: what is known of its conditions; its entry gives them
    asked: Asked = field(default_factory=lambda: Asked("zero_shot"), repr=False, compare=False)
    #: gives the score on each resample, (resamples,), or None
    read_resampled: Callable[[], Array | None] = lambda: None
    #: gives what each document contributed. Raises MedtasksError
    read_documents: Callable[[], DocumentScores] | None = None
    #: gives lm-eval's records of the documents, with texts; all, or so many of the file's first. Raises
    #: MedtasksError
    read_samples: Callable[..., list[Sample]] | None = None

    @property
    def score(self) -> float | None:
        """The primary metric on 0-1."""
        return self.metrics.get("score")

    @property
    def words(self) -> dict[str, str]:
        """What decides whether its score can be compared, in words."""
        return self.settings

    @property
    def facts(self) -> Asked:
        """What of its conditions is compared with those of others."""
        return self.asked

    @property
    def shown(self) -> dict[str, Any]:
        """Condition -> its value as tables hold it; None where nobody recorded it."""
        return asdict(self.asked)

    @property
    def rows_hash(self) -> str:
        """Of the rows; empty where nobody recorded it."""
        return self.settings.get("rows", "")

    @property
    def rebuilt(self) -> bool:
        """Whether its rows come from the source and not from the suite."""
        return self.settings.get("rebuilt") == "yes"

    @property
    def official(self) -> bool:
        """Whether it was asked in the suite's own words, but perhaps for the line of the strategy."""
        return self.settings["prompt"].startswith("official")

    @property
    def limited(self) -> bool:
        """Whether not all of its documents were asked."""
        return self.settings.get("documents", "all") != "all"

    @property
    def covered(self) -> float:
        """Share of its answers that were judged, where judges score it; else 1."""
        return self.metrics.get("judged", 1.0)

    @cached_property
    def coverage(self) -> Coverage:
        """How much of the suite's dataset its score stands on."""
        loaded, published = self.loaded, self.settings.get("version") == "published"
        stated = (self.recorded.get("rows") or {}).get("n_of_suite", self.dataset.n_documents)
        here = loaded.get("n_test")
        rows = self.n if here is None else here
        if rows < stated:
            rows = min(rows + loaded.get("n_held_out", 0) + loaded.get("n_dropped", 0), stated)
        return Coverage(
            answers=self.n,
            here=here,
            rows=rows,
            of_suite=None if self.sample or published or not stated else stated,
            judged=self.covered,
        )

    @cached_property
    def beside_the_paper(self) -> Comparability | None:
        """How far it can stand beside what the suite's paper prints; None where that prints no scores."""
        return beside_the_paper(self)

    @property
    def whole(self) -> bool:
        """Whether it was asked all documents of the suite, and judged on all answers."""
        return self.coverage.whole and not self.limited

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the score can still become, by answers that wait for a judge; None where none does."""
        behind = self.metrics.get("scored", 1.0)
        if self.score is None or "judged" not in self.metrics or behind == 1:
            return None
        return self.score * behind, self.score * behind + 1 - behind

    def share_cut(self, what: str) -> float | None:
        """Share of the documents in one of the counts of `cut`; None where it was not counted."""
        return self.cut[what] / self.n if self.n and what in self.cut else None


@dataclass(frozen=True)
class Printed:
    """What a paper prints beside a model's score of a group."""

    interval: Interval | None = None  # 95 % interval of the score
    valid: float | None = None  # share of readable answers


@dataclass
class Entry:
    """One line of a leaderboard."""

    model: str  # as its user, or the paper, names it
    label: str  # the model, and what tells this entry from others of the same model
    kind: Kind  # where it comes from
    settings: dict[str, str]  # what all its experiments share and what decides whether scores can be compared
    experiments: dict[str, Experiment]  # task -> experiment
    #: group -> published score, where a paper prints no score per task
    groups: dict[str, float] = field(default_factory=dict)
    #: group -> what a paper prints beside its score: the interval, and the readable share
    printed: dict[str, Printed] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()  # where it was read
    notes: tuple[str, ...] = ()  # what is known to have gone wrong in the run (preflight, endpoint, template)
    manifest: dict[str, Any] = field(default_factory=dict)  # of the run that it was read from first
    #: facts about a published model (organisation, parameters, access, prices)
    details: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Tell the experiments under which conditions they came about: a part of these is the entry's."""
        for item in self.experiments.values():
            item.asked = asked(item, self.settings)
            vars(item).pop("beside_the_paper", None)  # follows from it

    @property
    def words(self) -> dict[str, str]:
        """What all its experiments share and what decides whether scores can be compared, in words."""
        return self.settings

    @property
    def paper(self) -> str:
        """The suite whose paper prints it; empty for a run."""
        return self.settings.get("published", "")

    def part(self, experiments: dict[str, Experiment], label: str | None = None) -> Entry:
        """The entry with some of its experiments alone; under which conditions these came about is known.

        Args:
            experiments: task -> experiment.
            label: another one than the entry has.
        """
        found = copy(self)
        found.experiments, found.label = experiments, self.label if label is None else label
        return found

    @property
    def limited(self) -> bool:
        """Whether not all documents of each task were asked."""
        return self.settings.get("documents", "all") != "all"

    @property
    def sample(self) -> bool:
        """Whether its rows are synthetic."""
        return any(item.sample for item in self.experiments.values())


def task_settings(
    version: str, loaded: LoadedRecord, *, examples: str | None = None, jury: str | None = None
) -> dict[str, str]:
    """What decides whether two scores of one task can be compared.

    Args:
        loaded: the record of what was loaded.
        examples: hash of the examples in a prompt, where there are some.
        jury: who judged, in words.
    """
    origin = str(loaded.get("origin", "unknown"))
    revision = loaded.get("revision")
    return {
        "version": version.partition("-")[0],
        "prompt": f"{loaded.get('instruction', 'unknown')} {loaded.get('prompt_hash', '')}".strip(),
        "data": f"{origin} @ {revision}" if revision else origin,
        "rows": str(loaded.get("rows_hash", "")),
        "rebuilt": "yes" if loaded.get("rebuilt") else "no",
        **({"examples": examples} if examples else {}),
        **({"jury": jury} if jury else {}),
    }


def without_nan(metrics: Mapping[str, Any], where: str) -> tuple[dict[str, float], list[Fault]]:
    """Metrics that are numbers, and a fault for each that is not."""
    kept, faults = {}, []
    for name, value in metrics.items():
        if isinstance(value, (int, float)) and math.isfinite(value):
            kept[name] = float(value)
        elif isinstance(value, (int, float)):
            faults.append(Fault(where, f"metric {name} is {value}, and is left out", "medtasks rescore RUN"))
    return kept, faults


def differing(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Names of settings in which the given ones are not all alike."""
    names = dict.fromkeys(name for item in settings for name in item)
    return [name for name in names if len({item.get(name, "") for item in settings}) > 1]


def unlike_runs(one: Entry, other: Entry) -> tuple[Difference, ...]:
    """What keeps two runs of one model apart as a whole; arguments are part of a model."""
    mine, theirs = (item.settings.get("model arguments") or "none" for item in (one, other))
    found = [
        Difference("model arguments", "close", mine, theirs, "other arguments make another model"),
        Difference("results of", "close", one.kind, other.kind, "each tool records other conditions"),
    ]
    return (
        *(item for item in found if item.one != item.other),
        *kept_apart(of_run(one.settings), of_run(other.settings)),
    )


def unlike_tasks(one: Entry, other: Entry) -> dict[str, tuple[Difference, ...]]:
    """Task of both -> what differs in how it was asked; none of those that were asked alike."""
    pairs = ((name, item.asked, other.experiments.get(name)) for name, item in one.experiments.items())
    found = {name: kept_apart(mine, theirs.asked) for name, mine, theirs in pairs if theirs is not None}
    return {name: differences for name, differences in found.items() if differences}


def told_apart(entries: Sequence[Entry]) -> None:
    """Give each entry a label of its own: the model, and the conditions in which its namesakes differ."""
    by_model: dict[str, list[Entry]] = {}
    for entry in entries:
        by_model.setdefault(entry.model, []).append(entry)
    for model, same in by_model.items():
        taken: dict[str, int] = {}
        for entry in same:
            parts: dict[str, str] = {}
            for other in (item for item in same if item is not entry):
                for item in unlike_runs(entry, other) or chain(*unlike_tasks(entry, other).values()):
                    parts.setdefault(item.condition, item.one)
            label = f"{model} ({'; '.join(map(': '.join, parts.items()))})" if parts else model
            taken[label] = taken.get(label, 0) + 1
            entry.label = label if taken[label] == 1 else f"{label} #{taken[label]}"
