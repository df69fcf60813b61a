"""One document as it was asked and answered: prompt, responses, readings, scores, judges' words."""

from __future__ import annotations

import gzip
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.judge.cases import verdicts_in
from medtasks_ext.metrics import rule
from medtasks_ext.metrics.repeats import EACH
from medtasks_ext.offline_page import data_in_page
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.answers.column import Column, Flag, Row, Source, response_of
from medtasks_ext.results.error_clusters import CLUSTERS, TEXTS, items_of
from medtasks_ext.runs.records import names_of, parsed_of, request_of, turns_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.runs.records import Sample

#: The folder beside the page.
FOLDER = "answers"
_QUICK = 5  # level of packing: a third larger than the best, in a third of its time
#: Characters of a text that are shown unless the whole is asked for, half of them from its end.
MOST = 20_000
#: Metrics that say something else than how good an answer is, or that are shown by themselves.
_SHOWN_APART = frozenset({"score", "valid", "scored", "unclosed_reasoning", "SAMPLE_DATA"})


def document_view(key: str, columns: Sequence[Column], places: Sequence[int | None], *, whole: bool) -> Json:
    """What page and terminal show of it: its key, the gold answer as written, and a response of each column.

    `places`: of the document in each column; None, as the response is, where the column does not have it.
    """
    responses: list[Json | None] = []
    target = ""
    for column, place in zip(columns, places, strict=True):
        if place is None:
            responses.append(None)
            continue
        try:
            sample = column.record(place)
            responses.append(_response(column, column.rows[place], sample, whole))
            target = target or sample["doc"]["target"]
        except MedtasksError as error:
            responses.append(_faulty(f"{error.what}; {error.remedy}"))
        except (KeyError, TypeError, IndexError, ValueError) as error:
            responses.append(_faulty(f"the record is damaged ({type(error).__name__}); medtasks rescore RUN"))
    return {"key": key, "target": target, "responses": responses}


def _faulty(why: str) -> Json:
    return {"fault": why, "turns": [], "stretches": []}


def _response(column: Column, row: Row, sample: Sample, whole: bool) -> Json:
    document, parsed, text = sample["doc"], parsed_of(sample), response_of(sample)
    kind = str(column.source.dataset.config["answer"]["kind"])
    readings, answer = [*_readings(parsed, document)], column.answer_of(sample)
    stretches = _stretches(text, parsed, answer.reasoning if answer else "", whole)
    if (n := len(sample["resps"][0])) > 1:
        stretches, readings = [], []
        scores = cast("Any", sample).get(EACH, {}).get("score") or [None] * n
        for number, (again, score) in enumerate(zip(sample["resps"][0], scores, strict=True), start=1):
            read = parsed_of(sample, number - 1)
            stretches += [_stretch(f"Answer {number}:\n", False), *_stretches(again, read, "", whole)]
            stretches.append(_stretch("\n\n", False))
            of = f", answer {number}" + ("" if score is None else f" (score {score:g})")
            readings += _readings(read, document, of)
    of_judges = [(column.judged or {}).get(name, {}).get("score") for name in names_of(sample)]
    judged = [score for score in of_judges if score is not None]
    items = items_of(kind, readings[0]["gold"], readings[0]["answer"]) if readings else None
    prompt, settings = request_of(sample)
    usage = answer.usage if answer else None
    return {
        "fault": "",
        "turns": [  # a `text` turn where the prompt is no conversation
            {"role": role, "text": _shortened(said, whole), "length": len(said)}
            for role, said in (turns_of(prompt) if prompt else ())  # not kept before it is scored
        ],
        "settings": settings,  # of generation
        "stretches": stretches,
        "length": sum(map(len, sample["resps"][0])),
        "readings": readings,
        "score": None if math.isnan(row.score) else row.score,
        "cluster": row.cluster or "",
        "metrics": _metrics(sample),
        "finish": answer.finish if answer else "",
        "tokens": [usage.prompt, usage.completion] if usage else None,  # of prompt and response
        "seconds": answer.seconds if answer else None,
        "items": items,
        "judges": [*_judges(column, names_of(sample))],
        "judged": fmean(judged) if judged else None,
    }


def _readings(parsed: Mapping[str, Any], document: Mapping[str, Any], of: str = "") -> Iterator[Json]:
    """The reading that is scored: what was read, if anything could be, and what it is compared with."""
    if "answer" in parsed:
        answer = parsed["answer"] if parsed.get("valid") else None
        reader, why = str(parsed.get("reader", "official")) + of, str(parsed.get("why") or "")
        yield {"reader": reader, "answer": answer, "gold": document.get("gold"), "why": why}


def _metrics(sample: Sample) -> dict[str, float]:
    values = cast("Mapping[str, Any]", sample)
    return {
        name: float(values[name])
        for name in values.get("metrics", ())
        if name not in _SHOWN_APART
        and isinstance(values.get(name), int | float)
        and math.isfinite(values[name])
    }


