"""The record of `medtasks judge`: one file of outcomes, and money over calls and kills."""

import json
import shutil
import signal

import pytest

from medtasks_ext.judge import asking
from medtasks_ext.registry import registry
from medtasks_ext.report.answers.column import Flag
from medtasks_ext.report.answers.server import Viewed
from medtasks_ext.run.lock import NAME
from medtasks_ext.run.store import working_in
from tests.conftest import outcomes, read_json, wait_for
from tests.judge.conftest import judgements
from tests.judge.made import make_rows, process, rows
from tests.judge.server import CODE, Reply, fair, verdict
from tests.judge.test_command import number

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


def held_back(server, n):
    """A script that answers `n` requests and holds the others."""

    def script(asked, seen):
        return fair(asked, seen) if len(server.asked) <= n else Reply(delay=1000)

    return script


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"temperature": 1.0}, '"temperature": 1.0'),
        ({"max_tokens": 512}, '"max_tokens": 512'),
        ({"extra_body": {"reasoning_effort": "low"}}, '"reasoning_effort": "low"'),
        ({"extra_body": {"allowed_token_ids": [1]}}, '"allowed_token_ids": [1]'),
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


def test_an_intent_stands_in_the_file_before_its_request_is_sent(run, priced, medtasks, server):
    folder = run("qa")
    before = []

    def script(asked, seen):
        open_now = len(judgements(folder, kind="intent")) - len(judgements(folder))
        before.append(open_now)
        return fair(asked, seen)

    server.script = script
    assert medtasks("judge", "--jury", priced("one", max_concurrent=1)).code == 0
    assert before == [1] * 6
    lines = outcomes(folder / "judgements", "", "intent", "answer")
    assert {item["outcome"] for item in lines[::2]} == {"intent"}
    assert all("ratings" in item for item in lines[1::2])
    assert {item["cost"] for item in lines[::2]} == {item["settles"] for item in lines[1::2]} == {HIGHEST}
    assert {item["cost"] for item in lines[1::2]} == {REPLY}


def test_a_judge_without_a_price_has_no_intents(run, jury, medtasks):
    folder = run("qa")
    medtasks("judge", "--jury", jury("one"))
    assert len(judgements(folder)) == 6 and not judgements(folder, kind="intent")
    assert not any("settles" in item or "cost" in item for item in judgements(folder))


def test_intents_of_a_killed_judge_count(run, priced, medtasks, metrics, server, data_dir, tasks, tmp_path):
    make_rows(data_dir, "qa", rows(20))
    folder, path = run("qa"), priced("one", max_concurrent=4)
    server.script = held_back(server, 3)
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


def test_requests_without_a_reply_count_in_later_calls(run, priced, medtasks, server):
    server.script = lambda asked, seen: Reply(hang_up=True)
    folder, path = run("qa"), priced("one", max_concurrent=1)
    assert medtasks("judge", "--jury", path, "--max-cost", 3.01).code == 1
    assert len(server.asked) == 3
    outcome = medtasks("judge", "--jury", path, "--max-cost", 3.01)
    assert len(server.asked) == 3 and "up to 3.00 for requests whose reply never came" in outcome.err
    assert medtasks("judge", "--jury", path, "--max-cost", 5.01).code == 1
    assert len(server.asked) == 5
    assert {item["kind"] for item in judgements(folder, kind="fault")} == {"unreachable"}


@pytest.mark.parametrize("status", [400, 401, 429, 503])
def test_a_request_that_no_server_worked_on_costs_nothing(run, priced, medtasks, server, monkeypatch, status):
    monkeypatch.setattr(asking, "MAX_TRIES", 2)
    server.script = lambda asked, seen: Reply(status=status)
    folder, path = run("qa"), priced("one", max_concurrent=1)
    assert medtasks("judge", "--jury", path, "--max-cost", 1.01).code == 1
    assert "spent" not in medtasks("judge", "--jury", path, "--dry-run").out
    failures = judgements(folder, kind="fault")
    # one intent, whose money its further tries may use
    assert len(failures) == len(judgements(folder, kind="intent")) and failures
    assert all(item["settles"] == HIGHEST for item in failures)
    server.script = fair
    assert medtasks("judge", "--jury", path, "--max-cost", 1.26).code == 0


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


# ---------------------------------------------------------------------- the file


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


def test_a_question_that_is_asked_again_is_another_draw_of_it(run, jury, medtasks, server):
    """Nothing of time or chance is in a key: two folders have the same ones, and so has a second call."""
    server.script = lambda asked, seen: Reply("no") if seen < 4 else fair(asked, seen)
    keys = {}
    for folder in (run("qa"), run("qa", folder="other")):
        server._seen.clear()
        for _ in range(2):
            medtasks("judge", folder.name, "--jury", jury("one", max_concurrent=1))
        lines = outcomes(folder / "judgements")
        keys[folder.name] = {(line["document"], line["key"], "ratings" in line) for line in lines}
        assert len(lines) == len({line["key"] for line in lines}) == 6 * 5
    assert keys["run"] == keys["other"]


def test_replies_with_half_a_character_are_kept(run, jury, medtasks, metrics, server):
    own = {"score": 4, "explanation": "\ud83d and \udc00"}
    server.script = lambda asked, seen: Reply(json.dumps({"code": CODE, **dict.fromkeys(asked.axes, own)}))
    folder = run("qa")
    assert medtasks("judge", "--jury", jury("one")).code == 0
    assert judgements(folder)[0]["verdict"]["accuracy"]["explanation"] == "\ud83d and \udc00"
    server.asked.clear()
    assert medtasks("judge", "--jury", jury("one")).code == 0
    assert not server.asked and metrics(folder)["judged"] == 1


# ---------------------------------------------------------------------- one process writes


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


# What judges said of an answer, as page and terminal give it.


def test_reasons_scores_and_disagreement_of_judges(run, jury, server, medtasks, metrics):
    folder = run("qa")

    def judge(asked, seen):
        harsh = asked.model == "two" and "number 1?" in asked.texts["question"]
        return Reply(verdict(asked.axes, 1 if harsh else 4, f"{asked.model} thinks so"))

    server.script = judge
    medtasks.done("judge", folder, "--jury", jury("one", "two"))
    answers = Viewed([folder], registry()).answers(TASK)
    head = answers.head()
    column = head["columns"][0]
    assert column["judged"] and column["score"] == metrics(folder)["score"]
    disputed = [
        key for key, flags in zip(head["documents"], column["flags"], strict=True) if flags & Flag.DISPUTED
    ]
    assert disputed == ["d1"] and column["totals"]["disputed"] == 1
    assert not any(flags & Flag.WRONG for flags in column["flags"])  # a judge's score is graded

    shown = answers.document(answers.place_of(disputed[0]))["responses"][0]
    ratings = {word["judge"]: set(word["ratings"].values()) for word in shown["judges"]}
    assert ratings == {"one": {4}, "two": {1}} and shown["judged"] == shown["score"]
    printed = medtasks("view", folder, TASK, disputed[0]).out
    assert "two thinks so" in printed and "one thinks so" in printed
