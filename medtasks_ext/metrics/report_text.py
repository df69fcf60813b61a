"""ROUGE-L of generated reports (ClinicBench, Table 1), in two definitions, with what stands beside it.

The paper names ROUGE-L and no more. The score takes `rouge_score` without stemming. The authors' early
scoring script used pycocoevalcap, whose ROUGE-L is another: `rougeL_coco`.
"""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import Document, Metrics, ratio, scorer
from medtasks_ext.metrics.generation import bleu_4, rouge_scorer, rouge_scores

_ROUGE = ("rougeL", "rouge1", "rouge2")
#: recall counts more than precision (MS-COCO's captions)
_BETA = 1.2


@scorer
def process_results(document: Document, reference: Any, answer: Any) -> Metrics:
    """Scores of one text on 0-1; an empty answer gets 0. `output_words` is its length.

    Texts are tokenised plainly (`generation.tokeniser`). `bleu_4` (that of BRIDGE, not capped at 1) is left
    out of English where NLTK's Punkt data is not installed.
    """
    text = _well_formed(answer or "")
    reference = _well_formed(reference)
    language = document.loaded.record["language"]  # type: ignore[attr-defined]
    metrics: Metrics = {
        "rougeL_coco": rouge_l_coco(text, reference),
        "output_words": float(len(text.split())),
    }
    if (rouge := rouge_scores(text, [reference], language, plain=True)) is not None:
        metrics |= {"score": rouge["rougeL"], **{name: rouge[name] for name in _ROUGE}}
    if (bleu := bleu_4(text, [reference], language, plain=True)) is not None:
        metrics["bleu_4"] = bleu
    return metrics


def rouge_l_coco(text: str, reference: str) -> float:
    """ROUGE-L as pycocoevalcap computes it: F with beta 1.2 over tokens between single blanks.

    Case and punctuation count; line breaks are blanks; two blanks hold an empty token between them.
    """
    if not text:
        return 0.0
    score = rouge_scorer().score(_tokens(reference), _tokens(text))["rougeL"]
    precision, recall = float(score.precision), float(score.recall)
    return ratio((1 + _BETA**2) * precision * recall, recall + _BETA**2 * precision)


def _tokens(text: str) -> str:
    """Each token in hexadecimal after a letter, so that the scorer's own tokeniser keeps it as it is."""
    return " ".join(f"t{token.encode().hex()}" for token in text.replace("\n", " ").split(" "))


def _well_formed(text: str) -> str:
    """Half a surrogate pair is no word, and the fast scorer takes well-formed texts only."""
    return text.encode(errors="replace").decode()
