"""References that a model flags, and the jury's scores with and without them."""

import csv

import pytest

from tests.conftest import read_json
from tests.judge.server import Reply, coded, verdict
from tests.judge.test_command import number

BAD = {1, 4}


def script(asked, seen):
    """A judge that doubts two references, and a jury that likes the second run better."""
    if "reasonable" in asked.system:
        doubt = int(asked.texts["response"].split()[-1].strip(".")) in BAD
        return Reply(coded({"reference": {"reasonable": not doubt, "explanation": "x"}}))
    grade = 1 + number(asked) % 4 + ("Good" in asked.texts["response"])
    return Reply(verdict(asked.axes, grade))


@pytest.fixture
def gold(run, jury, medtasks, server):
    """Two judged runs, and a call of `medtasks study gold` on both."""
    server.script = script
    for name, text in (("r1", "Fair."), ("r2", "Good.")):
        run("qa", folder=name, answers={f"d{i}": text for i in range(6)})

    def call(*options, names=("checker",), judged=True):
        if judged:
            assert medtasks("judge", "r1", "r2", "--jury", jury("one", "two")).code == 0
        return medtasks(
            "study", "gold", "r1", "r2", "--jury", jury(*names, file="gold.yaml"), "-o", "gold", *options
        )

    return call


def test_scores_stand_by_reference(gold, tmp_path, server):
    done = gold()
    assert done.code == 0 and done.err.endswith("next: medtasks view r1 r2\n"), done.text
    results = read_json(tmp_path / "gold" / "gold.json")
    [task] = results["tasks"]
    assert (task["documents"], task["flagged"], task["missing"]) == (6, 2, 0)
    grades = {"r1": [(i % 4) / 4 for i in range(6)], "r2": [(i % 4 + 1) / 4 for i in range(6)]}
    for score in results["scores"]:
        own = grades[score["run"]]
        flagged = sum(own[i] for i in BAD) / 2
        accepted = sum(own[i] for i in range(6) if i not in BAD) / 4
        assert (score["flagged"], score["accepted"]) == pytest.approx((flagged, accepted))
        assert score["difference"] == pytest.approx(flagged - accepted)
        assert score["low"] <= score["difference"] <= score["high"]
        assert (score["n_flagged"], score["n_accepted"]) == (2, 4)
    with (tmp_path / "gold" / "gold_flags.csv").open() as file:
        assert {row["document"] for row in csv.DictReader(file) if row["flagged"] == "1"} == {"d1", "d4"}
    assert "2 (33.3 %)" in done.out
    # a reference is asked about once, whatever the number of runs, and never again
    asked = [item for item in server.asked if "reasonable" in item.system]
    assert len(asked) == 6 and all(set(item.texts) == {"question", "response"} for item in asked)
    assert gold(judged=False).code == 0
    assert len([item for item in server.asked if "reasonable" in item.system]) == 6


def test_the_majority_of_several_judges_flags(gold, server, tmp_path):
    def opinions(asked, seen):
        if "reasonable" in asked.system:
            doubt = {"one": True, "two": number(asked) == 1, "three": number(asked) in (1, 2)}[asked.model]
            return Reply(coded({"reference": {"reasonable": not doubt, "explanation": "x"}}))
        return script(asked, seen)

    server.script = opinions
    assert gold(names=("one", "two", "three")).code == 0
    with (tmp_path / "gold" / "gold_flags.csv").open() as file:
        assert {row["document"] for row in csv.DictReader(file) if row["flagged"] == "1"} == {"d1", "d2"}


def test_without_scores_the_flags_stand_alone(gold):
    done = gold(judged=False)
    assert done.code == 0 and "medtasks judge" in done.out and "jury's score" not in done.out


def test_a_verdict_that_is_none_is_missing_and_asked_for_again(gold, server):
    server.script = lambda asked, seen: (
        Reply("I cannot say") if "reasonable" in asked.system and number(asked) == 3 else script(asked, seen)
    )
    done = gold()
    assert done.code == 1 and "missing in all: 1 verdicts on references" in done.err
    server.script = script
    assert gold(judged=False).code == 0


def test_a_dry_run_asks_nobody_and_a_run_without_references_is_refused(gold, run, medtasks, jury, server):
    done = gold("--dry-run", judged=False)
    assert done.code == 0 and not [item for item in server.asked if "reasonable" in item.system]
    run("note", folder="noted")
    done = medtasks("study", "gold", "noted", "--jury", jury("one"), "-o", "gold")
    assert done.code == 2 and "beside a reference" in done.err
