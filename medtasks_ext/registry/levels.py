"""The levels of difficulty of MLB's questions (section 3.4)."""

from __future__ import annotations

from typing import Literal, TypeAlias

Level: TypeAlias = Literal["hard", "medium", "easy"]
#: In the order in which a ratio names them.
LEVELS: tuple[Level, ...] = ("hard", "medium", "easy")
