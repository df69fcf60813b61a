"""Accuracy over permuted options (MLB, protocol `dynamic_mc`)."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import ratio, result

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIALS = 3
#: (question id, trial, correct, chosen option texts)
Trial = tuple[str, int, float, list[str]]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """One trial of a question. Right means that the chosen set of option texts is the gold set."""
    parsed = results[0]
    correct = float(parsed["answer"] == document["gold"])
    trial = (document["item"], document["trial"], correct, parsed["answer"] or [])
    return result(
        document,
        parsed,
        score=trial,
        accuracy_all3=trial,
        mean_trial_accuracy=correct,
        single_trial_accuracy=trial,
        position_consistency=trial,
    )


def _by_question(trials: Sequence[Trial]) -> list[list[Trial]]:
    """The trials of each question that was asked in full (a limit may cut the last one)."""
    questions: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        questions[trial[0]].append(trial)
    return [asked for asked in questions.values() if len(asked) == TRIALS]


def accuracy_all3(trials: Sequence[Trial]) -> float:
    """Share of questions answered right in all three trials."""
    questions = _by_question(trials)
    return ratio(sum(all(trial[2] for trial in asked) for asked in questions), len(questions))


def single_trial_accuracy(trials: Sequence[Trial]) -> float:
    """Accuracy of the first trial of each question."""
    first = [trial[2] for trial in trials if trial[1] == 0]
    return ratio(sum(first), len(first))


def position_consistency(trials: Sequence[Trial]) -> float:
    """Share of pairs of trials in which the same content was chosen, right or wrong.

    A trial without a readable answer agrees with nothing.
    """
    pairs = [pair for asked in _by_question(trials) for pair in combinations(asked, 2)]
    return ratio(sum(bool(one[3]) and one[3] == other[3] for one, other in pairs), len(pairs))
