"""The leaderboard in a real browser: filters, sorting, links, narrow and dark, and what must stay text."""

import json
from base64 import b64decode
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.site.boards import BoardLine, gather_site, scores_of
from medtasks_ext.report.site.write import write_site
from medtasks_ext.results.conditions import Confirmed
from medtasks_ext.results.experiments import Experiment
from tests.browser.axe import LOOKS, violations
from tests.browser.chromium import THERE
from tests.report.made import data_of
from tests.submissions.made import write_submission

PAGES = (
    "index.html", "bridge.html", "mlb.html", "datasets.html", "datasets/bridge_mednli.html", "about.html",
)  # fmt: skip
HOSTILE = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script>'


@pytest.fixture(scope="session")
def site(made_once):
    """Published models, and submissions: as the paper asked, in own words, on a part, with hostile words."""
    return made_once("browser-site", fill_site) / "out"


def fill_site(root):
    write_submission(root / "in", "Org/Best-8B", 0.9)
    write_submission(root / "in", "Org/Middle-70B", 0.3)
    write_submission(root / "in", "Org/Own-Words-A", 0.95, wording="own", prompt="p1")
    write_submission(root / "in", "Org/Own-Words-B", 0.2, wording="own", prompt="p1")
    write_submission(root / "in", "Org/Part-3B", 0.99, first=10)
    write_submission(root / "in", "Org/Unproven-9B", 0.99)
    half = write_submission(root / "in", "Org/Half-Proven-7B", 0.8)
    other = write_submission(root / "other", "Org/Half-Proven-7B", 0.99, suite="medhelm")
    both = half.model_copy(update={"tasks": {**half.tasks, **other.tasks}})
    both.write(root / "in" / "Org" / "Half-Proven-7B" / "2026-05-01", {})
    record = write_submission(root / "in", "Org/Hostile-1B", 0.5)
    hostile = record.model_copy(
        update={"about": record.about.model_copy(update={"license": HOSTILE}), "versions": {HOSTILE: HOSTILE}}
    )
    hostile.write(root / "in" / "Org" / "Hostile-1B" / "2026-05-01", {})
    with pytest.MonkeyPatch.context() as patch:  # as if somebody else had checked these invented scores
        patch.setattr(BoardLine, "is_proven", is_proven)
        patch.setattr(Experiment, "confirmed", Confirmed("confirmed", "confirmed", None))
        write_site(root / "out", gather_site(registry(), root / "in"))


def is_proven(line, item):
    half = "Half-Proven" in line.entry.model and item.dataset.metadata.suite == "medhelm"
    return line.published or not (half or "Unproven" in line.entry.model)


@pytest.fixture(scope="module")
def every_kind(site):
    return (*PAGES, f"models/{next((site / 'models').glob('org-best-8b-*')).name}")


@pytest.fixture
def opened(browser, site):
    def open_page(name, *, width=1440, dark=False):
        browser.show((site / name).as_uri(), width=width, dark=dark, there=THERE)
        return browser

    return open_page


def lines(browser):
    """Model, rank and section of every line, in the order of the table."""
    return browser.js(
        """(() => {
            let section = "";
            const found = [];
            for (const row of document.querySelectorAll(".lines tbody:not(.pinned) tr")) {
                if (row.className === "section") section = row.textContent;
                const name = row.querySelector("a.name");
                if (name) found.push([name.textContent, row.cells[0].textContent, section]);
            }
            return found;
        })()"""
    )


def choose(browser, key, value):
    browser.js(
        f"""(() => {{
            const list = document.querySelector('[data-key="select {key}"]');
            list.value = {json.dumps(value)};
            list.dispatchEvent(new Event("change"));
        }})()"""
    )


def tick(browser, key, value):
    browser.click(f"[data-filter={key}] summary")
    browser.click(f"[data-filter={key}] input[value={value}]")


