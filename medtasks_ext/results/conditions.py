"""Whether two results may stand side by side: they are comparable, or what differs says why not.

`facts` takes from a record (`runs.conditions`) what is compared; None stands for what nobody recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from medtasks_ext.privacy import text_hash
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.datalock import are_pinned
from medtasks_ext.registry.strategies import shots_of, strategy_title
from medtasks_ext.runs.conditions import Conditions, Judge, Jury
from medtasks_ext.runs.manifest import EngineRecord
from medtasks_ext.runs.settings import Effect, Place, read_value, with_effect
from medtasks_ext.strict import read_yaml

_DECLARED = read_yaml(Path(__file__).with_suffix(".yaml"))
#: Condition -> what readers call it, and why a difference moves a score, or does not.
RULES = {field: (said["title"], said["why"]) for field, said in _DECLARED.items()}
#: Conditions in which a difference moves no score: it is named, and nothing else.
HARMLESS = frozenset(field for field, said in _DECLARED.items() if said.get("harmless"))
#: What a paper does not have.
NOT_OF_A_PAPER = frozenset(field for field, said in _DECLARED.items() if said.get("not_of_a_paper"))
#: Condition -> what it is called among what a model was asked with beside its task.
ASKED_WITH = {field: said["asked_with"] for field, said in _DECLARED.items() if "asked_with" in said}
#: Who judged a score whose judges nobody recorded.
_NO_JUDGES = ((), None)
#: Packages whose versions can round an answer otherwise.
_ROUND = ("vllm", "transformers", "torch", "lm_eval")


#: Settings by name, each value as something that can be compared.
Frozen: TypeAlias = tuple[tuple[str, Any], ...]


class Facts(dict[str, Any]):
    """What of a record decides whether two results may stand side by side, by condition; never changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.values()))


class Difference(NamedTuple):
    field: str  # of `Facts`
    condition: str  # what readers call it
    moves: bool  # whether it can move a score; False of what is harmless, or unknown on a side
    one: Any  # value of the first; None where it is unknown
    other: Any  # of the second

    @property
    def known(self) -> bool:
        return not any(value is None or value == _NO_JUDGES for value in (self.one, self.other))


@lru_cache(maxsize=2**16)
def differences(one: Facts, other: Facts, *, joined: bool = False) -> tuple[Difference, ...]:
    """What differs between two results, in the order of RULES; two results of one model may be `joined`.

    Then all counts that one side alone states. A jury is none of it: answers that nobody judged have none.
    """
    found: dict[tuple[str, bool], Difference] = {}
    for field, (condition, _) in RULES.items():
        values = one[field], other[field]
        if values[0] == values[1]:
            continue
        moves = _moves(field, one, other)
        if joined and None in values:
            moves = None if field in ("jury", "requests", "protocol") else bool(moves)
        if moves is not None:
            found.setdefault((condition, moves), Difference(field, condition, moves, *values))
    return tuple(found.values())


def moving(one: Facts, other: Facts) -> tuple[Difference, ...]:
    return tuple(item for item in differences(one, other) if item.moves)


def comparable(one: Facts, other: Facts) -> bool:
    """Whether nothing that is known to differ can move a score."""
    return not moving(one, other)


def _moves(field: str, one: Facts, other: Facts) -> bool | None:
    """Whether an inequality in one condition can move a score; None: it says nothing."""
    same_source = one["source"] == other["source"]
    if one[field] is None or other[field] is None:
        if field == "budget" and _cut_short(one if other[field] is None else other):
            return True
        no_shots = shots_of(one["strategy"]) == shots_of(other["strategy"]) == 0
        silent = field in NOT_OF_A_PAPER or (field in ("n", "documents") and same_source)
        return None if silent or (field in ("examples", "turns") and no_shots) else False
    if field == "budget" and not (one["answers_cut"] or other["answers_cut"]):
        return one["answers_cut"] is None or other["answers_cut"] is None
    if field == "context" and (one["inputs_cut"] or other["inputs_cut"]):
        return True
    if (
        (field == "seed" and one["decoding"] == other["decoding"] == ())  # nothing is drawn
        or (field == "prompt" and one["wording"] != other["wording"])  # said by the wording
        or (field in ("n", "rows", "revision") and not same_source)  # said by the source
    ):
        return None
    if (said_by := _DECLARED[field].get("said_by")) and one[said_by] and other[said_by]:
        return False if one[said_by] == other[said_by] else None
    return field not in HARMLESS


