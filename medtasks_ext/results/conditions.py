"""Under which conditions a result came about, and whether two results may stand side by side.

`asked` gives what is known of an experiment, whatever its origin; None stands for what nobody recorded.
`comparable` is the one place that decides: labels, joining, ranks, tests and published comparisons follow
from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.prompts.instructions import OWN_LINE
from medtasks_ext.registry.strategies import shots_of, strategy_title

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.experiments import Experiment

#: Version of the record.
SCHEMA = 1
#: same: nothing that can move a score differs. close: what differs is harmless by RULES, or unknown.
#: other: something that can move a score differs.
Grade = Literal["same", "close", "other"]
_ORDER: tuple[Grade, ...] = ("same", "close", "other")
GREEDY = "greedy"
#: Packages whose versions can round an answer otherwise.
_ROUND = ("vllm", "transformers", "torch", "lm_eval")


@dataclass(frozen=True)
class Asked:
    """What is known of how a result came about: the conditions of every result, whatever its origin."""

    strategy: str  # kind of prompt and number of examples
    version: str | None = None  # `N` of the task's reader and metric; None of a paper's own scorer
    wording: str | None = None  # official, own, or official with our own line of the strategy
    artefact: str | None = None  # the released file that holds the official words, and its version
    prompt: str | None = None  # hash of the prompt's templates
    examples: str | None = None  # hash of the examples in the prompt
    examples_cut: bool | None = None  # whether prompts carry fewer examples than asked for, to fit
    #: synthetic, suite (the suite's own rows) or rebuilt (from the original source); of a run as a whole real
    source: str | None = None
    revision: str | None = None  # of a download
    rows: str | None = None  # hash of the rows
    documents: str | None = None  # which of them were asked, in words; `all`
    n: int | None = None  # how many of the suite's rows are accounted for: asked, or taken for examples
    n_of_suite: int | None = None  # how many the suite states
    held_out: int | None = None  # rows that were taken for examples
    budget: int | None = None  # tokens that an answer may have
    answers_cut: bool | None = None  # whether answers filled the budget
    context: int | None = None  # tokens of prompt and answer together
    inputs_cut: bool | None = None  # whether inputs did not fit
    decoding: str | None = None  # greedy, or the settings in words
    seed: int | None = None  # of the draws
    template: str | None = None  # chat template: yes, no or its name
    system: str | None = None  # where instructions stand, and further text of the system turn
    turns: str | None = None  # whether examples are turns of a conversation
    jury: str | None = None  # who judged
    protocol: str | None = None  # by which protocol, in which words
    judged: float = 1.0  # share of the answers that were judged, of those that are to be
    engine: str | None = None  # what generated the answers
    versions: str | None = None  # of the packages that did

    def record(self) -> Json:
        """As files hold it; what is unknown is left out."""
        return {"schema": SCHEMA, **{key: value for key, value in asdict(self).items() if value is not None}}


@dataclass(frozen=True)
class Difference:
    """One condition in which two results are not known to be alike."""

    condition: str  # its name
    grade: Grade  # what the difference makes of the two
    one: str  # value of the first, in words
    other: str  # of the second
    why: str  # why the grade is this one

    def __str__(self) -> str:
        return f"{self.condition}: {self.one} | {self.other}"


@dataclass(frozen=True)
class Comparability:
    """How far two results can be compared."""

    grade: Grade  # the worst of the differences
    differences: tuple[Difference, ...]  # in the order of RULES

    @property
    def known(self) -> tuple[str, ...]:
        """The conditions in which the two are known to differ."""
        unlike = (item.condition for item in self.differences if "unknown" not in (item.one, item.other))
        return tuple(dict.fromkeys(unlike))

    @property
    def reasons(self) -> list[str]:
        """The differences that can move a score, in words."""
        return [str(item) for item in self.differences if item.grade == "other"]


@dataclass(frozen=True)
class Rule:
    """What a difference in one condition means."""

    field: str  # of `Asked`
    title: str  # what readers see
    why: str  # why it moves a score, or does not
    moves: bool = True  # whether it can move a score


#: The declared table. A condition that is unknown on a side makes two results `close`.
RULES = (
    Rule("strategy", "strategy", "other prompts, other numbers of examples"),
    Rule("source", "rows", "other documents have other scores"),
    Rule("rows", "rows", "other documents have other scores"),
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
    Rule("seed", "seed", "another draw of the same answers", moves=False),
    Rule("template", "chat template", "a template is part of the model it belongs to", moves=False),
    Rule("system", "system turn", "templates without a system turn put it elsewhere", moves=False),
    Rule("turns", "examples as turns", "examples in turns of a conversation are read otherwise"),
    Rule("jury", "jury", "other judges give other ratings"),
    Rule("protocol", "protocol of the jury", "other questions to judges give other ratings"),
    Rule("judged", "judgements", "what is pending is a chosen part: the disputed answers"),
    Rule("engine", "engine", "engines differ in rounding alone", moves=False),
    Rule("versions", "versions of packages", "versions differ in rounding alone", moves=False),
)
#: What a paper does not have: versions of our tasks, hashes of our templates, our engines.
_NOT_OF_A_PAPER = frozenset({"version", "prompt", "artefact", "rows", "revision", "held_out", "engine"})
_NOT_OF_A_PAPER |= {"versions", "seed", "examples_cut"}


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


def kept_apart(one: Asked, other: Asked) -> tuple[Difference, ...]:
    """What keeps two results of one model from being joined: each difference, and what one side alone states.

    Harmless differences count, too: a template is part of its model, and yet one model is asked with and
    without. Answers that nobody judged have no jury to differ in.
    """
    found = {(item.condition, item.grade): item for item in comparable(one, other).differences}
    for rule in RULES:
        values = getattr(one, rule.field), getattr(other, rule.field)
        key: tuple[str, Grade] = (rule.title, "close")
        if values[0] == values[1] or None not in values:
            continue
        if rule.field in ("jury", "protocol"):
            found.pop(key, None)
        else:
            mine, theirs = (_shown(rule.field, value) for value in values)
            found.setdefault(key, Difference(rule.title, "close", mine, theirs, rule.why))
    return tuple(found.values())


#: What follows from a hash is said by it: field -> the field of the hash.
_SAID_BY = {"revision": "rows", "artefact": "prompt"}


def _grade(rule: Rule, one: Asked, other: Asked) -> Grade | None:
    """What an inequality in one condition makes of two results; None: nothing."""
    mine, theirs = getattr(one, rule.field), getattr(other, rule.field)
    if mine is None or theirs is None:
        return _unknown(rule.field, one, other)
    if rule.field == "budget" and not (one.answers_cut or other.answers_cut):
        known = one.answers_cut is not None and other.answers_cut is not None
        return "close" if known else "other"
    if rule.field == "context" and (one.inputs_cut or other.inputs_cut):
        return "other"
    if rule.field == "seed" and one.decoding == other.decoding == GREEDY:
        return None  # nothing is drawn
    if rule.field == "prompt" and one.wording != other.wording:
        return None  # said by the wording
    if rule.field in ("n", "rows", "revision") and one.source != other.source:
        return None  # said by the source
    if (hash_ := _SAID_BY.get(rule.field)) and getattr(one, hash_) and getattr(other, hash_):
        return "close" if getattr(one, hash_) == getattr(other, hash_) else None
    return "other" if rule.moves else "close"


def _unknown(field: str, one: Asked, other: Asked) -> Grade | None:
    if field in _NOT_OF_A_PAPER or (field in ("n", "documents") and one.source == other.source):
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
    if field in ("n", "held_out"):
        return f"{value:,} documents"
    if field in ("budget", "context"):
        return f"{value:,} tokens"
    if field == "source":
        return {"suite": "the suite's rows", "rebuilt": "rows rebuilt"}.get(value, f"{value} rows")
    if field == "judged":
        return "all there" if value == 1 else f"{1 - value:.0%} pending"
    if field in ("inputs_cut", "examples_cut"):
        return "some cut" if value else "whole"
    return str(value)


# ---------------------------------------------------------------------- what is known


def asked(item: Experiment, settings: Mapping[str, str]) -> Asked:
    """What is known of an experiment.

    Args:
        item: of any origin.
        settings: of its entry.
    """
    if item.settings.get("version") == "published":
        return _published(item)
    generation, facts = item.config.get("generation_kwargs") or {}, item.recorded
    wording, prompt = _wording(item.settings.get("prompt", ""))
    artefact = " ".join(
        str(item.loaded[key]) for key in ("artefact", "artefact_revision") if key in item.loaded
    )
    shots = shots_of(item.strategy)
    jury, _, protocol = item.settings.get("jury", "").partition("; ")
    coverage = item.coverage
    return Asked(
        strategy=item.strategy,
        version=item.settings.get("version") or None,
        wording=wording,
        artefact=artefact or None,
        prompt=prompt,
        examples=item.settings.get("examples") if shots else None,
        examples_cut=_any(item, "shots_dropped") if shots else None,
        source=_source(item),
        revision=item.loaded.get("revision"),
        rows=item.settings.get("rows") or None,
        documents=item.settings.get("documents"),
        n=coverage.rows if item.n == coverage.here else item.n,
        n_of_suite=coverage.of_suite,
        held_out=item.loaded.get("n_held_out"),
        budget=int(generation["max_gen_toks"]) if "max_gen_toks" in generation else facts.get("budget"),
        answers_cut=_any(item, "answers_cut"),
        context=facts.get("context"),
        inputs_cut=_any(item, "inputs_cut"),
        decoding=decoding_words(generation),
        seed=facts.get("seed"),
        template=settings.get("chat template"),
        system=_joined(settings, "instruction in", "system instruction"),
        turns=settings.get("shots as turns") if shots else None,
        jury=jury or None,
        protocol=protocol or None,
        judged=item.covered,
        engine=settings.get("backend"),
        versions=_versions(facts.get("versions") or {}),
    )


def of_run(settings: Mapping[str, str]) -> Asked:
    """What is known of a run as a whole: what its settings fix for all its tasks.

    Args:
        settings: of its entry.
    """
    jury, _, protocol = settings.get("jury", "").partition("; ")
    return Asked(
        strategy="",  # a run may hold several
        source=settings.get("rows"),
        documents=settings.get("documents"),
        decoding=settings.get("decoding"),
        template=settings.get("chat template"),
        system=_joined(settings, "instruction in", "system instruction"),
        turns=settings.get("shots as turns"),
        jury=jury or None,
        protocol=protocol or None,
        engine=settings.get("backend"),
    )


def unlike_the_paper(item: Experiment) -> list[str]:
    """What differs from how the suite's paper asked, and can move a score; empty where it prints none."""
    found = item.beside_the_paper
    return [] if found is None else found.reasons


