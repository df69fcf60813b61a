"""No text of local rows in what commands print and log, whatever goes wrong."""

import json
import logging

import pytest

from medtasks_ext.prompts import load
from tests.conftest import sft_row, write_jsonl
from tests.run_files import samples_file

MARKER = "Zyxwv-Quastenflosser-4711"
HOSPICE = ("--tasks", "medhelm_hospice_referral", "--output_path", "run")
LABEL = "clinical trial criterion: 年龄"


@pytest.fixture(autouse=True)
def by_default(monkeypatch, caplog):
    """As a user has it, with logs as talkative as they can be."""
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    monkeypatch.setenv("LMEVAL_LOG_LEVEL", "DEBUG")
    caplog.set_level(logging.DEBUG)
    load._build.cache_clear()


def good(n: int = 8) -> list[dict]:
    return [
        {"id": f"{MARKER}-{i}", "prompt": MARKER, "context": f"{MARKER} {i}", "label": "AB"[i % 2]}
        for i in range(n)
    ]


def put(data_dir, rows: list[dict] | bytes, name: str = "medhelm/hospice_referral/test.jsonl"):
    path = data_dir / name
    if isinstance(rows, bytes):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rows)
    else:
        write_jsonl(path, rows)
    return path


def assert_silent(outcome, caplog):
    assert MARKER not in outcome.text and "Quastenflosser" not in outcome.text, outcome.text
    assert MARKER not in caplog.text, caplog.text


def test_a_run_that_goes_well_prints_no_text(medtasks, data_dir, caplog, tmp_path):
    put(data_dir, good())
    outcome = medtasks.done("run", "--model", "oracle", *HOSPICE)
    assert_silent(outcome, caplog)
    assert (
        MARKER in samples_file(tmp_path / "run", "medhelm_hospice_referral").read_text()
    )  # there it is kept
    for command in (("rescore", "run"), ("data", "status", "hospice"), ("data", "check"), ("ls", "hospice")):
        outcome = medtasks.done(*command)
        assert_silent(outcome, caplog)


def test_of_a_run_only_samples_and_answers_hold_text(medtasks, data_dir, tmp_path):
    rows = [{**row, "id": str(number)} for number, row in enumerate(good())]
    put(data_dir, rows)
    entities = [
        sft_row(i, f"{MARKER} {i}", f"entity: {MARKER}, type: symptom, status: 病人-阳性;", task="MIE")
        for i in range(6)
    ]
    put(data_dir, entities, "bridge/mie/test.jsonl")
    medtasks(
        "run", "--model", "oracle", "--tasks", "medhelm_hospice_referral,bridge_mie", "--output_path", "run"
    )
    holding = {
        path.name.partition("_")[0]
        for path in (tmp_path / "run").rglob("*")
        if path.is_file() and MARKER.encode() in path.read_bytes()
    }
    assert holding == {"answers.jsonl", "samples"}


def changed(**values) -> list[dict]:
    rows = good()
    rows[2].update(values)
    return rows


def without(column: str) -> list[dict]:
    rows = good()
    del rows[2][column]
    return rows


OWN, MEDQA, MIE = "medhelm/hospice_referral", "medhelm/medqa", "bridge/mie"
FOUR = {f"ending{i}": MARKER for i in range(4)}
TOO_MANY = f"prompt,context,label\n{MARKER},a,A,{MARKER}\n".encode()


@pytest.mark.parametrize(
    ("path", "rows", "message"),
    [
        (f"{OWN}/test.jsonl", changed(label=MARKER), "test row 3, column label holds <text of"),
        (f"{OWN}/test.jsonl", changed(id=f"{MARKER}-0"), "occurs twice: test row 1 and test row 3"),
        (f"{OWN}/test.jsonl", without("label"), "test row 3 has no column label"),
        (f"{OWN}/test.jsonl", [{MARKER: MARKER, "labl": MARKER}], "other columns found: 2, labl among them"),
        (f"{OWN}/test.csv", f"{MARKER},{MARKER} two,A\nx,y,B\n".encode(), "other columns found: 3"),
        (f"{OWN}/test.csv", TOO_MANY, "records have more cells"),
        (f"{OWN}/test.jsonl", f'{{"prompt": "{MARKER}"'.encode(), "line 1 is not valid JSON"),
        (f"{OWN}/test.jsonl", f'["{MARKER}"]'.encode(), "line 1 is not an object"),
        (f"{OWN}/test.json", f'{{"{MARKER}": "x}}'.encode(), "not valid JSON"),
        (f"{OWN}/test.jsonl", f'{{"prompt": "{MARKER}\xe4"}}'.encode("latin-1"), "not UTF-8"),
        (f"{OWN}/test.xml", f"<a>{MARKER}".encode(), "not valid XML"),
        (f"{OWN}/test.parquet", MARKER.encode(), "not a Parquet file"),
        (
            f"{MEDQA}/test.jsonl",
            [{"question": MARKER, "options": f"A. x\n{MARKER}", "answer_idx": "A"}],
            "test row 1, field options: option line <text of",
        ),
        (
            f"{MEDQA}/test.jsonl",
            [{"question": MARKER, "options": {MARKER: 1, "5": MARKER}, "answer_idx": MARKER}],
            "test row 1, column options holds <object of 2> (options without text)",
        ),
        (f"{MEDQA}/test.jsonl", [{"sent1": MARKER, "label": MARKER, **FOUR}], "column label holds <text of"),
        (
            "mlb/cmexam/test.csv",
            f"Question,Options,Answer\n{MARKER},A {MARKER},{MARKER}\n".encode(),
            "test row 1",
        ),
        (
            f"{MIE}/test.jsonl",
            [sft_row(1, MARKER, f"entity: {MARKER}, type: {MARKER}, status: {MARKER};", task="MIE")],
            "gold answer: type <text of",
        ),
        (f"{MIE}/test.jsonl", [sft_row(1, MARKER, MARKER, task="MIE")], "gold answer: line <text of"),
        (
            "bridge/chip_ctc/test.jsonl",
            [*(sft_row(i, MARKER, LABEL) for i in range(3)), sft_row(9, MARKER, MARKER)],
            "test row 4: gold answer",
        ),
        (
            "clinicbench/ddi/test.jsonl",
            [{"sentence": MARKER, "text": MARKER}],
            "is missing (other columns found: 2",
        ),
        (
            "medhelm/medcalc_bench/test.jsonl",
            [{"Calculator ID": MARKER}],
            "is missing (other columns found: 1",
        ),
    ],
)
def test_a_bad_row_is_named_by_place_and_not_quoted(medtasks, data_dir, caplog, path, rows, message):
    task = path.rpartition("/")[0].replace("/", "_")
    put(data_dir, rows, path)
    outcome = medtasks("run", "--model", "oracle", "--data", "local", "--tasks", task, "--output_path", "run")
    assert outcome.code == 2 and message in outcome.err
    assert_silent(outcome, caplog)
    outcome = medtasks("data", "check")
    assert outcome.code == 1
    assert_silent(outcome, caplog)
    for command in (
        ("data", "check", "--json"),
        ("data", "status", task),
        ("data", "status", task, "--json"),
    ):
        assert_silent(medtasks(*command), caplog)


