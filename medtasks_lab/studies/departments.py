"""Departments of documents, named by a model, and how far people agree (MLB, section 3.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.judge.reply import UnreadableError, Verdict
from medtasks_ext.judge.report import ALL, Figure
from medtasks_ext.registry import registry
from medtasks_ext.results.labels import Labels
from medtasks_ext.rows.files import read_rows
from medtasks_ext.stats.bootstrap import resample
from medtasks_ext.stats.counts import Counts
from medtasks_ext.stats.intervals import intervals_of
from medtasks_ext.stats.statistic import Statistic, as_they_are
from medtasks_lab.judge.study import Panel, ratings_in, study_file
from medtasks_lab.studies.judge_evaluation import OF_COUNTS, figure_of

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.row_labels import RowLabel
    from medtasks_ext.stats.statistic import Array

FILE = Path(__file__).with_suffix(".yaml")
DEPARTMENT, NOTHING = "department", "none"
PLACES = ("first", "second", "third")
SCHEMA = 1
#: What questions are called that the model gave no departments.
NOT_LABELLED = "not labelled"
#: Measures of agreement, in the order of display.
MEASURES = ("exact", "precision", "recall", "f1", "cohen_kappa")


def departments() -> RowLabel:
    """The departments that a suite lists for its rows."""
    listed = (suite.row_labels.get(DEPARTMENT) for suite in registry().suites.values())
    return next(label for label in listed if label)


class DepartmentRubric(Rubric):
    """How a model is asked for the departments of a text."""

    def __init__(self) -> None:
        self.departments = departments()
        listed = "\n".join(
            f"- {primary}: {'; '.join(parts)}" for primary, parts in self.departments.values.items()
        )
        judging = study_file(FILE).judging
        assert judging is not None
        super().__init__(judging.model_copy(update={"goal": listed}))
        self.protocol = self.protocol.model_copy(
            update={"verdict": {DEPARTMENT: [*self.departments.whole_of, NOTHING]}}
        )

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


@dataclass(frozen=True)
class Labelling:
    """The departments of a task's questions."""

    task: str
    labeller: dict[str, str]  # name and model of who labelled
    prompt_version: str
    origin: str  # of the rows; `sample` means synthetic
    rows_hash: str  # identifies the documents in our wording
    by_question: dict[str, list[str]]  # id -> secondary departments, best first
    missing: list[str]  # ids of questions without a label

    @property
    def questions(self) -> int:
        """Questions that the model was asked about."""
        return len(self.by_question) + len(self.missing)

    @property
    def labelled(self) -> int:
        """Questions with a label."""
        return len(self.by_question)

    @property
    def without(self) -> int:
        """Questions of no department."""
        return dict(counts_of(self)).get(departments().none or "", 0)

    @property
    def frequent(self) -> str:
        """The three most frequent primary departments."""
        counts = [pair for pair in counts_of(self) if pair[0] != departments().none]
        return ", ".join(f"{name} {n:,}" for name, n in sorted(counts, key=lambda pair: -pair[1])[:3])


@dataclass(frozen=True)
class Labellings:
    """The departments of the questions of several tasks."""

    tasks: list[Labelling]
    people: Mapping[tuple[str, str], Sequence[str]]  # (task, question) -> departments that people named

    @property
    def n_people(self) -> int:
        """Questions that people labelled."""
        return len(self.people)

    @property
    def n_agreed(self) -> int:
        """Questions that both labelled."""
        return self.agreed[0].n

    @cached_property
    def agreed(self) -> list[Figure]:
        """How far the model agrees with people; nothing without people."""
        return agreement(self.people, self.by_question) if self.people else []

    @property
    def missing(self) -> int:
        """Questions without a label."""
        return sum(len(item.missing) for item in self.tasks)

    @property
    def by_question(self) -> dict[tuple[str, str], list[str]]:
        """(task, question) -> its departments."""
        return {(item.task, name): labels for item in self.tasks for name, labels in item.by_question.items()}


