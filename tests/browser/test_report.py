"""The page of `medtasks report` in a real browser: how it opens, is used, looks, and what it must not do."""

import csv
import re
import time
from copy import deepcopy
from xml.etree import ElementTree

import pytest

from tests.browser.report_page import PARTS, address_of, leaderboard, on_all, open_tables, same, texts, whole
from tests.report.viewed import HOSTILE

pytestmark = pytest.mark.long


def test_sorting_searching_and_filtering_by_hand_end_up_in_the_address(show):
    browser = show("leaderboard")
    by_name = "[data-key='sort-leaderboard model']"
    browser.click(by_name)
    shown = [name for name, row in leaderboard(browser).items() if not row["section"]]
    assert shown == sorted(shown, key=lambda name: re.sub(r"\d+", lambda n: n[0].zfill(9), name.lower()))
    # the two complete runs were asked in own words: no rank among published models
    apart = [row["section"] for row in leaderboard(browser).values() if "Other conditions" in row["section"]]
    assert (len(shown), len(apart)) == (5, 2)
    assert texts(browser, "th[aria-sort=ascending]")[0].startswith("Model")
    browser.click(by_name)
    assert [name for name, row in leaderboard(browser).items() if not row["section"]] == shown[::-1]

    browser.click("#search")
    browser.press(*"llama")
    assert all("llama" in name.lower() for name in leaderboard(browser)) and len(leaderboard(browser)) == 2
    assert browser.js("document.activeElement.id") == "search"

    browser.click(".pills input[value=medhelm]")
    browser.click(".pills input[value=bridge]")
    browser.click("[data-filter=access] summary")
    browser.click("[data-filter=access] input[value=open]")
    for part in ("suite=medhelm", "access=open", "q=llama"):
        assert part in address_of(browser)

    before = leaderboard(browser), texts(browser, "#filters .selection")
    browser.reload()
    assert (leaderboard(browser), texts(browser, "#filters .selection")) == before
    assert browser.js("document.getElementById('search').value") == "llama"
    browser.click("#reset")
    assert address_of(browser) == "#leaderboard?sort-leaderboard=-model"


def test_everything_can_be_reached_with_the_keyboard(show):
    browser = show("leaderboard?kind=own")
    browser.press("Tab")
    assert browser.js("document.activeElement.id") == "skip"
    browser.press("Enter")
    assert browser.js("document.activeElement.id") == "main" and "leaderboard" in address_of(browser)

    # a sorted column keeps the focus, though it is drawn anew
    browser.js("document.querySelector('[data-key=\"sort-leaderboard valid\"]').focus()")
    browser.press("Enter")
    assert browser.js("document.activeElement.dataset.key") == "sort-leaderboard valid"
    assert browser.js("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"

    # a menu opens, its boxes take a space, Escape closes it and gives the focus back
    summary = "[data-filter=language] summary"
    browser.js(f"document.querySelector('{summary}').focus()")
    browser.press("Enter", "Tab", " ")
    assert "language=en" in address_of(browser)
    browser.press("Escape")
    assert not browser.js("document.querySelector('[data-filter=language]').open")
    assert browser.js(f"document.activeElement.matches('{summary}')")


def test_texts_from_the_data_stay_texts(show, report):
    other = deepcopy(report)
    other["title"] = other["entries"][0]["label"] = other["entries"][0]["model"] = HOSTILE
    facts = {HOSTILE: HOSTILE}
    other["entries"][0].update(notes=[HOSTILE], details=facts, settings=facts, price=HOSTILE)
    other["differences"] = [HOSTILE]
    other["faults"] = [{"where": HOSTILE, "what": HOSTILE, "remedy": HOSTILE}]
    other["axes"][1]["values"][0][1] = HOSTILE
    [dataset] = [item for item in other["datasets"] if item["id"] == "bridge_mie"]
    dataset.update(name=HOSTILE, summary=HOSTILE, url="javascript:window.hit=1", licence=HOSTILE)
    for row in other["missing"]:
        row["reason"] = HOSTILE
    other["first"][0].update(title=HOSTILE, place=HOSTILE)
    more = {"metrics": [[HOSTILE, HOSTILE]], "open_questions": [HOSTILE]}
    other["tasks"]["bridge_mie"].update(rule=HOSTILE, **more)

    browser = show("overview", of=other)
    for address in (*PARTS, browser.js("address('model', entries[0].label)"), "task/bridge_mie"):
        browser.go(address)
        assert texts(browser, "img, main script, [onerror]") == [], address
        links = on_all(browser, "a", "one.getAttribute('href')")
        assert not any(link.lower().startswith("javascript") for link in links)
    browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
    assert whole(browser).count(HOSTILE) >= 10 and HOSTILE in browser.js("document.title")
    assert browser.js("window.hit") is None and browser.complaints() == []


def test_synthetic_rows_are_announced_and_never_ranked_beside_real_ones(show, report):
    other = deepcopy(report)
    other["sample"] = other["entries"][0]["sample"] = True
    synthetic, real = (entry["label"] for entry in other["entries"][:2])
    browser = show("leaderboard?kind=own", of=other)
    assert "SAMPLE DATA" in texts(browser, ".banner")[0]
    shown = leaderboard(browser)
    assert shown[synthetic]["place"] == "" and shown[synthetic]["section"].startswith("SAMPLE")
    assert shown[real]["place"] == "1" and shown[real]["section"] == ""
    for part in ("overview", "leaderboard", "strategies", "task/bridge_mie"):
        browser.go(part)
        open_tables(browser)
        lines = on_all(browser, "main tbody tr", "[one.textContent, !!one.querySelector('.tag.sample')]")
        about = [marked for text, marked in lines if synthetic in text]
        assert about and all(about), part

    for entry in other["entries"][:3]:
        entry["sample"] = True
    browser = show("leaderboard?kind=own", of=other)
    assert [row["place"] for row in leaderboard(browser).values()] == ["1", "2", ""]
    assert len(texts(browser, "main .tag.sample")) == 3


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (420, True)])
def test_the_page_opens_with_all_models_beside_each_other_on_one_scale(show, report, width, dark):
    browser = show("", width=width, dark=dark)
    [zero] = [place for place, (name, _) in enumerate(report["strategies"]) if name == "zero_shot"]
    rows = [row for row in report["first"] if row["strategy"] == zero]
    own = [entry["label"] for entry in report["entries"] if entry["kind"] != "published"]
    assert {report["entries"][row["entry"]]["label"] for row in rows} == {*own} and len(rows) > 8
    shown = on_all(browser, "main table tbody tr", "[...one.cells].map((cell) => cell.textContent)")
    for row, cells in zip(rows, shown, strict=True):
        assert cells[0] == row["title"] and cells[1] == report["entries"][row["entry"]]["label"]
        assert same(cells[2], row["score"], row["low"], row["high"])
        assert cells[3].startswith(f"{row['scored']}/{row['total']}")
    # in the picture a line for each suite, a dot for each row, and the middle half of published models
    drawn = on_all(browser, "main .drawing .mark-symbol path", "one.getAttribute('d')")
    assert len(drawn) >= len(rows) + len(own)
    published = {row["title"] for row in rows if row["quarters"]}
    assert published and len(on_all(browser, "main .drawing .mark-rect path", "1")) >= len(published)
    assert texts(browser, "main .key") == ["published models: median and middle half"]
    # where models stand is said once, whoever it is true of
    places = texts(browser, "main .places li")
    assert len(places) == len({(row["title"], row["place"]) for row in rows if row["place"]})
    assert browser.complaints() == []


