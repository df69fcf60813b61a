"""What a run's answers still need: one request after the other, as their protocols say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.egress import Text
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.procedures import PROCEDURES, Judged, JudgeRequest

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Outcome
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.protocol import Rubric
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.run.store import Intent

#: Why a judgement is missing that nobody was asked for.
NOT_ASKED = "not asked yet"


class Ask(NamedTuple):
    question: str  # its key, whatever was said
    key: str  # of the draw that comes next
    task: JudgedTask
    case: Case
    request: JudgeRequest
    store: JudgementStore

    @classmethod
    def of(
        cls, task: JudgedTask, case: Case, request: JudgeRequest, jury: Jury, store: JudgementStore
    ) -> tuple[Ask, Judged | None]:
        """A question, and the ratings in its last reply, if there are some."""
        question = task.key(jury.identities[request.judge], case, request)
        key, last = store.drawn(question)
        known = Judged(request, last.ratings) if last and last.ratings is not None else None
        return cls(question, key, task, case, request, store), known

    @property
    def rubric(self) -> Rubric:
        return self.case.rubric_of(self.request)

    @property
    def text(self) -> Text:
        return Text(self.task.name, is_open=self.task.open_access or self.case.synthetic)

    def keep(self, outcome: Outcome | Intent, read: Mapping[str, Any] | None = None) -> None:
        """Store what became of it.

        Args:
            read: what was read in the reply, and further words of its line.
        """
        point = {} if self.request.point is None else {"point": self.request.point}
        about = {"judge": self.request.judge, **point, "wording": self.rubric.wording, **(read or {})}
        self.store.put(self.key, outcome, self.task.name, self.case.document, about)


class RunToJudge(NamedTuple):
    tasks: list[JudgedTask]
    store: JudgementStore


def requests_of(
    task: JudgedTask, case: Case, jury: Jury, store: JudgementStore
) -> tuple[list[Judged], list[Ask]]:
    """What was judged under the task's protocol, and what is still open, as far as that is known before the
    answers to it are there; a physician's decision may be among both.
    """
    if not case.asked:
        return [], []
    protocol = task.rubric.protocol
    procedure, panel = PROCEDURES[protocol.procedure], protocol.panel(jury)
    done: dict[str, Judged] = {}
    while True:
        still_open: dict[str, Ask] = {}
        before = len(done)
        for request in procedure(case.subject, panel, list(done.values())):
            ask, judged = Ask.of(task, case, request, jury, store)
            if judged is None:
                still_open[ask.question] = ask
            else:
                done.setdefault(ask.question, judged)
        if len(done) == before:
            return list(done.values()), list(still_open.values())
