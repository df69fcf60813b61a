"""A jury is asked: each judge by an `Asker` of its own, in rounds, until no case needs anything more.

A round asks all that is open: first the judges; then what could not be read, as the next draw of the same
question; then the adjudicator, where assessors differ.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medtasks_ext.collector import collector_sparing
from medtasks_ext.egress import AskedServer, Egress, Text
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.asks import Ask, RunToJudge, requests_of
from medtasks_ext.judge.cost import CostEstimate, estimate, highest_cost
from medtasks_ext.judge.engine import SHORTFALLS, JudgeEngine, messages_of, usage_of
from medtasks_ext.judge.jury import HUMAN, Judge, Jury
from medtasks_ext.judge.procedures import adjudication
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.run.asker import LOOK, WAITING, Asker, Job, signals_call
from medtasks_ext.run.charge import Budget, n_bytes
from medtasks_ext.run.store import Answers, Intent

#: Draws of a question in one call, where they cannot be read.
MAX_REPLIES = 3
#: Requests in a row that use up their tries before the judge is given up for this call.
MAX_GIVEN_UP = 3


@dataclass
class End:
    stopped: dict[str, str] = field(default_factory=dict)  # judge -> why it was given up
    interrupted: bool = False  # a signal ended it
    out_of_money: bool = False  # the limit ended it


class Judging:
    """Asks the judges of a jury about runs; one reply serves all runs that have the same answer.

    Attributes:
        say: takes what the user is told meanwhile.
        show: takes the end of each question, as that of a request of a task with the name of its judge.
    """

    def __init__(
        self,
        jury: Jury,
        runs: list[RunToJudge],
        say: Callable[[str], None] = lambda line: None,
        egress: Egress | None = None,
    ) -> None:
        self.jury, self.runs, self.say = jury, runs, say
        self.show: Callable[[Request, Outcome], None] = lambda request, outcome: None
        self.egress = (egress or Egress.of()).recording(self._note_sent)
        self._lock = threading.RLock()
        self._asks: dict[str, list[Ask]] = {}  # key of each request of this round -> one ask for each run
        self._over = set[str]()  # questions that are not asked again in this call
        self._unread = Counter[str]()  # question -> its draws of this call without a verdict
        self._given_up = Counter[str]()  # judge -> requests in a row that used up their tries
        self._end, self._signals_seen = End(), 0

    def pending(self) -> list[Ask]:
        return [
            ask
            for run in self.runs
            for task in run.tasks
            for case in task.cases
            for ask in requests_of(task, case, self.jury, run.store)[1]
            if ask.request.judge != HUMAN
        ]

    def possible(self, asks: Iterable[Ask]) -> list[Ask]:
        """Requests to the adjudicator that the answers to others may lead to, at most."""
        if self.jury.adjudicator is None:
            return []
        further = (
            Ask.of(ask.task, ask.case, request, self.jury, ask.store)
            for ask in asks
            if (protocol := ask.task.rubric.protocol).dispute_above is not None
            and ask.request.judge != self.jury.adjudicator_name
            for request in adjudication(ask.case.subject, protocol.panel(self.jury))
        )
        return list({(id(ask.store), ask.key): ask for ask, said in further if said is None}.values())

    def check(self, asks: Iterable[Ask]) -> None:
        """Refuse requests with text that a judge's server may not receive, before any is sent."""
        asks = list(asks)
        for judge in self.jury.models:
            texts = dict.fromkeys(ask.text for ask in asks if ask.request.judge == judge.name)
            self.egress.check(judge.base_url, texts)

    def _note_sent(self, place: AskedServer, text: Text) -> None:
        for run in self.runs:
            if any(task.name == text.dataset for task in run.tasks):
                run.store.answers.sent(place, text)

    def estimates(self, asks: Iterable[Ask]) -> list[CostEstimate]:
        by_judge: dict[str, list[Ask]] = {judge.name: [] for judge in self.jury.models}
        for ask in asks:
            by_judge[ask.request.judge].append(ask)
        return [
            estimate(
                judge,
                [n_bytes(ask.rubric.messages(ask.request.texts)) for ask in by_judge[judge.name]],
                [reply.usage for run in self.runs for reply in run.store.replies_of(judge.name)],
            )
            for judge in self.jury.models
        ]

    def needed(self) -> Counter[str]:
        """Judge -> requests to it, before any is sent; 0 where some may follow from the answers to others."""
        asks = self.pending()
        possible = self.possible(asks)
        self.check([*asks, *possible])
        needed = Counter(dict.fromkeys((ask.request.judge for ask in possible), 0))
        needed.update(ask.request.judge for ask in asks)
        return needed

    def go(self, budget: Budget, needed: Collection[str]) -> End:
        """Judge until nothing is left, the money is spent, every judge is given up, or a signal comes.

        That a judge cannot work at all is known before a request is paid for.
        """
        answers = self.runs[0].store.answers
        askers = {judge.name: _Asker(judge, self, answers, budget) for judge in self.jury.models}
        asyncio.run(_check_servers([askers[name].judge_engine for name in needed], budget))

        def wake() -> None:
            for asker in askers.values():
                asker.queue.wake()

        budget.freed = wake
        try:
            with collector_sparing(), signals_call(lambda: self._interrupt(list(askers.values()))):
                while self._round(askers):
                    for run in self.runs:
                        run.store.answers.flush()
        except KeyboardInterrupt:
            if self._signals_seen > 1:
                raise
        finally:
            for asker in askers.values():
                asker.end()
        self._end.interrupted, self._end.out_of_money = self._signals_seen > 0, budget.exhausted
        return self._end

    def _round(self, askers: Mapping[str, _Asker]) -> bool:
        """Ask all that is open now, and wait for it; False where that is nothing."""
        self._asks, shared = {}, False
        for ask in self.pending():
            if ask.question in self._over or askers[ask.request.judge].over:
                continue
            others = (run.store for run in self.runs if run.store is not ask.store)
            if given := next((store.said[ask.key] for store in others if ask.key in store.said), None):
                ask.store.copy(given)
                shared = True
            else:
                self._asks.setdefault(ask.key, []).append(ask)
        requests: dict[str, list[Request]] = {}
        for key, (ask, *_) in self._asks.items():
            request = Request(key, ask.task.name, ask.case.document, [], {}, text=ask.text)
            requests.setdefault(ask.request.judge, []).append(request)
        jobs = {name: Job() for name in requests}
        for name, job in jobs.items():
            askers[name].begin()
            askers[name].add(job, requests[name])
        for name, job in jobs.items():
            while not job.over.wait(LOOK):
                for run in self.runs:
                    run.store.answers.check()
            if isinstance(error := askers[name].ended, BaseException):
                raise error
        return bool(jobs) or shared

    def _interrupt(self, askers: Sequence[_Asker]) -> None:
        """The first signal lets requests that may be charged come home; the second does not."""
        self._signals_seen += 1
        if self._signals_seen > 1 or not any(asker.under_way for asker in askers):
            raise KeyboardInterrupt
        for asker in askers:
            threading.Thread(target=asker.stop).start()  # this one may hold the locks
            asker.engine.stop()
        self.say(WAITING)

    # ------------------------------------------------------------------ what becomes of a request

    def rendered(self, request: Request) -> Request:
        """With the conversation that the judge gets, which is not made before its turn."""
        ask = self._asks[request.key][0]
        messages, schema = ask.rubric.messages(ask.request.texts), ask.rubric.schema
        return replace(request, prompt=messages, settings={"schema": schema})

    def sending(self, request: Request, intent: float) -> None:
        """On the disk before the request leaves: it may be paid for, whatever becomes of this process."""
        ask = self._asks[request.key][0]
        with self._lock:
            ask.keep(Intent(intent))
        ask.store.answers.flush()

    def came(self, request: Request, outcome: Outcome, asker: _Asker, settles: float | None) -> float | None:
        """Keep what a judge said; US dollars that it cost, None where nobody knows."""
        judge, same = asker.judge, self._asks[request.key]
        settled = {} if judge.price is None or settles is None else {"settles": settles}
        with self._lock:
            if isinstance(outcome, Fault):
                self._see_fault(outcome, asker)
                for ask in same:
                    ask.keep(outcome, settled if ask is same[0] else {})
                self._ended(request, judge, outcome)
                return 0.0
            self._given_up[judge.name] = 0
            usage, cost = usage_of(outcome, messages_of(request)), None
            if judge.price is not None:
                cost = judge.spent(usage) if usage.counted else asker.most(request)
            read = _read(same[0], outcome)
            served = outcome.model if outcome.model != judge.model else ""
            reply = replace(outcome, usage=usage, cost=cost, model=served)
            first, *others = same
            first.keep(reply, {**read, **settled})
            for ask in others:
                ask.store.copy(first.store.said[request.key])
            if "ratings" in read:
                self._ended(request, judge, reply)
            else:
                self._unread[first.question] += 1
                # what fills its budget without chance in it would fill it again
                cut = outcome.finish == "length" and judge.temperature == 0
                if cut or self._unread[first.question] == MAX_REPLIES:
                    self._ended(request, judge, Fault(FaultKind.UNREADABLE, "no verdict"))
            return judge.spent(usage) if cost is None else cost

    def _ended(self, request: Request, judge: Judge, outcome: Outcome) -> None:
        self._over.add(self._asks[request.key][0].question)
        self.show(replace(request, task=judge.name), outcome)

    def _see_fault(self, fault: Fault, asker: _Asker) -> None:
        name, why = asker.judge.name, fault.reason if fault.kind.ends_all else ""
        if fault.kind.is_transient and not asker.judge_engine.may_pass(fault):
            self._given_up[name] += 1
            if self._given_up[name] >= MAX_GIVEN_UP:
                why = f"{self._given_up[name]} requests in a row failed ({fault.reason})"
                asker.judge_engine.give_up(fault)
        if why and name not in self._end.stopped:
            self._end.stopped[name] = why
            self.say(f"judge {name} is given up for now: {why}")