def address_of(browser, name):
    """Where the link of that name leads, as a file."""
    links = "[...document.querySelectorAll('a')]"
    target = browser.js(f"{links}.find((link) => link.textContent === {json.dumps(name)}).href")
    return Path(unquote(urlsplit(target).path))


def address(browser):
    return browser.js("location.hash")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1440, 420])
def test_every_kind_of_page_is_drawn_without_network_complaint_or_overflow(opened, every_kind, width, dark):
    for name in every_kind:
        browser = opened(name, width=width, dark=dark)
        assert browser.js("document.querySelector('main').innerText.length") > 200, name
        assert browser.complaints() == [] and browser.requests() == [], name
        assert browser.js("document.documentElement.scrollWidth <= innerWidth"), name


def test_every_kind_of_page_fits_into_a_window_at_400_percent(opened, every_kind):
    """1,280 pixels at 400 % are 320: no page is scrolled in two directions (WCAG 1.4.10), tables and pictures
    aside, which scroll within their own frames."""
    for name in every_kind:
        browser = opened(name, width=320)
        assert browser.js("document.documentElement.scrollWidth") <= 320, name
        cut = browser.js(
            """[...document.querySelectorAll('main :is(p, li, select, input, button, h2, h3, dd)')]
                .filter((item) => !item.closest('.scroll, .drawing, .switch, .links'))
                .filter((item) => item.checkVisibility())
                .filter((item) => item.getBoundingClientRect().right > 321)
                .map((item) => item.outerHTML.slice(0, 80))"""
        )
        assert cut == [], name


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
        wide = browser.js(
            f"""[...document.querySelectorAll('main :is(table, svg, p, pre)')]
                .filter((item) => item.checkVisibility() && item.getBoundingClientRect().right > {PAPER + 1})
                .map((item) => item.outerHTML.slice(0, 80))"""
        )
        assert wide == [], name
        if rows:
            assert (
                browser.js("document.querySelectorAll('.lines tbody:not(.pinned) a.name').length") >= rows - 9
            )
        controls = "#filters input, #filters summary, main .controls button, #views a"
        assert not browser.js(
            f"[...document.querySelectorAll('{controls}')].some((one) => one.checkVisibility())"
        )
        pdf = b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
        assert pdf.startswith(b"%PDF") and len(pdf) > 10_000, name
        browser.js("dispatchEvent(new Event('afterprint'))")
        browser.call("Emulation.setEmulatedMedia", media="")
        assert browser.complaints() == [], name


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
    """Tab reaches all that can be used, in the order of the page, and one sees where it is."""
    for name in every_kind:
        browser = opened(name)
        n = browser.js(REACHED)
        browser.press(*["Tab"] * (n + 2))
        missed = browser.js(
            "wanted.filter((item) => !reached.has(item)).map((item) => item.outerHTML.slice(0, 90))"
        )
        assert missed == [], name
        assert browser.js("unseen") == [], name
        order = browser.js(
            """[...reached].every((item, place, all) => !place
                || all[place - 1].compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING
                || item.id === 'skip')"""
        )
        assert order, name


def test_what_the_keyboard_chooses_keeps_the_focus_while_the_page_is_drawn_anew(opened, every_kind):
    for name in every_kind:
        browser = opened(name)
        keys = browser.js(
            "[...document.querySelectorAll('main button[data-key]')].map((one) => one.dataset.key)"
        )
        for key in dict.fromkeys(keys):
            browser.js(f"document.querySelector('main [data-key={json.dumps(key)}]')?.focus()")
            if browser.js("document.activeElement.dataset.key") != key:
                continue  # another choice has taken it away
            browser.press("Enter")
            assert browser.js("document.activeElement.dataset.key") == key, (name, key)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_no_barrier_on_any_page(opened, every_kind, width, dark):
    for name in every_kind:
        assert violations(opened(name, width=width, dark=dark)) == [], name


