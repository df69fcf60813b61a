"""Ratings of answers on the axes of their jury: forms, what is refused, and what ratings amount to."""

import csv
import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

from tests.human.conftest import GATED, MODELS, TASK, N, fill, key_of, read, write
from tests.judge.made import AXES

HEADER = ["form", "row", "digest", "question", "answer", "axis", "asks", "rating [1|2|3|4|5]"]


@pytest.fixture
def likert(runs, medtasks):
    """Export forms of the kind `likert`: `likert("--experts", 3)` writes the folder `forms`."""

    def call(*options, out="forms", of=MODELS[:1]):
        done = medtasks("human", "export", *of, "--kind", "likert", "--tasks", TASK, *options, "-o", out)
        assert done.code == 0, done.text
        return runs / out

    return call


def opinion(expert, document, axis, run=0):
    """What an expert thinks of an answer, 1-5."""
    return 1 + (int(document[1:]) * (1 + list(AXES).index(axis)) + (expert == 3) + run) % 5


def answer_all(folder, judge=opinion):
    """Fill all forms by opinion; the key says what a row is about."""
    key = key_of(folder)["forms"]
    for form, rows in key.items():

        def choose(row, question, rows=rows, form=form):
            about = rows[row]["about"]
            return judge(int(form[-1]), about["document"], about["axis"], MODELS.index(about["run"]))

        fill(folder / f"{form}.csv", choose)
    return sorted(folder.glob("*.csv"))


def taken(medtasks, folder, *files, options=()):
    return medtasks("human", "ingest", *files, "--key", folder / "key.json", "-o", "out", *options)


def test_a_form_asks_each_axis_of_the_jury_on_its_scale_and_names_nobody(likert):
    folder = likert("--experts", 2, of=MODELS)
    for expert in ("expert_1", "expert_2"):
        header, *rows = read(folder / f"{expert}.csv")
        # the second run left one document without an answer, which nobody rates in either run
        assert header == HEADER and len(rows) == 2 * (N - 1) * len(AXES)
        shown = {(row[5], row[6]) for row in rows}
        assert shown == {
            (axis.capitalize(), f"{question}\n1: very poor; 5: the best") for axis, question in AXES.items()
        }
        text = (folder / f"{expert}.csv").read_text() + (folder / f"{expert}.html").read_text()
        for secret in ("llama", "gpt-x", "trace of", "<think>", TASK, "response", "likert"):
            assert secret not in text
    orders = [[row[3:6] for row in read(folder / f"expert_{i}.csv")[1:]] for i in (1, 2)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])
    again = likert("--experts", 2, out="again", of=MODELS)
    assert [row[3:] for row in read(again / "expert_1.csv")] == [
        row[3:] for row in read(folder / "expert_1.csv")
    ]
    assert read(again / "expert_1.csv")[1][2] != read(folder / "expert_1.csv")[1][2]


def test_each_answer_has_as_many_raters_as_wanted_and_the_work_is_shared(likert):
    folder = likert("--experts", 5, "--raters", 2)
    raters = defaultdict(set)
    for form, rows in key_of(folder)["forms"].items():
        for row in rows.values():
            raters[row["about"]["document"]].add(form)
    assert len(raters) == N and all(len(found) == 2 for found in raters.values())
    work = Counter(form for found in raters.values() for form in found)
    assert max(work.values()) - min(work.values()) <= 1
    assert len({frozenset(found) for found in raters.values()}) > 2  # not always the same two


def test_ratings_become_a_file_and_figures(likert, medtasks, runs):
    folder = likert("--experts", 3)
    done = taken(medtasks, folder, *answer_all(folder))
    assert done.code == 0, done.text
    rows = list(csv.DictReader((runs / "out" / "ratings.csv").open()))
    assert len(rows) == 3 * N * len(AXES)
    for row in rows:
        assert (row["task"], row["run"]) == (TASK, MODELS[0])
        assert int(row["score"]) == opinion(int(row["rater"][-1]), row["document"], row["axis"])
    results = json.loads((runs / "out" / "results.json").read_text())
    figures = {(item["axis"], item["measure"]): item for item in results["agreement"]}
    table = np.array(
        [[opinion(expert, f"d{i}", "clarity") for expert in (1, 2, 3)] for i in range(N)], dtype=float
    )
    z = stats.zscore(table, axis=0, ddof=1)
    cases = table.shape[1] * np.var(z.mean(axis=1), ddof=1)
    residual = z - z.mean(axis=1, keepdims=True)
    error = (residual**2).sum() / ((N - 1) * 2)
    icc = figures["clarity", "ICC(3,k) after z-scoring"]
    assert icc["value"] == pytest.approx((cases - error) / cases) and icc["n"] == N
    assert figures["clarity", "kappa, quadratic weights"]["n"] == 3
    assert {measure for axis, measure in figures if axis == "mean of axes"} == {
        "ICC(3,k) after z-scoring", "mean pairwise ICC(3,k) after z-scoring",
        "alpha, ordinal", "alpha, interval",
    }  # fmt: skip
    assert all(item["low"] <= item["value"] <= item["high"] for item in figures.values())
    assert "agreement of clinicians" in done.out and "medtasks judge run runs/llama-med" in done.text
    [whole] = [item for item in results["scores"] if item["axis"] == "accuracy"]
    means = [np.mean([opinion(e, f"d{i}", "accuracy") for e in (1, 2, 3)]) for i in range(N)]
    assert (whole["mean"], whole["sd"]) == pytest.approx((np.mean(means), np.std(means, ddof=1)))


