"""`medtasks submit --check`: what was edited by hand, or does not belong there, is named and refused."""

import json
import os
import shutil

import pyarrow as pa
import pytest
from pyarrow import compute, parquet

from medtasks_lab.submissions import record as records
from tests.submissions.conftest import CLOSED_COUNTS, CLOSED_MEAN, OPEN_COUNTS, OPEN_MEAN, PLACE

HOSTILE = '<img src=x onerror="window.hit=1">'


def edited(folder, change):
    """Change the record, as JSON."""
    file = folder / "submission.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def column(folder, name, change):
    """Change a column of the documents."""
    file = folder / "documents.parquet"
    table = parquet.read_table(file)
    table = table.set_column(table.column_names.index(name), name, change(table[name]))
    parquet.write_table(table, file)


def task(name, **changes):
    return lambda folder: edited(folder, lambda content: content["tasks"][name].update(changes))


def conditions(name, **changes):
    return lambda folder: edited(
        folder, lambda content: content["tasks"][name]["conditions"]["asked"].update(changes)
    )


def top(**changes):
    return lambda folder: edited(folder, lambda content: content.update(changes))


def all_right(folder):
    column(folder, "score", lambda values: pa.array([1.0] * len(values)))


def swapped(folder):
    """Two documents of data that is not open in another order; the score stays."""
    tasks = json.loads((folder / "submission.json").read_text())["tasks"]
    first = sum(item["n"] for name, item in tasks.items() if name < CLOSED_MEAN)
    order = list(range(sum(item["n"] for item in tasks.values())))
    last = first + tasks[CLOSED_MEAN]["n"] - 1
    order[first], order[last] = order[last], order[first]
    column(folder, "score", lambda values: values.take(pa.array(order)))


def a_column_more(folder):
    file = folder / "documents.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.append_column("response", pa.array(["x"] * table.num_rows)), file)


def a_row_less(folder):
    file = folder / "documents.parquet"
    parquet.write_table(parquet.read_table(file).slice(1), file)


def linked(folder):
    (folder / "submission.json").rename(folder.parent / "elsewhere.json")
    (folder / "submission.json").symlink_to("../elsewhere.json")


def piped(folder):
    (folder / "submission.json").unlink()
    os.mkfifo(folder / "submission.json")


def left_out(folder):
    """A document of counts is said to take no part in the score."""
    tasks = json.loads((folder / "submission.json").read_text())["tasks"]
    place = sum(item["n"] for name, item in tasks.items() if name < OPEN_COUNTS)
    column(
        folder,
        "scored",
        lambda values: pa.array([n != place and one for n, one in enumerate(values.to_pylist())]),
    )


def linked_folder(folder):
    shutil.move(folder, folder.parent / "elsewhere")
    folder.symlink_to("elsewhere")


