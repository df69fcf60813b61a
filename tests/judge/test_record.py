"""The record of `medtasks judge`: one file of outcomes, and money over calls and kills."""

import json
import shutil
import signal
from types import SimpleNamespace

import pytest

from medtasks_ext.judge import asking
from medtasks_ext.run.lock import NAME
from medtasks_ext.run.store import key_of, working_in
from medtasks_ext.runs.folder import changed_in
from tests.conftest import outcomes, read_json, wait_for
from tests.judge.conftest import judgements, make_rows, process, rows
from tests.judge.server import Reply, fair, verdict
from tests.judge.test_command import number
from tests.runs.faults import at_every_operation, fresh, named

TASK = "medhelm_qa"
PRICE = {"input": 0, "output": 1000}
#: US dollars of a request at this price, at most: 1,000 tokens. A fair reply has 50.
TOKENS, HIGHEST, REPLY = 1000, 1.0, 0.05


@pytest.fixture
def priced(jury):
    """A jury file of judges that cost one dollar a request at most."""
    return lambda *names, **more: jury(*names, **{"price": PRICE, "max_tokens": TOKENS, **more})


def file_of(folder):
    return folder / "judgements" / "answers.jsonl"


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"temperature": 1.0}, '"temperature": 1.0'),
        ({"model": "two"}, "one (two)"),
        ({}, "one served as snapshot"),
    ],
)
def test_judges_asked_otherwise_are_not_tested(run, jury, medtasks, server, tmp_path, settings, shown):
    shutil.copytree(run("qa"), tmp_path / "other")
    assert medtasks("judge", "run", "--jury", jury("one")).code == 0

    def script(asked, seen):
        message = {"content": verdict(asked.axes, 2)}
        model = asked.model if settings else "snapshot"
        return Reply(body=json.dumps({"model": model, "choices": [{"message": message}]}))

    server.script = script
    assert medtasks("judge", "other", "--jury", jury("one", **settings)).code == 0
    compared = medtasks("compare", "run", "other")
    assert compared.code == 2 and "was judged by different juries" in compared.err, compared.text
    assert shown in compared.err