def _shortened(text: str, whole: bool) -> str:
    if whole or len(text) <= MOST:
        return text
    half = MOST // 2
    return f"{text[:half]}\n[… {len(text) - MOST:,} characters …]\n{text[-half:]}"


def _stretches(text: str, parsed: Mapping[str, Any], reasoning: str, whole: bool) -> list[Json]:
    """The response cut where reasoning ends and where readings begin and end; some of it may be left out."""
    spans: Json = {str(parsed.get("reader", "official")): parsed.get("span")}
    places = {name: (int(span[0]), int(span[1])) for name, span in spans.items() if span}
    trace = _trace_end(text)
    cuts = {0, len(text), trace, *(place for span in places.values() for place in span)}
    gap = (len(text), len(text)) if whole or len(text) <= MOST else (MOST // 2, len(text) - MOST // 2)
    cuts |= {*gap}
    ordered = sorted(place for place in cuts if 0 <= place <= len(text) and not gap[0] < place < gap[1])
    found = [_stretch(_shortened(reasoning, whole), True)] if reasoning else []
    for begin, end in pairwise(ordered):
        if gap[0] <= begin and end <= gap[1]:
            found.append(_stretch("", begin < trace, left_out=end - begin))
            continue
        marks = [name for name, (first, last) in places.items() if first <= begin and end <= last]
        found.append(_stretch(text[begin:end], begin < trace, marks))
    return found


def _stretch(text: str, trace: bool, marks: Sequence[str] = (), left_out: int = 0) -> Json:
    """`trace`: it is reasoning; `marks`: whose reading; `left_out`: characters that are not shown here."""
    return {"text": text, "trace": trace, "marks": [*marks], "left_out": left_out}


def _trace_end(text: str) -> int:
    reply = without_reasoning(text)
    if reply == text:
        return 0
    return len(text) - len(reply) if text.endswith(reply) and reply else len(text)


def _judges(column: Column, names: Sequence[str]) -> Iterator[Json]:
    """What each judge gave and wrote of each answer; `point` is the scoring point that it is about."""
    folder, task = column.source.folder, column.source.task
    if folder is None or column.judged is None:
        return
    for row in verdicts_in(folder, task):
        if row["document"] in names:
            of = f", answer {names.index(row['document']) + 1}" * (len(names) > 1)
            rated = {"judge": row["judge"] + of, "ratings": row["ratings"]}
            yield {**rated, "verdict": row.get("verdict", {}), "point": row.get("point", "")}


#: Documents of one file of texts.
PART = 100
#: Labels of a confusion matrix; the rarer ones are one row.
_LABELS = 24
#: An answer, or a gold answer, that names nothing.
_NOTHING = "nothing"
_OTHER, _UNREADABLE = "(other)", "(unreadable)"
#: Characters of a text in the list of documents.
_SHORT, _INPUT = 80, 140
#: Kinds of answers that are one label.
_SINGLE = (
    *("label", "label_word", "relation_label", "exact_letter"),
    *("verified_letter", "option_letter", "choice", "category"),
)


class DatasetAnswers:
    """All answers to one dataset, those of several runs beside each other.

    `named`: whether documents are called by their keys; else they are numbered, since a key of data that are
    not open may name a patient.
    """

    def __init__(self, columns: Sequence[Column], *, named: bool = True) -> None:
        self.dataset, self.columns = columns[0].source.dataset, columns
        self._kind = str(self.dataset.config["answer"]["kind"])
        places: dict[str, list[int | None]] = {}  # of each document in each column
        for number, column in enumerate(columns):
            for place, row in enumerate(column.rows):
                places.setdefault(row.key, [None] * len(columns))[number] = place
        self.keys = [*places] if named else [f"#{number}" for number in range(1, len(places) + 1)]
        self._places = [*places.values()]

    @property
    def parts(self) -> int:
        return -(-len(self.keys) // PART)

    def head(self) -> Json:
        """What the list of documents shows: figures of all documents, and the beginnings of their texts."""
        metadata = self.dataset.metadata
        return {
            "id": self.dataset.id,
            "suite": self.dataset.suite.title,
            "single": self._kind in _SINGLE,
            "graded": self._kind in TEXTS,
            "metric": metadata.primary_metric,
            "rule": rule(self.dataset),
            "meaning": CLUSTERS,
            "columns": [self._column(number) for number in range(len(self.columns))],
            "documents": self.keys,
            "per_part": PART,
            **self._texts(),
        }

    def _rows(self, number: int) -> list[Row | None]:
        rows = self.columns[number].rows
        return [None if (place := places[number]) is None else rows[place] for places in self._places]

    def _column(self, number: int) -> Json:
        column, rows, clusters = self.columns[number], self._rows(number), [*CLUSTERS]
        source = column.source
        flags = [row.flags for row in column.rows]
        return {
            "label": self._label(source),
            "task": source.task,
            "score": source.item.score if source.item else None,
            "n": source.item.n if source.item else None,
            "read": len(flags),
            "sample": source.sample,
            "judged": column.judged is not None,
            "flags": [row.flags if row else -1 for row in rows],
            "clusters": [clusters.index(row.cluster) if row and row.cluster else -1 for row in rows],
            "scores": [None if row is None or math.isnan(row.score) else round(row.score, 4) for row in rows],
            "replies": [_short(row.reply, _INPUT, end=True) if row else None for row in rows],
            "answers": [
                None if row is None or row.answer is None else _short(row.answer, _SHORT) or _NOTHING
                for row in rows
            ],
            "totals": {
                flag.name.lower(): sum(bool(one & flag) for one in flags) for flag in Flag if flag.name
            },
            "errors": [
                {"cluster": cluster, "documents": n}
                for cluster, n in Counter(row.cluster for row in column.rows if row.cluster).most_common()
            ],
            "confusion": _confusion(rows) if self._kind in _SINGLE else None,
        }

    def _label(self, source: Source) -> str:
        several = len({column.source.strategy for column in self.columns}) > 1
        return f"{source.label}, {strategy_title(source.strategy)}" if several else source.label

    def _texts(self) -> Json:
        """Gold answers and prompts."""
        by_column = [self._rows(number) for number in range(len(self.columns))]
        rows = [next(row for row in one if row) for one in zip(*by_column, strict=True)]
        return {
            "golds": [None if row.gold is None else _short(row.gold, _SHORT) or _NOTHING for row in rows],
            "prompts": [_short(row.prompt, _INPUT) for row in rows],
        }

    def part(self, number: int) -> list[Json]:
        """Documents as they were asked and answered, so many of them at once."""
        return [self.document(place) for place in range(len(self.keys))[number * PART : (number + 1) * PART]]

    def document(self, place: int, *, whole: bool = False) -> Json:
        return document_view(self.keys[place], self.columns, self._places[place], whole=whole)

    def place_of(self, key: str) -> int:
        """By its key, or its place from 0; MedtasksError where there is no such document."""
        if key in self.keys:
            return self.keys.index(key)
        if key.isdigit() and int(key) < len(self.keys):
            return int(key)
        raise MedtasksError(
            f"no document {key!r}{near(key, self.keys)}",
            where=self.dataset.id,
            remedy=f"there are {len(self.keys):,}, the first is {self.keys[0]}; a number counts from 0"
            if self.keys
            else "there is none yet",
        )


def _confusion(rows: Sequence[Row | None]) -> Json:
    """How often a gold label was answered by which label.

    `cells`: of each document, its row times the columns, plus its column; -1 where it is in none.
    """
    golds = Counter(row.gold for row in rows if row and isinstance(row.gold, str))
    common = {label for label, _ in golds.most_common(_LABELS)}
    pairs = [_labels(row, common) if row and isinstance(row.gold, str) else None for row in rows]
    counts = Counter(pair for pair in pairs if pair)
    gold = [*sorted(common), *([_OTHER] if any(one == _OTHER for one, _ in counts) else [])]
    answers = [
        *sorted(common),
        *(name for name in (_OTHER, _UNREADABLE) if any(to == name for _, to in counts)),
    ]
    return {
        "gold": gold,
        "answers": answers,
        "counts": [[counts[one, to] for to in answers] for one in gold],
        "cells": [
            gold.index(pair[0]) * len(answers) + answers.index(pair[1]) if pair else -1 for pair in pairs
        ],
    }


def _labels(row: Row, common: Container[str]) -> tuple[str, str]:
    given = row.answer if isinstance(row.answer, str) else ""
    answer = given if given in common else _OTHER if given else _UNREADABLE
    return row.gold if row.gold in common else _OTHER, answer


def _short(value: Any, length: int, *, end: bool = False) -> str:
    """The beginning of an answer in one line, or its end, where that is said."""
    text = _line(value)
    if len(text) <= length:
        return text
    return f"…{text[1 - length :]}" if end else f"{text[: length - 1]}…"


def _line(value: Any, between: str = "; ") -> str:
    """Items between semicolons, their parts between points."""
    if value is None:
        return ""
    if isinstance(value, list):
        return between.join(_line(item, " · ") for item in value)
    if isinstance(value, dict):
        first = value.get("tuples")
        named = (f"{name} {_line(said)}" for name, said in value.items() if said not in (None, ""))
        return _line(first) if isinstance(first, list) else between.join(named)
    return str(value)


def script(name: str, content: Any) -> str:
    """What gives the page its data; nothing in it is a program."""
    packed = gzip.compress(data_in_page(content).encode(), _QUICK, mtime=0)
    return f'answered("{name}", "{b64encode(packed).decode()}");\n'
