"""The page of `medtasks report` in a real browser: how it opens, is used, looks, and what it must not do."""

import csv
import json
import re
import time
from copy import deepcopy
from xml.etree import ElementTree

import pytest

from tests.browser.axe import LOOKS, violations
from tests.browser.report_page import PARTS, address_of, leaderboard, on_all, open_tables, same, texts, whole

HOSTILE = '</script><img src=x onerror="window.hit=1"><script>window.hit=1</script> &amp; 中文 "\'\\'


def test_every_part_is_drawn_without_network_and_without_complaint(show, report):
    browser = show("")
    label = report["entries"][0]["label"]
    offered = [target[1:] for target in on_all(browser, "#views a", "one.getAttribute('href')")]
    assert [target.partition("?")[0] for target in offered] == [*PARTS]
    for address in (*offered, "task/bridge_mie", f"model/{label}", "leaderboard?suite=&strategy="):
        browser.go(address)
        assert texts(browser, "main h2")[0] and len(whole(browser)) > 200, address
    assert browser.complaints() == [] and browser.requests() == []


@pytest.mark.parametrize(
    "address",
    [
        "nowhere", "task/nothing", "model/%E0%A4%A", "leaderboard?suite=x&sort-leaderboard=-y&language=%",
        "profile?axis=q&models=%",
    ],
)  # fmt: skip
def test_an_address_that_means_nothing_still_shows_a_page(show, address):
    browser = show(address)
    assert texts(browser, "main h2")[0] and browser.complaints() == []


def test_an_empty_selection_says_so(show):
    assert "No task fits all filters" in whole(show("leaderboard?suite=mlb&language=en"))


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


def test_counts_beside_a_filter_say_what_it_would_give(show, report):
    browser = show("leaderboard?suite=bridge&task_type=summarization")
    browser.click("[data-filter=language] summary")
    shown = on_all(
        browser,
        "[data-filter=language] label",
        "[one.querySelector('input').value, one.querySelector('.n').textContent]",
    )
    assert len(shown) == 9
    for value, n in shown:
        assert int(n) == sum(
            (item["suite"], item["task_type"], item["language"]) == ("bridge", "summarization", value)
            for item in report["datasets"]
        )


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

    # a picture's figures are a table, whose names lead on
    browser.go("heatmap?kind=own&suite=mlb")
    browser.js("document.querySelector('.as-table summary').focus()")
    browser.press("Enter")
    browser.wait("!!document.querySelector('table.values')")
    browser.press("Tab", "Tab")
    name = browser.js("document.activeElement.textContent")
    assert name in texts(browser, "table.values thead th")
    browser.press("Enter")
    browser.wait("location.hash.startsWith('#task/')")
    browser.wait(f"document.querySelector('main h2').textContent.endsWith({json.dumps(name)})")


def test_a_finger_first_reads_a_cell_of_the_heat_map_and_then_opens_it(show):
    browser = show("heatmap?kind=own&suite=mlb", width=375)
    browser.js("document.querySelector('.drawing').scrollIntoView({block: 'center'})")
    x, y = on_all(
        browser,
        ".drawing .mark-rect path",
        "(({left, top}) => [left + 5, top + 8])(one.getBoundingClientRect())",
    )[2]

    def tap():
        browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    tap()
    browser.wait("!document.getElementById('tip').hidden")
    assert re.search(r"0\.\d{3} \[", texts(browser, "#tip")[0])
    assert address_of(browser).startswith("#heatmap")
    tap()
    browser.wait("location.hash.startsWith('#task/mlb_')")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


def heading(text: str) -> str:
    """The condition that a view with this in its heading is drawn; the address changes before."""
    return f"document.querySelector('main h2').textContent.includes({json.dumps(text)})"


def test_from_a_model_to_a_task_and_back(show, report):
    browser = show("leaderboard?kind=own")
    first = leaderboard(browser)
    browser.click("main tbody .name")
    browser.wait(heading(next(iter(first))))
    browser.js("[...document.querySelectorAll('main a')].find((one) => one.textContent === 'MIE').click()")
    browser.wait(heading("MIE"))
    assert {"Scores", "Prompts", "How it is scored"} <= set(texts(browser, "main h3"))
    page = report["tasks"]["bridge_mie"]
    assert texts(browser, "main mark")[0] == page["prompts"]["zero_shot"]["strategy_line"]
    assert page["rule"] in whole(browser)
    browser.js("history.back()")
    browser.wait(heading(next(iter(first))))
    browser.js("history.back()")
    browser.wait(heading("Leaderboard"))
    assert leaderboard(browser) == first


def saved(folder, ending):
    end = time.monotonic() + 30
    while not (files := [*folder.glob(f"*.{ending}")]):
        assert time.monotonic() < end, "nothing was saved"
        time.sleep(0.05)
    return files[0]


