"""The answers of a report in a real browser, from a server and from files."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.browser.conftest import served
from tests.browser.report_page import address_of, on_all, texts, whole
from tests.browser.test_every_page import DRAWN
from tests.conftest import read_json
from tests.report.viewed import EVENTS, HOSTILE, LABEL, TASKS
from tests.run_files import result_of, samples_file

pytestmark = pytest.mark.long


@pytest.fixture
def show(browser, viewer):
    """Open the page at an address: `show("answers/bridge_mednli")`; a file with `file`."""

    def open_at(address="tasks", *, file=None, width=1300, dark=False):
        browser.show(f"{file.as_uri() if file else viewer}#{address}", width=width, dark=dark, there=DRAWN)
        return browser

    return open_at


def go(browser, address):
    browser.go(address)
    browser.wait(DRAWN)


def press(browser, *keys):
    for key in keys:
        browser.press(key)
        browser.wait(DRAWN)


def listed(browser):
    return texts(browser, ".documents .item > strong")


def opened(browser):
    return texts(browser, ".documents .current .item > strong")


def scores(browser):
    return on_all(browser, ".columns-table tbody tr", "[one.cells[0].textContent, one.cells[1].textContent]")


def test_numbers_of_the_page_are_those_of_the_results_and_of_the_terminal(show, answered, medtasks):
    browser, unread, asked = show(), 0, 0
    named = "[one.querySelector('span').textContent, Number(one.querySelector('.n').textContent)]"
    said = " ".join(medtasks.done("report", answered[0], "--published", "none").out.split())
    for task in TASKS:
        go(browser, f"answers/{task}")
        stored = [result_of(run, task)["metrics"]["score"] for run in answered]
        names = ["model-oneSAMPLE", "model-twoSAMPLE"]
        assert scores(browser) == [[name, f"{score:.3f}"] for name, score in zip(names, stored, strict=True)]
        assert f" {stored[0]:.4f} " in said
        counted = dict(on_all(browser, ".pill-row .pill", named))
        unread, asked = unread + counted.get("Unreadable", 0), asked + counted["All"]
    [(share, n)] = re.findall(r"unreadable ([\d.]+)% of (\d+) answers", said)
    assert unread > 0 and (float(share), int(n)) == (pytest.approx(100 * unread / asked, abs=0.05), asked)


def test_filters_search_and_sorting_end_up_in_the_address(show):
    browser = show(f"answers/{LABEL}")
    browser.click("[data-key='only=empty']")
    assert listed(browser) == ["t3"] and "only=empty" in address_of(browser)
    browser.click("[data-key='only=flipped']")
    shown = listed(browser)
    assert {"t1", "t8"} <= set(shown) and "t9" not in shown
    browser.reload()
    browser.wait(DRAWN)
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
    browser.wait(DRAWN)
    assert "find=portal" in address_of(browser) and listed(browser) == ["t1"]
    press(browser, "s", "j")
    assert "a=1" in address_of(browser)
    assert texts(browser, ".answer h4")[0].startswith("model-two")


def test_a_cluster_and_a_cell_lead_to_their_documents(show):
    browser = show(f"answers/{LABEL}?part=errors")
    assert {"empty", "truncated", "format"} <= set(texts(browser, ".clusters tbody a"))
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
    kinds = on_all(
        browser, ".answer:first-of-type .items", "[one.querySelector('mark').textContent, one.textContent]"
    )
    assert [kind for kind, said in kinds if "progressive visual loss" in said] == ["missed", "spurious"]
    assert "another answer" in whole(browser)
    browser.click(".documents .current > .item")
    browser.wait("!document.querySelector('.documents .current')")
    assert opened(browser) == [] and not texts(browser, ".answer")


def test_an_answer_that_counts_as_right_by_a_rule_of_its_suite_is_not_red(show):
    browser = show(f"answers/{LABEL}")
    said = browser.js("""(() => {
        const column = { flags: [FLAGS.unreadable | FLAGS.right], scores: [1] };
        return outcomeOf({ graded: false, suite: "BRIDGE" }, column, 0);
    })()""")
    assert said == ["part", "unreadable, counts as right by BRIDGE’s rule"]


def test_texts_of_rows_and_responses_stay_texts(show, answers_file):
    for file in (None, answers_file):
        browser = show(f"answers/{LABEL}?doc=t2", file=file)
        assert HOSTILE in whole(browser)
        assert not browser.js("window.hit")
        assert browser.js("document.querySelectorAll('main img, main script').length") == 0
        assert browser.complaints() == []


def test_the_page_sees_that_a_task_was_scored_meanwhile(browser, answered, tmp_path):
    run = shutil.copytree(answered[1], tmp_path / "run")
    samples, manifest = samples_file(run, LABEL), read_json(run / "run.json")
    samples.rename(tmp_path / "aside")
    manifest["tasks"][LABEL]["state"] = "waiting"
    (run / "run.json").write_text(json.dumps(manifest))
    with served([run]) as url:
        browser.show(f"{url}#answers/{LABEL}", there=DRAWN)
        assert "not scored yet" in whole(browser)
        (tmp_path / "aside").rename(samples)
        manifest["tasks"][LABEL]["state"] = "done"
        (run / "run.json").write_text(json.dumps(manifest))
        browser.wait("!document.querySelector('main')?.textContent.includes('not scored yet')")
        browser.wait(DRAWN)
        assert "right" in texts(browser, ".documents .outcome-mark")


def test_files_show_the_same_without_any_server(show, answers_file):
    browser = show("tasks", file=answers_file)
    browser.click("main tbody a[href^='#answers']")
    browser.wait("!!document.querySelector('.documents')")
    browser = show(f"answers/{LABEL}?only=flipped", file=answers_file)
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


def test_a_page_that_was_sent_without_its_answers_says_so(show, answers_file, tmp_path):
    browser = show(f"answers/{LABEL}", file=Path(shutil.copy(answers_file, tmp_path)))
    assert "folder “answers” beside this page" in whole(browser)
    go(browser, "leaderboard")
    assert texts(browser, "main table")
