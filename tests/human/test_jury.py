"""`medtasks human jury`: the same questions put to models, as a metric of its own."""

import csv
import json

import pytest

from tests.human.conftest import GATED, MODELS, TASK, N, text_of
from tests.judge.conftest import jury, quick_pauses, server  # noqa: F401  (fixtures)
from tests.judge.server import Reply, coded

CRITERIA = ("factuality", "completeness", "preference", "safety")


def by_text(**preferred):
    """Judges that prefer by criterion: `first` or `second` run, `tie`, or whatever stands at `A` or `B`."""

    def script(asked, seen):
        first_is_a = asked.texts["response"].startswith("Advice a")
        sides = {"first": "BA"[first_is_a], "second": "AB"[first_is_a], "tie": "tie", "A": "A", "B": "B"}
        verdict = {name: {"better": sides[preferred[name]], "explanation": "x"} for name in asked.axes}
        return Reply(coded(verdict))

    return script


@pytest.fixture
def ask(runs, medtasks):
    def call(jury_file, *options, tasks=TASK):
        return medtasks(
            "human", "jury", *MODELS, "--tasks", tasks, "--jury", jury_file, "-o", "jury", *options
        )

    return call


def test_both_orders_are_asked_and_a_preferred_position_counts_as_a_tie(ask, runs, jury, server):  # noqa: F811
    server.script = by_text(factuality="first", completeness="second", preference="A", safety="tie")
    done = ask(jury("one"))
    assert done.code == 0, done.text
    assert len(server.asked) == 2 * (N - 1)  # nobody is asked about the empty answer
    shown = {(asked.texts["response"], asked.texts["response_b"]) for asked in server.asked}
    pairs = [(text_of(0, i), text_of(1, i)) for i in range(N) if text_of(1, i)]
    assert shown == {order for pair in pairs for order in (pair, pair[::-1])}
    assert not any("trace" in asked.user or "gpt-x" in asked.user for asked in server.asked)
    written = json.loads((runs / "jury" / "jury.json").read_text())
    found = {row["metric"]: row for row in written["rates"]}
    assert set(found) == {f"jury_win_tie_{name}" for name in CRITERIA}
    shares = {
        name: [found[f"jury_win_tie_{name}"][part] for part in ("win", "tie", "loss")] for name in CRITERIA
    }
    rest = (N - 1) / N  # the empty answer of the second run loses
    assert shares["factuality"] == [1, 0, 0]
    assert shares["completeness"] == pytest.approx([1 - rest, 0, rest])
    assert shares["preference"] == shares["safety"] == pytest.approx([1 - rest, rest, 0])
    same = {name: found[f"jury_win_tie_{name}"]["same_in_both_orders"] for name in CRITERIA}
    assert same == {"factuality": 1, "completeness": 1, "preference": 0, "safety": 1}
    assert "not a human evaluation" in written["evaluation"] and "not a human evaluation" in done.out
    assert not (runs / "jury" / "results.json").exists()
    rows = list(csv.DictReader((runs / "jury" / "jury_rates.csv").open()))
    assert [row["metric"] for row in rows] == [row["metric"] for row in written["rates"]]


def test_a_second_call_asks_only_for_what_is_missing(ask, runs, jury, server):  # noqa: F811
    preferences = by_text(**dict.fromkeys(CRITERIA, "first"))
    server.script = lambda asked, seen: (
        Reply("no verdict") if "number 5?" in asked.user else preferences(asked, seen)
    )
    done = ask(jury("one", "two"))
    assert done.code == 1 and "one: 2 (" in done.err and "two: 2 (" in done.err
    assert "missing in all: 2 comparisons" in done.err
    written = json.loads((runs / "jury" / "jury.json").read_text())
    assert written["comparisons_missing"] == {"one": 1, "two": 1}
    assert {row["documents"] for row in written["rates"]} == {N - 1}
    before, server.script = len(server.asked), preferences
    done = ask(jury("one", "two"))
    assert done.code == 0 and len(server.asked) == before + 4  # two judges, two orders
    written = json.loads((runs / "jury" / "jury.json").read_text())
    assert {row["by"] for row in written["rates"]} == {"one", "two", "mean", "majority"}
    assert {row["win_tie"] for row in written["rates"]} == {1} and {
        row["documents"] for row in written["rates"]
    } == {N}


def test_a_dry_run_asks_nobody_and_gated_text_stays_here(ask, runs, jury, server):  # noqa: F811
    done = ask(jury("one"), "--dry-run")
    assert done.code == 0 and "22" in done.out and not server.asked and not (runs / "jury").exists()
    away = jury("one", base_url="http://judge.example/v1")
    done = ask(away, tasks=GATED)
    assert (
        done.code == 2 and "not open to everyone" in done.err and not (runs / "jury" / "jury.json").exists()
    )
