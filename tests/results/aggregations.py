"""Every aggregation of the registry by plain counting, and items as a model's answers would give them.

Written without the package's own arithmetic: scikit-learn, fractions, dictionaries.
"""

import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from lm_eval.api.metrics import mean as lm_eval_mean
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import cohen_kappa_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from medtasks_ext.metrics import choice, common, labels, repeats, sets
from medtasks_ext.stats import statistic

LEVELS = 5
LABELS = [f"label {number}" for number in range(6)]


def mean(items: Sequence[float]) -> float:
    return float(sum(map(Fraction, items)) / len(items))


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def pooled_ratio(items: Sequence[tuple[float, float]]) -> float:
    return share(sum(item[0] for item in items), sum(item[1] for item in items))


def micro_f1(items: Sequence[tuple[int, int, int]]) -> float:
    tp, fp, fn = (sum(item[place] for item in items) for place in range(3))
    return share(2 * tp, 2 * tp + fp + fn)


def micro_ratio(missed: int) -> Callable[[Sequence[tuple[int, int, int]]], float]:
    """True positives as a share of them and of the counts in one place: 1 false positives, 2 negatives."""
    return lambda items: share(sum(item[0] for item in items), sum(item[0] + item[missed] for item in items))


def single_label(average: str) -> Callable[[Sequence[tuple[str, str]]], float]:
    def f1(pairs: Sequence[tuple[str, str]]) -> float:
        gold, predicted = zip(*pairs, strict=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return f1_score(gold, predicted, labels=sorted(set(gold)), average=average, zero_division=0)

    return f1


def kappa(weights: str) -> Callable[[Sequence[tuple[int, int, int]]], float]:
    """Cohen's; 1 where all answers and all golds are one level."""

    def agreement(triples: Sequence[tuple[int, int, int]]) -> float:
        gold, given, _ = zip(*triples, strict=True)
        if len({*gold, *given}) == 1:
            return 1.0
        return float(cohen_kappa_score(gold, given, labels=range(triples[0][2]), weights=weights))

    return agreement


def label_lists(average: str) -> Callable[[Sequence[tuple[list[str], list[str]]]], float]:
    def f1(pairs: Sequence[tuple[list[str], list[str]]]) -> float:
        labels = sorted({label for pair in pairs for side in pair for label in side})
        if not labels:
            return 0.0
        binarise = MultiLabelBinarizer(classes=labels)
        gold, predicted = (binarise.fit_transform([pair[side] for pair in pairs]) for side in (0, 1))
        if len(labels) == 1:  # scikit-learn takes one column for two classes, the absent label being one
            return f1_score(gold, predicted, average="binary", zero_division=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return f1_score(gold, predicted, average=average, zero_division=0)

    return f1


def questions(trials: Sequence[Sequence[Any]]) -> list[list[Sequence[Any]]]:
    asked = defaultdict(list)
    for trial in trials:
        asked[trial[0]].append(trial)
    return [found for found in asked.values() if len(found) == 3]


def accuracy_all3(trials: Sequence[Sequence[Any]]) -> float:
    full = questions(trials)
    return share(sum(all(trial[2] for trial in asked) for asked in full), len(full))


def position_consistency(trials: Sequence[Sequence[Any]]) -> float:
    pairs = [pair for asked in questions(trials) for pair in combinations(asked, 2)]
    return share(sum(1 for one, other in pairs if one[3] and one[3] == other[3]), len(pairs))


def single_trial_accuracy(trials: Sequence[Sequence[Any]]) -> float:
    return mean([trial[2] for trial in trials if trial[1] == 0])


def attribute_micro_f1(items: Sequence[Sequence[tuple[int, int, int]]]) -> float:
    attributes = list(zip(*items, strict=True))
    given = [counts for counts in attributes if any(tp or fn for tp, _, fn in counts)]
    return micro_f1([count for counts in given for count in counts])


def f1_macro_of_classes(items: Sequence[Sequence[tuple[str, int, int, int]]]) -> float:
    counts = defaultdict(list)
    for found in items:
        for name, *count in found:
            counts[name].append(count)
    scores = [micro_f1(found) for found in counts.values() if any(tp or fn for tp, _, fn in found)]
    return share(sum(scores), len(scores))


def shares(letters: Counter[int]) -> defaultdict[int, float]:
    total = sum(letters.values())
    return defaultdict(float, {letter: float(count / total) for letter, count in letters.items()})


def position_bias(trials: Sequence[tuple[list[int], list[int], int]]) -> float:
    chosen = Counter(place for given, _, _ in trials for place in given)
    expected = Counter(place for given, right, _ in trials if given for place in right)
    one, other = shares(chosen), shares(expected)
    return sum(abs(one[place] - other[place]) for place in range(9)) / 2 if chosen else 0.0


def mean_of_runs(items: Sequence[tuple[str, float]]) -> float:
    runs = defaultdict(list)
    for run, value in items:
        runs[run].append(value)
    return mean([mean(values) for values in runs.values()])


#: kind -> the aggregation of the package, and what it is by plain counting
KINDS: dict[str, tuple[Callable, Callable[[Sequence[Any]], float]]] = {
    "mean": (lm_eval_mean, mean),
    "mean_of_some": (statistic.mean_of_some, pooled_ratio),
    "mean_of_runs": (statistic.mean_of_runs, mean_of_runs),
    "micro_f1": (common.micro_f1, micro_f1),
    "micro_precision": (common.micro_precision, micro_ratio(1)),
    "micro_recall": (common.micro_recall, micro_ratio(2)),
    "single_label.f1_macro": (labels.f1_macro, single_label("macro")),
    "single_label.f1_micro": (labels.f1_micro, single_label("micro")),
    "multi_label.f1_macro": (labels.f1_macro_of_lists, label_lists("macro")),
    "multi_label.f1_micro": (labels.f1_micro_of_lists, label_lists("micro")),
    "kappa_linear": (choice.kappa_linear, kappa("linear")),
    "kappa_quadratic": (choice.kappa_quadratic, kappa("quadratic")),
    "clipped_kappa": (choice.clipped_kappa, lambda items: max(kappa("quadratic")(items), 0.0)),
    "accuracy_all3": (repeats.accuracy_all3, accuracy_all3),
    "single_trial_accuracy": (repeats.single_trial_accuracy, single_trial_accuracy),
    "position_consistency": (repeats.position_consistency, position_consistency),
    "attribute_micro_f1": (sets.attribute_micro_f1, attribute_micro_f1),
    "f1_macro_of_classes": (sets.f1_macro_of_classes, f1_macro_of_classes),
    "position_bias": (repeats.position_bias, position_bias),
}


def some_items(kind: str, rng: random.Random, n: int) -> list[Any]:
    """Items of n documents; for trials n questions, three trials each."""
    if kind == "mean":
        return [rng.choice([0.0, 1.0, rng.random()]) for _ in range(n)]
    if kind == "mean_of_some":
        return [(rng.choice([0.0, 1.0]), 1.0) if rng.random() < 0.8 else (0.0, 0.0) for _ in range(n)]
    if kind in ("micro_f1", "micro_precision", "micro_recall"):
        return [(rng.randrange(3), rng.randrange(3), rng.randrange(3)) for _ in range(n)]
    if kind == "mean_of_runs":
        return [(rng.choice("abc"), rng.random()) for _ in range(n)]
    if kind == "attribute_micro_f1":
        return [[tuple(rng.randrange(3) for _ in range(3)), (0, rng.randrange(2), 0)] for _ in range(n)]
    if kind == "f1_macro_of_classes":
        return [
            [(name, *(rng.randrange(3) for _ in range(3))) for name in rng.sample("abcd", rng.randrange(4))]
            for _ in range(n)
        ]
    if kind == "position_bias":
        sizes = [rng.choice([4, 5, 5, 5, 6]) for _ in range(n)]
        return [
            (
                sorted(rng.sample(range(size), rng.choice([0, 1, 1, 2]))),
                sorted(rng.sample(range(size), rng.choice([1, 1, 1, 2]))),
                size,
            )
            for size in sizes
        ]
    if "kappa" in kind:
        return [(rng.randrange(LEVELS), rng.randrange(LEVELS), LEVELS) for _ in range(n)]
    if kind.startswith("single_label"):
        return [(rng.choice(LABELS[:5]), rng.choice([*LABELS, ""])) for _ in range(n)]
    if kind.startswith("multi_label"):
        return [tuple(sorted(rng.sample(LABELS, rng.randrange(4))) for _ in range(2)) for _ in range(n)]
    return [
        (f"question {number}", trial, float(rng.random() < 0.7), rng.choice([["yes"], ["no"], []]))
        for number in range(n)
        for trial in range(3)
    ]


def samples_of(kind: str, items: list) -> list[dict]:
    """lm-eval's records of documents that report one metric, `m`."""
    trials = kind in ("accuracy_all3", "single_trial_accuracy", "position_consistency")
    return [
        {"doc_id": number, "doc": {"item": item[0]} if trials else {}, "m": item}
        for number, item in enumerate(items)
    ]
