"""What there is to judge: the answers of a run's judged tasks, read from its sample files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.procedures import JudgeRequest, Subject
from medtasks_ext.judge.protocol import AXIS, Rubric
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.official.juries import jury_words
from medtasks_ext.rows.spec import Judging, dataset_spec
from medtasks_ext.run.store import key_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.samples import RESCORE, iter_samples, parsed_of

if TYPE_CHECKING:
    from medtasks_ext.prompts.official.choice import PromptSource
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.rows.row import Point
    from medtasks_ext.runs.records import Sample


# One scoring point of one answer: what the fine-tuned judge of MLB learns and is asked (Section 3.6).

PROTOCOL, FIELD = "scoring_point", "met"
ROLE = "一名经验丰富的临床医生，负责裁定有争议的医学回答"


@lru_cache(maxsize=1)
def point_rubric() -> Rubric:
    """The prompt of training and of use."""
    return Rubric(Judging(protocol=PROTOCOL, question="-", role=ROLE, axes={AXIS: "-"}, show_gold=False))


def shown_for_point(question: str, point: str, answer: str) -> dict[str, str]:
    return {"question": question.strip(), "point": point.strip(), "response": answer.strip()}


def shown_for_item(question: str, point: Point, answer: str) -> dict[str, str]:
    """The criterion has its weight before it."""
    item = f"[{point['weight']}] {point['text'].strip()}"
    return {"question": question.strip(), "item": item, "response": answer.strip()}


NO_GOLD = "no gold answer to show"


@dataclass(frozen=True)
class Case:
    document: str  # key within its task
    run: str | None  # the run of the benchmark that it belongs to (subset, condition), or None
    texts: Mapping[str, str]  # `question`, `response` and, where judges see them, `points` and `gold`
    rubric: Rubric  # the task's, with the document's own points where it has some
    points: Sequence[Point] = ()  # the document's scoring points, {id, text, weight}
    tags: Sequence[str] = ()  # kinds that the document belongs to
    blank: bool = False  # the answer is empty, which needs no judge: all ratings are the lowest
    gap: str = ""  # why it cannot be judged, or empty
    synthetic: bool = False  # it comes from sample rows
    cluster: str | None = None  # what its question is about, if others are, too; intervals draw them together

    @property
    def asked(self) -> bool:
        return not self.blank and not self.gap

    @cached_property
    def subject(self) -> Subject:
        weights = {point["id"]: point["weight"] for point in self.points}
        question, response = self.texts["question"], self.texts["response"]
        alone = {
            point["id"]: shown_for_item(question, point, response)
            if self.rubric.protocol.asks_each_point
            else shown_for_point(question, point["text"], response)
            for point in self.points
        }
        return Subject(self.texts, weights or dict.fromkeys(self.rubric.axes, 1), alone)

    def points_by_tag(self, prefixes: tuple[str, ...]) -> dict[str, list[str]]:
        """Tag -> the points that have it, for tags that begin so and have a point of positive weight."""
        by_tag: dict[str, list[str]] = {}
        for point in self.points:
            for tag in point.get("tags", ()):
                if tag.startswith(prefixes):
                    by_tag.setdefault(tag, []).append(point["id"])
        gains = {point["id"] for point in self.points if point["weight"] > 0}
        return {tag: ids for tag, ids in sorted(by_tag.items()) if gains.intersection(ids)}

    def rubric_of(self, request: JudgeRequest) -> Rubric:
        if request.point is None:
            return self.rubric
        return self.rubric.of_one_point if self.rubric.protocol.asks_each_point else point_rubric()

    def ratings(self, request: JudgeRequest, verdict: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Axis or point -> rating; a point judged alone has the lowest rating of the task, or the highest."""
        if request.point is None:
            return self.rubric.ratings(verdict)
        met = self.rubric_of(request).ratings(verdict)[AXIS]
        return {request.point: self.rubric.protocol.scale[bool(met)]}


@dataclass
class JudgedTask:
    name: str
    rubric: Rubric
    open_access: bool
    cases: list[Case] = field(default_factory=list)

    def key(self, identity: str, case: Case, request: JudgeRequest) -> str:
        """Judge (of `Jury.identities`), prompt version, document, point asked about, and all texts shown."""
        version, texts = case.rubric_of(request).version, dict(request.texts)
        return key_of(identity, [version, self.name, case.document, request.point, texts])


def response_hash(case: Case) -> str:
    return sha256(case.texts["response"].encode(errors="surrogatepass")).hexdigest()[:16]


def judged_tasks(
    folder: Path, registry: Registry, names: Iterable[str], words: Mapping[str, PromptSource] | None = None
) -> list[JudgedTask]:
    """By the rubrics of the tasks on disk; judges are asked in our words, or in those given for a task."""
    tasks = []
    for name in names:
        if name not in registry.tasks:
            continue
        dataset, _ = registry.tasks[name]
        if rubric := rubric_of(dataset, (words or {}).get(name, "own")):
            task = JudgedTask(name, rubric, open_access=dataset.metadata.access == "open")
            task.cases = _read_cases(RunFolder(folder).samples_file(name), rubric)
            tasks.append(task)
    return tasks


def is_judged(dataset: Dataset) -> bool:
    return bool(dataset.blocks.get("judge"))


def rubric_of(dataset: Dataset, prompts: PromptSource = "own") -> Rubric | None:
    """None where answers are not judged; MedtasksError where official words are wanted and cannot be had."""
    if not is_judged(dataset):
        return None
    judging = dataset_spec(dataset).judge
    return Rubric(judging, words=jury_words(dataset, judging, prompts)) if judging else None


def _read_cases(path: Path, rubric: Rubric) -> list[Case]:
    cases = []
    for number, sample in enumerate(iter_samples(path), start=1):
        try:
            cases.append(_case(sample, rubric))
        except (KeyError, TypeError, IndexError):
            what = f"line {number} is no record of an open-ended answer"
            raise MedtasksError(what, where=path, remedy=RESCORE) from None
    return cases


def _case(sample: Sample, rubric: Rubric) -> Case:
    document, answer = sample["doc"], parsed_of(sample)["answer"]
    texts = {"question": document["question"], "response": str(answer or "").strip()}
    blank, gap = not texts["response"], ""
    if rubric.judging.context:
        texts["context"] = document["context"]
    points = document["points"] if rubric.judging.points else []
    if points:
        texts["points"] = "\n".join(f"{point['id']}. {' '.join(point['text'].split())}" for point in points)
    if rubric.judging.show_gold and document["target"].strip():
        texts["gold"] = document["target"]
    elif rubric.judging.show_gold and not points:
        gap = NO_GOLD
    return Case(
        document=document_key(document),
        run=document.get("run"),
        texts=texts,
        rubric=Rubric(rubric.judging, {point["id"]: point["text"] for point in points}, rubric.words)
        if points
        else rubric,
        points=points,
        blank=blank,
        gap="" if blank else gap,
        synthetic=document["data"] == "sample",
        cluster=document.get("cluster"),
        tags=document.get("tags", ()),
    )
