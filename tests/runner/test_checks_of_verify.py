"""Each check of `medtasks verify` by itself, in folders that were sealed anew, so that no seal finds it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.runner.verify import verify
from medtasks_ext.runs import Manifest
from tests.runner.test_bound import RESPONSES, RESULT, RUN, SAMPLES, TASK, edited, run, sealed_anew  # noqa: F401

PARQUET = f"tasks/{TASK}.parquet"


def altered(file: Path, change: Callable[[dict], object]) -> None:
    """Change JSON in place."""
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def fewer(folder: Path) -> None:
    altered(folder / RESULT, lambda record: record.update(n=7))
    altered(folder / "run.json", lambda manifest: manifest["tasks"][TASK].update(n=7))


def another_score(folder: Path) -> None:
    def change(record):
        record["metrics"]["score"] += 0.25
        record["intervals"]["score"] |= {"interval_low": 0.0, "interval_high": 1.0}

    altered(folder / RESULT, change)


def another_table(folder: Path) -> None:
    altered(folder / "results.json", lambda content: content["results"][TASK].update({"score,answer": 0.9}))


def an_interval(folder: Path) -> None:
    altered(
        folder / RESULT,
        lambda record: record["intervals"]["score"].update(interval_low=0.99, interval_high=1.0),
    )


def another_response(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / SAMPLES).read_text().splitlines()]
    lines[3]["resps"] = [["another answer"]]
    (folder / SAMPLES).write_text("".join(json.dumps(line) + "\n" for line in lines))


def a_changed_line(folder: Path) -> None:
    edited(folder / RESPONSES, ('"document": "test-5"', '"document": "test-6"'))


def the_last_line_cut_off(folder: Path) -> None:
    lines = (folder / RESPONSES).read_bytes().splitlines(keepends=True)
    (folder / RESPONSES).write_bytes(b"".join(lines[:-1]))


CHANGES = {
    "a response in the samples": (another_response, SAMPLES, "line 4: the response is not the one in"),
    "a number of documents": (fewer, SAMPLES, f"8 documents, and {RESULT} says 7"),
    "a number that run.json has otherwise": (
        lambda folder: altered(folder / RESULT, lambda record: record.update(n=9)),
        RESULT,
        "says 9 documents, and run.json 8",
    ),
    "a score": (another_score, RESULT, "score is "),
    "an interval": (an_interval, RESULT, "the interval of score, 0.99 to 1, does not hold its "),
    "the table": (another_table, "results.json", f"{TASK}: other metrics than {RESULT}"),
    "a line of the answers": (a_changed_line, RESPONSES, "line 6 is damaged"),
    "the end of the answers": (the_last_line_cut_off, RESPONSES, "does not hold the 8 lines"),
    "no answers": (lambda folder: (folder / RESPONSES).unlink(), RESPONSES, "is missing"),
}


def said_of(folder: Path, file: str, heads: dict[str, str] | None = None) -> str:
    return "; ".join(item.what for item in verify(folder, registry(), heads).changes if item.file == file)


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_named_where_the_seal_was_made_anew(run, what):  # noqa: F811
    change, file, words = CHANGES[what]
    change(run)
    sealed_anew(run)
    assert words in said_of(run, file)


def test_scores_of_documents_of_another_run_are_named(medtasks, run):  # noqa: F811
    assert medtasks(*RUN[:-1], "other", "--model", "oracle").code == 0
    shutil.copyfile(run.with_name("other") / PARQUET, run / PARQUET)
    sealed_anew(run)
    assert said_of(run, PARQUET) == "other scores of documents than the samples have"


def test_heads_that_were_published_are_compared(run):  # noqa: F811
    heads = Manifest.read(run).heads
    assert said_of(run, RESPONSES, heads) == ""
    assert said_of(run, RESPONSES, dict.fromkeys(heads, "0" * 32)) == "is not the one that was published"


def test_a_file_that_took_the_place_of_another_is_named_with_its_own_place(run):  # noqa: F811
    shutil.copyfile(run / SAMPLES, run / "results.json")
    assert said_of(run, "results.json").startswith(f"holds what belongs into {SAMPLES}")


def test_lines_that_were_appended_after_the_seal_are_counted(run):  # noqa: F811
    with (run / RESPONSES).open("ab") as file:
        file.write(b"{}")
    assert said_of(run, RESPONSES) == "has 2 bytes more than were sealed"
