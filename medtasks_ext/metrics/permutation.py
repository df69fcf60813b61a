"""Accuracy over permuted options (MLB, Section 3, protocol `dynamic_mc`), and what position does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from medtasks_ext.metrics.common import Document, Metrics, scorer
from medtasks_ext.stats.statistic import Array, Statistic, as_they_are, ratios, share

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
    """`count` of each question in the row of its first trial; of questions that were asked in full.

    A limit may cut the last one.
    """
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
