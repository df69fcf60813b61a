"""What there is to judge, what has been judged, and what is asked next.

The answers of a run's judged tasks are read from its sample files. `RUN/judgements/answers.jsonl` has a
line for each request to a judge (`run.store`), with what was read in the reply. A reply without a verdict is
draw 1 of its question; the question that is asked again is draw 2 of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from medtasks_ext.egress import Text
from medtasks_ext.engines import Outcome, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.protocol import AXIS, N_ASSESSORS, Rubric, Wording, weighted_mean
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.official.words import jury_words
from medtasks_ext.rows.spec import Judging, dataset_spec
from medtasks_ext.run.charge import check_under_limit
from medtasks_ext.run.store import Answers, Row, answer_of, key_of, rows_in
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.records import RESCORE, iter_samples, names_of, parsed_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.prompts.official.words import PromptSource
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.rows.row import Point
    from medtasks_ext.runner.run import Run
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


#: a judge, and the scoring point that it is asked about by itself; None: about everything at once
Question: TypeAlias = tuple[str, str | None]
#: question that was answered -> axis or point -> rating
Done: TypeAlias = Mapping[Question, Mapping[str, float]]


@dataclass(frozen=True)
class Case:
    document: str  # key of the request about it, within its task
    run: str | None  # the run of the benchmark that it belongs to (subset, condition), or None
    texts: Mapping[str, str]  # `question`, `response` and, where judges see them, `points` and `gold`
    rubric: Rubric  # the task's, with the document's own points where it has some
    points: Sequence[Point] = ()  # the document's scoring points, {id, text, weight}
    tags: Sequence[str] = ()  # kinds that the document belongs to
    blank: bool = False  # the answer is empty, which needs no judge: all ratings are the lowest
    gap: str = ""  # why it cannot be judged, or empty
    synthetic: bool = False  # it comes from sample rows
    cluster: str | None = None  # what its question is about, if others are, too; intervals draw them together
    repeat_of: str = ""  # key of the document, where this is a further answer to it

    @property
    def of(self) -> str:
        """Key of the document."""
        return self.repeat_of or self.document

    @property
    def asked(self) -> bool:
        return not self.blank and not self.gap

    @cached_property
    def weights(self) -> dict[str, float]:
        """What each axis or scoring point weighs."""
        return {point["id"]: point["weight"] for point in self.points} or dict.fromkeys(self.rubric.axes, 1)

    @cached_property
    def _texts_of_points(self) -> dict[str, dict[str, str]]:
        alone = {}
        for point in self.points:
            shown = shown_for_point(self.texts["question"], point["text"], self.texts["response"])
            if self.rubric.protocol.each_point:  # the criterion has its weight before it
                item = f"[{point['weight']}] {shown['point']}"
                shown = {"question": shown["question"], "item": item, "response": shown["response"]}
            alone[point["id"]] = shown
        return alone

    def shown(self, point: str | None) -> Mapping[str, str]:
        """The texts that a judge sees."""
        return self.texts if point is None else self._texts_of_points[point]

    def points_by_tag(self, prefixes: tuple[str, ...]) -> dict[str, list[str]]:
        """Tag -> the points that have it, for tags that begin so and have a point of positive weight."""
        by_tag: dict[str, list[str]] = {}
        for point in self.points:
            for tag in point.get("tags", ()):
                if tag.startswith(prefixes):
                    by_tag.setdefault(tag, []).append(point["id"])
        gains = {point["id"] for point in self.points if point["weight"] > 0}
        return {tag: ids for tag, ids in sorted(by_tag.items()) if gains.intersection(ids)}

    def rubric_of(self, point: str | None) -> Rubric:
        if point is None:
            return self.rubric
        return self.rubric.of_one_point if self.rubric.protocol.each_point else point_rubric()

    def ratings(self, point: str | None, verdict: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Axis or point -> rating; a point judged alone has the lowest rating of the task, or the highest."""
        if point is None:
            return self.rubric.ratings(verdict)
        return {point: self.rubric.protocol.scale[bool(self.rubric_of(point).ratings(verdict)[AXIS])]}

    def questions(self, jury: Jury, done: Done) -> list[Question]:
        """All that a response needs, as far as that is known: where assessors differ, an adjudicator."""
        protocol = self.rubric.protocol
        if protocol.each_point:
            return [(judge, point) for judge in jury.names for point in self._texts_of_points]
        if protocol.dispute_above is None:
            return [(judge, None) for judge in jury.names]
        asked: list[Question] = [(judge, None) for judge in jury.names[:N_ASSESSORS]]
        return [*asked, *self.adjudication(jury)] if self.is_disputed(jury, done) else asked

    def adjudication(self, jury: Jury) -> list[Question]:
        points = self._texts_of_points if jury.points_one_by_one else ()
        return [(jury.adjudicator_name, point) for point in points or (None,)]

    def is_disputed(self, jury: Jury, done: Done) -> bool | None:
        """By more than the threshold; None while an assessment is missing, or where there is no dispute."""
        protocol = self.rubric.protocol
        given = [done[judge, None] for judge in jury.names[:N_ASSESSORS] if (judge, None) in done]
        if protocol.dispute_above is None or len(given) < N_ASSESSORS:
            return None
        (one, other), (low, high) = (weighted_mean(of, self.weights) for of in given), protocol.scale
        return abs(one - other) > Fraction(str(protocol.dispute_above)) * Fraction(high - low)

    def by_judge(self, done: Done) -> dict[str, dict[str, float]]:
        """Judge -> axis or point -> rating, of the judges that have rated all of them."""
        found: dict[str, dict[str, float]] = {}
        for (judge, _), ratings in done.items():
            found.setdefault(judge, {}).update(ratings)
        return {judge: given for judge, given in found.items() if given.keys() == self.weights.keys()}

    def rating(self, jury: Jury, done: Done) -> float | None:
        """On the rating scale: the mean of judges x axes; of two assessors, or the adjudicator's where they
        differ. None while that is missing.

        MLB does not say what becomes of two assessments that agree; the mean is this project's choice.
        """
        rated, disputed = self.by_judge(done), self.is_disputed(jury, done)
        if self.rubric.protocol.dispute_above is not None:
            counts = {True: [jury.adjudicator_name], False: jury.names[:N_ASSESSORS], None: []}[disputed]
            rated = {judge: rated[judge] for judge in counts if judge in rated}
        means = [weighted_mean(given, self.weights) for given in rated.values()]
        return float(sum(means) / len(means)) if means else None


