"""Strategies: the kind of prompt, and how many examples it carries.

Task files have three of them. With `--num_fewshot` a prompt carries another number of examples; what was
asked then is a strategy of its own, wherever results are read: `3_shot`, `cot_1_shot`.
"""

from __future__ import annotations

import re

#: The strategies that tasks are built for.
STRATEGIES = ("zero_shot", "cot", "five_shot")
#: Suffix of task, tag and group names, by strategy.
SUFFIX = {"zero_shot": "", "cot": "_cot", "five_shot": "_5shot"}
STRATEGY_TITLES = {"zero_shot": "zero-shot", "cot": "chain of thought", "five_shot": "5-shot"}

_NAMED = re.compile(r"(?P<dataset>\w+?)(?P<cot>_cot)?_(?P<shots>[1-9]\d*)shot")
_ASKED = re.compile(r"(?P<cot>cot_)?(?P<shots>[1-9]\d*)_shot")
#: Examples of the built strategies.
_SHOTS = {"zero_shot": 0, "cot": 0, "five_shot": 5}


def asked_strategy(strategy: str, shots: int) -> str:
    """The strategy of prompts that were rendered for one strategy and carried so many examples."""
    if strategy == "cot":
        return f"cot_{shots}_shot" if shots else "cot"
    return {0: "zero_shot", 5: "five_shot"}.get(shots, f"{shots}_shot")


def is_strategy(name: str) -> bool:
    """Whether results can have this strategy."""
    return name in STRATEGIES or (_ASKED.fullmatch(name) is not None and name != "5_shot")


def shots_of(strategy: str) -> int:
    """How many examples its prompts carry."""
    found = _ASKED.fullmatch(strategy)
    return int(found["shots"]) if found else _SHOTS[strategy]


def reasons(strategy: str) -> bool:
    """Whether its prompts ask for reasoning."""
    return strategy.startswith("cot")


def suffix_of(strategy: str) -> str:
    """What follows the name of a dataset or group: `_5shot`, `_cot_1shot`."""
    if strategy in SUFFIX:
        return SUFFIX[strategy]
    return f"{'_cot' * reasons(strategy)}_{shots_of(strategy)}shot"


def strategy_title(strategy: str) -> str:
    """What readers see."""
    if strategy in STRATEGY_TITLES:
        return STRATEGY_TITLES[strategy]
    return f"{'chain of thought, ' * reasons(strategy)}{shots_of(strategy)}-shot"


def strategy_order(strategy: str) -> tuple[int, int, int]:
    """A key by which strategies are sorted: the built ones first, then by examples."""
    if strategy in STRATEGIES:
        return STRATEGIES.index(strategy), 0, 0
    return len(STRATEGIES), int(reasons(strategy)), shots_of(strategy)


def dataset_and_strategy(name: str) -> tuple[str, str] | None:
    """Id of the dataset and the strategy in the name of a result with shots; None in other names."""
    found = _NAMED.fullmatch(name)
    if found is None:
        return None
    return found["dataset"], asked_strategy("cot" if found["cot"] else "zero_shot", int(found["shots"]))