def labellings(
    panels: Sequence[Panel],
    verdicts: pa.Table,
    rubric: DepartmentRubric,
    documents: Sequence[Sequence[Document]],
    people: Mapping[tuple[str, str], Sequence[str]],
) -> Labellings:
    """What the model has said of the questions of tasks so far.

    Args:
        verdicts: the frame.
        documents: of each task.
        people: (task, question) -> departments that people named.
    """
    ((jury, tasks),) = panels
    labeller = {"name": jury.judges[0].name, "model": jury.judges[0].model}
    named = {
        place: rubric.names(ratings)
        for place, by_judge in ratings_in(verdicts).items()
        for ratings in by_judge.values()
        if ratings
    }
    by_rater = []
    for task, items in zip(tasks, documents, strict=True):
        names = {case.document: named.get((task.name, case.document)) for case in task.cases}
        loaded = items[0].loaded.record
        labelled = {document: labels for document, labels in names.items() if labels is not None}
        missing = [document for document, labels in names.items() if labels is None]
        by_rater.append(
            Labelling(
                task.name, labeller, rubric.version, loaded["origin"], loaded["rows_hash"], labelled, missing
            )
        )
    return Labellings(by_rater, people)


def texts_to_label(dataset: Dataset, documents: Sequence[Document], rubric: Rubric) -> JudgedTask:
    """The questions of a task as cases for a judge."""
    task = JudgedTask(dataset.id, rubric, open_access=dataset.metadata.access == "open")
    task.cases = [
        Case(
            document=str(document["id"]),
            run=None,
            texts={"question": document.input, "response": ""},
            rubric=rubric,
            synthetic=document["data"] == "sample",
        )
        for document in documents
    ]
    return task


# ---------------------------------------------------------------------- agreement with people


def own_labels(documents: Iterable[Document]) -> dict[str, list[str]]:
    """The departments that rows name themselves, which people gave."""
    return {str(item["id"]): list(item["department"]) for item in documents if item.get("department")}


def read_sample(path: Path) -> dict[tuple[str, str], list[str]]:
    """(task, id) -> the departments that people named; a file with columns `task`, `id` and `department`.

    Several departments are a list, or joined by `;`.

    Raises:
        MedtasksError: it is missing, or a row is none of this kind.
    """
    label = departments()
    named_by_key: dict[tuple[str, str], list[str]] = {}
    for number, row in enumerate(read_rows(path), start=1):
        try:
            value = row[DEPARTMENT]
            names = value.split(";") if isinstance(value, str) else value
            key = (str(row["task"]), str(row["id"]))
            named = label.read(names)
        except KeyError as error:
            raise MedtasksError(
                f"row {number} has no column {error.args[0]}",
                where=path,
                remedy="the columns are task, id and department",
            ) from None
        except ValueError as error:
            raise MedtasksError(
                f"row {number}: {error}",
                where=path,
                remedy=f"name {label.many} of row_labels.department in mlb/suite.yaml, or {label.none!r}",
            ) from None
        if key in named_by_key:
            raise MedtasksError(
                f"row {number} names a question again", where=path, remedy="keep one row of it"
            )
        named_by_key[key] = named
    return named_by_key


def agreement(
    people: Mapping[tuple[str, str], Sequence[str]], model: Mapping[tuple[str, str], Sequence[str]]
) -> list[Figure]:
    """Compare the labels of questions that both have: rows of the frame `agreement`.

    Precision, recall, F1 and Cohen's kappa are of all decisions, question by department: positive is a
    department that is named. Exact: the same set. Intervals: questions resampled 1,000 times.

    Args:
        people: (task, question) -> departments that people named, which count as right.
        model: the same by the model.
    """
    keys = sorted(key for key in people if key in model)
    secondary = [({*people[key]}, {*model[key]}) for key in keys]
    wholes = departments().whole_of
    primary = [({wholes[n] for n in one}, {wholes[n] for n in other}) for one, other in secondary]
    return [
        *_figures("secondary departments", secondary, len(wholes)),
        *_figures("primary departments", primary, len(set(wholes.values()))),
    ]


