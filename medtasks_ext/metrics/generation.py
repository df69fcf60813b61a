"""ROUGE, BLEU and BERTScore of generated text, as BRIDGE, HELM and ClinicBench take them.

An empty answer scores 0. BERTScore loads a model: `MEDTASKS_BERTSCORE=1` asks for it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import regex

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.common import Document, Metrics, language_of, scorer
from medtasks_ext.stats.statistic import Array, Matrix, Statistic, in_run, mean_of_runs, share, value_and_one
from medtasks_ext.version import install_words

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
def process_text(document: Document, references: Any, answer: Any) -> Metrics:
    """`rouge_avg`, the score, is the mean of ROUGE-1, -2 and -L; BLEU of an equal text may be 1.1167."""
    language, text = language_of(document), answer or ""
    metrics: Metrics = {**_of_text(text, references, language)}
    if os.environ.get("MEDTASKS_BERTSCORE"):
        metrics["bertscore_f1"] = (text, references, language)
    return metrics


@scorer
def process_passages(document: Document, gold: Any, answer: Any) -> Metrics:
    """The same for answers with a passage per question (CAS-evidence): the mean over questions."""
    pairs = zip(answer or [""] * len(gold), gold, strict=True)
    each = [_of_text(text, [reference], language_of(document)) for text, reference in pairs]
    return {name: sum(item[name] for item in each) / len(each) for name in each[0]}


def _of_text(text: str, references: Sequence[str], language: str) -> dict[str, float]:
    """A metric whose tokeniser is not at hand is left out."""
    metrics = rouge_scores(text, references, language) or {}
    if metrics:
        metrics["score"] = metrics["rouge_avg"]
    if (bleu := bleu_4(text, references, language)) is not None:
        metrics["bleu_4"] = bleu
    return metrics


def rouge_scores(
    text: str, references: Sequence[str], language: str, *, plain: bool = False, stemming: bool = False
) -> dict[str, float] | None:
    """ROUGE-1, -2, -L (the best F over the references) and their mean, 0-1; None without a tokeniser.

    `plain` as for `tokeniser`; `stemming`: Porter's, of English.
    """
    spell = rouge_spelling(language, plain=plain)
    if spell is None:
        return None
    if not text:
        return dict.fromkeys(("rouge_avg", *_ROUGE_TYPES), 0.0)
    best = rouge_scorer(stemming=stemming).score_multi([spell(item) for item in references], spell(text))
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


@lru_cache(maxsize=2)
def rouge_scorer(*, stemming: bool = False) -> Any:
    """`rouge_score_rs`, if installed, gives the same faster."""
    package = "rouge_score_rs" if find_spec("rouge_score_rs") else "rouge_score"
    made: Any = import_module(f"{package}.rouge_scorer")
    return made.RougeScorer(_ROUGE_TYPES, use_stemmer=stemming)


@lru_cache(maxsize=16)
def rouge_spelling(language: str, *, plain: bool = False) -> Callable[[str], str] | None:
    """How a text is handed to the ROUGE scorer, or None where the language's tokeniser is not at hand.

    English goes as it is. Elsewhere each token is spelled in hexadecimal, since the scorer knows Latin alone.
    """
    if language == "en":
        return _well_formed
    tokenise = tokeniser(language, plain=plain)
    if tokenise is None:
        return None
    if tokenise is characters:
        return lambda text: text.replace(" ", "").encode("utf-32-be", "surrogatepass").hex(" ", 4)
    return lambda text: " ".join([token.encode(errors="surrogatepass").hex() for token in tokenise(text)])


def characters(text: str) -> list[str]:
    """One token per character, ASCII spaces removed (Chinese, Japanese, Thai and others without blanks)."""
    return list(text.replace(" ", ""))


def word_runs(text: str) -> list[str]:
    """Words of languages that no suite tokenises, the same whatever dictionaries a machine has."""
    words: list[str] = _WORD.findall(text.casefold())
    return words


@lru_cache(maxsize=16)
def tokeniser(language: str, *, plain: bool = False) -> Callable[[str], list[str]] | None:
    """The tokeniser for a language, or None where it is NLTK's and the Punkt data is not installed.

    `plain`: only English takes Punkt, so that texts of no paper have the same tokens on every machine.
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
    """Precision, recall, F1 of (text, references), no rescaling, no idf; `model`: `lang` or `model_type`."""
    try:
        import bert_score
    except ImportError:
        what = "BERTScore is switched on but not installed"
        remedy = f"{install_words('bertscore')}, or unset it"
        raise MedtasksError(what, where="MEDTASKS_BERTSCORE", remedy=remedy) from None
    scores = dict.fromkeys(range(len(items)), (0.0, 0.0, 0.0))
    if asked := {number: item for number, item in enumerate(items) if item[0]}:
        texts, references = [text for text, _ in asked.values()], [list(of) for _, of in asked.values()]
        parts = bert_score.score(texts, references, **model)
        scores.update(zip(asked, zip(*(part.tolist() for part in parts), strict=True), strict=True))
    return list(scores.values())


bertscore_f1 = Statistic("bertscore_f1", _bertscore_counts, share)


#: recall counts more than precision (MS-COCO's captions)
_BETA = 1.2


