"""Conditions in words: what screens, tables, pages and cards say of a record. No other module makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.results.conditions import ASKED_WITH, RULES, Facts, facts

if TYPE_CHECKING:
    from medtasks_ext.results.conditions import Difference
    from medtasks_ext.runs.conditions import Conditions, Judge, Jury

GREEDY = "greedy"
#: What a run is said to have.
_OF_A_RUN: tuple[str, ...] = ("engine", "arguments", "template", "system", "system_text", "turns")
_OF_A_RUN += ("generation", "documents", "source", "jury")


def _yes(value: bool | None) -> str:
    return "yes" if value else "no"


def settings_words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={values[key]}" for key in sorted(values))


def decoding_words(drawn: Iterable[tuple[str, Any]]) -> str:
    """How answers were drawn, by the settings that make them differ from the likeliest ones."""
    known = dict(drawn)
    if known == {"do_sample": True}:
        return "sampled"
    return ", ".join(f"{name}={value}" for name, value in known.items()) or GREEDY


def jury_words(jury: Jury) -> str:
    protocol = protocol_words(jury.protocol, jury.wording, jury.hash)
    return "; ".join(filter(None, (judges_words(jury.judges, jury.adjudicator), protocol)))


def judges_words(judges: Iterable[Judge], adjudicator: Judge | None) -> str:
    """Who judged, and who decided where two differed; without any judge nobody recorded who."""

    def named(one: Judge) -> str:
        model = f" ({one.model})" if one.model else ""
        return f"{one.name}{model}{' served as ' * bool(one.served)}{' and '.join(one.served)}"

    names = " + ".join(map(named, judges))
    return f"{names or 'unknown'}{f', {named(adjudicator)} decides' if adjudicator else ''}"


def protocol_words(protocol: str | None, wording: str | None, digest: str | None) -> str:
    official = " with official prompts," if wording == "official" else ""
    return f"{protocol or ''}{official} {digest or ''}".strip()


#: Condition -> its value as tables hold it, unless it is that already.
_PLAIN: Mapping[str, Callable[[Any], str]] = {
    "artefact": lambda value: " ".join(filter(None, value)),
    "decoding": decoding_words,
    "template": lambda value: value if isinstance(value, str) else _yes(value),
    "turns": _yes,
    "system": lambda value: "system turn" if value else "user turn",
    **dict.fromkeys(
        ("generation", "arguments", "variant", "brought", "rounding"),
        lambda value: settings_words(dict(value)),
    ),
    "stop": lambda value: " ".join(map(repr, value)),
    "jury": lambda value: judges_words(*value),
    "requests": lambda value: " + ".join(item or "none" for item in value),
    "protocol": lambda value: protocol_words(*value),
    "versions": lambda value: ", ".join(f"{name} {version}" for name, version in value),
}
#: Condition -> one side of a difference, where that is not as in tables.
_SIDE: Mapping[str, Callable[[Any], str]] = {
    "strategy": strategy_title,
    **dict.fromkeys(("prompt", "rows", "examples"), "hash {}".format),
    **dict.fromkeys(("n", "held_out"), "{:,} documents".format),
    **dict.fromkeys(("budget", "context"), "{:,} tokens".format),
    "source": lambda value: {"suite": "the suite's rows", "rebuilt": "rows rebuilt"}.get(
        value, f"{value} rows"
    ),
    "judged": lambda value: "all there" if value == 1 else f"{1 - value:.0%} pending",
    "differs": lambda value: "others than the suite's" if value else "the suite's",
    **dict.fromkeys(("inputs_cut", "examples_cut"), lambda value: "some cut" if value else "whole"),
}


def plain(field: str, value: Any) -> str | int | float | bool | None:
    """None, too, where nothing was added."""
    found: str | int | float | bool | None = value
    if value is not None and field in _PLAIN:
        found = _PLAIN[field](value)
    return None if found == "" else found


@lru_cache(maxsize=2**12)
def shown(facts: Facts) -> Mapping[str, str | int | float | bool | None]:
    """Condition -> its value as tables hold it; many results have the same."""
    return {name: plain(name, value) for name, value in facts.items()}


def value_words(field: str, value: Any) -> str:
    if value is None:
        return "unknown"
    found = _SIDE[field](value) if field in _SIDE else plain(field, value)
    return "none" if found is None else str(found)


def difference_words(difference: Difference) -> str:
    one, other = (value_words(difference.field, value) for value in (difference.one, difference.other))
    return f"{difference.condition}: {one} | {other}"


def unknown_words(differences: Iterable[Difference]) -> str:
    return ", ".join(dict.fromkeys(item.condition for item in differences if not item.known))


def task_words(record: Conditions, printed: str | None = None) -> dict[str, str]:
    """Of a printed score, the model whose it is stands beside its record."""
    if printed is not None:
        return {"prompt": "the paper's", "data": "the paper's", "version": "published", "model": printed}
    origin = record.origin or "unknown"
    optional = {
        "examples": record.examples,
        "jury": jury_words(record.jury) if record.jury else None,
        "documents": record.documents,
        "asked_with": asked_with_words(facts(record)),
    }
    return {
        "version": (record.version or "").partition("-")[0],
        "prompt": f"{record.wording or 'unknown'} {record.prompt or ''}".strip(),
        "data": f"{origin} @ {record.revision}" if record.revision else origin,
        "rows": record.rows or "",
        "rebuilt": _yes(record.source == "rebuilt"),
        **{name: words for name, words in optional.items() if words},
    }


def asked_with_words(facts: Facts) -> str:
    """What a model was asked with beside what the task says; empty where nothing is known."""
    known = {title: facts[name] and plain(name, facts[name]) for name, title in ASKED_WITH.items()}
    return "; ".join(f"{title}: {words}" for title, words in known.items() if words)


def run_words(run: Facts) -> dict[str, str]:
    """What all tasks of a run share (`of_run`) and what decides whether its scores can be compared."""
    said = {RULES[name][0]: plain(name, run[name]) for name in _OF_A_RUN}
    said[RULES["generation"][0]] = plain("generation", run["generation"]) or "the task's own"
    return {title: str(words) for title, words in said.items() if words is not None}
