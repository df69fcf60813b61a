"""What tests read off a page of a report in the browser."""

import json
import re
from typing import Any

from tests.browser.chromium import Chromium

PARTS = (
    "overview", "leaderboard", "heatmap", "profile", "pairs", "models", "strategies", "labels", "tasks",
)  # fmt: skip


def on_all(browser: Chromium, selector: str, expression: str) -> list[Any]:
    """An expression of `one`, for every element that a selector finds."""
    return browser.js(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => {expression})")


def texts(browser: Chromium, selector: str) -> list[str]:
    return on_all(browser, selector, "one.textContent")


def whole(browser: Chromium) -> str:
    return browser.js("document.querySelector('main').textContent")


def address_of(browser: Chromium) -> str:
    return browser.js("location.hash")


def table(browser: Chromium, selector: str = "main table") -> dict[str, list[str]]:
    """First column (the link in it, if there is one) -> the texts of the other cells."""
    name = "(one.cells[0].querySelector('a') ?? one.cells[0]).textContent"
    lines = on_all(
        browser, f"{selector} tbody tr", f"[{name}, [...one.cells].slice(1).map((cell) => cell.textContent)]"
    )
    return dict(lines)


def open_tables(browser: Chromium) -> None:
    browser.js("for (const one of document.querySelectorAll('main details.as-table')) one.open = true")
    browser.wait("document.querySelectorAll('main details.as-table:not(:has(table))').length === 0")


def leaderboard(browser: Chromium) -> dict[str, dict[str, str]]:
    """Label -> place, score, interval, tasks and section as shown, in the order shown."""
    rows: dict[str, dict[str, str]] = {}
    section = ""
    parts = {"place": ".place", "name": ".name", "score": ".score", "interval": ".interval"}
    found = ", ".join(f"{key}: one.querySelector('{where}')?.textContent" for key, where in parts.items())
    tasks = "tasks: one.querySelector('.coverage, td.number > [title]')?.textContent"
    lines = on_all(
        browser,
        "main table tbody:not(.pinned) tr",
        f"one.className === 'section' ? one.textContent : {{ {found}, {tasks} }}",
    )
    for line in lines:
        if isinstance(line, str):
            section = line
        else:
            rows[line["name"]] = {**line, "section": section}
    return rows


def same(shown: str, *values: float) -> bool:
    """Whether the numbers in a text are these, to the three digits shown."""
    numbers = [float(number) for number in re.findall(r"[+-]?\d+\.\d+", shown.replace("−", "-"))]
    return len(numbers) == len(values) and all(
        abs(number - value) < 0.0005 + 1e-5 for number, value in zip(numbers, values, strict=True)
    )
