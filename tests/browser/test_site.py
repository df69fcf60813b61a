"""The leaderboard in a real browser: what is ranked, filters, sorting, pictures, print, the keyboard."""

import json
from base64 import b64decode
from statistics import median

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.site.boards import Scores, gather_site
from tests.browser.chromium import THERE
from tests.browser.report_page import address_of, on_all
from tests.report.made import data_of

pytestmark = pytest.mark.long


@pytest.fixture
def opened(browser, site):
    def open_page(name, *, width=1440, dark=False):
        browser.show((site / name).as_uri(), width=width, dark=dark, there=THERE)
        return browser

    return open_page


def lines(browser):
    """Model -> rank and section of every line, in the order of the table."""
    rows = browser.js(
        """(() => {
            let section = "";
            const found = [];
            for (const row of document.querySelectorAll(".lines tbody:not(.pinned) tr")) {
                if (row.className === "section") section = row.textContent;
                const name = row.querySelector("a.name");
                if (name) found.push([name.textContent, [row.cells[0].textContent, section]]);
            }
            return found;
        })()"""
    )
    return dict(rows)


#: Pixels of an A4 page on its side between its margins.
PAPER = 1032


def test_every_kind_of_page_is_printed_whole(browser, opened, every_kind):
    """All rows and columns stand on the paper; controls do not."""
    for name in every_kind:
        opened(name)
        rows = browser.js("site.entries?.label.length ?? 0")
        browser.screen(PAPER, 720)
        browser.call("Emulation.setEmulatedMedia", media="print")
        browser.js("dispatchEvent(new Event('beforeprint'))")
        browser.wait("!document.querySelector('[aria-busy=true]')")
        wide = on_all(
            browser,
            "main :is(table, svg, p, pre)",
            f"one.checkVisibility() && one.getBoundingClientRect().right > {PAPER + 1}",
        )
        assert not any(wide), name
        assert not rows or len(on_all(browser, ".lines tbody:not(.pinned) a.name", "1")) >= rows - 9
        controls = "#filters input, #filters summary, main .controls button, #views a"
        assert not any(on_all(browser, controls, "one.checkVisibility()"))
        pdf = b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
        assert pdf.startswith(b"%PDF") and len(pdf) > 10_000, name
        browser.js("dispatchEvent(new Event('afterprint'))")
        browser.call("Emulation.setEmulatedMedia", media="")


REACHED = """(() => {
    const shown = (item) => item.checkVisibility() && !item.disabled;
    const wanted = [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
        .filter((item) => item.type !== "radio" || item.checked); // arrows lead to the others
    window.wanted = wanted.filter(shown);
    window.reached = new Set();
    window.unseen = [];
    addEventListener("focusin", ({ target }) => {
        reached.add(target);
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        const drawn = outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
        if (wanted.includes(target) && !drawn) unseen.push(target.outerHTML.slice(0, 80));
    });
    return window.wanted.length;
})()"""


def test_every_kind_of_page_is_used_by_keyboard_alone(opened, every_kind):
    """Tab reaches all that can be used, and one sees where it is."""
    for name in every_kind:
        browser = opened(name)
        n = browser.js(REACHED)
        browser.press(*["Tab"] * (n + 2))
        missed = "wanted.filter((item) => !reached.has(item)).map((item) => item.outerHTML.slice(0, 90))"
        assert browser.js(missed) == browser.js("unseen") == [], name


def test_only_what_was_asked_alike_and_is_proven_is_ranked(opened):
    found = lines(opened("bridge.html"))
    assert found["Org/Best-8B"][0] == "1" and found["Gemini 2.5 Flash"][0] == "4"
    assert "Same conditions as the suite’s paper" in found["Gemini 2.5 Flash"][1]
    apart = {
        "Org/Own-Words-A": "Other conditions than in the suite’s paper",
        "Org/Part-3B": "",
        "Org/Unproven-9B": "Not proven: self-reported, not ranked",
    }
    for name, section in apart.items():
        assert found[name][0] == "–" and found[name][1].startswith(section)
    assert "not ranked" in found["Org/Part-3B"][1]
    # a line that is ranked in one suite may hold a score of another suite that is not proven
    page = opened("index.html")
    assert "No check proves that the named model gave them" in " ".join(
        on_all(page, "p.note", "one.textContent")
    )
    [cells] = on_all(
        page,
        ".lines tbody:not(.pinned) tr:has(a.name[href*=half-proven])",
        "[...one.cells].map((cell) => cell.innerText)",
    )
    assert [text.split()[0] for text in cells if "not proven" in text] == ["0.990"]


