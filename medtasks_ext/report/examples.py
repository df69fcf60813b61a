"""A few answered documents of each task, as many as a page has room for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.pages import cut
from medtasks_ext.report.privacy import is_open
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.results.experiments import Experiment, Fault
from medtasks_ext.runs.samples import parsed_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.runs.records import Sample

#: Documents of a file that are looked at: what is rare in it may be missed, and large files cost no time.
_LOOKED_AT = 60
#: Characters of a text, as long as there is room; then fewer.
_LENGTHS = (1500, 600, 250)
_ID = 80  # of a document's key
#: Bytes that an example takes, about; decides how many experiments are looked at.
_TYPICAL = 2500
_RIGHT, _WRONG, _INVALID = "right", "wrong", "invalid"


def examples(
    dataset: Dataset,
    experiments: Sequence[tuple[int, Experiment]],
    budget: int,
    faults: list[Fault],
    *,
    include_text: bool,
) -> list[Json]:
    """One right, one wrong and one unreadable answer each, where there are, in `budget` bytes of JSON."""
    found: list[Json] = []
    for entry, item in experiments[: max(1, budget // (3 * _TYPICAL))]:
        public = is_open(dataset, sample=item.sample)
        if item.read_samples is None or not (public or include_text):
            continue
        try:
            chosen = list(_chosen(item))
        except (MedtasksError, KeyError, IndexError, TypeError, ValueError) as error:
            what = error.what if isinstance(error, MedtasksError) else f"damaged ({type(error).__name__})"
            faults.append(
                Fault(f"{item.task}", f"no examples: {what}", "medtasks rescore RUN", skipped=False)
            )
            continue
        for sample, score in chosen:
            document = document_key(sample["doc"]) if public else f"#{sample['doc_id'] + 1}"
            about = {
                "entry": entry,
                "strategy": item.strategy,
                "document": cut(document, _ID),
                "score": score,
            }
            sizes = ({**about, **_texts(sample, length)} for length in _LENGTHS)
            shown = next((example for example in sizes if _size(example) <= budget), None)
            if shown is None:
                return found
            budget -= _size(shown)
            found.append(shown)
    return found


def _chosen(item: Experiment) -> Iterator[tuple[Sample, float | None]]:
    assert item.read_samples is not None
    samples = sorted(item.read_samples(_LOOKED_AT), key=lambda sample: sample["doc_id"])
    scores = document_scores(samples, score_statistic(item.dataset, item.strategy)).scores
    seen = set()
    for sample, score in zip(samples, scores.tolist(), strict=True):
        if math.isnan(score) and "score" in sample:
            continue  # a further trial of a question, which is scored as a whole
        kind = _INVALID if sample.get("valid") == 0 else _RIGHT if score >= 1 - 1e-9 else _WRONG
        if kind not in seen:
            seen.add(kind)
            yield sample, None if math.isnan(score) else round(score, 5)


def _texts(sample: Sample, length: int) -> Json:
    document = sample["doc"]
    gold = document.get("gold")
    return {
        "input": cut(shown(document), length),
        "response": cut(str(sample["resps"][0][0]), length),
        "answer": _short(parsed_of(sample).get("answer"), length),
        "gold": _short(document.get("target") if gold is None else gold, length),
    }


def _short(value: Any, length: int) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= length else cut(text, length)


def _size(example: Json) -> int:
    return len(json.dumps(example, ensure_ascii=False, default=str).encode(errors="surrogatepass"))
