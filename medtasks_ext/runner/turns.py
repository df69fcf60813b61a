"""Which tasks are asked in turn, document by document: those whose prompts begin with the same long text.

An engine keeps the beginnings of prompts that it has read. Zero-shot and chain of thought about one long
record share it only if they come close to each other, since the cache holds some hundred records at most.
Tasks that share no more than what all their own documents begin with are kept apart: each is scored earlier
so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from medtasks_ext.engines.records import Prompt
from medtasks_ext.prompts.counting import shared_characters

if TYPE_CHECKING:
    from medtasks_ext.task import MedicalTask

#: Characters of a record's own that two prompts have to share, some 500 tokens.
LONG = 2000
#: Documents that are looked at.
LOOKED_AT = 2


class Asks(Protocol):
    """One task of a run."""

    task: MedicalTask
    places: Sequence[int]  # of the documents that are asked, in its test file

    def prompt_at(self, place: int) -> Prompt:
        """The prompt for the document there."""


_Asks = TypeVar("_Asks", bound=Asks)


def in_turn(works: Iterable[_Asks]) -> Iterator[list[_Asks]]:
    """Tasks in their order, those that are asked in turn together, where the first of them stands.

    Prompts are built when a task's turn comes, not before.
    """
    left = list(works)
    while left:
        first = left.pop(0)
        mates = [work for work in left if _alike(first.task, work.task) and _share(first, work)]
        left = [work for work in left if work not in mates]
        yield [first, *mates]


class Turns:
    """Has threads that build tasks come one after another about each document.

    `names`: of the tasks in their order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.name = names[0]
        self._at: dict[str, tuple[int, int]] = {name: (-1, n) for n, name in enumerate(names)}
        self._moved = threading.Condition()

    def wait(self, name: str, place: int) -> None:
        """Wait until it is the turn of a task's document at this place."""
        with self._moved:
            self._at[name] = (place, self._at[name][1])
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._at[name] == min(self._at.values()))

    def leave(self, name: str) -> None:
        """Nothing more comes from a task."""
        with self._moved:
            self._at.pop(name, None)
            self._moved.notify_all()


def _text(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\x1e".join(f"{turn['role']}\x1f{turn['content']}" for turn in prompt)


def _alike(one: MedicalTask, other: MedicalTask) -> bool:
    """Whether two tasks may share records: of one dataset, with as many examples."""
    asked = [(task.dataset_given.id, int(task.config.num_fewshot or 0)) for task in (one, other)]
    return asked[0] == asked[1]


def _share(one: Asks, other: Asks) -> bool:
    asked = set(other.places)
    places: Sequence[int] = list(islice((place for place in one.places if place in asked), LOOKED_AT))
    try:
        first = [_text(one.prompt_at(place)) for place in places]
        all_alike = shared_characters(first[0], first[1]) if len(first) > 1 else 0
        return any(
            shared_characters(prompt, _text(other.prompt_at(place))) - all_alike >= LONG
            for prompt, place in zip(first, places, strict=True)
        )
    except Exception:  # said when the task's own turn comes
        return False
