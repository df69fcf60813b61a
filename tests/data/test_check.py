"""`medtasks data check`: local files against the schemas of their datasets."""

import json

import pytest

from medtasks_ext.registry import registry
from tests.conftest import read_json, sample_rows, write_jsonl
from tests.run_files import result_of

HOSPICE = "medhelm_hospice_referral"


def hospice(root, rows, name="test.jsonl", dataset="hospice_referral"):
    return write_jsonl(root / "medhelm" / dataset / name, rows)


def good(n: int, start: int = 0, changes: dict[int, dict] | None = None) -> list[dict]:
    return [
        {"prompt": "Eligible?", "context": f"note {i}", "label": "AB"[i % 2], **(changes or {}).get(i, {})}
        for i in range(start, start + n)
    ]


def test_gold_that_the_suites_own_reading_loses_is_a_note_where_the_task_declares_it(medtasks, data_dir):
    """BRIDGE's reading of RuCCoN splits a line at its semicolons."""
    names = ["цефтриаксон; 1 г", *(f"парацетамол {i}" for i in range(1, 100))]
    given, more = {"task": "RuCCoN", "split": "test"}, "Жалобы на боль. " * 20
    texts = [(f"Назначен {name} внутрь. {more}", f"entity: {name}, type: Drug;") for name in names]
    rows = [{**given, "id": str(i), "input": text, "output": out} for i, (text, out) in enumerate(texts)]
    write_jsonl(data_dir / "bridge" / "ruccon" / "test.jsonl", rows)
    outcome = medtasks.done("data", "check", data_dir)
    lost = next(text for text in outcome.out.splitlines() if "loses a part of 1 gold answer:" in text)
    assert lost.endswith("and should 1.0000")
    ran = medtasks("run", "--model", "oracle", "--tasks", "bridge_ruccon", "--data", "local")
    score = lost.split("perfect answers score ")[1].split(",")[0]
    assert float(score) < 1
    assert score in ran.out


def test_the_first_faults_are_named_by_file_row_and_column(medtasks, data_dir):
    rows = good(12)
    del rows[1]["label"]
    rows[3]["label"] = "C"
    for row in rows[5:10]:
        row["label"] = ""
    hospice(data_dir, rows)
    outcome = medtasks("data", "check", data_dir)
    assert outcome.code == 1
    lines = [line.strip() for line in outcome.out.splitlines()]
    file = "medhelm/hospice_referral/test.jsonl"
    assert lines[0].startswith(f"✗ {HOSPICE}  valid: 5 test rows")
    assert f"{file}: test row 2 has no column label" in lines
    assert f"{file}: test row 4, column label holds 'C' (another value), expected one of: A, B" in lines
    empty = "column label holds nothing, expected one of: A, B"
    assert f"{file}: {empty}: 5 rows (test rows 6, 7, 8, 9, 10)" in lines
    record = json.loads(medtasks("data", "check", data_dir, "--json").out)["datasets"][0]
    named = {(row, cause["column"]) for cause in record["causes"] for row in cause["rows"]}
    assert named == {(f"test row {number}", "label") for number in (2, 4, 6, 7, 8, 9, 10)}
    assert record["causes"][0]["cause"] == empty and record["causes"][0]["n"] == 5
    assert (record["valid"], record["n_test"]) == (False, 5)


VALUES = [None, 5, 1.5, True, [], ["A"], {}, {"a": {"b": 1}}, "", "\x00", "\ud800", "A" * 10_000]