@scorer
def process_report(document: Document, reference: Any, answer: Any) -> Metrics:
    """ROUGE-L (ClinicBench, Table 1), whose definition the paper does not name: without stemming, as a score;
    `rougeL_coco` is that of pycocoevalcap, which the authors' early scoring script used.
    """
    text, reference, language = _well_formed(answer or ""), _well_formed(reference), language_of(document)
    metrics: Metrics = {
        "rougeL_coco": rouge_l_coco(text, reference),
        "output_words": float(len(text.split())),
    }
    if (rouge := rouge_scores(text, [reference], language, plain=True)) is not None:
        metrics |= {"score": rouge["rougeL"], **{name: rouge[name] for name in _ROUGE_TYPES}}
    if (bleu := bleu_4(text, [reference], language, plain=True)) is not None:
        metrics["bleu_4"] = bleu
    return metrics


def rouge_l_coco(text: str, reference: str) -> float:
    """As pycocoevalcap: F with beta 1.2 over tokens between single blanks, with case and punctuation."""
    if not text:
        return 0.0
    score = rouge_scorer().score(_tokens(reference), _tokens(text))["rougeL"]
    precision, recall = float(score.precision), float(score.recall)
    whole = recall + _BETA**2 * precision
    return (1 + _BETA**2) * precision * recall / whole if whole else 0.0


def _tokens(text: str) -> str:
    """Each token in hexadecimal after a letter, so that the scorer's own tokeniser keeps it as it is."""
    return " ".join(f"t{token.encode().hex()}" for token in text.replace("\n", " ").split(" "))


def _well_formed(text: str) -> str:
    """Half a surrogate pair is no word, and the fast scorer takes well-formed texts only."""
    return text.encode(errors="replace").decode()


@scorer
def process_medec(document: Document, gold: Any, answer: Any) -> Metrics:
    """MEDEC: is there an error, in which sentence, and how well is it corrected (HELM, `medec_metrics`).

    `medec_error_sentence_accuracy` is HELM's. It reads the sentence's number from the whole gold text, where
    there is none, so notes with an error never score. `correction_…` is over the notes with an error.
    """
    # what says nothing else counts as the report of an error somewhere
    answer = answer or {"flag": 1, "sentence": None, "correction": ""}
    flag = answer["flag"] == gold["flag"]
    official = answer["sentence"] is not None and answer["sentence"] == gold["official_sentence"]
    metrics: Metrics = {
        "score": float(flag),
        "medec_error_flag_accuracy": float(flag),
        "medec_error_sentence_accuracy": float(flag and (official or not gold["flag"])),
    }
    language, references = language_of(document), [gold["correction"]]
    rouge = rouge_scores(answer["correction"], references, language) or {}
    for name, value in rouge.items():
        metrics[f"correction_{name}"] = (value, 1) if gold["flag"] else (0, 0)
    if gold["flag"] and os.environ.get("MEDTASKS_BERTSCORE"):
        metrics["correction_bertscore_f1"] = (answer["correction"], references, language)
    return metrics


#: metric -> its name in `rouge_scores`
ROUGE_NAMES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
_BERTSCORE = ("BERTScore-P", "BERTScore-R", "BERTScore-F")
_BERTSCORE_MODEL = "distilbert-base-uncased"


@scorer
def process_open_ended(document: Document, reference: str, answer: str | None) -> Metrics:
    """HELM's `summarization_metrics`, English stemmed; the score is a jury's, and runs are averaged apart."""
    text, language = answer or "", language_of(document)
    scores = rouge_scores(text, [reference], language, plain=True, stemming=language == "en")
    metrics: Metrics = {name: scores[kind] for name, kind in ROUGE_NAMES.items()} if scores else {}
    if os.environ.get("MEDTASKS_BERTSCORE"):
        metrics |= dict.fromkeys(_BERTSCORE, (text, reference))
    return {**in_run(document, metrics), "scored": 0.0}


@scorer
def process_with_points(document: Document, reference: str, answer: str | None) -> Metrics:
    """ROUGE-L on 0-1 of an answer that assessors score by points (MLB), where its row has a reference."""
    scores = rouge_scores(answer or "", [reference], language_of(document), plain=True)
    return {**({"rouge_l": scores["rougeL"]} if scores else {}), "scored": 0.0}


def bertscore_values(pairs: Sequence[tuple[str, str]], place: int = 2) -> list[float]:
    """Precision, recall or F1 of (answer, reference) pairs, less a brace at either end, as in HELM."""
    bare = ([part.removeprefix("{").removesuffix("}") for part in pair] for pair in pairs)
    items = tuple((text, (of,)) for text, of in bare)
    return [scores[place] for scores in bert_scores(items, model_type=_BERTSCORE_MODEL)]


def _bertscore(name: str, place: int) -> Statistic:
    return Statistic(name, lambda pairs: value_and_one(bertscore_values(pairs, place)), share)


def _bertscore_of_runs(name: str, place: int) -> Statistic:
    def counts(items: Sequence[tuple[str, tuple[str, str]]]) -> Matrix:
        values = bertscore_values([pair for _, pair in items], place)
        return mean_of_runs.counts([(run, value) for (run, _), value in zip(items, values, strict=True)])

    return Statistic(name, counts, mean_of_runs.value)


#: mean BERTScore precision, recall and F1; empty answers count 0
bertscore_p, bertscore_r, bertscore_f = map(_bertscore, _BERTSCORE, range(3))
#: the same as means over runs
bertscore_p_of_runs, bertscore_r_of_runs, bertscore_f_of_runs = map(_bertscore_of_runs, _BERTSCORE, range(3))
