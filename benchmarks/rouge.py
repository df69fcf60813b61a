"""The two ROUGE packages on the same texts.

`rouge_score_rs` against `rouge_score` with the suite's tokeniser on texts of 60 tokens: how many times as
fast, and whether all scores are equal.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from common import Row, characters, fresh, words

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = 25


def run(quick: bool) -> Iterator[Row]:
    for language in ("en", "zh"):
        yield _row(language, 200 if quick else 2000)


def _row(language: str, n: int) -> Row:
    measured = fresh("rouge", "compare", language=language, n=n)
    equal = "scores equal" if not measured["different"] else f"{measured['different']} of {n} scores differ"
    return Row(
        f"rouge_score_rs against rouge_score, 60 tokens, {language}",
        f"{measured['ratio']:.1f} times, {measured['per_second']:,.0f}/s, {equal}",
        f"{TARGET} times, equal",
        measured["ratio"] >= TARGET and not measured["different"],
    )


def compare(language: str, n: int) -> dict[str, float]:
    """`rouge_score` as the suites call it, and the way medtasks takes with `rouge_score_rs`."""
    from rouge_score import rouge_scorer, tokenizers

    from medtasks_ext.metrics import generation

    class Characters(tokenizers.Tokenizer):
        def tokenize(self, text: str) -> list[str]:
            return generation.characters(text)

    kinds = ("rouge1", "rouge2", "rougeL")
    reference = rouge_scorer.RougeScorer(kinds, tokenizer=Characters() if language == "zh" else None)
    fast, spell = generation.rouge_scorer(), generation.rouge_spelling(language)
    rng = random.Random(0)
    pairs = [_pair(rng, language) for _ in range(n)]
    times = [time.perf_counter()]
    expected = [reference.score(*pair) for pair in pairs]
    times.append(time.perf_counter())
    found = [fast.score(spell(target), spell(prediction)) for target, prediction in pairs]
    times.append(time.perf_counter())
    different = sum(
        any(tuple(one[kind]) != tuple(other[kind]) for kind in kinds)
        for one, other in zip(expected, found, strict=True)
    )
    slow, quick = times[1] - times[0], times[2] - times[1]
    return {"ratio": slow / quick, "per_second": n / quick, "different": different}


def _pair(rng: random.Random, language: str) -> tuple[str, str]:
    """60 tokens, and the same with a third of them replaced and two stretches swapped."""
    one, other = (list(characters(rng, 60)) if language == "zh" else words(rng, 60).split() for _ in range(2))
    mixed = [new if rng.random() < 1 / 3 else old for old, new in zip(one, other, strict=True)]
    cut, space = rng.randrange(60), "" if language == "zh" else " "
    return space.join(one), space.join(mixed[cut:] + mixed[:cut])
