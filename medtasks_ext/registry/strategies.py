"""Strategies: the kind of prompt, how many examples it carries, and how the answer is taken.

Task files have three of them. With `--num_fewshot` a prompt carries another number of examples; what was
asked then is a strategy of its own, wherever results are read: `3_shot`, `cot_1_shot`. So is the answer that
a model finds likeliest among those that are possible (`likelihood`, `likelihood_5_shot`): it stands beside no
generated one.
"""

from __future__ import annotations

import re
from typing import Literal

Strategy = Literal["zero_shot", "cot", "five_shot"]
#: The strategies that tasks are built for.
STRATEGIES: tuple[Strategy, ...] = ("zero_shot", "cot", "five_shot")
#: Suffix of task, tag and group names, by strategy.
SUFFIX = {"zero_shot": "", "cot": "_cot", "five_shot": "_5shot"}
STRATEGY_TITLES = {"zero_shot": "zero-shot", "cot": "chain of thought", "five_shot": "5-shot"}

#: Of datasets whose answers can be listed; plain lm-eval asks these tasks.
LIKELIHOOD = "likelihood"
LIKELIHOOD_SUFFIX = "_ll"

_NAMED = re.compile(r"(?P<dataset>\w+?)(?P<way>_cot|_ll)?_(?P<shots>[1-9]\d*)shot")
_ASKED = re.compile(r"(?:(?P<way>cot|likelihood)_)?(?P<shots>[1-9]\d*)_shot")
_WAYS = {"_cot": "cot", "_ll": LIKELIHOOD, None: "zero_shot"}
_WAY_TITLES = {"cot": "chain of thought, ", LIKELIHOOD: "by likelihood, "}
#: Examples of the built strategies.
_SHOTS = {"zero_shot": 0, "cot": 0, "five_shot": 5, LIKELIHOOD: 0}


def asked_strategy(strategy: str, shots: int) -> str:
    """The strategy of prompts that were rendered for one strategy and carried so many examples."""
    if strategy in ("cot", LIKELIHOOD):
        return f"{strategy}_{shots}_shot" if shots else strategy
    return {0: "zero_shot", 5: "five_shot"}.get(shots, f"{shots}_shot")


def shots_of(strategy: str) -> int:
    match = _ASKED.fullmatch(strategy)
    return int(match["shots"]) if match else _SHOTS[strategy]


def reasons(strategy: str) -> bool:
    return strategy.startswith("cot")


def by_likelihood(strategy: str) -> bool:
    return strategy.startswith(LIKELIHOOD)


def suffix_of(strategy: str) -> str:
    """What follows the name of a dataset or group: `_5shot`, `_cot_1shot`, `_ll`."""
    if strategy in SUFFIX:
        return SUFFIX[strategy]
    way = "_cot" * reasons(strategy) + LIKELIHOOD_SUFFIX * by_likelihood(strategy)
    shots = shots_of(strategy)
    return f"{way}_{shots}shot" if shots else way


def strategy_title(strategy: str) -> str:
    if strategy in STRATEGY_TITLES:
        return STRATEGY_TITLES[strategy]
    way = next((title for name, title in _WAY_TITLES.items() if strategy.startswith(name)), "")
    return f"{way}{shots_of(strategy)}-shot"


def strategy_order(strategy: str) -> tuple[int, bool, bool, int]:
    """A key by which strategies are sorted: the built ones first, likelihood last, then by examples."""
    if strategy in STRATEGIES:
        return STRATEGIES.index(strategy), False, False, 0
    return len(STRATEGIES), by_likelihood(strategy), reasons(strategy), shots_of(strategy)


def dataset_and_strategy(name: str) -> tuple[str, str] | None:
    """Id of the dataset and the strategy in the name of a result with shots or by likelihood; else None."""
    if name.endswith(LIKELIHOOD_SUFFIX):
        return name.removesuffix(LIKELIHOOD_SUFFIX), LIKELIHOOD
    match = _NAMED.fullmatch(name)
    if match is None:
        return None
    return match["dataset"], asked_strategy(_WAYS[match["way"]], int(match["shots"]))


#: Answers that are texts of any length: "nothing but the answer" would ask for a short one.
OPEN_KINDS = frozenset({"free_text", "prose"})