def test_only_what_was_asked_alike_is_ranked_together(opened):
    found = {name: (rank, section) for name, rank, section in lines(opened("bridge.html"))}
    assert found["Org/Best-8B"][0] == "1" and found["Gemini 2.5 Flash"][0] == "4"
    assert "Same conditions as the suite’s paper" in found["Gemini 2.5 Flash"][1]
    rank, section = found["Org/Own-Words-A"]
    assert rank == "–" and section.startswith("Other conditions than in the suite’s paper")
    assert found["Org/Part-3B"][0] == "–" and "not ranked" in found["Org/Part-3B"][1]


def test_what_is_not_proven_stands_apart_without_a_rank(opened):
    found = {name: (rank, section) for name, rank, section in lines(opened("bridge.html"))}
    rank, section = found["Org/Unproven-9B"]
    assert rank == "–" and section == "Not proven: self-reported, not ranked"
    assert found["Org/Best-8B"][0] == "1"


def test_ranked_lines_say_what_no_check_proves_and_which_other_scores_nobody_checked(opened):
    """A line that is ranked in one suite may hold a score of another suite that is not proven."""
    page = opened("index.html")
    note = page.js("[...document.querySelectorAll('p.note')].map((item) => item.textContent).join(' ')")
    assert "No check proves that the named model gave them" in note
    cells = page.js(
        """[...document.querySelectorAll('.lines tbody tr')]
            .filter((row) => row.querySelector('a.name')?.textContent === 'Org/Half-Proven-7B')
            .filter((row) => !row.closest('.pinned'))
            .flatMap((row) => [...row.cells].map((cell) => cell.innerText))"""
    )
    assert [text.split()[0] for text in cells if "not proven" in text] == ["0.990"]


def test_search_and_filters_choose_lines_and_stand_in_the_address(opened):
    browser = opened("bridge.html")
    before = {name: rank for name, rank, _ in lines(browser)}
    browser.click("#search")
    browser.press(*"gemini")
    assert lines(browser) and all("gemini" in name.lower() for name, *_ in lines(browser))
    assert browser.js("document.activeElement.id") == "search" and "q=gemini" in address(browser)
    # a rank is among all lines, not among those that are shown
    assert all(before.get(name, rank) == rank for name, rank, _ in lines(browser))
    browser.click("#reset")
    tick(browser, "kind", "submitted")
    names = ("Best-8B", "Middle-70B", "Own-Words-A", "Own-Words-B", "Part-3B", "Hostile-1B", "Unproven-9B",
             "Half-Proven-7B")  # fmt: skip
    assert {name for name, *_ in lines(browser)} == {f"Org/{name}" for name in names}
    browser.reload()
    assert len(lines(browser)) == len(names) and "kind=submitted" in address(browser)


def test_arrows_choose_a_strategy(opened):
    browser = opened("bridge.html")
    browser.js("document.querySelector('#filters input[name=strategy]').focus()")
    browser.press("ArrowRight")
    assert "strategy=cot" in address(browser) and browser.js("document.activeElement.value") == "cot"
    assert "chain of thought: " in browser.js("document.querySelector('#filters .selection').textContent")


def test_ranks_of_a_suite_s_page_are_those_of_the_models_pages(browser, published_site):
    scores = scores_of(gather_site(registry(), None))
    groups = [group for group in scores.groups if group.suite == "bridge"]
    places = sorted({place for place, _, key in scores.cells if key in groups})
    browser.show((published_site / "bridge.html").as_uri(), there=THERE)
    ranks = "ranked(strategy, by).rows.map(({ rank, of }) => [rank, rank === null ? null : of])"
    found = browser.js(f"site.strategies.map(([id], strategy) => [id, site.columns.map((_, by) => {ranks})])")
    assert len(found) > 1
    for strategy, of_columns in found:
        wanted = [
            [[*(scores.rank(strategy, group, place) or (None, None))] for place in places] for group in groups
        ]
        assert of_columns == wanted


