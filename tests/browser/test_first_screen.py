"""What stands on the first screen of every page of site and reports, and that pictures fit on a phone."""
# ruff: noqa: F811

import pytest

from tests.browser.report_page import PARTS, on_all, report_file, texts  # noqa: F401  (fixture)
from tests.browser.test_published_report import PARTS as PUBLISHED_PARTS
from tests.browser.test_published_report import made  # noqa: F401  (fixture)
from tests.browser.test_site import every_kind, opened, site  # noqa: F401  (fixtures)

SUITES = ("bridge", "medhelm", "clinicbench", "mlb", "healthbench")
PUBLISHED = (
    *PUBLISHED_PARTS, *(f"overview?suite={suite}" for suite in SUITES), "model/gemini-2.5-flash (published)",
    "task/bridge_mie",
)  # fmt: skip
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
    return [rows.length, marks.length];
})()"""
#: pictures that are wider than their place, or that scroll sideways in it
TOO_WIDE = """[...document.querySelectorAll("main :is(svg, canvas)")].filter((one) => {
    const box = one.closest(".scroll");
    const scrolls = !one.closest("table") && box?.scrollWidth > box?.clientWidth;
    return scrolls || one.getBoundingClientRect().right > innerWidth;
}).length"""


def of_report(browser, file, width):
    browser.show(file.as_uri(), width=width, there=DRAWN)


def offered(browser):
    found = on_all(browser, "#views a", "one.getAttribute('href').slice(1)")
    assert len(found) >= 7
    return found


def without_figures(browser, addresses):
    """Addresses of the open report whose first screen has less than a row with a number or two marks."""
    found = []
    for address in addresses:
        browser.go(address)
        browser.wait(DRAWN)
        browser.js("scrollTo(0, 0)")
        rows, marks = browser.js(FIGURES)
        if rows < 1 and marks < 2:
            found.append(address)
    return found


@pytest.mark.parametrize("width", [1440, 420])
def test_every_kind_of_page_of_the_site_opens_on_figures(opened, every_kind, width):
    seen = {}
    for page in every_kind:
        if page == "about.html":  # it is all text
            continue
        shown = opened(page, width=width)
        shown.wait(DRAWN)
        rows, marks = shown.js(FIGURES)
        seen[page] = rows >= 1 or marks >= 2
    assert all(seen.values()), [page for page, has in seen.items() if not has]


@pytest.mark.parametrize("width", [1440, 420])
def test_every_view_of_published_models_opens_on_figures(browser, made, width):
    of_report(browser, made / "report.html", width)
    assert without_figures(browser, {*offered(browser), *PUBLISHED}) == []


@pytest.mark.parametrize("width", [1440, 420])
def test_every_view_of_own_runs_opens_on_figures(browser, report_file, report, width):
    of_report(browser, report_file, width)
    models = [item["label"] for item in report["entries"]]
    pages = [f"model/{models[0]}", f"model/{models[-1]}", "task/bridge_mie"]
    assert without_figures(browser, [*offered(browser), *pages]) == []


def test_no_picture_of_the_site_is_wider_than_a_phone(opened, every_kind, site):
    for page in every_kind:
        shown = opened(page, width=420)
        shown.wait(DRAWN)
        assert shown.js(TOO_WIDE) == 0, page


def test_no_picture_of_a_report_is_wider_than_a_phone(browser, made, report_file):
    for file, views in (
        (
            made / "report.html",
            (*PUBLISHED, "heatmap?show=tasks", "heatmap?suite=&show=tasks", "profile?group=language"),
        ),
        (report_file, (*PARTS, "heatmap?show=tasks")),
    ):
        of_report(browser, file, 420)
        for address in views:
            browser.go(address)
            assert browser.js(TOO_WIDE) == 0, address


def test_a_narrow_screen_turns_a_wide_matrix_and_says_what_it_leaves_out(browser, made, report_file):
    def side(where):
        names = f"[...document.querySelectorAll('main svg .role-axis-label')].at({where}).textContent"
        return browser.js(names)

    of_report(browser, report_file, 420)
    browser.go("heatmap?show=tasks&kind=own")  # three runs, 87 tasks
    assert "Instruct" in side(0) and "ADE-Drug dosage" in side(1)
    of_report(browser, made / "report.html", 420)
    browser.go("heatmap?show=tasks")  # 98 models, 87 tasks
    [said, *_] = [words for words in texts(browser, "main .note") if "columns" in words]
    assert said == "18 of 87 columns have room here; the table has all."
    browser.screen(1440, 900)
    browser.wait("!document.querySelector('main').textContent.includes('columns have room')")
