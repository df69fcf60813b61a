"""Under which conditions a result came about, and whether two results may stand side by side.

`facts` takes from a record (`runs.conditions`) what is compared; None stands for what nobody recorded.
`comparable` is the one place that decides: labels, joining, ranks, tests and published comparisons follow
from it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from medtasks_ext.privacy import text_hash
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import shots_of
from medtasks_ext.runs.conditions import (
    Asked,
    Conditions,
    Judge,
    Jury,
    Observed,
    Rows,
    RunConditions,
    Source,
    Wording,
    Words,
)
from medtasks_ext.runs.settings import Effect, Place, read_value, with_effect

if TYPE_CHECKING:
    from medtasks_ext.engines.described import EngineRecord
    from medtasks_ext.registry.tasks import Dataset
#: same: nothing that can move a score differs. close: what differs is harmless by RULES, or unknown.
#: other: something that can move a score differs.
Grade = Literal["same", "close", "other"]
_ORDER: tuple[Grade, ...] = ("same", "close", "other")
#: Who judged a score whose judges nobody recorded.
_NO_JUDGES = ((), None)
#: Judges, and who decides where two differ, without what requests to them say.
Panel: TypeAlias = tuple[tuple[Judge, ...], Judge | None]
_OF_A_JURY = ("jury", "requests", "protocol")
#: Settings by name, in order, each value as something that can be compared.
Settings: TypeAlias = tuple[tuple[str, Any], ...]
#: Packages whose versions can round an answer otherwise.
ROUND = ("vllm", "transformers", "torch", "lm_eval")


@dataclass(frozen=True)
class Facts:
    """What of a record decides whether two results may stand side by side: a value for each of RULES."""

    strategy: str  # kind of prompt and number of examples
    version: str | None = None  # `N` of the task's reader and metric; None of a paper's own scorer
    wording: Words | None = None
    artefact: tuple[str | None, str | None] | None = None  # the released file of the words, and its version
    prompt: str | None = None  # hash of the prompt's templates
    examples: str | None = None  # hash of the examples in the prompt
    examples_cut: bool | None = None  # whether prompts carry fewer examples than asked for, to fit
    source: Source | None = None
    revision: str | None = None  # of a download
    rows: str | None = None  # hash of the rows
    differs: bool = False  # whether they are known to be others than the suite's
    documents: str | None = None  # which of them were asked; `all`
    n: int | None = None  # how many of the suite's rows are accounted for: asked, or taken for examples
    n_of_suite: int | None = None  # how many the suite states
    held_out: int | None = None  # rows that were taken for examples
    budget: int | None = None  # tokens that an answer may have
    #: whether that is less than the suite gives an answer in this context, or than the task does where the
    #: suite says none; None of an unknown task
    less_room: bool | None = None
    answers_cut: bool | None = None  # whether answers filled the budget
    context: int | None = None  # tokens of prompt and answer together
    inputs_cut: bool | None = None  # whether inputs did not fit
    #: settings that make answers differ from the likeliest ones; empty of greedy decoding
    decoding: Settings | None = None
    generation: Settings = ()  # others that move a score, or that no table knows
    stop: tuple[str, ...] | None = None  # texts at which answers are cut
    seed: int | None = None  # of the draws
    arguments: Settings = ()  # of the model, that move a score, or that no table knows
    variant: Settings = ()  # settings that make another model of one name: quantisation, adapters, thinking
    brought: Settings = ()  # settings of generation that the model's own file adds
    rounding: Settings | None = None  # precision, and arguments of the model that round otherwise
    template: bool | str | None = None  # chat template: whether, or which
    template_hash: str | None = None  # of the chat template that laid prompts out
    own_template: str = ""  # hash of a template of the user's own
    local_template: str = ""  # hash of a template that a model's folder on the user's machine holds
    system: bool | None = None  # whether instructions stand in a system turn
    system_text: str = ""  # hash of further text of the system turn
    turns: bool | None = None  # whether examples are turns of a conversation
    delimiter: str = (
        ""  # between prompt and answer, quoted, where possible answers are compared by likelihood
    )
    jury: Panel | None = None  # who judged, and who decides
    requests: tuple[str | None, ...] | None = None  # what requests to them say besides the question
    protocol: tuple[str | None, ...] | None = None  # by which protocol, in which words, and their hash
    judged: float = 1.0  # share of the answers that were judged, of those that are to be
    engine: str | None = None  # what generated the answers
    versions: tuple[tuple[str, str], ...] | None = None  # of the packages that did


@dataclass(frozen=True)
class Difference:
    field: str  # of `Facts`, or what runs alone have: `arguments`, `kind`, `choices`, `juries`, `protocols`
    condition: str  # what readers call it
    grade: Grade  # what the difference makes of the two
    one: Any  # value of the first; None where it is unknown
    other: Any  # of the second
    why: str  # why the grade is this one


@dataclass(frozen=True)
class Comparability:
    grade: Grade  # the worst of the differences
    differences: tuple[Difference, ...]  # in the order of RULES

    @property
    def known(self) -> tuple[str, ...]:
        unlike = (
            item.condition
            for item in self.differences
            if not any(value is None or value == _NO_JUDGES for value in (item.one, item.other))
        )
        return tuple(dict.fromkeys(unlike))

    @property
    def moving(self) -> tuple[Difference, ...]:
        return tuple(item for item in self.differences if item.grade == "other")


@dataclass(frozen=True)
class Rule:
    field: str  # of `Facts`
    title: str  # what readers see
    why: str  # why it moves a score, or does not
    moves: bool = True  # whether it can move a score


#: The declared table. A condition that is unknown on a side makes two results `close`.
RULES = (
    Rule("strategy", "strategy", "other prompts, other numbers of examples"),
    Rule("source", "rows", "other documents have other scores"),
    Rule("rows", "rows", "other documents have other scores"),
    Rule("differs", "rows", "rows of one's own have other scores than the suite's"),
    Rule("revision", "revision of the rows", "rows of one hash are the same rows", moves=False),
    Rule("documents", "documents", "a part of the rows has another score"),
    Rule("n", "documents", "a part of the rows has another score"),
    Rule("held_out", "rows for examples", "a few rows of many serve as examples", moves=False),
    Rule("version", "version of the task", "prompts, reader or metric changed between versions"),
    Rule("wording", "wording", "the suite's own words and others give other answers"),
    Rule("prompt", "wording", "other words give other answers"),
    Rule("artefact", "file of the wording", "words of one hash are the same words", moves=False),
    Rule("examples", "examples in the prompt", "other examples give other answers"),
    Rule("examples_cut", "examples in the prompt", "a prompt with fewer examples is another prompt"),
    Rule("budget", "budget", "answers that fill their budget are cut"),
    Rule("inputs_cut", "inputs", "inputs that do not fit are cut"),
    Rule("context", "context", "inputs that fit are asked whole, whatever the room", moves=False),
    Rule("decoding", "decoding", "sampled answers differ from the likeliest ones"),
    Rule("generation", "generation settings", "they change answers, or no table knows them"),
    Rule("stop", "stop strings", "answers are cut at these"),
    Rule("seed", "seed", "another draw of the same answers", moves=False),
    Rule("arguments", "model arguments", "they change prompts or answers, or no table knows them"),
    Rule("variant", "variant of the model", "they make another model, which is named so", moves=False),
    Rule("brought", "settings of the model's repository", "they belong to the model", moves=False),
    Rule("rounding", "precision", "they differ in rounding alone", moves=False),
    Rule("template", "chat template", "a template is part of the model it belongs to", moves=False),
    Rule(
        "template_hash",
        "chat template",
        "a template of the tokenizer's repository is part of the model",
        moves=False,
    ),
    Rule("own_template", "chat template", "a template of one's own gives other prompts"),
    Rule(
        "local_template",
        "chat template",
        "a folder on one's machine may hold another template than the model's repository",
        moves=False,
    ),
    Rule("system", "system turn", "templates without a system turn put it elsewhere", moves=False),
    Rule("system_text", "system instruction", "further text before the prompt gives other answers"),
    Rule("turns", "examples as turns", "examples in turns of a conversation are read otherwise"),
    Rule("delimiter", "target delimiter", "likelihoods behind another character are others"),
    Rule("jury", "jury", "other judges give other ratings"),
    Rule("requests", "requests to judges", "judges with other settings give other ratings"),
    Rule("protocol", "protocol of the jury", "other questions to judges give other ratings"),
    Rule("judged", "judgements", "what is pending is a chosen part: the disputed answers"),
    Rule("engine", "engine", "engines differ in rounding alone", moves=False),
    Rule("versions", "versions of packages", "versions differ in rounding alone", moves=False),
)
#: What a paper does not have: versions of our tasks, hashes of our templates, our engines. What a user adds
#: (arguments, text, templates) is not unknown where nobody states it: nothing was added.
NOT_OF_A_PAPER = frozenset({"version", "prompt", "artefact", "rows", "revision", "held_out", "engine"})
NOT_OF_A_PAPER |= {"versions", "seed", "examples_cut", "rounding", "template_hash"}


@lru_cache(maxsize=2**16)
def comparable(one: Facts, other: Facts) -> Comparability:
    differences: list[Difference] = []
    for rule in RULES:
        values = getattr(one, rule.field), getattr(other, rule.field)
        if values[0] == values[1] or (grade := _grade(rule, one, other)) is None:
            continue
        if not any(item.condition == rule.title and item.grade == grade for item in differences):
            differences.append(Difference(rule.field, rule.title, grade, *values, rule.why))
    worst = max((item.grade for item in differences), key=_ORDER.index, default=_ORDER[0])
    return Comparability(worst, tuple(differences))


def kept_apart(one: Facts, other: Facts) -> tuple[Difference, ...]:
    """What keeps two results of one model from being joined: each difference, and what one side alone states.

    Harmless differences count, too: a template is part of its model, and yet one model is asked with and
    without. Answers that nobody judged have no jury to differ in.
    """
    by_condition = {(item.condition, item.grade): item for item in comparable(one, other).differences}
    for rule in RULES:
        values = getattr(one, rule.field), getattr(other, rule.field)
        key: tuple[str, Grade] = (rule.title, "close")
        if values[0] == values[1] or None not in values:
            continue
        if rule.field in _OF_A_JURY:
            by_condition.pop(key, None)
        else:
            by_condition.setdefault(key, Difference(rule.field, rule.title, "close", *values, rule.why))
    return tuple(by_condition.values())


def runs_apart(one: RunConditions, other: RunConditions, kinds: tuple[str, str]) -> tuple[Difference, ...]:
    """What keeps two runs of one model apart as a whole; arguments are part of a model."""
    differences = []
    arguments = one.arguments or {}, other.arguments or {}
    if _texts(arguments[0]) != _texts(arguments[1]):
        why = "other arguments make another model"
        differences.append(Difference("arguments", "model arguments", "close", *arguments, why))
    if kinds[0] != kinds[1]:
        why = "each tool records other conditions"
        differences.append(Difference("kind", "results of", "close", *kinds, why))
    shared = _shared(one), _shared(other)
    for rule in RULES:
        mine, theirs = shared[0].get(rule.field), shared[1].get(rule.field)
        if mine == theirs or (None in (mine, theirs) and rule.field in _OF_A_JURY):
            continue
        grade: Grade = "other" if rule.moves and None not in (mine, theirs) else "close"
        field = _OF_RUNS.get(rule.field, rule.field)
        differences.append(Difference(field, rule.title, grade, mine, theirs, rule.why))
    return tuple(differences)


#: Field of a task's result -> what a run has of it, in several tasks.
_OF_RUNS = {"documents": "choices", "jury": "juries", "protocol": "protocols"}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a command line are texts, those of a file are numbers, too."""
    return {key: str(value) for key, value in values.items()}


