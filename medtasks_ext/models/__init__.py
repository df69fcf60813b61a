"""Built-in models that need no weights: a ceiling and baselines for every task.

Importing this package registers them with lm-eval.
"""

from medtasks_ext.models.baselines import NearestShot, Oracle, RandomLabel

__all__ = ["NearestShot", "Oracle", "RandomLabel"]
