"""How long the texts of a dataset are, as published: `lengths.csv`, one row per dataset.

Prompts are counted on the rows themselves where these are on the machine. Of most gated data they are not,
and the bundled sample rows are often much shorter than the records that they stand for.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

LENGTHS_FILE = Path(__file__).with_name("lengths.csv")

_EAST_ASIAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_EAST_ASIAN}]|[^\W{_EAST_ASIAN}]+")

#: `words` and `tokens` are those of an input; `prompt_tokens` those of the suite's own zero-shot prompt,
#: which has an instruction before the input.
Unit = Literal["words", "tokens", "prompt_tokens"]


@dataclass(frozen=True)
class Lengths:
    """Mean lengths of the texts of a dataset."""

    unit: Unit  # of both figures
    input: float  # mean over the inputs of the test documents
    output: float | None  # mean over their gold answers; None where it is not published
    source: str  # who publishes the figures


@lru_cache(maxsize=1)
def published_lengths() -> dict[str, Lengths]:
    """Dataset id -> its lengths, for those that have published ones."""
    with LENGTHS_FILE.open(encoding="utf-8", newline="") as file:
        return {
            row["id"]: Lengths(
                row["unit"],  # type: ignore[arg-type]
                float(row["input"]),
                float(row["output"]) if row["output"] else None,
                row["source"],
            )
            for row in csv.DictReader(file)
        }


def count_words(text: str) -> int:
    """Words by the rule that BRIDGE's figures agree with.

    A run of letters, digits and underscores is a word, and so is every Chinese or Japanese character.
    """
    return len(_WORD.findall(text))
