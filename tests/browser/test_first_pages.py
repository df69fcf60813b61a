"""The first page of five kinds of reports: what stands there first, in words and in the picture."""

import re

import pytest

from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.stats.statistic import mean
from tests.browser.report_page import texts
from tests.report.made import write_run
from tests.report.test_standing import SOME, TASKS, like
from tests.run_files import edited

MODEL = "gemma-3-27b-it"
MEANS = [
    item
    for item in TASKS.datasets.values()
    if item.metadata.suite == "bridge" and score_statistic(item) is mean
]
#: kind of report -> what the first page says of it beside the published models
KINDS = {
    "comparable": r"^BRIDGE: rank \d+ to \d+ of 99",
    "partly": r"^BRIDGE: 0\.\d\d on the 5 under the .*: rank \d+ to \d+ of 99 on only these tasks",
    "not at all": r"^BRIDGE: not ranked among 98 published models: other conditions \(wording in 20\)",
    "one task": r"^BRIDGE: no rank yet: at least 3 tasks with 100 documents .* 1 task with .*",
}  # fmt: skip


def written(folder, kind):
    """A run of invented answers, as many right as a published model has."""
    official, own = {"loaded": {"instruction": "official"}}, {}
    if kind == "comparable":
        return write_run(folder, "ORG/med-8b", like("Llama-3.1-8B-Instruct", MEANS), **official)
    if kind == "one task":
        return write_run(folder, "ORG/med-8b", like(MODEL, SOME[:1]), **official)
    if kind == "not at all":
        return write_run(folder, "ORG/med-8b", like(MODEL, SOME[:20]), **own)
    write_run(folder, "ORG/med-8b", like(MODEL, SOME[:20]), **official)
    for item in SOME[5:20]:
        with edited(folder, item.id) as record:
            record["conditions"]["wording"] = "own"
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_page_says_what_may_be_claimed(medtasks, browser, tmp_path, kind):
    written(tmp_path / "run", kind)
    assert medtasks("report", "run", "--strategy", "zero_shot", "-o", "out").code == 0
    for width in (1440, 420):
        browser.show((tmp_path / "out" / "report.html").as_uri(), width=width)
        [said] = texts(browser, "main .places li")
        assert re.search(KINDS[kind], said), said
        assert "data and prompts confirmed in 0 of" in said
        drawn = texts(browser, "main .drawing svg text")
        assert drawn and not any("…" in words for words in drawn)
        assert "published models: median and middle half" in texts(browser, "main .key")
        assert browser.js("document.documentElement.scrollWidth <= innerWidth")
        assert browser.complaints() == []
