"""What one vLLM and the engine that feeds it say to each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from medtasks_ext.engines.records import Outcome, Request

MEMORY_REMEDY = (
    "vLLM's messages above say why; it is mostly memory: lower --model_args gpu_memory_utilization,"
    " max_model_len or max_num_seqs, then repeat the command: it goes on where it stopped"
)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of the request that was sent under this ticket."""

    ticket: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Ended:
    """A lane that will answer nothing more: the words of a `MedtasksError`."""

    what: str
    where: str
    remedy: str = ""


Event: TypeAlias = Result | Ended


class Events(Protocol):
    """Where lanes put what happened; a `SimpleQueue`."""

    def put(self, event: Event, /) -> None:
        """Add an event; from any thread."""


class Lane(ABC):
    """One vLLM that answers requests on its own; outcomes come through the engine's queue of events."""

    window: int  # requests that it has under way at most
    under_way: int = 0  # requests that it has under way; the engine counts
    answered: int = 0  # requests that had an outcome, in all runs; the engine counts

    @abstractmethod
    def report_to(self, events: Events) -> None:
        """Begin to work: put every event there."""

    @abstractmethod
    def send(self, ticket: int, request: Request) -> None:
        """Answer a request. Its failure is a fault, and the lane's end an event; never an exception."""

    @abstractmethod
    def drop(self) -> None:
        """Give up what is under way; outcomes that come nevertheless have tickets that nobody knows."""

    @abstractmethod
    def lost(self) -> Ended | None:
        """Whether it has died without a word."""

    @abstractmethod
    def stop(self) -> None:
        """Give up what is under way, and begin to end."""

    @abstractmethod
    def close(self) -> None:
        """Wait for the end after `stop`, and free what it holds."""
