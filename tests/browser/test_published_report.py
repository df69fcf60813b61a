"""The page of `medtasks report --published all`: where it begins, what it offers, and its numbers."""

import csv
import re

import pytest

from tests.browser.axe import LOOKS, violations
from tests.browser.report_page import on_all, open_tables, table, texts, whole
from tests.conftest import command
from tests.report.made import data_of


@pytest.fixture(scope="module")
def made(made_once):
    def fill(folder):
        command("report", "--published", "all", "-o", folder / "out")

    return made_once("published", fill) / "out"


@pytest.fixture
def opened(made, browser):
    def open_at(address="", width=1440, dark=False):
        browser.show(f"{(made / 'report.html').as_uri()}#{address}", width=width, dark=dark)
        return browser

    return open_at


@pytest.fixture(scope="module")
def data(made):
    return data_of(made / "report.html")


@pytest.fixture(scope="module")
def suite_rows(made):
    """Rows of groups.csv of whole suites: (suite, strategy) -> model -> row."""
    found = {}
    with (made / "groups.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["axis"] == "suite" and row["score"]:
                found.setdefault((row["suite"], row["strategy"]), {})[row["model"]] = row
    return found


@pytest.mark.parametrize("width", [1440, 768, 420])
def test_it_opens_on_a_picture_of_all_models_by_size(opened, suite_rows, data, width):
    browser = opened("", width)
    [top, *_] = on_all(browser, "main .drawing svg", "one.getBoundingClientRect().top")
    assert top < (700 if width == 420 else 600)
    open_tables(browser)
    sizes = {item["label"]: item["facts"]["size"] for item in data["entries"] if item["suite"] == "bridge"}
    shown = table(browser, ".as-table table")
    assert len(shown) == sum(size is not None for size in sizes.values()) > 80
    rows = suite_rows["bridge", "zero_shot"]
    for name, cells in shown.items():
        assert cells[2].startswith(f"{float(rows[name.removesuffix(' (BRIDGE)')]['score']):.3f}")
    assert browser.js("document.documentElement.scrollWidth <= innerWidth") and browser.complaints() == []


def test_what_to_know_is_said_once(opened, data):
    browser = opened()
    said = whole(browser)
    assert len(data["differences"]) >= 5
    for item in data["differences"]:
        assert said.count(item.partition(": from ")[2] or item) == 1
    assert "(published)" not in said and "published results only" not in said
    assert not browser.js("document.querySelector('main details.plain').open")


def test_every_view_that_is_offered_shows_something(opened):
    browser = opened()
    links = dict(on_all(browser, "#views a", "[one.textContent, one.getAttribute('href').slice(1)]"))
    assert not {"Pairs", "Judges", "Labels", "Calibration"} & set(links)
    assert {"Leaderboard", "Heat map", "Profiles", "Models", "Strategies", "Tasks"} <= set(links)
    for address in links.values():
        browser.go(address)
        assert on_all(browser, "main figure svg, main canvas, main table tbody tr", "1"), address
        assert not re.search(r"No (model|task|comparison)s? .*(selection|score)", whole(browser)), address
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("suite", "most"), [("bridge", 20), ("medhelm", 20), ("clinicbench", 20), ("mlb", 5)]
)
def test_the_heat_map_has_several_columns_with_scores(opened, suite, most):
    browser = opened(f"heatmap?suite={suite}")
    open_tables(browser)
    rows = table(browser, "table.values")
    columns = [name for name in texts(browser, "table.values thead th") if name]
    assert 2 < len(columns) <= most + 1 and len(rows) >= 6
    assert all(any(re.match(r"\d\.\d", cell) for cell in cells) for cells in rows.values())
    assert sum(cell == "–" for cells in rows.values() for cell in cells) <= len(rows)


def test_readable_answers_and_the_papers_intervals_stand_as_in_the_terminal(opened, suite_rows):
    browser = opened("leaderboard")
    rows = suite_rows["bridge", "zero_shot"]
    titles = texts(browser, "main thead th")
    valid = next(place for place, title in enumerate(titles) if title.startswith("Readable"))
    parts = ["one.querySelector('.name')", "one.querySelector('.interval')", f"one.cells[{valid}]"]
    read = ", ".join(f"{part}.textContent" for part in parts)
    shown = on_all(browser, "main tbody tr", f"[{read}]")
    assert len(shown) == len(rows) == 98 and sum(interval != "" for _, interval, _ in shown) > 90
    for name, interval, share in shown:
        row = rows[re.sub(r" \(BRIDGE\)$", "", name)]
        ends = [row[f"paper_interval_{end}"] for end in ("low", "high")]
        assert interval == (f"[{float(ends[0]):.3f}, {float(ends[1]):.3f}]p" if ends[0] else "")
        assert share == (f"{100 * float(row['valid']):.1f} %" if row["valid"] else "–")
    assert sum(share != "–" for *_, share in shown) > 90


