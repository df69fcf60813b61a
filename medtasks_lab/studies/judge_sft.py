"""Adjudicated cases, and the data that a judge model is fine-tuned on (MLB, section 3.6).

A case is one answer with its scoring points, each of which an expert has decided to be met or not:

    {"id": "…", "task": "…", "document": "…", "question": "…", "answer": "…",
     "points": [{"id": "…", "text": "…", "weight": 1}],
     "decisions": {"POINT": true}, "decided_by": "expert"}

`task`, `document` and `weight` may be missing. Decisions may also stand at the points (`met`), as in the
file that `medtasks human ingest` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, numbered_lines, write_json, write_lines
from medtasks_ext.judge.cases import FIELD, PROTOCOL, point_rubric, shown_for_point
from medtasks_ext.judge.protocol import AXIS
from medtasks_ext.seed import SEED, random_rank
from medtasks_ext.strict import validated

TEST_SHARE = 0.1
EXPERT = "expert"
#: (case, point)
PointKey = tuple[str, str]
_SHAPE = "docs/judges.md shows what a case looks like"


class GoldPoint(BaseModel):
    """A scoring point; `met` where the file holds the decision here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(min_length=1)
    text: str = ""
    weight: float = Field(default=1.0, ge=0)
    met: StrictBool | None = None


class GoldCase(BaseModel):
    """One answer with its scoring points."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(min_length=1)
    task: str = ""
    document: str = ""
    question: str = ""
    answer: str = ""
    points: list[GoldPoint] = Field(min_length=1)
    decisions: dict[str, StrictBool] = {}
    decided_by: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> GoldCase:
        names = [point.id for point in self.points]
        if len(set(names)) < len(names):
            raise ValueError("two points have the same id")
        if unknown := self.decisions.keys() - set(names):
            raise ValueError(f"a decision about {min(unknown)!r}, which is no point of the case")
        for point in self.points:
            if point.met is not None and self.decisions.get(point.id, point.met) != point.met:
                raise ValueError(f"two decisions about {point.id!r}")
        return self

    @property
    def decided(self) -> dict[str, bool]:
        """Point -> whether it is met, of the points that were decided."""
        at_points = {point.id: point.met for point in self.points if point.met is not None}
        return {**at_points, **self.decisions}


def read_cases(paths: Iterable[Path], *, texts: bool = True) -> dict[str, GoldCase]:
    """Case id -> case, from JSON lines.

    Args:
        paths: files; the same line in two of them counts once.
        texts: the cases must have question and points as text, since they are to be shown.

    Raises:
        MedtasksError: a file is missing or empty, a line is no case, or two cases share an id.
    """
    cases: dict[str, GoldCase] = {}
    for path in paths:
        for number, line in numbered_lines(path, remedy="name a JSONL file of cases"):
            case = validated(
                partial(GoldCase.model_validate_json, line),
                "case",
                where=f"{path}:{number}",
                remedy=_SHAPE,
                first=True,
            )
            if texts and not (case.question.strip() and all(point.text.strip() for point in case.points)):
                raise MedtasksError(
                    "no text of the question, or of a point", where=f"{path}:{number}", remedy=_SHAPE
                )
            if cases.setdefault(case.id, case) != case:
                raise MedtasksError(
                    f"case {case.id} occurs twice",
                    where=f"{path}:{number}",
                    remedy="give each answer an id of its own, and keep one decision about each point",
                )
    if not cases:
        raise MedtasksError("no cases", where=", ".join(map(str, paths)), remedy=_SHAPE)
    return cases


def expert_decisions(cases: Mapping[str, GoldCase], files: Sequence[Path] = ()) -> dict[PointKey, bool]:
    """What experts decided: the decisions in the cases that are marked so, and those of further files.

    Args:
        cases: whose decisions count where `decided_by` is `expert`.
        files: decisions of experts by case and point (`medtasks human ingest`).

    Raises:
        MedtasksError: a decision about an unknown case or point, two that differ, or none at all.
    """
    decisions = {
        (case.id, point): met
        for case in cases.values()
        if case.decided_by == EXPERT
        for point, met in case.decided.items()
    }
    for path in files:
        for key, met in decisions_about(cases, path).items():
            if decisions.setdefault(key, met) != met:
                raise MedtasksError(
                    f"another decision about point {key[1]} of case {key[0]} than before",
                    where=path,
                    remedy="keep the final one",
                )
    if not decisions:
        raise MedtasksError(
            "no decision of an expert",
            where=", ".join(map(str, files)) or "cases",
            remedy=f'mark the cases with "decided_by": "{EXPERT}", or name the decisions (--expert FILE)',
        )
    return decisions


def decisions_about(cases: Mapping[str, GoldCase], path: Path) -> dict[PointKey, bool]:
    """The decisions in a file, all of which must be about points of the cases.

    Raises:
        MedtasksError: an unknown case or point.
    """
    decisions = {}
    for item in read_cases([path], texts=False).values():
        known = {point.id for point in cases[item.id].points} if item.id in cases else set()
        for point, met in item.decided.items():
            if point not in known:
                what = f"point {point} of case {item.id}" if known else f"case {item.id}"
                raise MedtasksError(
                    f"a decision about {what}, which is not among the cases",
                    where=path,
                    remedy="give the file of cases that the decisions are about",
                )
            decisions[item.id, point] = met
    return decisions


# ---------------------------------------------------------------------- the prompt


def point_texts(case: GoldCase, point: GoldPoint) -> dict[str, str]:
    """The texts that a judge is shown."""
    return shown_for_point(case.question, point.text, case.answer)


def training_row(case: GoldCase, point: GoldPoint, met: bool) -> Json:
    """One row of TRL's conversational prompt-completion format; `case` and `point` say where it is from."""
    rubric, texts = point_rubric(), point_texts(case, point)
    return {
        "case": case.id,
        "point": point.id,
        "prompt": rubric.messages(texts),
        "completion": [
            {"role": "assistant", "content": json.dumps(rubric.written({AXIS: {FIELD: met}}, texts))}
        ],
    }


