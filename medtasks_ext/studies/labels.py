"""Labels of documents: departments, named by a model (MLB, section 3.3.2), and those in files of studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.judge.reply import UnreadableError, Verdict
from medtasks_ext.registry import registry
from medtasks_ext.registry.blocks import DIFFICULTY, LEVELS
from medtasks_ext.results.labels import Labels
from medtasks_ext.studies.contamination import FILE
from medtasks_ext.studies.said import Said, rubric_of

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Registry
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


CONTAMINATION, NOT_LABELLED = "contamination", "not labelled"
CLEAN, LEAKED, TOO_SHORT = "clean", "leaked", "too short to probe"


def labels_in(path: Path, tasks: Registry) -> list[Labels] | None:
    """The labels in a file of a study, or in a folder of such files; None where there is no such file."""

    def asking(name: str) -> frozenset[str]:
        dataset = tasks.datasets.get(name)
        return frozenset(dataset.task(item) for item in dataset.strategies) if dataset else frozenset({name})

    probe = path / FILE if (path / FILE).is_file() else path
    if probe.name == FILE:
        content = read_json(probe)
        words = {True: LEAKED, False: CLEAN, None: TOO_SHORT}
        return [
            Labels(
                axis=CONTAMINATION,
                task=name,
                tasks=asking(name),
                origin=task["origin"],
                rows_hash=task["rows_hash"],
                by_question={item["id"]: (words[item["leaked"]],) for item in task["documents"]},
                values=(CLEAN, LEAKED, TOO_SHORT),
                where=str(probe),
                model=content["name"],
                wording="own",
            )
            for name, task in content["tasks"].items()
        ]
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [_labels(file, asking) for file in files] if files and files[0].is_file() else None


def _labels(file: Path, asking: Callable[[str], frozenset[str]]) -> Labels:
    content = read_json(file)
    try:
        shared = {name: content[name] for name in ("task", "origin", "rows_hash")} | {"where": str(file)}
        if "method" in content:
            levels = {item["id"]: (item["level"],) for item in read_levels(file)["questions"]}
            of = frozenset({content["task"], *content["same_documents"]})
            return Labels(axis=DIFFICULTY, tasks=of, by_question=levels, values=LEVELS, **shared)
        label = departments()
        shown = {item["id"]: label.shown(label.read(item[DEPARTMENT])) for item in content["questions"]}
        shown |= dict.fromkeys(content["missing"], (NOT_LABELLED,))
        of, values = frozenset({content["task"], *asking(content["task"])}), (*label.order, NOT_LABELLED)
        return Labels(axis=DEPARTMENT, tasks=of, by_question=shown, values=values, wording="own", **shared)
    except (KeyError, TypeError, ValueError):
        what = "is no file of labels of documents"
        raise MedtasksError(what, where=file, remedy="`medtasks study` writes them") from None


def read_levels(path: Path) -> dict[str, Any]:
    """What `medtasks study difficulty` wrote."""
    content = read_json(path) if path.is_file() else None
    if isinstance(content, dict) and content.get("questions"):
        return content
    remedy = "`medtasks study difficulty RUN...` writes them"
    raise MedtasksError("is no file of difficulty levels", where=path, remedy=remedy)