def test_search_filters_and_sorting_choose_lines_and_stand_in_the_address(opened):
    browser = opened("bridge.html")
    before = lines(browser)
    browser.click("#search")
    browser.press(*"gemini")
    found = lines(browser)
    assert found and all("gemini" in name.lower() for name in found) and "q=gemini" in address_of(browser)
    assert all(found[name][0] == before[name][0] for name in found)  # ranks are among all lines
    browser.click("#reset")
    browser.click("[data-filter=kind] summary")
    browser.click("[data-filter=kind] input[value=submitted]")
    browser.reload()
    assert set(lines(browser)) == {name for name in before if name.startswith("Org/")}
    assert "kind=submitted" in address_of(browser) and len(lines(browser)) == 7
    browser.click("#reset")
    browser.js(
        """(() => {
            const list = document.querySelector('[data-key="select axis"]');
            list.value = "language";
            list.dispatchEvent(new Event("change"));
        })()"""
    )
    titles = on_all(browser, ".lines thead th", "one.textContent")
    place = next(number for number, title in enumerate(titles) if "Norwegian" in title)
    browser.js(f"document.querySelectorAll('.lines thead th')[{place}].querySelector('button').focus()")
    browser.press("Enter")
    assert "sort-lines=-c" in address_of(browser)
    assert "Norwegian" in browser.js("document.activeElement.textContent")
    first = "document.querySelector('.lines tbody:not(.pinned)')"
    rows = f"[...{first}.querySelectorAll('tr:not(.section):not(.more)')]"
    shown = browser.js(f"{rows}.map((row) => Number(row.cells[{place}].textContent))")
    assert shown == sorted(shown, reverse=True) and len(shown) > 50


def test_ranks_of_a_suite_s_page_are_those_of_the_models_pages(browser, published_site):
    scores = Scores(gather_site(registry(), None))
    groups = [group for group in scores.groups if group.suite == "bridge"]
    places = sorted({place for place, _, key in scores.cells if key in groups})
    browser.show((published_site / "bridge.html").as_uri(), there=THERE)
    ranks = "ranked(strategy, by).rows.map(({ rank, of }) => [rank, rank === null ? null : of])"
    found = browser.js(f"site.strategies.map(([id], strategy) => [id, site.columns.map((_, by) => {ranks})])")
    assert len(found) > 1
    for strategy, of_columns in found:
        cells = [[scores.cells.get((place, strategy, group)) for place in places] for group in groups]
        assert of_columns == [[[*((cell and cell.rank) or (None, None))] for cell in row] for row in cells]


HEADING = "document.querySelector('#pictures h3').textContent"
MARKS = "document.querySelectorAll('#pictures .mark-symbol.role-mark path').length"


def press(browser, words):
    browser.js(
        f"[...document.querySelectorAll('main button')]"
        f".find((item) => item.textContent.replace(/[▲▼]/, '') === {json.dumps(words)}).click()"
    )


def test_the_picture_follows_the_sorted_column_the_filters_and_what_it_stands_against(opened, site):
    browser = opened("index.html")
    assert browser.js(HEADING) == "BRIDGE by size"
    every = browser.js(MARKS)
    assert every > 50
    press(browser, "medical")
    assert 0 < browser.js(MARKS) < every and "domain=medical" in address_of(browser)
    press(browser, "all")
    press(browser, "price")
    assert browser.js(HEADING) == "BRIDGE by price" and 0 < browser.js(MARKS) < every
    press(browser, "MedHELM: win rate")
    assert "a point" in browser.js("document.querySelector('#pictures .note').textContent")
    browser.reload()
    assert browser.js(HEADING) == "MedHELM: win rate by price"
    # groups of models side by side
    browser = opened("index.html")
    browser.click('[data-key="colour=access"]')
    browser.reload()
    rows = on_all(browser, "#pictures table tbody tr", "[...one.cells].map((cell) => cell.textContent)")
    found = {name: (int(n), float(middle)) for name, n, middle, _ in rows}
    board = data_of(site / "index.html")
    entries, cells = board["entries"], board["scores"][0][0]
    published = [
        cells[place]
        for place, access in enumerate(entries["access"])
        if access == "open" and entries["published"][place] and isinstance(cells[place], int)
    ]
    assert found["open"] == (len(published), pytest.approx(median(published) / 10_000, abs=0.0015))


def test_a_model_page_opens_on_pictures_of_its_strong_and_weak_sides_and_hostile_words_stay_text(
    opened, site
):
    browser = opened(f"models/{next((site / 'models').glob('qwen-qwen3-4b-*')).name}")
    tops = on_all(browser, ".percentiles svg", "one.getBoundingClientRect().top")
    assert sum(top < 900 for top in tops) >= 2
    words = browser.js("document.querySelector('.profile').innerText")
    assert "rank" in words and "from the median" in words
    browser = opened(f"models/{next((site / 'models').glob('org-hostile-1b-*')).name}")
    browser.js("document.querySelector('details').open = true")
    browser.wait("document.querySelector('main').innerText.includes('onerror')")
    assert browser.js("window.hit") is None and on_all(browser, "img", "1") == []
    assert browser.complaints() == []