def saved(folder, ending):
    end = time.monotonic() + 30
    while not (files := [*folder.glob(f"*.{ending}")]):
        assert time.monotonic() < end, "nothing was saved"
        time.sleep(0.05)
    return files[0]


@pytest.mark.parametrize("part", ["heatmap?suite=mlb", "models"])
def test_a_picture_is_saved_as_svg_and_png_and_its_figures_as_csv(show, browser, part):
    show(part, dark=True)
    for file in browser.downloads.glob("*"):
        file.unlink()
    button = "[...document.querySelectorAll('figure button')].find((one) => one.textContent === '{}')"
    for ending in ("svg", "png"):
        browser.js(f"{button.format(ending.upper())}.click()")
    image = ElementTree.parse(saved(browser.downloads, "svg")).getroot()
    [label, *_] = on_all(browser, "main .picture", "one.getAttribute('aria-label')")
    written = "".join(words for words in image.itertext())
    assert re.sub(r"\W", "", label) in re.sub(r"\W", "", written)  # outside the page it says what it is
    assert saved(browser.downloads, "png").read_bytes().startswith(b"\x89PNG")
    open_tables(browser)
    browser.js(f"{button.format('CSV')}.click()")
    rows = [*csv.reader(saved(browser.downloads, "csv").open(encoding="utf-8-sig"))]
    shown = on_all(browser, "figure table tbody tr", "one.cells.length")
    assert len(rows) == len(shown) + 1 and all(len(row) == shown[0] for row in rows)
    assert browser.complaints() == [] and browser.requests() == []


def test_dark_and_light_follow_the_system_or_one_s_choice(show):
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((part) => part > 240)"
    assert show("leaderboard").js(ground)
    browser = show("leaderboard", dark=True)
    assert not browser.js(ground)
    browser.js("document.getElementById('theme').value = 'light'")
    browser.js("document.getElementById('theme').dispatchEvent(new Event('change'))")
    browser.reload()
    assert browser.js(ground) and browser.js("document.getElementById('theme').value") == "light"
    browser.js("localStorage.clear()")


def test_scores_by_label_are_drawn_counted_and_said_whose_labels_they_are(show):
    browser = show("labels?suite=mlb")
    [svg] = texts(browser, "main svg")
    assert "hard" in svg and "easy" in svg
    cells = on_all(browser, "main .scroll tbody tr", "[...one.cells].map((cell) => cell.textContent)")
    assert [(row[0], row[2], row[4], row[5]) for row in cells] == [
        ("hard", "0.310 [0.250, 0.350]", "30 of 80", "3"),
        ("hard", "0.420 [0.400, 0.500]", "30 of 80", "3"),
        ("easy", "0.770 [0.700, 0.800]", "50 of 80", "3"),
        ("easy", "0.580 [–]", "40 of 70", "2"),
    ]
    assert "the rows of the datasets themselves" in whole(browser)
    browser.click("[data-key='label=department']")
    assert "label=department" in address_of(browser)
    assert "<b>Ward</b>" in whole(browser) and "a file of labels" in whole(browser)
