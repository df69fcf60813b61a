"""One document as it was asked and answered: prompt, responses, readings, scores, judges' words."""

from __future__ import annotations

import gzip
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from medtasks_ext.report.answers.column import Column, Flag, Row, response_of
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


def _shown(column: Column, place: int | None, *, whole: bool) -> Json | None:
    """The response of a column to a document; None where it does not have it."""
    if place is None:
        return None
    try:
        return _response(column, column.rows[place], column.record(place), whole)
    except MedtasksError as error:
        why = f"{error.what}; {error.remedy}"
    except (KeyError, TypeError, IndexError, ValueError) as error:
        why = f"the record is damaged ({type(error).__name__}); medtasks rescore RUN"
    return {"fault": why, "turns": [], "stretches": [], "target": ""}


def _response(column: Column, row: Row, sample: Sample, whole: bool) -> Json:
    document, answer, draws = sample["doc"], column.answer_of(sample), sample["resps"][0]
    kind = str(column.source.dataset.config["answer"]["kind"])
    scores = cast("Any", sample).get(EACH, {}).get("score") or [None] * len(draws)
    readings: list[Json] = []
    stretches: list[Json] = []
    for number, (text, score) in enumerate(zip(draws, scores, strict=True)):
        read, of = parsed_of(sample, number), ""
        if len(draws) > 1:
            of = f", answer {number + 1}" + ("" if score is None else f" (score {score:g})")
            stretches.append(_stretch(f"Answer {number + 1}:\n", False))
            stretches += [*_stretches(text, read, "", whole), _stretch("\n\n", False)]
        else:
            given = response_of(sample)
            stretches += _stretches(given, read, answer.reasoning if answer else "", whole)
        if "answer" in read:
            reading = {"reader": str(read.get("reader", "official")) + of, "gold": document.get("gold")}
            reading["answer"] = read["answer"] if read.get("valid") else None
            readings.append({**reading, "why": str(read.get("why") or "")})
    of_judges = [(column.judged or {}).get(name, {}).get("score") for name in names_of(sample)]
    judged = [score for score in of_judges if score is not None]
    items = items_of(kind, readings[0]["gold"], readings[0]["answer"]) if readings else None
    prompt, settings = request_of(sample)
    usage = answer.usage if answer else None
    return {
        "fault": "",
        "target": document["target"],
        "turns": [  # a `text` turn where the prompt is no conversation
            {"role": role, "text": _shortened(said, whole), "length": len(said)}
            for role, said in (turns_of(prompt) if prompt else ())  # not kept before it is scored
        ],
        "settings": settings,  # of generation
        "stretches": stretches,
        "length": sum(map(len, draws)),
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


def _metrics(sample: Sample) -> dict[str, float]:
    values = cast("Mapping[str, Any]", sample)
    shown = {name: values.get(name) for name in values.get("metrics", ()) if name not in _SHOWN_APART}
    numbers = {name: value for name, value in shown.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def _shortened(text: str, whole: bool) -> str:
    if whole or len(text) <= MOST:
        return text
    half = MOST // 2
    return f"{text[:half]}\n[… {len(text) - MOST:,} characters …]\n{text[-half:]}"


def _stretches(text: str, parsed: Mapping[str, Any], reasoning: str, whole: bool) -> Iterator[Json]:
    """The response cut where reasoning ends and where the reading begins and ends; some may be left out."""
    first, last = map(int, parsed.get("span") or (0, 0))
    reader, trace = str(parsed.get("reader", "official")), _trace_end(text)
    gap = (len(text), len(text)) if whole or len(text) <= MOST else (MOST // 2, len(text) - MOST // 2)
    cuts = {0, len(text), trace, first, last, *gap}
    if reasoning:
        yield _stretch(_shortened(reasoning, whole), True)
    for begin, end in pairwise(sorted(place for place in cuts if not gap[0] < place < gap[1])):
        if gap[0] <= begin and end <= gap[1]:
            yield {**_stretch("", begin < trace), "left_out": end - begin}
        else:
            yield _stretch(text[begin:end], begin < trace, [reader] * (first <= begin and end <= last))


def _stretch(text: str, trace: bool, marks: Sequence[str] = ()) -> Json:
    """`trace`: it is reasoning; `marks`: whose reading; `left_out`: characters that are not shown here."""
    return {"text": text, "trace": trace, "marks": [*marks], "left_out": 0}


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
        every = [
            [None if (at := places[number]) is None else column.rows[at] for places in self._places]
            for number, column in enumerate(self.columns)
        ]
        rows = [next(row for row in one if row) for one in zip(*every, strict=True)]
        return {
            "id": self.dataset.id,
            "suite": self.dataset.suite.title,
            "single": self._kind in _SINGLE,
            "graded": self._kind in TEXTS,
            "metric": self.dataset.metadata.primary_metric,
            "rule": rule(self.dataset),
            "meaning": CLUSTERS,
            "columns": [*map(self._column, self.columns, every)],
            "documents": self.keys,
            "per_part": PART,
            "golds": [None if row.gold is None else _short(row.gold, _SHORT) or _NOTHING for row in rows],
            "prompts": [_short(row.prompt, _INPUT) for row in rows],
        }

    def _column(self, column: Column, rows: Sequence[Row | None]) -> Json:
        source, clusters = column.source, [*CLUSTERS]
        several = len({one.source.strategy for one in self.columns}) > 1
        label = f"{source.label}, {strategy_title(source.strategy)}" if several else source.label
        errors = Counter(row.cluster for row in column.rows if row.cluster).most_common()
        answers = [row and row.answer for row in rows]
        return {
            "label": label,
            "task": source.task,
            "score": source.item and source.item.score,
            "n": source.item and source.item.n,
            "read": len(column.rows),
            "sample": source.sample,
            "judged": column.judged is not None,
            "flags": [row.flags if row else -1 for row in rows],
            "clusters": [clusters.index(row.cluster) if row and row.cluster else -1 for row in rows],
            "scores": [None if row is None or math.isnan(row.score) else round(row.score, 4) for row in rows],
            "replies": [_short(row.reply, _INPUT, end=True) if row else None for row in rows],
            "answers": [None if one is None else _short(one, _SHORT) or _NOTHING for one in answers],
            "totals": {
                str(flag.name).lower(): sum(bool(row.flags & flag) for row in column.rows) for flag in Flag
            },
            "errors": [{"cluster": cluster, "documents": n} for cluster, n in errors],
            "confusion": _confusion(rows) if self._kind in _SINGLE else None,
        }

    def part(self, number: int) -> list[Json]:
        """Documents as they were asked and answered, so many of them at once."""
        return [self.document(place) for place in range(len(self.keys))[number * PART : (number + 1) * PART]]

    def document(self, place: int, *, whole: bool = False) -> Json:
        """What page and terminal show: key, gold answer as written, a response of each column or None."""
        shown = [
            _shown(column, at, whole=whole)
            for column, at in zip(self.columns, self._places[place], strict=True)
        ]
        targets = [response.pop("target") for response in shown if response]
        return {"key": self.keys[place], "target": next(filter(None, targets), ""), "responses": shown}

    def place_of(self, key: str) -> int:
        """By its key, or its place from 0; MedtasksError where there is no such document."""
        if key in self.keys:
            return self.keys.index(key)
        if key.isdigit() and int(key) < len(self.keys):
            return int(key)
        first = f", the first is {self.keys[0]}; a number counts from 0" if self.keys else ""
        raise MedtasksError(
            f"no document {key!r}{near(key, self.keys)}",
            where=self.dataset.id,
            remedy=f"there are {len(self.keys):,}{first}",
        )


def _confusion(rows: Sequence[Row | None]) -> Json:
    """How often a gold label was answered by which label.

    `cells`: of each document, its row times the columns, plus its column; -1 where it is in none.
    """
    golds = Counter(row.gold for row in rows if row and isinstance(row.gold, str))
    common = sorted(label for label, _ in golds.most_common(_LABELS))
    pairs: list[tuple[str, str] | None] = []
    for row in rows:
        if row and isinstance(row.gold, str):
            given = row.answer if isinstance(row.answer, str) else ""
            answer = given if given in common else _OTHER if given else _UNREADABLE
            pairs.append((row.gold if row.gold in common else _OTHER, answer))
        else:
            pairs.append(None)
    counts = Counter(filter(None, pairs))
    gold = [*common, *([_OTHER] if any(one == _OTHER for one, _ in counts) else [])]
    answers = [*common, *(name for name in (_OTHER, _UNREADABLE) if any(to == name for _, to in counts))]
    return {
        "gold": gold,
        "answers": answers,
        "counts": [[counts[one, to] for to in answers] for one in gold],
        "cells": [
            gold.index(pair[0]) * len(answers) + answers.index(pair[1]) if pair else -1 for pair in pairs
        ],
    }


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