@dataclass
class JudgedTask:
    name: str
    rubric: Rubric
    open_access: bool
    cases: list[Case] = field(default_factory=list)

    def key(self, identity: str, case: Case, point: str | None) -> str:
        """Judge (of `Jury.identities`), prompt version, document, point asked about, and all texts shown."""
        version, texts = case.rubric_of(point).version, dict(case.shown(point))
        return key_of(identity, [version, self.name, case.document, point, texts])


def response_hash(case: Case) -> str:
    return sha256(case.texts["response"].encode(errors="surrogatepass")).hexdigest()[:16]


def judged_tasks(
    folder: Path,
    registry: Registry,
    names: Iterable[str],
    words: Mapping[str, PromptSource] | None = None,
    *,
    fetch: bool = False,
) -> list[JudgedTask]:
    """By the rubrics of the tasks on disk; judges are asked in our words, or in those given for a task.

    `fetch`: official words that are not on this machine are downloaded, also where `auto` could do without.
    """
    tasks = []
    for name in names:
        if name not in registry.tasks:
            continue
        dataset, _ = registry.tasks[name]
        if rubric := rubric_of(dataset, (words or {}).get(name, "own"), fetch=fetch):
            task = JudgedTask(name, rubric, dataset.metadata.access == "open")
            path = RunFolder(folder).samples_file(name)
            for number, sample in enumerate(iter_samples(path), start=1):
                try:
                    repeats = enumerate(names_of(sample))
                    task.cases += [_case(sample, rubric, draw, name) for draw, name in repeats]
                except (KeyError, TypeError, IndexError):
                    what = f"line {number} is no record of an open-ended answer"
                    raise MedtasksError(what, where=path, remedy=RESCORE) from None
            tasks.append(task)
    return tasks


def rubric_of(dataset: Dataset, prompts: PromptSource = "own", *, fetch: bool = False) -> Rubric | None:
    """None where answers are not judged; MedtasksError where official words are wanted and cannot be had."""
    if not dataset.blocks.get("judge"):
        return None
    judging = dataset_spec(dataset).judge
    return Rubric(judging, words=jury_words(dataset, judging, prompts, fetch=fetch)) if judging else None


def _case(sample: Sample, rubric: Rubric, draw: int, name: str) -> Case:
    document, answer = sample["doc"], parsed_of(sample, draw)["answer"]
    texts = {"question": document["question"], "response": str(answer or "").strip()}
    blank, gap = not texts["response"], ""
    if rubric.judging.context:
        texts["context"] = document["context"]
    own = rubric
    if points := document["points"] if rubric.judging.points else []:
        texts["points"] = "\n".join(f"{point['id']}. {' '.join(point['text'].split())}" for point in points)
        own = Rubric(rubric.judging, {point["id"]: point["text"] for point in points}, rubric.words)
    if rubric.judging.show_gold and document["target"].strip():
        texts["gold"] = document["target"]
    elif rubric.judging.show_gold and not points:
        gap = "no gold answer to show"
    return Case(
        document=name,
        run=document.get("run"),
        texts=texts,
        rubric=own,
        points=points,
        blank=blank,
        gap="" if blank else gap,
        synthetic=document["data"] == "sample",
        cluster=document.get("cluster"),
        tags=document.get("tags", ()),
        repeat_of=document_key(document) if draw else "",
    )


