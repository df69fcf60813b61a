"""What each document contributed to a task's score, without any text: `RUN/tasks/TASK.parquet`.

From the counts the score follows under any weights, so paired tests and bootstraps need no responses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.answers import answer_format
from medtasks_ext.atomic import atomic_file, remove
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics import likelihood
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.functions import MARK, function_named
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.stats.bootstrap import resample, score_interval
from medtasks_ext.stats.statistic import (
    Array,
    Counts,
    Statistic,
    by_unit,
    mean,
    mean_of_runs,
    over_repeats,
    question_of,
    statistic_of,
    unit_of,
)

if TYPE_CHECKING:
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.stats.intervals import Interval

#: Column of the file -> array of `DocumentScores`.
_ARRAYS = {
    **{"unit": "units", "scored": "scored", "score": "scores"},
    **{"valid": "valid", "unclosed": "unclosed"},
}


@dataclass(frozen=True)
class DocumentScores:
    """The documents of one task in one run, in the order of the task's file."""

    documents: Sequence[str]  # (n,) keys of the documents, unique within the task
    #: (n,) hashes of document and prompt fields; equal where two runs were asked the same
    contents: Sequence[str]
    units: Array  # (n,) which documents are resampled together, numbered from 0 in order of their first
    scored: Array  # (n,) whether it takes part in the score: it has gold, or a judge's rating
    #: (n,) the score of each document alone; NaN where it has none of its own (nothing to find and nothing
    #: found, or a further trial of a question that is judged as a whole)
    scores: Array
    valid: Array  # (n,) share of readable answers, 0 or 1; NaN where it is not reported
    unclosed: Array  # (n,) 1 where reasoning never ended; NaN where it is not reported
    counts: Array  # (n, k) what the score is computed from; rows that are not `scored` are 0
    statistic: Statistic  # how the score follows from column sums of `counts`
    labels: tuple[str, ...] = ()  # hashes of the labels that the columns stand for, where these are labels

    @property
    def value(self) -> float:
        return float(self.statistic.value(self.counts.sum(axis=0))) if self.scored.any() else float("nan")

    def at(self, places: Array | Sequence[int]) -> DocumentScores:
        return replace(
            self,
            documents=[self.documents[place] for place in places],
            contents=[self.contents[place] for place in places],
            **{name: getattr(self, name)[places] for name in (*_ARRAYS.values(), "counts")},
        )

    def by_unit(self) -> Counts:
        """The counts of `score`, one row per unit that takes part: what the bootstrap resamples."""
        matrix = by_unit(self.counts[self.scored], self.units[self.scored].tolist())
        return Counts(matrix, {"score": self.statistic}, self.labels)

    def interval(self, dataset: str) -> Interval | None:
        return score_interval(self.by_unit(), dataset)

    def draws(self, dataset: str) -> Array | None:
        """(resamples,); None for fewer than two units."""
        return resample([self.by_unit()], dataset).get("score")


def score_statistic(dataset: Dataset, strategy: str = "zero_shot", repeats: int = 1) -> Statistic:
    """Judged scores are means over runs; MedtasksError of a plain function, which cannot be resampled."""
    aggregation = aggregations(dataset, strategy).get("score", mean_of_runs)
    statistic = statistic_of(aggregation)
    if statistic is None:
        what = "the aggregation of `score` is a plain function"
        raise MedtasksError(what, where=dataset.file, remedy="make it a Statistic (docs/add_a_dataset.md)")
    repeated: Statistic = over_repeats(statistic, repeats)
    return repeated


@lru_cache(maxsize=512)
def aggregations(dataset: Dataset, strategy: str = "zero_shot") -> dict[str, Callable[..., Any]]:
    """lm-eval's own but `mean` are left out."""
    if by_likelihood(strategy):
        named = {item["metric"]: item["aggregation"] for item in likelihood.METRICS}
        return {metric: mean if named[metric] == "mean" else named[metric] for metric in named}
    named = {item["metric"]: str(item["aggregation"]) for item in dataset.metric_list}
    return {
        metric: mean if name == "mean" else function_named(name, where=dataset.file)
        for metric, name in named.items()
        if name == "mean" or name.startswith(MARK)
    }


#: Ways to guess all trials of a question, above which they are not listed.
_MOST_WAYS = 1000
_READ = {"valid": True, "span": None, "why": "", "reader": "shared", "unclosed_reasoning": False}


def chance_score(dataset: Dataset, strategy: str, documents: Sequence[Mapping[str, Any]]) -> float | None:
    """What guessing scores: answers drawn evenly from those that each question lists, each trial anew.

    The score of the mean counts over all answers: exact where it is a mean over questions; of F1 and kappa
    what guesses at many documents tend to. None where questions list no answers, or any number of them may
    be right, where judges score, and without gold.
    """
    statistic = statistic_of(aggregations(dataset, strategy)["score"]) if dataset.is_closed else None
    if statistic is None:
        return None
    form = answer_format(dataset.blocks["answer"], where=dataset.file)
    before = "".join(form.lead) if form.lead.text else ""
    process = None if by_likelihood(strategy) else function_named(dataset.process_results, where=dataset.file)
    #: question -> of each of its trials, what each answer would add to the score
    questions: dict[Hashable, list[list[Any]]] = {}
    for place, document in enumerate(documents):
        gold, listed = document["gold"], [before + option for option in form.possible(document) or ()]
        if gold is None:
            continue
        if process is None:  # where several are right, there is no score
            right = [form.read_gold(text, document) == gold for text in listed]
            adds: list[Any] = [float(item) for item in right] if any(right) else []
        else:
            more = isinstance(gold, dict)  # than an answer, which readers of answers alone give then
            answers = (
                form.read(text, document, cot=False).answer if more else form.read_gold(text, document)
                for text in listed
            )
            adds = [process(document, [{**_READ, "answer": answer}])["score"] for answer in answers]
        if adds:
            questions.setdefault(question_of({"doc": document, "doc_id": place}), []).append(adds)
    if not questions:
        return None
    if max(map(len, questions.values())) == 1:
        alone = [adds for [adds] in questions.values()]
        weights = np.concatenate([np.full(len(adds), 1 / len(adds)) for adds in alone])
        return float(statistic.value(weights @ statistic.counts([*chain.from_iterable(alone)])))
    if any(prod(map(len, trials)) > _MOST_WAYS for trials in questions.values()):
        return None
    sums = (
        np.mean([statistic.counts(way).sum(axis=0) for way in product(*trials)], axis=0)
        for trials in questions.values()
    )
    return float(statistic.value(np.sum([*sums], axis=0)))