def test_annotations_that_do_not_fit_their_text_are_named_by_line(medtasks, data_dir, caplog):
    folder = data_dir / "bridge" / "meddocan" / "original"
    for part in ("test", "train"):
        (folder / part / "brat").mkdir(parents=True)
        (folder / part / "brat" / "a.txt").write_text(f"Sr. {MARKER} ingresa.")
        (folder / part / "brat" / "a.ann").write_text(f"T1\tNOMBRE 0 3\t{MARKER}\n")
    outcome = medtasks("run", "--model", "oracle", "--data", "local", "--tasks", "bridge_meddocan")
    assert outcome.code == 2 and "a.ann, line 1: annotation T1 says <text of" in outcome.err
    assert_silent(outcome, caplog)


def test_an_example_that_is_a_test_row_is_named_by_place(medtasks, data_dir, caplog):
    put(data_dir, good())
    put(data_dir, good(5), "medhelm/hospice_referral/fewshot.jsonl")
    outcome = medtasks("run", "--model", "oracle", *HOSPICE)
    assert outcome.code == 2 and "few-shot row 1 is also test row 1" in outcome.err
    assert_silent(outcome, caplog)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"time data {MARKER} does not match"), KeyError(MARKER), TypeError(f"'{MARKER}'"),
        AssertionError(MARKER), Exception(MARKER), UnicodeDecodeError("utf-8", MARKER.encode(), 0, 1, MARKER),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["metric", "model"])
def test_what_fails_on_an_answer_is_named_by_kind_and_kept(
    medtasks, data_dir, caplog, tmp_path, monkeypatch, error, place
):
    def fails(*_, **__):
        raise error

    target = {
        "metric": "medtasks_ext.answers.filter.ParseAnswer.apply",
        "model": "medtasks_ext.models.Oracle.answer",
    }[place]
    monkeypatch.setattr(target, fails)
    put(data_dir, good())
    outcome = medtasks("run", "--model", "oracle", *HOSPICE)
    assert outcome.code == 1 and f"✗ medhelm_hospice_referral: {type(error).__name__}" in outcome.err
    assert_silent(outcome, caplog)
    kept = {"metric": "run.json", "model": "answers.jsonl"}[place]
    assert MARKER in (tmp_path / "run" / kept).read_text()  # the traceback


def test_what_a_machine_says_is_shown(medtasks, data_dir, monkeypatch):
    def hangs_up(*_):
        raise ConnectionError("the endpoint hung up")

    monkeypatch.setattr("medtasks_ext.models.Oracle.answer", hangs_up)
    put(data_dir, good())
    outcome = medtasks("run", "--model", "oracle", *HOSPICE)
    assert outcome.code == 1 and "✗ medhelm_hospice_referral: the endpoint hung up" in outcome.err


def test_a_defect_of_the_command_itself_prints_its_place_alone(medtasks, data_dir, caplog, monkeypatch):
    def fails(*_):
        raise ValueError(MARKER)

    monkeypatch.setattr("medtasks_ext.data.check.find_origin", fails)
    put(data_dir, good())
    outcome = medtasks("data", "status", "hospice")
    assert outcome.code == 1 and "ValueError in load.py" not in outcome.out and "ValueError" in outcome.err
    assert_silent(outcome, caplog)


def test_values_are_shown_where_that_is_asked_for(medtasks, data_dir, monkeypatch):
    put(data_dir, changed(label=MARKER))
    monkeypatch.setenv("MEDTASKS_SHOW_TEXT", "1")
    assert MARKER[:20] in medtasks("data", "check").out
    assert MARKER[:20] in medtasks("run", "--model", "oracle", *HOSPICE).err


def test_a_json_report_of_a_run_in_which_a_row_fails_is_silent_too(medtasks, data_dir, caplog):
    put(data_dir, changed(label=MARKER))
    outcome = medtasks("data", "status", "hospice", "--json")
    assert json.loads(outcome.out)[0]["checks"] == "failed"
    assert_silent(outcome, caplog)
