"""The processes that share a run, and the one queue that feeds them.

`accelerate launch` starts a process, a rank, for each copy of a model. All ranks know the same list of blocks
of documents. A counter that they share says which block comes next, so that whoever is free takes it. Other
numbers tell the first rank how far the others are, since each rank stores outcomes in files of its own.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from lm_eval.api.model import LM

#: Seconds without a sign of life after which a rank is taken for dead.
SILENT_SECONDS = 120.0
#: Batches in a block at most: lm-eval sorts a block by length, so that prompts of a batch are alike.
BATCHES = 4
#: The last blocks are this part of a batch at least: smaller than a batch, so that all ranks end together.
LEAST_PART = 4
#: Kinds of accelerate's processes in which the calls of all ranks go together.
_COLLECTIVE = frozenset({"FSDP", "DEEPSPEED", "MEGATRON_LM"})
_OTHERWISE = (
    "start one process: --model_args parallelize=True spreads a model over the GPUs of a machine, and "
    "tensor_parallel_size=N of --model vllm does so, too"
)


class FirstRankGoneError(MedtasksError):
    """The first rank, which holds the numbers that all share, does not answer."""


class Counts(Protocol):
    """Numbers that all ranks see; `torch.distributed.Store` is one."""

    def add(self, key: str, amount: int, /) -> int:
        """Add to a number, which is 0 at first, and return the sum."""


class _OwnCounts:
    """Numbers of a process that shares its run with no other."""

    def __init__(self) -> None:
        self._sums = Counter[str]()

    def add(self, key: str, amount: int, /) -> int:
        self._sums[key] += amount
        return self._sums[key]


class Ranks:
    """This process among those that share the run.

    Args:
        rank: of this process; the first has 0, writes the manifest and scores.
        counts: that they share; by default, `connect` makes them where there are several.
    """

    def __init__(self, rank: int = 0, size: int = 1, counts: Counts | None = None) -> None:
        self.rank, self.size = rank, size
        self._counts: Counts | None = counts or (_OwnCounts() if size == 1 else None)
        self._seen: dict[int, tuple[int, float]] = {}
        self.silent: list[int] = []  # ranks that ended without a word

    @property
    def shared(self) -> bool:
        """Whether several processes share the run."""
        return self.size > 1

    @property
    def first(self) -> bool:
        """Whether this process writes the manifest and scores."""
        return self.rank == 0

    def connect(self, plan: str) -> None:
        """Wait for all ranks, and connect them.

        Args:
            plan: a digest of what is to be asked.

        Raises:
            MedtasksError: the ranks cannot reach each other, or have other documents.
        """
        if self._counts is not None:
            return
        self._counts, plan_of_first = _connected(self.first, plan)
        if plan_of_first != plan:
            raise MedtasksError(
                f"rank {self.rank} has other documents, or batches of another size, than rank 0",
                remedy="give all processes the same command, data and kind of device",
            )

    def _add(self, key: str, amount: int = 0) -> int:
        assert self._counts is not None
        try:
            return self._counts.add(key, amount)
        except RuntimeError:  # torch's errors of the network
            raise FirstRankGoneError(
                "the first process of the run is gone",
                remedy="run the same command again; it asks only what has no answer",
            ) from None

    def claim(self) -> int:
        """The number of the next block, which is this rank's alone from now on."""
        return self._add("blocks", 1) - 1

    # ------------------------------------------------------------------ what the others tell the first rank

    def tell(self, task: str, n: int) -> None:
        """Say that so many more documents of a task have their outcome on the disk."""
        self._add(f"outcomes {task}", n)
        self._add("news", 1)

    def stored_elsewhere(self, task: str) -> int:
        """Outcomes that other ranks have stored for a task."""
        return self._add(f"outcomes {task}")

    def settle(self, task: str, n: int) -> None:
        """Say that the prompts and outcomes of so many more documents of a task are stored."""
        self._add(f"settled {task}", n)
        self._add("news", 1)

    def settled(self, task: str) -> int:
        """Documents of a task whose prompts and outcomes are stored."""
        return self._add(f"settled {task}")

    def news(self) -> int:
        """A number that rises when a rank says something."""
        return self._add("news")

    def beat(self) -> None:
        """Say that this rank lives."""
        self._add(f"beats {self.rank}", 1)

    def leave(self) -> None:
        """Say that this rank has ended its work."""
        self._add(f"left {self.rank}", 1)

    def at_work(self) -> bool:
        """Whether any other rank works still; those that are silent for long are noted."""
        now, working = time.monotonic(), False
        for rank in range(1, self.size):
            if rank in self.silent or self._add(f"left {rank}"):
                continue
            beats = self._add(f"beats {rank}")
            known, since = self._seen.get(rank, (-1, now))
            if beats == known and now - since > SILENT_SECONDS:
                self.silent.append(rank)
                continue
            self._seen[rank] = (beats, since if beats == known else now)
            working = True
        return working