def test_another_axis_and_column_rank_by_that_column_by_keyboard(opened):
    browser = opened("bridge.html")
    choose(browser, "axis", "language")
    titles = browser.js("[...document.querySelectorAll('.lines thead th')].map((cell) => cell.textContent)")
    place = next(number for number, title in enumerate(titles) if "Norwegian" in title)
    assert any("English" in title for title in titles)
    browser.js(f"document.querySelectorAll('.lines thead th')[{place}].querySelector('button').focus()")
    browser.press("Enter")
    assert "sort-lines=-c" in address(browser)
    assert "Norwegian" in browser.js("document.activeElement.textContent")
    first = "document.querySelector('.lines tbody:not(.pinned)')"
    rows = f"[...{first}.querySelectorAll('tr:not(.section):not(.more)')]"
    shown = browser.js(f"{rows}.map((row) => Number(row.cells[{place}].textContent))")
    assert shown == sorted(shown, reverse=True) and len(shown) > 50


def test_a_line_leads_to_its_model_and_back(opened):
    browser = opened("index.html")
    browser.open(address_of(browser, "Org/Own-Words-A"))
    text = browser.js("document.querySelector('main').innerText")
    assert "other conditions: wording" in text and "in 87 of 87 tasks" in text
    browser.open(address_of(browser, "BRIDGE"))
    assert lines(browser) and browser.js("document.title") == "BRIDGE · medtasks"


@pytest.mark.parametrize("page", ["index.html", "bridge.html"])
@pytest.mark.parametrize("width", [1440, 420])
def test_the_first_screen_holds_submissions_and_the_way_to_them(opened, page, width):
    browser = opened(page, width=width)
    pinned = browser.js(
        """[...document.querySelectorAll('.lines .pinned tr.own')]
            .map((row) => [row.querySelector('a.name').textContent, row.getBoundingClientRect().bottom])"""
    )
    names = {name for name, _ in pinned}
    assert {"Org/Best-8B", "Org/Own-Words-A", "Org/Part-3B"} <= names and len(names) == len(pinned) == 8
    assert pinned[0][1] < 900


def test_the_first_page_has_a_row_for_each_model_with_numbers_and_ranks_of_suites(opened):
    browser = opened("index.html")
    tick(browser, "kind", "published")
    cells = browser.js(
        """[...document.querySelectorAll('.lines tbody tr')]
            .filter((row) => row.querySelector('a.name')?.textContent === 'DeepSeek-R1')
            .map((row) => [...row.cells].map((cell) => cell.innerText))"""
    )
    titles = browser.js(
        "[...document.querySelectorAll('.lines thead th')].map((cell) => cell.innerText.trim())"
    )
    [row] = cells
    found = dict(zip([title.split("▼")[0] for title in titles], row, strict=True))
    assert "of 102" in found["BRIDGE"] and "1 of 9" in found["MedHELM: win rate"]
    assert found["ClinicBench"] == found["MLB"] == "–"


HEADING = "document.querySelector('#pictures h3').textContent"
MARKS = "document.querySelectorAll('#pictures .mark-symbol.role-mark path').length"


def press(browser, words):
    browser.js(
        f"[...document.querySelectorAll('main button')]"
        f".find((item) => item.textContent.replace(/[▲▼]/, '') === {json.dumps(words)}).click()"
    )


@pytest.mark.parametrize("dark", [False, True])
def test_the_picture_follows_the_sorted_column_the_filters_and_what_it_stands_against(opened, dark):
    browser = opened("index.html", dark=dark)
    assert browser.js(HEADING) == "BRIDGE by size"
    every = browser.js(MARKS)
    assert every > 50
    press(browser, "medical")
    assert 0 < browser.js(MARKS) < every and "domain=medical" in address(browser)
    press(browser, "all")
    press(browser, "price")
    assert browser.js(HEADING) == "BRIDGE by price" and 0 < browser.js(MARKS) < every
    press(browser, "MedHELM: win rate")
    assert browser.js(HEADING) == "MedHELM: win rate by price"
    assert "a point" in browser.js("document.querySelector('#pictures .note').textContent")
    browser.reload()
    assert browser.js(HEADING) == "MedHELM: win rate by price" and browser.complaints() == []