#: What a line says of a reply besides the reply.
_ABOUT = ("judge", "point", "wording", "ratings", "verdict", "unreadable")


class JudgementStore(Answers):
    """The judgements of a run's folder, or of a study's."""

    def __init__(self, folder: Path, *, write: bool = True, command: str = "medtasks judge") -> None:
        self.wording: dict[str, Wording] = {}  # task -> whose words its judges were asked in last
        #: (task, judge) -> tokens of the replies that were charged here, and US dollars at the time's price
        self.replies: dict[tuple[str, str], list[tuple[Usage, float | None]]] = {}
        self.said: dict[str, Row] = {}  # key of a draw -> the reply's line, or that of a physician's decision
        self._why: dict[str, str] = {}  # key of a draw -> why the last try gave no reply
        self._served: dict[tuple[str, str], set[str]] = {}  # (task, judge) -> other models that answered
        where = RunFolder(folder).judgements
        super().__init__(where, write=write, command=command)

    def see(self, row: Row) -> None:
        """Take note of a line, and of what a judge said in it."""
        super().see(row)
        if row["outcome"] in ("intent", "sent"):
            return
        key, task, judge = row["key"], row["task"], row["judge"]
        self.wording[task] = row.get("wording", "own")
        if row["outcome"] == "fault":
            self._why[key] = row["reason"]
            return
        self.said.setdefault(key, row)
        if model := row.get("model"):
            self._served.setdefault((task, judge), set()).add(model)
        if usage := row.get("usage"):
            self.replies.setdefault((task, judge), []).append((Usage(**usage), row.get("cost")))

    def copy(self, row: Row) -> None:
        """Keep what was said about the same answer of another run, where it was paid for."""
        answer = answer_of(row)
        about = {name: row[name] for name in _ABOUT if name in row}
        self.put(row["key"], replace(answer, usage=None, cost=None), row["task"], row["document"], about)

    def drawn(self, question: str) -> tuple[str, Row | None]:
        """The key of the next draw of a question, and what the last one said; None where there is none."""
        key, last, draw = question, None, 1
        while key in self.said:
            last, draw = self.said[key], draw + 1
            key = key_of(question, [draw])
        return key, last

    def why_not(self, question: str, unasked: str) -> str:
        """Why a question has no verdict; `unasked` is said of one that nobody was asked."""
        key, last = self.drawn(question)
        return self._why.get(key) or (last.get("unreadable", "") if last else unasked)

    def served_about(self, task: str) -> dict[str, list[str]]:
        """Judge -> other models than the one asked for that answered about a task, as servers call them."""
        return {judge: sorted(names) for (name, judge), names in sorted(self._served.items()) if name == task}

    def spent(self, task: str) -> Json:
        """What judging cost: `usd` at the prices of the time, None where no reply had one.

        `unsure`: US dollars at most of requests whose reply never came. `unpriced`: replies of judges without
        a price; `estimated`: those whose tokens nobody counted believably, at the highest possible cost.
        """
        replies = [reply for (name, _), some in self.replies.items() if name == task for reply in some]
        priced = [cost for _, cost in replies if cost is not None]
        return {
            "usd": sum(priced) if priced else None,
            "unsure": self.unsettled.total(task),
            "replies": len(replies),
            "unpriced": len(replies) - len(priced),
            "estimated": sum(cost is not None and not usage.counted for usage, cost in replies),
        }


def verdicts_in(folder: Path, task: str) -> Iterator[dict[str, Any]]:
    """The lines of a run's folder that hold ratings of answers of a task."""
    rows = rows_in(RunFolder(folder).judgements, "answer")
    return (row for row in rows if row["task"] == task and row.get("ratings") is not None)


def paid(jury: Jury, stores: Iterable[JudgementStore]) -> tuple[list[float | None], float]:
    """What earlier calls spent, for `Budget`; the jury's prices hold for replies without a cost."""
    judges, known = {judge.name: judge for judge in jury.models}, list(stores)
    replies = ((name, *reply) for store in known for (_, name), of in store.replies.items() for reply in of)
    costs = [
        judges[name].spent(usage) if cost is None and name in judges else cost
        for name, usage, cost in replies
    ]
    return costs, sum(store.unsettled.total() for store in known)


#: Why a judgement is missing that nobody was asked for.
NOT_ASKED = "not asked yet"


