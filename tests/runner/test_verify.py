"""`medtasks verify`: what was changed in a run's folder is named, whatever it is."""

import json
from pathlib import Path

import pytest

TASK = "bridge_chip_ctc"
RESPONSES, SAMPLES, RESULT = f"responses/{TASK}.jsonl", f"samples_{TASK}.jsonl", f"tasks/{TASK}.json"


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path) -> Path:
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    return tmp_path / "run"


def edited(file: Path, change) -> None:
    """Change the first line, as JSON."""
    first, *rest = file.read_text(encoding="utf-8").splitlines(keepends=True)
    record = json.loads(first)
    change(record)
    file.write_text(json.dumps(record) + "\n" + "".join(rest), encoding="utf-8")


def rewritten(file: Path, change) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def cut(file: Path) -> None:
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-2]))


CHANGES = {
    "an answer": (RESPONSES, lambda run: edited(run / RESPONSES, lambda line: line.update(response="A"))),
    "the end of the answers": (RESPONSES, lambda run: cut(run / RESPONSES)),
    "no answers": (RESPONSES, lambda run: (run / RESPONSES).unlink()),
    "a response in the samples": (
        SAMPLES,
        lambda run: edited(run / SAMPLES, lambda sample: sample.update(resps=[["A"]])),
    ),
    "a value in the samples": (RESULT, lambda run: edited(run / SAMPLES, lambda it: it.update(acc=7.0))),
    "a line of the samples": (SAMPLES, lambda run: cut(run / SAMPLES)),
    "a score": (RESULT, lambda run: rewritten(run / RESULT, lambda item: item["metrics"].update(acc=1.0))),
    "no result": (RESULT, lambda run: (run / RESULT).unlink()),
    "the table": (
        "results.json",
        lambda run: rewritten(
            run / "results.json", lambda table: table["results"][TASK].update({"acc,answer": 1.0})
        ),
    ),
    "scores of documents": (f"tasks/{TASK}.parquet", lambda run: (run / f"tasks/{TASK}.parquet").unlink()),
}  # fmt: skip


def test_a_run_that_nobody_touched_verifies_and_has_one_root(medtasks, run):
    first, again = medtasks("verify", "run"), medtasks("verify", "run", "--scores")
    assert first.code == 0 and "1 task, 8 answers, 0 judgements; all as written" in first.out
    assert again.code == 0 and again.out == first.out and "\nroot: " in first.out


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_named_and_no_card_is_written_of_it(medtasks, run, change):
    file, apply = CHANGES[change]
    apply(run)
    found = medtasks("verify", "run")
    assert found.code == 1 and f"✗ {file}: " in found.out and "not verify" in found.out
    card = medtasks("card", "run", "--parts", "-o", "card")
    assert card.code == 2 and not Path("card").exists()


def test_a_report_says_that_answers_are_not_those_that_were_scored(medtasks, run):
    cut(run / RESPONSES)
    assert (
        f"changed after it was written: {RESPONSES}" in medtasks("report", "run", "--published", "none").text
    )


def test_scores_are_computed_anew_from_the_answers_and_nothing_in_the_folder_changes(medtasks, run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    rewritten(run / RESULT, lambda item: item.update(version="1-A"))
    assert "others here" in medtasks("verify", "run", "--scores").out
    (run / RESULT).write_bytes(before[run / RESULT])
    rewritten(run / RESULT, lambda item: item["metrics"].update(more=1))
    found = medtasks("verify", "run", "--scores")
    assert found.code == 1 and "more is 1, and follows as None from the records" in found.out
    (run / RESULT).write_bytes(before[run / RESULT])
    assert medtasks("verify", "run", "--scores").code == 0
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_answers_whose_chain_and_manifest_were_forged_show_against_a_published_card(medtasks, run, tmp_path):
    assert medtasks("card", "run", "--parts", "-o", "card").code == 0
    assert medtasks("verify", "run", "--against", "card/medtasks-manifest.json").code == 0
    run.rename(tmp_path / "honest")
    other = medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run")
    assert other.code == 0 and medtasks("verify", "run").code == 0
    found = medtasks("verify", "run", "--against", "card/medtasks-manifest.json")
    assert found.code == 1 and f"✗ {RESPONSES}: is not the one that was published" in found.out


def test_the_manifest_is_made_again_from_the_records_without_asking(medtasks, run):
    before = json.loads((run / RESULT).read_text())
    (run / "run.json").unlink()
    outcome = medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run")
    assert outcome.code == 0 and "8 of 8 documents have an answer" in outcome.err
    assert (
        json.loads((run / RESULT).read_text()) == before and medtasks("verify", "run", "--scores").code == 0
    )
