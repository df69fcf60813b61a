"""How many parameters a model has: from its weights, its name, or the registry of models."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.models import known_models

_LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
_TOTAL = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)B(?![A-Za-z])", re.IGNORECASE)
_ACTIVE = re.compile(r"(?<![A-Za-z0-9])A(\d+(?:\.\d+)?)B(?![A-Za-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Size:
    """Parameters of a model."""

    total: float
    active: float  # those that a token passes through; fewer than all in a mixture of experts
    source: str  # where the figures come from, in words


def size_of(name: str, folder: Path | None = None, counted: int | None = None) -> Size | None:
    """The size of a model; None where nothing says it.

    The number of active parameters is in the name (`30B-A3B`) or taken to be the total.

    Args:
        name: as on the hub, or of the folder.
        folder: with safetensors files, if there is one.
        counted: total as the hub counts it, if known.
    """
    if folder is not None:
        counted = stored_parameters(folder)
    found = _TOTAL.search(name)
    named = float(found[1] or 1) * float(found[2]) * 1e9 if found else None
    total = float(counted) if counted else named
    if total is None:
        known = known_models().get(name)
        billions = known.model.parameters_b if known else None
        source = "the registry of models, which does not say how many are active: all are counted"
        return Size(billions * 1e9, billions * 1e9, source) if billions else None
    active = float(match[1]) * 1e9 if (match := _ACTIVE.search(name)) else total
    source = "the name" if not counted else "the weights" if folder else "the hub"
    return Size(total, min(active, total), source)


def stored_parameters(folder: Path) -> int | None:
    """Parameters in the safetensors files of a folder, read from their headers; None without such files."""
    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            check_regular(path)
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(min(length, _LARGEST_HEADER)))
        except (OSError, struct.error, ValueError, MedtasksError):
            return None
        total += sum(prod(item["shape"]) for name, item in header.items() if name != "__metadata__")
    return total or None
