"""MedHELM's released rule for HealthBench beside the authors' rule."""

import ast
import zipfile

import pytest

from medtasks_ext.judge.protocol import weighted_mean

FILE = "helm/benchmark/annotation/health_bench_annotator.py"


@pytest.fixture
def released_score(released):
    """The function of the wheel that turns criteria and judgements into a score."""
    wheel = next(iter(released.glob("official/*/medhelm-0.8.0-*.whl")), None)
    if wheel is None:
        pytest.skip("the wheel of MedHELM 0.8.0 is not on this machine")
    with zipfile.ZipFile(wheel) as archive:
        tree = ast.parse(archive.read(FILE))
    (found,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "calculate_score"
    )
    found.returns = None
    for argument in found.args.args:
        argument.annotation = None
    names = {}
    exec(compile(ast.Module([found], []), FILE, "exec"), names)
    return names["calculate_score"]


def ours(points, met):
    names = [str(place) for place in range(len(points))]
    weights = dict(zip(names, points, strict=True))
    return float(weighted_mean(dict(zip(names, map(int, met), strict=True)), weights))


@pytest.mark.parametrize(
    ("points", "met", "by_medhelm", "by_authors"),
    [
        ([5, -8], [True, True], 1.0, -0.6),
        ([5, -8], [True, False], 5 / 7, 1.0),
        ([5, 5], [True, False], 0.5, 0.5),
    ],
)
def test_the_released_rule_rewards_penalties(released_score, points, met, by_medhelm, by_authors):
    items = [{"points": value} for value in points]
    assert released_score(items, [{"criteria_met": value} for value in met]) == pytest.approx(by_medhelm)
    assert ours(points, met) == pytest.approx(by_authors)


def test_the_released_rule_counts_a_judgement_for_another_criterion(released_score):
    items = [{"points": 9}, {"points": 1}]
    assert released_score(items, [{"criteria_met": True}]) == pytest.approx(0.9)  # it was the second's
