"""One document as it was asked and answered: prompt, responses, readings, scores, judges' words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.store import verdicts_in
from medtasks_ext.report.answers.column import response_of
from medtasks_ext.results.extracted import IN_TEXT, items_of, marked
from medtasks_ext.runs.records import parsed_of, request_of, turns_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.answers.column import Column, Row
    from medtasks_ext.runs.records import Sample

#: Characters of a text that are shown unless the whole is asked for, half of them from its end.
MOST = 20_000
_AROUND = 400  # characters beside a span that stands in the part left out
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
    items = items_of(kind, readings[0]["gold"], readings[0]["answer"]) if readings else None
    prompt, settings = request_of(sample)
    pieces = marked(str(document["prompt"])[:MOST], items) if items and kind in IN_TEXT else []
    usage = answer.usage if answer else None
    return {
        "fault": "",
        "turns": [  # a `text` turn where the prompt is no conversation
            {"role": role, "text": _shortened(said, whole), "length": len(said)}
            for role, said in (turns_of(prompt) if prompt else ())  # not kept before it is scored
        ],
        "settings": settings,  # of generation
        "stretches": _stretches(text, parsed, answer.reasoning if answer else "", whole),
        "length": len(text),
        "readings": readings,
        "score": None if math.isnan(row.score) else row.score,
        "cluster": row.cluster.value if row.cluster else "",
        "why": row.why,  # it is in that cluster
        "metrics": _metrics(sample),
        "finish": answer.finish if answer else "",
        "tokens": [usage.prompt, usage.completion] if usage else None,  # of prompt and response
        "seconds": answer.seconds if answer else None,
        "items": items and vars(items),
        "pieces": [vars(piece) for piece in pieces],  # the document's text with the items marked
        "judges": [*_judges(column, row.key)],
        "judged": (column.judged or {}).get(row.key, {}).get("score"),
    }


def _readings(parsed: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Json]:
    """The reading that is scored: what was read, if anything could be, and what it is compared with."""
    if "answer" in parsed:
        answer = parsed["answer"] if parsed.get("valid") else None
        reader, why = str(parsed.get("reader", "official")), str(parsed.get("why") or "")
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
    left_out = [] if whole else _left_out(len(text), places.values())
    cuts |= {place for gap in left_out for place in gap}
    ordered = sorted(place for place in cuts if 0 <= place <= len(text))
    found = [_stretch(_shortened(reasoning, whole), True)] if reasoning else []
    for begin, end in pairwise(ordered):
        if any(first <= begin and end <= last for first, last in left_out):
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


def _judges(column: Column, key: str) -> Iterator[Json]:
    """What each judge gave and wrote; `point` is the scoring point that it is about."""
    folder, task = column.source.folder, column.source.task
    if folder is None or column.judged is None:
        return
    for row in verdicts_in(folder, task):
        if row["document"] == key:
            rated = {"judge": row["judge"], "ratings": row["ratings"]}
            yield {**rated, "verdict": row.get("verdict", {}), "point": row.get("point", "")}
