"""`medtasks reproduce`: the validation of the jury as printed, with own runs beside it."""

import pytest

from medtasks_ext.judge.report import Figure, write_figures
from medtasks_ext.registry import registry
from tests.report.made import write_run
from tests.report.test_atlas import own_figures, read, recomputed

TASK = "medhelm_mediqa"


@pytest.fixture
def judged(tmp_path):
    """A run with what `medtasks judge` writes of its judges and of clinicians."""
    folder = write_run(tmp_path / "run", "ORG/model", {"medhelm_medqa": [1.0, 0.0, 0.0, 1.0]})
    people = ("clinicians", TASK)
    write_figures(
        folder,
        [
            Figure(*people, "clinicians + jury", "mean of axes", "ICC(3,k)", 0.4, 0.1, 0.6, 25),
            Figure(*people, "clinicians + jury", "mean of axes", "ICC(3,k), not clamped", 0.4, -0.1, 0.6, 25),
            Figure(*people, "clinicians + ROUGE-L", "mean of axes", "ICC(3,k)", 0.3, 0.0, 0.5, 25),
            Figure(*people, "clinicians", "mean of axes", "mean pairwise ICC(3,k)", 0.5, 0.4, 0.6, 7),
            Figure("robustness", TASK, "one", "score", "Spearman", 0.5, n=3),
            Figure("robustness", TASK, "mean of 7 juries", "score", "Spearman", 0.9, n=3),
            Figure("robustness", TASK, "mean of 7 juries", "score", "same top 2", 6 / 7, n=3),
            Figure("judge_axes", TASK, "one", "accuracy", "mean", 4.2, n=4),
            Figure("judge_axes", TASK, "one", "accuracy", "s.d.", 0.8, n=4),
        ],
    )
    return folder


def test_printed_limits_follow_from_the_value_and_the_number_of_answers():
    printed = [row for row in read("medhelm_jury.csv") if row["source_table"] == "ED Table 4" and row["n"]]
    found = recomputed("medhelm", "edtable4")
    assert len(printed) == 9
    for row in printed:
        for limit in ("low", "high"):
            again = found[row["dataset"], f"{row['rater']}, {limit}"]
            assert again == pytest.approx(float(row[f"ci_{limit}"]), abs=0.0056)
    assert found["Combined", "clinician, low"] is None  # of a bootstrap over pairs


def test_own_runs_stand_beside_the_published_validation(medtasks, judged, tmp_path):
    title = registry().tasks[TASK][0].metadata.name
    juries = "3 runs, mean of 7 juries"
    for block, expected in {
        "edtable4": {
            (f"ORG/model, {title}", "LLM-jury"): (0.4, "n = 25"),
            (f"ORG/model, {title}", "LLM-jury, low"): (0.1, "n = 25"),
            (f"ORG/model, {title}", "ROUGE-L"): (0.3, "n = 25"),
            (f"ORG/model, {title}", "clinician"): (0.5, "n = 7"),
        },
        "edtable5": {
            (f"ORG/model, {title}", "mean Spearman correlation"): (0.9, juries),
            (f"ORG/model, {title}", "top-2 consistency"): (pytest.approx(600 / 7), juries),
        },
        "edtable6": {
            (f"one, ORG/model, {title}", "accuracy mean"): (4.2, "n = 4"),
            (f"one, ORG/model, {title}", "accuracy sd"): (0.8, "n = 4"),
        },
    }.items():
        done = medtasks("reproduce", f"medhelm:{block}", judged, "-o", "out")
        assert done.code == 0, done.text
        found = own_figures(tmp_path / "out", f"medhelm_{block}")
        assert {key: found[key] for key in expected} == expected


def test_the_scale_of_detectable_effects_is_said_and_the_published_one_stands_beside(medtasks):
    done = medtasks("reproduce", "medhelm:mde")
    assert "jury scores as x / 5" in done.out and "ACI-Bench" in done.out
