"""Documents that are asked several times, as they are or with permuted options, and how far answers agree.

Intervals draw documents with all their repeats. The spread of the documents' means holds that of their
repeats; to draw these as well would count it twice (Davison and Hinkley, Bootstrap Methods, 1997, 3.8).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from medtasks_ext.metrics.common import Document, Metrics, scorer
from medtasks_ext.stats.statistic import (
    Array,
    Statistic,
    as_they_are,
    in_run,
    mean,
    mean_of_runs,
    ratios,
    share,
    statistic_of,
)

#: Share of the pairs of a document's repeats that have the same answer; what cannot be read agrees with none.
AGREEMENT = "repeat_agreement"
#: Probability that one answer is right, and that one of as many answers as there are repeats is.
PASS_AT_1, PASS_AT_N = "pass_at_1", "pass_at_n"
#: Metric -> its value in each repeat, of those whose mean a document has.
EACH = "scores_per_repeat"


def over_repeats(
    each: Sequence[Mapping[str, Any]],
    readings: Sequence[Mapping[str, Any]],
    aggregations: Mapping[str, Callable[..., Any]],
) -> dict[str, Any]:
    """The metrics of a document from those of its repeats, how far its answers agree, and last `EACH`.

    Means over documents take the mean over a document's repeats; of other metrics it keeps an item for each
    (`stats.statistic.over_repeats`). What only some repeats have is left out, unless it is a mean.
    """
    metrics, kept = dict[str, Any](), dict[str, list[float]]()
    for name in dict.fromkeys(name for item in each for name in item):
        values = [item[name] for item in each if name in item]
        if name in aggregations and statistic_of(aggregations[name]) in (mean, mean_of_runs):
            runs = [value[0] for value in values if isinstance(value, tuple)]
            kept[name] = [value[1] if isinstance(value, tuple) else value for value in values]
            average = sum(kept[name]) / len(values)
            metrics[name] = (runs[0], average) if runs else average
        elif len(values) == len(each):
            metrics[name] = values
    pairs = list(combinations(readings, 2))
    same = sum(bool(one["valid"]) and one["answer"] == other["answer"] for one, other in pairs)
    return {**metrics, AGREEMENT: same / len(pairs), EACH: kept}


def pass_at(n: int, right: int, k: int) -> float:
    """The unbiased estimate that one of k answers is right (Chen et al. 2021, arXiv:2107.03374)."""
    return (comb(n, k) - comb(n - right, k)) / comb(n, k)


def add_pass_at(samples: Sequence[MutableMapping[str, Any]]) -> bool:
    """Put pass@1 and pass@n beside the scores of documents; False where answers are not right or wrong."""
    scored = [(sample, sample.get(EACH, {}).get("score")) for sample in samples if "score" in sample]
    if not scored or not all(values and set(values) <= {0.0, 1.0} for _, values in scored):
        return False
    for sample, values in scored:
        n, right = len(values), sum(map(int, values))
        found = {PASS_AT_1: pass_at(n, right, 1), PASS_AT_N: pass_at(n, right, n)}
        sample.update(in_run(sample["doc"], found))
    return True


#: of a question whose options are permuted (MLB, Section 3, protocol `dynamic_mc`)
TRIALS = 3
#: (question id, trial, correct, chosen option texts)
Trial = tuple[str, int, float, list[str]]
#: (places of the chosen options, places of the right ones, number of options)
Places = tuple[list[int], list[int], int]


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """One trial of a question. Right means that the chosen set of option texts is the gold set."""
    correct, chosen = float(answer == gold), answer or []
    trial = (document["item"], document["trial"], correct, chosen)
    options = document["options"]
    places = (_places(chosen, options), _places(gold, options), len(options))
    return {
        **dict.fromkeys(("score", "accuracy_all3", "single_trial_accuracy", "position_consistency"), trial),
        "mean_trial_accuracy": correct,
        "position_bias": places,
    }


def _places(texts: list[str], options: list[str]) -> list[int]:
    return [place for place, option in enumerate(options) if option in texts]


def _per_question(trials: Sequence[Trial], count: Callable[[list[Trial]], tuple[float, float]]) -> Array:
    """`count` of each question that was asked in full, in the row of its first trial."""
    questions: dict[str, list[int]] = defaultdict(list)
    for row, trial in enumerate(trials):
        questions[trial[0]].append(row)
    counts = np.zeros((len(trials), 2))
    for rows in questions.values():
        if len(rows) == TRIALS:
            counts[rows[0]] = count([trials[row] for row in rows])
    return counts


def _agreeing_pairs(asked: list[Trial]) -> tuple[float, float]:
    pairs = list(combinations(asked, 2))
    return sum(bool(one[3]) and one[3] == other[3] for one, other in pairs), len(pairs)


#: share of questions answered right in all three trials
accuracy_all3 = Statistic(
    "accuracy_all3",
    lambda trials: _per_question(trials, lambda asked: (all(trial[2] for trial in asked), 1)),
    share,
)

#: accuracy of the first trial of each question
single_trial_accuracy = Statistic(
    "single_trial_accuracy",
    lambda trials: as_they_are([(trial[2] * (trial[1] == 0), trial[1] == 0) for trial in trials]),
    share,
)

#: share of pairs of trials in which the same content was chosen, right or wrong; a trial without a
#: readable answer agrees with nothing
position_consistency = Statistic(
    "position_consistency", lambda trials: _per_question(trials, _agreeing_pairs), share
)


def _by_place(trials: Sequence[Places]) -> Array:
    """(n, 2 x places): how often an option at each place is chosen, and is right, in readable trials."""
    counts = np.zeros((len(trials), 2, max((size for _, _, size in trials), default=0)))
    for row, (chosen, right, _) in zip(counts, trials, strict=True):
        if chosen:
            row[0, chosen] = row[1, right] = 1
    return counts.reshape(len(trials), -1)


def _distance(sums: Array) -> Array:
    """Total variation distance of the two distributions whose counts stand one behind the other."""
    chosen, right = (ratios(part, part.sum(axis=-1, keepdims=True)) for part in np.split(sums, 2, axis=-1))
    distance: Array = np.abs(chosen - right).sum(axis=-1) / 2
    return distance


#: total variation distance between the places of the chosen options and those of the right ones: 0 where
#: letters are chosen as often as they are right, 0.8 where A of five is always chosen
position_bias = Statistic("position_bias", _by_place, _distance)
