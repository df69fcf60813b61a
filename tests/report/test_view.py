"""`medtasks view` and `medtasks view`: what they say of every answer, to whom, and of bad input."""

import http.client
import json
import shutil
import stat
import threading
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.view.column import Flag
from medtasks_ext.report.view.document import MOST
from medtasks_ext.report.view.server import ViewServer, write_bundle
from medtasks_ext.report.view.viewer import Viewer
from tests.conftest import edited_json, read_json
from tests.report.made import data_of
from tests.report.viewed import CODES, EVENTS, HOSTILE, LABEL, LONG, TASKS, make_runs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("viewed"))


@pytest.fixture
def runs(made, tmp_path):
    """Copies of both runs, to be spoilt."""
    for run in made:
        shutil.copytree(run, tmp_path / run.name)
    return tmp_path / "one", tmp_path / "two"


@pytest.fixture
def viewer(made):
    return Viewer(list(made), registry())


def documents_with(viewer, flag, column=0, task=LABEL):
    head = viewer.answer("dataset", {"dataset": task})
    flags = head["columns"][column]["flags"]
    return [key for key, value in zip(head["documents"], flags, strict=True) if value & flag]


def document(viewer, key, task=LABEL, **query):
    viewer.answer("dataset", {"dataset": task})
    return viewer.answer("document", {"dataset": task, "document": key, **query})


def test_the_runs_and_their_scores_are_those_of_the_results(made, viewer):
    overview = viewer.answer("overview", {})
    assert [run["label"] for run in overview["runs"]] == ["model-one", "model-two"]
    assert {item["id"] for item in overview["datasets"]} == set(TASKS) and overview["sample"]
    for item in overview["datasets"]:
        for answer in item["answers"]:
            stored = read_json(made[answer["run"]] / "tasks" / f"{answer['task']}.json")
            assert answer["score"] == stored["metrics"]["score"]


@pytest.mark.parametrize("task", TASKS)
def test_scores_of_documents_follow_to_the_score_of_the_run(viewer, task):
    page = viewer.page(task)
    page.read()
    for column in page.columns:
        assert column.value() == pytest.approx(column.answers.score)


def test_numbers_of_documents_are_those_of_the_stored_frame(runs):
    from pyarrow import parquet

    [file] = (runs[1] / "tasks").glob(f"{LABEL}.parquet")
    frame = parquet.read_table(file)
    place = frame.column_names.index("score")
    parquet.write_table(frame.set_column(place, "score", [[0.25] * len(frame)]), file)
    head = Viewer([runs[1]], registry()).answer("dataset", {"dataset": LABEL})
    assert set(head["columns"][0]["scores"]) == {0.25}
    assert head["columns"][0]["totals"]["wrong"] == len(frame)


def test_filters_find_what_went_wrong(viewer):
    assert documents_with(viewer, Flag.EMPTY) == ["t3"]
    assert documents_with(viewer, Flag.CUT) == ["t4"]
    assert {"t2", "t3", "t5"} <= set(documents_with(viewer, Flag.UNREADABLE))
    assert "t1" in documents_with(viewer, Flag.WRONG)
    assert documents_with(viewer, Flag.WRONG, column=1) == ["t8"]
    totals = viewer.answer("dataset", {"dataset": LABEL})["columns"][0]["totals"]
    assert (totals["empty"], totals["cut"]) == (1, 1)


def test_errors_are_clustered_and_mended_by_the_metric(viewer):
    found = viewer.answer("errors", {"dataset": EVENTS})["columns"][0]
    by_name = {item["cluster"]: item for item in found["clusters"]}
    assert {name: item["documents"] for name, item in by_name.items()} == {
        "near miss: boundary": 1, "near miss: attribute": 1,
    }  # fmt: skip
    assert found["score"] < by_name["near miss: boundary"]["mended"] < 1
    hierarchy = viewer.answer("errors", {"dataset": CODES})["columns"][0]["clusters"][0]
    assert (hierarchy["cluster"], hierarchy["documents"]) == ("near miss: category", 1)
    labels = {
        item["cluster"] for item in viewer.answer("errors", {"dataset": LABEL})["columns"][0]["clusters"]
    }
    assert {"empty", "truncated", "label outside the list", "format", "another answer"} <= labels


