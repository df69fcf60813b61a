"""A jury as a planner of a stream: cases -> requests -> verdicts -> further requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.collector import collector_sparing
from medtasks_ext.egress import AskedServer, Egress, Text
from medtasks_ext.engines.budget import Budget, n_bytes
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request, Usage
from medtasks_ext.engines.stream import Planner, Settled, Stream
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.asks import Ask, RunToJudge, open_requests
from medtasks_ext.judge.budget import CostEstimate, estimate, highest_cost
from medtasks_ext.judge.engine import JudgeEngine, messages_of, shortfall, usage_of
from medtasks_ext.judge.jury import HUMAN, Judge, Jury
from medtasks_ext.judge.procedures import adjudication
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.runs.outcomes import About, Intent, Judgement

if TYPE_CHECKING:
    from medtasks_ext.runner.planner import Watcher

#: Replies asked for where they cannot be read.
MAX_REPLIES = 3
#: Requests in a row that use up their tries before the judge is given up for this call.
MAX_GIVEN_UP = 3


class RequestUsage(NamedTuple):
    tries: int  # requests that were sent for it
    usage: Usage | None = None  # of the reply; None where nothing is charged here
    cost: float | None = None  # of the reply in US dollars; None where no price is known
    settles: float | None = None  # US dollars of its intent, if that is settled
    request_id: str = ""  # of the reply's server, in a batch


@dataclass
class End:
    stopped: dict[str, str] = field(default_factory=dict)  # judge -> why it was given up
    interrupted: bool = False  # a signal ended it
    out_of_money: bool = False  # the limit ended it


class JuryPlanner(Planner):
    """Asks the judges of a jury about runs; one reply serves all runs that have the same answer.

    Args:
        watcher: sees the end of each request, under the name of its judge.
        final: keys of requests that are not asked again, whatever became of them.
    """

    follows = True

    def __init__(
        self,
        jury: Jury,
        runs: list[RunToJudge],
        watcher: Watcher | None = None,
        say: Callable[[str], None] = lambda line: None,
        egress: Egress | None = None,
        final: Collection[str] = (),
    ) -> None:
        super().__init__()
        self._final = frozenset(final)
        self.egress = (egress or Egress.of()).recording(self._note_sent)
        self.jury, self.runs = jury, runs
        self.watcher, self.say = watcher, say
        self.end = End()
        self._judges = {judge.name: judge for judge in jury.models}
        self._engines: dict[str, JudgeEngine] = {}
        self._asks: dict[str, list[Ask]] = {}  # key of each request of this call -> one ask for each run
        self._open = Counter[int]()  # identity of a case -> its requests that have no end yet
        self._sent, self._unread = Counter[str](), Counter[str]()  # tries, and replies without a verdict
        self._given_up = Counter[str]()  # judge -> requests in a row that used up their tries

    def pending(self) -> list[Ask]:
        return [
            ask
            for run in self.runs
            for task in run.tasks
            for case in task.cases
            for ask in open_requests(task, case, self.jury, run.store)
            if ask.request.judge != HUMAN and ask.key not in self._final
        ]

    def possible(self, asks: Iterable[Ask]) -> list[Ask]:
        """Requests to the adjudicator that the answers to others may lead to, at most."""
        if self.jury.adjudicator is None:
            return []
        name, identity = self.jury.adjudicator_name, self.jury.adjudicator.identity_text
        by_key = {}
        for ask in asks:
            protocol = ask.task.rubric.protocol
            if protocol.dispute_above is None or ask.request.judge == name:
                continue
            for request in adjudication(ask.case.subject, protocol.panel(self.jury)):
                key = ask.task.key(identity, ask.case, request)
                if key not in ask.store.by_key:
                    by_key[id(ask.store), key] = Ask(key, ask.task, ask.case, request, ask.store)
        return list(by_key.values())

    def check(self, asks: Iterable[Ask]) -> None:
        """Refuse requests with text that a judge's server may not receive, before any is sent."""
        asks = list(asks)
        for judge in self.jury.models:
            texts = dict.fromkeys(ask.text for ask in asks if ask.request.judge == judge.name)
            self.egress.check(judge.base_url, texts)

    def _note_sent(self, place: AskedServer, text: Text) -> None:
        for run in self.runs:
            if any(task.name == text.dataset for task in run.tasks):
                run.store.sent.add(place, text)

    def estimates(self, asks: Iterable[Ask]) -> list[CostEstimate]:
        sizes: dict[str, list[int]] = {judge.name: [] for judge in self.jury.models}
        for ask in asks:
            sizes[ask.request.judge].append(n_bytes(ask.rubric.messages(ask.request.texts)))
        return [
            estimate(
                judge,
                sizes[judge.name],
                [
                    reply.usage
                    for run in self.runs
                    for reply in run.store.replies_of(judge.name)
                    if reply.usage
                ],
            )
            for judge in self.jury.models
        ]

    def open(self) -> Counter[str]:
        """Judge -> requests to it, before any is sent; 0 where some may follow from the answers to others."""
        asks = self.pending()
        possible = self.possible(asks)
        self.check([*asks, *possible])
        for ask in asks:
            self._add(ask)
        needed = Counter(dict.fromkeys((ask.request.judge for ask in possible), 0))
        needed.update(ask.request.judge for ask in asks)
        return needed

    def engines(self) -> dict[str, JudgeEngine]:
        self._engines = {
            judge.name: JudgeEngine(judge, lambda line: self.say(line), self.egress)
            for judge in self.jury.models
        }
        return self._engines

    def _add(self, ask: Ask) -> bool:
        """Whether nobody has been asked it in this call."""
        same = self._asks.setdefault(ask.key, [])
        same.append(ask)
        self._open[id(ask.case)] += 1
        return len(same) == 1

    def requests(self, engine: str) -> Generator[Request, None, None]:
        with self.lock:
            own = [same[0] for same in self._asks.values() if same[0].request.judge == engine]
        for ask in own:
            yield _request(ask)

    def highest_cost(self, request: Request) -> float:
        judge = self._judges[self._asks[request.key][0].request.judge]
        return highest_cost(judge, messages_of(request), request.settings["schema"])

    def sending(self, request: Request, intent: float | None) -> None:
        self._sent[request.key] += 1
        ask = self._asks[request.key][0]
        judge = self._judges[ask.request.judge]
        if intent is not None and judge.price is not None:
            ask.store.add(ask.task.name, ask.key, ask.case.document, About(judge.name), Intent(intent))

    def visit(self) -> None:
        for run in self.runs:
            run.store.sync()

    def outcome(self, request: Request, outcome: Outcome, settles: float | None) -> Settled:
        same = self._asks[request.key]
        judge = self._judges[same[0].request.judge]
        sent = self._sent[request.key]
        charged = RequestUsage(sent, settles=None if judge.price is None else settles)
        if isinstance(outcome, Fault):
            self._see_fault(judge.name, outcome)
            for ask in same:
                self._fail(ask, outcome, charged if ask is same[0] else RequestUsage(sent))
            self._show(request, judge, outcome)
            return Settled(0.0, self._ended(same))
        self._given_up[judge.name] = 0
        usage, cost = _taken(judge, outcome, request)
        charged = charged._replace(usage=usage, cost=cost)
        self._unread[request.key] += 1
        # what fills its budget without chance in it would fill it again
        cut = outcome.finish == "length" and judge.temperature == 0
        last = cut or self._unread[request.key] == MAX_REPLIES
        read = [self._read(ask, outcome, charged if ask is same[0] else RequestUsage(sent)) for ask in same]
        spent = judge.spent(usage) if cost is None else cost
        if not (all(read) or last):
            return Settled(spent, [(judge.name, request)])
        unread = Fault(FaultKind.UNREADABLE, "no verdict")
        self._show(request, judge, replace(outcome, cost=cost) if all(read) else unread)
        return Settled(spent, self._ended(same))

    def _ended(self, same: list[Ask]) -> list[tuple[str, Request]]:
        """The further requests of cases without open ones."""
        follow = []
        for ask in same:
            self._open[id(ask.case)] -= 1
            if self._open[id(ask.case)]:
                continue
            for new in open_requests(ask.task, ask.case, self.jury, ask.store):
                known = self._asks.get(new.key, ())
                if new.request.judge == HUMAN or new.key in self._final or _among(new, known):
                    continue
                given = [item.store.by_key[new.key] for item in known if new.key in item.store.by_key]
                if given:  # by a judge who was asked about the same answer of another run
                    new.add(
                        self._judges[new.request.judge], replace(given[0], usage=None, cost=None, tries=0)
                    )
                elif self._add(new):
                    follow.append((new.request.judge, _request(new)))
        return follow

    def _read(self, ask: Ask, reply: Answer, charged: RequestUsage) -> bool:
        """Keep the verdict of a reply; False if it holds none."""
        try:
            verdict = ask.rubric.read(reply.text, ask.request.texts)
        except Exception as error:  # whatever a reply brings about is the fault of its request alone
            own = str(error) if isinstance(error, UnreadableError) else f"unreadable ({type(error).__name__})"
            self._fail(ask, Fault(FaultKind.UNREADABLE, shortfall(reply) or own), charged)
            return False
        ratings = ask.case.ratings(ask.request, verdict)
        judge = self._judges[ask.request.judge]
        served = reply.model if reply.model != judge.model else ""
        entry = Judgement(ratings, verdict, charged.usage, charged.cost, charged.tries, served=served)
        ask.add(judge, entry, charged.settles)
        return True

    def _fail(self, ask: Ask, fault: Fault, charged: RequestUsage) -> None:
        entry = replace(
            fault, tries=charged.tries, usage=charged.usage, cost=charged.cost, request_id=charged.request_id
        )
        ask.add(self._judges[ask.request.judge], entry, charged.settles)

    def _show(self, request: Request, judge: Judge, outcome: Outcome) -> None:
        if self.watcher is not None:
            named = replace(request, task=judge.name)
            if isinstance(outcome, Answer):
                self.watcher.answered(named, outcome)
            else:
                self.watcher.faulted(named, outcome)

    def _see_fault(self, name: str, fault: Fault) -> None:
        engine = self._engines[name]
        if fault.kind.ends_all:
            self._drop(name, fault.reason)
        elif fault.kind.is_transient and engine.is_exhausted(fault):
            self._given_up[name] += 1
            if self._given_up[name] >= MAX_GIVEN_UP:
                self._drop(name, f"{self._given_up[name]} requests in a row failed ({fault.reason})")
                engine.give_up(fault)

    def _drop(self, name: str, reason: str) -> None:
        if name not in self.end.stopped:
            self.end.stopped[name] = reason
            self.say(f"judge {name} is given up for now: {reason}")


