"""Where an own run stands among published models: what is claimed, from how much, and in which words."""

import json
from statistics import fmean, median
from xml.etree import ElementTree

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.published import published_entries
from medtasks_ext.stats.statistic import mean
from tests.report.made import data_of, write_run
from tests.run_files import edited

TASKS = registry()
#: small ones whose score is a mean over documents
SOME = [
    item
    for item in TASKS.datasets.values()
    if item.metadata.suite == "bridge" and score_statistic(item) is mean and 0 < item.n_documents < 900
]
ASKED = {"loaded": {"instruction": "official"}}
PUBLISHED = {entry.model: entry for entry in published_entries(TASKS) if entry.paper == "bridge"}


def like(model, items, more=0.0):
    """As many right answers as a published model has, or some more."""
    found = {}
    for item in items:
        score = min(1.0, PUBLISHED[model].experiments[item.id].score + more)
        right = round(score * item.n_documents)
        found[item.id] = [1.0] * right + [0.0] * (item.n_documents - right)
    return found


def standing(medtasks, run="run"):
    [found] = json.loads(medtasks("report", run, "--json").out)["standings"]
    return found


def test_one_task_is_no_rank_and_no_side(medtasks, tmp_path):
    write_run(tmp_path / "run", "ORG/med-8b", like("gemma-3-27b-it", SOME[:1]), **ASKED)
    found = standing(medtasks)
    assert (found["ranked"], found["rank"], found["rank_range"]) == (False, None, None)
    assert "published models, and 1 task with" in found["sentence"]
    assert "at least 3 tasks with 100 documents must be" in found["sentence"]
    outcome = medtasks("report", "run")
    assert "rank" not in outcome.out.partition("beside published models:")[0] and "/99" not in outcome.out


@pytest.mark.long
def test_many_tasks_have_ranks_and_the_words_are_the_same_everywhere(medtasks, tmp_path):
    of_suite = [item for item in TASKS.datasets.values() if item.metadata.suite == "bridge"]
    chosen = [item for item in of_suite if score_statistic(item) is mean]
    write_run(tmp_path / "run", "ORG/med-8b", like("Llama-3.1-8B-Instruct", chosen), **ASKED)
    found = standing(medtasks)
    first, last = found["rank_range"]
    assert found["ranked"] and 1 <= first <= last <= 99 and last - first < 33
    on_these = [fmean(entry.experiments[item.id].score for item in chosen) for entry in PUBLISHED.values()]
    assert sorted(score for _, score in found["rivals"]) == pytest.approx(sorted(on_these))
    ends = found["low"], found["high"]
    assert first == 1 + sum(score > ends[1] for score in on_these)
    assert last == 1 + sum(score > ends[0] for score in on_these)
    like_it = fmean(PUBLISHED["Llama-3.1-8B-Instruct"].experiments[item.id].score for item in chosen)
    assert ends[0] < like_it < ends[1] < median(on_these)
    assert found["sentence"].endswith(
        f": rank {first} to {last} of 99 on only these tasks, below the middle, "
        "on data or prompts that nobody has confirmed"
    )
    said = " ".join(medtasks("report", "run", "-o", "out").out.split())
    assert f" {found['rank']}/99 " in said and first <= found["rank"] <= last
    assert found["sentence"] in said
    [shown] = [row for row in data_of(tmp_path / "out" / "report.html")["first"] if row["place"]]
    assert f"{found['sentence'].partition(': ')[2]}; {'; '.join(found['remarks'])}" == shown["place"]
    assert medtasks("card", "run", "-o", "card").code == 0
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert found["sentence"] in card and all(line in card for line in found["remarks"])
    assert f"![{found['sentence']}](standing-bridge-zero_shot.svg)" in card
    image = ElementTree.parse(tmp_path / "card" / "standing-bridge-zero_shot.svg").getroot()
    groups = image.iter("{http://www.w3.org/2000/svg}g")
    rivals = [group for group in groups if "layer_1_marks" in group.get("class", "").split()]
    assert sum(len(group.findall("{http://www.w3.org/2000/svg}line")) for group in rivals) == 98


def test_tasks_under_other_conditions_are_left_out_and_named(medtasks, tmp_path):
    write_run(tmp_path / "run", "ORG/med-8b", like("gemma-3-27b-it", SOME[:5]), **ASKED)
    with edited(tmp_path / "run", SOME[4].id) as record:
        record["conditions"]["wording"] = "own"
    found = standing(medtasks)
    assert (found["tasks"], found["comparable"], found["official"]) == (5, 4, 4)
    assert found["reasons"] == {"wording": 1}
    assert "1 task left out here, under other conditions: wording in 1" in found["remarks"]


def test_rows_below_the_suites_number_are_marked_and_get_no_place(medtasks, tmp_path):
    item = SOME[0]
    few = {"instruction": "official"}, {"conditions": {"n_of_suite": item.n_documents}}
    write_run(tmp_path / "few", "ORG/few", {item.id: [1.0] * 7}, loaded=few[0], record=few[1])
    outcome = medtasks("report", "few")
    said = " ".join(outcome.out.split())
    assert "rows in part" in said and f"7 of the suite's {item.n_documents:,} rows" in said
    assert "1/1 rows in part" in said and "/99" not in said and "not ranked among 98 published models" in said
    refused = medtasks("card", "few", "-o", "card")
    assert refused.code == 2 and "--parts" in refused.err
    assert medtasks("card", "few", "-o", "card", "--parts").code == 0
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "1 task scored on a part of the rows or judgements<" in card
    assert f"`{item.id}` (7 of the suite's {item.n_documents:,} rows)" in card