def _shared(run: RunConditions) -> dict[str, Any]:
    """Field of `Facts` -> what all tasks of a run share in it, as far as it is known."""
    layout, requests = run.layout, [found for jury in run.juries if (found := _requests(jury))]
    protocols = [(jury.protocol, jury.wording, jury.hash) for jury in run.juries if jury.protocol]
    return {
        "source": None if run.synthetic is None else "synthetic" if run.synthetic else "real",
        "documents": None if run.documents is None else tuple(sorted(set(run.documents))),
        "decoding": None if run.decoding is None else _texts(run.decoding),
        "template": layout.chat_template,
        "own_template": layout.own_template or "",
        "system": layout.system_role,
        "system_text": _text(layout.system_instruction),
        "turns": layout.shots_as_turns,
        "jury": tuple(dict.fromkeys(map(_panel, run.juries))) or None,
        "requests": tuple(dict.fromkeys(itertools.chain(*requests))) or None,
        "protocol": tuple(dict.fromkeys(protocols)) or None,
        "engine": run.engine,
    }


#: What follows from a hash is said by it: field -> the field of the hash.
SAID_BY = {"revision": "rows", "artefact": "prompt"}


def _grade(rule: Rule, one: Facts, other: Facts) -> Grade | None:
    """What an inequality in one condition makes of two results; None: nothing."""
    mine, theirs = getattr(one, rule.field), getattr(other, rule.field)
    if mine is None or theirs is None:
        if rule.field == "budget" and _cut_short(one if theirs is None else other):
            return "other"
        return _unknown(rule.field, one, other)
    if rule.field == "budget" and not (one.answers_cut or other.answers_cut):
        known = one.answers_cut is not None and other.answers_cut is not None
        return "close" if known else "other"
    if rule.field == "context" and (one.inputs_cut or other.inputs_cut):
        return "other"
    if rule.field == "seed" and one.decoding == other.decoding == ():
        return None  # nothing is drawn
    if rule.field == "prompt" and one.wording != other.wording:
        return None  # said by the wording
    if rule.field in ("n", "rows", "revision") and one.source != other.source:
        return None  # said by the source
    if (hash_ := SAID_BY.get(rule.field)) and getattr(one, hash_) and getattr(other, hash_):
        return "close" if getattr(one, hash_) == getattr(other, hash_) else None
    return "other" if rule.moves else "close"


