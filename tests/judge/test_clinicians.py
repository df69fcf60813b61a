"""A jury and metrics beside clinicians: agreement, by answer quality, judges by axis."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from medtasks_ext.judge.cases import judged_tasks, response_hash
from medtasks_ext.metrics.generation import stemmed_rouge_scores
from medtasks_ext.registry import registry
from tests.judge.server import Reply, coded, verdict
from tests.judge.test_command import AXES, TASK, figures, number, rated, ratings_file

N = 12
#: from few to all words of the references, which are `Reference reply N.`
ANSWERS = {
    f"d{i}": " ".join(["Reference", "reply", f"{i}"][: 1 + i % 3]) + " and more words" * (i % 4) + "."
    for i in range(N)
}
ANN = [1, 2, 3, 4, 5, 4, 3, 3, 4, 5, 2, 4]
BEN = [2, 2, 3, 3, 4, 4, 4, 3, 5, 5, 1, 3]
JURY = [1, 3, 3, 4, 4, 5, 2, 3, 5, 5, 1, 2]


def z(values):
    return stats.zscore(np.asarray(values, dtype=float), ddof=1)


def icc(one, other):
    """ICC(3,2) of two columns by plain sums of squares."""
    table = np.column_stack([one, other])
    n = len(table)
    cases = 2 * ((table.mean(axis=1) - table.mean()) ** 2).sum() / (n - 1)
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    return (cases - (residual**2).sum() / (n - 1)) / cases


@pytest.fixture
def judged(tasks, data_dir, run, jury, medtasks, server, tmp_path):
    """Judge with ratings of clinicians: `judged(jury=..., ann=..., ben=...)`."""
    from tests.judge.made import make_rows, rows

    make_rows(data_dir, "qa", rows(N))

    def call(jury_grades=JURY, ann=ANN, ben=BEN):
        server.script = lambda asked, seen: Reply(verdict(asked.axes, jury_grades[number(asked)]))
        folder = run("qa", answers=ANSWERS)
        path = ratings_file(tmp_path / "r.csv", [*rated(ann, "ann"), *rated(ben, "ben")])
        done = medtasks.done("judge", "--jury", jury("one", "two"), "--ratings", path)
        return folder, done

    return call


def value(folder, **wanted):
    [found] = figures(folder, **wanted)
    return found["value"]


def rouge():
    return [stemmed_rouge_scores(ANSWERS[f"d{i}"], f"Reference reply {i}.")["rouge_l"] for i in range(N)]


def test_jury_and_metric_stand_beside_the_clinicians(judged):
    folder, done = judged()
    people = (z(ANN) + z(BEN)) / 2
    for source, scores in (("jury", JURY), ("ROUGE-L", rouge())):
        between = f"clinicians + {source}"
        expected = icc(people, z(scores))
        assert value(folder, between=between, measure="ICC(3,k)") == pytest.approx(max(0, expected))
        [found] = figures(folder, between=between, measure="ICC(3,k)")
        assert found["low"] <= found["value"] <= found["high"] and found["n"] == N
    among = icc(z(ANN), z(BEN))
    assert value(folder, between="clinicians", measure="mean pairwise ICC(3,k)") == pytest.approx(among)
    assert "ROUGE-L" in done.out and "BERTScore-F is left out" in done.out and f"{among:.3f}" in done.out


def test_an_icc_below_0_counts_as_0_on_both_sides(judged):
    folder, done = judged(jury_grades=[6 - x for x in JURY])
    assert value(folder, between="clinicians + jury", measure="ICC(3,k)") == 0
    judged(ben=[6 - x for x in BEN])
    assert value(folder, between="clinicians", measure="mean pairwise ICC(3,k)") == 0
    assert "below 0 counts as 0" in done.out


def test_who_is_nearer_by_answer_quality(judged):
    folder, done = judged()
    quality = (np.array(ANN) + BEN) / 2
    people, sources = z(z(ANN) + z(BEN)), {"jury": z(JURY), "ROUGE-L": z(rouge())}
    far = {name: np.abs(scores - people) for name, scores in sources.items()}
    levels = {
        "all": quality > 0,
        "low": quality < 3,
        "moderate": (quality >= 3) & (quality <= 4),
        "high": quality > 4,
    }
    for level, here in levels.items():
        assert here.any()
        for name, scores in sources.items():
            rho = value(folder, table="quality", item=level, between=name, measure="Spearman")
            if rho is not None:
                assert rho == pytest.approx(stats.spearmanr(scores[here], people[here]).statistic)
        for near, away in (("jury", "ROUGE-L"), ("ROUGE-L", "jury")):
            for measure, margin in (("nearer to clinicians", 0), ("much nearer to clinicians", 0.5)):
                share = ((far[away] - far[near]) > margin)[here].mean()
                found = value(
                    folder, table="quality", item=level, between=f"{near} rather than {away}", measure=measure
                )
                assert found == pytest.approx(share)
    assert "by the clinicians' rating" in done.out and "moderate" in done.out


def test_bertscore_joins_where_it_is_switched_on(judged, monkeypatch):
    monkeypatch.setenv("MEDTASKS_BERTSCORE", "1")

    def score(texts, references, model_type):
        found = np.array([len(text) / 100 for text in texts])
        return found, found, found

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(score=score))
    folder, done = judged()
    people = (z(ANN) + z(BEN)) / 2
    expected = icc(people, z([len(ANSWERS[f"d{i}"]) for i in range(N)]))
    found = value(folder, between="clinicians + BERTScore-F", measure="ICC(3,k)")
    assert found == pytest.approx(max(0, expected))
    assert "BERTScore-F rather than jury" in done.out and "left out" not in done.out


def test_judges_by_axis_have_mean_and_sd(run, jury, medtasks, server):
    grades = {"one": [1, 2, 3, 4, 5, 5], "two": [4, 4, 4, 4, 5, 3]}

    def script(asked, seen):
        grade = grades[asked.model][number(asked)]
        by_axis = {axis: min(5, grade + (axis == "clarity")) for axis in asked.axes}
        return Reply(coded({axis: {"score": x, "explanation": "x"} for axis, x in by_axis.items()}))

    server.script = script
    folder = run("qa")
    done = medtasks("judge", "--jury", jury("one", "two"))
    for judge, given in grades.items():
        for axis in AXES:
            expected = np.minimum(5, np.array(given) + (axis == "clarity"))
            row = {"table": "judge_axes", "between": judge, "item": axis}
            assert value(folder, measure="mean", **row) == pytest.approx(expected.mean())
            assert value(folder, measure="s.d.", **row) == pytest.approx(expected.std(ddof=1))
    assert "ratings of judges, mean (s.d.)" in done.out and "3.333 (1.633)" in done.out


def test_ratings_of_an_answer_that_is_another_one_now_are_refused(run, medtasks, jury, tmp_path):
    """Those that name the answer, as `medtasks study forms` writes them."""
    folder, columns = run("qa", answers=ANSWERS), ("task", "document", "rater", "axis", "score", "response")
    [task] = judged_tasks(folder, registry(), [TASK])
    hashes = {case.document: response_hash(case) for case in task.cases}
    rows = [(*row, hashes[row[1]]) for row in rated(ANN[:6], "ann")]
    path = ratings_file(tmp_path / "given.csv", rows, columns)
    asked = ("--jury", jury("one", "two"), "--ratings", path, "--dry-run")
    medtasks.done("judge", folder, *asked)
    other = run("qa", folder="other", answers={**ANSWERS, "d1": "Another answer."})
    done = medtasks("judge", other, *asked)
    assert done.code == 2 and "the answer to d1 is another one than was rated" in done.err