def _cut_short(asked: Facts) -> bool:
    """Whether answers may have been cut that another result, whose budget nobody stated, has whole.

    A paper that states no budget is taken to have given answers what the suite or the task gives.
    """
    return bool(asked["less_room"]) and asked["answers_cut"] is not False


def of_run(run: Conditions, tasks: Iterable[Conditions]) -> Facts:
    """What all tasks of a run share, as far as it is known; arguments and settings as they were given."""
    tasks = list(tasks)
    choices = sorted({task.documents or "all" for task in tasks})
    panels = {(task.jury.judges, task.jury.adjudicator) for task in tasks if task.jury}
    documents = f"{' or '.join(choices)}{', by task' * (len(choices) > 1)}" or "all"
    known = replace(run, documents=documents, jury=Jury(*panels.pop()) if len(panels) == 1 else None)
    source = "synthetic" if any(task.synthetic for task in tasks) else "real"
    # settings of a command line are texts, those of a file are numbers, too
    arguments, settings = (
        tuple((name, str(value)) for name, value in sorted((given or {}).items()))
        for given in (run.arguments, run.decoding)
    )
    found = Facts(facts(known), source=source, arguments=arguments, generation=settings, turns=run.turns)
    return Facts(found, **dict.fromkeys(("variant", "rounding", "decoding", "stop")))


def facts(record: Conditions) -> Facts:
    kept: Facts | None = vars(record).get("_facts")
    if kept is None:
        kept = vars(record)["_facts"] = _facts(record)
    return kept


def _facts(record: Conditions) -> Facts:
    def of(place: Place, values: Mapping[str, Any], effect: Effect) -> Frozen:
        return _frozen(with_effect(place, values, effect))

    shots, jury = shots_of(record.strategy), record.jury
    packages: Mapping[str, str] = record.versions[-1] if record.versions else {}
    engine = record.engines[-1] if record.engines else EngineRecord()
    decoding, arguments = record.decoding or {}, record.arguments or {}
    artefact = record.artefact, record.artefact_revision
    until = read_value(decoding.get("until"))
    stops = until if isinstance(until, list | tuple) else [until]
    stop = tuple(sorted({str(text) for text in stops if text not in (None, "")}))
    rounding = {
        **with_effect("model", arguments, Effect.ROUNDS),
        **with_effect("generation", decoding, Effect.ROUNDS),
        **({"dtype": engine.dtype} if engine.dtype else {}),  # as loaded, whatever the user asked for
    }
    judges = (*jury.judges, *filter(None, [jury.adjudicator])) if jury else ()
    requests = tuple(one.request for one in judges)
    named = tuple(replace(one, request=None) for one in judges)
    return Facts(
        {name: getattr(record, name, None) for name in RULES},
        version=record.version.partition("-")[0] or None if record.version else None,
        artefact=artefact if any(artefact) else None,
        prompt=record.prompt if record.wording else None,
        examples=record.examples if shots else None,
        examples_cut=bool(record.shots_dropped) if shots and record.shots_dropped is not None else None,
        rows=record.rows or None,
        differs=bool(record.differs),
        n=record.accounted if record.n == record.n_here else record.n,  # asked, or taken for examples
        n_of_suite=None if record.synthetic else record.n_of_suite or None,
        less_room=_less_room(record),
        answers_cut=None if record.answers_cut is None else bool(record.answers_cut),
        inputs_cut=None if record.inputs_cut is None else bool(record.inputs_cut),
        decoding=None if record.decoding is None else drawn(record.decoding),
        generation=of("generation", decoding, Effect.MOVES),
        stop=None if record.decoding is None else stop,
        arguments=of("model", arguments, Effect.MOVES),
        variant=of("model", arguments, Effect.MODEL) + of("generation", decoding, Effect.MODEL),
        brought=of("generation", engine.generation or {}, Effect.MOVES),
        rounding=None if record.arguments is None else _frozen(rounding),
        template_hash=record.own_template or engine.template or None,
        own_template=record.own_template or "",
        local_template=engine.local_template or "",
        system_text=text_hash(record.system_instruction) if record.system_instruction else "",
        turns=record.turns if shots else None,
        delimiter="" if record.delimiter is None else repr(record.delimiter),
        jury=(named[: len(jury.judges)], named[-1] if jury.adjudicator else None) if jury else None,
        requests=requests if any(requests) else None,  # a physician has none
        protocol=(jury.protocol, jury.wording, jury.hash) if jury and jury.protocol else None,
        judged=1.0 if record.judged is None else record.judged,
        versions=tuple((name, packages[name]) for name in _ROUND if packages.get(name)) or None,
    )