def _cut_short(asked: Facts) -> bool:
    """Whether answers may have been cut that another result, whose budget nobody stated, has whole.

    A paper whose budget hangs on the context of each model, or that states none, is taken to have given
    answers what the suite or the task gives. What fills that much or more was cut there as well.
    """
    return bool(asked.less_room) and asked.answers_cut is not False


def _unknown(field: str, one: Facts, other: Facts) -> Grade | None:
    if field in NOT_OF_A_PAPER or (field in ("n", "documents") and one.source == other.source):
        return None
    if field in ("examples", "turns") and shots_of(one.strategy) == shots_of(other.strategy) == 0:
        return None
    return "close"


def facts(record: Conditions) -> Facts:
    kept: Facts | None = vars(record).get("_facts")
    if kept is None:
        kept = vars(record)["_facts"] = _facts(record)
    return kept


def _facts(record: Conditions) -> Facts:
    asked, seen = record.asked, record.observed
    rows, wording, layout, jury = asked.rows, asked.wording, asked.layout, asked.jury
    shots, last = shots_of(asked.strategy), seen.versions[-1] if seen.versions else {}
    arguments, engine = asked.arguments or {}, seen.engines[-1] if seen.engines else None
    return Facts(
        strategy=asked.strategy,
        version=asked.version.partition("-")[0] or None if asked.version else None,
        wording=wording.kind,
        artefact=(wording.artefact, wording.revision) if wording.artefact or wording.revision else None,
        prompt=wording.hash if wording.kind else None,
        examples=asked.shots.hash if shots else None,
        examples_cut=_any(seen.shots_dropped) if shots else None,
        source=rows.source,
        revision=rows.revision,
        rows=rows.hash or None,
        differs=bool(rows.differs),
        documents=rows.documents,
        n=record.accounted if seen.n == seen.n_here else seen.n,
        n_of_suite=None if record.synthetic else rows.n_of_suite or None,
        held_out=seen.n_held_out,
        budget=asked.budget,
        less_room=_less_room(asked),
        answers_cut=_any(seen.answers_cut),
        context=asked.context,
        inputs_cut=_any(seen.inputs_cut),
        decoding=None if asked.decoding is None else drawn(asked.decoding),
        generation=_with_effect("generation", asked.decoding or {}, Effect.MOVES),
        stop=None if asked.decoding is None else stops(asked.decoding),
        seed=asked.seed,
        arguments=_with_effect("model", arguments, Effect.MOVES),
        variant=(
            *_with_effect("model", arguments, Effect.MODEL),
            *_with_effect("generation", asked.decoding or {}, Effect.MODEL),
        ),
        brought=_with_effect("generation", (engine.generation if engine else None) or {}, Effect.MOVES),
        rounding=None if asked.arguments is None else _rounding(asked, engine),
        template=layout.chat_template,
        template_hash=layout.own_template or (engine.template if engine else None) or None,
        own_template=layout.own_template or "",
        local_template=(engine.local_template if engine else None) or "",
        system=layout.system_role,
        system_text=_text(layout.system_instruction),
        turns=layout.shots_as_turns if shots else None,
        delimiter="" if layout.target_delimiter is None else repr(layout.target_delimiter),
        jury=_panel(jury) if jury else None,
        requests=_requests(jury) if jury else None,
        protocol=(jury.protocol, jury.wording, jury.hash) if jury and jury.protocol else None,
        judged=1.0 if seen.judged is None else seen.judged,
        engine=asked.engine,
        versions=tuple((name, last[name]) for name in ROUND if last.get(name)) or None,
    )


