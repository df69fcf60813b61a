"""The answers of a report: what is said of each, in files beside the page, to a browser, in the terminal."""

import http.client
import json
import shutil
import stat
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.answers.column import Flag
from medtasks_ext.report.answers.server import Viewed, ViewServer
from medtasks_ext.runs.folder import RunFolder
from tests.conftest import edited_json, write_jsonl
from tests.report.made import data_of, held, write_run
from tests.report.viewed import CODES, EVENTS, HOSTILE, LABEL, LONG, make_runs
from tests.run_files import result_of, samples_file, write_stored


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("viewed"))


@pytest.fixture
def runs(made, tmp_path):
    """Copies of both runs, to be spoilt."""
    for run in made:
        shutil.copytree(run, tmp_path / run.name)
    return tmp_path / "one", tmp_path / "two"


@pytest.fixture(scope="module")
def viewed(made):
    return Viewed(list(made), registry())


def head_of(viewed, task=LABEL):
    return json.loads(json.dumps(viewed.answers(task).head()))


def column_of(viewed, column=0, task=LABEL):
    return head_of(viewed, task)["columns"][column]


def document(viewed, key, task=LABEL, **more):
    answers = viewed.answers(task)
    return answers.document(answers.place_of(key), **more)


def test_the_list_shows_the_part_in_which_long_prompts_differ(tmp_path):
    """Not the words with which all of them begin, nor those with which all end."""
    run = write_run(tmp_path / "run", "ORG/a", {LABEL: [1.0, 0.0, 1.0]}, sample=True)
    lines = [json.loads(line) for line in samples_file(run, LABEL).read_text().splitlines()]
    for number, line in enumerate(lines):
        line["doc"]["prompt"] = f"{'Read with care. ' * 200}Case {number}: cough. {'Say yes or no. ' * 200}"
    write_jsonl(samples_file(run, LABEL), lines)
    prompts = head_of(Viewed([run], registry()))["prompts"]
    assert [prompt.partition(".")[0] for prompt in prompts] == [f"… {n}: cough" for n in range(3)]


def test_a_document_shows_prompt_span_trace_and_reading(viewed):
    view = document(viewed, "t6")
    first, second = view["responses"]
    assert "Hypothesis statement" in first["turns"][-1]["text"] and view["target"] == "relation: neutral"
    trace = "".join(part["text"] for part in first["stretches"] if part["trace"])
    assert trace == f"[THINK]one {HOSTILE}[/THINK]"
    marked = [(part["text"], set(part["marks"])) for part in first["stretches"] if part["marks"]]
    assert marked == [("neutral", {"official"})]
    assert [(item["reader"], item["answer"], item["gold"]) for item in first["readings"]] == [
        ("official", "neutral", "neutral")
    ]
    assert first["score"] == 1 and second["score"] == 1


def test_plain_lm_eval_is_viewed_like_a_run(made, tmp_path):
    task = result_of(made[0], LABEL)
    results = {f"{name},answer": value for name, value in task["metrics"].items()}
    content = {
        "results": {LABEL: results}, "configs": {LABEL: task["config"]}, "versions": {LABEL: "1-A"},
        "config": {"model": "hf"}, "model_name": "plain", "n-samples": {LABEL: {"effective": task["n"]}},
    }  # fmt: skip
    (tmp_path / "results_2026.json").write_text(json.dumps(content))
    bare = Viewed([tmp_path], registry())
    assert any("--log_samples" in fault.remedy for fault in bare.report().faults)
    with pytest.raises(MedtasksError, match="no answers"):
        bare.answers(LABEL)

    lines = samples_file(made[0], LABEL).read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    for sample in samples:
        del sample["request"]
    text = "".join(json.dumps(sample) + "\n" for sample in samples)
    (tmp_path / f"samples_{LABEL}_2026.jsonl").write_text(text)
    viewed = Viewed([tmp_path, made[1]], registry())
    plain, run = head_of(viewed)["columns"]
    assert plain["label"] == "plain" and plain["score"] == task["metrics"]["score"]
    assert len(plain["flags"]) == len(run["flags"]) == len(samples)
    own = column_of(Viewed([made[0]], registry()))
    without_cuts = [[flag & ~Flag.TRUNCATED for flag in column["flags"]] for column in (plain, own)]
    assert without_cuts[0] == without_cuts[1]
    turns = document(viewed, "t1")["responses"][0]["turns"]
    assert "Premise statement" in turns[0]["text"] and turns[0]["role"] == "text"


def test_answers_of_a_task_that_is_not_scored_yet_are_shown(runs):
    run = runs[0]
    samples_file(run, LABEL).rename(run / "aside")
    with edited_json(run / "run.json") as manifest:
        manifest["tasks"][LABEL] |= {"state": "waiting"}
    viewed = Viewed([run], registry())
    column, state = column_of(viewed), viewed.live()["state"]
    assert column["score"] is None and column["flags"][0] & Flag.WAITING
    assert column["replies"][0] == "relation: neutral"
    shown = document(viewed, "t1")["responses"][0]
    assert shown["stretches"][0]["text"] == "relation: neutral" and shown["readings"] == []

    # the task is scored: the same page has the readings
    (run / "aside").rename(samples_file(run, LABEL))
    manifest["tasks"][LABEL] |= {"state": "done"}
    (run / "run.json").write_text(json.dumps(manifest))
    assert viewed.live()["state"] != state and column_of(viewed)["score"] is not None
    assert document(viewed, "t1")["responses"][0]["readings"] != []