def _less_room(record: Conditions) -> bool | None:
    """Whether answers had less than the suite gives them in this context, or else than the task does."""
    dataset = registry().datasets.get(record.dataset or "")
    if record.budget is None or dataset is None:
        return None
    stated = dataset.official_budget
    return record.budget < (stated.tokens(record.context) if stated else dataset.answer_budget)


def drawn(decoding: Mapping[str, Any]) -> Frozen | None:
    """What makes answers differ from the likeliest ones; `do_sample` is None where nobody recorded it."""
    temperature = read_value(decoding.get("temperature"))
    if temperature is None and decoding.get("do_sample", False) is None:
        return None
    if read_value(decoding.get("do_sample")) is not True and not temperature:
        return ()
    first = {name: decoding[name] for name in ("temperature", "top_p", "top_k") if name in decoding}
    first = {name: value for name, value in first.items() if value is not None}
    others = with_effect("generation", decoding, Effect.DRAWS)
    named = tuple((name, _plain(value)) for name, value in (first or {"do_sample": True}).items())
    return (*named, *_frozen({name: others[name] for name in others.keys() - {"do_sample", "seed", *first}}))


def _frozen(values: Mapping[str, Any]) -> Frozen:
    return tuple((name, _plain(value)) for name, value in sorted(values.items()))


def _plain(value: Any) -> Any:
    read = read_value(value)
    return json.dumps(read, sort_keys=True, default=str) if isinstance(read, dict | list | tuple) else read


def of_the_paper(dataset: Dataset, strategy: str, model: str = "") -> Conditions:
    """How the suite's paper asked a dataset, as far as it says; some models otherwise than the rest."""
    said = dataset.suite.published.conditions if dataset.suite.published else None
    return _of_the_paper(dataset, strategy, said.decoding_of(model) if said else None)


@lru_cache(maxsize=2048)  # models that were asked alike share the record
def _of_the_paper(dataset: Dataset, strategy: str, decoding: str | None) -> Conditions:
    said = dataset.suite.published.conditions if dataset.suite.published else None
    n = dataset.n_documents or None
    until = (dataset.config.get("generation_kwargs") or {}).get("until", [])
    return Conditions(
        dataset=dataset.id,
        strategy=strategy,
        source="suite",
        n_of_suite=n,
        n=n,
        documents="all",
        wording="official",
        budget=dataset.metadata.official_budget,
        answers_cut=0,  # budgets of suites are made for their answers
        decoding={"until": until, **({"do_sample": None} if decoding is None else read_decoding(decoding))},
        jury=read_jury(said.jury) if said and said.jury and dataset.blocks.get("judge") else None,
    )