def document_scores(samples: Sequence[Mapping[str, Any]], statistic: Statistic) -> DocumentScores:
    ordered = sorted(samples, key=lambda sample: sample["doc_id"])
    place: dict[Any, int] = {}
    units = np.array([place.setdefault(unit_of(sample), len(place)) for sample in ordered], dtype=np.int32)
    scored = np.array(["score" in sample for sample in ordered], dtype=bool)
    items = [sample["score"] for sample in ordered if "score" in sample]
    values = np.asarray(statistic.counts(items)) if items else np.zeros((0, 1))
    counts = np.zeros((len(ordered), values.shape[1]))
    counts[scored] = values
    named = statistic.labels(items) if statistic.labels else ()
    scores, counted = np.full(len(ordered), np.nan), counts.any(axis=1)
    if counted.any():  # without gold, or before judging, there is nothing to take a value of
        scores[counted] = statistic.value(counts[counted])
    return DocumentScores(
        documents=[document_key(sample["doc"]) for sample in ordered],
        contents=[str(sample.get("doc_hash", ""))[:16] for sample in ordered],
        units=units,
        scored=scored,
        scores=scores,
        valid=np.array([sample.get("valid", np.nan) for sample in ordered], dtype=float),
        unclosed=np.array([sample.get("unclosed_reasoning", np.nan) for sample in ordered], dtype=float),
        counts=counts,
        statistic=statistic,
        # hashes: models may answer with words of a patient's record
        labels=tuple(sha256(str(label).encode()).hexdigest()[:16] for label in named),
    )


def save_document_scores(path: Path, scores: DocumentScores) -> None:
    """One row per document; `counts` is empty where it follows from `score` (a mean)."""
    import pyarrow as pa
    from pyarrow import parquet

    n, k = scores.counts.shape
    plain = scores.statistic is mean
    ends = np.zeros(n + 1, dtype=np.int32) if plain else np.arange(0, n * k + 1, k, dtype=np.int32)
    counts = np.zeros(0) if plain else np.ascontiguousarray(scores.counts).ravel()
    table = pa.table(
        {
            "document": pa.array(scores.documents, pa.string()),
            "content": pa.array(scores.contents, pa.string()),
            **{column: pa.array(getattr(scores, name)) for column, name in _ARRAYS.items()},
            "counts": pa.ListArray.from_arrays(ends, counts),
        },
        metadata={"statistic": scores.statistic.name, "labels": " ".join(scores.labels)},
    )
    with atomic_file(path) as file:
        parquet.write_table(table, file, compression="zstd")


def load_document_scores(path: Path, statistic: Statistic) -> DocumentScores:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # small files: read at once, not column by column
        table = parquet.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="medtasks rescore RUN") from None
    except (pa.ArrowException, OSError) as error:
        raise MedtasksError(f"damaged ({error})", where=path, remedy="medtasks rescore RUN") from None
    written = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if written.get("statistic") != statistic.name:
        what = f"the score was {written.get('statistic')}, and is {statistic.name} in this version"
        raise MedtasksError(what, where=path, remedy="medtasks rescore RUN")
    column = {name: table[name].combine_chunks() for name in table.column_names}
    arrays = {name: column[of].to_numpy(zero_copy_only=False) for of, name in _ARRAYS.items()}
    if statistic is mean:
        scored = arrays["scored"]
        counts = np.column_stack([np.where(scored, arrays["scores"], 0.0), scored.astype(float)])
    else:
        flat = column["counts"].flatten().to_numpy(zero_copy_only=False)
        counts = flat.reshape(table.num_rows, -1) if table.num_rows else np.zeros((0, 1))
    return DocumentScores(
        documents=column["document"].to_pylist(),
        contents=column["content"].to_pylist(),
        **arrays,
        counts=counts,
        statistic=statistic,
        labels=tuple(written.get("labels", "").split()),
    )


def save_resampled(path: Path, values: Array | None) -> None:
    """None (nothing to resample) removes an older file."""
    if values is None:
        remove(path)
        return
    with atomic_file(path) as file:
        np.save(file, values)


_HEADER = 128  # bytes that `numpy.save` writes before the values


def load_resampled(path: Path) -> Array | None:
    """The values, (resamples,); None where no file is, (0,) where it is not as `save_resampled` writes it.

    The header of a file of somebody else may claim more values than a machine holds, so none is believed.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        return np.empty(0)
    values = np.frombuffer(content[_HEADER : len(content) // 8 * 8])
    again = BytesIO()
    np.save(again, values)
    return values if again.getvalue() == content else np.empty(0)