def ranks_of(model: LM) -> Ranks:
    """The ranks of a loaded model; lm-eval's own numbers of them are those of one machine.

    Raises:
        MedtasksError: the processes that were started cannot share the documents.
    """
    accelerator = getattr(model, "accelerator", None)
    if accelerator is None:
        rank, size = model.rank, model.world_size
    else:
        rank, size = accelerator.process_index, accelerator.num_processes
        kind = accelerator.distributed_type.value
        if kind in _COLLECTIVE:
            raise MedtasksError(
                f"{kind} spreads the model over {size} processes, which would have to be asked together",
                where="accelerate launch",
                remedy=_OTHERWISE,
            )
    started, own = (int(os.environ.get(name, default)) for name, default in (("WORLD_SIZE", 1), ("RANK", 0)))
    if own != rank or (started > 1 and size == 1 and "RANK" in os.environ):
        raise MedtasksError(
            f"{max(started, own + 1)} processes were started, and each holds a model that knows of "
            f"{'no other' if size == 1 else f'{size}'}",
            where="--model",
            remedy=_OTHERWISE,
        )
    return Ranks(rank, size)


def _connected(first: bool, plan: str) -> tuple[Counts, str]:
    """torch's store, in the first rank, on a free port that it tells the others; and its plan."""
    try:
        from torch import distributed
    except ImportError:
        distributed = None
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        raise MedtasksError(
            "torch.distributed does not connect the processes of this model: they cannot share the documents",
            where="--model",
            remedy=_OTHERWISE,
        )
    host = os.environ.get("MASTER_ADDR", "localhost")
    store = distributed.TCPStore(host, 0, is_master=True, wait_for_workers=False) if first else None
    said: list[Any] = [store.port if store else 0, plan]
    distributed.broadcast_object_list(said, src=0)
    if store is None:
        store = distributed.TCPStore(host, said[0], is_master=False, wait_for_workers=False)
    return store, said[1]


# ---------------------------------------------------------------------- blocks


@dataclass(frozen=True, slots=True)
class Block:
    """Documents of one task that one rank asks."""

    task: int  # number of the task
    start: int  # first document
    stop: int  # after the last one


def blocks(sizes: Sequence[int], ranks: int, batch: int) -> list[Block]:
    """Cut tasks into blocks: whole batches at first, smaller towards the end of all tasks.

    Args:
        sizes: documents of each task, in the order in which they are asked.
        ranks: how many share them; one rank takes whole tasks.
        batch: documents that the model answers at a time.
    """
    found, left = [], sum(sizes)
    for task, n in enumerate(sizes):
        start = 0
        while start < n:
            size = n if ranks == 1 else _block_size(left, ranks, batch)
            stop = min(start + size, n)
            found.append(Block(task, start, stop))
            left -= stop - start
            start = stop
    return found


def _block_size(left: int, ranks: int, batch: int) -> int:
    share = left // (2 * ranks)
    if share >= batch:
        return min(share // batch, BATCHES) * batch
    return max(share, -(-batch // LEAST_PART))


class Claims:
    """The blocks that this rank takes, task by task.

    Args:
        listed: all blocks, the same in each rank.
        may: waits until the next one may be taken; False if none is wanted any more.
    """

    def __init__(self, listed: Sequence[Block], ranks: Ranks, may: Callable[[], bool]) -> None:
        self._listed, self._ranks, self._may = listed, ranks, may
        self._held: Block | None = None
        self._over = False

    def of(self, task: int) -> Iterator[range]:
        """The blocks of one task; tasks are asked for in order."""
        while (block := self._next()) is not None and block.task <= task:
            self._held = None
            if block.task == task:  # else of a task that could not be built to its end
                yield range(block.start, block.stop)

    def _next(self) -> Block | None:
        if self._held is None and not self._over:
            number = self._ranks.claim() if self._may() else len(self._listed)
            self._over = number >= len(self._listed)
            self._held = None if self._over else self._listed[number]
        return self._held
