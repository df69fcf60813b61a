"""What `medtasks report` says of files that it cannot use, and what it leaves alone."""

import json
import shutil
from time import process_time

import numpy as np
import pytest

from tests.conftest import edited_json, read_json
from tests.report.made import write_run
from tests.run_files import edited, results_file, samples_file

OPEN, GATED = "bridge_ade_identification", "bridge_c_emrs"
GOOD = [1.0] * 8 + [0.0] * 2


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", "ORG/a", {OPEN: GOOD, GATED: GOOD})


def edit(path, **changes):
    path.write_text(json.dumps({**read_json(path), **changes}))


def _named(name):
    def change(run):
        content = read_json(run / "run.json")
        content["tasks"][name] = content["tasks"][OPEN]
        edit(run / "run.json", tasks=content["tasks"])

    return change


def _linked(target):
    def change(run):
        shutil.rmtree(run / "tasks")
        (run / "tasks").symlink_to(target)

    return change


def _claims_too_much(run):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (run / "tasks" / f"{OPEN}.npy").write_bytes(content)


def _changed(**changes):
    def change(run):
        with edited_json(results_file(run)) as content:
            content.update(changes)

    return change


_huge = _changed(**{"n-samples": {OPEN: {"effective": 10**30}}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(_named("/etc/passwd"), "'/etc/passwd' is no name of a task", id="absolute name"),
        pytest.param(_named("../a"), "'../a' is no name of a task", id="name above"),
        pytest.param(_linked("/etc"), "changed since the run ended", id="link"),
        pytest.param(_claims_too_much, "", id="header"),
        pytest.param(_changed(configs=None), "is not a results file of lm-eval", id="no configurations"),
        pytest.param(_huge, "is no result of a task", id="huge number"),
    ],
)
def test_a_hostile_run_folder_is_one_message_of_every_command(medtasks, tmp_path, change, message):
    write_run(tmp_path / "good", "ORG/good", {OPEN: GOOD})
    change(write_run(tmp_path / "run", "ORG/a", {OPEN: GOOD}))
    for command in (
        ("report", "run"), ("card", "run", "-o", "card", "--parts"), ("compare", "good", "run"),
        ("view", "run", OPEN, "0"), ("rescore", "run"),
    ):  # fmt: skip
        start = process_time()
        outcome = medtasks(*command)
        assert process_time() - start < 20
        assert 'File "' not in outcome.text and " in line" not in outcome.text, (command, outcome.text)
        if message and command[0] in ("report", "compare"):
            assert message in " ".join(outcome.text.split()), (command, outcome.text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "nowhere: no such folder"),
        (("empty",), "empty: holds no results"),
        (("run", "--published", "helm"), "no published scores are known of 'helm'"),
        (("run", "-o", "file"), "file: is a file"),
        (("run", "-o", "file/out"), "cannot be made"),
        (("run", "-o", "taken"), "taken: holds results.csv, which no report wrote"),
    ],
)
def test_a_wrong_argument_gets_one_message(medtasks, run, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "results.csv").write_text("mine")
    outcome = medtasks("report", *arguments)
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1
    assert (tmp_path / "taken" / "results.csv").read_text() == "mine"


def _other_registry(run):
    manifest = read_json(run / "run.json")
    edit(run / "run.json", tasks={**manifest["tasks"], "mmlu": {"state": "done"}})


def _damaged(run):
    with edited_json(results_file(run)) as content:
        content["results"][GATED] = "damaged"


def _no_number(run):
    with edited(run, GATED) as record:
        record["metrics"]["score"] = float("nan")


def _resamples(run):
    np.save(run / "tasks" / f"{GATED}.npy", np.full(1000, np.nan))
    (run / "tasks" / f"{OPEN}.npy").write_bytes(b"cut short")