#: edit -> (what does it, words of the message)
EDITS = {
    "a score": (task(OPEN_MEAN, score=0.99), f"tasks.{OPEN_MEAN}.score: is 0.99"),
    "a score of counts": (task(OPEN_COUNTS, score=0.99), f"tasks.{OPEN_COUNTS}.score: is 0.99"),
    "a score of sums": (task(CLOSED_COUNTS, score=0.99), f"tasks.{CLOSED_COUNTS}.score: is 0.99"),
    "a readable share": (task(OPEN_MEAN, valid=0.5), f"tasks.{OPEN_MEAN}.valid: is 0.5"),
    "an interval": (
        task(OPEN_MEAN, spread={"low": 0.5, "high": 0.6, "sd": 0.01}),
        f"tasks.{OPEN_MEAN}.spread: is not the interval",
    ),
    "a suite's score": (
        top(groups={"bridge": {"score": 0.9, "tasks": 2, "of": 87}}),
        "groups.bridge: is 0.9",
    ),
    "a suite more": (
        lambda folder: edited(
            folder, lambda content: content["groups"].update(mlb={"score": 0.9, "tasks": 1, "of": 22})
        ),
        "groups.mlb: follows from no task",
    ),
    "documents": (all_right, "documents.parquet: rows of"),
    "sums": (task(CLOSED_COUNTS, sums=[9.0, 0.0, 0.0]), f"tasks.{CLOSED_COUNTS}.score: is"),
    "sums without need": (task(OPEN_COUNTS, sums=[9.0, 0.0, 0.0]), f"tasks.{OPEN_COUNTS}.sums"),
    "the order of rows that are not open": (swapped, f"rows of {CLOSED_MEAN}: documents of data that is not"),
    "a document less": (a_row_less, "41 documents, and submission.json says 42"),
    "a column of texts": (a_column_more, "documents.parquet: has the column 'response'"),
    "no table": (lambda folder: (folder / "documents.parquet").write_bytes(b"PAR1"), "is no table"),
    "no documents": (
        lambda folder: (folder / "documents.parquet").unlink(),
        "documents.parquet: no such file",
    ),
    "another format": (top(schema=4), "schema: is 4, and this version reads 3"),
    "no format": (top(schema=HOSTILE), "schema: is <img"),
    "a key more": (top(comment="text"), "comment: extra inputs are not permitted"),
    "a condition more": (conditions(OPEN_MEAN, mood="good"), "asked.mood: unexpected keyword argument"),
    "a text": (conditions(OPEN_MEAN, engine="a\nb"), "holds a text of 3 characters or of several lines"),
    "a long text": (conditions(OPEN_MEAN, engine="a " * 500), "holds a text of 1,000 characters"),
    "a text as a key": (
        lambda folder: edited(folder, lambda content: content["run"].update({"a " * 500: "x"})),
        "holds a text of 1,000 characters",
    ),
    "a file of texts": (
        lambda folder: (folder / "README.md").write_text("text"),
        "README.md: is no file of a sub",
    ),
    "another version of a task": (
        conditions(OPEN_MEAN, version="99-A"),
        f"tasks.{OPEN_MEAN}.conditions.asked.version: is 99-A, and the task is",
    ),
    "a task that nobody knows": (
        lambda folder: edited(
            folder, lambda content: content["tasks"].update(x_y=content["tasks"][OPEN_MEAN])
        ),
        "tasks.x_y: no task is called so",
    ),
    "synthetic rows": (
        conditions(OPEN_MEAN, rows={"source": "synthetic"}),
        "the rows are synthetic sample rows",
    ),
    "another strategy": (conditions(OPEN_MEAN, strategy="cot"), "asked.strategy: is cot"),
    "fewer rows of the suite": (
        lambda folder: edited(
            folder,
            lambda content: content["tasks"][OPEN_MEAN]["conditions"]["asked"]["rows"].update(n_of_suite=12),
        ),
        "rows.n_of_suite: is 12, and the suite states 1000",
    ),
    "the statistic": (task(OPEN_COUNTS, statistic="mean"), f"tasks.{OPEN_COUNTS}.statistic: is mean"),
    "a score above 1": (
        task(OPEN_MEAN, score=7.0),
        f"tasks.{OPEN_MEAN}.score: input should be less than or equal",
    ),
    "no number": (
        lambda folder: column(folder, "valid", lambda values: pa.array([float("inf")] * len(values))),
        "a value is no number, or no share",
    ),
    "another model": (top(model="Org/other"), "model: is Org/other, and the folder says Org/random-label"),
    "another day": (top(date="2026-05-02"), "date: is 2026-05-02, and the folder says 2026-05-01"),
    "no heads": (top(heads={}), "heads: has no chain of answers"),
    "invented scores": (top(invented="for a measurement"), "the scores are invented"),
    "no JSON": (lambda folder: (folder / "submission.json").write_text("{"), "submission.json: is no JSON"),
    "deep JSON": (lambda folder: (folder / "submission.json").write_text("[" * 100_000), "is no JSON"),
    "no record": (lambda folder: (folder / "submission.json").unlink(), "submission.json: no such file"),
    "a link": (linked, "submission.json: is a symbolic link"),
    "a folder that is a link": (linked_folder, "is a symbolic link"),
    "no folder": (lambda folder: folder.rename(folder.parent / "elsewhere"), "no such folder"),
    "a pipe": (piped, "submission.json: is no file"),
    "no score": (task(OPEN_MEAN, score=None), f"tasks.{OPEN_MEAN}.score: is missing"),
    "other documents than were observed": (task(OPEN_MEAN, n=11), "observed.n: is 12, and there are 11"),
    "fewer documents than all": (
        task(OPEN_MEAN, n=11),
        f"tasks.{OPEN_MEAN}.n: 11 documents, and all 12 were",
    ),
    "more documents than rows": (task(OPEN_MEAN, n=13), f"tasks.{OPEN_MEAN}.n: 13 documents of 12 rows"),
    "an interval of sums, upside down": (
        task(CLOSED_COUNTS, spread={"low": 0.6, "high": 0.5, "sd": 0.01}),
        f"tasks.{CLOSED_COUNTS}.spread: does not follow",
    ),
    "counts of a document that does not count": (left_out, "takes no part in the score has counts"),
    "a level that only a second site can give": (
        task(OPEN_MEAN, trust="run again"),
        f"tasks.{OPEN_MEAN}.trust: is run again, which only a second site can say",
    ),
    "a level that the answers do not give": (
        task(CLOSED_MEAN, trust="answers checked"),
        f"tasks.{CLOSED_MEAN}.trust: is answers checked, and the check finds self-reported",
    ),
    "a folder in it": (lambda folder: (folder / "more").mkdir(), "more: is no file of a submission"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_named_with_file_key_and_remedy(medtasks, submission, edit):
    change, words = EDITS[edit]
    change(submission)
    found = medtasks("submit", "--check", PLACE)
    assert found.code == 1, found.text
    assert words in found.out and "→ " in found.out and "✗ " in found.out


def test_scores_that_are_all_right_in_every_file_still_do_not_fit_the_counts(medtasks, submission):
    """Whoever edits scores and documents alike must edit the counts behind them, too."""

    def better(content):
        content["tasks"][OPEN_COUNTS].update(score=1.0)
        content["groups"]["bridge"]["score"] = 1.0

    edited(submission, better)
    all_right(submission)
    assert "does not follow from its counts" in medtasks("submit", "--check", PLACE).out


def test_a_huge_file_is_refused_before_it_is_read(medtasks, submission):
    with (submission / "submission.json").open("r+b") as file:
        file.truncate(records.MOST_BYTES + 1)
    assert "submission.json: is larger than 8,000,000 bytes" in medtasks("submit", "--check", PLACE).out


def test_the_same_model_and_conditions_twice_are_refused_and_others_are_not(
    medtasks, run, submission, tmp_path
):
    again = PLACE.replace("2026-05-01", "2026-06-01")
    refused = medtasks("submit", "run", "-o", again)
    assert refused.code == 2 and "Org/random-label/2026-05-01" in refused.err and "delete" in refused.err
    assert not (tmp_path / again).exists()
    run("part", "--limit", "5")
    assert medtasks("submit", "part", "-o", again, "--no-answers").code == 0
    both = medtasks("submit", "--check", PLACE, again)
    assert both.code == 0 and "all scores follow; answers checked in 2 of 4 tasks" in both.out
    assert both.out.count("self-reported") == 2
    other = tmp_path / "submissions" / "org" / "Random-Label" / "2026-07-01"
    shutil.copytree(submission, other)
    edited(other, lambda content: content.update(model="org/Random-Label", date="2026-07-01"))
    assert "are those of Org/random-label/2026-05-01" in medtasks("submit", "--check", other).out


def test_a_message_quotes_nothing_that_a_terminal_would_obey(medtasks, submission):
    top(schema="\x1b[31m red")(submission)
    assert "\x1b" not in medtasks("submit", "--check", PLACE).text


def test_a_place_that_is_none_is_said(medtasks, submission):
    assert "is not ORG/MODEL/DATE" in medtasks("submit", "--check", "submissions").out
    assert "no such folder" in medtasks("submit", "--check", PLACE.replace("05-01", "05-03")).out


def test_columns_of_another_type_are_refused(medtasks, submission):
    column(submission, "score", lambda values: compute.cast(values, pa.string()))
    assert "has other columns than the format" in medtasks("submit", "--check", PLACE).out
