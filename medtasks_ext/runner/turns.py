"""Which tasks are asked in turn, document by document: those whose prompts begin with the same long text.

An engine keeps the beginnings of prompts that it has read. Zero-shot and chain of thought about one long
record share it only if they come close to each other, since the cache holds some hundred records at most.
Tasks that share no more than what all their own documents begin with are kept apart: each is scored earlier
so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from medtasks_ext.engines.records import Prompt
from medtasks_ext.prompts.counting import shared_characters
from medtasks_ext.runner.work import Work

#: Characters of a record's own that two prompts have to share, some 500 tokens.
LONG = 2000
#: Documents that are looked at.
LOOKED_AT = 2

#: The prompt for the document at a place of a task's test file.
PromptAt = Callable[[Work, int], Prompt]


def in_turn(works: Iterable[Work], prompt_at: PromptAt) -> Iterator[list[Work]]:
    """Tasks in their order, those that are asked in turn together, where the first of them stands.

    Prompts are built when a task's turn comes, not before.
    """
    left = list(works)
    while left:
        first = left.pop(0)
        mates = [work for work in left if _alike(first, work) and _share(first, work, prompt_at)]
        left = [work for work in left if work not in mates]
        yield [first, *mates]


class Turns:
    """Has threads that build tasks come one after another about each document.

    Args:
        works: the tasks in their order.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self.name = works[0].name  # of the first
        self._at: dict[str, tuple[int, int]] = {work.name: (-1, n) for n, work in enumerate(works)}
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


def _alike(one: Work, other: Work) -> bool:
    """Whether two tasks may share records: of one dataset, with as many examples."""
    datasets, shots = zip(*(_asked(work) for work in (one, other)), strict=True)
    return datasets[0] is not None and datasets[0] == datasets[1] and shots[0] == shots[1]


def _asked(work: Work) -> tuple[str | None, int]:
    assert work.task is not None
    given = getattr(work.task, "dataset_given", None)  # a task of another class has none
    return given.id if given else None, int(work.task.config.num_fewshot or 0)


def _share(one: Work, other: Work, prompt_at: PromptAt) -> bool:
    asked = set(other.places)
    places: Sequence[int] = list(islice((place for place in one.places if place in asked), LOOKED_AT))
    try:
        first = [_text(prompt_at(one, place)) for place in places]
        all_alike = shared_characters(first[0], first[1]) if len(first) > 1 else 0
        return any(
            shared_characters(prompt, _text(prompt_at(other, place))) - all_alike >= LONG
            for prompt, place in zip(first, places, strict=True)
        )
    except Exception:  # said when the task's own turn comes
        return False
