"""What one vLLM and the engine that feeds it say to each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from medtasks_ext.engines.records import Outcome, Request
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from medtasks_ext.harness import VLLM

#: What a lane is told: give up what is under way; and end.
DROP: Final = "drop"
END: Final = "end"


def create(model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> tuple[VLLM, list[BaseProcess]]:
    """With the processes that it starts; ImportError, OSError, TypeError, ValueError as lm-eval's class."""
    from medtasks_ext.harness import VLLM

    own = deepcopy({name: value for name, value in model_args.items() if name != "data_parallel_size"})
    before = active_children()
    try:
        lm = VLLM.create_from_arg_obj(own, dict(extra))
    except RuntimeError as error:
        raise MedtasksError(f"vLLM does not start: {error}", where="vLLM", remedy=MEMORY_REMEDY) from error
    return lm, [process for process in active_children() if process not in before]


MEMORY_REMEDY = (
    "vLLM's messages above say why; it is mostly memory: lower --model_args gpu_memory_utilization,"
    " max_model_len or max_num_seqs, then repeat the command: it goes on where it stopped"
)


@dataclass(frozen=True, slots=True)
class LaneResult:
    ticket: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Ended:
    """A lane that will answer nothing more: the words of a `MedtasksError`."""

    what: str
    where: str
    remedy: str = ""


Event: TypeAlias = LaneResult | Ended


class Events(Protocol):
    """Where lanes put what happened; a `SimpleQueue`."""

    def put(self, event: Event, /) -> None: ...


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