def test_intents_of_a_killed_judge_count(run, priced, medtasks, metrics, server, data_dir, tasks, tmp_path):
    make_rows(data_dir, "qa", rows(20))
    folder, path = run("qa"), priced("one", max_concurrent=4)
    server.script = lambda asked, seen: fair(asked, seen) if len(server.asked) <= 3 else Reply(delay=1000)
    limit = 6.5
    child = process("run", "--jury", path, "--max-cost", limit, cwd=tmp_path)
    wait_for(lambda: len(server.asked) == 7 and len(judgements(folder)) == 3, child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert len(judgements(folder, kind="intent")) == 7 and len(judgements(folder)) == 3
    known = f"spent on these runs so far: {3 * REPLY:.2f} USD, and up to {4 * HIGHEST:.2f} for requests"
    assert known in medtasks("judge", "--jury", path, "--dry-run").out

    charged = 3 * REPLY + 4 * HIGHEST  # what was held may have been answered
    server.script = fair
    server.asked.clear()
    outcome = medtasks("judge", "--jury", path, "--max-cost", 4)
    assert outcome.code == 1 and "--max-cost is reached" in outcome.err and not server.asked
    outcome = medtasks("judge", "--jury", path, "--max-cost", 5.3)
    asked = len(server.asked)
    assert outcome.code == 1 and 0 < asked < 17 and charged + asked * REPLY <= 5.3
    assert medtasks("judge", "--jury", path, "--max-cost", limit).code == 0
    assert len(server.asked) == 17 and metrics(folder)["judged"] == 1
    # the same answers were judged later: that settles nothing of what was sent before
    said = f"spent on these runs so far: {20 * REPLY:.2f} USD, and up to {4 * HIGHEST:.2f} for"
    assert said in medtasks("judge", "--jury", path, "--dry-run").out


def test_what_another_jury_has_spent_counts(run, priced, medtasks, server):
    run("qa")
    medtasks("judge", "--jury", priced("one"))
    server.asked.clear()
    outcome = medtasks("judge", "--jury", priced("two"), "--max-cost", 6 * REPLY + 0.99)
    assert outcome.code == 1 and not server.asked
    assert f"spent on these runs: {6 * REPLY:.2f} USD" in outcome.err


def test_an_interrupted_judge_leaves_no_open_intent(run, priced, medtasks, server, tmp_path):
    """A server that answers, and one that asks to come back later: nothing is owed to either."""
    later = Reply(status=429, headers=(("Retry-After", "50"),))
    server.script = lambda asked, seen: later if number(asked) == 5 else fair(asked, seen)
    folder, path = run("qa"), priced("one", max_concurrent=1)
    child = process("run", "--jury", path, cwd=tmp_path)
    wait_for(lambda: len(server.asked) == 6, child)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate()
    assert child.returncode == 130, err
    assert f"spent on these runs: {5 * REPLY:.2f} USD\n" in err
    assert [item["kind"] for item in judgements(folder, kind="fault")] == ["busy"]
    again = medtasks("judge", "--jury", path, "--dry-run").out
    assert "USD, and up to" not in again


@pytest.mark.parametrize("what", ["edited", "gone", "cut short"])
def test_a_line_that_was_changed_is_named_and_asked_again(run, jury, medtasks, metrics, server, what):
    folder = run("qa")
    medtasks("judge", "--jury", jury("one"))
    lines = file_of(folder).read_text().splitlines(keepends=True)
    if what == "cut short":  # by a crash
        lines[-1] = lines[-1][:-20]
    else:
        lines[3] = lines[3].replace("4.0", "5.0") if what == "edited" else ""
    file_of(folder).write_text("".join(lines))
    server.asked.clear()
    outcome = medtasks("judge", "--jury", jury("one"))
    assert outcome.code == 0 and "changed since the run ended: judgements/answers.jsonl" in outcome.err
    assert ("answers.jsonl, line 4 is damaged" in outcome.err) == (what == "edited")
    assert len(server.asked) == 1 and metrics(folder)["judged"] == 1
    assert metrics(folder)["jury_1_to_5"] == 4


def test_a_folder_that_a_run_works_in_is_not_judged_and_can_be_read(run, jury, medtasks, server, tmp_path):
    folder = run("qa")
    with working_in(folder, "medtasks run"):
        outcome = medtasks("judge", "--jury", jury("one"))
        assert outcome.code == 2 and "medtasks run works in this folder (process" in outcome.err
        assert outcome.err.count("medtasks: ") == 1
        assert not server.asked and not server.listed
        assert medtasks("judge", "--jury", jury("one"), "--dry-run").code == 0
    assert medtasks("judge", "--jury", jury("one")).code == 0
    assert not (folder / NAME).exists()


def test_another_model_than_was_asked_for_is_named(run, jury, medtasks, server):
    folder = run("qa")

    def script(asked, seen):
        message = {"content": verdict(asked.axes, 4)}
        model = "small-one" if asked.model == "two" else "one"
        return Reply(body=json.dumps({"model": model, "choices": [{"message": message}]}))

    server.script = script
    outcome = medtasks.done("judge", "--jury", jury("one", "two", "three"))
    said = [line for line in outcome.text.splitlines() if "answered as" in line]
    assert [line.split(":")[0] for line in said] == ["! judge two", "! judge three"]
    assert "asked for two" in said[0] and "answered as small-one" in said[0]
    kept = {(item["judge"], item.get("model", "")) for item in judgements(folder)}
    assert kept == {("one", ""), ("two", "small-one"), ("three", "one")}
    scores = read_json(folder / "judgements" / f"{TASK}.json")
    assert scores["served"] == {"two": ["small-one"], "three": ["one"]}
    assert "answered as small-one" in medtasks("judge", "--jury", jury("one", "two", "three")).text


N, KILLS = 30, 10


@pytest.mark.nightly
@pytest.mark.parametrize("n", [2, 4, 8])
def test_judges_killed_ten_times_stay_in_limits(
    run, priced, medtasks, metrics, server, data_dir, tasks, tmp_path, n
):
    make_rows(data_dir, "qa", rows(N))
    folder, path = run("qa"), priced("one", max_concurrent=1)
    command = ("run", "--jury", path, "--max-cost")
    limit = N * REPLY + KILLS * HIGHEST
    for round_ in range(KILLS):
        answered = len(server.asked) + 1

        def script(asked, seen, answered=answered):
            return fair(asked, seen) if len(server.asked) <= answered else Reply(delay=1000)

        server.script = script
        children = [process(*command, limit, cwd=tmp_path) for _ in range(n)]
        try:
            one_lives = SimpleNamespace(
                returncode=None,
                poll=lambda some=children: None if any(child.poll() is None for child in some) else 1,
            )
            wait_for(lambda wanted=answered: len(server.asked) > wanted, one_lives)
        finally:
            for child in children:
                child.send_signal(signal.SIGKILL)
            said = [child.communicate()[1] for child in children]
        others = [text for text, child in zip(said, children, strict=True) if child.returncode == 2]
        assert all("works in this folder" in text for text in others)
        assert len(server.asked) == 2 * (round_ + 1)
    server.script = fair
    # what was under way at a kill may have been charged: each counts with what it can cost at most
    open_now = len(judgements(folder, kind="intent")) - len(judgements(folder))
    assert open_now == KILLS and len(judgements(folder)) == KILLS
    short = KILLS * HIGHEST + KILLS * REPLY + HIGHEST
    assert medtasks("judge", *command, short).code == 1
    assert KILLS * HIGHEST + (len(server.asked) - KILLS) * REPLY <= short
    assert medtasks("judge", *command, limit + HIGHEST).code == 0
    assert len(server.asked) == N + KILLS and metrics(folder)["judged"] == 1
    keys = [item["key"] for item in judgements(folder)]
    assert len(keys) == len(set(keys)) == N


# A fault at every operation of a jury on files and sockets: nothing is judged twice or missing.


@pytest.mark.nightly
def test_judge(run, jury, medtasks, server, tmp_path):
    made, place = run("qa", folder="made"), tmp_path / "run"
    path = jury("one", "two")
    shutil.copytree(made, place)
    assert medtasks("judge", "--jury", path).code == 0  # so that forked processes find all loaded

    def check(said: str) -> None:
        keys = [item["key"] for item in judgements(place)]
        assert len(keys) == len(set(keys)) == 12, said
        assert changed_in(place) == [], said

    at_every_operation(["judge", str(place), "--jury", str(path)], place, lambda: fresh(place, made), check)


def test_judging_is_no_change_and_names_what_was_changed_before(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 4))
    folder = run("qa")
    assert medtasks("judge", "--jury", jury("one")).code == 0
    assert named(folder) == set()
    samples = next(folder.glob("samples_*.jsonl"))
    samples.write_text(samples.read_text() + "\n")
    again = medtasks("judge", "--jury", jury("one"))
    assert f"changed since the run ended: {samples.name}" in again.err
    assert named(folder) == {samples.name}


