"""Atomic JSON files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError


def write_json(path: Path, content: Any) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8"
    ) as part:
        json.dump(content, part, ensure_ascii=False, indent=1, default=str)
        part.flush()
        os.fsync(part.fileno())
    Path(part.name).replace(path)


def read_json(path: Path) -> Any:
    """Read a file that `write_json` wrote.

    Raises:
        MedtasksError: it is missing or was damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="name the folder of a run") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise MedtasksError(f"damaged ({error})", where=path, remedy="delete it and run again") from None
