"""Markdown of the documentation's pages and of cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """On one line, and a bar in it divides nothing."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    def line(cells: Iterable[object]) -> str:
        return f"| {' | '.join(map(cell, cells))} |"

    return [line(head), "|" + " --- |" * len(head), *map(line, rows)]
