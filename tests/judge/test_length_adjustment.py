"""What the length of an answer takes off its score or adds to it, as a task file says."""

import numpy as np
import pytest
from pydantic import ValidationError

from medtasks_ext.registry import forget, registry
from medtasks_ext.rows.spec import LengthAdjustment
from tests.conftest import rewrite_answers, sample_rows
from tests.judge.test_rubric import by_hand, says, weight
from tests.run_files import result_of

TASK = "healthbench_professional_chats"
RULE = LengthAdjustment(center=2000, points=0.0147, per=500)


@pytest.mark.parametrize(
    ("score", "characters", "adjusted"),
    [
        (0.6, 2000, 0.6),
        (0.6, 2500, 0.5853),
        (0.6, 1500, 0.6147),
        (0.6, 12_000, 0.306),  # 20 steps of 0.0147
        (1.0, 913, 1.0319578),  # a document may have more than 1; this one is printed by others' code
        (-0.6, 3000, -0.6294),
        (0.0, 0, 0.0588),
    ],
)
def test_scores_that_are_worked_by_hand(score, characters, adjusted):
    assert RULE.adjusted(score, "ä" * characters) == pytest.approx(adjusted, abs=1e-12)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"center": 1, "points": 0, "per": 1},
        {"center": -1, "points": 1, "per": 1},
        {"center": 1, "points": 1, "per": 0},
    ],
)
def test_a_rule_that_is_none_is_refused(said):
    with pytest.raises(ValidationError):
        LengthAdjustment(**said)


@pytest.fixture
def judged(medtasks, tmp_path, server, jury):
    """The stored results of a run whose answers have these lengths; criteria above 6 points are met."""

    def run(lengths: list[int]) -> dict:
        command = ("run", "--model", "oracle", "--tasks", TASK, "--data", "sample", "--output_path", "run")
        assert medtasks(*command).code == 0
        ids = [row["id"] for row in sample_rows(TASK)]
        rewrite_answers(tmp_path / "run", TASK, dict(zip(ids, ("x" * n for n in lengths), strict=True)))
        assert medtasks("rescore", "run").code == 0
        server.script = says(lambda asked: weight(asked) > 6)
        medtasks.done("judge", "--jury", jury("one"), "--prompts", "own")
        return result_of("run", TASK)

    return run


def test_the_adjusted_score_stands_beside_the_score(judged):
    lengths = [100 + 900 * place for place in range(len(sample_rows(TASK)))]
    stored = judged(lengths)
    scores = [
        by_hand([item["points"] for item in row["rubric_items"]], lambda points: points > 6)
        for row in sample_rows(TASK)
    ]
    adjusted = [score - 0.0147 * (n - 2000) / 500 for score, n in zip(scores, lengths, strict=True)]
    assert stored["metrics"]["score"] == pytest.approx(np.mean(scores))
    assert stored["metrics"]["score_length_adjusted"] == pytest.approx(np.mean(adjusted))
    interval = stored["intervals"]["score_length_adjusted"]
    assert interval["interval_low"] < np.mean(adjusted) < interval["interval_high"]


def test_the_mean_is_cut_at_nothing(judged):
    metrics = judged([60_000] * len(sample_rows(TASK)))["metrics"]
    assert metrics["score_length_adjusted"] == 0 < metrics["score"]


def test_a_mistake_in_the_rule_is_one_message(medtasks, tmp_path, monkeypatch):
    folder = registry().datasets[TASK].folder
    own = tmp_path / "mine" / "professional"
    own.mkdir(parents=True)
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    text = text.replace("task: healthbench_professional_chats", "task: professional")
    text = text.replace("dataset: healthbench_professional/chats", "dataset: own/professional")
    (own / "task.yaml").write_text(text.replace("per: 500", "per: 500, beyond: 1"), encoding="utf-8")
    for name in ("card.yaml", "sample.jsonl"):
        (own / name).write_bytes((folder / name).read_bytes())
    monkeypatch.setenv("MEDTASKS_TASKS", str(own.parent))
    forget()
    outcome = medtasks("dev", "validate", "professional")
    assert outcome.code != 0 and outcome.text.count("judge.length_adjustment.beyond") == 1
    forget()
