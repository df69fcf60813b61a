"""Departments of documents, named by a model (MLB, section 3.3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.judge.reply import UnreadableError, Verdict
from medtasks_ext.registry import registry
from medtasks_ext.studies.said import Said, rubric_of

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry.blocks import RowLabel

DEPARTMENT, NOTHING = "department", "none"
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


def labelled(task: JudgedTask, said: Said, loaded: Mapping[str, Any]) -> dict[str, Any]:
    """What the model has said of the questions of a task so far, as files hold it."""
    values, named = task.rubric.protocol.verdict[DEPARTMENT], dict[str, list[str]]()
    for case in task.cases:
        for ratings in said[task.name, case.document].values():
            chosen = [str(values[int(ratings[place])]) for place in PLACES]
            named[case.document] = [name for name in chosen if name != NOTHING]
    return {
        "labels": DEPARTMENT,
        "task": task.name,
        "prompt_version": task.rubric.version,
        **{name: loaded[name] for name in ("origin", "rows_hash")},
        "questions": [{"id": name, DEPARTMENT: names} for name, names in named.items()],
        "missing": [case.document for case in task.cases if case.document not in named],
    }