def test_a_confusion_matrix_counts_every_document_and_leads_to_it(viewer):
    head = viewer.answer("dataset", {"dataset": LABEL})
    one, two = viewer.answer("confusion", {"dataset": LABEL})
    assert sum(map(sum, one["counts"])) == sum(map(sum, two["counts"])) == len(head["documents"])
    assert "(unreadable)" in one["answers"] and "(unreadable)" not in two["answers"]
    right = sum(row[two["answers"].index(gold)] for gold, row in zip(two["gold"], two["counts"], strict=True))
    assert right / len(head["documents"]) == pytest.approx(head["columns"][1]["score"])
    row, column = two["gold"].index("entailment"), two["answers"].index("contradiction")
    cell = row * len(two["answers"]) + column
    assert [key for key, at in zip(head["documents"], two["cells"], strict=True) if at == cell] == ["t8"]
    assert viewer.answer("confusion", {"dataset": EVENTS}) == [None, None]


def test_a_document_shows_prompt_span_trace_and_reading(viewer):
    view = document(viewer, "t6")
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


def test_items_are_marked_in_the_document(viewer):
    response = document(viewer, "t1", EVENTS)["responses"][0]
    assert response["items"]["missed"] == (("ethambutol", "bilateral, painless, progressive visual loss"),)
    assert response["items"]["spurious"] == (("ethambutol", "progressive visual loss"),)
    marked = {piece["text"]: set(piece["marks"]) for piece in response["pieces"] if piece["marks"]}
    assert marked["progressive visual loss"] == {"missed", "spurious"}
    assert response["cluster"] == "near miss: boundary" and "progressive visual loss" in response["why"]


def test_a_long_response_is_shown_in_part_and_whole_on_request(viewer):
    shown = document(viewer, "t7")["responses"][0]
    assert shown["length"] > LONG
    texts = sum(len(part["text"]) for part in shown["stretches"])
    assert texts <= MOST and texts + sum(part["left_out"] for part in shown["stretches"]) == shown["length"]
    whole = document(viewer, "t7", whole="1")["responses"][0]
    assert sum(len(part["text"]) for part in whole["stretches"]) == shown["length"]


def test_the_search_looks_into_prompts_answers_and_gold(viewer):
    head = viewer.answer("dataset", {"dataset": LABEL})
    found = viewer.answer("search", {"dataset": LABEL, "q": "ESOPHAGEAL varices"})
    assert "t1" in [head["documents"][place] for place in found]
    found = viewer.answer("search", {"dataset": LABEL, "q": "window.hit"})
    assert {head["documents"][place] for place in found} == {"t2", "t6"}