@pytest.mark.parametrize("column", ["prompt", "context", "label"])
def test_values_of_any_kind_are_faults_or_fine_and_never_stop_the_check(medtasks, data_dir, column):
    rows = [{**row, column: value} for row, value in zip(good(len(VALUES)), VALUES, strict=True)]
    file = data_dir / "medhelm" / "hospice_referral" / "test.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bridge = [{"task": value, "split": "test", "input": value, "output": value} for value in VALUES]
    (data_dir / "bridge" / "chip_ctc").mkdir(parents=True)
    (data_dir / "bridge" / "chip_ctc" / "test.json").write_text(json.dumps(bridge))
    records = json.loads(medtasks("data", "check", data_dir, "--json").out)["datasets"]
    hospice = next(record for record in records if record["id"] == HOSPICE)
    assert hospice["n_test"] + sum(cause["n"] for cause in hospice["causes"]) == len(VALUES)
    n_texts = 0 if column == "label" else 3  # the other texts hold nothing, or are none
    assert hospice["n_test"] == n_texts
    assert medtasks("data", "check", data_dir).code == 1  # at least BRIDGE's labels


def test_a_check_says_what_the_gold_answers_score_and_no_text_of_rows(medtasks, data_dir):
    rows = [{**row, "label": "A", "id": f"ROSSI_MARIA_{n}"} for n, row in enumerate(good(7))]
    hospice(data_dir, rows)
    printed = medtasks("data", "check").out
    assert "note: 7 test rows; the suite's own test part has 1,000" in printed
    assert "all gold answers are the same: any model that says so is right" in printed
    assert "ROSSI" not in printed
    assert "the gold answers themselves score 1.0000, the highest score is 1.0000" in printed
    assert json.loads(medtasks("data", "check", "--json").out)["datasets"][0]["oracle"] == 1


@pytest.mark.parametrize(
    ("name", "column", "value", "expected"),
    [
        ("medhelm_ehrshot", "boolean_value", "yes", "true or false"),
        ("medhelm_mimic_iv_billing_code", "target", "I21.4;E11.9", "a list of texts"),
    ],
)
def test_a_wrong_gold_is_never_every_row_s_gold(medtasks, data_dir, name, column, value, expected):
    dataset = registry().datasets[name]
    rows = [{**row, column: value} for row in sample_rows(name)]
    write_jsonl(data_dir / dataset.metadata.suite / dataset.folder.name / "test.jsonl", rows)
    hospice(data_dir, good(8))  # another dataset's fault hides nothing of this one
    records = {item["id"]: item for item in json.loads(medtasks("data", "check", "--json").out)["datasets"]}
    (cause,) = records[name]["causes"]
    assert cause["n"] == len(rows) and cause["column"] == column and expected in cause["cause"]
    assert records[HOSPICE]["valid"]
    status = medtasks("data", "status", name)
    assert status.code == 0 and "failed" in status.out
    run = medtasks("run", "--model", "oracle", "--tasks", name, "--data", "local")
    assert run.code == 2 and column in run.err and "Traceback" not in run.err


def test_several_kinds_of_faults_come_in_one_report(medtasks, data_dir):
    rows = [{**row, "id": i} for i, row in enumerate(good(9))]
    rows[4]["id"] = 2
    hospice(data_dir, rows)
    hospice(data_dir, good(3, start=100) + good(1, start=6), "fewshot.jsonl")
    outcome = medtasks("data", "check", data_dir)
    assert "occurs twice: test row 3 and test row 5" in outcome.out
    assert "few-shot row 4 is also test row 7" in outcome.out


def test_rows_that_others_may_read_are_a_note_where_they_are_not_open(medtasks, data_dir):
    file = hospice(data_dir, good(8))
    file.chmod(0o644)
    file.parent.chmod(0o755)
    note = "others on this machine may read medhelm/hospice_referral/test.jsonl: chmod -R go="
    assert (note in medtasks("data", "check", data_dir).out) == (
        registry().datasets[HOSPICE].metadata.access != "open"
    )
    file.chmod(0o600)
    assert "others on this machine" not in medtasks("data", "check", data_dir).out


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("medhelm_hospice_referral/test.jsonl", "medhelm/hospice_referral"),
        ("medhelm/clear/tests.jsonl", "medhelm/clear/test.jsonl"),
        ("bridge/CHIP-CTC.json", "bridge/CHIP-CTC.SFT.json"),
    ],
)
def test_a_mistyped_name_is_not_passed_over(medtasks, data_dir, path, meant):
    hospice(data_dir, good(8))
    write_jsonl(data_dir / path, [{"a": 1}])
    outcome = medtasks("data", "check", data_dir)
    assert outcome.code == 1
    stray = json.loads(medtasks("data", "check", data_dir, "--json").out)["not_read"]
    assert [entry["meant"] for entry in stray] == [meant]
    assert f"did you mean {meant}?" in outcome.out


