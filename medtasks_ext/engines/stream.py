"""One stream: what planners ask goes into engines, and every outcome is stored as it comes.

A planner asks: the documents of a run, a jury, a study. Its requests are built ahead, in a thread for each
engine. Engines answer in the caller's thread; those that wait for servers share a loop there. The keeper's
thread brings what came to the disk.

How fast one process asks: one thread builds and tokenises some 430,000 tokens of prompts a second on one
core, and the process ends at about 850 requests a second. By the assumptions of `medtasks plan`, eight H100
read 200,000 tokens a second with 8 billion parameters, 1,600,000 with one. More threads would not help
much. A record that has to be cut is tokenised once whole, and once as it is sent.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import WAIT_SECONDS, Engine
from medtasks_ext.engines.feed import ThreadedFeed
from medtasks_ext.engines.records import Fault, FaultKind, Outcome, Request
from medtasks_ext.privacy import what_happened

#: Seconds between two visits of the keeper: an answer is on the disk after that time at the latest.
KEEP_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Settled:
    spent: float | None = 0.0  # US dollars; None where nobody knows the price
    follow: Sequence[tuple[str, Request]] = ()  # what is asked next, each with the name of its engine


class Planner(ABC):
    """Asks, and takes what becomes of its requests.

    `sending` and `outcome` are called in the threads of engines, one call at a time; `visit` in the keeper's.

    Attributes:
        follows: whether an outcome may lead to further requests.
        over: nothing more is wanted, whatever is left.
        lock: held while `sending` or `outcome` runs.
    """

    follows = False

    def __init__(self) -> None:
        self.over = False
        self.lock = threading.RLock()

    @abstractmethod
    def requests(self, engine: str) -> Generator[Request, None, None]:
        """Runs in a thread of its own."""

    def words(self, request: Request, error: Exception) -> str:
        """An error on the way of a request in words, without text that may not be shown."""
        return what_happened(error)

    def highest_cost(self, request: Request) -> float | None:
        """US dollars that a request may cost at most; None where requests cost nothing."""
        return None

    def sending(self, request: Request, intent: float | None) -> None:  # noqa: B027
        """For the first time or once more; `intent`: US dollars that were set aside for it just now."""

    @abstractmethod
    def outcome(self, request: Request, outcome: Outcome, settles: float | None) -> Settled | None:
        """`settles`: US dollars set aside for it; None where none were, or they count as spent."""

    @abstractmethod
    def visit(self) -> None:
        """Bring what is new to the disk, and close what is complete; an error ends the stream."""

    def close(self) -> None:  # noqa: B027
        """Nothing more comes; everything that came is on the disk after this."""


@dataclass(slots=True)
class _Sent:
    planner: Planner
    cost: float | None  # US dollars at most
    aside: float | None  # of them, those that are set aside now
    unsure: int = 0  # tries that may have been charged, and count as spent already


class Stream:
    """Asks until every request of all planners has its outcome; engines may stay open to be asked again."""

    def __init__(
        self,
        planners: Sequence[Planner],
        engines: Mapping[str, Engine],
        *,
        budget: Budget | None = None,
        say: Callable[[str], None] = lambda line: None,
        closes: bool = True,
    ) -> None:
        self._planners, self._engines, self._say, self._closes = planners, engines, say, closes
        self.budget = budget or Budget()
        self.budget.freed = self._wake
        self.signals = 0
        self._planner_of: dict[str, Planner] = {}  # key of a request without outcome -> who asks it
        self._sent: dict[str, _Sent] = {}  # key of a request under way -> what it may cost
        self._in_hand = self._moves = 0  # outcomes that are being stored; counts what is taken and comes back
        self._lock = threading.Lock()  # of the four
        more = self._more if any(planner.follows for planner in planners) else None
        self._feeds = {
            name: ThreadedFeed(
                self._requests(name),
                engine.window,
                may=partial(self._may, engine),
                taken=self._taken,
                more=more,
            )
            for name, engine in engines.items()
        }
        for engine in engines.values():
            engine.again, engine.later = self._again, self._later
        self._at_work = set(engines)
        self._ended = threading.Event()
        self.keeper_error: Exception | None = None

    def go(self) -> None:
        """Ask until every request has its outcome, or no planner wants more, or the budget is exhausted."""
        keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
        keeper.start()
        try:
            with self._signals():
                for feed in self._feeds.values():
                    feed.start()
                self._run()
                for feed in self._feeds.values():
                    feed.close()
        except BaseException:
            self._end(keeper)
            raise
        finally:
            for engine in self._engines.values() if self._closes else ():
                with suppress(Exception):  # what the engine answered is stored
                    engine.close()
        self._end(keeper)
        if self.keeper_error is not None:
            raise self.keeper_error

    def _run(self) -> None:
        if len(self._engines) == 1:
            [(name, engine)] = self._engines.items()
            engine.run(self._feeds[name], self._done)
        elif self._engines:
            asyncio.run(self._run_all())

    async def _run_all(self) -> None:
        tasks = [asyncio.ensure_future(self._ask(name)) for name in self._engines]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, name: str) -> None:
        feed = self._feeds[name]
        while not (feed.ready or feed.over):  # an engine that nothing is asked of opens no connection
            await asyncio.to_thread(feed.wait, WAIT_SECONDS)
        if not feed.over:
            await self._engines[name].ask(feed, self._done)
        self._at_work.discard(name)
        self._wake()

    def _end(self, keeper: threading.Thread) -> None:
        for feed in self._feeds.values():
            with suppress(Exception):  # the engine's own error says more
                feed.close()
        self._ended.set()
        keeper.join()
        for planner in self._planners:
            planner.close()

    def _stop(self) -> None:
        for feed in self._feeds.values():
            feed.stop()

    # ------------------------------------------------------------------ requests, in the feeds' threads

    def _requests(self, name: str) -> Generator[Request, None, None]:
        engine = self._engines[name]
        for planner in self._planners:
            requests = planner.requests(name)
            try:
                for request in requests:
                    if planner.over:
                        break
                    self._planner_of[request.key] = planner
                    ready = self._prepared(planner, engine, request)
                    if isinstance(ready, Fault):
                        self._done(request, ready)
                    else:
                        yield ready
            finally:
                requests.close()

    def _prepared(self, planner: Planner, engine: Engine, request: Request) -> Request | Fault:
        try:
            return engine.prepare(request)
        except Exception as error:  # one prompt must not cost the others
            return Fault(FaultKind.ENGINE, planner.words(request, error))

    def _more(self) -> bool:
        """Whether a further request may come: one is being built, waits, or is under way."""
        moves = self._moves
        at_work = [self._feeds[name] for name in list(self._at_work)]
        busy = bool(self._sent) or self._in_hand > 0 or any(feed.busy for feed in at_work)
        return busy or moves != self._moves

    def _wake(self) -> None:
        for feed in self._feeds.values():
            feed.wake()

    # ------------------------------------------------------------------ outcomes, in the engines' threads

    def _may(self, engine: Engine, request: Request) -> bool:
        """Set money aside for a request that is next; False if there is none now."""
        planner = self._planner_of[request.key]
        cost = planner.highest_cost(request) if engine.sends else None
        if cost is not None and not self.budget.reserve(cost):
            return False
        with self._lock:
            self._moves += 1
            self._sent[request.key] = _Sent(planner, cost, cost)
        return True

    def _taken(self, request: Request) -> None:
        sent = self._sent[request.key]
        with sent.planner.lock:
            sent.planner.sending(request, sent.aside)

    def _again(self, request: Request, fault: Fault) -> bool | None:
        """Whether a request may be sent once more; None if there is no money for it now.

        A fault that cost nothing leaves the money to the next try. A try that may have been charged keeps it.
        """
        sent, intent = self._sent[request.key], None
        if sent.planner.over:
            return False
        if fault.maybe_paid and sent.aside is not None:
            sent.unsure += fault.maybe_paid
            self.budget.settle(sent.aside, unsure=sent.aside)
            sent.aside = None
        if sent.aside is None and sent.cost is not None:
            if not self.budget.reserve(sent.cost):
                return False if self.budget.exhausted else None
            sent.aside = intent = sent.cost
        with sent.planner.lock:
            sent.planner.sending(request, intent)
        return True

    def _done(self, request: Request, outcome: Outcome) -> None:
        with self._lock:
            planner = self._planner_of.pop(request.key)
            sent = self._sent.pop(request.key, None)  # None for a request that could not be prepared
            self._in_hand += 1
            self._moves += 1
        aside = None if sent is None else sent.aside
        unsure = isinstance(outcome, Fault) and sent is not None and outcome.maybe_paid > sent.unsure
        try:
            with planner.lock:
                settled = planner.outcome(request, outcome, None if unsure else aside) or Settled()
            if aside is not None:
                spent = 0.0 if unsure else settled.spent
                self.budget.settle(aside, spent=spent, unsure=aside if unsure else 0.0)
            for name, next_one in settled.follow:
                self._planner_of[next_one.key] = planner
                self._feeds[name].add(next_one)
        finally:
            with self._lock:
                self._in_hand -= 1
                self._moves += 1
        if all(planner.over for planner in self._planners):
            self._stop()
        elif planner.follows and not self._sent:
            self._wake()  # this may have been the last one

    def _later(self, request: Request) -> None:
        with self._lock:
            planner = self._planner_of.pop(request.key)
            del self._sent[request.key]
            self._moves += 1
        if planner.follows and not self._sent:
            self._wake()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal lets requests that may be charged come home; the second, or the first of a model
        on this machine, does not."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(*_: object) -> None:
            self.signals += 1
            local = all(engine.local for engine in self._engines.values())
            if local or self.signals > 1 or not self._sent:
                raise KeyboardInterrupt
            self._stop()
            for engine in self._engines.values():
                engine.stop()
            self._say("waiting for the answers that are under way (once more: stop at once)")

        former = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
        if self.signals:
            raise KeyboardInterrupt

    # ------------------------------------------------------------------ the keeper

    def _keep(self) -> None:
        try:
            while not self._ended.wait(KEEP_SECONDS):
                self._visit()
            self._visit()
        except Exception as error:
            self.keeper_error = error
            self._stop()

    def _visit(self) -> None:
        if self.budget.exhausted:
            self._stop()
        for planner in self._planners:
            planner.visit()