def _figures(item: str, pairs: Sequence[tuple[set[str], set[str]]], labels: int) -> Iterator[Figure]:
    """The measures of one kind of departments.

    Args:
        labels: how many there are, the one for no department among them.
    """
    about = ("departments", ALL, "people + model", item)
    if not pairs:
        yield from (figure_of(about, name, None, None, 0) for name in MEASURES)
        return
    rows = []
    for people, model in pairs:
        both, union = len(people & model), len(people | model)
        rows.append((both, len(model - people), len(people - model), labels - union, people == model, 1))
    statistics = {name: Statistic(name, as_they_are, _of(name)) for name in MEASURES}
    counts = Counts(as_they_are(rows), statistics)
    draws = {name: item.values for name, item in resample([counts], DEPARTMENT).items()}
    limits = intervals_of(counts, draws)
    for name, value in counts.values().items():
        yield figure_of(about, name, value, limits[name].interval if name in limits else None, len(pairs))


def _of(measure: str) -> Any:
    def value(sums: Array) -> Array:
        if measure == "exact":
            exact: Array = sums[..., 4] / sums[..., 5]
            return exact
        return OF_COUNTS[measure](sums[..., :4])

    return value


# ---------------------------------------------------------------------- the file


def write_labellings(folder: Path, labellings: Labellings, panels: Sequence[Panel]) -> list[Path]:
    """Write `FOLDER/TASK.json` for each task."""
    return [write_labelling(folder, item) for item in labellings.tasks]


def write_labelling(folder: Path, labelling: Labelling) -> Path:
    """Write `FOLDER/TASK.json`."""
    path = folder / f"{labelling.task}.json"
    write_json(
        path,
        {
            "schema": SCHEMA,
            "labels": DEPARTMENT,
            "task": labelling.task,
            "labeller": labelling.labeller,
            "prompt_version": labelling.prompt_version,
            "origin": labelling.origin,
            "rows_hash": labelling.rows_hash,
            "questions": [{"id": name, DEPARTMENT: named} for name, named in labelling.by_question.items()],
            "missing": labelling.missing,
        },
    )
    return path


def read_labelling(path: Path, tasks: Iterable[str]) -> Labels:
    """Read a file of `medtasks study departments`.

    Args:
        tasks: with the same documents as the one that was labelled.

    Raises:
        MedtasksError: it is something else.
    """
    content = read_json(path)
    try:
        if (content["schema"], content["labels"]) != (SCHEMA, DEPARTMENT):
            raise ValueError
        label = departments()
        questions = {str(item["id"]): label.read(item[DEPARTMENT]) for item in content["questions"]}
        return Labels(
            axis=DEPARTMENT,
            task=content["task"],
            tasks=frozenset({content["task"], *tasks}),
            origin=content["origin"],
            rows_hash=content["rows_hash"],
            by_question={
                **{name: label.shown(named) for name, named in questions.items()},
                **{str(name): (NOT_LABELLED,) for name in content["missing"]},
            },
            values=(*label.order, NOT_LABELLED),
            where=str(path),
            wording="own",
        )
    except (KeyError, TypeError, ValueError):
        raise MedtasksError(
            "is no file of labels of documents",
            where=path,
            remedy="`medtasks study difficulty` and `medtasks study departments` write them",
        ) from None


def counts_of(labelling: Labelling) -> Iterator[tuple[str, int]]:
    """(primary department, questions that have it), in the order of the vocabulary."""
    wholes = departments().whole_of
    named = [{wholes[name] for name in names} for names in labelling.by_question.values()]
    for primary in dict.fromkeys(wholes.values()):
        if n := sum(primary in some for some in named):
            yield primary, n
