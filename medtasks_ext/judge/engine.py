"""The loop: cases -> requests -> verdicts -> further requests, until nothing is left to ask."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from medtasks_ext.collector import collector_sparing
from medtasks_ext.egress import Egress, Place, Text
from medtasks_ext.engines.http import FIRST_PAUSE, Failed, Retry
from medtasks_ext.engines.records import Answer, Fault
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.asks import Ask, RunToJudge, open_requests
from medtasks_ext.judge.budget import Budget, Estimate, estimate, highest_cost
from medtasks_ext.judge.client import Endpoint, n_bytes, shortfall, usage_of
from medtasks_ext.judge.jury import HUMAN, Judge, Jury
from medtasks_ext.judge.procedures import adjudication
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.runs.judgements import About, Failure, FailureKind, Intent, Judgement, Usage

#: Tries of a request that fails on the way, and replies asked for where they cannot be read.
MAX_TRIES, MAX_REPLIES = 8, 3
#: Requests in a row that use up their tries before the judge is given up for this call.
MAX_GIVEN_UP = 3
#: Requests that are under way or ready, for each that may be under way.
READY = 2
#: How often judgements are brought to the disk: what a power cut can cost.
SYNC_SECONDS = 1.0


class Took(NamedTuple):
    """What became of a request, apart from the verdict."""

    requests: int  # that were sent for it
    usage: Usage | None = None  # of the reply; None where nothing is charged here
    settles: float | None = None  # US dollars of its intent, if that is settled


@dataclass
class Outcome:
    """How a call ended."""

    stopped: dict[str, str] = field(default_factory=dict)  # judge -> why it was given up
    interrupted: bool = False  # a signal ended it
    out_of_money: bool = False  # the limit ended it


@dataclass
class _Trying:
    """How far a request is."""

    requests: int = 0  # that were sent for it
    tries: int = 0  # in a row without a reply
    money: float | None = None  # US dollars that are set aside
    fault: Fault | None = None  # of the last try


class Engine:
    """Asks the judges of a jury about runs.

    Args:
        runs: what to judge, each with its open store.
        report: called with (judge, whether it gave a judgement) after each request.
        final: keys of requests that are not asked again, whatever became of them.
    """

    def __init__(
        self,
        jury: Jury,
        runs: list[RunToJudge],
        budget: Budget,
        report: Callable[[str, bool], None] = lambda judge, judged: None,
        say: Callable[[str], None] = lambda line: None,
        egress: Egress | None = None,
        final: Collection[str] = (),
    ) -> None:
        self._final = frozenset(final)
        self.egress = (egress or Egress.of()).recording(self._note_sent)
        self.jury, self.runs, self.budget = jury, runs, budget
        self.report, self.say = report, say
        self.outcome = Outcome()
        self._stop = asyncio.Event()
        self._at_work = asyncio.Lock()
        self._under_way = 0
        self._retry = Retry(MAX_TRIES - 1, FIRST_PAUSE)
        self._judges = {judge.name: judge for judge in jury.models}
        self._given_up = dict.fromkeys((judge.name for judge in jury.models), 0)

    def pending(self) -> list[Ask]:
        """All requests that can be sent now."""
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
        found = {}
        for ask in asks:
            protocol = ask.task.rubric.protocol
            if protocol.dispute_above is None or ask.request.judge == name:
                continue
            for request in adjudication(ask.case.subject, protocol.panel(self.jury)):
                key = ask.task.key(identity, ask.case, request)
                if key not in ask.store.by_key:
                    found[id(ask.store), key] = Ask(key, ask.task, ask.case, request, ask.store)
        return list(found.values())

    def check(self, asks: Iterable[Ask]) -> None:
        """Refuse requests with text that a judge's server may not receive, before any is sent.

        Raises:
            MedtasksError: names tasks and host.
        """
        asks = list(asks)
        for judge in self.jury.models:
            texts = dict.fromkeys(ask.text for ask in asks if ask.request.judge == judge.name)
            self.egress.check(judge.base_url, texts)

    def _note_sent(self, place: Place, text: Text) -> None:
        """Note in each run that has the task where its texts go."""
        for run in self.runs:
            if any(task.name == text.dataset for task in run.tasks):
                run.store.sent.add(place, text)

    def estimates(self, asks: Iterable[Ask]) -> list[Estimate]:
        """What sending them would take, per judge."""
        sizes: dict[str, list[int]] = {judge.name: [] for judge in self.jury.models}
        for ask in asks:
            sizes[ask.request.judge].append(n_bytes(ask.rubric.messages(ask.request.texts)))
        return [
            estimate(
                judge,
                sizes[judge.name],
                [usage for run in self.runs for usage in run.store.usage_of(judge.name)],
            )
            for judge in self.jury.models
        ]

    async def run(self) -> Outcome:
        """Judge until nothing is left, the money is spent, every judge is given up, or a signal comes.

        Raises:
            MedtasksError: a judge cannot work at all, or its server may not receive a text; no request
                is paid for before that.
        """
        asks = self.pending()
        self.check([*asks, *self.possible(asks)])
        tried: set[str] = set()
        with self._signals(), collector_sparing():
            while asks:
                tried.update(ask.key for ask in asks)
                await self._round(asks, first=len(tried) == len(asks))
                if self._ended:
                    break
                asks = [ask for ask in self.pending() if ask.key not in tried]
        self.outcome.out_of_money = self.budget.exhausted
        self.outcome.interrupted = self._stop.is_set()
        return self.outcome

    @property
    def _ended(self) -> bool:
        return self._stop.is_set() or self.budget.exhausted

    async def _round(self, asks: list[Ask], *, first: bool) -> None:
        queues: dict[str, deque[Ask]] = {}
        for ask in asks:
            queues.setdefault(ask.request.judge, deque()).append(ask)
        wanted = {*queues, *(ask.request.judge for ask in self.possible(asks))} if first else set(queues)
        judges = [judge for judge in self.jury.models if judge.name in wanted]
        async with AsyncExitStack() as stack:
            endpoints = [
                await stack.enter_async_context(Endpoint(judge, self.say, self.egress)) for judge in judges
            ]
            if first:
                await self._check(endpoints)
            endpoints = [endpoint for endpoint in endpoints if endpoint.judge.name in queues]
            asking = asyncio.gather(
                *(
                    self._work(endpoint, queues[endpoint.judge.name])
                    for endpoint in endpoints
                    for _ in range(
                        min(READY * endpoint.judge.max_concurrent, len(queues[endpoint.judge.name]))
                    )
                )
            )
            both = (asking, asyncio.ensure_future(self._sync_now_and_then()))
            try:
                done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in done:  # a disk that takes nothing ends the asking
                    task.result()
            finally:
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)

    async def _sync_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            for run in self.runs:
                await asyncio.to_thread(run.store.sync)  # a disk may take its time

    async def _check(self, endpoints: list[Endpoint]) -> None:
        faults = await asyncio.gather(*(endpoint.fault() for endpoint in endpoints))
        broken = [
            f"{endpoint.judge.name}: {fault}"
            for endpoint, fault in zip(endpoints, faults, strict=True)
            if fault
        ]
        if broken:
            raise MedtasksError(
                "; ".join(broken),
                where="--jury",
                remedy="start the server, or correct base_url, model or key of that judge in the jury file; "
                "nothing was asked yet",
            )

    async def _work(self, endpoint: Endpoint, queue: deque[Ask]) -> None:
        while queue and not self._ended and not endpoint.stopped:
            ask = queue.popleft()
            async with self._aside():
                messages = ask.rubric.messages(ask.request.texts)
            await self._ask(endpoint, ask, messages)

    @asynccontextmanager
    async def _aside(self) -> AsyncIterator[None]:
        """Work besides sending: a piece at a time, and requests that can go out go out first."""
        async with self._at_work:
            await asyncio.sleep(0)
            yield

    async def _ask(self, endpoint: Endpoint, ask: Ask, messages: list[dict[str, str]]) -> None:
        """Ask until there is a verdict, or none can be had."""
        judge = endpoint.judge
        trying = _Trying()
        for replies in range(1, MAX_REPLIES + 1):
            async with endpoint.places:
                if (got := await self._reply(endpoint, ask, messages, trying)) is None:
                    break
                async with self._aside():
                    usage = _usage(judge, got, messages)
                    took = Took(trying.requests, usage, _settled(judge, trying.money))
                    found = self._read(ask, got, messages, took, last=replies == MAX_REPLIES)
            await self.budget.settle(trying.money or 0.0, spent=judge.spent(usage))
            trying.money = None
            if found:
                return
        if (fault := trying.fault) is not None:
            took = Took(trying.requests, settles=_settled(judge, trying.money))
            self._fail(ask, fault.kind, fault.reason, took)
        if trying.money is not None:
            await self.budget.settle(trying.money)

    async def _reply(
        self, endpoint: Endpoint, ask: Ask, messages: list[dict[str, str]], trying: _Trying
    ) -> Answer | None:
        """Send until there is a reply; None if none can be had.

        Money is set aside for a request, and its intent is on record before it is sent. A reply settles the
        intent; a fault that cost nothing leaves the money to the next try. Where a reply may have been
        charged and never came, the intent stays as it is, which counts as spent.
        """
        while await self._turn(endpoint):
            if trying.money is None:
                trying.money = await self._set_aside(ask, messages)
                if trying.money is None:
                    break
            got = await self._send(endpoint, ask, messages)
            trying.requests += 1
            if isinstance(got, Answer):
                trying.fault, trying.tries = None, 0
                self._given_up[endpoint.judge.name] = 0
                return got
            trying.fault, trying.tries = got.fault, trying.tries + 1
            if got.fault.maybe_paid:
                await self.budget.settle(trying.money, unsure=trying.money)
                trying.money = None
            if not self._retry.again(got.fault, trying.tries):
                self._ended_in(got.fault, endpoint)
                break
            await self._pause(self._retry.pause(trying.tries, got.after))
        return None

    async def _set_aside(self, ask: Ask, messages: list[dict[str, str]]) -> float | None:
        """What the request may cost at most, set aside and on record; None if the limit does not allow it."""
        judge = self._judges[ask.request.judge]
        cost = highest_cost(judge, n_bytes(messages))
        if not await self.budget.reserve(cost):
            return None
        if judge.price is not None:
            about = About(ask.key, judge.name, ask.case.document)
            ask.store.add(ask.task.name, about, Intent(cost))
        return cost

    async def _send(self, endpoint: Endpoint, ask: Ask, messages: list[dict[str, str]]) -> Answer | Failed:
        """One request."""
        self._under_way += 1
        try:
            return await endpoint.complete(messages, ask.rubric.schema, quote=ask.quotable, text=ask.text)
        finally:
            self._under_way -= 1

    async def _turn(self, endpoint: Endpoint) -> bool:
        """Wait for the endpoint's next turn; False if there is none any more."""
        if (seconds := endpoint.wait()) > 0:
            await self._pause(seconds)
        return not self._ended and not endpoint.stopped

    async def _pause(self, seconds: float) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), timeout=seconds)

    # ------------------------------------------------------------------ what becomes of a request

    def take(self, ask: Ask, outcome: Answer | Fault, *, charged: bool = True) -> bool:
        """Record what a batch gave for a request; whether it is a verdict.

        Args:
            charged: False where the same reply is recorded in another run.
        """
        if isinstance(outcome, Fault):
            self._fail(ask, outcome.kind, outcome.reason, Took(1))
            return False
        messages = ask.rubric.messages(ask.request.texts)
        judge = self._judges[ask.request.judge]
        usage = _usage(judge, outcome, messages, batch=True) if charged else None
        request_id = outcome.request_id if charged else ""
        return self._read(ask, outcome, messages, Took(1, usage), last=True, request_id=request_id)

    def _read(
        self,
        ask: Ask,
        reply: Answer,
        messages: list[dict[str, str]],
        took: Took,
        *,
        last: bool,
        request_id: str = "",
    ) -> bool:
        """Keep the verdict of a reply; False if it holds none."""
        try:
            verdict = ask.rubric.read(reply.text, ask.request.texts)
        except Exception as error:  # whatever a reply brings about is the fault of its request alone
            own = str(error) if isinstance(error, UnreadableError) else f"unreadable ({type(error).__name__})"
            reason = shortfall(reply) or own
            self._fail(ask, "no_verdict", reason, took, last=last, request_id=request_id)
            return False
        ratings = ask.case.ratings(ask.request, verdict)
        judge = self._judges[ask.request.judge]
        served = reply.model if reply.model != judge.model else ""
        entry = Judgement(ratings, verdict, took.usage, took.requests, took.settles, served=served)
        ask.store.add(ask.task.name, ask.about(judge), entry)
        self.report(ask.request.judge, True)
        return True

    def _fail(
        self,
        ask: Ask,
        kind: FailureKind,
        reason: str,
        took: Took,
        *,
        last: bool = True,
        request_id: str = "",
    ) -> None:
        entry = Failure(kind, reason, took.usage, took.requests, took.settles, request_id)
        ask.store.add(ask.task.name, ask.about(self._judges[ask.request.judge]), entry)
        if last:
            self.report(ask.request.judge, False)

    def _ended_in(self, fault: Fault, endpoint: Endpoint) -> None:
        """A request gets no reply: what it means for its judge."""
        if fault.kind.ends_all:
            self._drop(endpoint, fault.reason)
        elif fault.kind.may_pass:
            name = endpoint.judge.name
            self._given_up[name] += 1
            if self._given_up[name] >= MAX_GIVEN_UP:
                self._drop(endpoint, f"{self._given_up[name]} requests in a row failed ({fault.reason})")

    def _drop(self, endpoint: Endpoint, reason: str) -> None:
        if not endpoint.stopped:
            endpoint.stopped = reason
            self.outcome.stopped[endpoint.judge.name] = reason
            self.say(f"judge {endpoint.judge.name} is given up for now: {reason}")

    # ------------------------------------------------------------------ signals

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal lets requests under way come home (they are paid for), the second does not."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def stop() -> None:
            if self._stop.is_set() and task is not None:
                task.cancel()
                return
            self._stop.set()
            if self._under_way:
                self.say(
                    f"waiting for {self._under_way} replies that are under way (once more: stop at once)"
                )

        handled = []
        with suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop)
                handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)


def _usage(judge: Judge, answer: Answer, messages: list[dict[str, str]], *, batch: bool = False) -> Usage:
    """What a reply took, and its price where there is one."""
    usage = replace(usage_of(answer, messages), batch=batch)
    return usage if judge.price is None else replace(usage, cost=judge.spent(usage))


def _settled(judge: Judge, money: float | None) -> float | None:
    """What a record settles: requests to a judge without a price have no intent."""
    return None if judge.price is None else money
