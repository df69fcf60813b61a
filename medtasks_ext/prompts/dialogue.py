"""Dialogues: prompts of several turns, the last of which the model answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from medtasks_ext.privacy import RowValueError, excerpt

#: Roles of turns, and how a transcript names them.
ROLES = {
    "system": "System",
    "developer": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
}
_FIRST = ("system", "developer")


class Turn(TypedDict):
    role: str
    content: str


class DialogueError(RowValueError):
    """Turns that are no dialogue; the message says why."""


@dataclass(frozen=True)
class Dialogue:
    system: str  # what stands before the first turn of the two; may be empty
    before: tuple[Turn, ...]  # all turns between
    last: str  # the user's last turn

    @property
    def transcript(self) -> str:
        """The dialogue as one text, the system's turn left out."""
        return transcript([*self.before, {"role": "user", "content": self.last}])


def read_dialogue(value: Any) -> Dialogue:
    """A dialogue from a list of {role, content}; other keys of a turn are left out.

    Raises DialogueError: no list of turns, an unknown role, a turn without text, a system turn between
    others, or the last turn is not the user's.
    """
    if not isinstance(value, list) or not value:
        raise DialogueError("the dialogue has no turns")
    turns = [_turn(item, place) for place, item in enumerate(value, start=1)]
    n_first = next((place for place, turn in enumerate(turns) if turn["role"] not in _FIRST), len(turns))
    first, rest = turns[:n_first], turns[n_first:]
    if late := next((place for place, turn in enumerate(rest) if turn["role"] in _FIRST), None):
        raise DialogueError(f"turn {n_first + late + 1} is the system's, and stands between other turns")
    if not rest or rest[-1]["role"] != "user":
        last = ROLES[(rest or first)[-1]["role"]].lower()
        raise DialogueError(f"the last turn is the {last}'s: there is no user's turn to answer")
    system = "\n\n".join(turn["content"] for turn in first)
    return Dialogue(system, tuple(rest[:-1]), rest[-1]["content"])


def _turn(item: Any, place: int) -> Turn:
    if not isinstance(item, Mapping):
        raise DialogueError(f"turn {place} is no object with role and content")
    role, content = item.get("role"), item.get("content")
    if role not in ROLES:
        raise DialogueError(f"the role of turn {place} is {excerpt(role)}; there is: {', '.join(ROLES)}")
    if not isinstance(content, str) or not content.strip():
        raise DialogueError(f"turn {place} has no text")
    return {"role": str(role), "content": content}


def own_turns(document: Mapping[str, Any]) -> list[Turn]:
    """The turns of a document, without those of the system: one, unless it is a dialogue."""
    return [*document.get("before", ()), {"role": "user", "content": document["prompt"]}]


def shown(document: Mapping[str, Any]) -> str:
    """What people see as the prompt of a document, the system's turn left out: of a dialogue, all turns."""
    return transcript(own_turns(document)) if "before" in document else str(document["prompt"])


def transcript(turns: Iterable[Turn]) -> str:
    return "\n\n".join(f"{ROLES[turn['role']]}: {turn['content']}" for turn in turns)


def as_text(messages: Sequence[Turn]) -> str:
    """Messages for a model without a chat template, and the line from which it goes on."""
    system = [turn["content"] for turn in messages if turn["role"] in _FIRST]
    said = [turn for turn in messages if turn["role"] not in _FIRST]
    return "\n\n".join([*system, transcript(said), f"{ROLES['assistant']}:"])