def read_jury(text: str) -> Jury:
    """Who judged, from words of a paper: names with ` + ` between them; without any where it is `unknown`."""
    return Jury(() if text == "unknown" else tuple(map(Judge, text.split(" + "))))


def read_decoding(text: str) -> dict[str, Any]:
    """Generation settings from words: `greedy`, `sampled`, or some by name."""
    if text == "greedy":
        return {"do_sample": False}
    settings = (part.partition("=") for part in re.split(r", (?=\w+=)", text))
    return {"do_sample": True, **{name: read_value(value) for name, sign, value in settings if sign}}


State = Literal["confirmed", "claimed", "different"]


class Confirmed(NamedTuple):
    """The states of one result. None: there is none, as of invented rows, or without examples."""

    rows: State | None = None
    words: State | None = None
    shots: State | None = None

    @property
    def state(self) -> State | None:
        """The weakest of them."""
        return next((state for state in _WEAKEST if state in self), None)


_WEAKEST: tuple[State, ...] = ("different", "claimed", "confirmed")


def confirmed(dataset: Dataset, record: Conditions) -> Confirmed:
    """By the dataset's lock as it is now."""
    if record.synthetic or record.source is None:
        return Confirmed()
    download, lock = dataset.blocks["rows"].get("download"), dataset.lock
    public = record.origin in ("hub", "release")
    if public:
        revision = download.get("revision") if isinstance(download, dict) else None
        proven = are_pinned(dataset.blocks["rows"]) and record.revision == (revision and str(revision))
    else:
        known = lock.rows.test.folded if lock and lock.rows else None
        proven = bool(known) and record.folded == known
    short = record.n_of_suite and (record.accounted or 0) != record.n_of_suite
    other = record.source != "suite" or record.differs or short
    rows: State = "different" if other else "confirmed" if proven else "claimed"
    # words of a released file that the suite pins are its own; what rows carry is what their owner wrote
    official = record.artefact or record.origin == "release"
    words: State = "different" if record.wording != "official" else "confirmed" if official else "claimed"
    # examples are confirmed with the bytes of a download alone
    shots: State = "confirmed" if rows == "confirmed" and public else "claimed"
    return Confirmed(rows, words if record.wording else None, shots if record.shots else None)


def counted(states: Iterable[State | None]) -> dict[State, int]:
    found = list(states)
    return {state: n for state in reversed(_WEAKEST) if (n := found.count(state))}


def confirmed_words(n: dict[State, int], of: int) -> str:
    """How many of some tasks, those of invented rows among them, are confirmed; empty of no task."""
    if not of:
        return ""
    said = f", claimed but not confirmed in {n['claimed']}" if n.get("claimed") else ""
    unlike = f", different in {n['different']}" if n.get("different") else ""
    return f"data and prompts confirmed in {n.get('confirmed', 0)} of {of}{said}{unlike}"


# Conditions in words: what screens, tables, pages and cards say of a record.

GREEDY = "greedy"
#: What a run is said to have.
_OF_A_RUN = (
    *("engine", "arguments", "template", "system", "system_text", "turns"),
    *("generation", "documents", "source", "jury"),
)


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
    """What a model was asked with beside what the task says."""
    known = {title: facts[name] and plain(name, facts[name]) for name, title in ASKED_WITH.items()}
    return "; ".join(f"{title}: {words}" for title, words in known.items() if words)


def run_words(run: Facts) -> dict[str, str]:
    """What all tasks of a run share (`of_run`) and what decides whether its scores can be compared."""
    said = {RULES[name][0]: plain(name, run[name]) for name in _OF_A_RUN}
    said[RULES["generation"][0]] = plain("generation", run["generation"]) or "the task's own"
    return {title: str(words) for title, words in said.items() if words is not None}