# ---------------------------------------------------------------------- the split


def groups_by_question(cases: Iterable[GoldCase]) -> dict[str, int]:
    """Case id -> number of its group; cases of one group ask the same.

    Two cases ask the same where their questions read the same (blanks and case aside) or where they are
    about one document of a task.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cases = sorted(cases, key=lambda case: case.id)
    marks: dict[tuple[str, ...], int] = {}
    pairs = []
    for place, case in enumerate(cases):
        named: list[tuple[str, ...]] = [("question", "".join(case.question.split()).casefold())]
        named += [("document", case.task, case.document)] if case.document else []
        pairs += [(place, marks.setdefault(name, len(marks))) for name in named]
    rows, columns = zip(*pairs, strict=True)
    size = len(cases) + len(marks)
    links = coo_array(
        (np.ones(len(pairs)), (rows, [len(cases) + column for column in columns])), shape=(size, size)
    )
    _, labels = connected_components(links, directed=False)
    return {case.id: int(label) for case, label in zip(cases, labels, strict=False)}


Side = Literal["train", "test"]


@dataclass(frozen=True)
class Split:
    """The two sides."""

    #: side -> its cases with the decisions of experts alone, in random order
    cases: dict[Side, list[GoldCase]] = field(default_factory=dict)
    #: side -> its training rows, in random order
    rows: dict[Side, list[Json]] = field(default_factory=dict)
    n_questions: dict[Side, int] = field(default_factory=dict)  # side -> distinct questions


def split_by_question(
    cases: Mapping[str, GoldCase],
    decisions: Mapping[PointKey, bool],
    test_share: float = TEST_SHARE,
    seed: int = SEED,
) -> Split:
    """Training and test rows, no question on both sides. Depends on the cases and the seed alone.

    Args:
        decisions: of experts; points without one are left out.
        test_share: share of the questions that are held out, more than 0 and less than 1.
        seed: of the draw and of the order of rows, whose first n are a random subset.

    Raises:
        MedtasksError: a share outside that range, or fewer than two questions.
    """
    if not 0 < test_share < 1:
        raise MedtasksError(
            f"{test_share:g} is no share", where="--test-share", remedy="give one between 0 and 1, e.g. 0.1"
        )
    used = [case for case in cases.values() if any((case.id, point.id) in decisions for point in case.points)]
    groups = groups_by_question(used)
    # a group is known by its smallest case id, whatever the order of the cases
    names: dict[int, str] = {}
    for case_id in sorted(groups):
        names.setdefault(groups[case_id], case_id)
    order = sorted(names, key=lambda group: random_rank(seed, names[group]))
    if len(order) < 2:
        raise MedtasksError(
            "one question cannot be split", where="cases", remedy="give decided cases of several questions"
        )
    n_test = min(max(round(test_share * len(order)), 1), len(order) - 1)
    held_out = set(order[:n_test])
    split = Split()
    sides: tuple[Side, ...] = ("train", "test")
    for side in sides:
        chosen = [case for case in used if (groups[case.id] in held_out) == (side == "test")]
        chosen.sort(key=lambda case: random_rank(seed, case.id))
        split.cases[side] = [_decided_by_experts(case, decisions) for case in chosen]
        rows = [
            training_row(case, point, decisions[case.id, point.id])
            for case in chosen
            for point in case.points
            if (case.id, point.id) in decisions
        ]
        split.rows[side] = sorted(rows, key=lambda row: random_rank(seed, f"{row['case']}\x1f{row['point']}"))
        split.n_questions[side] = len({groups[case.id] for case in chosen})
    return split


def _decided_by_experts(case: GoldCase, decisions: Mapping[PointKey, bool]) -> GoldCase:
    points = [point.model_copy(update={"met": None}) for point in case.points]
    own = {point.id: decisions[case.id, point.id] for point in points if (case.id, point.id) in decisions}
    return case.model_copy(update={"points": points, "decisions": own, "decided_by": EXPERT})


def write_split(folder: Path, split: Split, test_share: float, seed: int) -> Json:
    """Write `train.jsonl`, `test.jsonl`, `test_cases.jsonl` and `split.json`; returns what the last holds."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, rows in split.rows.items():
        write_lines(folder / f"{side}.jsonl", rows)
    write_lines(
        folder / "test_cases.jsonl", [case.model_dump(exclude_defaults=True) for case in split.cases["test"]]
    )
    record = {
        "protocol": PROTOCOL,
        "prompt_version": point_rubric().version,
        "test_share": test_share,
        "seed": seed,
        "sides": {
            side: {
                "questions": split.n_questions[side],
                "answers": len(split.cases[side]),
                "points": len(rows),
                "met": sum(sum(case.decisions.values()) for case in split.cases[side]),
            }
            for side, rows in split.rows.items()
        },
    }
    write_json(folder / "split.json", record)
    return record
