"""One document as it was asked and answered: prompt, responses, readings, scores, judges' words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.answers.reader.reply import without_reasoning
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.store import verdicts_in
from medtasks_ext.report.view.column import CLUSTERS, NO_CLUSTER, Column, Flag, Outcome
from medtasks_ext.results.error_clusters import Answered, error_of
from medtasks_ext.results.extracted import IN_TEXT, Items, Piece, items_of, marked
from medtasks_ext.runs.samples import parsed_of, request_of, turns_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.runs.records import Sample

#: Characters of a text that are shown unless the whole is asked for, half of them from its end.
MOST = 20_000
_AROUND = 400  # characters beside a span that stands in the part left out
#: Metrics that say something else than how good an answer is, or that are shown by themselves.
_SHOWN_APART = frozenset({"score", "valid", "scored", "unclosed_reasoning", "SAMPLE_DATA"})


@dataclass(frozen=True)
class ShownTurn:
    role: str  # `system`, `user`, `assistant`; `text` where the prompt is no conversation
    text: str
    length: int  # characters of the whole, of which the text may be a part


@dataclass(frozen=True)
class Stretch:
    text: str
    trace: bool = False  # whether it is reasoning
    marks: tuple[str, ...] = ()  # whose reading it is: `official`, `shared`
    left_out: int = 0  # characters that stand here and are not shown


@dataclass(frozen=True)
class ShownReading:
    """What a reader took from a response."""

    reader: str  # `official` or `shared`
    answer: Any  # None where nothing could be read
    gold: Any  # what it is compared with
    why: str


@dataclass(frozen=True)
class JudgeWord:
    judge: str
    ratings: Mapping[str, float]
    verdict: Mapping[str, Any]  # the judge's own object, reasons included
    point: str = ""  # the scoring point that it is about


@dataclass(frozen=True)
class Response:
    stretches: list[Stretch] = field(default_factory=list)
    length: int = 0  # characters
    readings: list[ShownReading] = field(default_factory=list)
    score: float | None = None  # of the document
    flags: int = 0  # `Flag`
    cluster: str = ""
    why: str = ""  # of the cluster
    metrics: Mapping[str, float] = field(default_factory=dict)  # the others of this document
    outcome: Outcome = field(default_factory=Outcome)
    items: Items | None = None
    pieces: list[Piece] = field(default_factory=list)  # the document's text with the items marked
    judges: list[JudgeWord] = field(default_factory=list)
    judged: float | None = None  # the score that the judges gave
    turns: list[ShownTurn] = field(default_factory=list)  # its prompt
    settings: Mapping[str, Any] = field(default_factory=dict)  # of generation
    fault: str = ""  # why nothing can be shown


@dataclass(frozen=True)
class DocumentView:
    key: str
    target: str  # the gold answer as written
    gold: Any  # as parsed
    responses: list[Response | None]  # one for each column; None where the column does not have the document


def document_view(
    key: str, columns: Sequence[Column], places: Sequence[int | None], *, whole: bool
) -> DocumentView:
    """In columns where the document is not there, its place is None."""
    target, gold = "", None
    responses: list[Response | None] = []
    for column, place in zip(columns, places, strict=True):
        if place is None:
            responses.append(None)
            continue
        try:
            sample = column.record(place)
            responses.append(_response(column, place, sample, whole))
        except MedtasksError as error:
            responses.append(Response(flags=int(Flag.DAMAGED), fault=f"{error.what}; {error.remedy}"))
            continue
        except (KeyError, TypeError, IndexError, ValueError) as error:
            fault = f"the record is damaged ({type(error).__name__}); medtasks rescore RUN"
            responses.append(Response(flags=int(Flag.DAMAGED), fault=fault))
            continue
        target, gold = target or sample["doc"]["target"], gold or sample["doc"].get("gold")
    return DocumentView(key, target, gold, responses)


def _response(column: Column, place: int, sample: Sample, whole: bool) -> Response:
    answers, document = column.answers, sample["doc"]
    parsed = parsed_of(sample)
    given = sample["resps"][0][0]
    text = given if isinstance(given, str) else ""
    outcome = column.outcome(sample)
    score = column.scores[place]
    shown_score = None if math.isnan(score) else score
    flags = Flag(column.flags[place])
    readings = list(_readings(parsed, document))
    kind = str(answers.dataset.config["answer"]["kind"])
    scored = next(iter(readings), None)
    items = items_of(kind, scored.gold, scored.answer) if scored else None
    cluster = column.clusters[place]
    error = None
    if cluster != NO_CLUSTER:
        answered = Answered(document, parsed, text, shown_score, cut=bool(flags & Flag.CUT))
        error = error_of(answers.dataset, answered)
    prompt = str(document["prompt"])
    judged = (column.judged or {}).get(column.keys[place], {})
    turns, settings = _prompt(sample, whole)
    return Response(
        stretches=_stretches(text, parsed, outcome.reasoning, whole),
        length=len(text),
        readings=readings,
        score=shown_score,
        flags=int(flags),
        cluster="" if cluster == NO_CLUSTER else CLUSTERS[cluster].value,
        why=error.why if error else "",
        metrics=_metrics(sample),
        outcome=outcome,
        items=items,
        pieces=marked(prompt[:MOST], items) if items and kind in IN_TEXT else [],
        judges=list(_judges(column, column.keys[place])),
        judged=judged.get("score"),
        turns=turns,
        settings=settings,
    )


def _readings(parsed: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[ShownReading]:
    """The reading that is scored."""
    if "answer" in parsed:
        answer = parsed["answer"] if parsed.get("valid") else None
        reader = str(parsed.get("reader", "official"))
        yield ShownReading(reader, answer, document.get("gold"), str(parsed.get("why") or ""))


def _metrics(sample: Sample) -> dict[str, float]:
    values = cast("Mapping[str, Any]", sample)
    return {
        name: float(values[name])
        for name in values.get("metrics", ())
        if name not in _SHOWN_APART
        and isinstance(values.get(name), int | float)
        and math.isfinite(values[name])
    }


def _prompt(sample: Sample, whole: bool) -> tuple[list[ShownTurn], Mapping[str, Any]]:
    prompt, settings = request_of(sample)
    return [_turn(role, text, whole) for role, text in turns_of(prompt)], settings


def _turn(role: str, text: str, whole: bool) -> ShownTurn:
    if whole or len(text) <= MOST:
        return ShownTurn(role, text, len(text))
    half = MOST // 2
    return ShownTurn(role, f"{text[:half]}\n[… {len(text) - MOST:,} characters …]\n{text[-half:]}", len(text))


def _stretches(text: str, parsed: Mapping[str, Any], reasoning: str, whole: bool) -> list[Stretch]:
    """The response cut where reasoning ends and where readings begin and end."""
    spans: Json = {str(parsed.get("reader", "official")): parsed.get("span")}
    places = {name: (int(span[0]), int(span[1])) for name, span in spans.items() if span}
    trace = _trace_end(text)
    cuts = {0, len(text), trace, *(place for span in places.values() for place in span)}
    left_out = [] if whole else _left_out(len(text), places.values())
    cuts |= {place for gap in left_out for place in gap}
    ordered = sorted(place for place in cuts if 0 <= place <= len(text))
    found = [Stretch(_shortened(reasoning, whole), trace=True)] if reasoning else []
    for begin, end in pairwise(ordered):
        is_trace = begin < trace
        if any(first <= begin and end <= last for first, last in left_out):
            found.append(Stretch("", is_trace, left_out=end - begin))
            continue
        marks = tuple(name for name, (first, last) in places.items() if first <= begin and end <= last)
        found.append(Stretch(text[begin:end], is_trace, marks))
    return found


def _trace_end(text: str) -> int:
    reply = without_reasoning(text)
    if reply == text:
        return 0
    return len(text) - len(reply) if text.endswith(reply) and reply else len(text)


def _left_out(length: int, spans: Any) -> list[tuple[int, int]]:
    if length <= MOST:
        return []
    gaps = [(MOST // 2, length - MOST // 2)]
    for first, last in spans:
        if last - first > MOST:
            continue
        keep = (first - _AROUND, last + _AROUND)
        gaps = [
            part
            for begin, end in gaps
            for part in ((begin, min(end, keep[0])), (max(begin, keep[1]), end))
            if part[0] < part[1]
        ]
    return gaps


def _shortened(text: str, whole: bool) -> str:
    return _turn("", text, whole).text


def _judges(column: Column, key: str) -> Iterator[JudgeWord]:
    folder, task = column.answers.folder, column.answers.task
    if folder is None or column.judged is None:
        return
    for row in verdicts_in(folder, task):
        if row["document"] == key:
            yield JudgeWord(row["judge"], row["ratings"], row.get("verdict", {}), row.get("point", ""))