def _panel(jury: Jury) -> Panel:
    decides = jury.adjudicator and replace(jury.adjudicator, request=None)
    return tuple(replace(one, request=None) for one in jury.judges), decides


def _requests(jury: Jury) -> tuple[str | None, ...] | None:
    """None where nobody recorded them; a physician has none."""
    found = tuple(one.request for one in (*jury.judges, jury.adjudicator) if one)
    return found if any(found) else None


def _less_room(asked: Asked) -> bool | None:
    dataset = registry().datasets.get(asked.dataset or "")
    if asked.budget is None or dataset is None:
        return None
    stated = dataset.official_budget
    return asked.budget < (stated.tokens(asked.context) if stated else dataset.answer_budget)


def _rounding(asked: Asked, engine: EngineRecord | None) -> Settings:
    """What the engine says of its precision, and what the user says where it does not."""
    settings = dict(_with_effect("model", asked.arguments or {}, Effect.CLOSE))
    settings |= _with_effect("generation", asked.decoding or {}, Effect.CLOSE)
    if engine and engine.dtype:
        settings["dtype"] = engine.dtype
    return tuple(sorted(settings.items()))


def drawn(decoding: Mapping[str, Any]) -> Settings | None:
    """What makes answers differ from the likeliest ones; `do_sample` is None where nobody recorded it."""
    temperature = read_value(decoding.get("temperature"))
    if temperature is None and decoding.get("do_sample", False) is None:
        return None
    if read_value(decoding.get("do_sample")) is not True and not temperature:
        return ()
    names = [name for name in ("temperature", "top_p", "top_k") if decoding.get(name) is not None]
    named = tuple((name, _frozen(decoding[name])) for name in names) or (("do_sample", True),)
    others = _with_effect("generation", decoding, Effect.DRAWS)
    known = {"do_sample", "seed", *names}
    return (*named, *((name, value) for name, value in others if name not in known))


