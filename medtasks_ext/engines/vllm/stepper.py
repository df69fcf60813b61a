"""The vLLM of this process: requests are added and steps are made in a thread of its own.

A step of vLLM waits for its engine process, and waits for ever if that was killed from outside (vLLM 0.32).
So the thread that hands outcomes on does not step.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request, Usage
from medtasks_ext.engines.vllm.lanes import DROP, END, MEMORY_REMEDY, Ended, Events, Lane, LaneResult
from medtasks_ext.engines.vllm.likelihood import Pass, Reading, knows_ids
from medtasks_ext.engines.vllm.settings import end_of_text, reasoning_of, sampling

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from vllm import RequestOutput, SamplingParams

    from medtasks_ext.harness import VLLM

#: vLLM has been asked to stop, or has failed on the request
NO_ANSWER: Final = ("abort", "error", None)


@dataclass(frozen=True, slots=True)
class _Added:
    ticket: int
    until: list[str]
    at: float
    reading: Reading | None = None  # of a request with options, and which of its passes this is
    part: Pass | None = None


class Stepper(Lane):
    """Steps one `vllm.LLM`. Only its thread touches the engine."""

    def __init__(self, lm: VLLM, processes: Sequence[BaseProcess] = ()) -> None:
        self._lm, self._engine, self._processes = lm, lm.model.llm_engine, list(processes)
        self._end, self._ids = end_of_text(lm), knows_ids()
        self._cached = bool(self._engine.vllm_config.cache_config.enable_prefix_caching)
        self._inbox: SimpleQueue[tuple[int, Request] | str] = SimpleQueue()
        self._added: dict[str, _Added] = {}
        self._parts = itertools.count()
        self._thread = threading.Thread(target=self._work, name="vLLM steps", daemon=True)
        self.window = 2 * self._engine.vllm_config.scheduler_config.max_num_seqs

    def report_to(self, events: Events) -> None:
        self._events = events
        self._thread.start()

    def send(self, ticket: int, request: Request) -> None:
        self._inbox.put((ticket, request))

    def drop(self) -> None:
        self._inbox.put(DROP)

    def lost(self) -> Ended | None:
        dead = [process for process in self._processes if not process.is_alive()]
        if not dead and self._thread.is_alive():
            return None
        codes = ", ".join(f"{process.name}: exit code {process.exitcode}" for process in dead)
        return Ended(f"vLLM's engine has died ({codes or 'see above'})", "vLLM", MEMORY_REMEDY)

    def stop(self) -> None:
        self._inbox.put(END)

    def close(self) -> None:
        while self._thread.is_alive() and not self.lost():
            self._thread.join(0.1)
        self._engine.engine_core.shutdown()

    def _work(self) -> None:
        try:
            while self._admit():
                for output in self._engine.step():
                    self._finish(output)
        except Exception as error:
            self._events.put(Ended(f"vLLM's engine has failed: {_first_line(error)}", "vLLM", MEMORY_REMEDY))

    def _admit(self) -> bool:
        """Add all that was sent; wait for it if nothing is under way. False at the end."""
        while True:
            try:
                item = self._inbox.get(block=not self._added)
            except Empty:
                return True
            if isinstance(item, tuple):
                self._add(*item)
                continue
            self._engine.abort_request(list(self._added))
            self._added.clear()
            if item == END:
                return False

    def _add(self, ticket: int, request: Request) -> None:
        """A refused request has that as its outcome; EngineDeadError where nothing is taken any more."""
        from vllm.v1.engine.exceptions import EngineDeadError

        name = f"medtasks-{ticket}"
        try:
            if request.options:
                self._ask(ticket, Reading(request, ids=self._ids, cached=self._cached))
                return
            parameters, until = sampling(self._lm, request.settings, self._end)
            self._send(name, request.tokens or [], parameters)
            self._added[name] = _Added(ticket, until, time.monotonic())
        except EngineDeadError:
            raise
        except Exception as error:  # vLLM has seen tokens and settings only: its words hold no text of a row
            with suppress(KeyError):
                self._engine.abort_request([name])  # it may be half in
            self._refused(ticket, error)

    def _refused(self, ticket: int, error: Exception) -> None:
        self._drop_parts(ticket)
        reason = f"vLLM does not take the request: {_first_line(error)}"
        self._events.put(LaneResult(ticket, Fault(FaultKind.ENGINE, reason)))

    def _send(self, name: str, tokens: list[int], parameters: SamplingParams) -> None:
        prompt = {"type": "token", "prompt_token_ids": tokens}
        self._engine.add_request(name, prompt, parameters, lora_request=self._lm.lora_request)

    def _ask(self, ticket: int, reading: Reading) -> None:
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            for part in reading.further():
                name = f"medtasks-{ticket}-{next(self._parts)}"
                self._added[name] = _Added(ticket, [], time.monotonic(), reading=reading, part=part)
                self._send(name, reading.prompt(part), part.parameters())
        except EngineDeadError:
            raise
        except Exception as error:
            self._refused(ticket, error)

    def _drop_parts(self, ticket: int) -> None:
        names = [name for name, added in self._added.items() if added.ticket == ticket]
        for name in names:
            del self._added[name]
            with suppress(KeyError):
                self._engine.abort_request([name])

    def _finish(self, output: RequestOutput) -> None:
        if not output.finished or not (added := self._added.pop(output.request_id, None)):
            return
        if added.reading is None or added.part is None:
            self._events.put(LaneResult(added.ticket, self._outcome(output, added)))
        elif output.outputs[0].finish_reason in NO_ANSWER:
            self._drop_parts(added.ticket)
            self._events.put(LaneResult(added.ticket, _given_up(output)))
        else:
            added.reading.take(added.part, output)
            if added.reading.complete:
                self._events.put(LaneResult(added.ticket, added.reading.outcome()))
            else:
                self._ask(added.ticket, added.reading)

    def _outcome(self, output: RequestOutput, added: _Added) -> Outcome:
        from medtasks_ext.harness import postprocess_generated_text

        completion, think_end = output.outputs[0], self._lm.think_end_token
        if completion.finish_reason in NO_ANSWER:
            return _given_up(output)
        return Answer(
            text=postprocess_generated_text(completion.text, added.until, think_end),
            finish=completion.finish_reason or "",
            usage=Usage(
                prompt=len(output.prompt_token_ids or ()),
                completion=len(completion.token_ids),
                cached=output.num_cached_tokens,
            ),
            reasoning=reasoning_of(completion.text, think_end),
            seconds=time.monotonic() - added.at,
        )


def _given_up(output: RequestOutput) -> Fault:
    return Fault(FaultKind.ENGINE, f"vLLM gave the request up ({output.outputs[0].finish_reason})")


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
