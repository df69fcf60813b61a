"""What a run's answers still need: one request after the other, as their protocols say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.egress import Text
from medtasks_ext.judge.cases import Case, JudgedTask, response_hash
from medtasks_ext.judge.jury import Judge, Jury
from medtasks_ext.judge.procedures import PROCEDURES, Judged, JudgeRequest
from medtasks_ext.runs.outcomes import About

if TYPE_CHECKING:
    from medtasks_ext.judge.protocol import Rubric
    from medtasks_ext.judge.store import JudgementStore, Reply
    from medtasks_ext.runs.outcomes import Intent

#: Why a judgement is missing that nobody was asked for.
NOT_ASKED = "not asked yet"


class Ask(NamedTuple):
    key: str
    task: JudgedTask
    case: Case
    request: JudgeRequest
    store: JudgementStore

    @property
    def rubric(self) -> Rubric:
        return self.case.rubric_of(self.request)

    @property
    def text(self) -> Text:
        return Text(self.task.name, is_open=self.task.open_access or self.case.synthetic)

    def about(self, judge: Judge) -> About:
        return About(
            judge.name,
            model=judge.model,
            protocol=self.rubric.judging.protocol,
            prompt_version=self.rubric.version,
            wording=self.rubric.wording,
            run=self.case.run,
            point=self.request.point,
            response_hash=response_hash(self.case),
        )

    def add(self, judge: Judge, entry: Reply | Intent, settles: float | None = None) -> None:
        self.store.add(self.task.name, self.key, self.case.document, self.about(judge), entry, settles)


class RunToJudge(NamedTuple):
    tasks: list[JudgedTask]
    store: JudgementStore


def done_requests(task: JudgedTask, case: Case, jury: Jury, store: JudgementStore) -> list[Judged]:
    """What was judged under the task's protocol, further rounds and physicians included."""
    return requests_of(task, case, jury, store)[0]


def open_requests(task: JudgedTask, case: Case, jury: Jury, store: JudgementStore) -> list[Ask]:
    """What a case still needs, as far as is known before the answers to it are there.

    Among it may be a physician's decision, which no model is asked for.
    """
    return requests_of(task, case, jury, store)[1]


def requests_of(
    task: JudgedTask, case: Case, jury: Jury, store: JudgementStore
) -> tuple[list[Judged], list[Ask]]:
    rounds = _rounds(task, case, jury, store)
    done = [judged for _, judged in rounds if judged is not None]
    return done, [ask for ask, judged in rounds if judged is None]


def _rounds(
    task: JudgedTask, case: Case, jury: Jury, store: JudgementStore
) -> list[tuple[Ask, Judged | None]]:
    if not case.asked:
        return []
    protocol = task.rubric.protocol
    procedure, panel = PROCEDURES[protocol.procedure], protocol.panel(jury)
    asked: dict[str, tuple[Ask, Judged | None]] = {}
    while True:
        done = [judged for _, judged in asked.values() if judged is not None]
        new = 0
        for request in procedure(case.subject, panel, done):
            key = task.key(jury.identities[request.judge], case, request)
            if key not in asked:
                known = store.by_key.get(key)
                ask = Ask(key, task, case, request, store)
                asked[key] = (ask, Judged(request, known.ratings) if known else None)
                new += known is not None
        if not new:
            return list(asked.values())
