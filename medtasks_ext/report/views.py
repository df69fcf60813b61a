"""Files that installed packages add to a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import write_text
from medtasks_ext.hooks import REPORT_VIEWS, leave_out, results

if TYPE_CHECKING:
    from medtasks_ext.report.gather import Report


def write_views(folder: Path, report: Report, taken: list[Path]) -> list[Path]:
    """A view that fails is named, and left out; none replaces one of the `taken` files."""
    written: list[Path] = []
    for hook, files in results(REPORT_VIEWS, report):
        made: dict[str, str] = files if isinstance(files, dict) else {"": ""}
        for name, text in made.items():
            path = folder / name
            if path.parent != folder or path in (*taken, *written):
                leave_out(hook.fault(f"names no file of its own: {name!r}"))
                continue
            write_text(path, text)
            written.append(path)
    return written
