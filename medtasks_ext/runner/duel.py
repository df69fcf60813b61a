"""Two models on the same documents, asked in rounds until they are told apart or are known to be alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.strategies import asked_strategy
from medtasks_ext.results.conditions import comparable, facts
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.drawn import difference_of
from medtasks_ext.results.models import published_rows
from medtasks_ext.results.older_conditions import stored_conditions
from medtasks_ext.results.published import published_entries
from medtasks_ext.runner.drawing import Design, ErrorTarget, Score, Standing, not_estimated
from medtasks_ext.runner.evaluate import build_task
from medtasks_ext.runner.run import BOUND_TO, Run, loaded_record
from medtasks_ext.runs.conditions import CUTS, RunConditions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest
from medtasks_ext.runs.samples import iter_samples
from medtasks_ext.stats.sampling import GROWTH_OF_PAIRS, TUNED_FOR_PAIRS
from medtasks_ext.stats.sequences import sequence_half_width, variance_for

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.registry import Registry
    from medtasks_ext.stats.sampling import Estimate
    from medtasks_ext.stats.statistic import Array

_TUNED = variance_for(TUNED_FOR_PAIRS)
#: What two runs must have alike, in words.
_WORDS = {"rows_hash": "rows", "prompt_hash": "prompts", "instruction": "prompt wording", "origin": "rows"}


def duel_of(
    registry: Registry, tasks: Mapping[str, Task], target: ErrorTarget, after: Path | None = None
) -> Duel:
    """The comparison with the run that a target names.

    Args:
        tasks: as they are asked now.
        after: a run of the other model; None where it is still to be asked.

    Raises:
        MedtasksError: the two are unlike, or too few documents were answered.
    """
    scored = {name: task for name, task in tasks.items() if not not_estimated(task)}
    theirs = scores_of_run(Path(target.against), scored)
    duel = Duel(registry, tasks, target, theirs, scores_of_run(after, scored) if after else None)
    duel.check()
    return duel


def compared_runs(registry: Registry, before: Path, after: Path, error: float) -> tuple[Duel, list[Standing]]:
    """Two runs as if they were asked in rounds until they are told apart, on what both have answered.

    Args:
        error: within which they count as alike, in points.

    Raises:
        MedtasksError: as `duel_of`, or rows of the runs are not here.
    """
    run = Run(after, registry)
    run.load()
    names = [name for name in run.manifest.tasks if run.is_done(name)]
    there = Manifest.read(before).tasks
    tasks = {name: build_task(registry, name, run.settings_of(name)) for name in names if name in there}
    target = ErrorTarget(error, watched=True, against=str(before))
    duel = duel_of(registry, tasks, target, after)
    ours = scores_of_run(after, {name: tasks[name] for name in duel.tasks})
    asked: dict[str, dict[int, Mapping[str, Any]]] = {name: {} for name in duel.tasks}
    standings: list[Standing] = []
    while (drawn := duel.draw()) is not None:
        for name, places in drawn.items():
            asked[name].update({i: {"score": ours[name][i]} for i in places if i in ours[name]})
        standings = list(duel.settle(asked))
    return duel, standings


def scores_of_run(folder: Path, tasks: Mapping[str, Task]) -> dict[str, dict[int, Any]]:
    """Task -> place of a document -> what it contributes to the score, in a run of the same tasks.

    Args:
        folder: of the run.
        tasks: as they are asked now.

    Raises:
        MedtasksError: the run lacks a task, or was asked under other conditions.
    """
    manifest, files = Manifest.read(folder), RunFolder(folder)
    by_score = {}
    for name, task in tasks.items():
        if name not in manifest.tasks or not files.task_file(name).is_file():
            raise MedtasksError(
                f"has no result of {name}", where=folder, remedy="run it there, or leave the task out here"
            )
        stored, now = files.read_task(name), loaded_record(task)
        unlike = [_WORDS[part] for part in BOUND_TO if stored["loaded"].get(part) != now.get(part)]
        if stored["version"].partition("-")[0] != str(task.VERSION).partition("-")[0]:
            unlike.append("version of the task")
        if (stored["config"].get("num_fewshot") or 0) != (task.config.num_fewshot or 0):
            unlike.append("examples")
        if unlike:
            raise MedtasksError(
                f"{name} was asked under other conditions there: {', '.join(dict.fromkeys(unlike))}",
                where=folder,
                remedy="compare runs of the same rows, words and examples",
            )
        rows = task.eval_docs
        by_score[name] = {
            sample["doc_id"]: sample["score"]
            for sample in iter_samples(files.samples_file(name))
            if "score" in sample and document_key(sample["doc"]) == document_key(rows[sample["doc_id"]])
        }
    return by_score


def against_published(
    registry: Registry, tasks: Mapping[str, Task], target: ErrorTarget, run: RunConditions
) -> Printed:
    """The comparison with the published model that a target names.

    Args:
        tasks: as they are asked now.
        run: what they share.

    Raises:
        MedtasksError: there is no such model, none of the tasks has a score that it can be compared with, or
            the paper asked under other conditions.
    """
    entries = published_rows(target.against, published_entries(registry))
    printed = {name: found for entry in entries for name, found in entry.experiments.items()}
    left_out, scores, unlike = dict[str, str](), dict[str, Share](), dict[str, list[str]]()
    for name, task in tasks.items():
        dataset, strategy = registry.tasks[name]
        if (found := printed.get(name)) is None or "score" not in found.metrics:
            left_out[name] = "no score of it is published"
        elif not_estimated(task) or not score_statistic(dataset, strategy).name.startswith("mean"):
            left_out[name] = "nothing says how sure a published score is that is no mean over documents"
        else:
            stored = {
                "version": task.VERSION,
                "n": len(task.eval_docs),
                "metrics": {},
                "loaded": loaded_record(task),
                "config": {
                    "generation_kwargs": task.config.generation_kwargs,
                    "num_fewshot": task.config.num_fewshot,
                },
                "cut": dict.fromkeys(CUTS, 0),  # nobody knows before; the result says it
            }
            how = asked_strategy(strategy, int(task.config.num_fewshot or 0))
            ours = stored_conditions(stored, run, dataset, how, "all", name)
            for item in comparable(facts(ours), facts(found.conditions)).moving:
                unlike.setdefault(item.condition, []).append(name)
            scores[name] = Share(found.metrics["score"], len(task.eval_docs))
    if unlike:
        what = "; ".join(f"{condition} ({some(names, 3)})" for condition, names in unlike.items())
        raise MedtasksError(
            f"{target.against} was asked under other conditions: {what}",
            where="--against",
            remedy="ask in the suite's words, over its rows, with its settings, or leave these out",
        )
    if not scores:
        why = "; ".join(dict.fromkeys(left_out.values()))
        raise MedtasksError(
            f"nothing of {target.against} can be compared with: {why}",
            where="--against",
            remedy="name tasks with published scores, or a run of your own",
        )
    return Printed(registry, {name: tasks[name] for name in scores}, target, scores, left_out)


class _Apart(Design):
    """What is drawn until a model is told apart from another, or is known to be as good."""

    def _rounds_of(self, score: Score) -> Iterator[Array]:
        return score.population.rounds(_TUNED, first=0, growth=GROWTH_OF_PAIRS)

    def planned(self) -> dict[str, int]:
        """Task -> documents that are asked at most."""
        return {name: len(draw.places(self._most[name])) for name, draw in self._draws.items()}

    def _standing(self, name: str, estimate: Estimate) -> Standing:
        half, value = float(sequence_half_width(estimate.beyond, _TUNED)), estimate.value
        if abs(value) > half:
            words = f"{'better' if value > 0 else 'worse'} than {self.target.against}"
        elif half <= self.target.half:
            words = f"as good as {self.target.against}, within {100 * (abs(value) + half):.1f} points"
        else:
            words = f"not told apart {'by all documents' if self.n_asked == self.n_documents else 'yet'}"
        return Standing(name, value, half, words)

    def _is_settled(self, standing: Standing) -> bool:
        return abs(standing.value) > standing.half or standing.half <= self.target.half


class Share(NamedTuple):
    """A published score that is a mean over documents."""

    score: float
    documents: int

    @property
    def variance(self) -> float:
        """Of a mean of scores on 0-1, at most: that of shares of right answers."""
        return self.score * (1 - self.score) / self.documents


class Printed(_Apart):
    """A model beside published scores, of which nobody has the answers.

    A published score was taken from as many documents, and its error is counted beside ours as if the two had
    nothing in common. It is there from the first round on, so that the differences of all rounds move as a
    sequence does (`stats.sequences`) whose variances are larger by it.

    Args:
        theirs: task -> its published score.
        left_out: task -> why it is not asked.
    """

    def __init__(
        self,
        registry: Registry,
        tasks: Mapping[str, Task],
        target: ErrorTarget,
        theirs: Mapping[str, Share],
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(registry, tasks, target)
        self.left_out |= left_out
        self._theirs = theirs

    def _estimate(self, name: str, scored: Mapping[int, Mapping[str, Any]]) -> Estimate | None:
        ours, theirs = super()._estimate(name, scored), self._theirs[name]
        if ours is None:
            return None
        return replace(
            ours,
            value=ours.value - theirs.score,
            variance=ours.variance + theirs.variance,
            beyond=ours.beyond + theirs.variance,
        )


class Duel(_Apart):
    """What is drawn until two models are told apart; of documents that the other has answered.

    Args:
        theirs: what `scores_of_run` gives of the other model.
        ours: the same of this one, where it has answered already; else it is asked.
    """

    def __init__(
        self,
        registry: Registry,
        tasks: Mapping[str, Task],
        target: ErrorTarget,
        theirs: Mapping[str, Mapping[int, Any]],
        ours: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> None:
        super().__init__(registry, tasks, target)
        self._theirs, self._blank = theirs, dict[str, set[int]]()
        for name, draw in self._draws.items():
            rows = draw.task.eval_docs
            unscored = self._blank[name] = {place for place, row in enumerate(rows) if row["gold"] is None}
            for side in (theirs, ours or {}):
                if name in side:
                    self._most[name] = np.minimum(self._most[name], draw.shared({*side[name], *unscored}))

    def check(self) -> None:
        """Refuse what cannot be compared.

        Raises:
            MedtasksError: the other has answered too few documents.
        """
        few = [name for name, most in self._most.items() if not most.all()]
        if few or not self.scores:
            what = few[0] if few else "these tasks"
            raise MedtasksError(
                f"has answered too few documents of {what}, or others than are drawn",
                where=self.target.against,
                remedy="run it with --error, or whole",
            )

    def draw(self) -> dict[str, list[int]] | None:
        """As of a design; None also where the other has answered nothing further."""
        before = self.n_asked
        while (drawn := super().draw()) is not None:
            if self.n_asked > before or before == 0:
                return drawn
            if all((self._drawn[name] >= most).all() for name, most in self._most.items()):
                return None
        return None

    def _estimate(self, name: str, scored: Mapping[int, Mapping[str, Any]]) -> Estimate | None:
        draw = self._draws[name]
        ours = {place: item["score"] for place, item in scored.items() if "score" in item}
        strata = draw.strata(self._drawn[name])
        return difference_of(ours, self._theirs[name], draw.units, draw.statistic, strata, self._blank[name])
