"""From `forgeries.yaml` to forgeries: every class with all its variants."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from medtasks_ext.strict import Strict
from tests.forgeries.base import CLOSED, LABELS, TEXTS, Base, answered
from tests.forgeries.edits import EDITS, Hands
from tests.forgeries.forgery import Forgery

FILE = Path(__file__).with_name("forgeries.yaml")
#: How often the model of a forger is right: as often as the better honest ones.
RIGHT = 0.8
DATE = "2026-06-01"
_TASKS = {"LABELS": LABELS, "TEXTS": TEXTS, "CLOSED": CLOSED}


class ForgeryClass(Strict):
    """A class of forgeries.

    Attributes:
        name: of the class.
        of: what is forged.
        what: in words.
        edits: what the forger does, in this order: name of an edit -> its arguments. `$name` stands for a
            value of `vary`.
        vary: name -> values; every combination is a variant.
        detectable: whether the check can tell it from honest work. Then it has no rank, and is named.
        ranked: whether it has a rank all the same.
        undetected: what readers of the leaderboard are told of it (`undetected.yaml`).
        words: pattern that is found in what is said of it.
    """

    name: str = Field(alias="class")
    of: Literal["submission", "run"] = "submission"
    what: str
    edits: list[dict[str, dict[str, Any] | str]]
    vary: dict[str, list[Any]] = Field(default={})
    detectable: bool
    ranked: bool = False
    undetected: str | None = None
    words: str = "."


class Variant(Strict):
    """One forgery that is to be made."""

    of_class: ForgeryClass
    number: int
    values: dict[str, Any]

    @property
    def id(self) -> str:
        """Its name in tests."""
        said = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.of_class.name}: {said}" if said else self.of_class.name

    @property
    def model(self) -> str:
        """The model in whose name it is submitted."""
        slug = "".join(letter if letter.isalnum() else "-" for letter in self.of_class.name)
        return f"Forger/{slug}-{self.number}"

    def edits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Name and arguments of each edit."""
        for edit in self.of_class.edits:
            [(name, arguments)] = self._filled(edit).items()
            yield name, arguments

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._filled(key): self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        if value.startswith("$") and value[1:] in self.values:
            return self._filled(self.values[value[1:]])
        for name, said in self.values.items():
            value = value.replace(f"${name}", str(said))
        for name, task in _TASKS.items():
            value = value.replace(name, task)
        return value


def classes() -> list[ForgeryClass]:
    """All classes."""
    return [ForgeryClass.model_validate(item) for item in yaml.safe_load(FILE.read_text(encoding="utf-8"))]


def variants(of: str) -> list[Variant]:
    """All forgeries of submissions, or of runs."""
    found = []
    for item in classes():
        every = itertools.product(*item.vary.values())
        for number, values in enumerate(every) if item.of == of else ():
            named = dict(zip(item.vary, values, strict=True))
            found.append(Variant(of_class=item, number=number, values=named))
    return found


def forge(variant: Variant, base: Base, others: dict[str, Forgery], root: Path) -> Path:
    """Make a forged submission.

    Args:
        others: honest submissions, by model.
        root: folder of submissions.
    """
    chance = random.Random(variant.id)
    forgery = base.read("Lab-0/Model-0")
    forgery.model, forgery.date = variant.model, DATE
    for task in (LABELS, TEXTS):
        answered(forgery, task, chance, RIGHT)
    forgery.score_again()
    hands = Hands(forgery, others, chance)
    for name, arguments in variant.edits():
        EDITS[name](hands, **arguments)
    return forgery.write(root, base.downloads)


def forge_run(variant: Variant, base: Base, folder: Path) -> Path:
    """Make a forged folder of a run."""
    shutil.copytree(base.run, folder)
    for name, arguments in variant.edits():
        EDITS[name](folder, **arguments)
    return folder