def judge_all(planners: Sequence[JuryPlanner], budget: Budget, needed: Collection[str]) -> End:
    """Judge until nothing is left, the money is spent, every judge is given up, or a signal comes.

    One stream asks all planners, which are open, and no judge belongs to two of them. That a judge cannot
    work at all is known before a request is paid for.
    """
    engines = {name: engine for planner in planners for name, engine in planner.engines().items()}
    asyncio.run(_check_servers([engine for name, engine in engines.items() if name in needed], budget))
    end = End()
    for planner in planners:
        planner.end = end
    stream = Stream(planners, engines, budget=budget, say=lambda line: planners[0].say(line))
    try:
        with collector_sparing():
            stream.go()
    except KeyboardInterrupt:
        if stream.signals != 1:
            raise
    end.out_of_money, end.interrupted = budget.exhausted, stream.signals > 0
    return end


async def _check_servers(engines: Sequence[JudgeEngine], budget: Budget) -> None:
    faults = await asyncio.gather(*(engine.fault(budget) for engine in engines))
    broken = [f"{engine.judge.name}: {fault}" for engine, fault in zip(engines, faults, strict=True) if fault]
    if broken:
        raise MedtasksError(
            "; ".join(broken),
            where="--jury",
            remedy="start the server, or correct base_url, model or key of that judge in the jury file; "
            "nothing was asked yet",
        )


def _request(ask: Ask) -> Request:
    messages, settings = ask.rubric.messages(ask.request.texts), {"schema": ask.rubric.schema}
    return Request(ask.key, ask.task.name, ask.case.document, messages, settings, text=ask.text)


def _among(ask: Ask, asks: Iterable[Ask]) -> bool:
    return any(known.store is ask.store and known.case is ask.case for known in asks)


def _taken(judge: Judge, answer: Answer, request: Request) -> tuple[Usage, float | None]:
    """What a reply took, and its price where there is one: the highest where no count is believed."""
    messages = messages_of(request)
    usage = usage_of(answer, messages)
    if judge.price is None or usage.counted:
        return usage, None if judge.price is None else judge.spent(usage)
    return usage, highest_cost(judge, messages, request.settings["schema"])
