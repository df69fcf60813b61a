"""Anchor sets: answers that a jury has judged and somebody else has rated, too, on the same scale.

A file holds ids and ratings, and no text: CSV or JSONL, a line for each answer.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from medtasks_ext.csvfile import as_written
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.strict import Strict, faults_of

if TYPE_CHECKING:
    from medtasks_ext.judge.protocol import Protocol
    from medtasks_ext.rows.row import Row

COLUMNS = ("task", "document", "response", "rating", "lowest", "highest", "rater")
_REMEDY = "the columns are " + ", ".join(COLUMNS) + " (docs/judging.md#anchors)"


class Anchor(Strict):
    """One rated answer."""

    task: str = Field(min_length=1)  # name of the task
    document: str = Field(min_length=1)  # as in RUN/samples_TASK.jsonl
    #: which answer: `response_hash` in RUN/judgements/TASK.jsonl
    response: str = Field(pattern="^[0-9a-f]{16}$")
    rating: float = Field(allow_inf_nan=False)  # mean rating of the answer
    lowest: float = Field(allow_inf_nan=False)  # of the scale
    highest: float = Field(allow_inf_nan=False)  # of the scale
    rater: str = Field(min_length=1)  # whose scale it is, such as the published jury; one for all lines

    @property
    def score(self) -> float:
        """The rating on 0-1."""
        return (self.rating - self.lowest) / (self.highest - self.lowest)


@dataclass(frozen=True)
class AnchorSet:
    """A file of anchors."""

    rater: str  # on whose scale scores are placed
    anchors: Mapping[tuple[str, str, str], Anchor]  # (task, document, response) -> anchor


def read_anchors(path: Path, protocols: Mapping[str, Protocol]) -> AnchorSet:
    """Read an anchor set and check it against the tasks that were judged.

    Args:
        path: `.jsonl`, or CSV.
        protocols: task -> how it is judged.

    Raises:
        MedtasksError: a line is no anchor, is of another task or scale, is off its scale, or rates an answer
            again. All faults come in one message.
    """
    faults: list[str] = []
    found: dict[tuple[str, str, str], Anchor] = {}
    for number, row in _rows(path):
        if row.get("rating") == "":  # of a sheet that is filled in part
            continue
        try:
            anchor = Anchor(**row)
        except ValidationError as error:
            faults.append(f"line {number}: " + "; ".join(faults_of(error, "anchor")))
            continue
        if fault := _fault(anchor, protocols):
            faults.append(f"line {number}: {fault}")
        elif (key := (anchor.task, anchor.document, anchor.response)) in found:
            faults.append(f"line {number}: the answer is rated twice")
        else:
            found[key] = anchor
    raters = sorted({anchor.rater for anchor in found.values()})
    if len(raters) > 1:
        faults.append(f"several raters: {', '.join(raters)}; a set places scores on the scale of one")
    if faults or not found:
        what = some(faults, 3, "; ") or "no anchors in it"
        raise MedtasksError(what, where=path, remedy=_REMEDY)
    return AnchorSet(raters[0], found)


def _fault(anchor: Anchor, protocols: Mapping[str, Protocol]) -> str:
    protocol = protocols.get(anchor.task)
    if protocol is None:
        return f"task {anchor.task!r} is not judged in these runs"
    if (anchor.lowest, anchor.highest) != protocol.scale:
        low, high = protocol.scale
        own = f"{anchor.lowest:g} to {anchor.highest:g}"
        return f"a scale of {own}; {anchor.task} is judged on {low:g} to {high:g}"
    if not anchor.lowest <= anchor.rating <= anchor.highest:
        return f"rating {anchor.rating:g} is not on the scale {anchor.lowest:g} to {anchor.highest:g}"
    return ""


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Line numbers and lines."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix == ".jsonl":
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        row = parse_json(line)
                        yield number, row if isinstance(row, dict) else {}
                return
            reader = csv.DictReader(file)
            if absent := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise MedtasksError(f"columns are missing: {', '.join(absent)}", where=path, remedy=_REMEDY)
            for number, row in enumerate(reader, start=2):
                yield number, {name: as_written(row[name] or "") for name in COLUMNS}
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="name the file with the anchors") from None
    except (UnicodeDecodeError, csv.Error, JsonError) as error:
        kind = type(error).__name__
        raise MedtasksError(f"neither CSV nor JSONL in UTF-8 ({kind})", where=path, remedy=_REMEDY) from None
