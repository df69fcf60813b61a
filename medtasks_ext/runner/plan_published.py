"""Tokens of a task whose rows are not on this machine: published mean lengths, by the sample rows' ratio.

How many tokens a word has depends on language, kind of text and tokenizer. The bundled sample rows of a task
share the first two with its real rows and are counted with the model's own tokenizer, so a published mean in
words is multiplied by the tokens that a word of the sample rows has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.registry.lengths import Lengths, count_words

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.runner.chat import Counter
    from medtasks_ext.runner.plan import CountedTask


def with_published_lengths(
    counted: CountedTask,
    lengths: Lengths,
    documents: Sequence[Document],
    shots: Sequence[Document],
    count: Counter,
) -> CountedTask:
    """The task with inputs and gold answers of the published mean lengths in place of the sample rows' own.

    What surrounds them (instruction, chat template, marks between examples) stays as it was counted.

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
