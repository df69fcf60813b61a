"""What decides whether two results may stand side by side, as a table for programs of another language.

The rules stand in `results.conditions`, the settings in `runs.settings`; nothing is decided here.
`medtasks_lab/site/page/rules.js` reads it, and a test holds both to the same answers.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any

from medtasks_ext.results.conditions import NOT_OF_A_PAPER, ROUND, RULES, SAID_BY, Facts
from medtasks_ext.runs.conditions import SCHEMA
from medtasks_ext.runs.settings import LISTS, NESTED, UNSET

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset


def rule_table() -> Json:
    """Rules, what papers do not have, what is said by a hash, and every known setting with its effect."""
    return {
        "schema": SCHEMA,
        "rules": [asdict(rule) for rule in RULES],
        "defaults": {item.name: item.default for item in fields(Facts) if item.default is not MISSING},
        "not_of_a_paper": sorted(NOT_OF_A_PAPER),
        "said_by": SAID_BY,
        "rounding_packages": ROUND,
        "nested": NESTED,
        "unset": UNSET,
        "settings": {
            place: {name: [line.effect.value, line.values] for line in lines for name in line.names}
            for place, lines in LISTS.items()
        },
    }


def budget_record(dataset: Dataset) -> tuple[int, float | None]:
    """Tokens that answers have by the suite, or by the task, and the share of the context that ends them."""
    stated = dataset.official_budget
    return (stated.at_most, stated.share_of_context) if stated else (dataset.answer_budget, None)


def facts_record(facts: Facts) -> Json:
    """Facts as the table's readers have them: those that are not the defaults, with texts as field names."""
    found: dict[str, Any] = asdict(facts)
    defaults = {item.name: item.default for item in fields(Facts)}
    return {name: value for name, value in found.items() if value != defaults[name]}