@pytest.mark.parametrize("part", ["heatmap?suite=mlb", "profile", "models", "strategies", "overview"])
def test_a_picture_is_saved_as_svg_and_png_and_its_figures_as_csv(show, report_folder, part):
    browser, folder = show(part, dark=True), report_folder / "downloads"
    for file in folder.glob("*"):
        file.unlink()
    button = "[...document.querySelectorAll('figure button')].find((one) => one.textContent === '{}')"
    for ending in ("svg", "png"):
        browser.js(f"{button.format(ending.upper())}.click()")
    image = ElementTree.parse(saved(folder, "svg")).getroot()
    assert image.tag.endswith("svg") and len([*image.iter("{http://www.w3.org/2000/svg}path")]) > 3
    [label, *_] = on_all(browser, "main .picture", "one.getAttribute('aria-label')")
    written = "".join(words.text or "" for words in image.iter("{http://www.w3.org/2000/svg}tspan"))
    written += "".join(words.text or "" for words in image.iter("{http://www.w3.org/2000/svg}text"))
    assert re.sub(r"\W", "", label) in re.sub(r"\W", "", written)  # outside the page it says what it is
    assert saved(folder, "png").read_bytes().startswith(b"\x89PNG")
    open_tables(browser)
    browser.js(f"{button.format('CSV')}.click()")
    rows = [*csv.reader(saved(folder, "csv").open(encoding="utf-8-sig"))]
    shown = on_all(browser, "figure table tbody tr", "one.cells.length")
    assert len(rows) == len(shown) + 1 and all(len(row) == shown[0] for row in rows)
    assert browser.complaints() == [] and browser.requests() == []


def test_answers_to_gated_data_are_said_to_be_left_out(show, report):
    gated = next(item["id"] for item in report["datasets"] if item["access"] == "gated")
    there = next(item["id"] for item in report["datasets"] if item["access"] == "open")
    answers = {"answers": {"held": [there], "withheld": [gated]}}
    browser = show(f"task/{gated}", of={**report, **answers})
    assert "Answers left out: gated data" in whole(browser)
    browser.go("tasks")
    assert "Answers to 1 dataset are left out" in whole(browser) and "--answers" in whole(browser)
    browser.go(f"task/{there}")
    assert "All answers, and why they are not right" in texts(browser, "main a")


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
    page = other["tasks"]["bridge_mie"]
    page["rule"] = page["note"] = HOSTILE
    page["prompts"]["zero_shot"] = {"instruction": f"{HOSTILE} x", "input": HOSTILE, "strategy_line": HOSTILE}

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


def test_an_entry_that_was_asked_some_documents_only_is_marked_and_not_ranked(show, report):
    other = deepcopy(report)
    other["entries"][0]["limited"] = True
    browser = show("leaderboard?kind=own", of=other)
    shown = leaderboard(browser)[other["entries"][0]["label"]]
    assert shown["place"] == "" and shown["section"].startswith("Limited")
    assert "limited" in texts(browser, "main .model .tag")
    words = "BRIDGE: an estimate ± 0.010, 26,894 of 138,483 documents"
    other["entries"][0]["estimates"] = [words]
    marks = texts(show("leaderboard?kind=own", of=other), "main .model .tag")
    assert words in marks and "limited" not in marks


@pytest.mark.parametrize("width", [375, 768, 1300])
def test_nothing_is_wider_than_the_screen(show, width):
    browser = show("overview", width=width)
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for address in (*PARTS, "task/bridge_mie", "leaderboard?suite=&strategy=", "profile?axis=specialties"):
        browser.go(address)
        assert not browser.js(wide), address


