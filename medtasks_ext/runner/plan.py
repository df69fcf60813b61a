"""What a run will take, before it begins: documents, tokens, GPU hours. Estimates by stated rules.

Prompts are those of the run, counted on some documents of each task where its rows are at hand. Elsewhere
the suite's number of documents and published mean lengths stand in, and the bundled sample rows where nobody
publishes any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.registry.lengths import Lengths, count_words, published_lengths
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.rows.missing import origin_of
from medtasks_ext.rows.sources import forced_origin
from medtasks_ext.runner.chat import Counter
from medtasks_ext.runner.evaluate import Settings, build_task, official_budget
from medtasks_ext.runner.plan_tree import ENGINES_CACHE, Beginning, Cache, opening
from medtasks_ext.runner.prompts import ChatTemplate, rendered_prompt

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.model_size import Size

#: Documents of a task whose prompts are counted; of more, they are drawn evenly and the sum is scaled.
DRAWN = 100
#: Of them, those whose prompts are compared with those of the other strategies.
COMPARED = 10
#: Output tokens by assumption: a free text without a reference, reasoning that a prompt asks for, the trace
#: of a model that reasons by itself.
FREE_TEXT, STEP_BY_STEP, TRACE = 400, 300, 2000

#: Characters per token where the model's tokenizer is not at hand: least squares over the prompts of all
#: bundled sample rows, tokenised with Mistral's tekken (130,000 tokens, 2024). By language its sums are
#: then met within a fifth.
CHARACTERS_PER_TOKEN = {"other scripts": 3.8, "Cyrillic": 3.1, "Chinese and Japanese": 0.9}
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_EAST_ASIAN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")

#: BF16 operations per second of an H100 SXM without sparsity, by NVIDIA's data sheet.
PEAK = 989e12
#: Shares of that peak that a full vLLM batch is assumed to reach: on prompts, on output.
PROMPT_SHARE, OUTPUT_SHARE = 0.4, 0.1
#: Weights on a GPU of 80 GB, the rule of `model_configs`.
GIGABYTES_PER_GPU, BYTES_PER_PARAMETER = 64, 2


@dataclass(frozen=True)
class OutputRule:
    """What decides how much a model writes."""

    reasons: bool = False  # whether it reasons by itself before it answers
    budget: int | None = None  # tokens that an answer may have at most; None for the task's own
    official: bool = (
        False  # whether a run keeps to the suite's own budget, as it does where it knows `reasons`
    )


@dataclass(frozen=True)
class Context:
    """How much a model takes at once."""

    tokens: int  # of prompt and answer together
    cuts: bool = True  # whether a run cuts prompts to it; a server refuses those that are too long


@dataclass(frozen=True)
class PlannedTask:
    """One task of a plan, and what is known of its texts."""

    task: str
    suite: str
    strategy: str
    documents: int  # to ask
    rows_here: bool  # whether the rows are here
    wording: str  # whose words its prompts are in
    #: whose texts were counted: those of the rows, published means, or those of the sample rows
    lengths: Literal["rows", "published", "sample"]
    counted: int  # documents whose tokens were counted
    sample: bool  # whether sample rows were asked for as the data


@dataclass(frozen=True)
class TaskPlan(PlannedTask):
    """What one task will take."""

    prompt_tokens: int  # of all of them together, as far as they fit the context
    output_tokens: int  # expected
    most_output_tokens: int  # if every answer filled its budget
    mean_prompt: int  # tokens of a prompt before anything is cut
    #: tokens that the context leaves for a prompt; None where the context is not known
    room: int | None = None
    #: prompts that do not fit with all their examples. Of published lengths only the mean is known: then it
    #: is all of them or none
    shots_dropped: int | None = None
    inputs_cut: int | None = None  # prompts that do not fit without examples, either; counted likewise
    cached_tokens: int = 0  # of the prompts: what an engine has read just before, and keeps
    shots_asked: int = 0  # examples that a prompt is to carry
    shots_held: float | None = None  # that it carries on average, within the context


@dataclass(frozen=True)
class CountedTask(PlannedTask):
    """One task with its texts in tokens; what it takes depends on the answers and on the context, too."""

    prompts: Sequence[float]  # tokens of each prompt that was counted
    shots: float  # tokens of the examples that each of them carries
    n_shots: int  # how many these are
    answers: Sequence[float]  # tokens of each answer, without what a model writes before it
    steps: bool  # whether the prompt asks for reasoning
    budget: int  # tokens that the task gives an answer; 0 where likelihood is asked
    official_budget: int | None  # those of a model that does not reason, where the suite gives it others
    dataset: str
    opening: float  # tokens that all prompts begin with, before the examples
    beginnings: Sequence[Beginning] = ()  # of some prompts without examples
    longer: float = 0.0  # tokens of an input by which real rows exceed those that were counted
    shared: float = 0.0  # tokens that the prompt before, of another strategy, begins with as well

    def plan(self, rule: OutputRule, context: Context | None, cache: Cache = ENGINES_CACHE) -> TaskPlan:
        """What the task takes by a rule of its output, within a context.

        Args:
            cache: of the engine, for what prompts begin with alike.
        """
        stated = rule.budget or (self.official_budget if rule.official else None)
        budget = (stated or self.budget) if self.budget else 0
        before = TRACE if rule.reasons else STEP_BY_STEP if self.steps else 0
        plan = TaskPlan(
            **{item.name: getattr(self, item.name) for item in fields(PlannedTask)},
            prompt_tokens=self._sum(self.prompts),
            output_tokens=self._sum([min(before + size, budget) for size in self.answers]),
            most_output_tokens=self.documents * budget,
            mean_prompt=round(fmean(self.prompts)),
            cached_tokens=self._cached([self.n_shots], self.prompts, cache),
            shots_asked=self.n_shots,
        )
        if context is None:
            return plan
        room = max(0, context.tokens - budget)
        held = [self._held(size, room) if context.cuts else self.n_shots for size in self.prompts]
        too_long = [size > room for size in self.prompts]
        bare_too_long = [size - self.shots > room for size in self.prompts]
        fitted = [min(size, room) for size in self.prompts] if context.cuts else self.prompts
        return replace(
            plan,
            prompt_tokens=self._sum(fitted),
            room=room,
            shots_dropped=self._sum(too_long) if self.shots else 0,
            inputs_cut=self._sum(bare_too_long),
            cached_tokens=self._cached(held, fitted, cache),
            shots_held=fmean(held) if self.n_shots else None,
        )

    def _cached(self, held: Sequence[int], fitted: Sequence[float], cache: Cache) -> int:
        """Tokens that an engine has read just before: of the same record, or of the task's prompt before.

        Args:
            held: examples that each prompt that was counted keeps; they are dropped from the end.
            fitted: tokens of these prompts.
        """
        if self.shared:
            return self.documents * cache.kept(min(self.shared, fmean(fitted)))
        one = self.shots / self.n_shots if self.n_shots else 0.0
        return cache.kept(self.opening + fmean(held) * one) * max(0, self.documents - 1)

    def _held(self, prompt: float, room: int) -> int:
        """Examples that a prompt keeps within so many tokens."""
        one = self.shots / self.n_shots if self.n_shots else 0.0
        over = max(0.0, prompt - room)
        return max(0, self.n_shots - ceil(over / one)) if one > 0 else self.n_shots

    def _sum(self, of_those_counted: Sequence[float]) -> int:
        """A sum over all documents, from those that were counted."""
        return round(self.documents * fmean(of_those_counted))


def count_task(
    registry: Registry,
    name: str,
    settings: Settings,
    count: Counter,
    chat_template: ChatTemplate | None,
) -> CountedTask:
    """Count the texts of one task.

    Args:
        count: the model's tokenizer, or what stands in for it.
        chat_template: the model's, used where the settings ask for it.

    Raises:
        MedtasksError: local data that is malformed.
    """
    dataset, strategy = registry.known(name)
    writes = not by_likelihood(strategy)
    official = official_budget(dataset, strategy) if writes else None
    task, rows_here = _built(registry, name, settings)
    chosen = _drawn(task.eval_docs)
    texts = [str(rendered_prompt(task, item, settings, chat_template)) for item in chosen]
    prompts = count(texts)
    n_shots = int(task.config.num_fewshot or 0)
    (bare,) = count([str(rendered_prompt(task, chosen[0], settings, chat_template, shots=0))])
    of_shots = prompts[0] - bare
    if not writes:  # behind a prompt stand its possible answers, one after another
        prompts = [
            prompt + sum(count(task.doc_to_choice(item)))
            for prompt, item in zip(prompts, chosen, strict=True)
        ]
    counted = CountedTask(
        task=name,
        suite=dataset.metadata.suite,
        strategy=strategy,
        documents=len(task.eval_docs) if rows_here else dataset.n_part * dataset.trials,
        prompts=prompts,
        shots=of_shots,
        n_shots=n_shots,
        answers=_answers(chosen, count) if writes else [0] * len(chosen),
        steps=bool(chosen[0]["cot"]),
        budget=int(task.config.generation_kwargs["max_gen_toks"]) if writes else 0,
        official_budget=official.tokens(settings.context) if official else None,
        rows_here=rows_here,
        wording=chosen[0].loaded.record["instruction"],
        lengths="rows" if rows_here else "sample",
        counted=len(chosen),
        sample=rows_here and chosen[0]["data"] == "sample",
        dataset=dataset.id,
        opening=max(0, opening(texts, count) - of_shots),
        beginnings=() if n_shots else _beginnings(texts, chosen, COMPARED if rows_here else len(texts)),
    )
    lengths = published_lengths().get(dataset.id)
    if rows_here or lengths is None:
        return counted
    shots = (chosen[0].loaded.shots or [])[:n_shots]
    return _with_published_lengths(counted, lengths, chosen, shots, count)


def _beginnings(texts: Sequence[str], documents: Sequence[Document], most: int) -> list[Beginning]:
    """Some of the prompts, drawn evenly; the same documents for each strategy."""
    step = max(1, len(texts) // most)
    chosen = list(zip(texts, documents, strict=True))[::step]
    return [Beginning(text, item.record) for text, item in chosen]


def _with_published_lengths(
    counted: CountedTask,
    lengths: Lengths,
    documents: Sequence[Document],
    shots: Sequence[Document],
    count: Counter,
) -> CountedTask:
    """The task with inputs and gold answers of the published mean lengths in place of the sample rows' own.

    What surrounds them (instruction, chat template, marks between examples) stays as it was counted.
    Tokens per word depend on language, kind of text and tokenizer. Sample rows share the first two
    with real rows, and are counted with the model's own tokenizer.

    Args:
        counted: on the sample rows.
        documents: the sample rows that were counted.
        shots: the examples that their prompts carry.
        count: texts -> tokens.
    """
    inputs, golds = _Texts.of([item.input for item in documents], count), _golds(documents, count)
    input_size = _input_tokens(lengths, documents, inputs, count)
    gold_size = golds.tokens_of_words(lengths.output) if lengths.output and golds.words else golds.mean
    longer_shots = 0.0
    if shots:
        own = _Texts.of([item.input for item in shots], count).mean + _golds(shots, count).mean
        longer_shots = len(shots) * (input_size + gold_size - own)
    prompt = fmean(counted.prompts) + input_size - inputs.mean + longer_shots
    longer = gold_size / golds.mean if golds.mean else 1.0
    return replace(
        counted,
        prompts=[prompt],
        shots=counted.shots + longer_shots,
        answers=[
            size * longer if item["target"].strip() else size
            for item, size in zip(documents, counted.answers, strict=True)
        ],
        lengths="published",
        longer=input_size - inputs.mean,
    )


@dataclass(frozen=True)
class _Texts:
    """Some texts: how many there are, and how long they are together."""

    n: int
    tokens: int
    words: int

    @classmethod
    def of(cls, texts: Sequence[str], count: Counter) -> _Texts:
        return cls(len(texts), sum(count(texts)), sum(map(count_words, texts)))

    @property
    def mean(self) -> float:
        """Tokens of one."""
        return self.tokens / self.n if self.n else 0.0

    def tokens_of_words(self, words: float) -> float:
        """So many words in tokens, by the ratio of these texts: of one language, one kind, one tokenizer."""
        return words * self.tokens / self.words


def _golds(documents: Sequence[Document], count: Counter) -> _Texts:
    return _Texts.of([item["target"] for item in documents if item["target"].strip()], count)


def _input_tokens(lengths: Lengths, documents: Sequence[Document], inputs: _Texts, count: Counter) -> float:
    if lengths.unit == "words":
        return inputs.tokens_of_words(lengths.input)
    if lengths.unit == "tokens":
        return lengths.input
    # the suite's instruction and ours are about as long
    around = _Texts.of([item["system"] + shown(item) for item in documents], count).mean - inputs.mean
    return max(1.0, lengths.input - around)


def _built(registry: Registry, name: str, settings: Settings) -> tuple[Task, bool]:
    """The task with its own rows if they are on this machine, else with the sample rows."""
    origin = origin_of(registry.known(name)[0], forced_origin(settings.data))
    if origin is not None:
        try:
            with _offline():
                return build_task(registry, name, settings), True
        except MedtasksError:
            if origin in ("local", "sample"):
                raise
    with _offline():
        return build_task(registry, name, replace(settings, data="sample")), False


@contextmanager
def _offline() -> Iterator[None]:
    """Take downloads from the cache alone: a plan must not fetch gigabytes."""
    from huggingface_hub import constants

    before, variable = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    constants.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"] = True, "1"
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        os.environ.pop("HF_HUB_OFFLINE")
        if variable is not None:
            os.environ["HF_HUB_OFFLINE"] = variable


def _drawn(documents: Sequence[Document]) -> list[Document]:
    step = max(1, len(documents) / DRAWN)
    return [documents[int(index * step)] for index in range(min(DRAWN, len(documents)))]


def _answers(documents: Sequence[Document], count: Counter) -> list[int]:
    """Tokens of each gold answer and the end token; of a free text without one, the assumption."""
    golds = [document["target"] for document in documents]
    return [size + 1 if gold.strip() else FREE_TEXT for gold, size in zip(golds, count(golds), strict=True)]


def document_costs(documents: Sequence[Document]) -> list[float]:
    """What each document costs a GPU beside the others, as `gpu_hours` weighs prompt and output.

    Tokens are counted by script. Examples are left out: they are the same for all, and cached.
    """
    prompts = count_by_script([item["system"] + shown(item) for item in documents])
    answers = _answers(documents, count_by_script)
    return [
        prompt / PROMPT_SHARE + (answer + STEP_BY_STEP * item["cot"]) / OUTPUT_SHARE
        for item, prompt, answer in zip(documents, prompts, answers, strict=True)
    ]


# ---------------------------------------------------------------------- tokens without a tokenizer


def count_by_script(texts: Sequence[str]) -> list[int]:
    """Tokens by the number of characters of each script."""
    other, cyrillic, east_asian = CHARACTERS_PER_TOKEN.values()
    counts = []
    for text in texts:
        n_cyrillic, n_east_asian = len(_CYRILLIC.findall(text)), len(_EAST_ASIAN.findall(text))
        rest = len(text) - n_cyrillic - n_east_asian
        tokens = round(rest / other + n_cyrillic / cyrillic + n_east_asian / east_asian)
        counts.append(max(1, tokens) if text else 0)
    return counts


# ---------------------------------------------------------------------- GPUs


def gpus_for(size: Size) -> int:
    """The smallest power of two of GPUs of 80 GB that holds the weights."""
    gpus = 1
    while size.total * BYTES_PER_PARAMETER / gpus >= GIGABYTES_PER_GPU * 1e9:
        gpus *= 2
    return gpus


def gpu_hours(size: Size, prompt_tokens: int, output_tokens: int) -> float:
    """Hours of one H100: two operations per active parameter and token, at the assumed shares of its peak."""
    work = prompt_tokens / PROMPT_SHARE + output_tokens / OUTPUT_SHARE
    return 2 * size.active * work / PEAK / 3600
