"""Departments of documents, named by a model, and how far people agree (MLB, section 3.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.judge.reply import UnreadableError, Verdict
from medtasks_ext.registry import registry
from medtasks_ext.rows.files import read_rows
from medtasks_ext.studies.judge_eval import OF_COUNTS, measured
from medtasks_ext.studies.said import Said, rubric_of

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry.row_labels import RowLabel

DEPARTMENT, NOTHING, SCHEMA = "department", "none", 1
PLACES = ("first", "second", "third")


def departments() -> RowLabel:
    """The departments that a suite lists for its rows."""
    listed = (suite.row_labels.get(DEPARTMENT) for suite in registry().suites.values())
    return next(label for label in listed if label)


class DepartmentRubric(Rubric):
    """How a model is asked for the departments of a text."""

    def __init__(self) -> None:
        listed = [f"- {primary}: {'; '.join(parts)}" for primary, parts in departments().values.items()]
        super().__init__(rubric_of("departments").judging.model_copy(update={"goal": "\n".join(listed)}))
        verdict = {DEPARTMENT: [*departments().whole_of, NOTHING]}
        self.protocol = self.protocol.model_copy(update={"verdict": verdict})

    def read(self, reply: str, texts: Mapping[str, str]) -> Verdict:
        """The departments in a reply; none, one twice, or that there is none beside others: no verdict."""
        verdict = super().read(reply, texts)
        named = [name for place in PLACES if (name := verdict[place][DEPARTMENT]) != NOTHING]
        if not named or verdict[PLACES[0]][DEPARTMENT] == NOTHING:
            raise UnreadableError("no first department")
        try:
            departments().read(named)
        except ValueError as error:
            raise UnreadableError(str(error)) from None
        return verdict


def texts_to_label(name: str, documents: Sequence[Document], rubric: Rubric) -> JudgedTask:
    """The questions of a dataset as cases for a judge."""
    task = JudgedTask(name, rubric, open_access=registry().datasets[name].metadata.access == "open")
    for document in documents:
        texts, synthetic = {"question": document.input, "response": ""}, document["data"] == "sample"
        task.cases.append(Case(str(document["id"]), None, texts, rubric, synthetic=synthetic))
    return task


def labelled(
    task: JudgedTask, said: Said, loaded: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the model has said of the questions of a task so far, as files hold it; the task's line."""
    values, named = task.rubric.protocol.verdict[DEPARTMENT], dict[str, list[str]]()
    for case in task.cases:
        for ratings in said[task.name, case.document].values():
            chosen = [str(values[int(ratings[place])]) for place in PLACES]
            named[case.document] = [name for name in chosen if name != NOTHING]
    labels = {
        "schema": SCHEMA,
        "labels": DEPARTMENT,
        "task": task.name,
        "prompt_version": task.rubric.version,
        **{name: loaded[name] for name in ("origin", "rows_hash")},
        "questions": [{"id": name, DEPARTMENT: names} for name, names in named.items()],
        "missing": [case.document for case in task.cases if case.document not in named],
    }
    return labels, {"task": task.name, "questions": len(task.cases), "labelled": len(named)}


def people_of(
    documents: Mapping[str, Iterable[Document]], file: Path | None
) -> dict[tuple[str, str], list[str]]:
    """(task, id) -> departments that people named: in rows, and in a file with task, id and department.

    Several departments are a list, or joined by `;`.
    """
    of_rows = [(task, item) for task, items in documents.items() for item in items if item.get(DEPARTMENT)]
    people = {(task, str(item["id"])): list(item[DEPARTMENT]) for task, item in of_rows}
    for number, row in enumerate(read_rows(file) if file else (), start=1):
        try:
            names = row[DEPARTMENT].split(";") if isinstance(row[DEPARTMENT], str) else row[DEPARTMENT]
            people[str(row["task"]), str(row["id"])] = departments().read(names)
        except (KeyError, ValueError) as error:
            what = f"no column {error}" if isinstance(error, KeyError) else str(error)
            remedy = "the columns are task, id and department, of those in mlb/suite.yaml"
            raise MedtasksError(f"row {number}: {what}", where=str(file), remedy=remedy) from None
    return people


def agreement(
    people: Mapping[tuple[str, str], Sequence[str]], model: Mapping[tuple[str, str], Sequence[str]]
) -> list[dict[str, Any]]:
    """How far two name the same departments of questions that both have; `people` count as right.

    Precision, recall, F1 and kappa are of all decisions, question by department; exact: the same set.
    """
    whole, found = departments().whole_of, []
    measures: dict[str, Any] = {"exact": lambda sums: sums[..., 4] / sums[..., 5]}
    for name in ("precision", "recall", "F1", "kappa"):
        measures[name] = partial(lambda value, sums: value(sums[..., :4]), OF_COUNTS[name])
    for kind, of in (("secondary", {name: name for name in whole}), ("primary", whole)):
        n, item, rows = len({*of.values()}), f"{kind} departments", []
        for key in sorted(people.keys() & model.keys()):
            a, b = ({of[name] for name in side[key]} for side in (people, model))
            rows.append((len(a & b), len(b - a), len(a - b), n - len(a | b), a == b, 1))
        found += [{"item": item, **row} for row in measured(rows, range(len(rows)), measures)] if rows else []
    return found
