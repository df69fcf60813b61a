"""ROUGE, BLEU and BERTScore of generated text (BRIDGE Methods, `metric/generation.py`).

`rouge_avg` (the score) is the mean of the F-measures of ROUGE-1, ROUGE-2 and ROUGE-L per document
(`rouge_score`, no stemming). `bleu_4` is NLTK's sentence BLEU with smoothing method 7, which is not capped.
`bertscore_f1` needs `MEDTASKS_BERTSCORE=1`. Chinese and Japanese are split into characters; English uses
ROUGE's tokeniser, and NLTK's for BLEU; other languages use Punkt for both. With several references ROUGE
takes the best per type. An empty answer scores 0.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import regex

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.common import Document, Metrics, ratio, scorer
from medtasks_ext.stats.statistic import Array, Statistic, share, value_and_one

log = logging.getLogger(__name__)

_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
_PUNKT_LANGUAGE = {
    "en": "english", "fr": "french", "es": "spanish", "de": "german", "ru": "russian", "pt": "portuguese",
    "no": "norwegian",
}  # fmt: skip
#: written without blanks between words
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo", "dz", "yue", "wuu"})
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_BERTSCORE_LANGUAGE = {"en": "en", "zh": "zh"}


@scorer
def process_results(document: Document, references: Any, answer: Any) -> Metrics:
    """Scores of one text on 0-1; a metric whose tokeniser is not at hand is left out.

    The official smoothing of BLEU gives an identical text of five tokens or more 1.1167.
    """
    language = document.loaded.record["language"]  # type: ignore[attr-defined]
    text = answer or ""
    metrics: Metrics = {}
    if (rouge := rouge_scores(text, references, language)) is not None:
        metrics.update(rouge, score=rouge["rouge_avg"])
    if (bleu := bleu_4(text, references, language)) is not None:
        metrics["bleu_4"] = bleu
    if os.environ.get("MEDTASKS_BERTSCORE"):
        metrics["bertscore_f1"] = (text, references, language)
    return metrics


@scorer
def process_passages(document: Document, gold: Any, answer: Any) -> Metrics:
    """The same scores for answers with a passage per question (CAS-evidence): the mean over questions.

    A missing passage scores 0.
    """
    language = document.loaded.record["language"]  # type: ignore[attr-defined]
    pairs = list(zip(answer or [""] * len(gold), gold, strict=True))
    metrics: Metrics = {}
    rouge = [rouge_scores(text, [reference], language) for text, reference in pairs]
    if scores := [item for item in rouge if item is not None]:
        metrics = {name: ratio(sum(item[name] for item in scores), len(scores)) for name in scores[0]}
        metrics["score"] = metrics["rouge_avg"]
    found = (bleu_4(text, [reference], language) for text, reference in pairs)
    if bleu := [value for value in found if value is not None]:
        metrics["bleu_4"] = ratio(sum(bleu), len(bleu))
    return metrics


def rouge_scores(
    text: str, references: Sequence[str], language: str, *, plain: bool = False
) -> dict[str, float] | None:
    """ROUGE-1, -2, -L F-measures (no stemmer) and their mean, 0-1; None without a tokeniser.

    With several references each type takes the one with the best F-measure. `plain` as for `tokeniser`.
    """
    spell = rouge_spelling(language, plain=plain)
    if spell is None:
        return None
    if not text:
        return dict.fromkeys(("rouge_avg", *_ROUGE_TYPES), 0.0)
    best = rouge_scorer().score_multi([spell(item) for item in references], spell(text))
    scores = {name: float(best[name].fmeasure) for name in _ROUGE_TYPES}
    return {"rouge_avg": sum(scores.values()) / len(scores), **scores}


def bleu_4(text: str, references: Sequence[str], language: str, *, plain: bool = False) -> float | None:
    """Sentence BLEU with uniform weights up to 4-grams and smoothing method 7; None without tokeniser."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    if (tokenise := tokeniser(language, plain=plain)) is None:
        return None
    smooth = SmoothingFunction().method7
    found = [tokenise(item) for item in references]
    return float(sentence_bleu(found, tokenise(text), smoothing_function=smooth))


@lru_cache(maxsize=4)
def rouge_scorer(backend: str | None = None) -> Any:
    """A ROUGE scorer with its default tokeniser.

    `rouge_score` is the reference; `rouge_score_rs`, if installed, gives identical scores faster.
    `backend` forces one of the two.
    """
    return _rouge_module(backend).RougeScorer(_ROUGE_TYPES, use_stemmer=False)


