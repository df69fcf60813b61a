"""Departments of documents, named by a model, and how far people agree (MLB, section 3.3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.row_labels import RowLabel

DEPARTMENT, NOTHING = "department", "none"
PLACES = ("first", "second", "third")
SCHEMA = 1
#: (task, question) -> departments
Named = Mapping[tuple[str, str], Sequence[str]]


def departments() -> RowLabel:
    """The departments that a suite lists for its rows."""
    listed = (suite.row_labels.get(DEPARTMENT) for suite in registry().suites.values())
    return next(label for label in listed if label)


class DepartmentRubric(Rubric):
    """How a model is asked for the departments of a text."""

    def __init__(self) -> None:
        self.departments = departments()
        listed = [f"- {primary}: {'; '.join(parts)}" for primary, parts in self.departments.values.items()]
        super().__init__(rubric_of("departments").judging.model_copy(update={"goal": "\n".join(listed)}))
        verdict = {DEPARTMENT: [*self.departments.whole_of, NOTHING]}
        self.protocol = self.protocol.model_copy(update={"verdict": verdict})

    def read(self, reply: str, texts: Mapping[str, str]) -> Verdict:
        """The departments in a reply about those texts.

        Raises:
            UnreadableError: there are none, one twice, or that there is none beside others.
        """
        verdict = super().read(reply, texts)
        named = [name for place in PLACES if (name := verdict[place][DEPARTMENT]) != NOTHING]
        if not named or verdict[PLACES[0]][DEPARTMENT] == NOTHING:
            raise UnreadableError("no first department")
        try:
            self.departments.read(named)
        except ValueError as error:
            raise UnreadableError(str(error)) from None
        return verdict

    def names(self, ratings: Mapping[str, float]) -> list[str]:
        """The departments behind the ratings of a verdict, the best first."""
        values = self.protocol.verdict[DEPARTMENT]
        chosen = [str(values[int(ratings[place])]) for place in PLACES]
        return [name for name in chosen if name != NOTHING]


def texts_to_label(dataset: Dataset, documents: Sequence[Document], rubric: Rubric) -> JudgedTask:
    """The questions of a task as cases for a judge."""
    task = JudgedTask(dataset.id, rubric, open_access=dataset.metadata.access == "open")
    for document in documents:
        texts, synthetic = {"question": document.input, "response": ""}, document["data"] == "sample"
        task.cases.append(Case(str(document["id"]), None, texts, rubric, synthetic=synthetic))
    return task


def labelled(
    task: JudgedTask, said: Said, rubric: DepartmentRubric, loaded: Mapping[str, Any]
) -> dict[str, Any]:
    """What the model has said of the questions of a task so far: as files hold it."""
    named: dict[str, list[str]] = {}
    for case in task.cases:
        for ratings in said[task.name, case.document].values():
            named[case.document] = rubric.names(ratings)
    return {
        "schema": SCHEMA,
        "labels": DEPARTMENT,
        "task": task.name,
        "prompt_version": rubric.version,
        "origin": loaded["origin"],
        "rows_hash": loaded["rows_hash"],
        "questions": [{"id": name, DEPARTMENT: names} for name, names in named.items()],
        "missing": [case.document for case in task.cases if case.document not in named],
    }


def summary_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """A task's line: questions, labelled ones, those of no department, the most frequent primary ones."""
    known, rows = departments(), labels["questions"]
    named = [{known.whole_of[name] for name in row[DEPARTMENT]} for row in rows]
    counts = Counter({whole: sum(whole in one for one in named) for whole in known.whole_of.values()})
    without = counts.pop(known.none or "", 0)
    frequent = ", ".join(f"{name} {n:,}" for name, n in counts.most_common(3) if n)
    n = {"questions": len(rows) + len(labels["missing"]), "labelled": len(rows), "without": without}
    return {"task": labels["task"], **n, "frequent": frequent}


def people_of(
    documents: Mapping[str, Iterable[Document]], file: Path | None
) -> dict[tuple[str, str], list[str]]:
    """(task, id) -> the departments that people named: in rows, and in a file with task, id and department.

    Several departments are a list, or joined by `;`.

    Raises:
        MedtasksError: a row of the file is none of this kind.
    """
    people = {
        (task, str(item["id"])): list(item[DEPARTMENT])
        for task, items in documents.items()
        for item in items
        if item.get(DEPARTMENT)
    }
    for number, row in enumerate(read_rows(file) if file else (), start=1):
        try:
            names = row[DEPARTMENT].split(";") if isinstance(row[DEPARTMENT], str) else row[DEPARTMENT]
            people[str(row["task"]), str(row["id"])] = departments().read(names)
        except (KeyError, ValueError) as error:
            what = f"no column {error}" if isinstance(error, KeyError) else str(error)
            remedy = "the columns are task, id and department, of those in mlb/suite.yaml"
            raise MedtasksError(f"row {number}: {what}", where=str(file), remedy=remedy) from None
    return people


def agreement(people: Named, model: Named) -> list[dict[str, Any]]:
    """How far two name the same departments of questions that both have; `people` count as right.

    Precision, recall, F1 and kappa are of all decisions, question by department; exact: the same set.
    """
    both = [({*people[key]}, {*model[key]}) for key in sorted(people) if key in model]
    whole = departments().whole_of
    primary = [({whole[n] for n in one}, {whole[n] for n in other}) for one, other in both]
    kinds = {
        "secondary departments": (both, len(whole)),
        "primary departments": (primary, len({*whole.values()})),
    }
    of = {name: (lambda sums, value=value: value(sums[..., :4])) for name, value in OF_COUNTS.items()}
    del of["accuracy"]
    measures = {"exact": lambda sums: sums[..., 4] / sums[..., 5], **of}
    found = []
    for item, (pairs, n) in kinds.items():
        rows = [
            (len(a & b), len(b - a), len(a - b), n - len(a | b), a == b, 1) for a, b in pairs
        ]  # true positive, false positive, false negative, true negative, the same, one
        found += [{"item": item, **row} for row in measured(rows, range(len(rows)), measures)] if rows else []
    return found
