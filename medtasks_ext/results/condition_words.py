"""Conditions in words: what screens, tables, pages and cards say of a record. No other module makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.results.conditions import Facts, facts

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.conditions import Difference
    from medtasks_ext.runs.conditions import Conditions, Judge, Jury, RunConditions

#: Schema of the conditions in words, as cards hold them.
SCHEMA = 1
GREEDY = "greedy"
_OWN = "the task's own"
_SOURCES = {"suite": "the suite's rows", "rebuilt": "rows rebuilt"}


def task_words(record: Conditions, printed: str | None = None) -> dict[str, str]:
    """Of a printed score, the model whose it is stands beside its record."""
    if printed is not None:
        return {"prompt": "the paper's", "data": "the paper's", "version": "published", "model": printed}
    asked = record.asked
    rows, wording, origin = asked.rows, asked.wording, asked.rows.origin or "unknown"
    return {
        "version": (asked.version or "").partition("-")[0],
        "prompt": f"{wording.kind or 'unknown'} {wording.hash or ''}".strip(),
        "data": f"{origin} @ {rows.revision}" if rows.revision else origin,
        "rows": rows.hash or "",
        "rebuilt": _yes(rows.source == "rebuilt"),
        **({"examples": asked.shots.hash} if asked.shots.hash else {}),
        **({"jury": jury_words(asked.jury)} if asked.jury else {}),
        **({"documents": rows.documents} if rows.documents else {}),
        **({"asked_with": words} if (words := asked_with_words(facts(record))) else {}),
    }


#: What a model was asked with beside the task: field of `Facts` -> what readers see.
_ASKED_WITH = {
    "decoding": "decoding",
    "generation": "generation settings",
    "stop": "stop strings",
    "arguments": "model arguments",
    "variant": "the model with",
    "brought": "settings of the model's repository",
    "rounding": "precision",
    "own_template": "a chat template of one's own",
    "local_template": "the chat template of a folder on one's machine",
    "system_text": "text in the system turn",
    "delimiter": "target delimiter",
}


def asked_with_words(facts: Facts) -> str:
    """What a model was asked with beside what the task says; empty where nothing is known."""
    known = {
        title: getattr(facts, field) and plain(field, getattr(facts, field))
        for field, title in _ASKED_WITH.items()
    }
    return "; ".join(f"{title}: {value}" for title, value in known.items() if value)


@lru_cache(maxsize=2**12)
def shown(facts: Facts) -> Mapping[str, str | int | float | bool | None]:
    """Condition -> its value as tables hold it; many results have the same."""
    return {item.name: plain(item.name, getattr(facts, item.name)) for item in fields(Facts)}


def shown_record(facts: Facts) -> Json:
    known = {name: value for name, value in shown(facts).items() if value is not None}
    return {"schema": SCHEMA, **known}


def plain(field: str, value: Any) -> str | int | float | bool | None:
    if value is None:
        return None
    if field == "artefact":
        return " ".join(filter(None, value))
    if field == "decoding":
        return decoding_words(value)
    if field in ("template", "turns"):
        return value if isinstance(value, str) else _yes(value)
    if field == "system":
        return _turn(value)
    if field in ("generation", "arguments", "variant", "brought", "rounding"):
        return settings_words(dict(value)) or None
    if field == "stop":
        return " ".join(map(repr, value)) or None
    if field in ("own_template", "local_template", "system_text", "delimiter"):
        return value or None
    if field == "jury":
        return judges_words(*value)
    if field == "requests":
        return " + ".join(item or "none" for item in value)
    if field == "protocol":
        return protocol_words(*value)
    if field == "versions":
        return ", ".join(f"{name} {version}" for name, version in value)
    scalar: str | int | float | bool = value
    return scalar


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
    names = " + ".join(map(_judge, judges))
    return f"{names or 'unknown'}{f', {_judge(adjudicator)} decides' if adjudicator else ''}"


def _judge(one: Judge) -> str:
    model = f" ({one.model})" if one.model else ""
    return f"{one.name}{model}{' served as ' * bool(one.served)}{' and '.join(one.served)}"


def protocol_words(protocol: str | None, wording: str | None, digest: str | None) -> str:
    official = " in official words," if wording == "official" else ""
    return f"{protocol or ''}{official} {digest or ''}".strip()


def _yes(value: bool | None) -> str:
    return "yes" if value else "no"


def _turn(system_role: bool) -> str:
    return "system turn" if system_role else "user turn"


def run_words(run: RunConditions) -> dict[str, str]:
    """What all tasks of a run share and what decides whether its scores can be compared."""
    layout, known = run.layout, {}
    if run.engine is not None:
        known["backend"] = run.engine
    if run.arguments is not None:
        known["model arguments"] = settings_words(run.arguments)
    if layout.chat_template is not None:
        known["chat template"] = str(plain("template", layout.chat_template))
    if layout.system_role is not None:
        known["instruction in"] = _turn(layout.system_role)
        known["system instruction"] = layout.system_instruction or "none"
    if layout.shots_as_turns is not None:
        known["shots as turns"] = _yes(layout.shots_as_turns)
    if run.decoding is not None:
        known["decoding"] = settings_words(run.decoding) or _OWN
    if run.documents is not None:
        known["documents"] = documents_words(run.documents)
    if run.synthetic is not None:
        known["rows"] = rows_words(synthetic=run.synthetic)
    if run.juries:
        known["jury"] = " or ".join(sorted(map(jury_words, run.juries)))
    return known


def settings_words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={values[key]}" for key in sorted(values))


def documents_words(choices: Iterable[str]) -> str:
    texts = sorted(set(choices))
    return " or ".join(texts) + ", by task" * (len(texts) > 1) or "all"


def rows_words(*, synthetic: bool) -> str:
    return "synthetic" if synthetic else "real"


def difference_words(difference: Difference) -> str:
    one, other = (value_words(difference.field, value) for value in (difference.one, difference.other))
    return f"{difference.condition}: {one} | {other}"


def value_words(field: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Mapping):
        return settings_words(value) or {"decoding": _OWN}.get(field, "none")
    if field == "choices":
        return documents_words(value)
    if field == "juries":
        return " or ".join(sorted(judges_words(*one) for one in value))
    if field == "protocols":
        return " or ".join(sorted(protocol_words(*one) for one in value))
    if field == "strategy":
        return strategy_title(value)
    if field in ("prompt", "rows", "examples"):
        return f"hash {value}"
    if field in ("n", "held_out"):
        return f"{value:,} documents"
    if field in ("budget", "context"):
        return f"{value:,} tokens"
    if field == "source":
        return _SOURCES.get(value, f"{value} rows")
    if field == "judged":
        return "all there" if value == 1 else f"{1 - value:.0%} pending"
    if field == "differs":
        return "others than the suite's" if value else "the suite's"
    if field in ("inputs_cut", "examples_cut"):
        return "some cut" if value else "whole"
    found = plain(field, value)
    return "none" if found is None else str(found)