def test_a_damaged_record_is_named_and_hides_no_other(runs):
    file = samples_file(runs[0], LABEL)
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([lines[0], lines[1][:40], *lines[2:]]) + "\n", encoding="utf-8")
    viewed = Viewed([runs[0]], registry())
    head = head_of(viewed)
    assert len(head["documents"]) == len(lines) and head["columns"][0]["flags"][1] == Flag.DAMAGED
    shown = document(viewed, head["documents"][1])["responses"][0]
    assert "damaged" in shown["fault"] and "rescore" in shown["fault"]
    assert document(viewed, "t3")["responses"][0]["readings"] != []


def test_what_is_not_there_is_named_with_what_is_near(viewed, runs, medtasks):
    with pytest.raises(MedtasksError, match="did you mean bridge_mednli"):
        viewed.answers("bridge_mednly")
    with pytest.raises(MedtasksError, match="no document 't99'"):
        document(viewed, "t99")
    with pytest.raises(MedtasksError, match="did you mean one"):
        Viewed([runs[0].parent / "onee"], registry())
    named = samples_file(runs[0], LABEL)
    named.unlink()
    said = medtasks("report", runs[0], "-o", "out").text
    assert named.name in said and "rescore" in said
    held = data_of(runs[0].parent / "out" / "report.html")["answers"]["held"]
    assert LABEL not in held and EVENTS in held


@contextmanager
def served(viewed):
    server = ViewServer(viewed)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def get(server, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    headers = {} if host is None else {"Host": host}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


def test_the_page_is_for_this_machine_and_who_knows_its_address(viewed):
    with served(viewed) as server:
        port = server.server_address[1]
        path = urlsplit(server.url).path
        assert server.server_address[0] == "127.0.0.1"
        status, headers, page = get(server, path)
        assert status == 200 and b"Content-Security-Policy" in page
        assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        question = f"{path}answers/{LABEL}-0.js"
        status, _, content = get(server, question)
        assert status == 200 and held(content.decode())[0]["key"] == "t1"
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            assert get(server, question, host)[0] == 200
        # a name of another site that leads to this machine, and a guess at the address
        for host in (f"evil.example:{port}", "evil.example", "", "127.0.0.1.evil.example"):
            assert get(server, question, host)[0] == 421
        for wrong in (
            "/",
            f"/x/answers/{LABEL}-0.js",
            f"/{server.token[:-1]}/live",
            f"/{server.token}x/live",
        ):
            status, _, content = get(server, wrong)
            assert status == 404 and b"Premise" not in content
        status, _, content = get(server, f"{path}answers/nothing.js")
        assert status == 400 and "no answers" in json.loads(content)["what"]
        assert get(server, f"{path}nonsense")[0] == get(server, f"{path}answers/../run.json")[0] == 404


def not_sample(run):
    records = RunFolder(run).read_tasks()
    for record in records.values():
        record["metrics"].pop("SAMPLE_DATA")
        record["conditions"]["source"] = "suite"
    write_stored(run, records)
    with edited_json(run / "run.json") as manifest:
        manifest["identity"]["settings"]["data"] = None


def test_files_hold_answers_to_open_data_alone_unless_more_is_asked_for(runs, tmp_path, medtasks):
    not_sample(runs[0])
    done = medtasks("report", runs[0], "-o", "out", "--published", "none")
    answers = tmp_path / "out" / "answers"
    assert done.code in (0, 1) and {file.name for file in answers.iterdir()} == {
        f"{EVENTS}.js", f"{EVENTS}-0.js",
    }  # MedNLI and MIMIC-IV are gated  # fmt: skip
    assert "ethambutol" in json.dumps(held((answers / f"{EVENTS}-0.js").read_text()))
    said = data_of(tmp_path / "out" / "report.html")["answers"]
    assert said == {"held": [EVENTS], "withheld": [LABEL, CODES]}

    done = medtasks("report", runs[0], "-o", "out", "--published", "none", "--answers")
    assert "confidential" in done.err
    assert stat.S_IMODE(answers.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in answers.iterdir()} == {0o600}
    [first, *_] = held((answers / f"{LABEL}-0.js").read_text())
    assert "Premise statement" in json.dumps(first) and first["key"] == "#1"  # a key may name a patient

    medtasks("report", runs[0], "-o", "out", "--published", "none")  # what was written before goes
    assert {file.name for file in answers.iterdir()} == {f"{EVENTS}.js", f"{EVENTS}-0.js"}


def test_show_prints_a_document(made, medtasks, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = medtasks("view", made[0], EVENTS, "t1")
    assert done.code == 0 and done.out.startswith("SAMPLE DATA")
    said = " ".join(done.out.split())
    missed, spurious = said.partition("missed: ")[2].split("spurious: ")
    assert "progressive visual loss" in missed and "progressive visual loss" in spurious
    assert "another answer" in done.out and max(map(len, done.out.splitlines())) <= 80
    assert medtasks("view", made[0], EVENTS, "0").out == done.out

    done = medtasks("view", made[0], LABEL, "t7")
    assert "characters …" not in done.out and len(done.out) > LONG
