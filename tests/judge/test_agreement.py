"""Agreement of raters, also of ratings with gaps, against published examples and plain code."""

import sys
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.judge.cases import judged_tasks, response_hash
from medtasks_ext.metrics.generation import rouge_scores
from medtasks_ext.registry import registry
from medtasks_ext.stats import agreement
from tests.judge.made import make_rows, rows
from tests.judge.server import Reply, coded, verdict
from tests.judge.test_command import AXES, TASK, figures, number, rated, ratings_file

# Shrout & Fleiss (1979), Table 2: six targets, four judges; ICC(3,1) = .71, ICC(3,4) = .91
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
SCALE = [1, 2, 3, 4, 5]
ratings = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=40)


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


def test_icc_of_shrout_and_fleiss():
    found = agreement.icc_3k(SHROUT_FLEISS)
    assert found.value == pytest.approx(0.909, abs=0.0005)
    cases, error = anova(SHROUT_FLEISS)
    assert (cases, error) == (pytest.approx(11.24, abs=0.01), pytest.approx(1.02, abs=0.01))
    assert found.value == pytest.approx((cases - error) / cases)
    assert (found.low, found.high) == (pytest.approx(0.676, abs=0.001), pytest.approx(0.986, abs=0.001))


# MedHELM, Extended Data Table 4: ICC(3,k) with its interval; 31 and 25 instances. The paper prints 0 for a
# negative lower limit, and two decimals.
@pytest.mark.parametrize(
    ("n", "icc", "low", "high"),
    [
        (56, 0.474, 0.10, 0.69), (56, 0.361, 0, 0.63), (56, 0.441, 0.05, 0.67),
        (31, 0.305, 0, 0.67), (31, 0.445, 0, 0.73), (31, 0.250, 0, 0.64),
        (25, 0.625, 0.15, 0.83), (25, 0.343, 0, 0.71), (25, 0.668, 0.25, 0.85),
    ],
)  # fmt: skip
def test_the_interval_is_the_papers(n, icc, low, high):
    found = agreement.icc_3k_interval(icc, n, k=2)
    assert (max(0, found[0]), found[1]) == (pytest.approx(low, abs=0.0056), pytest.approx(high, abs=0.0056))


@given(
    st.integers(2, 4).flatmap(
        lambda k: st.lists(st.tuples(*[st.integers(1, 5)] * k), min_size=3, max_size=12)
    )
)
def test_icc_is_the_analysis_of_variance(table):
    cases, error = anova(table)
    found = agreement.icc_3k(table)
    if cases < 1e-9:
        assert found.value is None
    else:
        assert found.value == pytest.approx((cases - error) / cases, abs=1e-9)
        assert found.low <= found.value + 1e-9 and found.value - 1e-9 <= found.high <= 1


def kappa_by_hand(pairs, weight):
    """1 - (weighted disagreement observed) / (expected), from the table of counts."""
    n = len(pairs)
    observed = sum(weight(a, b) for a, b in pairs) / n
    expected = sum(weight(a, b) for (a, _), (_, b) in product(pairs, pairs)) / n**2
    return None if expected == 0 else 1 - observed / expected


@given(ratings)
def test_kappa_is_the_textbooks(pairs):
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    for quadratic, weight in ((False, lambda a, b: a != b), (True, lambda a, b: (a - b) ** 2)):
        found = agreement.kappa(one, other, SCALE, quadratic=quadratic)
        expected = kappa_by_hand(pairs, weight)
        assert found is None if expected is None else found == pytest.approx(expected, abs=1e-9)


@given(ratings)
def test_spearman_is_pearson_of_ranks(pairs):
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found = agreement.spearman(one, other)
    if len(set(one)) < 2 or len(set(other)) < 2:
        assert found is None
    else:
        ranks = stats.rankdata(one), stats.rankdata(other)
        assert found == pytest.approx(float(np.corrcoef(*ranks)[0, 1]), abs=1e-9)


def test_groups_are_compared_by_the_means_of_z_scores():
    clinicians = {"x": {"1": 1, "2": 3, "3": 5}, "y": {"1": 2, "2": 2.5, "3": 3}}
    jury = {"j": {"1": 4, "2": 4.5, "3": 5, "4": 1}}
    found = agreement.group_agreement(clinicians, jury)
    assert found.value == pytest.approx(1) and found.n == 3  # all three are linear in each other
    # by hand: x and y are -1, 0, 1 as z-scores, and j (1, 0, -1) is their mirror image
    against = agreement.group_agreement(clinicians, {"j": {"1": 5, "2": 4, "3": 3}})
    assert against.value is None  # the means over both are 0 everywhere: no variance between cases


def test_the_baseline_is_the_mean_over_pairs_that_share_two_instances():
    raters = {
        "a": {"1": 1, "2": 2, "3": 4, "4": 3},
        "b": {"1": 2, "2": 3, "3": 4, "4": 1},
        "c": {"3": 1, "4": 5, "5": 3},
        "d": {"5": 2, "6": 4},
    }
    z = {
        rater: dict(zip(by, stats.zscore(list(by.values()), ddof=1), strict=True))
        for rater, by in raters.items()
    }
    expected = []
    for one, other in combinations("abcd", 2):
        shared = sorted(set(z[one]) & set(z[other]))
        if len(shared) >= 2:
            cases, error = anova([[z[one][i], z[other][i]] for i in shared])
            expected.append((cases - error) / cases)
    assert min(expected) < -100  # two instances and nearly no variance between them: it counts as 0
    expected = [max(0.0, value) for value in expected]
    found = agreement.pairwise_baseline(raters)
    assert found.n == len(expected) == 3
    assert found.value == pytest.approx(sum(expected) / 3)
    assert 0 <= found.low <= found.value <= found.high <= max(expected) + 1e-9
    assert agreement.pairwise_baseline(raters) == found


def test_the_icc_of_all_raters_counts_what_all_rated():
    table = np.array([[1, 2, 1], [2, 2, 3], [4, 5, 4], [5, 4, 5], [3, np.nan, 1]], dtype=float)
    raters = {
        name: {str(unit): float(x) for unit, x in enumerate(table[:, place]) if not np.isnan(x)}
        for place, name in enumerate("abc")
    }
    found = agreement.icc_of_raters(raters)
    assert found.value == pytest.approx(agreement.icc_3k(stats.zscore(table[:4], axis=0, ddof=1)).value)
    assert found.n == 4 and found.low < found.value < found.high
    assert agreement.icc_of_raters({**raters, "same": dict.fromkeys("0123", 3.0)}).value is None


def test_nothing_to_compare_gives_no_number():
    assert agreement.pairwise_baseline({"a": {"1": 1}}).value is None
    assert agreement.kappa([], [], SCALE) is None and agreement.kappa([3, 3], [3, 3], SCALE) is None
    for raters in (
        {},
        {"a": {"x": 1.0}, "b": {"y": 2.0}},
        {"a": {"x": 4.0, "y": 4.0}, "b": {"x": 4.0, "y": 4.0}},
    ):
        assert agreement.icc_of_raters(raters).value is None


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
    for judge, grade in grades.items():
        for axis in AXES:
            expected = np.minimum(5, np.array(grade) + (axis == "clarity"))
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
