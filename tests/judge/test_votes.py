"""Judges beside physicians' votes on single criteria."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import f1_score

from medtasks_ext.stats.votes import cells, macro_interval, vote_f1
from tests.judge.server import Reply, coded

TASK = "healthbench_full"
SECRET = "Frau Mustermann"


def line(criterion, labels, names, category="urgent", **more):
    return {
        "prompt": [{"role": "user", "content": f"{SECRET}: is this an emergency?"}],
        "completion": "Call an ambulance.",
        "rubric": criterion,
        "category": category,
        "binary_labels": labels,
        "anonymized_physician_ids": names,
        "completion_id": "left out",
        **more,
    }


LINES = [
    line("Yes 1", [True, True], ["A", "B"]),
    line("Yes 2", [True, False, True], ["A", "B", "C"]),
    line("No 3", [False, False], ["B", "C"]),
    line("No 4", [True, False], ["A", "C"]),
    line("Yes 5", [False], ["A"], category="hedging"),
    line("No 6", [False, False], ["A", "B"], category="hedging"),
]


def by_the_book(answers, votes):
    """F1 of yes and no over all pairs, with scikit-learn; None where an answer never occurs."""
    mine = [answer for answer, labels in zip(answers, votes, strict=True) for _ in labels]
    theirs = [label for labels in votes for label in labels]
    if len({*mine}) < 2 or len({*theirs}) < 2:
        return None
    return f1_score(theirs, mine, average="macro")


# ---------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("seed", range(20))
def test_macro_f1_is_that_of_scikit_learn_over_all_pairs(seed):
    rng = np.random.default_rng(seed)
    answers = (rng.random(40) < 0.6).tolist()
    votes = [(rng.random(rng.integers(1, 6)) < 0.5).tolist() for _ in answers]
    found = vote_f1([cells(answer, labels) for answer, labels in zip(answers, votes, strict=True)])
    assert found.macro == pytest.approx(by_the_book(answers, votes))
    assert found.macro == (found.yes + found.no) / 2 and found.pairs == sum(map(len, votes))


@pytest.mark.parametrize(
    ("rows", "yes", "no", "macro"),
    [
        ([(True, [True, True]), (False, [False])], 1, 1, 1),
        ([(True, [False]), (False, [True])], 0, 0, 0),
        ([(True, [True, False]), (False, [False])], 2 / 3, 2 / 3, 2 / 3),
        ([(True, [True]), (True, [False])], 2 / 3, None, None),  # the rater never says no
        ([(True, [True]), (False, [True])], 2 / 3, None, None),  # nobody else does
        ([], None, None, None),
    ],
)
def test_an_answer_that_never_occurs_has_no_f1(rows, yes, no, macro):
    found = vote_f1([cells(*row) for row in rows])
    assert (found.yes, found.no, found.macro) == tuple(
        None if value is None else pytest.approx(value) for value in (yes, no, macro)
    )


def test_the_order_of_rows_changes_nothing_and_the_interval_holds_the_value():
    rng = np.random.default_rng(3)
    rows = [cells(bool(a), (rng.random(3) < 0.5 + 0.3 * a).tolist()) for a in rng.integers(0, 2, 200)]
    found = vote_f1(rows)
    assert vote_f1(rows[::-1]) == found
    around = macro_interval(rows, "key")
    assert around.low < found.macro < around.high
    assert macro_interval(rows[:1], "key") is None
    assert macro_interval([cells(True, [True]), cells(False, [False])], "key") is None


# ---------------------------------------------------------------------- the command


@pytest.fixture
def votes(medtasks, jury, server, tmp_path):
    """A call on these lines, with a judge that finds criteria met that begin with Yes."""
    server.script = lambda asked, seen: Reply(
        coded({"decision": {"explanation": "-", "criteria_met": asked.texts["item"].startswith("Yes")}})
    )

    def call(*options, lines=LINES, names=("one",)):
        text = "".join(json.dumps(item) + "\n" for item in lines)
        (tmp_path / "votes.jsonl").write_text(text, encoding="utf-8")
        command = ("judge", "votes", "votes.jsonl", "--task", TASK, "--jury", jury(*names), "-o", "out")
        return medtasks(*command, "--prompts", "own", *options)

    return call


def figures(tmp_path):
    return json.loads((tmp_path / "out" / "votes.json").read_text())


def test_judges_and_physicians_stand_beside_each_other(votes, tmp_path, server):
    done = votes()
    assert done.code == 0, done.text
    found = figures(tmp_path)
    answers = [item["rubric"].startswith("Yes") for item in LINES]
    labels = [item["binary_labels"] for item in LINES]
    rows = {(item["rater"], item["category"]): item for item in found["agreement"]}
    assert rows["one", "all"]["macro_f1"] == pytest.approx(by_the_book(answers, labels))
    assert rows["one", "urgent"]["macro_f1"] == pytest.approx(by_the_book(answers[:4], labels[:4]))
    assert rows["one", "hedging"]["macro_f1"] is None and rows["one", "hedging"]["pairs"] == 3
    physicians = {(item["rater"], item["category"]): item for item in found["physicians"]}
    for name in "ABC":
        own, others = [], []
        for item in LINES:
            if name in (ids := item["anonymized_physician_ids"]) and len(ids) > 1:
                own.append(item["binary_labels"][ids.index(name)])
                others.append([x for x, by in zip(item["binary_labels"], ids, strict=True) if by != name])
        expected = by_the_book(own, others)
        assert physicians[name, "all"]["macro_f1"] == (None if expected is None else pytest.approx(expected))
    known = [item["macro_f1"] for (_, category), item in physicians.items() if category == "all"]
    known = [value for value in known if value is not None]
    assert rows["one", "all"]["physicians"] == len(known)
    assert rows["one", "all"]["median_of_physicians"] == pytest.approx(np.median(known))
    below = sum(value < rows["one", "all"]["macro_f1"] for value in known) / len(known)
    assert rows["one", "all"]["share_of_physicians_below"] == pytest.approx(below)
    with (tmp_path / "out" / "votes_judges.csv").open() as file:
        assert len([*csv.DictReader(file)]) == 3
    assert not found["sample"] and "SAMPLE" not in done.out
    assert {asked.texts["item"] for asked in server.asked} == {item["rubric"] for item in LINES}
    assert server.asked[0].texts["question"].startswith("user: ")


def test_nothing_is_asked_twice_and_a_dry_run_asks_nobody(votes, server):
    assert votes("--dry-run").code == 0 and server.asked == []
    assert votes().code == 0 and len(server.asked) == len(LINES)
    assert votes().code == 0 and len(server.asked) == len(LINES)


def test_a_verdict_that_is_missing_is_counted_and_asked_for_again(votes, server, tmp_path):
    script, server.script = server.script, lambda asked, seen: Reply("no verdict")
    done = votes()
    assert done.code == 1 and "missing in all: 6 verdicts on criteria" in done.text
    assert figures(tmp_path)["missing"] == {"one": 6}
    server.script = script
    assert votes().code == 0 and figures(tmp_path)["missing"] == {"one": 0}


def test_invented_votes_say_so(votes):
    assert "SAMPLE DATA" in votes(lines=[{**item, "data": "sample"} for item in LINES]).out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"binary_labels": []}, "binary_labels"),
        ({"binary_labels": [True]}, "each vote needs a physician"),
        ({"anonymized_physician_ids": ["A", "A"]}, "each physician has one vote"),
        ({"rubric": ""}, "rubric"),
        ({"prompt": "text"}, "prompt"),
        ({"completion": None}, "completion"),
        ({"binary_labels": ["perhaps", True]}, "binary_labels.0"),
    ],
)
def test_a_line_that_is_no_vote_is_named_without_its_text(votes, change, said):
    done = votes(lines=[LINES[0], {**LINES[0], **change}])
    assert done.code == 2 and "line 2" in done.err and said in done.err and SECRET not in done.text


def test_files_and_tasks_that_do_not_fit_are_refused(votes, medtasks, jury, tmp_path):
    assert "holds no votes" in votes(lines=[]).err
    (tmp_path / "broken.jsonl").write_text("{")
    out = ("--jury", jury("one"), "-o", "out")
    broken = medtasks("judge", "votes", "broken.jsonl", "--task", TASK, *out)
    assert broken.code == 2 and "line 1: is no JSON" in broken.err
    gone = medtasks("judge", "votes", "gone.jsonl", "--task", TASK, *out)
    assert gone.code == 2 and "no such file" in gone.err
    votes()
    for task, said in (("nothing", "is no judged task"), ("bridge_mie", "is no judged task")):
        done = medtasks("judge", "votes", "votes.jsonl", "--task", task, *out)
        assert done.code == 2 and said in done.err
    axes = medtasks("judge", "votes", "votes.jsonl", "--task", "medhelm_aci_bench", *out)
    assert axes.code == 2 and "rubric_item" in axes.err


def test_texts_go_to_no_stranger_unasked(votes, jury):
    jury_file = jury("one", file="far.yaml")
    jury_file.write_text(jury_file.read_text().replace("127.0.0.1", "judge.example.org"))
    done = votes("--jury", jury_file)
    assert done.code == 2 and "--allow-host" in done.text
