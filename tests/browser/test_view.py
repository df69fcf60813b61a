"""The answers of a report in a real browser, from a server and from files."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.answers.server import Viewed, ViewServer
from medtasks_ext.report.gather import gather
from medtasks_ext.report.write import write_report
from tests.browser.axe import LOOKS, violations
from tests.browser.report_page import address_of, on_all, texts, whole
from tests.conftest import read_json
from tests.report.viewed import CODES, EVENTS, HOSTILE, LABEL, TASKS, make_runs
from tests.run_files import result_of, samples_file

VIEWS = (
    "tasks", f"answers/{LABEL}", f"answers/{LABEL}?part=errors", f"answers/{LABEL}?part=confusion",
    f"answers/{EVENTS}?doc=t1", f"answers/{CODES}?doc=t2", f"answers/{LABEL}?doc=t7",
)  # fmt: skip

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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="module")
def page(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_report(folder, gather(list(made), registry()))
    return folder / "report.html"


def started(runs):
    server = ViewServer(Viewed(runs, registry()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def server(made):
    server = started(list(made))
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def show(browser, server):
    """Open the page at an address: `show("answers/bridge_mednli")`; a file with `file`."""

    def open_at(address="tasks", *, file=None, width=1300, dark=False):
        browser.show(f"{file.as_uri() if file else server.url}#{address}", width=width, dark=dark)
        drawn(browser)
        return browser

    return open_at


def drawn(browser):
    browser.wait(
        "document.readyState === 'complete' && !!document.querySelector('main h2') && "
        "!document.querySelector('[aria-busy=true]')"
    )


def go(browser, address):
    browser.go(address)
    drawn(browser)


def press(browser, *keys):
    for key in keys:
        browser.press(key)
        drawn(browser)


def listed(browser):
    return texts(browser, ".documents .item > strong")


def opened(browser):
    return texts(browser, ".documents .current .item > strong")


def scores(browser):
    return on_all(browser, ".columns-table tbody tr", "[one.cells[0].textContent, one.cells[1].textContent]")


def test_every_view_is_drawn_without_complaint_and_asks_this_machine_alone(show, server):
    browser = show()
    for address in VIEWS:
        go(browser, address)
        assert len(whole(browser)) > 100 and not texts(browser, "main .fault"), address
    assert browser.complaints() == []
    assert all(url.startswith(server.url) for url in browser.requests())


def test_numbers_of_the_page_are_those_of_the_results(show, made):
    browser = show()
    assert {
        href.rpartition("/")[2] for href in on_all(browser, "main tbody a[href^='#answers']", "one.hash")
    } >= {
        LABEL,
        EVENTS,
    }
    for task in TASKS:
        go(browser, f"answers/{task}")
        stored = [result_of(run, task)["metrics"]["score"] for run in made]
        names = ["model-oneSAMPLE", "model-twoSAMPLE"]
        assert scores(browser) == [[name, f"{score:.3f}"] for name, score in zip(names, stored, strict=True)]


def test_filters_search_and_sorting_end_up_in_the_address(show):
    browser = show(f"answers/{LABEL}")
    browser.click("[data-key='only=empty']")
    assert listed(browser) == ["t3"] and "only=empty" in address_of(browser)
    browser.click("[data-key='only=flipped']")
    shown = listed(browser)
    assert {"t1", "t8"} <= set(shown) and "t9" not in shown
    browser.reload()
    drawn(browser)
    assert listed(browser) == shown

    go(browser, f"answers/{LABEL}?find=esophageal")
    assert listed(browser) == ["t1"]
    go(browser, f"answers/{LABEL}?sort=lowest")
    marks = on_all(browser, ".documents li", "one.querySelector('.outcome-mark').textContent")
    assert marks[0] != "right" and marks[-1] == "right"
    go(browser, f"answers/{LABEL}?find=nothing+says+this")
    assert "No document fits" in whole(browser)


def test_the_keyboard_steps_filters_searches_and_leaves(show):
    browser = show(f"answers/{LABEL}")
    order = listed(browser)
    press(browser, "j", "j")
    assert opened(browser) == [order[1]] and f"doc={order[1]}" in address_of(browser)
    press(browser, "k")
    assert opened(browser) == [order[0]]
    press(browser, "Escape")
    assert opened(browser) == []
    press(browser, "4")
    assert listed(browser) == ["t3"]
    press(browser, "0")
    assert listed(browser) == order
    press(browser, "/")
    assert browser.js("document.activeElement.id") == "find"
    browser.press(*"portal")  # also j and k are letters there
    browser.press("Enter")
    browser.js("document.activeElement.blur()")
    drawn(browser)
    assert "find=portal" in address_of(browser) and listed(browser) == ["t1"]
    press(browser, "s", "j")
    assert "a=1" in address_of(browser)
    assert texts(browser, ".answer h4")[0].startswith("model-two")


def test_a_cluster_and_a_cell_lead_to_their_documents(show):
    browser = show(f"answers/{LABEL}?part=errors")
    rows = dict(
        on_all(
            browser, ".clusters tbody tr", "[one.querySelector('a').textContent, one.cells[3].textContent]"
        )
    )
    assert 0 < float(rows["empty"]) < 1
    browser.js(
        "[...document.querySelectorAll('.clusters a')].find((one) => one.textContent === 'truncated').click()"
    )
    browser.wait("document.querySelectorAll('.documents .item').length === 1")
    assert listed(browser) == ["t4"] and "cluster=truncated" in address_of(browser)

    go(browser, f"answers/{LABEL}?part=confusion")
    browser.js("[...document.querySelectorAll('.confusion')].at(-1).querySelector('.miss a').click()")
    browser.wait("document.querySelectorAll('.documents .item').length === 1")
    assert listed(browser) == ["t8"] and "gold entailment, answer contradiction" in whole(browser)


def test_a_row_says_what_was_asked_answered_read_and_scored_and_opens(show):
    browser = show(f"answers/{LABEL}?doc=t6")
    row = texts(browser, ".documents .current .item > *, .documents .current .item-answer:first-child > *")
    assert row[0] == "t6" and row[1].startswith("… ") and "neutral ← neutral" in row
    assert texts(browser, ".answer h4") == ["model-oneSAMPLE", "model-twoSAMPLE"]
    assert texts(browser, ".answer:first-of-type .text mark.read") == ["neutral"]
    browser.click(".trace-box summary")
    browser.wait("!!document.querySelector('.trace')")
    assert texts(browser, ".trace") == [f"[THINK]one {HOSTILE}[/THINK]"]
    go(browser, f"answers/{EVENTS}?doc=t1")
    marks = on_all(browser, ".answer:first-of-type .text mark.item", "[one.textContent, one.className]")
    assert ["progressive visual loss", "item missed spurious"] in marks
    assert "near miss: boundary" in whole(browser)
    browser.click(".documents .current > .item")
    browser.wait("!document.querySelector('.documents .current')")
    assert opened(browser) == [] and not texts(browser, ".answer")


def test_a_long_response_is_shown_in_part(show):
    browser = show(f"answers/{LABEL}?doc=t7")
    assert len(whole(browser)) < 100_000 and "shown in part" in whole(browser)


def test_an_answer_that_counts_as_right_by_a_rule_of_its_suite_is_not_red(show):
    browser = show(f"answers/{LABEL}")
    said = browser.js("""(() => {
        const column = { flags: [FLAGS.unreadable | FLAGS.right], scores: [1] };
        return outcomeOf({ graded: false, suite: "BRIDGE" }, column, 0);
    })()""")
    assert said == ["part", "unreadable, counts as right by BRIDGE’s rule"]


def test_what_is_not_there_is_said(show):
    browser = show("answers/bridge_mednly")
    assert "is missing or cannot be read" in whole(browser)
    go(browser, f"answers/{LABEL}?doc=zzz")
    assert "There is no document zzz" in whole(browser)
    for address in ("only=x&a=77&b=-1&cell=999&cluster=no&sort=no&part=no&from=-3", "doc=%E0%A4%A"):
        go(browser, f"answers/{LABEL}?{address}")
        assert texts(browser, "main h2")


def test_texts_of_rows_and_responses_stay_texts(show, page):
    for file in (None, page):
        browser = show(f"answers/{LABEL}?doc=t2", file=file)
        assert HOSTILE in whole(browser)
        assert not browser.js("window.hit")
        assert browser.js("document.querySelectorAll('main img, main script').length") == 0
        assert browser.complaints() == []


def test_the_page_sees_that_a_task_was_scored_meanwhile(browser, made, tmp_path):
    run = shutil.copytree(made[1], tmp_path / "run")
    samples, manifest = samples_file(run, LABEL), read_json(run / "run.json")
    samples.rename(tmp_path / "aside")
    manifest["tasks"][LABEL]["state"] = "waiting"
    (run / "run.json").write_text(json.dumps(manifest))
    server = started([run])
    try:
        browser.call("Page.navigate", url=f"{server.url}#answers/{LABEL}")
        drawn(browser)
        assert "not scored yet" in whole(browser)
        (tmp_path / "aside").rename(samples)
        manifest["tasks"][LABEL]["state"] = "done"
        (run / "run.json").write_text(json.dumps(manifest))
        browser.wait("!document.querySelector('main')?.textContent.includes('not scored yet')")
        drawn(browser)
        assert "right" in texts(browser, ".documents .outcome-mark")
    finally:
        server.shutdown()
        server.server_close()


def test_a_run_without_a_score_shows_how_far_it_is(browser, made, tmp_path):
    run = shutil.copytree(made[1], tmp_path / "run")
    for file in (*run.glob("samples_*.jsonl"), *(run / "tasks").iterdir()):
        file.unlink()
    manifest = read_json(run / "run.json")
    for entry in manifest["tasks"].values():
        entry["state"] = "waiting"
    (run / "run.json").write_text(json.dumps(manifest))
    server = started([run])
    try:
        browser.call("Page.navigate", url=server.url)
        drawn(browser)
        assert "stopped" in texts(browser, ".live .tag") and "of 3 finished" in whole(browser)
        browser.js(f"location.hash = 'answers/{LABEL}'")
        browser.wait("document.querySelectorAll('.documents .item').length > 0")
        assert "not scored yet" in whole(browser)
    finally:
        server.shutdown()
        server.server_close()


def test_files_show_the_same_without_any_server(show, page):
    browser = show("tasks", file=page)
    browser.click("main tbody a[href^='#answers']")
    browser.wait("!!document.querySelector('.documents')")
    browser = show(f"answers/{LABEL}?only=flipped", file=page)
    press(browser, "j")
    offline = listed(browser), texts(browser, ".answer .outcome-line")
    assert opened(browser) == offline[0][:1]
    go(browser, f"answers/{LABEL}?find=esophageal")
    assert listed(browser) == ["t1"]
    for part in ("errors", "confusion"):
        go(browser, f"answers/{LABEL}?part={part}")
        assert texts(browser, "main table")
    assert browser.complaints() == []
    assert all(url.startswith("file:") for url in browser.requests())
    online = show(f"answers/{LABEL}?only=flipped")
    press(online, "j")
    assert (listed(online), texts(online, ".answer .outcome-line")) == offline


def test_a_page_that_was_sent_without_its_answers_says_so(show, page, tmp_path):
    browser = show(f"answers/{LABEL}", file=Path(shutil.copy(page, tmp_path)))
    assert "folder “answers” beside this page" in whole(browser)
    go(browser, "leaderboard")
    assert texts(browser, "main table")


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


def test_on_a_phone_a_row_shows_its_score(show):
    browser = show(f"answers/{LABEL}", width=420)
    inside = "(({ left, right, width }) => width > 0 && left >= 0 && right <= innerWidth)"
    marks = on_all(browser, ".documents .outcome-mark", f"{inside}(one.getBoundingClientRect())")
    assert marks and all(marks)


def test_paper_holds_the_document_unfolded_in_light_colours(show):
    browser = show(f"answers/{LABEL}?doc=t6", dark=True)
    browser.js("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.js("document.documentElement.dataset.theme") == "light"
    assert browser.js("document.querySelectorAll('main details:not([open])').length") == 0
    hidden = "getComputedStyle(document.querySelector('{}')).display === 'none'"
    assert browser.js(hidden.format(".list-controls"))
    assert browser.js(hidden.format(".documents li:not(.current)"))
    assert not browser.js(hidden.format(".opened"))
    browser.js("dispatchEvent(new Event('afterprint'))")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.wait("document.querySelectorAll('main details:not([open])').length > 0")