def test_a_form_that_excel_saved_with_semicolons_is_read(likert, medtasks, runs):
    folder = likert("--experts", 2)
    files = answer_all(folder)
    assert taken(medtasks, folder, *files).code == 0
    before = (runs / "out" / "ratings.csv").read_text()
    for file in files:
        write(file, read(file), delimiter=";")
    assert taken(medtasks, folder, *files).code == 0
    assert (runs / "out" / "ratings.csv").read_text() == before


@pytest.mark.parametrize("value", ["6", "0", "3.5", "good", "-1"])
def test_a_rating_off_the_scale_gets_one_message_and_what_was_taken_in_stays(likert, medtasks, runs, value):
    folder = likert("--experts", 2)
    files = answer_all(folder)
    assert taken(medtasks, folder, *files).code == 0
    before = {path: path.read_bytes() for path in (runs / "out").iterdir()}
    table = read(files[0])
    table[3][-1] = value
    write(files[0], table)
    done = taken(medtasks, folder, *files)
    assert done.code == 2 and done.err.count("medtasks:") == 1
    assert f"rating is {value!r}" in done.err and "write one of: 1, 2, 3, 4, 5" in done.err
    assert {path: path.read_bytes() for path in (runs / "out").iterdir()} == before


def test_a_form_filled_half_twice_or_by_somebody_else_gets_one_message(likert, medtasks, runs):
    folder = likert("--experts", 2)
    one, two = answer_all(folder)
    table = read(one)
    half = [row if i < 10 else [*row[:-1], ""] for i, row in enumerate(table)]
    write(runs / "half.csv", half)
    done = taken(medtasks, folder, runs / "half.csv", two)
    assert done.code == 2 and f"expert_1: {3 * N - 9} of {3 * N} rows have no answer" in done.err
    # the second expert filled the first one's form
    done = taken(medtasks, folder, one, runs / "half.csv")
    assert done.code == 2 and done.err.count("is also in") == 1 and "more rows alike" in done.err
    other = likert("--experts", 1, out="other")
    [foreign] = answer_all(other)
    done = taken(medtasks, folder, foreign, two)
    assert done.code == 2 and done.err.count("belongs to another export") == 1
    assert not (runs / "out").exists()


def test_results_are_not_replaced_by_fewer_or_other_ones(likert, medtasks, runs):
    folder = likert("--experts", 2)
    one, two = answer_all(folder)
    assert taken(medtasks, folder, one, two).code == 0
    before = (runs / "out" / "results.json").read_bytes()
    done = taken(medtasks, folder, two, options=["--partial"])
    assert done.code == 2 and "rows of expert_1 that are not given now" in done.err
    other = likert("--experts", 1, out="other")
    done = taken(medtasks, other, *answer_all(other))
    assert done.code == 2 and "results of another export" in done.err
    assert (runs / "out" / "results.json").read_bytes() == before


def test_what_cannot_be_exported_is_refused(runs, medtasks):
    export = ("human", "export", MODELS[0], "--kind", "likert", "-o", "forms")
    done = medtasks(*export)
    assert done.code == 2 and "no tasks given" in done.err
    done = medtasks(*export, "--tasks", TASK, "--experts", 2, "--raters", 3)
    assert done.code == 2 and "3 of 2 experts" in done.err
    done = medtasks("human", "export", MODELS[0], "--kind", "pairwise", "--raters", 2, "-o", "forms")
    assert done.code == 2 and "every expert rates all" in done.err
    done = medtasks("human", "export", MODELS[0], "--kind", "stars", "-o", "forms")
    assert done.code == 2 and "likert" in done.err


def test_a_gated_form_says_so(medtasks, runs):
    done = medtasks(
        "human", "export", MODELS[0], "--kind", "likert", "--tasks", GATED, "--experts", 1, "-o", "forms"
    )
    assert done.code == 0 and "permits" in done.err
    assert "Handle it as the agreement" in (runs / "forms" / "expert_1.html").read_text()
