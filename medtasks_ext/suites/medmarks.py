"""Medmarks: the code of an environment makes one turn of a row, and names what stands in the system turn."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from medtasks_ext.prompts.official import words
from medtasks_ext.prompts.official.folding import FoldedText
from medtasks_ext.registry.blocks import Official, TextLocation
from medtasks_ext.rows.filters import lettered
from medtasks_ext.rows.row import Row

_AGE = re.compile(r"\b(\d+)\s*[-\s]?(?:year[- ]old|yo)\b", re.IGNORECASE)
_SEED, _MOST_YEARS = 2718, 0.04


class OfficialEnvironment(Official):
    """An environment makes the prompt (Medmarks)."""

    user: TextLocation  #: the text of the user's turn.
    system: TextLocation | None = None  #: the text of the system turn, where there is one.
    #: name -> further texts, which slots call: `asked()`.
    pieces: dict[str, TextLocation] = Field(default_factory=dict)

    @property
    def artefacts(self) -> list[str]:
        places = filter(None, [self.user, self.system, *self.pieces.values()])
        return list(dict.fromkeys(place.artefact for place in places if place.artefact))


def aged(question: str, place: int) -> str:
    """A question with up to two weeks added to each age, by its place in the file from 0, as M-ARC does."""
    drawn = random.Random(_SEED + place)
    return _AGE.sub(lambda age: f"{int(age[1]) + drawn.uniform(0, _MOST_YEARS):.3f} year-old", question)


class _Filling(words.Filling):
    environment: ClassVar = words.strict_sandbox({"aged": aged, "lettered": lettered})


class EnvironmentWords:
    """Words of an environment (`prompts.official.words.Words`)."""

    #: what `official` of a task's file may say
    Block = OfficialEnvironment

    def __init__(self, block: OfficialEnvironment, held: Mapping[str, words.Held], where: Path) -> None:
        self.block, self.where = block, where
        main, slots = next(iter(held)), frozenset(block.slots)

        def taken(place: TextLocation) -> FoldedText:
            artefact, path = held[place.artefact or main]
            return words.source_of(artefact, path, place.file).taken(place, slots)

        self.user = taken(block.user)
        self.system = taken(block.system) if block.system else None
        self.pieces = {name: taken(place) for name, place in block.pieces.items()}
        self.texts = [*([self.system] if self.system else []), self.user, *self.pieces.values()]
        words.check_slots(self.texts, block, where)
        self.origin = words.origin_of(held[main].artefact, self.shown())

    def shown(self) -> str:
        return "\n\n".join(text.shown() for text in self.texts)

    def turn(
        self, fields: Row, place: str, own_input: Callable[[], str], *, reasons: bool = False
    ) -> words.OfficialTurn:
        filling = _Filling(self.block.slots, self.where, fields, place, self.pieces)
        system = self.system.filled(filling.slot) if self.system else ""
        return words.OfficialTurn("", self.user.filled(filling.slot), system=system)
