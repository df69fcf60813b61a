"""How long the texts of a dataset are, as published: `published_lengths.csv`, one row per dataset."""

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

LENGTHS_FILE = Path(__file__).with_name("published_lengths.csv")

#: `words` and `tokens` are those of an input; `prompt_tokens` those of the suite's own zero-shot prompt,
#: which has an instruction before the input.
Unit = Literal["words", "tokens", "prompt_tokens"]


@dataclass(frozen=True)
class Lengths:
    unit: Unit  # of both figures
    input: float  # mean over the inputs of the test documents
    output: float | None  # mean over their gold answers; None where it is not published
    source: str  # who publishes the figures


@lru_cache(maxsize=1)
def published_lengths() -> dict[str, Lengths]:
    """Dataset id -> its lengths, for those that have published ones."""
    with LENGTHS_FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    output = [float(row["output"]) if row["output"] else None for row in rows]
    return {
        row["id"]: Lengths(row["unit"], float(row["input"]), given, row["source"])  # type: ignore[arg-type]
        for row, given in zip(rows, output, strict=True)
    }