class Ask(NamedTuple):
    question: str  # its key, whatever was said
    key: str  # of the draw that comes next
    task: JudgedTask
    case: Case
    judge: str
    point: str | None
    store: JudgementStore

    @classmethod
    def of(
        cls, task: JudgedTask, case: Case, question: Question, jury: Jury, store: JudgementStore
    ) -> tuple[Ask, Mapping[str, float] | None]:
        """A question, and the ratings in its last reply, if there are some."""
        judge, point = question
        name = task.key(jury.identities[judge], case, point)
        key, last = store.drawn(name)
        return cls(name, key, task, case, judge, point, store), last.get("ratings") if last else None

    @property
    def rubric(self) -> Rubric:
        return self.case.rubric_of(self.point)

    @property
    def texts(self) -> Mapping[str, str]:
        return self.case.shown(self.point)

    @property
    def text(self) -> Text:
        return Text(self.task.name, is_open=self.task.open_access or self.case.synthetic)

    def keep(self, outcome: Outcome, read: Mapping[str, Any] | None = None) -> None:
        """Store what became of it; `read`: what was read in the reply, and further words of its line."""
        point = {} if self.point is None else {"point": self.point}
        about = {"judge": self.judge, **point, "wording": self.rubric.wording, **(read or {})}
        self.store.put(self.key, outcome, self.task.name, self.case.document, about)


class RunToJudge(NamedTuple):
    tasks: list[JudgedTask]
    store: JudgementStore


def requests_of(
    task: JudgedTask, case: Case, jury: Jury, store: JudgementStore
) -> tuple[dict[Question, Mapping[str, float]], list[Ask]]:
    """What was judged under the task's protocol, and what is still open, as far as that is known before the
    answers to it are there; a physician's decision may be among both.
    """
    done: dict[Question, Mapping[str, float]] = {}
    while case.asked:
        still_open, before = [], len(done)
        for question in case.questions(jury, done):
            ask, ratings = Ask.of(task, case, question, jury, store)
            if ratings is None:
                still_open.append(ask)
            else:
                done.setdefault(question, ratings)
        if len(done) == before:
            return done, still_open
    return done, []


def check_jury(jury: Jury, tasks: Sequence[JudgedTask]) -> None:
    """Refuse a jury with too few judges for a protocol, or with a judge named like an axis."""
    adjudicated = [task.name for task in tasks if task.rubric.protocol.dispute_above is not None]
    if adjudicated and len(jury.judges) < N_ASSESSORS:
        what = f"{', '.join(adjudicated)}: two assessors are needed, the jury has one judge"
        remedy = "add another judge, which may be the same model under another name, or name other --tasks"
        raise MedtasksError(what, where="--jury", remedy=remedy)
    axes = {axis for task in tasks for axis in task.rubric.axes}
    if taken := axes & set(jury.names):
        what = f"judge {min(taken)} has the name of an axis"
        raise MedtasksError(what, where="--jury", remedy="give it another name")


def check_prices(jury: Jury, max_cost: float | None) -> None:
    """A limit cannot be kept where a judge elsewhere has no price, or a field costs what nobody knows."""
    if max_cost is None:
        return
    for judge in jury.models:
        check_under_limit(judge.extra_body, f"--jury: extra_body of {judge.name}")
    if not isfinite(max_cost):
        raise MedtasksError(f"{max_cost} is no limit", where="--max-cost", remedy="give an amount in USD")
    if unknown := [judge.name for judge in jury.models if judge.price is None and not judge.is_local]:
        what = f"--max-cost cannot be kept without the price of {', '.join(unknown)}"
        remedy = "add price: {input: …, output: …} in USD per million tokens"
        raise MedtasksError(what, where="--jury", remedy=remedy)


def tasks_to_judge(
    run: Run, wanted: set[str] | None, store: JudgementStore, prompts: PromptSource
) -> list[JudgedTask]:
    """The finished judged tasks of a run, among those wanted.

    With `auto`, a task goes on in the words in which its judging began: others would be paid for anew.
    """
    known = run.registry.tasks
    done = (name for name in run.manifest.tasks if run.is_done(name) and name in known)
    judged = [name for name in done if known[name][0].blocks.get("judge")]
    chosen = [name for name in judged if wanted is None or name in wanted]
    if not chosen:
        what = "no finished task of this run is judged by models"
        remedy = f"judged here: {', '.join(judged)}" if judged else "`medtasks run` an open-ended task first"
        raise MedtasksError(what, where=run.folder, remedy=remedy)
    begun: Mapping[str, PromptSource] = store.wording if prompts == "auto" else {}
    words = {name: begun.get(name, prompts) for name in chosen}
    return judged_tasks(run.folder, run.registry, chosen, words, fetch=True)
