"""Every kind of page and view: drawn whole, from this machine alone, on any screen, for everybody."""

import pytest

from tests.browser.axe import LOOKS, violations
from tests.browser.report_page import PARTS, on_all
from tests.report.viewed import CODES, EVENTS, LABEL

pytestmark = pytest.mark.long

PUBLISHED = (
    "overview", "leaderboard", "heatmap", "heatmap?show=tasks", "profile",
    "models?suite=medhelm&against=cost", "strategies", "tasks", "overview?suite=mlb",
    "model/gemini-2.5-flash (published)", "task/bridge_mie",
)  # fmt: skip
VIEWS = (
    "tasks", f"answers/{LABEL}", f"answers/{LABEL}?part=errors", f"answers/{LABEL}?part=confusion",
    f"answers/{EVENTS}?doc=t1", f"answers/{CODES}?doc=t2", f"answers/{LABEL}?doc=t7",
)  # fmt: skip
KINDS = ("own runs", "published models", "site", "answers")
#: a page that has been drawn, with its pictures
DRAWN = (
    "document.readyState === 'complete' && !!document.querySelector('main h2')"
    " && !document.querySelector('[aria-busy=true]')"
)
#: rows with a number, and marks of pictures, that lie on the screen whole
FIGURES = """(() => {
    const onScreen = (one) => {
        const {top, bottom, left, right, width, height} = one.getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight && left < innerWidth && right > 0 && width + height > 2;
    };
    const rows = [...document.querySelectorAll("main tbody tr")].filter(
        (row) => onScreen(row) && [...row.cells].some((cell) => /\\d/.test(cell.textContent)));
    const marks = ["svg.marks .role-mark :is(path, rect, line)", "svg:not(.marks) :is(rect, circle, line)"]
        .flatMap((marks) => [...document.querySelectorAll(`main ${marks}`)]).filter(onScreen);
    return 2 * rows.length + marks.length;
})()"""
#: pictures that are wider than their place, or that scroll sideways in it
TOO_WIDE = """[...document.querySelectorAll("main :is(svg, canvas)")].filter((one) => {
    const box = one.closest(".scroll");
    const scrolls = !one.closest("table") && box?.scrollWidth > box?.clientWidth;
    return scrolls || one.getBoundingClientRect().right > innerWidth;
}).length"""
#: Parts of the page that lie over each other, two and two.
OVERLAPPING = """(() => {
  const parts = [...document.querySelectorAll(".list-controls, .documents, .parts, .scroll, h2, h3")]
    .filter((one) => one.offsetParent && !one.closest(".documents .scroll"))
    .map((one) => [one, one.getBoundingClientRect()]);
  const over = ([one, a], [other, b]) =>
    one !== other && !one.contains(other) && !other.contains(one) &&
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const named = ([one]) => one.className || one.tagName;
  return parts.flatMap((one) => parts.filter((other) => over(one, other)).map(() => named(one)));
})()"""


@pytest.fixture
def pages(request, report, report_file, published_report, site, every_kind, viewer):
    """The addresses of one kind."""
    own = (*PARTS, "labels?suite=mlb", f"model/{report['entries'][0]['label']}", "task/bridge_mie")
    return {
        "own runs": [f"{report_file.as_uri()}#{view}" for view in (*own, "leaderboard?suite=&strategy=")],
        "published models": [f"{(published_report / 'report.html').as_uri()}#{view}" for view in PUBLISHED],
        "site": [(site / name).as_uri() for name in every_kind],
        "answers": [f"{viewer}#{view}" for view in VIEWS],
    }[request.param]


def visited(browser, pages, width, dark):
    """Each page, opened one after the other."""
    before = ""
    for page in pages:
        file, _, view = page.partition("#")
        if file == before:
            browser.go(view)
            browser.wait(DRAWN)
        else:
            browser.show(page, width=width, dark=dark, there=DRAWN)
        before = file
        yield page


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (420, True), (320, False)])
@pytest.mark.parametrize("pages", KINDS, indirect=True)
def test_every_page_is_drawn_without_network_complaint_or_overflow_and_opens_on_figures(
    browser, pages, width, dark
):
    """320 pixels are 1,280 at 400 %: no page is scrolled in two directions (WCAG 1.4.10)."""
    base = pages[0].partition("#")[0]
    for page in visited(browser, pages, width, dark):
        browser.js("scrollTo(0, 0)")
        assert browser.js("document.querySelector('main').innerText.length") > 100, page
        assert browser.complaints() == [], page
        assert all(url.startswith(base) for url in browser.requests()), page
        assert browser.js("document.documentElement.scrollWidth <= innerWidth"), page
        assert browser.js(TOO_WIDE) == 0, page
        assert "#answers" not in page or browser.js(OVERLAPPING) == [], page
        text = ("about.html", "#answers", "#task/", "labels", "show=tasks")
        assert width == 320 or any(kind in page for kind in text) or browser.js(FIGURES) >= 2, page


@pytest.mark.parametrize(("width", "dark"), LOOKS)
@pytest.mark.parametrize("pages", KINDS, indirect=True)
def test_axe_finds_no_barrier_on_any_page(browser, pages, width, dark):
    for page in visited(browser, pages, width, dark):
        assert violations(browser) == [], page


def test_every_view_that_is_offered_is_one_that_has_something(browser, report_file, published_report):
    for file, wanted in ((report_file, {*PARTS}), (published_report / "report.html", None)):
        browser.show(file.as_uri())
        links = on_all(browser, "#views a", "one.getAttribute('href').slice(1)")
        offered = {link.partition("?")[0] for link in links}
        assert offered == (wanted or {*PARTS} - {"pairs", "labels"})


@pytest.mark.parametrize(
    "address",
    ["nowhere", "task/nothing", "model/%E0%A4%A", "leaderboard?suite=x&sort-leaderboard=-y&language=%"],
)
def test_an_address_that_means_nothing_still_shows_a_page(browser, report_file, address):
    browser.show(f"{report_file.as_uri()}#{address}", there=DRAWN)
    assert browser.complaints() == []


def test_an_answer_that_is_not_there_is_said(browser, viewer):
    for address, words in (
        ("answers/bridge_mednly", "is missing or cannot be read"),
        (f"answers/{LABEL}?doc=zzz", "There is no document zzz"),
        (f"answers/{LABEL}?only=x&a=77&b=-1&cell=999&cluster=no&sort=no&from=-3", ""),
    ):
        browser.show(f"{viewer}#{address}", there=DRAWN)
        assert words in browser.js("document.querySelector('main').textContent")