@pytest.mark.parametrize("width", [1440, 420])
def test_names_of_axes_are_words_and_no_cell_of_the_tasks_lies_over_another(opened, width):
    browser = opened("tasks", width)
    cells = [cell for row in table(browser).values() for cell in row[:4]]
    assert "Named entity recognition" in cells and "German" in cells
    assert not [cell for cell in cells if "_" in cell or cell in ("en", "zh", "de")]
    over = on_all(
        browser,
        "main tbody tr:nth-child(-n+30) :is(th, td)",
        "Math.max(...[...one.querySelectorAll('*')].map((part) => part.getBoundingClientRect().right)) "
        "> one.getBoundingClientRect().right + 1",
    )
    assert len(over) > 100 and not any(over)


@pytest.mark.parametrize("width", [1440, 1920, 768])
def test_all_views_have_one_width(opened, width):
    browser = opened(width=width)
    wide = {}
    for address in (
        "leaderboard",
        "heatmap",
        "models",
        "models?suite=medhelm&against=cost",
        "profile",
        "tasks",
    ):
        browser.go(address)
        shown = "[...document.querySelectorAll('main figure, main .scroll')]"
        wide[address] = browser.js(f"Math.max(...{shown}.map((one) => one.getBoundingClientRect().width))")
        [drawn] = on_all(browser, "main .drawing svg", "one.getBoundingClientRect().width")[:1] or [None]
        if address in ("models", "profile", "models?suite=medhelm&against=cost"):
            assert wide[address] - 16 <= drawn <= wide[address], address
    assert len(set(wide.values())) == 1 and wide["tasks"] >= min(width - 60, 1472)
    for address in ("leaderboard", "tasks"):
        browser.go(address)
        [table_] = on_all(browser, "main .scroll > table", "one.getBoundingClientRect().width")
        assert table_ >= wide[address], address


PARTS = (
    "overview", "leaderboard", "heatmap", "profile", "models?suite=medhelm&against=cost", "strategies",
    "tasks",
)  # fmt: skip


@pytest.mark.parametrize(("width", "dark"), [*LOOKS, (768, False)])
def test_axe_finds_no_barrier(opened, width, dark):
    browser = opened("", width, dark)
    for address in (*PARTS, "overview?suite=mlb", "model/gemini-2.5-flash (published)"):
        browser.go(address)
        assert violations(browser) == [], address


def test_at_400_percent_nothing_is_cut_and_pages_scroll_one_way(opened):
    browser = opened("", 320)  # 1,280 pixels, four times as large
    for address in (*PARTS, "task/bridge_mie", "model/gemini-2.5-flash (published)"):
        browser.go(address)
        assert browser.js("document.documentElement.scrollWidth <= innerWidth"), address
        outside = on_all(
            browser,
            "h1, h2, h3, main p, .controls button, .controls select, #filters :is(.pills, [type=search])",
            "one.offsetParent !== null && one.getBoundingClientRect().right > innerWidth + 1",
        )
        assert not any(outside), address
    assert browser.complaints() == []


def test_the_keyboard_alone_reaches_and_changes_every_view(opened):
    browser = opened()
    reached = []
    browser.press("Tab", "Enter")  # past the frame, by the link for that
    assert browser.js("document.activeElement.id") == "main"
    for _ in range(60):
        browser.press("Tab")
        reached.append(browser.js("document.activeElement.textContent || document.activeElement.tagName"))
    assert {"release date", "weights", "SVG", "PNG", "The same values as a table"} <= set(reached)
    browser.js("document.querySelector('[data-key=\"colour=access\"]').focus()")
    browser.press("Enter")
    assert "colour=access" in browser.js("location.hash")
    browser.wait("document.activeElement.dataset.key === 'colour=access'")
    browser.js("document.querySelector('#views a[data-part=strategies]').focus()")
    browser.press("Enter")
    browser.wait("location.hash.startsWith('#strategies') && !!document.querySelector('main figure svg')")