def may_stand_beside(item: Experiment) -> bool:
    """Whether a result may be ranked among those of the suite's paper."""
    return item.coverage.whole and not unlike_the_paper(item)


def beside_the_paper(item: Experiment) -> Comparability | None:
    """How far a result can stand beside those that the suite's paper prints; None where it prints none."""
    dataset = item.dataset
    if item.settings.get("version") == "published" or not dataset.of_paper or dataset.suite.published is None:
        return None
    # what a paper calls zero-shot may ask to reason first
    strategy = dataset.metadata.published_strategy if item.strategy == "zero_shot" else item.strategy
    return comparable(item.asked, of_the_paper(item.dataset, strategy))


def of_the_paper(dataset: Dataset, strategy: str, model: str = "") -> Asked:
    """How the suite's paper asked a dataset, as far as it says (`published.conditions` of `suite.yaml`).

    Args:
        dataset: of the paper.
        strategy: of the published score.
        model: some may be asked otherwise than the others.
    """
    said = dataset.suite.published.conditions if dataset.suite.published else None
    return _of_the_paper(dataset, strategy, said.decoding_of(model) if said else None)


@lru_cache(maxsize=2048)
def _of_the_paper(dataset: Dataset, strategy: str, decoding: str | None) -> Asked:
    said = dataset.suite.published.conditions if dataset.suite.published else None
    return Asked(
        strategy,
        wording="official",
        source="suite",
        documents="all",
        n=dataset.n_documents or None,
        n_of_suite=dataset.n_documents or None,
        budget=dataset.metadata.official_budget,
        answers_cut=False,  # budgets of suites are made for their answers
        decoding=decoding,
        jury=said.jury if said and dataset.blocks.get("judge") else None,
    )


def _published(item: Experiment) -> Asked:
    """A published score: the paper's rows, words and settings."""
    return of_the_paper(item.dataset, item.strategy, item.settings.get("model", ""))


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
    words = (name for name in ("temperature", "top_p", "top_k") if generation.get(name) is not None)
    return ", ".join(f"{name}={generation[name]}" for name in words) or "sampled"


def _versions(known: Mapping[str, str]) -> str | None:
    return ", ".join(f"{name} {known[name]}" for name in _ROUND if known.get(name)) or None


def _joined(settings: Mapping[str, str], *names: str) -> str | None:
    known = [settings[name] for name in names if name in settings]
    return ", ".join(known) or None
