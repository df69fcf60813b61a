"""ROUGE and BERTScore of open-ended answers (HELM, `summarization_metrics`).

MedHELM's 13 open-ended benchmarks have no `score` before a jury has read the answers. `rouge_1`, `rouge_2`
and `rouge_l` (Porter stemming) and, where `MEDTASKS_BERTSCORE=1`, `BERTScore-P`, `-R` and `-F`
(distilbert-base-uncased, no rescaling, no idf) are reported at once, and never replace the score.
NoteExtract has no gold; as in HELM, answers are compared with the note. Figures of CLEAR, EHRSHOT, MedDialog
and N2C2-CT are means over their runs (conditions, outcomes, subsets, criteria).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from medtasks_ext.answers.formats import Parsed
from medtasks_ext.metrics import generation
from medtasks_ext.metrics.common import Document, Metrics, metrics_of
from medtasks_ext.metrics.generation import bert_scores, rouge_scorer
from medtasks_ext.stats.statistic import Matrix, Statistic, in_run, mean_of_runs, share, value_and_one

_ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
_BERTSCORE = ("BERTScore-P", "BERTScore-R", "BERTScore-F")
_BERTSCORE_MODEL = "distilbert-base-uncased"


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """ROUGE of one answer on 0-1, and its texts where BERTScore is switched on (`MEDTASKS_BERTSCORE=1`).

    English as HELM has it, with stemming; other languages by their plain tokens (`generation.tokeniser`).
    """
    return metrics_of(document, results[0], _statistics) | {"scored": 0.0}


def _statistics(document: Document, reference: str, answer: str | None) -> Metrics:
    text, language = answer or "", _language(document)
    metrics: Metrics = {**rouge_scores(text, reference)} if language == "en" else {}
    if language != "en" and (scores := generation.rouge_scores(text, [reference], language, plain=True)):
        metrics = {name: scores[kind] for name, kind in _ROUGE.items()}
    if os.environ.get("MEDTASKS_BERTSCORE"):
        metrics |= dict.fromkeys(_BERTSCORE, (text, reference))
    return in_run(document, metrics)


def process_with_points(document: Document, results: list[Parsed]) -> Metrics:
    """ROUGE-L on 0-1 of an answer that assessors score by points (MLB), where its row has a reference.

    Texts are tokenised as elsewhere in their language: Chinese by characters.
    """
    return metrics_of(document, results[0], _rouge_l) | {"scored": 0.0}


def _rouge_l(document: Document, reference: str, answer: str | None) -> Metrics:
    scores = generation.rouge_scores(answer or "", [reference], _language(document), plain=True)
    return {"rouge_l": scores["rougeL"]} if scores else {}


def _language(document: Document) -> str:
    language: str = document.loaded.record["language"]  # type: ignore[attr-defined]
    return language


def rouge_scores(text: str, reference: str, *, backend: str | None = None) -> dict[str, float]:
    """F-measures of ROUGE-1, ROUGE-2 and ROUGE-L with Porter stemming, 0-1.

    `backend`: `rouge_score` or `rouge_score_rs` (identical scores); by default the faster one installed.
    """
    # half a surrogate pair is no word character, and the fast scorer takes well-formed texts only
    well_formed = (item.encode(errors="replace").decode() for item in (reference, text))
    scores = _stemming_scorer(backend).score(*well_formed)
    return {name: float(scores[kind].fmeasure) for name, kind in _ROUGE.items()}


@lru_cache(maxsize=4)
def _stemming_scorer(backend: str | None) -> Any:
    return type(rouge_scorer(backend))(list(_ROUGE.values()), use_stemmer=True)


def bertscore_f_values(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """BERTScore F1 of (answer, reference) pairs, as `bertscore_f` takes it; an empty answer scores 0."""
    return _values(pairs, _BERTSCORE.index("BERTScore-F"))


def _without_braces(text: str) -> str:
    """One brace less at either end, as HELM hands texts to its metrics. ROUGE has no tokens of braces."""
    return text.removeprefix("{").removesuffix("}")


def _values(pairs: Sequence[tuple[str, str]], place: int) -> list[float]:
    items = tuple((_without_braces(text), (_without_braces(of),)) for text, of in pairs)
    return [scores[place] for scores in bert_scores(items, model_type=_BERTSCORE_MODEL)]


def _bertscore(name: str, place: int) -> Statistic:
    return Statistic(name, lambda pairs: value_and_one(_values(pairs, place)), share)


def _bertscore_of_runs(name: str, place: int) -> Statistic:
    def counts(items: Sequence[tuple[str, tuple[str, str]]]) -> Matrix:
        values = _values([pair for _, pair in items], place)
        return mean_of_runs.counts([(run, value) for (run, _), value in zip(items, values, strict=True)])

    return Statistic(name, counts, mean_of_runs.value)


#: mean BERTScore precision, recall and F1; empty answers count 0
bertscore_p, bertscore_r, bertscore_f = map(_bertscore, _BERTSCORE, range(3))
#: the same as means over runs
bertscore_p_of_runs, bertscore_r_of_runs, bertscore_f_of_runs = map(_bertscore_of_runs, _BERTSCORE, range(3))