def stops(decoding: Mapping[str, Any]) -> tuple[str, ...]:
    until = read_value(decoding.get("until"))
    texts = until if isinstance(until, list | tuple) else [until]
    return tuple(sorted({str(text) for text in texts if text not in (None, "")}))


def _with_effect(place: Place, values: Mapping[str, Any], effect: Effect) -> Settings:
    return tuple((name, _frozen(value)) for name, value in sorted(with_effect(place, values, effect).items()))


def _frozen(value: Any) -> Any:
    read = read_value(value)
    return json.dumps(read, sort_keys=True, default=str) if isinstance(read, dict | list | tuple) else read


def _text(given: str | None) -> str:
    return text_hash(given) if given else ""


def _any(count: int | None) -> bool | None:
    return None if count is None else bool(count)


def of_the_paper(dataset: Dataset, strategy: str, model: str = "") -> Conditions:
    """How the suite's paper asked a dataset, as far as it says; some models otherwise than the rest."""
    said = dataset.suite.published.conditions if dataset.suite.published else None
    return _of_the_paper(dataset, strategy, said.decoding_of(model) if said else None)


@lru_cache(maxsize=2048)
def _of_the_paper(dataset: Dataset, strategy: str, decoding: str | None) -> Conditions:
    said = dataset.suite.published.conditions if dataset.suite.published else None
    n = dataset.n_documents or None
    judged = said and said.jury and dataset.blocks.get("judge")
    return Conditions(
        Asked(
            suite=dataset.metadata.suite,
            dataset=dataset.id,
            strategy=strategy,
            rows=Rows(source="suite", n_of_suite=n, documents="all"),
            wording=Wording("official"),
            budget=dataset.metadata.official_budget,
            decoding={
                "until": (dataset.config.get("generation_kwargs") or {}).get("until", []),
                **({"do_sample": None} if decoding is None else read_decoding(decoding)),
            },
            jury=read_jury(said.jury) if said and said.jury and judged else None,
        ),
        Observed(n=n, answers_cut=0),  # budgets of suites are made for their answers
    )


def read_jury(text: str) -> Jury:
    """Who judged, from words of a paper: names with ` + ` between them; without any where it is `unknown`."""
    return Jury(() if text == "unknown" else tuple(map(Judge, text.split(" + "))))


def read_decoding(text: str) -> dict[str, Any]:
    """Generation settings from words: `greedy`, `sampled`, or some by name."""
    if text == "greedy":
        return {"do_sample": False}
    found: dict[str, Any] = {"do_sample": True}
    for part in re.split(r", (?=\w+=)", text):
        name, sign, value = part.partition("=")
        if sign:
            found[name] = _number(value)
    return found


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
