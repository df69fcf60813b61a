"""Under which conditions a result came about, and whether two results may stand side by side.

`asked` gives what is known of an experiment, whatever its origin; None stands for what nobody recorded.
`comparable` is the one place that decides: labels, ranks, tests and published comparisons follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.prompts.instructions import OWN_LINE
from medtasks_ext.registry.strategies import shots_of, strategy_title

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.results.experiments import Experiment

#: same: nothing that can move a score differs. close: what differs is harmless by RULES, or unknown.
#: other: something that can move a score differs.
Grade = Literal["same", "close", "other"]
_ORDER: tuple[Grade, ...] = ("same", "close", "other")
GREEDY = "greedy"


@dataclass(frozen=True)
class Asked:
    """What is known of how a result came about.

    Attributes:
        strategy: kind of prompt and number of examples.
        version: `N` of the task's reader and metric; None of a paper's own scorer.
        wording: official, own, or official with our own line of the strategy.
        prompt: hash of the prompt's templates.
        examples: hash of the examples in the prompt.
        source: synthetic, suite (the suite's own rows) or rebuilt (from the original source).
        rows: hash of the rows.
        documents: which of them were asked, in words; `all`.
        n: how many were asked.
        budget: tokens that an answer may have.
        answers_cut: whether answers filled the budget.
        inputs_cut: whether inputs did not fit.
        decoding: greedy, or the settings in words.
        template: chat template: yes, no or its name.
        system: where instructions stand, and further text of the system turn.
        turns: whether examples are turns of a conversation.
        jury: who judged, and by which protocol.
        whole: whether all answers were judged that are to be.
        engine: what generated the answers.
    """

    strategy: str
    version: str | None = None
    wording: str | None = None
    prompt: str | None = None
    examples: str | None = None
    source: str | None = None
    rows: str | None = None
    documents: str | None = None
    n: int | None = None
    budget: int | None = None
    answers_cut: bool | None = None
    inputs_cut: bool | None = None
    decoding: str | None = None
    template: str | None = None
    system: str | None = None
    turns: str | None = None
    jury: str | None = None
    whole: bool = True
    engine: str | None = None


@dataclass(frozen=True)
class Difference:
    """One condition in which two results are not known to be alike.

    Attributes:
        condition: its name.
        grade: what the difference makes of the two.
        one: value of the first, in words.
        other: of the second.
        why: why the grade is this one.
    """

    condition: str
    grade: Grade
    one: str
    other: str
    why: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.one} | {self.other}"


@dataclass(frozen=True)
class Comparability:
    """How far two results can be compared.

    Attributes:
        grade: the worst of the differences.
        differences: in the order of RULES.
    """

    grade: Grade
    differences: tuple[Difference, ...]

    @property
    def reasons(self) -> list[str]:
        """The differences that can move a score, in words."""
        return [str(item) for item in self.differences if item.grade == "other"]


@dataclass(frozen=True)
class Rule:
    """What a difference in one condition means.

    Attributes:
        field: of `Asked`.
        title: what readers see.
        why: why it moves a score, or does not.
        moves: whether it can move a score.
    """

    field: str
    title: str
    why: str
    moves: bool = True


#: The declared table. A condition that is unknown on a side makes two results `close`.
RULES = (
    Rule("strategy", "strategy", "other prompts, other numbers of examples"),
    Rule("source", "rows", "other documents have other scores"),
    Rule("rows", "rows", "other documents have other scores"),
    Rule("documents", "documents", "a part of the rows has another score"),
    Rule("n", "documents", "a part of the rows has another score"),
    Rule("version", "version of the task", "prompts, reader or metric changed between versions"),
    Rule("wording", "wording", "the suite's own words and others give other answers"),
    Rule("prompt", "wording", "other words give other answers"),
    Rule("examples", "examples in the prompt", "other examples give other answers"),
    Rule("budget", "budget", "answers that fill their budget are cut"),
    Rule("inputs_cut", "inputs", "inputs that do not fit are cut"),
    Rule("decoding", "decoding", "sampled answers differ from the likeliest ones"),
    Rule("template", "chat template", "a template is part of the model it belongs to", moves=False),
    Rule("system", "system turn", "templates without a system turn put it elsewhere", moves=False),
    Rule("turns", "examples as turns", "examples in turns of a conversation are read otherwise"),
    Rule("jury", "jury", "other judges give other ratings"),
    Rule("whole", "judgements", "what is pending is a chosen part: the disputed answers"),
    Rule("engine", "engine", "engines differ in rounding alone", moves=False),
)
#: What a paper's own scorer settles: its scores carry no version of ours, no hash of our templates.
_OF_A_PAPER = frozenset({"version", "prompt", "rows", "engine"})


@lru_cache(maxsize=2**16)
def comparable(one: Asked, other: Asked) -> Comparability:
    """How far two results of one dataset can be compared."""
    found: list[Difference] = []
    for rule in RULES:
        values = getattr(one, rule.field), getattr(other, rule.field)
        if values[0] == values[1] or (grade := _grade(rule, one, other)) is None:
            continue
        if any(item.condition == rule.title and item.grade == grade for item in found):
            continue
        mine, theirs = (_shown(rule.field, value) for value in values)
        found.append(Difference(rule.title, grade, mine, theirs, rule.why))
    worst = max((item.grade for item in found), key=_ORDER.index, default=_ORDER[0])
    return Comparability(worst, tuple(found))


def _grade(rule: Rule, one: Asked, other: Asked) -> Grade | None:
    """What an inequality in one condition makes of two results; None: nothing."""
    mine, theirs = getattr(one, rule.field), getattr(other, rule.field)
    if mine is None or theirs is None:
        return _unknown(rule.field, one, other)
    if rule.field == "budget" and not (one.answers_cut or other.answers_cut):
        known = one.answers_cut is not None and other.answers_cut is not None
        return "close" if known else "other"
    if rule.field == "prompt" and one.wording != other.wording:
        return None  # said by the wording
    if rule.field in ("n", "rows") and one.source != other.source:
        return None  # said by the source
    return "other" if rule.moves else "close"


def _unknown(field: str, one: Asked, other: Asked) -> Grade | None:
    if field in _OF_A_PAPER or (field in ("n", "documents") and one.source == other.source):
        return None
    if field == "jury" and one.jury is None and other.jury is None:
        return None
    if field in ("examples", "turns") and shots_of(one.strategy) == shots_of(other.strategy) == 0:
        return None
    return "close"


def _shown(field: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if field == "strategy":
        return strategy_title(value)
    if field in ("prompt", "rows", "examples"):
        return f"hash {value}"
    if field == "n":
        return f"{value:,} documents"
    if field == "source":
        return {"synthetic": "synthetic rows", "suite": "the suite's rows", "rebuilt": "rows rebuilt"}[value]
    if field == "whole":
        return "all there" if value else "some pending"
    if field == "inputs_cut":
        return "some cut" if value else "whole"
    return str(value)


def moving(one: Asked) -> tuple[Any, ...]:
    """Everything known of it that can move a score, but which rows: alike for results that can be tested."""
    left_out = {"rows", "documents", "n"}
    return tuple(getattr(one, rule.field) for rule in RULES if rule.moves and rule.field not in left_out)


# ---------------------------------------------------------------------- what is known


def asked(item: Experiment, settings: Mapping[str, str]) -> Asked:
    """What is known of an experiment.

    Args:
        item: of any origin.
        settings: of its entry.
    """
    if item.settings.get("version") == "published":
        return _published(item)
    generation = item.config.get("generation_kwargs") or {}
    wording, prompt = _wording(item.settings.get("prompt", ""))
    shots = shots_of(item.strategy)
    return Asked(
        strategy=item.strategy,
        version=item.settings.get("version") or None,
        wording=wording,
        prompt=prompt,
        examples=item.settings.get("examples") if shots else None,
        source=_source(item),
        rows=item.settings.get("rows") or None,
        documents=item.settings.get("documents"),
        n=item.n,
        budget=int(generation["max_gen_toks"]) if "max_gen_toks" in generation else None,
        answers_cut=_any(item, "answers_cut"),
        inputs_cut=_any(item, "inputs_cut"),
        decoding=decoding_words(generation),
        template=settings.get("chat template"),
        system=_joined(settings, "instruction in", "system instruction"),
        turns=settings.get("shots as turns") if shots else None,
        jury=item.settings.get("jury"),
        whole=item.covered == 1,
        engine=settings.get("backend"),
    )


def unlike_the_paper(item: Experiment, settings: Mapping[str, str]) -> list[str]:
    """What differs from how the suite's paper asked, and can move a score; empty where it prints none."""
    dataset = item.dataset
    if item.settings.get("version") == "published" or not dataset.of_paper or dataset.suite.published is None:
        return []
    # what a paper calls zero-shot may ask to reason first
    strategy = dataset.metadata.published_strategy if item.strategy == "zero_shot" else item.strategy
    printed = Asked(strategy, wording="official", source="suite", documents="all", n=dataset.metadata.n_test)
    return comparable(asked(item, settings), printed).reasons


def _published(item: Experiment) -> Asked:
    """A published score: the paper's rows, words and settings."""
    given = item.settings
    return Asked(
        strategy=item.strategy,
        wording="official",
        source="suite",
        documents="all",
        n=item.n or None,
        budget=int(given["budget"]) if given.get("budget") else None,
        decoding=given.get("decoding"),
        jury=given.get("jury"),
    )


def _wording(text: str) -> tuple[str | None, str | None]:
    """Whose words, and the hash of the prompt, from the setting that holds both."""
    for words in (OWN_LINE, "official", "own"):
        if text == words or text.startswith(f"{words} "):
            return words, text.removeprefix(words).strip() or None
    return None, None


def _source(item: Experiment) -> str | None:
    if item.sample:
        return "synthetic"
    if not item.loaded:
        return None
    return "rebuilt" if item.settings.get("rebuilt") == "yes" else "suite"


def _any(item: Experiment, what: str) -> bool | None:
    return bool(item.cut[what]) if what in item.cut else None


def decoding_words(generation: Mapping[str, Any]) -> str | None:
    """Greedy, or the settings that make answers differ from the likeliest ones."""
    if not generation:
        return None
    sampled = generation.get("do_sample") in (True, "true", "True") or float(
        generation.get("temperature") or 0
    )
    if not sampled:
        return GREEDY
    words = (name for name in ("temperature", "top_p", "top_k", "seed") if generation.get(name) is not None)
    return ", ".join(f"{name}={generation[name]}" for name in words) or "sampled"


def _joined(settings: Mapping[str, str], *names: str) -> str | None:
    known = [settings[name] for name in names if name in settings]
    return ", ".join(known) or None
