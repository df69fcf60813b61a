"""The two ROUGE packages on the same texts."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
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
    from rouge_score.rouge_scorer import RougeScorer

    from medtasks_ext.metrics.generation import rouge_scorer, rouge_spelling, tokeniser

    rng = random.Random(0)
    pairs = [_pair(rng, language) for _ in range(n)]
    own = None if language == "en" else SimpleNamespace(tokenize=tokeniser(language))
    reference = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False, tokenizer=own).score
    fast, spell = rouge_scorer("rouge_score_rs").score, rouge_spelling(language)
    ways = {"rouge_score": reference, "rouge_score_rs": lambda one, other: fast(spell(one), spell(other))}
    scores, seconds = {}, {}
    for backend, score in ways.items():
        began = time.perf_counter()
        found = [score(*pair) for pair in pairs]
        seconds[backend] = time.perf_counter() - began
        scores[backend] = [{kind: tuple(values) for kind, values in item.items()} for item in found]
    different = sum(
        one != other for one, other in zip(scores["rouge_score"], scores["rouge_score_rs"], strict=True)
    )
    return {
        "ratio": seconds["rouge_score"] / seconds["rouge_score_rs"],
        "per_second": n / seconds["rouge_score_rs"],
        "different": different,
    }


def _pair(rng: random.Random, language: str) -> tuple[str, str]:
    """60 tokens, and the same with a third of them replaced and two stretches swapped."""
    one, other = (list(characters(rng, 60)) if language == "zh" else words(rng, 60).split() for _ in range(2))
    mixed = [new if rng.random() < 1 / 3 else old for old, new in zip(one, other, strict=True)]
    cut, space = rng.randrange(60), "" if language == "zh" else " "
    return space.join(one), space.join(mixed[cut:] + mixed[:cut])