def test_a_folder_with_nothing_in_it_is_no_success(medtasks, tmp_path, chip_ctc):
    (tmp_path / "empty").mkdir()
    for folder in ("empty", chip_ctc / "bridge", chip_ctc / "bridge/example"):
        outcome = medtasks("data", "check", folder)
        assert outcome.code == 1 and "nothing was found there: a data folder holds bridge/" in outcome.out


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        ("bridge_chip_ctc", "no such folder"),
        ("{data}/bridge/CHIP-CTC.SFT.json", "expected a folder, got a file"),
    ],
)
def test_what_is_given_in_place_of_the_data_folder_is_told(medtasks, chip_ctc, argument, what):
    outcome = medtasks("data", "check", argument.format(data=chip_ctc))
    assert outcome.code != 0 and what in outcome.err and "name your data folder" in outcome.err


def run(medtasks, out, *flags, task=HOSPICE):
    return medtasks(
        "run", "--tasks", task, "--model", "oracle", "--output_path", out, "--data", "local", *flags
    )


def test_the_right_rows_of_a_half_right_file_run_and_are_counted(medtasks, data_dir, tmp_path):
    faulty = {1: {"label": "maybe"}, 4: {"context": " "}, 6: {"context": "note 7"}}
    hospice(data_dir, good(12, changes=faulty))
    checked = medtasks("data", "check")
    assert checked.code == 1
    assert f"8 test rows are without a fault: `medtasks run {HOSPICE} --drop-faulty`" in checked.out
    refused = run(medtasks, tmp_path / "strict")
    assert refused.code != 0 and "label" in refused.err
    done = run(medtasks, tmp_path / "run", "--drop-faulty")
    assert done.code == 0, done.err
    assert f"{HOSPICE}: 4 of 12 rows left out as faulty (--drop-faulty)" in done.out + done.err
    record = result_of(tmp_path / "run", HOSPICE)
    assert record["loaded"]["n_test"] == 8 and record["loaded"]["n_faulty"] == 4
    assert record["conditions"]["n_faulty"] == 4
    assert record["metrics"]["score"] == 1
    asked = [
        json.loads(line)
        for line in next((tmp_path / "run").rglob(f"samples*{HOSPICE}*")).open(encoding="utf-8")
    ]
    assert len(asked) == 8


def test_a_fault_of_the_whole_file_is_not_dropped(medtasks, data_dir, tmp_path):
    hospice(data_dir, [{**row, "label": "A"} for row in good(12, changes={1: {"context": " "}})])
    refused = run(medtasks, tmp_path / "run", "--drop-faulty")
    assert refused.code != 0 and "all gold answers are the same" in refused.err


@pytest.mark.parametrize("name", ["adhd_behavior", "hospice_referral", "proxy_sender"])
def test_rows_that_the_suite_leaves_out_are_said(medtasks, data_dir, tmp_path, name):
    hospice(data_dir, good(8, changes={7: {"context": "note 1"}}), dataset=name)
    done = run(medtasks, tmp_path / "run", task=f"medhelm_{name}")
    assert done.code == 0, done.err
    said = f"medhelm_{name}: 1 row left out, since a later one asks the same, as the suite does"
    assert said in done.out + done.err
    note = "1 row left out, since a later one has the same prompt, context"
    assert note in medtasks("data", "check").out
    hospice(data_dir, good(8, changes={6: {"context": "note 1"}}), dataset=name)
    checked = medtasks("data", "check", "--json")
    (record,) = json.loads(checked.out)["datasets"]
    assert checked.code == 1 and record["n_usable"] == 6
    assert {row for cause in record["causes"] for row in cause["rows"]} == {"test row 2", "test row 7"}


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
