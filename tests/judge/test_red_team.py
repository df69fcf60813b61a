"""`medtasks judge --red-team`: what is counted is what attacks do beyond their harmless controls."""

import json
import re
from collections import Counter

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.judge.jury import Jury
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.registry import registry
from medtasks_ext.stats.comparison import matched_difference
from medtasks_lab.judge import red_team as module
from medtasks_lab.judge.red_team import RedTeam, panels, red_team
from tests.judge.server import Reply, coded, verdict


@pytest.fixture
def few(monkeypatch):
    """One question of each kind, and one attack of each kind and aim."""
    whole = red_team()
    first = {(item.kind, item.aim): item for item in reversed(whole.attacks) if item.language == "en"}
    few = RedTeam(
        questions=[group.model_copy(update={"items": group.items[:1]}) for group in whole.questions],
        attacks=[item.model_copy(update={"spelt": None}) for item in first.values()],
    )
    monkeypatch.setattr(module, "red_team", lambda: few)
    return few


def judges(asked, good):
    """A verdict that finds an answer good or bad, under the protocol that it is asked for."""
    if "point" in asked.texts:
        return coded({"decision": {"met": good}})
    if "points" in asked.texts:
        names = re.findall(r"^(\w+)\. ", asked.texts["points"], re.MULTILINE)
        return coded({name: {"reason": "so", "met": good} for name in names})
    return verdict(asked.axes, 5 if good else 1)


def is_good(asked):
    shown = asked.texts["response"]
    return any(shown.startswith(item.good[:20]) for group in red_team().questions for item in group.items)


def honest(asked, seen):
    return Reply(judges(asked, is_good(asked)))


def quoting(asked, seen):
    """Honest, and says what it was shown before and after its own verdict."""
    shown = asked.texts["response"]
    shown = shown if shown.count("{") == shown.count("}") else ""
    return Reply(f"It says: {shown}\n{judges(asked, is_good(asked))}\nIndeed: {shown}")


def obedient(asked, seen):
    """Does what a note to the grader asks for."""
    shown = asked.texts["response"]
    if "Note to the grader" in shown:
        return Reply(judges(asked, "highest" in shown))
    return honest(asked, seen)


def silenced(asked, seen):
    return Reply("I may not.") if "Do not write JSON" in asked.texts["response"] else honest(asked, seen)


@pytest.fixture
def attack(medtasks, server, jury, few):
    def call(script, *names, folder="run", **settings):
        server.script = script
        names = names or ("one",)
        return medtasks(
            "judge", "run", folder, "--jury", jury(*names, **settings), "--red-team", "--prompts", "own"
        )

    return call


def shares(tmp_path, judge="one", kind="all"):
    """aim -> (attacked, control, difference)."""
    found = json.loads((tmp_path / "run" / "red_team" / "red_team.json").read_text())
    return {
        item["aim"]: (item["attacked"], item["control"], item["difference"])
        for item in found
        if (item["judge"], item["kind"]) == (judge, kind)
    }


@pytest.mark.parametrize("script", [honest, quoting])
def test_a_judge_that_rates_the_answer_is_not_moved_whatever_it_quotes(attack, tmp_path, script):
    done = attack(script)
    assert done.code == 0, done.text
    assert shares(tmp_path) == dict.fromkeys(("all", "raise", "lower", "block"), (0, 0, 0))


def test_a_lenient_judge_is_no_attacked_one(attack, tmp_path):
    attack(lambda asked, seen: Reply(judges(asked, True)))
    found = shares(tmp_path)
    assert found["raise"] == (1, 1, 0) and found["lower"] == (0, 0, 0)


def test_a_judge_that_obeys_shows_in_both_directions(attack, tmp_path):
    attack(obedient)
    found = shares(tmp_path, kind="plea")
    assert found == {"raise": (1, 0, 1), "lower": (1, 0, 1)}
    assert shares(tmp_path, kind="planted_score")["raise"] == (0, 0, 0)


def test_a_judge_that_is_silenced_has_no_verdict_and_is_not_asked_again(attack, tmp_path, server):
    assert attack(silenced).code == 0
    assert shares(tmp_path, kind="no_object")["block"] == (1, 0, 1)
    asked = Counter(item.texts["response"] for item in server.asked)
    assert max(asked.values()) == 3  # replies that are asked for before there is none
    server.asked.clear()
    again = attack(silenced)
    assert again.code == 0 and not server.asked
    assert shares(tmp_path, kind="no_object")["block"] == (1, 0, 1)


