"""The loop: cases -> requests -> verdicts -> further requests, until nothing is left to ask."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.engines.http import FIRST_PAUSE, Failed, Retry
from medtasks_ext.engines.records import Fault
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.budget import Budget, estimate, highest_cost
from medtasks_ext.judge.cases import response_hash
from medtasks_ext.judge.client import Endpoint, n_bytes, shortfall, usage_of
from medtasks_ext.judge.jury import HUMAN
from medtasks_ext.judge.procedures import PROCEDURES, Judged, adjudication
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.judge.store import Usage
from medtasks_ext.privacy import shows_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from medtasks_ext.engines.records import Answer
    from medtasks_ext.judge.budget import Estimate
    from medtasks_ext.judge.cases import Case, JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.procedures import Request
    from medtasks_ext.judge.protocol import Rubric
    from medtasks_ext.judge.store import JudgementStore

#: Tries of a request that fails on the way, and replies asked for where they cannot be read.
MAX_TRIES, MAX_REPLIES = 8, 3
#: Requests in a row that use up their tries before the judge is given up for this call.
MAX_GIVEN_UP = 3
#: How often judgements are brought to the disk: what a power cut can cost.
SYNC_SECONDS = 1.0
NOT_ASKED = "not asked yet"


class Ask(NamedTuple):
    """One request that a response still needs."""

    key: str
    task: JudgedTask
    case: Case
    request: Request
    store: JudgementStore

    @property
    def rubric(self) -> Rubric:
        """How it is put and read."""
        return self.case.rubric_of(self.request)

    @property
    def quotable(self) -> bool:
        """Whether messages may quote a server, which may quote the texts."""
        return self.task.open_access or self.case.synthetic or shows_text()


@dataclass
class Outcome:
    """How a call ended.

    Attributes:
        stopped: judge -> why it was given up.
        interrupted: a signal ended it.
        out_of_money: the limit ended it.
    """

    stopped: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    out_of_money: bool = False


class RunToJudge(NamedTuple):
    """A run folder's judged tasks and its judgements."""

    tasks: list[JudgedTask]
    store: JudgementStore


def done_requests(task: JudgedTask, case: Case, jury: Jury, store: JudgementStore) -> list[Judged]:
    """What has been judged of a case under the task's protocol, further rounds and physicians included."""
    return [judged for _, judged in _rounds(task, case, jury, store) if judged is not None]


def open_requests(task: JudgedTask, case: Case, jury: Jury, store: JudgementStore) -> list[Ask]:
    """What a case still needs, as far as is known before the answers to it are there.

    Among it may be a physician's decision, which no model is asked for.
    """
    return [ask for ask, judged in _rounds(task, case, jury, store) if judged is None]


def _rounds(
    task: JudgedTask, case: Case, jury: Jury, store: JudgementStore
) -> list[tuple[Ask, Judged | None]]:
    if not case.asked:
        return []
    protocol = task.rubric.protocol
    procedure, panel = PROCEDURES[protocol.procedure], protocol.panel(jury)
    identities = {HUMAN: {"name": HUMAN}, **{judge.name: judge.identity() for judge in jury.models}}
    found: dict[str, tuple[Ask, Judged | None]] = {}
    while True:
        done = [judged for _, judged in found.values() if judged is not None]
        new = 0
        for request in procedure(case.subject, panel, done):
            key = task.key(identities[request.judge], case, request)
            if key not in found:
                known = store.by_key.get(key)
                ask = Ask(key, task, case, request, store)
                found[key] = (ask, Judged(request, known.ratings) if known else None)
                new += known is not None
        if not new:
            return list(found.values())


