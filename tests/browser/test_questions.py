"""Eight questions that a stranger has, each answered by the leaderboard in at most three clicks."""

import json
import re

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.groups import group_scores, groups_of
from medtasks_ext.report.site.boards import BoardLine
from medtasks_ext.results.models import facts_of
from medtasks_ext.results.published import published_entries
from tests.browser.chromium import THERE

MOST_CLICKS = 3


class Stranger:
    """Opens the first page, clicks, and reads."""

    def __init__(self, browser, site):
        self.browser, self.clicks = browser, 0
        browser.show((site / "index.html").as_uri(), there=THERE)

    def click(self, words):
        """Click the link, button or heading of a column with these words."""
        self.clicks += 1
        self.browser.js("window.before = true")
        found = self.browser.js(
            f"""(() => {{
                const all = [...document.querySelectorAll("a, button, summary")];
                const said = (item) => item.textContent.replace(/[▲▼]/g, "").trim();
                const one = all.find((item) => said(item) === {json.dumps(words)});
                one?.click();
                return !!one && (one.tagName !== "A" || one.getAttribute("href").startsWith("#"));
            }})()"""
        )
        if not found:
            self.browser.wait(f"!window.before && {THERE}")

    def read(self, selector="main"):
        return self.browser.js(f"document.querySelector({json.dumps(selector)}).innerText")

    def first_row(self):
        """Name of the model of the table's first line that is ranked."""
        return self.browser.js("document.querySelector('.lines tbody:not(.pinned) a.name').textContent")

    def done(self):
        assert self.clicks <= MOST_CLICKS
        assert self.browser.requests() == [] and self.browser.complaints() == []


@pytest.fixture
def stranger(browser, published_site):
    found = Stranger(browser, published_site)
    yield found
    found.done()


@pytest.fixture(scope="module")
def bridge():
    """Published models of BRIDGE: (facts, {(axis, value): score})."""
    tasks, entries = registry(), published_entries(registry())
    groups = tuple(group for group in groups_of(tasks) if group.suite == "bridge" and not group.derived)
    found = {}
    for entry in (entry for entry in entries if entry.paper == "bridge"):
        rows = group_scores(entry, "zero_shot", groups)
        scores = {(row.group.axis, row.group.value): row.score for row in rows}
        known = facts_of(entry, entries)
        found[BoardLine(entry, known).title] = (known, scores)
    return found


def best(models, key):
    return max(models, key=lambda name: models[name][1][key])


def test_which_open_model_up_to_ten_billion_is_best_in_japanese(stranger, bridge):
    stranger.click("by language")
    stranger.click("open, up to 10 B")
    stranger.click("Japanese")
    small = {
        name: known
        for name, known in bridge.items()
        if known[0]["access"] == "open" and 0 < float(known[0].get("parameters_b") or 0) <= 10
    }
    assert stranger.first_row() == best(small, ("language", "ja"))


def test_what_does_one_more_point_cost(stranger):
    stranger.click("by price")
    assert "a point" in stranger.read("#pictures .note")


def test_is_the_best_medical_model_better_than_the_best_general_one(stranger, bridge):
    stranger.click("medical against general")
    for domain in ("medical", "general"):
        some = {
            name: known for name, known in bridge.items() if known[0]["domain"].lower().startswith(domain)
        }
        assert best(some, ("suite", "bridge")) in stranger.read("#pictures table")


def test_who_wins_medhelm_as_its_paper_ranks(stranger):
    stranger.click("MedHELM")
    assert stranger.first_row() == "DeepSeek-R1"


def test_which_model_extracts_events_best(stranger, bridge):
    stranger.click("by kind of task")
    stranger.click("Event extraction")
    assert stranger.first_row() == best(bridge, ("task_type", "event_extraction"))


def test_what_is_a_model_weak_in(stranger):
    stranger.click("Gemini 2.5 Flash")
    said = stranger.browser.js("document.querySelector('.percentiles').textContent")
    below = re.findall(r"([A-Z][a-z ]+) \(\d+\)", said), re.findall(r"0\.\d{3}\s+[-−]0\.\d\d", said)
    assert "Norwegian" in below[0] and below[1], said  # what is asked, and how far it is below the median


def test_how_far_is_the_best_from_the_ceiling_of_a_dataset_and_how_is_it_asked(stranger):
    stranger.click("Datasets")
    stranger.click("MedNLI")
    words = stranger.read()
    assert "Maximum " in words and "above the best model" in words and "medtasks preview" in words


def test_do_reasoning_models_do_better(stranger):
    stranger.click("reasoning against not")
    table = stranger.read("#pictures table")
    assert "no reasoning" in table and "Median" in table