def _cut_samples(run):
    samples_file(run, OPEN).write_text('{"doc_id": 0, "doc": {"id"')


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (_other_registry, 1, "no task of this registry is called mmlu"),
        (_damaged, 1, f"{GATED} is no result of a task"),
        (_no_number, 1, "metric score is nan, and is left out"),
        (_resamples, 1, "resampled scores are damaged"),
        (_cut_samples, 0, "rescore"),
        (lambda run: samples_file(run, OPEN).unlink(), 0, "rescore"),
    ],
)
def test_what_is_damaged_costs_that_alone(medtasks, run, change, code, words):
    change(run)
    outcome = medtasks("report", "run", "--published", "none", "-o", "out")
    assert outcome.code == code and words in outcome.out and "0.8000 [0." in outcome.out
    assert "NaN" not in (run.parent / "out" / "results.csv").read_text()


def test_runs_that_disagree_are_both_shown(medtasks, run, tmp_path):
    write_run(tmp_path / "again", "ORG/a", {OPEN: GOOD[::-1], GATED: [0.0] * 10})
    outcome = medtasks("report", "run", "again", "--published", "none")
    assert "disagrees with run about 1 of 2 tasks" in outcome.out and outcome.code == 0
    assert "ORG/a #2" in outcome.out
    assert scores_by_entry(medtasks, "run", "again") == {"ORG/a": {0.8}, "ORG/a #2": {0.4}}


def test_a_results_file_that_is_cut_short_is_named_and_written_anew_by_a_rescore(medtasks, tmp_path):
    call = ("run", "--model", "oracle", "--data", "sample", "--tasks", "bridge_mie", "--output_path", "run")
    assert medtasks(*call).code == 0
    file = results_file(tmp_path / "run")
    whole = file.read_bytes()
    file.write_bytes(whole[:1000])
    for command in (("report", "run"), call):
        outcome = medtasks(*command)
        assert outcome.code != 0 and f"{file.name}: damaged" in outcome.text and "rescore" in outcome.text
    assert medtasks("rescore", "run").code == 0 and file.read_bytes() == whole


def scores_by_entry(medtasks, *runs):
    """Label -> scores of its suites; what is kept apart has those that its run alone gives."""
    found = json.loads(medtasks("report", *runs, "--published", "none", "--json").out)
    assert len(found["entries"]) == len(runs)
    return {
        entry["entry"]: {
            row["score"]
            for row in found["groups"]
            if (row["entry"], row["axis"]) == (entry["entry"], "suite")
        }
        for entry in found["entries"]
    }


def plain(folder, score, model="ORG/a"):
    content = {
        "results": {OPEN: {"score,answer": score}},
        "configs": {OPEN: {"num_fewshot": 0}},
        "config": {"model": "hf", "model_args": f"pretrained={model}"},
    }
    folder.mkdir()
    (folder / "results_2026-01-01.json").write_text(json.dumps(content))


def test_plain_lm_eval_output_without_samples_is_never_averaged_with_a_run(medtasks, run, tmp_path):
    plain(tmp_path / "plain", 0.2)
    plain(tmp_path / "again", 0.4)
    found = scores_by_entry(medtasks, "run", "plain", "again")
    assert list(found.values()) == [{0.8}, {0.2}, {0.4}]
    assert ["results of: lm_eval" in label for label in found] == [False, True, True]
    said = medtasks("report", "plain", "again", "--published", "none").out
    assert "no samples file" in said and "disagrees with" in said


def test_a_report_replaces_its_own_files_and_nothing_else(medtasks, run, tmp_path):
    assert medtasks("report", "run", "-o", "out", "--published", "none").code == 0
    (tmp_path / "out" / "notes.txt").write_text("mine")
    before = (tmp_path / "out" / "groups.csv").read_text()
    write_run(tmp_path / "other", "ORG/b", {OPEN: GOOD})
    assert medtasks("report", "other", "-o", "out", "--published", "none").code == 0
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "out" / "groups.csv").read_text() != before
    assert not list((tmp_path / "out").glob("*.part"))


def test_a_report_that_fails_leaves_the_former_one(medtasks, run, tmp_path, monkeypatch):
    medtasks("report", "run", "-o", "out", "--published", "none")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("medtasks_ext.report.write.render", full_disk)
    outcome = medtasks("report", "run", "-o", "out", "--published", "none")
    assert outcome.code == 2 and "cannot be written (no space left on device)" in outcome.err
    assert {
        path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()
    } == before
