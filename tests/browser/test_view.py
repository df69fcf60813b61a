"""The page of `medtasks view` in a real browser, from a server and from files."""

import json
import threading

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.view.server import ViewServer, write_bundle
from medtasks_ext.report.view.viewer import Viewer
from tests.browser.axe import LOOKS, violations
from tests.browser.report_page import address_of, on_all, texts, whole
from tests.conftest import read_json
from tests.report.viewed import CODES, EVENTS, HOSTILE, LABEL, LONG, TASKS, make_runs

VIEWS = (
    "", f"dataset={LABEL}", f"dataset={LABEL}&part=errors", f"dataset={LABEL}&part=confusion",
    f"dataset={EVENTS}&doc=t1", f"dataset={CODES}&doc=t2", f"dataset={LABEL}&doc=t7",
)  # fmt: skip

#: Parts of the page that lie over each other, two and two.
OVERLAPPING = """(() => {
  const parts = [...document.querySelectorAll(".list-controls, .panes, .parts, .scroll, h2, h3")]
    .filter((one) => one.offsetParent && !one.closest(".panes .scroll"))
    .map((one) => [one, one.getBoundingClientRect()]);
  const over = ([one, a], [other, b]) =>
    one !== other && !one.contains(other) && !other.contains(one) &&
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const named = ([one]) => one.className || one.tagName;
  return parts.flatMap((one) => parts.filter((other) => over(one, other)).map(() => named(one)));
})()"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="module")
def pages(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "answers"
    write_bundle(folder, Viewer(list(made), registry()))
    return folder


@pytest.fixture(scope="module")
def server(made):
    server = ViewServer(Viewer(list(made), registry()))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def show(browser, server):
    """Open the page at an address: `show("dataset=bridge_mednli")`; a file with `file`."""

    def open_at(address="", *, file=None, width=1300, dark=False):
        browser.show(f"{file.as_uri() if file else server.url}#{address}", width=width, dark=dark)
        drawn(browser)
        return browser

    return open_at


def drawn(browser):
    browser.wait("document.readyState === 'complete' && !!document.querySelector('main h2')")
    browser.wait("document.getElementById('main').dataset.shown === location.hash")


def go(browser, address):
    browser.js(f"location.hash = {json.dumps(address)}")
    drawn(browser)


def press(browser, *keys):
    for key in keys:
        browser.press(key)
        drawn(browser)


def listed(browser):
    return texts(browser, ".documents strong")


def opened(browser):
    return browser.js("document.querySelector('#document').textContent")


def test_every_view_is_drawn_without_complaint_and_asks_this_machine_alone(show, server):
    browser = show()
    for address in VIEWS:
        go(browser, address)
        assert len(whole(browser)) > 100 and not texts(browser, "main .fault"), address
    assert browser.complaints() == []
    assert all(url.startswith(server.url) for url in browser.requests())


def test_numbers_of_the_page_are_those_of_the_results(show, made):
    browser = show()
    for task in TASKS:
        cells = browser.js(
            f"[...document.querySelectorAll('.datasets a')].find((one) => one.hash === '#dataset={task}')"
            ".closest('tr').querySelectorAll('.score').values().map((one) => one.textContent).toArray()"
        )
        stored = [read_json(run / "tasks" / f"{task}.json")["metrics"]["score"] for run in made]
        assert cells == [f"{score:.3f}" for score in stored]
    go(browser, f"dataset={LABEL}")
    table = dict(
        on_all(browser, ".columns-table tbody tr", "[one.cells[0].textContent, one.cells[1].textContent]")
    )
    labels = [read_json(run / "tasks" / f"{LABEL}.json")["metrics"]["score"] for run in made]
    assert table == {"model-oneSAMPLE": f"{labels[0]:.3f}", "model-twoSAMPLE": f"{labels[1]:.3f}"}


def test_filters_search_and_sorting_end_up_in_the_address(show):
    browser = show(f"dataset={LABEL}")
    browser.click("[data-key='only=empty']")
    drawn(browser)
    assert listed(browser) == ["t3"] and "only=empty" in address_of(browser)
    browser.click("[data-key='only=flipped']")
    drawn(browser)
    shown = listed(browser)
    assert {"t1", "t8"} <= set(shown) and "t9" not in shown
    browser.reload()
    drawn(browser)
    assert listed(browser) == shown

    go(browser, f"dataset={LABEL}&q=esophageal")
    assert listed(browser) == ["t1"]
    go(browser, f"dataset={LABEL}&sort=lowest")
    scores = texts(browser, ".documents .outcome-mark:first-of-type")
    assert scores[0] != "right" and scores[-1] == "right"
    go(browser, f"dataset={LABEL}&q=nothing+says+this")
    assert "No document fits" in whole(browser)


def test_the_keyboard_steps_filters_searches_and_leaves(show):
    browser = show(f"dataset={LABEL}")
    order = listed(browser)
    press(browser, "j", "j")
    assert opened(browser) == f"Document {order[2]}" and f"doc={order[2]}" in address_of(browser)
    press(browser, "k")
    assert opened(browser) == f"Document {order[1]}"
    press(browser, "4")
    assert listed(browser) == ["t3"]
    press(browser, "0")
    assert listed(browser) == order
    press(browser, "/")
    assert browser.js("document.activeElement.id") == "search"
    browser.press(*"portal")  # also j and k are letters there
    browser.press("Enter")
    browser.js("document.activeElement.blur()")
    drawn(browser)
    assert "q=portal" in address_of(browser) and listed(browser) == ["t1"]
    press(browser, "s")
    assert "a=1" in address_of(browser)
    assert texts(browser, ".answer h4")[0].startswith("model-two")


def test_a_cluster_and_a_cell_lead_to_their_documents(show):
    browser = show(f"dataset={LABEL}&part=errors")
    rows = dict(
        on_all(
            browser, ".clusters tbody tr", "[one.querySelector('a').textContent, one.cells[3].textContent]"
        )
    )
    assert 0 < float(rows["empty"]) < 1
    browser.js(
        "[...document.querySelectorAll('.clusters a')].find((one) => one.textContent === 'truncated').click()"
    )
    browser.wait("location.hash.includes('cluster=truncated') && !location.hash.includes('part')")
    drawn(browser)
    browser.wait("document.querySelectorAll('.documents strong').length === 1")
    assert listed(browser) == ["t4"]

    go(browser, f"dataset={LABEL}&part=confusion")
    browser.js("[...document.querySelectorAll('.confusion')].at(-1).querySelector('.miss a').click()")
    browser.wait("location.hash.includes('cell=')")
    browser.wait("document.querySelectorAll('.documents strong').length === 1")
    assert listed(browser) == ["t8"] and "gold entailment, answer contradiction" in whole(browser)


def test_a_document_shows_span_trace_items_and_both_models(show):
    browser = show(f"dataset={LABEL}&doc=t6")
    assert texts(browser, ".answer h4") == ["model-oneSAMPLE", "model-twoSAMPLE"]
    assert texts(browser, ".answer:first-of-type .text mark.read") == ["neutral"]
    browser.click(".trace-box summary")
    browser.wait("!!document.querySelector('.trace')")
    assert texts(browser, ".trace") == [f"[THINK]one {HOSTILE}[/THINK]"]
    go(browser, f"dataset={EVENTS}&doc=t1")
    marks = on_all(browser, ".answer:first-of-type .text mark.item", "[one.textContent, one.className]")
    assert ["progressive visual loss", "item missed spurious"] in marks
    assert "near miss: boundary" in whole(browser)


def test_a_long_response_is_whole_on_request(show):
    browser = show(f"dataset={LABEL}&doc=t7")
    assert len(whole(browser)) < 100_000 and "shown in part" in whole(browser)
    browser.js(
        "[...document.querySelectorAll('button')].find((one) => /whole/.test(one.textContent)).click()"
    )
    browser.wait(f"document.querySelector('main').textContent.length > {LONG}")


def test_what_is_not_there_is_said(show):
    browser = show("dataset=bridge_mednly")
    assert "did you mean bridge_mednli" in whole(browser)
    go(browser, f"dataset={LABEL}&doc=zzz")
    assert "There is no document zzz" in whole(browser)
    for address in ("only=x&a=77&b=-1&cell=999&cluster=no&sort=no&part=no", "doc=%E0%A4%A"):
        go(browser, f"dataset={LABEL}&{address}")
        assert texts(browser, "main h2")


def test_texts_of_rows_and_responses_stay_texts(show, pages):
    for file in (None, pages / f"{LABEL}.html"):
        browser = show(f"dataset={LABEL}&doc=t2", file=file)
        assert HOSTILE in whole(browser)
        assert not browser.js("window.hit")
        assert browser.js("document.querySelectorAll('main img, main script').length") == 0
        assert browser.complaints() == []


def test_the_page_sees_that_a_task_was_scored_meanwhile(browser, made, tmp_path):
    import shutil

    run = shutil.copytree(made[1], tmp_path / "run")
    samples, manifest = run / f"samples_{LABEL}.jsonl", read_json(run / "run.json")
    samples.rename(tmp_path / "aside")
    manifest["tasks"][LABEL]["state"] = "waiting"
    (run / "run.json").write_text(json.dumps(manifest))
    server = ViewServer(Viewer([run], registry()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.call("Page.navigate", url=f"{server.url}#dataset={LABEL}")
        drawn(browser)
        assert "not scored yet" in whole(browser) and "going on" in whole(browser)
        (tmp_path / "aside").rename(samples)
        manifest["tasks"][LABEL]["state"] = "done"
        (run / "run.json").write_text(json.dumps(manifest))
        browser.wait("!document.querySelector('main').textContent.includes('not scored yet')")
        assert "right" in texts(browser, ".documents .outcome-mark")
    finally:
        server.shutdown()
        server.server_close()


def test_files_show_the_same_without_any_server(show, pages):
    browser = show(file=pages / "index.html")
    assert {href.rpartition("/")[2] for href in on_all(browser, ".datasets a", "one.href")} == {
        f"{task}.html" for task in TASKS
    }
    browser.click(".datasets a")
    browser.wait("!!document.querySelector('.documents')")
    file = pages / f"{LABEL}.html"
    browser = show("only=flipped", file=file)
    offline = listed(browser), texts(browser, ".answer .outcome-line")
    press(browser, "j")
    assert opened(browser) == f"Document {offline[0][1]}"
    go(browser, "q=esophageal")
    assert listed(browser) == ["t1"]
    for part in ("errors", "confusion"):
        go(browser, f"part={part}")
        assert texts(browser, "main table")
    assert browser.complaints() == [] and browser.requests() == []
    online = show(f"dataset={LABEL}&only=flipped")
    assert (listed(online), texts(online, ".answer .outcome-line")) == offline


@pytest.mark.parametrize("width", [420, 768, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_screen_and_nothing_overlaps(show, width, dark):
    browser = show(width=width, dark=dark)
    for address in VIEWS:
        go(browser, address)
        assert browser.js("document.documentElement.scrollWidth <= innerWidth"), address
        overlapping = browser.js(OVERLAPPING)
        assert overlapping == [], address


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_no_barrier_in_any_view(show, width, dark):
    browser = show(width=width, dark=dark)
    for address in VIEWS:
        go(browser, address)
        assert violations(browser) == [], address


def test_on_a_phone_a_document_takes_the_place_of_the_list(show):
    browser = show(f"dataset={LABEL}", width=420)
    shown = "getComputedStyle(document.querySelector('{}')).display !== 'none'"
    assert browser.js(shown.format(".pane-list")) and not browser.js(shown.format(".pane-detail"))
    browser.click(".documents a")
    browser.wait("location.hash.includes('doc=')")
    drawn(browser)
    browser.wait(shown.format(".pane-detail"))
    assert not browser.js(shown.format(".pane-list"))
    browser.click(".to-list")
    browser.wait(shown.format(".pane-list"))


def test_paper_holds_the_document_unfolded_in_light_colours(show):
    browser = show(f"dataset={LABEL}&doc=t6", dark=True)
    browser.js("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.js("document.documentElement.dataset.theme") == "light"
    assert browser.js("document.querySelectorAll('main details:not([open])').length") == 0
    hidden = "getComputedStyle(document.querySelector('{}')).display === 'none'"
    assert browser.js(hidden.format(".pane-list")) and browser.js(hidden.format(".list-controls"))
    assert not browser.js(hidden.format(".pane-detail"))
    browser.js("dispatchEvent(new Event('afterprint'))")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert browser.js("document.querySelectorAll('main details:not([open])').length") > 0