class _Asker(Asker):
    """Asks one judge; the jury keeps what it says."""

    def __init__(self, judge: Judge, judging: Judging, answers: Answers, budget: Budget) -> None:
        self.judge, self._judging, self._begun = judge, judging, False
        self.judge_engine = JudgeEngine(judge, judging.rendered, judging.say, judging.egress)
        super().__init__(self.judge_engine, answers, budget)

    @property
    def under_way(self) -> bool:
        return bool(self._sent)

    def begin(self) -> None:
        """Once; a judge that nothing is asked of gets no connection."""
        if not self._begun:
            self._begun = True
            super().begin()

    def end(self) -> None:
        if self._begun:
            super().end()

    def most(self, request: Request) -> float:
        return highest_cost(self.judge, messages_of(request), request.settings["schema"])

    def sending(self, request: Request, intent: float | None) -> None:
        if intent is not None and self.judge.price is not None:
            self._judging.sending(request, intent)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        return self._judging.came(request, outcome, self, settles)


async def _check_servers(engines: Sequence[JudgeEngine], budget: Budget) -> None:
    faults = await asyncio.gather(*(engine.fault(budget) for engine in engines))
    broken = [f"{engine.judge.name}: {fault}" for engine, fault in zip(engines, faults, strict=True) if fault]
    if broken:
        remedy = "start the server, or correct base_url, model or key of that judge in the jury file"
        raise MedtasksError("; ".join(broken), where="--jury", remedy=f"{remedy}; nothing was asked yet")


def _read(ask: Ask, reply: Answer) -> dict[str, Any]:
    """What a reply says: `ratings` and `verdict`, or why it says nothing."""
    try:
        verdict = ask.rubric.read(reply.text, ask.request.texts)
    except Exception as error:  # whatever a reply brings about is the fault of its request alone
        own = str(error) if isinstance(error, UnreadableError) else f"unreadable ({type(error).__name__})"
        return {"unreadable": SHORTFALLS.get(reply.finish, own)}
    return {"ratings": ask.case.ratings(ask.request, verdict), "verdict": verdict}
