"""Groups and ranks of a report against each group alone, against plain means, and against counting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks_ext.registry import registry
from medtasks_ext.report.groups import group_scores, groups_of, rank
from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.stats.intervals import Interval, wilson

TASKS = registry()
GROUPS = groups_of(TASKS)


def conditions(strategy: str, n: int, sample: bool, cut: int | None) -> Conditions:
    return Conditions(
        strategy=strategy, version="1-A", source="synthetic" if sample else "suite", rows="r", n_of_suite=n,
        documents="all", wording="own", n=n, n_here=n, answers_cut=cut,
    )  # fmt: skip


def entry(seed: int, share: float, *, label="model", sample=False, strategy="zero_shot") -> Entry:
    """Random scores on a random share of all datasets; a few tasks have no interval."""
    generator = np.random.default_rng(seed)
    experiments = {}
    for dataset in TASKS.datasets.values():
        if generator.random() < share and dataset.has(strategy):
            score = round(generator.random(), 2)
            ends = wilson(score, len(dataset.id)) if generator.random() < 0.98 else None
            task = dataset.task(strategy)
            experiments[task] = Experiment(
                task=task,
                dataset=dataset,
                conditions=conditions(
                    strategy, len(dataset.id), sample, 1 if generator.random() < 0.5 else None
                ),
                metrics={"score": score, "valid": generator.random()},
                intervals={"score": Interval(*map(float, ends))} if ends else {},
                n=len(dataset.id),
                loaded={"n_test": len(dataset.id)},
            )
            if generator.random() < 0.1:
                del experiments[task].metrics["score"]
    return Entry(label, label, "medtasks", experiments)


@pytest.mark.parametrize("strategy", ["zero_shot", "cot"])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_group_among_all_is_scored_as_it_is_alone_a_mean_over_parts(strategy, share):
    one = entry(5, share, strategy=strategy)
    rows = group_scores(one, strategy, GROUPS)
    compared = 0
    for row in rows:
        group = row["group"]
        if not group.name:
            continue
        [alone] = group_scores(one, strategy, (group,))
        mine = scored(one, group, strategy)
        mean = on(group, mine, mine) if mine and group.parts else None
        assert row["score"] == (None if mean is None else pytest.approx(mean, abs=1e-12))
        assert all(row[name] == alone[name] for name in ("tasks_scored", "documents", "partial"))
        for name in ("score", "valid", "interval_low", "interval_high"):
            assert alone[name] == (None if row[name] is None else pytest.approx(row[name], abs=1e-10))
        compared += 1
    assert compared > 80


@settings(max_examples=8)
@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from([0.2, 0.9, 1.0])), min_size=1, max_size=5))
def test_a_rank_counts_entries_that_are_better_on_all_of_the_entrys_tasks(given_):
    entries = [entry(seed, share, label=str(number)) for number, (seed, share) in enumerate(given_)]
    suites = tuple(group for group in GROUPS if group.axis == "suite" and group.parts)
    rows = [row for one in entries for row in group_scores(one, "zero_shot", suites)]
    rank(rows)
    for row in rows:
        group, mine = row["group"], scored(row["source"], row["group"])
        rivals = [one for one in entries if mine and mine.keys() <= scored(one, group).keys()]
        better = [one for one in rivals if on(group, mine, scored(one, group)) > row["score"] + 1e-9]
        assert (row["rank"], row["rank_of"]) == ((1 + len(better), len(rivals)) if mine else (None, None))


def scored(one, group, strategy="zero_shot"):
    members = {name: TASKS.datasets[name].task(strategy) for name in group.counted}
    found = {name: one.experiments[task] for name, task in members.items() if task in one.experiments}
    return {name: item.score for name, item in found.items() if item.score is not None}


def on(group, tasks, scores):
    parts = [[scores[name] for name in part if name in tasks] for part in group.parts]
    return np.mean([np.mean(part) for part in parts if part])
