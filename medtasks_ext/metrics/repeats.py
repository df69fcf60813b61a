"""Documents that are asked several times: their metrics over all repeats, and how far these agree.

Intervals draw documents with all their repeats. The spread of the documents' means holds that of their
repeats; to draw these as well would count it twice (Davison and Hinkley, Bootstrap Methods, 1997, 3.8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

from medtasks_ext.stats.statistic import in_run, mean, mean_of_runs, statistic_of

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
    """The unbiased estimate of the probability that one of k answers is right, of n of which some are.

    Chen et al., Evaluating Large Language Models Trained on Code, 2021 (arXiv:2107.03374).
    """
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
