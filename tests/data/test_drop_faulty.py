"""Rows without faults can be run where others have some: what is left out is counted everywhere."""

import json

import pytest

from tests.conftest import problems_of, read_json, write_jsonl
from tests.run_files import result_of

TASK = "medhelm_hospice_referral"
CONTRADICTORY = ("adhd_behavior", "adhd_medeffects", "hospice_referral", "proxy_sender", "medconfinfo")


def rows(n, **changes):
    found = [{"prompt": "Refer?", "context": f"Invented note {i}.", "label": "AB"[i % 2]} for i in range(n)]
    for place, change in changes.items():
        found[int(place[1:])].update(change)
    return found


def put(folder, name, content):
    return write_jsonl(folder / "medhelm" / name / "test.jsonl", content)


def run(medtasks, out, *flags, task=TASK):
    return medtasks(
        "run", "--tasks", task, "--model", "oracle", "--output_path", out, "--data", "local", *flags
    )


def test_the_right_rows_of_a_half_right_file_run_and_are_counted(medtasks, data_dir, tmp_path):
    faulty = {"r1": {"label": "maybe"}, "r4": {"context": " "}, "r6": {"context": "Invented note 7."}}
    put(data_dir, "hospice_referral", rows(12, **faulty))
    checked = medtasks("data", "check")
    assert checked.code == 1
    assert f"8 test rows are without a fault: `medtasks run {TASK} --drop-faulty`" in checked.out
    refused = run(medtasks, tmp_path / "strict")
    assert refused.code != 0 and "label" in refused.err
    done = run(medtasks, tmp_path / "run", "--drop-faulty")
    assert done.code == 0, done.err
    assert f"{TASK}: 4 of 12 rows left out as faulty (--drop-faulty)" in done.out + done.err
    record = result_of(tmp_path / "run", TASK)
    assert record["loaded"]["n_test"] == 8 and record["loaded"]["n_faulty"] == 4
    assert record["conditions"]["n_faulty"] == 4
    assert record["metrics"]["score"] == 1
    asked = [
        json.loads(line) for line in next((tmp_path / "run").rglob(f"samples*{TASK}*")).open(encoding="utf-8")
    ]
    assert len(asked) == 8


def test_a_fault_of_the_whole_file_is_not_dropped(medtasks, data_dir, tmp_path):
    put(data_dir, "hospice_referral", [{**row, "label": "A"} for row in rows(12, r1={"context": " "})])
    refused = run(medtasks, tmp_path / "run", "--drop-faulty")
    assert refused.code != 0 and "all gold answers are the same" in refused.err


def test_a_file_of_faults_alone_is_refused(medtasks, data_dir, tmp_path):
    put(data_dir, "hospice_referral", [{**row, "label": "maybe"} for row in rows(6)])
    assert run(medtasks, tmp_path / "run", "--drop-faulty").code != 0


def test_right_rows_are_the_same_with_and_without_the_flag(medtasks, data_dir, tmp_path):
    put(data_dir, "hospice_referral", rows(8))
    for out, flags in (("one", ()), ("other", ("--drop-faulty",))):
        assert run(medtasks, tmp_path / out, *flags).code == 0
    one, other = (result_of(tmp_path / out, TASK) for out in ("one", "other"))
    assert one["loaded"] == other["loaded"] and "n_faulty" not in one["loaded"]


@pytest.mark.parametrize("name", CONTRADICTORY)
def test_rows_that_the_suite_leaves_out_are_said(medtasks, data_dir, tmp_path, name):
    again = {"r7": {"context": "Invented note 1."}}
    put(data_dir, name, rows(8, **again))
    done = run(medtasks, tmp_path / "run", task=f"medhelm_{name}")
    assert done.code == 0, done.err
    said = f"medhelm_{name}: 1 row left out, since a later one asks the same, as the suite does"
    assert said in done.out + done.err
    note = "1 row left out, since a later one has the same prompt, context"
    assert note in medtasks("data", "check").out
    contradictory = rows(8, r6={"context": "Invented note 1."})
    put(data_dir, name, contradictory)
    checked = medtasks("data", "check", "--json")
    (record,) = json.loads(checked.out)["datasets"]
    assert checked.code == 1 and record["n_usable"] == 6
    assert {row for cause in record["causes"] for row in cause["rows"]} == {"test row 2", "test row 7"}


def test_validate_uses_the_checks_of_data_check(medtasks, tmp_path):
    import shutil

    from medtasks_ext.registry import registry

    tasks = registry()
    source = tasks.datasets["medhelm_live_medxpertqa"]
    folder = tmp_path / "medhelm_live" / "medxpertqa"
    shutil.copytree(source.folder, folder)
    shutil.copy(source.folder.parent / "suite.yaml", folder.parent)
    content = [json.loads(line) for line in (folder / "sample.jsonl").read_text("utf-8").splitlines()]
    letter = next(key for key in content[0] if key == "label")
    for row in content:
        row[letter] = "A"
    write_jsonl(folder / "sample.jsonl", content)
    from medtasks_ext.registry import Dataset

    problems = problems_of(tasks, Dataset(folder))
    assert any("all gold answers are the same" in problem for problem in problems), problems


@pytest.mark.parametrize("cell", ["", None, "nan"])
def test_gold_for_a_part_of_the_rows_is_a_fault_of_the_others(medtasks, data_dir, tmp_path, chip_ctc, cell):
    """The loader of BRIDGE leaves such rows out unseen; where none has gold, they are the published ones."""
    file = data_dir / "bridge" / "CHIP-CTC.SFT.json"
    content = read_json(file)
    content[2]["output"] = cell
    file.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    checked = medtasks("data", "check", "--json")
    (record,) = json.loads(checked.out)["datasets"]
    assert checked.code == 1
    assert {row for cause in record["causes"] for row in cause["rows"]} == {"test row 3"}
    assert run(medtasks, tmp_path / "run", "--drop-faulty", task="bridge_chip_ctc").code == 0
    for row in content:
        row["output"] = ""
    file.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    (record,) = json.loads(medtasks("data", "check", "--json").out)["datasets"]
    assert record["valid"] and "8 rows without gold: predicted, not scored" in record["notes"]


def test_batch_files_leave_out_the_same_rows(medtasks, data_dir, tmp_path):
    put(data_dir, "hospice_referral", rows(12, r1={"label": "maybe"}))
    call = (
        "run",
        "--to-batch",
        "requests.jsonl",
        "--config",
        "openai",
        "--tasks",
        TASK,
        "--output_path",
        tmp_path / "out",
    )
    refused = medtasks(*call, "--allow-host", "api.openai.com")
    assert refused.code != 0 and "label" in refused.err
    medtasks.done(*call, "--allow-host", "api.openai.com", "--drop-faulty")
