"""The aggregations of the package by name, and records of documents that report one metric."""

from collections.abc import Callable

from lm_eval.api.metrics import mean as lm_eval_mean

from medtasks_ext.metrics import common, labels, neutral, permutation, sets
from medtasks_ext.stats.statistic import mean_of_runs, mean_of_some

AGGREGATIONS: dict[str, Callable] = {
    "mean": lm_eval_mean,
    "mean_of_some": mean_of_some,
    "micro_f1": common.micro_f1,
    "micro_precision": common.micro_precision,
    "micro_recall": common.micro_recall,
    "single_label.f1_macro": labels.f1_macro,
    "single_label.f1_micro": labels.f1_micro,
    "multi_label.f1_macro": labels.f1_macro_of_lists,
    "multi_label.f1_micro": labels.f1_micro_of_lists,
    **{name: getattr(neutral, name) for name in ("kappa_linear", "kappa_quadratic", "clipped_kappa")},
    "accuracy_all3": permutation.accuracy_all3,
    "single_trial_accuracy": permutation.single_trial_accuracy,
    "position_consistency": permutation.position_consistency,
    "mean_of_runs": mean_of_runs,
    "attribute_micro_f1": sets.attribute_micro_f1,
    "f1_macro_of_classes": sets.f1_macro_of_classes,
    "position_bias": permutation.position_bias,
}


def samples_of(kind: str, items: list) -> list[dict]:
    """lm-eval's records of documents that report one metric, `m`."""
    trials = kind in ("accuracy_all3", "single_trial_accuracy", "position_consistency")
    return [
        {"doc_id": number, "doc": {"item": item[0]} if trials else {}, "m": item}
        for number, item in enumerate(items)
    ]
