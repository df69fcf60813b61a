"""Sentence BLEU-4 as NLTK computes it with smoothing method 7, without its exact fractions.

`nltk.translate.bleu_score.sentence_bleu` is the official implementation (BRIDGE,
`metric/generation.py`) and the reference in the tests. This one gives the same values in a quarter of
the time, so that Chinese free text is read and scored 3.7 times as fast (`scoring` in benchmarks).
Smoothing: Chen and Cherry, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU"
(2014), methods 4 and 5 in turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

_ORDERS = 4
_K = 5  # of smoothing method 4


def sentence_bleu(references: Sequence[Sequence[str]], hypothesis: Sequence[str]) -> float:
    """BLEU with uniform weights up to 4-grams; 0 without a common token.

    Else a positive value that can exceed 1, since method 5 adds to the first precision.
    """
    if not hypothesis:
        return 0.0
    texts = _spelled([hypothesis, *references])
    length, zeros, hits = len(hypothesis), 0, 0
    precisions: list[float] = []
    for n in range(1, _ORDERS + 2):
        any_match = n == 1 or hits  # without a match of one order there is none of the next
        hits, of = _matches(texts[0], texts[1:], n) if any_match else (0, max(length - n + 1, 1))
        if not hits and n == 1:
            return 0.0
        if not hits and length > 1 and n <= _ORDERS:
            # method 4: a count of none becomes ever smaller, by the text's length
            zeros += 1
            precisions.append(math.log(length) / (2**zeros * _K) / of)
        else:
            precisions.append(hits / of)
    before, means = precisions[0] + 1, []
    for order in range(_ORDERS):  # method 5: the mean of the predecessor, itself and the successor
        before = (before + precisions[order] + precisions[order + 1]) / 3
        means.append(before)
    closest = min((len(reference) for reference in references), key=lambda n: (abs(n - length), n))
    penalty = 1.0 if length > closest else math.exp(1 - closest / length)
    return penalty * math.exp(math.fsum(math.log(p) / _ORDERS for p in means if p > 0))


def _spelled(texts: list[Sequence[str]]) -> list[str]:
    """Each token as one character, so that an n-gram is a slice of a string."""
    numbers: dict[str, int] = {}
    for text in texts:
        for token in text:
            if token not in numbers:
                numbers[token] = len(numbers)
    letters = {token: chr(number) for token, number in numbers.items()}
    return ["".join([letters[token] for token in text]) for text in texts]


def _matches(hypothesis: str, references: list[str], n: int) -> tuple[int, int]:
    """(n-grams that a reference has, too; n-grams, at least 1)."""
    grams = _ngrams(hypothesis, n)
    if not grams:
        return 0, 1
    distinct = set(grams)
    if len(distinct) == len(grams):  # none twice, as in most texts: counting is not needed
        return len(set().union(*(distinct.intersection(_ngrams(item, n)) for item in references))), len(grams)
    counts = Counter(grams)
    best: dict[str, int] = {}
    for reference in references:
        have = Counter(_ngrams(reference, n))
        for gram in counts.keys() & have.keys():
            best[gram] = max(best.get(gram, 0), have[gram])
    hits = sum(min(counts[gram], available) for gram, available in best.items())
    return hits, len(hypothesis) - n + 1


def _ngrams(text: str, n: int) -> list[str]:
    return [text[i : i + n] for i in range(len(text) - n + 1)]