@lru_cache(maxsize=16)
def rouge_spelling(language: str, *, plain: bool = False) -> Callable[[str], str] | None:
    """How a text is handed to the ROUGE scorer, or None where the language's tokeniser is not at hand.

    English goes as it is. Elsewhere each token of the suite's tokeniser is spelled in hexadecimal
    and set apart by a blank, so that the scorer's own tokeniser, which knows Latin letters and
    digits only, finds the same tokens.
    """
    if language == "en":
        return str
    tokenise = tokeniser(language, plain=plain)
    if tokenise is None:
        return None
    if tokenise is characters:
        return lambda text: text.replace(" ", "").encode("utf-32-be", "surrogatepass").hex(" ", 4)
    return lambda text: " ".join([token.encode(errors="surrogatepass").hex() for token in tokenise(text)])


def _rouge_module(backend: str | None) -> Any:
    if backend != "rouge_score":
        try:
            from rouge_score_rs import rouge_scorer as fast
        except ImportError:
            if backend == "rouge_score_rs":
                raise
        else:
            return fast
    from rouge_score import rouge_scorer as reference

    return reference


def characters(text: str) -> list[str]:
    """One token per character, ASCII spaces removed (Chinese, Japanese, Thai and others without blanks)."""
    return list(text.replace(" ", ""))


def word_runs(text: str) -> list[str]:
    """Runs of letters, their marks and digits, in small letters: of languages that no suite tokenises.

    No dictionary of an installed library is asked, so that a text has the same tokens on every machine.
    """
    words: list[str] = _WORD.findall(text.casefold())
    return words


@lru_cache(maxsize=16)
def tokeniser(language: str, *, plain: bool = False) -> Callable[[str], list[str]] | None:
    """The tokeniser for a language, or None where it is NLTK's and the Punkt data is not installed.

    `plain`: only English takes the tokeniser that BRIDGE has for seven of its languages, so that texts of no
    paper have the same tokens on every machine: characters in scripts without blanks, else `word_runs`.
    """
    if language in _UNSPACED:
        return characters
    if language not in _PUNKT_LANGUAGE or (plain and language != "en"):
        return word_runs
    from nltk.tokenize import word_tokenize

    punkt = _PUNKT_LANGUAGE[language]
    try:
        word_tokenize("a", language=punkt)
    except LookupError:
        log.warning(
            "NLTK's Punkt data (punkt_tab, %s) is not installed: metrics that need it are left out. "
            "Install it once with: python -m nltk.downloader punkt_tab",
            punkt,
        )
        return None
    return lambda text: word_tokenize(text, language=punkt)


def _bertscore_counts(items: Sequence[tuple[str, list[str], str]]) -> Array:
    language = _BERTSCORE_LANGUAGE.get(items[0][2], "other") if items else "other"
    scores = bert_scores(tuple((text, tuple(given)) for text, given, _ in items), lang=language)
    return value_and_one([f1 for _, _, f1 in scores])


@lru_cache(maxsize=1)  # lm-eval's aggregations and the bootstrap ask for the same texts
def bert_scores(
    items: tuple[tuple[str, tuple[str, ...]], ...], **model: str
) -> list[tuple[float, float, float]]:
    """BERTScore precision, recall and F1 of (text, references), no rescaling, no idf; an empty text scores 0.

    `model`: `lang` or `model_type`, as bert_score takes it. Raises MedtasksError without the extra
    `bertscore`: it is loaded only where BERTScore is switched on.
    """
    try:
        import bert_score
    except ImportError:
        what = "BERTScore is switched on but not installed"
        remedy = "pip install 'medtasks[bertscore]', or unset it"
        raise MedtasksError(what, where="MEDTASKS_BERTSCORE", remedy=remedy) from None
    scores = dict.fromkeys(range(len(items)), (0.0, 0.0, 0.0))
    if asked := {number: item for number, item in enumerate(items) if item[0]}:
        texts, references = [text for text, _ in asked.values()], [list(of) for _, of in asked.values()]
        parts = bert_score.score(texts, references, **model)
        scores.update(zip(asked, zip(*(part.tolist() for part in parts), strict=True), strict=True))
    return list(scores.values())


#: mean BERTScore F1, empty texts counting 0. Switched on by `MEDTASKS_BERTSCORE=1`, since it loads a
#: model; needs the extra `bertscore`.
bertscore_f1 = Statistic("bertscore_f1", _bertscore_counts, share)
