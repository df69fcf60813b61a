"""Verdicts on Medmarks' judged sets are read as its own code reads them."""

from __future__ import annotations

import ast
import random
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from medtasks_ext.judge.cases import rubric_of
from medtasks_ext.judge.protocol import weighted_mean
from medtasks_ext.judge.reply import UnreadableError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

#: For each dataset: what `medarc-verifiers` 0.1.0 made of 500 replies, in quarters, one to a digit.
SCORES: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("medmarks_scores.yaml").read_text(encoding="utf-8")
)
TAGS = ("semantically_correct", "matches_details", "substantive_addition", "critical_error")
SAID = (
    "true", "false", "True.", " FALSE ", "true or false", "[true]", "yes", "", "\n true\n", "untrue",
    "no", "1",
)  # fmt: skip
VALUES = (
    "true", "false", '"true"', '" False "', "null", "1", "0", '"yes"', '"untrue"', "[]", '{"a": 1}', '""',
)  # fmt: skip
WORDS = (
    "yes", "Yes.", "no", "No", "not", "know", "YES", "[yes]", "I think", "the diagnosis", "is correct",
    "diagnosis", "yes/no", "none", "**yes**", "y e s", "\n", "eyes", "sí",
)  # fmt: skip
NOISE = (
    "", "Briefly: ", "```json\n", "\n```", "<think>{}</think>", "}", "{", "<analysis>same</analysis>\n", "\\",
)  # fmt: skip


def replies(name: str, n: int = 500) -> Iterator[str]:
    """Invented replies of a judge, most of them not as they were asked for."""
    rng = random.Random(name)
    for _ in range(n):
        if name == "medmarks_careqa_open":
            names = [tag for tag in TAGS if rng.random() < 0.85] + rng.choices(TAGS, k=rng.randrange(2))
            rng.shuffle(names)
            ends = [tag if rng.random() < 0.95 else "b" for tag in names]
            parts = [f"<{tag}>{rng.choice(SAID)}</{end}>" for tag, end in zip(names, ends, strict=True)]
            text = rng.choice(("\n", " ", "")).join(parts)
        elif name == "medmarks_medcasereasoning":
            text = " ".join(rng.choices(WORDS, k=rng.randrange(4)))
        else:
            keys = ["reasoning", "predicted_correct"] + (["predicted_correct"] if rng.random() < 0.1 else [])
            said = [f'"{key}": {rng.choice(VALUES)}' for key in keys if rng.random() < 0.9]
            text = "{" + ", ".join(said) + ("}" if rng.random() < 0.95 else "")
        if name != "medmarks_medcasereasoning":
            text = rng.choice(NOISE) + text + rng.choice(NOISE)
        yield text


def quarters(name: str, text: str) -> int | None:
    """The score of a reply in quarters; None of one that is no verdict."""
    rubric = rubric_of(registry().datasets[name], "official")
    assert rubric is not None and rubric.wording == "official" and rubric.schema is None
    try:
        ratings = rubric.ratings(rubric.read(text, {}))
    except UnreadableError:
        return None
    return round(4 * sum(ratings.values()) / len(ratings))


@pytest.mark.parametrize("name", sorted(SCORES))
def test_each_score_is_that_of_medmarks_code_and_the_unread_is_no_verdict(name: str, released: Path) -> None:
    if not list(released.glob("official/*/careqa.py")):
        pytest.skip("the files of Medmarks are not here: medtasks data fetch official")
    found = [quarters(name, text) for text in replies(name)]
    assert len(found) == len(SCORES[name]) == 500
    for text, ours, theirs in zip(replies(name), found, SCORES[name], strict=True):
        if ours is None:  # the code counts it as the lowest score; here it is asked for again
            assert theirs == "0" and not any(f"<{tag}>" in text and f"</{tag}>" in text for tag in TAGS), text
        else:
            assert ours == int(theirs), text
    above = [score for score in found if score]
    assert len(above) > 20
    assert found.count(None) < 250


# MedHELM's released rule for HealthBench beside the authors' rule.


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
