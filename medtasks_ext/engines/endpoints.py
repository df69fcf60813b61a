"""The servers that answer one run: which of them gets the next request, and how many each has at a time.

Connections to a server grow by one with each round trip and are halved where it refuses many requests. A
single refusal holds its own request alone: halved at every refusal, a server that refuses one request in
twenty at random would be left with about five connections, however many it can serve.

A server that does not answer when the run begins stops it: an address may be mistyped. One that refuses a
request (429, 503) has that request wait, for as long as it asks (`Retry-After`, at most 60 s). One that
refuses a quarter of the requests of a round trip has its connections halved; each further round trip without
that adds one. One that refuses three or more within a second, more than it answers, gets nothing for as long
as it asks. One that breaks connections is tried again after 1, 2, 4, … 60 s, and its requests go to the
others at once. One that refuses the key, or does not know the model, is left out; the last one ends the run.
One that has just got a request about a long record gets the other strategies of that record as well, one
request above its connections if need be. Which server answered changes no condition of a score.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from medtasks_ext.engines.engine import WAIT_SECONDS
from medtasks_ext.engines.http import Client, Failed
from medtasks_ext.engines.records import Answer, FaultKind, Request

#: Refusals within so many seconds, more than answers in that time, that hold all requests to a server.
SEVERAL, SPAN = 3, 1.0
#: Share of refusals in a round trip from which on connections are halved, and replies that are looked at
#: at least: fewer would show such a share by chance.
MANY, LEAST = 0.25, 32
#: Requests that a server may have above its number, if it has just got another one about the same record.
ABOVE = 1
#: Seconds of a server's wish to wait from which on the user is told.
TOLD_FROM = 5.0
#: Seconds that a server rests after its connections have failed; doubled each time, at most the latter.
FIRST_REST, LONGEST_REST = 1.0, 60.0
#: Statuses by which a server says that it has too much to do.
_REFUSALS = frozenset({429, 503, 529})


class Endpoint:
    """One server: how many requests it has, how many it may have, and whether it is well.

    Attributes:
        under_way: requests that it has now.
        gone: no request to it will work, so that it is not asked any more.
        ill: its last connection failed, so that one request at a time looks whether it is back.
    """

    def __init__(self, client: Client) -> None:
        self.client, self.under_way, self.gone, self.ill = client, 0, False, False
        self._most = client.server.connections
        self._allowed = float(self._most)
        self._replies: deque[tuple[float, bool]] = deque(maxlen=max(LEAST, self._most))  # moment, refused
        self._seconds = 0.0  # that its answers take
        self._held_until = self._rests_until = -math.inf
        self._failures = 0  # of connections, since its last answer

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    @property
    def held(self) -> float:
        """Seconds for which it has asked not to get requests."""
        return max(0.0, self._held_until - self.client.now())

    @property
    def rests(self) -> float:
        return max(0.0, self._rests_until - self.client.now())

    def takes(self, *, well: bool) -> bool:
        """Held or not; where no server is well, all are asked as a single one would be."""
        room = 1 if self.ill and well else self.allowed
        return not self.gone and self.under_way < room

    @property
    def follows_on(self) -> bool:
        """Whether it may get a request because it has the record already."""
        return not (self.gone or self.ill or self.held) and self.under_way < self.allowed + ABOVE

    @property
    def expected(self) -> tuple[float, float]:
        """Seconds in which it would answer a further request, then how full it is."""
        full = self.under_way / self.allowed
        return self._seconds * (1 + full), full

    def answered(self, answer: Answer) -> bool:
        """Whether it was ill."""
        was_ill, self.ill, self._failures = self.ill, False, 0
        self._rests_until = -math.inf
        self._replies.append((self.client.now(), False))
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)
        if answer.seconds is not None:
            self._seconds += (answer.seconds - self._seconds) * (0.1 if self._seconds else 1.0)
        return was_ill

    def failed(self, failed: Failed) -> float:
        """Seconds for which all requests are held from now on, if any."""
        if failed.fault.kind is FaultKind.UNREACHABLE:
            self._rests_until = self.client.now() + min(LONGEST_REST, FIRST_REST * 2.0**self._failures)
            self.ill, self._failures = True, self._failures + 1
        if failed.fault.status not in _REFUSALS:
            return 0.0
        now = self.client.now()
        self._replies.append((now, True))
        recent = [refused for moment, refused in self._replies if now - moment <= SPAN]
        if failed.after and sum(recent) >= SEVERAL and 2 * sum(recent) > len(recent):
            new, self._held_until = not self.held, max(self._held_until, now + failed.after)
            return failed.after if new else 0.0
        trip = list(islice(reversed(self._replies), max(LEAST, self.allowed)))
        if len(trip) >= max(LEAST, self.allowed) and sum(refused for _, refused in trip) >= MANY * len(trip):
            self._allowed = max(1.0, self._allowed / 2)
            self._replies.clear()
        return 0.0


class Endpoints:
    def __init__(self, clients: Sequence[Client], say: Callable[[str], None]) -> None:
        self._all, self._say = [Endpoint(client) for client in clients], say
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()  # of tries that wait for a place
        self._record = "", self._all[0]  # of the last new request, and where it went
        self.stopped = False

    @property
    def awaited(self) -> bool:
        """Whether a further try waits for a place: it comes before requests that are new."""
        return self._turn.locked()

    def free(self) -> Endpoint | None:
        """The server for the next request: of those with a place, the one that answers soonest."""
        found = [one for one in self._open() if not one.held]
        return min(found, key=lambda one: one.expected) if found else None

    def _open(self) -> list[Endpoint]:
        well = len(self._all) > 1 and any(not (one.ill or one.gone) for one in self._all)
        return [one for one in self._all if one.takes(well=well) and not (well and one.rests)]

    def begin(self, request: Request, free: Endpoint) -> Endpoint:
        """Where the request before it went, if they share a record; else at `free`, which has a place."""
        record, kept = self._record
        endpoint = kept if request.record and request.record == record and kept.follows_on else free
        self._record = request.record, endpoint
        return self.enter(endpoint)

    def enter(self, endpoint: Endpoint) -> Endpoint:
        endpoint.under_way += 1
        return endpoint

    def leave(self, endpoint: Endpoint) -> None:
        endpoint.under_way -= 1
        self.wake()

    def wake(self) -> None:
        self._changed.set()

    async def place(self) -> Endpoint | None:
        """None once nothing is sent again."""
        async with self._turn:
            while not self.stopped:
                if found := self.free():
                    return self.enter(found)
                await self.wait()
        return None

    async def wait(self) -> None:
        held = [one for one in self._open() if one.held]
        if held and not self.stopped:
            first = min(held, key=lambda one: one.held)
            await first.client.pause(min(first.held, WAIT_SECONDS))
            return
        self._changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), WAIT_SECONDS)

    def answered(self, endpoint: Endpoint, answer: Answer) -> None:
        if endpoint.answered(answer) and len(self._all) > 1:
            self._say(f"{endpoint.client.asked.url} answers again")

    def failed(self, endpoint: Endpoint, failed: Failed) -> bool:
        """Whether another server can be asked at once."""
        url, fault, was_ill = endpoint.client.asked.url, failed.fault, endpoint.ill
        if (seconds := endpoint.failed(failed)) >= TOLD_FROM:
            self._say(
                f"{url} asks to wait (HTTP {fault.status}); the next request goes out in {seconds:.0f} s"
            )
        others = [one for one in self._all if one is not endpoint and not one.gone]
        if not others:
            return False
        if fault.kind.ends_all:
            if not endpoint.gone:
                self._say(f"{fault.in_words}; the other servers go on without it")
            endpoint.gone = True
            return True
        if fault.kind is not FaultKind.UNREACHABLE or all(one.ill for one in others):
            return False
        if not was_ill:
            self._say(f"{fault.reason}; the other servers go on without it until it answers")
        return True

    def stop(self) -> None:
        """Send nothing again: those that wait for a place get none, pauses end."""
        self.stopped = True
        for one in self._all:
            one.client.stop()
        self.wake()
