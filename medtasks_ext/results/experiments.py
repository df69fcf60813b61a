"""Results of any origin in one form: runs of `medtasks run`, of plain `lm_eval`, published scores.

An `Experiment` is one task of one model under one set of settings; an `Entry` is a line of a leaderboard.
What cannot be used is a `Fault`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from medtasks_ext.prompts.documents import LoadedRecord
from medtasks_ext.results.conditions import (
    Confirmed,
    Difference,
    Facts,
    confirmed,
    differences,
    facts,
    of_run,
    of_the_paper,
    run_words,
    settings_words,
    shown,
    task_words,
    value_words,
)
from medtasks_ext.results.rollup import Finished
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.strict import Config

if TYPE_CHECKING:
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.runs.records import Sample
    from medtasks_ext.stats.statistic import Array

Kind = Literal["medtasks", "lm_eval", "published"]
#: What lm-eval says of the weights that it loaded: a model is not called by it.
LOADED = ("model_sha", "peft_sha", "delta_sha", "model_num_parameters")


@dataclass(frozen=True)
class Fault:
    where: str  # file, folder or task
    what: str  # in plain words
    remedy: str  # how to mend it
    skipped: bool = True  # whether something was left out because of it

    def record(self) -> dict[str, str]:
        return {"where": self.where, "what": self.what, "remedy": self.remedy}

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  → {self.remedy}"


@dataclass(kw_only=True)
class Experiment(Finished):
    """One task of one model; `printed` ones have a score alone."""

    task: str  # its name, strategy suffix included
    dataset: Dataset  # the dataset, with all metadata
    conditions: Conditions  # under which it came about
    #: metric -> interval as the code of the suite's paper computes it, where that is recorded
    paper_intervals: dict[str, Interval] = field(default_factory=dict)
    #: the record of what was loaded (origin, revision, hashes, counts)
    loaded: LoadedRecord = field(default_factory=LoadedRecord)
    tokens: dict[str, int] | None = None  # input and output tokens, where they were counted
    #: lm-eval's record of the task's configuration; empty for published scores
    config: Config = field(default_factory=dict)
    #: the model whose score a paper prints, as it names it; None of a score that was measured
    printed: str | None = None
    #: gives the score on each resample, (resamples,), or None
    read_resampled: Callable[[], Array | None] = lambda: None
    #: gives what each document contributed. Raises MedtasksError
    read_documents: Callable[[], DocumentScores] | None = None
    samples: Path | None = None  # the file of lm-eval's records of its documents
    #: gives lm-eval's records of the documents, with texts; all, or so many of the file's first. Raises
    #: MedtasksError
    read_samples: Callable[..., list[Sample]] | None = None

    @property
    def score(self) -> float | None:
        return self.metrics.get("score")

    @property
    def strategy(self) -> str:
        return self.conditions.strategy

    @property
    def version(self) -> str:
        """Comparability version `N-X` of the task when it was run; empty of a printed score."""
        return self.conditions.version or ""

    @property
    def sample(self) -> bool:
        return self.conditions.synthetic

    @property
    def cut(self) -> dict[str, int]:
        return {} if self.printed is not None else self.conditions.cut

    @property
    def n_answers(self) -> int:
        return self.n * self.conditions.repeats

    def share_cut(self, what: str) -> float | None:
        """Of its answers; None where nobody counted them."""
        return self.cut[what] / self.n_answers if self.n and what in self.cut else None

    @cached_property
    def words(self) -> dict[str, str]:
        return task_words(self.conditions, self.printed)

    @property
    def facts(self) -> Facts:
        return facts(self.conditions)

    @property
    def shown(self) -> Mapping[str, str | int | float | bool | None]:
        return shown(self.facts)

    @property
    def limited(self) -> bool:
        return (self.conditions.documents or "all") != "all"

    @property
    def covered(self) -> float:
        """Share of its answers that were judged, where judges score it; else 1."""
        return 1.0 if self.conditions.judged is None else self.conditions.judged

    @property
    def rows(self) -> int:
        """That are accounted for: those here, and those that serve as examples or have no gold."""
        return self.n if self.printed is not None else self.conditions.accounted or 0

    @property
    def rows_of_suite(self) -> int | None:
        unstated = self.sample or self.printed is not None
        return None if unstated else self.conditions.n_of_suite or None

    @cached_property
    def missing(self) -> list[str]:
        """Rows and answers that are not there, n of n in words."""
        here, faulty, missing = self.conditions.n_here, self.conditions.n_faulty, []
        if self.rows < (self.rows_of_suite or 0):
            missing.append(f"{self.rows:,} of the suite's {self.rows_of_suite:,} rows")
        if here is not None and self.n < here:
            missing.append(f"{self.n:,} of {here:,} answers")
        if faulty:
            missing.append(f"{faulty:,} faulty rows left out")
        return missing

    @property
    def in_part(self) -> str:
        """What is not there, judgements among it, in words; empty where nothing is missing."""
        judgements = [f"{self.covered:.0%} of the judgements"] if self.covered < 1 else []
        return ", ".join([*self.missing, *judgements])

    @cached_property
    def beside_the_paper(self) -> tuple[Difference, ...] | None:
        """What differs from how the paper asked; None where the paper prints no scores."""
        dataset = self.dataset
        if self.printed is not None or not dataset.of_paper or dataset.suite.published is None:
            return None
        # what a paper calls zero-shot may ask to reason first
        asked = dataset.metadata.published_strategy if self.strategy == "zero_shot" else self.strategy
        return differences(self.facts, facts(of_the_paper(dataset, asked)))

    @cached_property
    def confirmed(self) -> Confirmed:
        """What of its rows, words and examples is confirmed, and what is said; nothing of a printed score."""
        return Confirmed() if self.printed is not None else confirmed(self.dataset, self.conditions)

    @property
    def unlike_the_paper(self) -> tuple[Difference, ...]:
        """What differs from the paper and can move a score."""
        return tuple(item for item in self.beside_the_paper or () if item.moves)

    @property
    def may_stand_beside(self) -> bool:
        """Whether it may be ranked among the results of the suite's paper."""
        return not self.in_part and not self.unlike_the_paper

    @property
    def whole(self) -> bool:
        return not self.in_part and not self.limited

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the score can still become, by answers that wait for a judge; None where none does."""
        behind = self.metrics.get("scored", 1.0)
        if self.score is None or "judged" not in self.metrics or behind == 1:
            return None
        return self.score * behind, self.score * behind + 1 - behind


class Printed(NamedTuple):
    interval: Interval | None = None  # 95 % interval of the score
    valid: float | None = None  # share of readable answers


@dataclass
class Entry:
    """One line of a leaderboard."""

    model: str  # as its user, or the paper, names it
    label: str  # the model, and what tells this entry from others of the same model
    kind: Kind  # where it comes from
    experiments: dict[str, Experiment]  # task -> experiment
    #: what all its experiments share; nothing of a paper's
    conditions: Conditions = field(default_factory=Conditions)
    paper: str = ""  # the suite whose paper prints it; empty of a run
    #: group -> published score, where a paper prints no score per task
    groups: dict[str, float] = field(default_factory=dict)
    #: group -> what a paper prints beside its score: the interval, and the readable share
    printed: dict[str, Printed] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()  # where it was read
    notes: tuple[str, ...] = ()  # what is known to have gone wrong in the run (preflight, endpoint, template)
    manifest: dict[str, Any] = field(default_factory=dict)  # of the run that it was read from first
    asked: tuple[str, ...] = ()  # names of tasks and groups, as `--tasks` said them
    #: facts about a published model (organisation, parameters, access, prices)
    details: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> dict[str, str]:
        return {"published": self.paper} if self.paper else run_words(self.facts)

    @property
    def facts(self) -> Facts:
        """What all its experiments share."""
        return of_run(self.conditions, (item.conditions for item in self.experiments.values()))

    def part(self, experiments: dict[str, Experiment], label: str | None = None) -> Entry:
        return replace(self, experiments=experiments, label=self.label if label is None else label)

    @property
    def variant(self) -> str:
        """Settings that make another model of its name (quantisation, adapters, thinking), in words."""
        pairs = (pair for item in self.experiments.values() for pair in item.facts["variant"])
        return settings_words({name: value for name, value in pairs if name not in LOADED})

    @property
    def limited(self) -> bool:
        return any(item.limited for item in self.experiments.values())

    @cached_property
    def sample(self) -> bool:
        return any(item.sample for item in self.experiments.values())


def is_open(dataset: Dataset, *, sample: bool) -> bool:
    """Whether anyone may see the rows: they are synthetic, or anyone can download them."""
    return sample or dataset.metadata.access == "open"


def unlike_tasks(one: Entry, other: Entry) -> dict[str, tuple[Difference, ...]]:
    """Task of both -> what differs in how it was asked; none of those that were asked alike."""
    return {
        name: unlike
        for name, item in one.experiments.items()
        if (theirs := other.experiments.get(name))
        if (unlike := differences(item.facts, theirs.facts, joined=True))
    }


def label_entries(entries: Sequence[Entry]) -> None:
    """Give each entry a label of its own: the model, and the conditions in which its namesakes differ."""
    by_model: dict[str, list[Entry]] = {}
    for entry in entries:
        by_model.setdefault(entry.model, []).append(entry)
    for model, same in by_model.items():
        taken: dict[str, int] = {}
        for entry in same:
            parts: dict[str, str] = {}
            for other in (item for item in same if item is not entry):
                if entry.kind != other.kind:
                    parts["results of"] = entry.kind
                unlike = differences(entry.facts, other.facts, joined=True)
                for item in unlike or chain(*unlike_tasks(entry, other).values()):
                    parts.setdefault(item.condition, value_words(item.field, item.one))
            words = [*map(": ".join, parts.items())]
            if entry.variant and "model arguments" not in parts:
                words.insert(0, f"with {entry.variant}")  # also of one without namesakes
            label = f"{model} ({'; '.join(words)})" if words else model
            taken[label] = taken.get(label, 0) + 1
            entry.label = label if taken[label] == 1 else f"{label} #{taken[label]}"