def luminance(colour):
    """Relative luminance (WCAG 2) of `#rgb`, `#rrggbb` or `rgb(…)`."""
    if colour.startswith("#"):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[place : place + 2], 16) for place in (0, 2, 4)]
    else:
        parts = [int(part) for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def ground(browser):
    return luminance(browser.js("getComputedStyle(document.body).backgroundColor"))


def test_dark_and_light_follow_the_system_or_one_s_choice(show):
    assert ground(show("leaderboard")) > 0.9
    browser = show("leaderboard", dark=True)
    assert ground(browser) < 0.1
    browser.js("document.getElementById('theme').value = 'light'")
    browser.js("document.getElementById('theme').dispatchEvent(new Event('change'))")
    assert ground(browser) > 0.9
    browser.reload()
    assert ground(browser) > 0.9 and browser.js("document.getElementById('theme').value") == "light"
    browser.js("localStorage.clear()")


@pytest.mark.parametrize("dark", [False, True])
def test_colours_have_enough_contrast(show, dark):
    browser = show("leaderboard", dark=dark)

    def contrast(one, other):
        lights = sorted(luminance(browser.js(f"cssColour('{name}')")) + 0.05 for name in (one, other))
        return lights[1] / lights[0]

    for ink in ("ink", "soft", "accent", "warn", "good", "bad"):
        assert min(contrast(ink, "ground"), contrast(ink, "panel")) >= 4.5, ink
    assert contrast("accent", "on-accent") >= 4.5
    assert all(contrast(f"series-{index}", "ground") >= 3 for index in range(8))


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


def test_why_results_are_missing_is_said_with_their_tasks(show, report):
    browser = show("")
    assert "failed: out of memory" in texts(browser, "main .reasons")[0]
    browser.click("main .reasons summary")
    browser.wait("!!document.querySelector('main .reasons li li')")
    assert "task/clinicbench_ddi" in on_all(browser, "main .reasons a", "one.getAttribute('href')")[0]


def test_on_paper_the_part_that_is_shown_stands_in_light_colours_without_controls(show):
    browser = show("leaderboard?kind=own", dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.wait("getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'")
    assert texts(browser, "main h2") == ["Leaderboard"]
    assert not any(on_all(browser, "button, select, input, nav, #filters", "one.offsetParent !== null"))
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.wait("!document.getElementById('filters').hidden")

    browser.go("task/bridge_mie")
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.wait("[...document.querySelectorAll('main h4')].some((one) => one.textContent === '5-shot')")
    assert len(texts(browser, "main > .part")) == 1
    browser.call("Emulation.setEmulatedMedia", media="")


def test_own_runs_stand_above_published_models_and_keep_their_place(show):
    browser = show("leaderboard")
    pinned = texts(browser, "main tbody.pinned tr:not(.section) .name")
    below = texts(browser, "main tbody:not(.pinned) tr.own .name")
    assert sorted(pinned) == sorted(below) and len(pinned) == 3
    assert all(texts(browser, "main tbody.pinned tr.own .name")) and "pinned" in whole(browser)
    assert texts(browser, "main tbody:not(.pinned) tr:not(.own) .place") == ["1", "2", "3", "4", "5"]
    browser.click("[data-key='sort-leaderboard score']")
    assert texts(browser, "main tbody.pinned tr:not(.section) .name") == pinned[::-1]
    browser.go("leaderboard?kind=own")
    assert texts(browser, "main tbody.pinned") == []


def labelled(report):
    """A report with scores by level of two runs of a suite and strategy, and one by department."""
    columns = {
        "entry": [0, 1, 0, 1, 0], "strategy": [0] * 5, "suite": ["mlb"] * 5,
        "axis": ["difficulty"] * 4 + ["department"], "value": [0, 0, 1, 1, 0],
        "score": [0.31, 0.42, 0.77, 0.58, 0.5], "low": [0.25, 0.4, 0.7, None, None],
        "high": [0.35, 0.5, 0.8, None, None], "tasks": [3, 3, 3, 2, 1], "documents": [30, 30, 50, 40, 4],
        "of_all": [0.6, 0.5, 0.6, 0.5, 0.4], "of_all_low": [], "of_all_high": [],
        "documents_of_all": [80, 80, 80, 70, 9], "sources": [0, 0, 0, 0, 1],
    }  # fmt: skip
    axes = {"difficulty": ["hard", "easy"], "department": [HOSTILE]}
    return {**deepcopy(report), "labels": {"axes": axes, "sources": [[], [HOSTILE]], "rows": columns}}


def test_scores_by_label_are_drawn_counted_and_said_whose_labels_they_are(show, report):
    browser = show("labels?suite=mlb", of=labelled(report))
    assert browser.complaints() == []
    [svg] = browser.js("[...document.querySelectorAll('main svg')].map((one) => one.textContent)")
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
    assert "label=department" in address_of(browser) and HOSTILE in whole(browser)
    assert browser.js("window.hit") is None and browser.complaints() == []
    browser.go("labels?suite=bridge")
    assert "No result of this selection has such labels" in whole(browser)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_no_barrier_in_any_part(show, report, width, dark):
    browser = show("", of=labelled(report), width=width, dark=dark)
    label = report["entries"][0]["label"]
    more = ("labels?suite=mlb", "task/bridge_mie", f"model/{label}", "leaderboard?suite=&strategy=")
    for address in (*PARTS, *more):
        browser.go(address)
        assert violations(browser) == [], address


LONG = "an-organisation-with-a-name/Model-3.1-70B-Instruct-AWQ-of-a-team (int4, dtype float16), step 4,000"


@pytest.mark.parametrize("width", [1300, 420])
@pytest.mark.parametrize("address", ["leaderboard", "heatmap", "heatmap?axis=language", "profile", "pairs",
                                     "models", "models?against=cost", "strategies", "overview"])  # fmt: skip
def test_no_picture_cuts_a_name(show, report, address, width):
    """Names of a hundred characters stand on several lines."""
    renamed = deepcopy(report)
    for place, entry in enumerate(renamed["entries"]):
        entry["label"] = entry["model"] = f"{LONG} {place}"
    browser = show(address, of=renamed, width=width)
    drawn = texts(browser, "main .picture svg text")
    assert not [words for words in drawn if len(words) > 1 and "…" in words]
    if address.startswith("heatmap"):  # names in heat maps leave out the organisation
        named = f"{LONG} 2".partition("/")[2].replace(" ", "")
        assert named in "".join(drawn).replace(" ", "")
    assert browser.js("document.documentElement.scrollWidth <= innerWidth") and browser.complaints() == []