class Engine:
    """Asks the judges of a jury about runs.

    Args:
        jury: the judges.
        runs: what to judge, each with its open store.
        budget: what it may cost.
        report: called with (judge, whether it gave a judgement) after each request.
        say: called with a line for the user.
    """

    def __init__(
        self,
        jury: Jury,
        runs: list[RunToJudge],
        budget: Budget,
        report: Callable[[str, bool], None] = lambda judge, judged: None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.jury, self.runs, self.budget = jury, runs, budget
        self.report, self.say = report, say
        self.outcome = Outcome()
        self._stop = asyncio.Event()
        self._under_way = 0
        self._retry = Retry(MAX_TRIES - 1, FIRST_PAUSE)
        self._given_up = dict.fromkeys((judge.name for judge in jury.models), 0)

    def pending(self) -> list[Ask]:
        """All requests that can be sent now."""
        return [
            ask
            for run in self.runs
            for task in run.tasks
            for case in task.cases
            for ask in open_requests(task, case, self.jury, run.store)
            if ask.request.judge != HUMAN
        ]

    def possible(self, asks: Iterable[Ask]) -> list[Ask]:
        """Requests to the adjudicator that the answers to others may lead to, at most."""
        if self.jury.adjudicator is None:
            return []
        name, identity = self.jury.adjudicator_name, self.jury.adjudicator.identity()
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

    def estimates(self, asks: Iterable[Ask]) -> list[Estimate]:
        """What sending them would take, per judge."""
        sizes: dict[str, list[int]] = {judge.name: [] for judge in self.jury.models}
        for ask in asks:
            sizes[ask.request.judge].append(n_bytes(ask.rubric.messages(ask.request.texts)))
        return [
            estimate(
                judge,
                sizes[judge.name],
                [usage for run in self.runs for usage in run.store.usage.get(judge.name, ())],
            )
            for judge in self.jury.models
        ]

    async def run(self) -> Outcome:
        """Judge until nothing is left, the money is spent, every judge is given up, or a signal comes.

        Raises:
            MedtasksError: a judge cannot work at all, before any request is paid for.
        """
        tried: set[str] = set()
        with self._signals():
            while asks := [ask for ask in self.pending() if ask.key not in tried]:
                tried.update(ask.key for ask in asks)
                await self._round(asks, first=len(tried) == len(asks))
                if self._ended:
                    break
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
            endpoints = [await stack.enter_async_context(Endpoint(judge, self.say)) for judge in judges]
            if first:
                await self._check(endpoints)
            endpoints = [endpoint for endpoint in endpoints if endpoint.judge.name in queues]
            workers = [
                asyncio.ensure_future(self._work(endpoint, queues[endpoint.judge.name]))
                for endpoint in endpoints
                for _ in range(min(endpoint.judge.max_concurrent, len(queues[endpoint.judge.name])))
            ]
            syncing = asyncio.ensure_future(self._sync_now_and_then())
            try:
                await asyncio.gather(*workers)
            finally:
                for task in (*workers, syncing):
                    task.cancel()
                await asyncio.gather(*workers, syncing, return_exceptions=True)

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
            await self._ask(endpoint, queue.popleft())

    async def _ask(self, endpoint: Endpoint, ask: Ask) -> None:
        """Ask until there is a verdict, or none can be had."""
        messages = ask.rubric.messages(ask.request.texts)
        tries = replies = requests = 0
        while await self._turn(endpoint):
            got = await self._try(endpoint, ask, messages)
            if got is None:
                return
            requests += 1
            if isinstance(got, Failed):
                tries += 1
                if not self._retry.again(got.fault, tries):
                    self._end(endpoint, ask, got.fault, requests)
                    return
                await self._pause(self._retry.pause(tries, got.after))
                continue
            self._given_up[endpoint.judge.name] = 0
            replies += 1
            last = replies >= MAX_REPLIES
            if self._read(ask, got, messages, usage_of(got, messages), requests, last=last) or last:
                return

    async def _try(
        self, endpoint: Endpoint, ask: Ask, messages: list[dict[str, str]]
    ) -> Answer | Failed | None:
        """One request, for which money is set aside; None if the limit does not allow it."""
        reserve = highest_cost(endpoint.judge, n_bytes(messages))
        if not await self.budget.reserve(reserve):
            return None
        spent, unsure = 0.0, reserve  # unless a reply says otherwise
        self._under_way += 1
        try:
            got = await endpoint.complete(messages, ask.rubric.schema, quote=ask.quotable)
            if isinstance(got, Failed):
                unsure = reserve if got.fault.maybe_paid else 0.0
            else:
                usage = usage_of(got, messages)
                spent, unsure = endpoint.judge.cost(usage.prompt_tokens, usage.completion_tokens), 0.0
            return got
        finally:
            self._under_way -= 1
            await self.budget.settle(reserve, spent=spent, unsure=unsure)

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
            ask: the request.
            outcome: of it.
            charged: False where the same reply is recorded in another run.
        """
        if isinstance(outcome, Fault):
            self._fail(ask, outcome.reason, Usage(), 1, more={"fault": outcome.kind.value})
            return False
        messages = ask.rubric.messages(ask.request.texts)
        usage = replace(usage_of(outcome, messages), batch=True) if charged else Usage()
        return self._read(ask, outcome, messages, usage, 1, last=True)

    def _read(
        self,
        ask: Ask,
        reply: Answer,
        messages: list[dict[str, str]],
        usage: Usage,
        requests: int,
        *,
        last: bool,
    ) -> bool:
        """Keep the verdict of a reply; False if it holds none."""
        try:
            verdict = ask.rubric.read(reply.text, messages)
        except UnreadableError as error:
            reason, more = shortfall(reply) or str(error), {"request_id": reply.request_id}
            self._fail(ask, reason, usage, requests, last=last, more=more if usage.batch else {})
            return False
        record = {
            **self._common(ask, usage, requests),
            "ratings": ask.case.ratings(ask.request, verdict),
            "verdict": verdict,
        }
        ask.store.add(ask.task.name, record)
        self.report(ask.request.judge, True)
        return True

    def _fail(
        self,
        ask: Ask,
        reason: str,
        usage: Usage,
        requests: int,
        *,
        last: bool = True,
        more: Mapping[str, str] | None = None,
    ) -> None:
        ask.store.fail(
            ask.task.name, {**self._common(ask, usage, requests), "reason": reason, **(more or {})}
        )
        if last:
            self.report(ask.request.judge, False)

    def _common(self, ask: Ask, usage: Usage, requests: int) -> dict[str, Any]:
        return {
            "key": ask.key,
            "judge": ask.request.judge,
            "model": next(item.model for item in self.jury.models if item.name == ask.request.judge),
            "protocol": ask.rubric.judging.protocol,
            "prompt_version": ask.rubric.version,
            "document": ask.case.document,
            **({} if ask.case.run is None else {"run": ask.case.run}),
            **({} if ask.request.point is None else {"point": ask.request.point}),
            "response_hash": response_hash(ask.case),
            "usage": usage.record(),
            "requests": requests,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }

    def _end(self, endpoint: Endpoint, ask: Ask, fault: Fault, requests: int) -> None:
        """A request that gets no reply: what it means for its judge."""
        if fault.kind.ends_all:
            self._drop(endpoint, fault.reason)
            return
        self._fail(ask, fault.reason, Usage(), requests)
        if not fault.kind.may_pass:
            return
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
