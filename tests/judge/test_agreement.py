"""Agreement of raters, also of ratings with gaps, against published examples and plain code."""

import numpy as np
import pytest
from scipy import stats

from medtasks_ext.judge.cases import judged_tasks, response_hash
from medtasks_ext.metrics.generation import rouge_scores
from medtasks_ext.registry import registry
from medtasks_ext.stats import agreement
from tests.judge.conftest import make_rows, rows
from tests.judge.server import Reply, verdict
from tests.judge.test_command import TASK, figures, number, rated, ratings_file

# Shrout & Fleiss (1979), Table 2: six targets, four judges; ICC(3,1) = .71, ICC(3,4) = .91
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def anova(table):
    """Two-way analysis of variance by plain sums of squares."""
    n, k = len(table), len(table[0])
    grand = sum(map(sum, table)) / (n * k)
    rows = [sum(row) / k for row in table]
    columns = [sum(row[j] for row in table) / n for j in range(k)]
    total = sum((value - grand) ** 2 for row in table for value in row)
    between_rows = k * sum((mean - grand) ** 2 for mean in rows)
    between_columns = n * sum((mean - grand) ** 2 for mean in columns)
    error = total - between_rows - between_columns
    return between_rows / (n - 1), error / ((n - 1) * (k - 1))


def test_the_icc_is_that_of_shrout_and_fleiss_and_its_interval_the_papers():
    found = agreement.icc_3k(SHROUT_FLEISS)
    cases, error = anova(SHROUT_FLEISS)
    assert found.value == pytest.approx(0.909, abs=0.0005)
    assert found.value == pytest.approx((cases - error) / cases)
    assert (found.low, found.high) == (pytest.approx(0.676, abs=0.001), pytest.approx(0.986, abs=0.001))
    # MedHELM, Extended Data Table 4: n, ICC(3,k), its interval; 0 is printed for a negative lower limit
    for n, icc, *limits in (
        (56, 0.474, 0.10, 0.69), (56, 0.361, 0, 0.63), (31, 0.305, 0, 0.67), (25, 0.668, 0.25, 0.85),
    ):  # fmt: skip
        low, high = agreement.icc_3k_interval(icc, n, k=2)
        assert [max(0, low), high] == pytest.approx(limits, abs=0.0056)


# A jury and metrics beside clinicians: agreement, by answer quality, judges by axis.


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
    """ICC(3,2) of two columns."""
    cases, error = anova(np.column_stack([one, other]).tolist())
    return (cases - error) / cases


@pytest.fixture
def judged(tasks, data_dir, run, jury, medtasks, server, tmp_path):
    """Judge with ratings of clinicians: `judged(jury=..., ann=..., ben=...)`."""
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
    pairs = [(ANSWERS[f"d{i}"], [f"Reference reply {i}."]) for i in range(N)]
    return [rouge_scores(*pair, "en", stemming=True)["rougeL"] for pair in pairs]


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