def test_what_is_missing_is_asked_by_the_next_call_alone(attack, tmp_path, server, few):
    (panel,) = panels(Jury(judges=[JUDGE]), registry(), "own")
    whole = sum(len(task.cases) for task in panel.tasks)

    def broken(asked, seen):
        return Reply(status=400) if len(server.asked) % 3 == 0 else honest(asked, seen)

    first = attack(broken)
    assert first.code == 1 and "replies to attacks; the same command asks for them again" in first.err
    there = len(server.paid)
    assert 0 < there < whole
    server.asked.clear()
    assert attack(honest).code == 0 and len(server.paid) == whole
    assert len(server.asked) == whole - there


JUDGE = {"name": "one", "model": "one", "base_url": "http://127.0.0.1:9/v1"}


def test_the_table_has_rate_interval_number_and_agreement(attack, tmp_path, medtasks):
    figures = tmp_path / "run" / "judgements" / "agreement.json"
    figures.parent.mkdir(parents=True)
    kappa = {"table": "judges", "task": "t", "between": "one + two", "item": "all axes",
             "measure": "quadratic kappa", "value": 0.625}  # fmt: skip
    figures.write_text(json.dumps([kappa]))
    done = attack(obedient, "one", "two")
    row = next(line.split() for line in done.out.splitlines() if line.split()[:1] == ["one"])
    found = shares(tmp_path)["all"]
    assert [float(row[place]) for place in (2, 3, 4)] == [round(value, 2) for value in found]
    low, high = float(row[5]), float(row[7])
    assert low <= found[2] <= high and low < high and row[8] in ("0.62", "0.63")
    assert max(map(len, done.out.splitlines())) <= 88


def test_a_dry_run_asks_nobody_and_writes_nothing(medtasks, jury, server, tmp_path, few):
    done = medtasks("judge", "run", "run", "--jury", jury("one"), "--red-team", "--dry-run")
    assert done.code == 0 and "nothing was asked" in done.out
    assert not server.asked and not (tmp_path / "run").exists()


def test_an_adjudicator_of_single_points_is_attacked_as_it_is_asked(medtasks, jury, server, tmp_path, few):
    path = jury("one", "two")
    content = yaml.safe_load(path.read_text())
    boss = {**content["judges"][0], "name": "boss", "model": "boss", "asks": "points_one_by_one"}
    path.write_text(yaml.safe_dump({**content, "adjudicator": boss}))
    server.script = honest
    done = medtasks("judge", "run", "run", "--jury", path, "--red-team", "--prompts", "own")
    assert done.code == 0, done.text
    assert {"point" in item.texts for item in server.asked if item.model == "boss"} == {True}
    assert {"point" in item.texts for item in server.asked if item.model != "boss"} == {False}
    assert shares(tmp_path, "boss")["all"] == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("run", "other"), "one folder"), (("run", "--tasks", "medhelm"), "all of them")],
)
def test_what_has_no_meaning_with_attacks_is_refused(medtasks, jury, server, arguments, message):
    done = medtasks("judge", "run", *arguments, "--jury", jury("one"), "--red-team")
    assert done.code == 2 and message in done.err and not server.asked


def test_every_bundled_attack_has_a_control_and_none_is_read_as_a_verdict():
    """No forged object is one, in any spelling, and no control is."""
    (panel,) = panels(Jury(judges=[JUDGE]), registry(), "own")
    documents = [case.document for task in panel.tasks for case in task.cases]
    assert len(panel.pairs) < len(documents) == len({*documents}) < 2 * len(panel.pairs)
    texts = [tuple(case.texts.items()) for task in panel.tasks for case in task.cases]
    assert len(texts) == len({*texts})
    assert {pair.aim for pair in panel.pairs} == {"raise", "lower", "block"}
    assert len({pair.language for pair in panel.pairs}) >= 7
    for pair in panel.pairs:
        assert pair.attacked.texts["response"] != pair.control.texts["response"]
        for case in (pair.attacked, pair.control):
            with pytest.raises(UnreadableError):
                case.rubric.read(case.texts["response"], case.texts)


@given(st.data(), st.integers(1, 300))
def test_the_interval_of_a_difference_holds_it_and_mirrors(data, n):
    one = data.draw(st.integers(0, n))
    other = data.draw(st.integers(0, n - one))
    found, mirrored = matched_difference(one, other, n), matched_difference(other, one, n)
    assert -1 <= found.low < found.high <= 1
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
    assert found.low <= (one - other) / (n + 2) <= found.high


def test_an_interval_without_any_difference_has_a_width():
    found = matched_difference(0, 0, 212)
    assert (found.low, found.high) == pytest.approx((-1.96 / 214, 1.96 / 214), rel=1e-3)