def test_plain_lm_eval_is_viewed_like_a_run(made, tmp_path):
    task = read_json(made[0] / "tasks" / f"{LABEL}.json")
    results = {f"{name},answer": value for name, value in task["metrics"].items()}
    content = {
        "results": {LABEL: results}, "configs": {LABEL: task["config"]}, "versions": {LABEL: "1-A"},
        "config": {"model": "hf"}, "model_name": "plain", "n-samples": {LABEL: {"effective": task["n"]}},
    }  # fmt: skip
    (tmp_path / "results_2026.json").write_text(json.dumps(content))
    with pytest.raises(MedtasksError) as error:
        Viewer([tmp_path], registry())
    assert "--log_samples" in str(error.value)

    lines = (made[0] / f"samples_{LABEL}.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    for sample in samples:
        del sample["request"]
        prompt, settings = sample["arguments"][0]
        sample["arguments"] = {"gen_args_0": {"arg_0": prompt, "arg_1": settings}}
        sample["filtered_resps"] = [str(item) for item in sample["filtered_resps"]]  # as lm-eval's log has it
    text = "".join(json.dumps(sample) + "\n" for sample in samples)
    (tmp_path / f"samples_{LABEL}_2026.jsonl").write_text(text)
    viewer = Viewer([tmp_path, made[1]], registry())
    plain, run = viewer.answer("dataset", {"dataset": LABEL})["columns"]
    assert plain["label"] == "plain" and plain["score"] == task["metrics"]["score"]
    assert len(plain["flags"]) == len(run["flags"]) == len(samples)
    own = Viewer([made[0]], registry()).answer("dataset", {"dataset": LABEL})["columns"][0]
    without_cuts = [[flag & ~Flag.CUT for flag in column["flags"]] for column in (plain, own)]
    assert without_cuts[0] == without_cuts[1]
    turns = document(viewer, "t1")["responses"][0]["turns"]
    assert "Premise statement" in turns[0]["text"] and turns[0]["role"] == "text"


def test_answers_of_a_task_that_is_not_scored_yet_are_shown(runs):
    run = runs[0]
    (run / f"samples_{LABEL}.jsonl").rename(run / "aside")
    with edited_json(run / "run.json") as manifest:
        manifest["tasks"][LABEL] |= {"state": "waiting"}
    viewer = Viewer([run], registry())
    assert viewer.going_on
    head = viewer.answer("dataset", {"dataset": LABEL})
    assert head["columns"][0]["score"] is None and head["columns"][0]["flags"][0] & Flag.WAITING
    shown = document(viewer, "t1")["responses"][0]
    assert shown["stretches"][0]["text"] == "relation: neutral" and shown["readings"] == []

    # the task is scored: the same page has the readings
    (run / "aside").rename(run / f"samples_{LABEL}.jsonl")
    manifest["tasks"][LABEL] |= {"state": "done"}
    (run / "run.json").write_text(json.dumps(manifest))
    viewer.refresh()
    assert viewer.answer("dataset", {"dataset": LABEL})["columns"][0]["score"] is not None
    assert document(viewer, "t1")["responses"][0]["readings"] != []


def test_a_large_file_is_read_in_steps(made, monkeypatch):
    from medtasks_ext.report.view import column, viewer

    monkeypatch.setattr(column, "_STEP", 1)
    monkeypatch.setattr(viewer, "STEP", 0)
    seen = Viewer([made[0]], registry())
    reads = []
    while not reads or not seen.answer("progress", {"dataset": LABEL})["complete"]:
        reads.append(seen.answer("progress", {"dataset": LABEL})["columns"][0]["read"])
    assert reads[0] < reads[-1] and reads == sorted(reads)
    assert seen.page(LABEL).columns[0].value() == pytest.approx(seen.page(LABEL).columns[0].answers.score)


def test_a_damaged_record_is_named_and_hides_no_other(runs):
    file = runs[0] / f"samples_{LABEL}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([lines[0], lines[1][:40], *lines[2:]]) + "\n", encoding="utf-8")
    viewer = Viewer([runs[0]], registry())
    head = viewer.answer("dataset", {"dataset": LABEL})
    assert len(head["documents"]) == len(lines) and head["columns"][0]["flags"][1] == Flag.DAMAGED
    shown = document(viewer, head["documents"][1])["responses"][0]
    assert "damaged" in shown["fault"] and "rescore" in shown["fault"]
    assert document(viewer, "t3")["responses"][0]["readings"] != []
    viewer.answer("search", {"dataset": LABEL, "q": "varices"})
    viewer.answer("rows", {"dataset": LABEL, "places": "0,1,2"})


def test_what_is_not_there_is_named_with_what_is_near(viewer, runs):
    with pytest.raises(MedtasksError, match="did you mean bridge_mednli"):
        viewer.answer("dataset", {"dataset": "bridge_mednly"})
    with pytest.raises(MedtasksError, match="no document 't99'"):
        document(viewer, "t99")
    with pytest.raises(MedtasksError, match="did you mean one"):
        Viewer([runs[0].parent / "onee"], registry())
    (runs[0] / f"samples_{LABEL}.jsonl").unlink()
    viewer = Viewer([runs[0]], registry())
    missing = f"samples_{LABEL}.jsonl is missing"
    assert any(missing in fault.what and "rescore" in fault.remedy for fault in viewer.faults)
    assert LABEL not in viewer.datasets and EVENTS in viewer.datasets


def test_where_one_of_several_runs_cannot_be_read_the_others_are(runs):
    (runs[0] / "run.json").write_text("{")
    viewer = Viewer([runs[0].parent], registry())
    assert [run.label for run in viewer.runs] == ["model-two"] and str(runs[0]) in viewer.faults[0].where
    assert viewer.answer("dataset", {"dataset": LABEL})["columns"][0]["score"] is not None
    with pytest.raises(MedtasksError, match="damaged"):
        Viewer([runs[0]], registry())


@contextmanager
def served(viewer):
    server = ViewServer(viewer)
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


def test_the_page_is_for_this_machine_and_who_knows_its_address(viewer):
    with served(viewer) as server:
        port = server.server_address[1]
        path = urlsplit(server.url).path
        assert server.server_address[0] == "127.0.0.1"
        status, headers, page = get(server, path)
        assert status == 200 and b"Content-Security-Policy" in page
        assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        question = f"{path}document?{urlencode({'dataset': LABEL, 'document': 't1'})}"
        status, _, content = get(server, question)
        assert status == 200 and json.loads(content)["key"] == "t1"
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            assert get(server, question, host)[0] == 200
        # a name of another site that leads to this machine, and a guess at the address
        for host in (f"evil.example:{port}", "evil.example", "", "127.0.0.1.evil.example"):
            assert get(server, question, host)[0] == 421
        for wrong in ("/", "/x/document", f"/{server.token[:-1]}/overview", f"/{server.token}x/overview"):
            status, _, content = get(server, wrong)
            assert status == 404 and b"Premise" not in content
        status, _, content = get(server, f"{path}dataset?dataset=nothing")
        assert status == 400 and "no answers" in json.loads(content)["what"]
        assert get(server, f"{path}nonsense?dataset={LABEL}")[0] == 400


def test_each_server_has_an_address_of_its_own(viewer):
    with served(viewer) as one, served(viewer) as other:
        assert one.token != other.token and len(one.token) >= 20
        with pytest.raises(MedtasksError, match="port"):
            ViewServer(viewer, one.server_address[1])


def not_sample(run):
    for file in (run / "tasks").glob("*.json"):
        with edited_json(file) as record:
            record["metrics"].pop("SAMPLE_DATA")
            record["conditions"]["source"] = "suite"
    with edited_json(run / "run.json") as manifest:
        manifest["identity"]["settings"]["data"] = None


def test_files_hold_open_data_alone_unless_allowed(runs, tmp_path, medtasks):
    not_sample(runs[0])
    done = medtasks("view", runs[0], "-o", tmp_path / "open")
    assert done.code == 0 and LABEL in done.err and "--include-text" in done.err
    names = {file.name for file in (tmp_path / "open").glob("*.html")}
    assert names == {"index.html", f"{EVENTS}.html"}  # MedNLI and MIMIC-IV are gated
    for file in (tmp_path / "open").iterdir():
        assert "Hypothesis statement" not in file.read_text(encoding="utf-8")

    done = medtasks("view", runs[0], "-o", tmp_path / "all", "--include-text")
    assert done.code == 0 and "confidential" in done.err
    assert stat.S_IMODE((tmp_path / "all").stat().st_mode) == 0o700
    for file in (tmp_path / "all").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (tmp_path / "all" / f"{LABEL}.html").is_file()


def test_files_say_what_the_server_says_and_name_no_folder(made, tmp_path):
    files = write_bundle(tmp_path / "pages", Viewer(list(made), registry()), documents=4)
    assert files[0].name == "index.html" and len(files) == 1 + len(TASKS)
    viewer = Viewer(list(made), registry())
    held = data_of(tmp_path / "pages" / f"{LABEL}.html")
    assert held["dataset"]["columns"] == json.loads(
        json.dumps(viewer.answer("dataset", {"dataset": LABEL})["columns"])
    )
    assert held["errors"] == json.loads(json.dumps(viewer.answer("errors", {"dataset": LABEL})))
    assert len(held["views"]) == len(held["rows"]) == 4 and len(held["dataset"]["documents"]) == 10
    for file in files:
        assert str(made[0].parent) not in file.read_text(encoding="utf-8")


def test_a_folder_of_other_things_is_left_alone(made, tmp_path, medtasks):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    done = medtasks("view", made[0], "-o", tmp_path / "mine")
    assert done.code == 2 and "another folder" in done.err
    assert (tmp_path / "mine" / "index.html").read_text() == "mine"
    assert medtasks("view", made[0], "--include-text").code == 2


def test_show_prints_a_document(made, medtasks, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = medtasks("view", made[0], EVENTS, "t1")
    assert done.code == 0 and done.out.startswith("SAMPLE DATA")
    assert "[missed+spurious: progressive visual loss]" in " ".join(done.out.split())
    assert "near miss: boundary" in done.out and max(map(len, done.out.splitlines())) <= 80
    assert medtasks("view", made[0], EVENTS, "0").out == done.out

    done = medtasks("view", made[0], LABEL, "t7")
    assert "characters …" in done.out and "--whole" in done.out and len(done.out) < 3 * MOST
    assert len(medtasks("view", made[0], LABEL, "t7", "--whole").out) > LONG


def test_show_without_a_document_prints_the_errors(made, medtasks):
    done = medtasks("view", made[0], LABEL)
    assert done.code == 0 and "score if mended" in done.out
    assert "empty: t3" in done.out and "truncated: t4" in done.out


@pytest.mark.parametrize(
    ("task", "key", "said"),
    [
        ("bridge_mednly", "t1", "did you mean bridge_mednli?"),
        (LABEL, "t77", "no document 't77' (did you mean t7?)"),
        (f"{LABEL}_cot", "t1", f"name one of: {LABEL}"),
    ],
)
def test_show_names_what_is_not_there(made, medtasks, task, key, said):
    done = medtasks("view", made[0], task, key)
    assert done.code == 2 and said in done.err and "Premise" not in done.text


def test_trials_whose_score_is_a_mean_have_a_score_each(medtasks, tmp_path):
    task = "clinicbench_pharmacology_qa_shuffled"
    arguments = ("--model", "oracle", "--data", "sample", "--tasks", task, "--output_path", "run")
    assert medtasks("run", *arguments).code == 0
    viewer = Viewer([tmp_path / "run"], registry())
    (column,) = viewer.answer("dataset", {"dataset": task})["columns"]
    assert column["flags"] and all(flag & Flag.RIGHT for flag in column["flags"])


def test_strategies_of_one_run_stand_side_by_side(medtasks, tmp_path):
    command = ("run", "--model", "oracle", "--data", "sample", "--tasks", f"{LABEL},{LABEL}_cot")
    assert medtasks(*command, "--output_path", "runs/one").code == 0
    viewer = Viewer([tmp_path / "runs"], registry())  # a folder of runs
    head = viewer.answer("dataset", {"dataset": f"{LABEL}_cot"})
    assert [column["label"] for column in head["columns"]] == [
        "oracle, zero-shot",
        "oracle, chain of thought",
    ]
    shown = document(viewer, head["documents"][0])["responses"]
    assert len(shown) == 2 and shown[0]["turns"] != shown[1]["turns"]
    done = medtasks("view", "runs/one", f"{LABEL}_cot", "t1")
    assert done.code == 0 and f"{LABEL}_cot, document t1" in done.out


def test_a_task_that_is_being_asked_shows_the_answers_that_are_there(runs):
    run = runs[1]
    (run / f"samples_{LABEL}.jsonl").unlink()
    with edited_json(run / "run.json") as manifest:
        manifest["tasks"][LABEL]["state"] = "waiting"
    path = run / "answers.jsonl"
    rows = [line for line in path.read_bytes().splitlines(keepends=True) if json.loads(line)["task"] == LABEL]
    path.write_bytes(b"".join([*rows[:3], rows[3][:30]]))  # the last line is being written
    viewer = Viewer([run], registry())
    assert viewer.answer("dataset", {"dataset": LABEL})["documents"] == ["t1", "t2", "t3"]
    shown = document(viewer, "t1")["responses"][0]
    said = "".join(part["text"] for part in shown["stretches"])
    assert said == json.loads(rows[0])["text"] and shown["turns"] == []
    with path.open("ab") as file:
        file.write(b"".join([rows[3][30:], *rows[4:]]))
    viewer.refresh()
    assert len(viewer.answer("dataset", {"dataset": LABEL})["documents"]) == len(rows)
