"""Where an own run stands among published models: on the tasks that it has, and that were asked alike."""

import json
import re
from statistics import fmean, median
from xml.etree import ElementTree

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.published import published_entries
from medtasks_ext.stats.statistic import mean
from tests.report.made import write_run

TASKS = registry()
#: small ones whose score is a mean over documents
SOME = [
    item
    for item in TASKS.datasets.values()
    if item.metadata.suite == "bridge" and score_statistic(item) is mean and 0 < item.n_documents < 400
][:3]


def published(names):
    """Model -> mean of its zero-shot scores of these tasks."""
    return {
        entry.model: fmean(entry.experiments[name].score for name in names)
        for entry in published_entries(TASKS)
        if entry.paper == "bridge"
    }


#: such that half of the published models are better on the first two
SHARE = median(published([item.id for item in SOME[:2]]).values())


def scores_of(share):
    found = {}
    for item in SOME:
        right = round(share * item.n_documents)
        found[item.id] = [1.0] * right + [0.0] * (item.n_documents - right)
    return found


@pytest.fixture
def run(tmp_path):
    """Two of three tasks were asked in the suite's own words."""
    write_run(tmp_path / "a", "ORG/med-8b", scores_of(SHARE), loaded={"instruction": "official"})
    file = tmp_path / "a" / "tasks" / f"{SOME[2].id}.json"
    record = json.loads(file.read_text())
    record["loaded"]["instruction"] = "own"
    file.write_text(json.dumps(record))
    return tmp_path / "a"


def test_it_stands_on_the_tasks_that_were_asked_alike(medtasks, run):
    outcome = medtasks("report", "a", "-o", "out", "--strategy", "zero_shot")
    [found] = json.loads(medtasks("report", "a", "--strategy", "zero_shot", "--json").out)["standings"]
    rivals = published([item.id for item in SOME[:2]])
    place = 1 + sum(score > found["on_alike"] for score in rivals.values())
    assert (found["tasks"], found["alike"], found["official"]) == (3, 2, 2)
    assert (found["placed"], found["place"], found["of"]) == (True, place, len(rivals) + 1)
    assert found["reasons"] == {"wording": 1}
    ahead = min((score, model) for model, score in rivals.items() if score > found["on_alike"])[0]
    behind = max((score, model) for model, score in rivals.items() if score < found["on_alike"])[0]
    names = re.search(r"between (.+) and (.+) of 98$", found["sentence"]).groups()
    assert [rivals[name] for name in names] == pytest.approx([ahead, behind])
    assert f"on 3 of BRIDGE's 87 tasks; {found['on_alike']:.2f} on the 2 that were asked" in found["sentence"]
    said = " ".join(outcome.out.split())
    assert found["sentence"] in said and "●" in said and "2 of 3 tasks asked in the suites' own words" in said
    page = (run.parent / "out" / "report.html").read_text(encoding="utf-8")
    [content] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    [shown] = json.loads(content)["standings"]
    assert (shown["sentence"], shown["place"]) == (found["sentence"], found["place"])
    better = sum(score > found["on_alike"] for name, score in found["rivals"] if name in found["peers"])
    assert f"place {1 + better} of {len(found['peers']) + 1} among models of its size" in found["among_peers"]


def test_without_a_task_that_was_asked_alike_there_is_no_place(medtasks, tmp_path):
    write_run(tmp_path / "own", "ORG/own", scores_of(0.5))
    [found] = json.loads(medtasks("report", "own", "--strategy", "zero_shot", "--json").out)["standings"]
    assert (found["placed"], found["place"]) == (False, None)
    assert (
        "no place among 98 published models, which were asked otherwise (wording in 3)" in found["sentence"]
    )
    outcome = medtasks("report", "own", "--strategy", "zero_shot")
    assert "○" in outcome.out and "●" not in outcome.out and "how sure" not in outcome.out


def test_rows_below_the_suites_number_are_marked_and_get_no_place(medtasks, tmp_path):
    item = SOME[0]
    few = {"instruction": "official"}, {"conditions": {"rows": {"n_of_suite": item.n_documents}}}
    write_run(tmp_path / "few", "ORG/few", {item.id: [1.0] * 7}, loaded=few[0], record=few[1])
    outcome = medtasks("report", "few", "--strategy", "zero_shot")
    said = " ".join(outcome.out.split())
    assert "rows in part" in said and f"7 of the suite's {item.n_documents:,} rows" in said
    assert "1/1" not in said and "no place among 98 published models" in said
    refused = medtasks("card", "few", "-o", "card")
    assert refused.code == 2 and "--parts" in refused.err
    assert medtasks("card", "few", "-o", "card", "--parts").code == 0
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert f"stands on a part: 7 of the suite's {item.n_documents:,} rows" in card


def test_the_card_holds_the_sentence_and_its_picture(medtasks, run):
    assert medtasks("card", "a", "-o", "card").code == 0
    card = (run.parent / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    [found] = json.loads(medtasks("report", "a", "--strategy", "zero_shot", "--json").out)["standings"]
    assert found["sentence"] in card and "2 of 3 tasks were asked in their suite's own words" in card
    assert f"![{found['sentence']}](standing-bridge-zero_shot.svg)" in card
    image = ElementTree.parse(run.parent / "card" / "standing-bridge-zero_shot.svg").getroot()
    groups = image.iter("{http://www.w3.org/2000/svg}g")
    rivals = [
        group for group in groups if {"layer_1_marks", "layer_2_marks"} & {*group.get("class", "").split()}
    ]
    assert sum(len(group.findall("{http://www.w3.org/2000/svg}line")) for group in rivals) == 98


def test_without_the_drawing_library_the_card_holds_a_strip(medtasks, run, monkeypatch):
    monkeypatch.setattr("medtasks_ext.report.pictures.draw.is_possible", lambda: False)
    outcome = medtasks("card", "a", "-o", "card")
    assert outcome.code == 0 and "medtasks[plots]" in outcome.err
    card = (run.parent / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "━" in card and "●" in card and not [*(run.parent / "card").glob("*.svg")]