@pytest.mark.parametrize(
    ("colour", "groups"),
    [
        ("domain", ["general", "medical"]),
        ("weights", ["open", "proprietary"]),
        ("reasoning", ["reasoning", "no reasoning"]),
    ],
)
def test_groups_of_models_stand_side_by_side_and_the_address_restores_them(opened, site, colour, groups):
    browser = opened("index.html")
    key = {"weights": "access"}.get(colour, colour)
    browser.click(f'[data-key="colour={key}"]')
    browser.reload()
    rows = browser.js(
        """[...document.querySelectorAll('#pictures table tbody tr')]
            .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    )
    found = {name: (int(n), float(middle)) for name, n, middle, _ in rows}
    assert set(groups) <= found.keys()
    if colour == "weights":
        board = data_of(site / "index.html")
        entries, cells = board["entries"], board["scores"][0][0]
        published = [
            cells[place]
            for place, access in enumerate(entries["access"])
            if access == "open" and entries["published"][place] and isinstance(cells[place], int)
        ]
        assert found["open"][0] == len(published)
        assert found["open"][1] == pytest.approx(median(published) / 10_000, abs=0.0015)


def test_tables_and_pictures_save_their_numbers(opened):
    browser = opened("index.html")
    browser.js("document.querySelector('#pictures details').open = true")
    browser.wait("document.querySelector('#pictures details table') !== null")
    browser.js(
        "window.saved = []; saveFile = (content, type, label, ending) => saved.push([content, label, ending])"
    )
    buttons = "[...document.querySelectorAll('.tools button')].filter((item) => item.textContent === 'CSV')"
    browser.js(f"{buttons}.forEach((item) => item.click())")
    saved = browser.js("saved")
    assert len(saved) == 3 and all(ending == "csv" for *_, ending in saved)
    assert any("DeepSeek-R1,671,general,0.442" in content for content, *_ in saved)


def test_a_model_page_opens_on_pictures_of_its_strong_and_weak_sides(opened, site):
    name = next((site / "models").glob("qwen-qwen3-4b-*")).name
    browser = opened(f"models/{name}")
    first = browser.js(
        "[...document.querySelectorAll('.percentiles svg')].map((item) => item.getBoundingClientRect().top)"
    )
    assert sum(top < 900 for top in first) >= 2
    words = browser.js("document.querySelector('.profile').innerText")
    assert "rank" in words and "from the median" in words
    assert browser.js("document.querySelectorAll('.line-of-model table').length") == 1  # of suites
    browser.js("document.querySelector('.line-of-model details').open = true")
    browser.wait("document.querySelectorAll('.line-of-model table').length === 2")
    assert "wording: official" in browser.js("document.querySelector('td .conditions').textContent")


def test_a_dataset_page_says_who_is_best_its_terms_and_how_to_run_it(opened):
    browser = opened("datasets/bridge_mednli.html")
    words = browser.js("document.querySelector('main').innerText")
    assert "Maximum 1.000" in words and "medtasks run --tasks bridge_mednli" in words
    assert "medtasks preview bridge_mednli --data sample" in words and "physionet" in words
    assert browser.js("document.querySelectorAll('table tbody tr').length") >= 8


def test_hostile_words_stay_text(opened, site):
    browser = opened(f"models/{next((site / 'models').glob('org-hostile-1b-*')).name}")
    browser.js("document.querySelector('details').open = true")
    browser.wait("document.querySelector('main').innerText.includes('onerror')")
    assert browser.js("window.hit") is None and browser.js("document.querySelectorAll('img').length") == 0
    assert browser.complaints() == []
