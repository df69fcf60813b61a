"""The page that an expert fills, in a real browser: fill, reload, export, ingest."""
# ruff: noqa: F811

import csv
import json
import time

import pytest

from tests.browser.axe import DAILY, NIGHTLY, violations
from tests.human.conftest import MODELS, TASK, export, key_of, made_runs, queue, runs  # noqa: F401  (fixtures)
from tests.run_files import samples_file

pytestmark = pytest.mark.long

HOSTILE = (
    '</script><img src=x onerror="window.hit=1"><script>window.hit=1</script><b>x</b> <!-- &amp; 中文 "\'\\'
)
QUESTIONS = ("factuality", "completeness", "preference", "safety")


@pytest.fixture
def hostile(runs):
    """The first run answers everything with text that would like to be HTML."""
    path = samples_file(runs / MODELS[0], TASK)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["filtered_resps"] = [str({"answer": HOSTILE, "valid": True})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def downloaded(folder, name):
    """A file that the page has put into the downloads, once it is complete."""
    end = time.monotonic() + 30
    while not (folder / "downloads" / name).is_file():
        assert time.monotonic() < end, f"{name} was not downloaded"
        time.sleep(0.05)
    return folder / "downloads" / name


def progress(browser):
    return browser.js("document.querySelector('.count').textContent")


def status(browser):
    return browser.js("document.querySelector('.state').textContent")


def on_page(browser):
    return browser.js("Number(document.querySelector('nav select').value)")


def test_fill_reload_export_ingest(hostile, export, runs, browse, medtasks):
    folder = export("-n", 3, "--experts", 1)
    rows = list(key_of(folder)["forms"]["expert_1"])
    browser = browse()
    browser.screen(1400, 900)
    browser.open(folder / "expert_1.html")
    assert progress(browser) == "0 of 12 answered"

    # texts are shown as texts
    shown = browser.js("[...document.querySelectorAll('article .text')].map((text) => text.textContent)")
    assert HOSTILE in shown and len(shown) == 2
    assert browser.js("document.querySelectorAll('article .text *').length") == 0

    # keys: the four questions of the first page, then the next page
    browser.press("1", "2", "3", "1", "ArrowRight")
    assert (progress(browser), on_page(browser)) == ("4 of 12 answered", 1)
    # mouse on the second page: two questions
    browser.click("fieldset:nth-of-type(1) label:nth-child(3)")
    browser.click("fieldset:nth-of-type(4) label:nth-child(2)")
    assert progress(browser) == "6 of 12 answered" and status(browser).startswith("Saved in this browser")

    browser.reload()
    assert (progress(browser), on_page(browser)) == ("6 of 12 answered", 1)
    browser.close()
    browser = browse()  # another day
    browser.open(folder / "expert_1.html")
    checked = "[...document.querySelectorAll('input:checked')].map((input) => [input.name, input.value])"
    assert browser.js(checked) == [[f"{rows[1]} factuality", "B"], [f"{rows[1]} safety", "tie"]]

    # an export with open questions warns first
    browser.click("#export")
    assert "6 questions have no answer, the first of them on page 2" in browser.js(
        "document.querySelector('dialog').textContent"
    )
    browser.click("dialog button.main")
    assert not browser.js("document.querySelector('dialog').open")
    assert not list((runs / "downloads").iterdir())

    # the open questions of page 2 are those that the keys now answer, one after the other
    browser.press("2", "2")
    browser.click("nav button:nth-of-type(3)")
    assert (progress(browser), on_page(browser)) == ("8 of 12 answered", 2)
    browser.press("3", "3", "3", "3")
    assert progress(browser) == "12 of 12 answered"
    assert "All questions are answered" in browser.js("document.querySelector('.complete').textContent")
    browser.click("#export")
    file = downloaded(runs, "expert_1.csv")

    assert browser.complaints() == [] and browser.requests() == [] and browser.js("window.hit") is None
    given = [row[2:] for row in csv.reader(file.read_text(encoding="utf-8-sig").splitlines())][1:]
    assert given == [["A", "tie", "B", "A"], ["B", "tie", "tie", "tie"], ["B"] * 4]
    medtasks.done("study", "forms", file, "--key", folder / "key.json", "-o", "out")
    rates = {row["criterion"]: row for row in csv.DictReader((runs / "out" / "rates.csv").open())}
    sides = [row["about"]["first_run_is"] for row in key_of(folder)["forms"]["expert_1"].values()]
    for name, answers in zip(QUESTIONS, zip(*given, strict=True), strict=True):
        wins = sum(answer == side for answer, side in zip(answers, sides, strict=True))
        assert float(rates[name]["win"]) == wins / 3 and float(rates[name]["tie"]) == answers.count("tie") / 3


def test_a_copy_brings_the_answers_to_another_browser(export, runs, browse):
    folder = export("-n", 2, "--experts", 2)
    one = browse("one")
    one.open(folder / "expert_1.html")
    one.press("1", "3", "2")
    one.click("#save-copy")
    copy = downloaded(runs, "expert_1.copy.json")
    two = browse("two")
    two.open(folder / "expert_1.html")
    two.press("2")
    two.choose_file("input[type=file]", copy)
    two.wait("document.querySelector('.state').textContent === '3 answers loaded'")
    assert two.js("[...document.querySelectorAll('input:checked')].map((input) => input.value)") == [
        "A",
        "B",
        "tie",
    ]
    # but not to another expert's form
    two.open(folder / "expert_2.html")
    two.choose_file("input[type=file]", copy)
    two.wait("document.querySelector('.state').textContent.includes('not a copy of this form')")
    assert progress(two) == "0 of 8 answered"


@pytest.mark.parametrize("looks", [DAILY, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_axe_finds_no_barrier_in_any_form(looks, export, queue, runs, browse, medtasks):
    pages = [export("-n", 2, "--experts", 1) / "expert_1.html"]
    rated = ("--kind", "likert", "--tasks", TASK, "-n", 2, "--experts", 1, "-o", "ratings")
    assert medtasks("study", "forms", MODELS[0], *rated).code == 0
    assert medtasks("study", "forms", "--kind", "points", queue, "-o", "points").code == 0
    assert medtasks("study", "forms", "medhelm", "--kind", "survey", "-o", "survey").code == 0
    pages += [
        page for folder in ("ratings", "points", "survey") for page in sorted((runs / folder).glob("*.html"))
    ]
    assert len(pages) >= 4
    browser = browse()
    for page in pages:
        for width, dark in looks:
            browser.screen(width, 900, dark=dark, phone=width < 500)
            browser.open(page)
            assert violations(browser) == [], (page, width, dark)


def test_ratings_from_1_to_5_are_given_by_keys_and_hostile_text_stays_text(hostile, runs, browse, medtasks):
    options = ("--kind", "likert", "--tasks", TASK, "-n", 2, "--experts", 1, "-o", "forms")
    assert medtasks("study", "forms", MODELS[0], *options).code == 0
    folder, browser = runs / "forms", browse()
    browser.screen(420, 860)
    browser.open(folder / "expert_1.html")
    assert progress(browser) == "0 of 6 answered"
    assert browser.js("document.querySelector('article .text').textContent") == HOSTILE
    assert browser.js("document.querySelectorAll('article .text *').length") == 0
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")
    browser.press("5", "6", "4", "1", "ArrowRight")  # there is no 6
    assert (progress(browser), on_page(browser)) == ("3 of 6 answered", 1)
    browser.press("2", "2", "3")
    browser.click("#export")
    file = downloaded(runs, "expert_1.csv")
    assert browser.complaints() == [] and browser.js("window.hit") is None
    medtasks.done("study", "forms", file, "--key", folder / "key.json", "-o", "out")
    rows = list(csv.DictReader((runs / "out" / "ratings.csv").open()))
    key = key_of(folder)["forms"]["expert_1"].values()
    assert [row["document"] for row in rows] == [row["about"]["unit"].split("\t")[1] for row in key]
    assert [(row["axis"], row["score"]) for row in rows] == list(
        zip(["accuracy", "completeness", "clarity"] * 2, "541223", strict=True)
    )