@pytest.mark.parametrize(
    ("reply", "charged"),
    [(Reply(hang_up=True), 3), (Reply(status=400), 0), (Reply(status=401), 0), (Reply(status=503), 0)],
)
def test_a_request_that_a_server_may_have_worked_on_counts_in_later_calls(
    run, priced, medtasks, server, monkeypatch, reply, charged
):
    monkeypatch.setattr(asking, "MAX_TRIES", 2)
    server.script = lambda asked, seen: reply
    folder, path = run("qa"), priced("one", max_concurrent=1)
    assert medtasks("judge", "--jury", path, "--max-cost", 3.01).code == 1
    failures = judgements(folder, kind="fault")
    assert failures and all(item.get("settles", HIGHEST) == HIGHEST for item in failures)
    said = medtasks("judge", "--jury", path, "--dry-run").out
    assert (f"up to {charged * HIGHEST:.2f} for requests whose reply never came" in said) == bool(charged)
    server.script = fair
    again = medtasks("judge", "--jury", path, "--max-cost", charged * HIGHEST + 1.26)
    assert again.code == 0 and len(judgements(folder)) == 6


def test_asked_again_is_draw_2_of_the_question_in_every_folder_and_call(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply("no") if seen < 4 else fair(asked, seen)
    kept = {}
    for folder in (run("qa"), run("qa", folder="other")):
        server._seen.clear()
        for _ in range(2):  # three draws of each question, then two
            medtasks("judge", folder.name, "--jury", jury("one", max_concurrent=1))
        by_document: dict[str, list] = {}
        for line in outcomes(folder / "judgements"):
            by_document.setdefault(line["document"], []).append((line["key"], "ratings" in line))
        kept[folder.name] = by_document
    # nothing of time or chance is in a key: both folders have the same ones, a new one for each draw
    assert kept["run"] == kept["other"] and len(kept["run"]) == 6
    for lines in kept["run"].values():
        (first, _), *others = lines
        assert [key for key, _ in others] == [key_of(first, [draw]) for draw in (2, 3, 4, 5)]
        assert [read for _, read in lines] == [False] * 4 + [True]
