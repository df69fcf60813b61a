"""One stream of requests over one vLLM, or over several replicas."""

from __future__ import annotations

import atexit
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from medtasks_ext.engines.engine import Done, Engine, Feed
from medtasks_ext.engines.records import Fault, FaultKind, Request
from medtasks_ext.engines.vllm.lanes import Ended, Event, Lane
from medtasks_ext.engines.vllm.settings import budget
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.harness import VLLM

#: how long to wait for an outcome before the feed is asked again, while there is room
ASK_AGAIN = 0.02
#: how often to see whether all processes are alive; also how long to wait for what a dead one has left
LOOK = 1.0


class VllmEngine(Engine):
    """Answers requests with lm-eval's vLLM model, each as lm-eval's `generate_until` would.

    Requests go to the lane that is least full: this process's own vLLM, and replicas where there are some.
    """

    local, keeps_prefixes = True, True

    def __init__(self, lm: VLLM, lanes: Sequence[Lane]) -> None:
        """`lanes`: a `Stepper` of `lm`, and replicas; the engine closes them."""
        self.lm, self.lanes = lm, list(lanes)
        self._events: SimpleQueue[Event] = SimpleQueue()
        for lane in self.lanes:
            lane.report_to(self._events)
        #: twice what vLLM runs at a time. With a window of once that, finished requests leave places empty
        #: until the next step (15 % slower)
        self.window = sum(lane.window for lane in self.lanes)
        self._tickets = itertools.count()
        self._under_way: dict[int, tuple[Lane, Request]] = {}
        self._record = "", self.lanes[0]  # of the last request, and where it went
        self._looked = time.monotonic()
        if len(self.lanes) > 1:  # at exit, multiprocessing waits for processes that nobody has told to end
            atexit.register(self.close)

    def prepare(self, request: Request) -> Request | Fault:
        """Tokenise as lm-eval does; what does not fit the context is a fault.

        lm-eval itself would cut the left end, which holds the instruction. Prompts that can be shortened were
        shortened before, by the suite's rule.

        lm-eval's tokenizer must not be used by two threads at the same time. Requests are built and prepared
        by one thread, and nothing else here uses it: vLLM has a tokenizer of its own.
        """
        try:
            if request.options:
                return self._with_options(request)
            tokens = self._tokens(request)
        except Exception as error:  # a lone surrogate; a template that refuses; only the type is free of text
            return Fault(FaultKind.ENGINE, f"the prompt cannot be made into tokens ({type(error).__name__})")
        try:
            completion = budget(self.lm, request.settings)
        except Exception as error:
            return Fault(FaultKind.ENGINE, f"the sampling settings are not valid: {error}")
        room = self.lm.max_length - completion
        if len(tokens) > room:
            return _too_long(len(tokens), room, self.lm.max_length, completion)
        return replace(request, tokens=tokens)

    def _tokens(self, request: Request) -> list[int]:
        tokens: list[int] = self.lm.tok_encode(self._text(request))
        return tokens

    def _text(self, request: Request) -> str:
        prompt = request.prompt
        return prompt if isinstance(prompt, str) else str(self.lm.apply_chat_template(prompt))

    def _with_options(self, request: Request) -> Request | Fault:
        """Tokenise prompt and options as lm-eval does: blanks at the end of a prompt belong to the option."""
        context = self._text(request)
        bare = context.rstrip()
        whole = [bare + context[len(bare) :] + option for option in request.options]
        tokens, *behind = self.lm.tok_encode([bare, *whole])
        options = tuple(tuple(item[len(tokens) :]) for item in behind)
        longest = max(map(len, options))
        room = self.lm.max_length - 1 - longest  # vLLM writes a token behind them
        if len(tokens) > room:
            return _too_long(len(tokens), room, self.lm.max_length, longest + 1)
        return replace(request, tokens=tokens, option_tokens=options)

    def run(self, feed: Feed, done: Done) -> None:
        """What had its outcome when a vLLM dies has been handed on."""
        try:
            while True:
                full = self._hand_out(feed)
                if self._under_way:
                    self._take_in(done, LOOK if feed.over or full else ASK_AGAIN)
                elif feed.over:
                    return
                else:
                    feed.wait(LOOK)
                self._look(done)
        finally:
            self._give_up()

    def _hand_out(self, feed: Feed) -> bool:
        while lane := self._freest():
            if (request := feed.take()) is None:
                return False
            if request.record and request.record == self._record[0]:
                lane = self._record[1]  # it may have one too many: it has a queue of its own
            self._record = request.record, lane
            ticket = next(self._tickets)
            self._under_way[ticket] = lane, request
            lane.under_way += 1
            lane.send(ticket, request)
        return True

    def _freest(self) -> Lane | None:
        lane = min(self.lanes, key=lambda lane: lane.under_way / lane.window)
        return lane if lane.under_way < lane.window else None

    def _take_in(self, done: Done, seconds: float) -> bool:
        """Hand on the next outcome, and all that have come with it; whether any came."""
        ended: Ended | None = None
        events = list(self._arrived(seconds))
        for event in events:
            if isinstance(event, Ended):
                ended = ended or event
                continue
            lane, request = self._under_way.pop(event.ticket, (None, None))
            if lane and request:  # not given up
                lane.under_way -= 1
                lane.answered += 1
                done(request, event.outcome)
        if ended:
            raise _error(ended)
        return bool(events)

    def _arrived(self, seconds: float) -> Iterator[Event]:
        with suppress(Empty):
            yield self._events.get(timeout=seconds)
            while True:
                yield self._events.get_nowait()

    def _look(self, done: Done) -> None:
        """See now and then whether a lane has died; hand on what it has left."""
        if time.monotonic() - self._looked < LOOK:
            return
        for lane in self.lanes:
            if ended := lane.lost():
                while self._take_in(done, LOOK):
                    pass
                raise _error(ended)
        self._looked = time.monotonic()

    def _give_up(self) -> None:
        if self._under_way:
            for lane in self.lanes:
                lane.drop()
                lane.under_way = 0
            self._under_way.clear()

    def close(self) -> None:
        atexit.unregister(self.close)
        for lane in self.lanes:
            lane.stop()
        for lane in self.lanes:
            lane.close()


def _error(ended: Ended) -> MedtasksError:
    return MedtasksError(ended.what, where=ended.where, remedy=ended.remedy)


def _too_long(tokens: int, room: int, context: int, completion: int) -> Fault:
    return Fault(
        FaultKind.TOO_LONG,
        f"the prompt has {tokens:,} tokens and there is room for {max(room, 0):,}"
        f" (a context of {context:,} less {completion:,} for the answer)",
        "raise --model_args max_model_len, if the model allows it, or lower --gen_kwargs max_gen_toks",
    )
