"""One condition differs at a time: the table says what follows, and every output obeys."""

import itertools
import json

import polars as pl
import pytest

from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import (
    STRATEGIES,
    asked_strategy,
    dataset_and_strategy,
    is_strategy,
    strategy_order,
    strategy_title,
    suffix_of,
)
from medtasks_ext.registry.tasks import ANSWER_BUDGET
from medtasks_ext.results.conditions import RULES, Facts, comparable, differences, facts, of_the_paper
from medtasks_ext.runs.conditions import Conditions, Judge
from tests.conftest import hashed_anew
from tests.report.made import write_run
from tests.run_files import edited

TASK, SECOND = "bridge_chip_ctc", "bridge_ehrqa_primary_department"
N = registry().datasets[TASK].metadata.n_test
ASKED = Facts(
    facts(Conditions()),
    strategy="five_shot", version="1", wording="own", artefact=("a", "1"), prompt="p", examples="e",
    examples_cut=False, source="suite", revision="v", rows="r", documents="all", n=9, n_of_suite=9,
    held_out=0, budget=100, answers_cut=True, context=8_000, inputs_cut=False,
    decoding=(("top_p", 1),), stop=(), seed=1, rounding=(), template=True, system=True, turns=True,
    template_hash="text-3",
    jury=((Judge("a"), Judge("b")), None), requests=('{"temperature": 0.0}',) * 2,
    protocol=("likert", "own", "1"), engine="vllm", versions=(("vllm", "1"),),
)  # fmt: skip
OTHER = {
    "strategy": "cot", "version": "2", "wording": "official", "artefact": ("a", "2"), "prompt": "q",
    "examples": "f", "examples_cut": True, "source": "rebuilt", "revision": "w", "rows": "s",
    "documents": "the first 3", "n": 3, "held_out": 5, "budget": 50, "context": 4_000, "inputs_cut": True,
    "decoding": (("temperature", 1),), "seed": 2, "template": False, "system": False,
    "generation": (("n", 2),), "stop": ("e",), "differs": True, "system_text": "text-0", "delimiter": "' '",
    "arguments": (("eos_string", "e"),), "variant": (("quantization", "fp8"),), "own_template": "text-1",
    "local_template": "text-2", "template_hash": "text-4",
    "brought": (("repetition_penalty", 1.1),), "rounding": (("dtype", "float16"),), "turns": False,
    "jury": ((Judge("c"),), None),
    "requests": ('{"temperature": 1.0}',), "protocol": ("likert", "own", "2"), "judged": 0.5, "engine": "hf",
    "versions": (("vllm", "2"),),
}  # fmt: skip
HARMLESS = {
    "template", "system", "variant", "brought", "rounding", "engine", "versions", "seed", "context",
    "held_out", "revision", "artefact",
    "local_template", "template_hash",
}  # fmt: skip


def test_the_same_conditions_are_the_same():
    assert comparable(ASKED, ASKED) and differences(ASKED, Facts(ASKED)) == ()


@pytest.mark.parametrize("field", RULES)
def test_each_condition_counts_in_both_directions(field):
    changed = Facts(ASKED, **{field: OTHER[field]})
    for one, other in ((ASKED, changed), (changed, ASKED)):
        assert comparable(one, other) is (field in HARMLESS)
        found = differences(one, other)
        assert found and all(item.known and item.one != item.other for item in found)


@pytest.mark.parametrize("field", [field for field in RULES if field not in ("strategy", "judged")])
def test_what_nobody_recorded_is_no_bar_and_is_said_to_be_unknown(field):
    unknown = Facts(ASKED, **{field: None})
    assert comparable(ASKED, unknown)
    assert not [item for item in differences(ASKED, unknown) if item.known]
    # of two runs of one model each is named, but for juries
    joined = differences(ASKED, unknown, joined=True)
    assert [item.field for item in joined] == [field] * (field not in ("jury", "requests", "protocol"))


def test_of_several_differences_one_that_moves_a_score_is_enough():
    found = differences(ASKED, Facts(ASKED, seed=2, prompt="q"))
    assert [(item.field, item.moves) for item in found] == [("prompt", True), ("seed", False)]


def test_a_budget_that_no_answer_filled_is_harmless():
    one = Facts(ASKED, answers_cut=False)
    assert comparable(one, Facts(one, budget=50)) and differences(one, Facts(one, budget=50))
    assert not comparable(one, Facts(one, budget=50, answers_cut=True))


@pytest.mark.parametrize(
    ("dataset", "context", "budget"),
    [
        ("bridge_mie", None, 3_072),  # an eighth of the context, at most 3,072
        ("bridge_mie", 8_192, 1_024),
        ("mlb_cmeee", None, ANSWER_BUDGET),  # the paper says none: the task's own
        ("clinicbench_medqa", 8_192, ANSWER_BUDGET),
    ],
)
def test_a_budget_beside_an_unstated_one_is_harmless_unless_it_may_have_cut(dataset, context, budget):
    paper = facts(of_the_paper(registry().datasets[dataset], "zero_shot"))
    assert paper["budget"] is None
    for tokens, cut in itertools.product((budget - 1, budget, budget + 1), (0, 3, None)):
        run = facts(Conditions(dataset=dataset, context=context, budget=tokens, answers_cut=cut))
        found = [item.moves for item in differences(run, paper) if item.field == "budget"]
        assert found == [tokens < budget and cut != 0], (tokens, cut)


@pytest.mark.parametrize("shots", range(9))
@pytest.mark.parametrize("strategy", ["zero_shot", "cot"])
def test_names_of_strategies_can_be_read_back(strategy, shots):
    name = asked_strategy(strategy, shots)
    assert is_strategy(name) and (name in STRATEGIES or str(shots) in strategy_title(name))
    if shots:
        assert dataset_and_strategy(TASK + suffix_of(name)) == (TASK, name)
    assert strategy_order(name) >= strategy_order("zero_shot")
    assert asked_strategy("five_shot", shots) == asked_strategy("zero_shot", shots)


GOOD, POOR = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30
AS_PUBLISHED = {"instruction": "official", "n_test": N}


def with_shots(shots):
    return {"config": {"task": TASK, "num_fewshot": shots}}


@pytest.mark.parametrize(
    ("shots", "strategy"), [(1, "1_shot"), (3, "3_shot"), (5, "five_shot"), (0, "zero_shot")]
)
def test_a_score_has_the_strategy_by_which_it_was_asked(medtasks, tmp_path, shots, strategy):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, record=with_shots(shots))
    outcome = medtasks.done("report", "a", "-o", "out", "--published", "none")
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(rows["strategy"]) == {strategy}
    named = f"{TASK}, {strategy_title(strategy)} " if shots else TASK
    assert named in outcome.out and "without a score" not in outcome.out
    assert set(pl.read_csv(tmp_path / "out" / "groups.csv")["strategy"]) == {strategy}
    medtasks("card", "a", "-o", "card")
    card = (tmp_path / "card" / "README.md").read_text(encoding="utf-8")
    assert f"mean score ({strategy_title(strategy)}" in card
    assert shots in (0, 5) or "mean score (zero-shot" not in card


def test_other_numbers_of_examples_are_not_ranked_together(medtasks, tmp_path):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD})
    write_run(tmp_path / "b", "ORG/b", {TASK: POOR}, record=with_shots(3))
    found = json.loads(medtasks("report", "a", "b", "--published", "none", "--json").out)
    assert found["pairs"] == []
    assert {row["rank_of"] for row in found["groups"]} == {1}


def test_runs_that_different_juries_judged_are_two_entries_and_are_not_compared(medtasks, tmp_path):
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD}, record={"jury": "gpt-4o"})
    write_run(tmp_path / "b", "ORG/a", {TASK: POOR}, record={"jury": "llama"})
    outcome = medtasks("compare", "a", "b")
    assert outcome.code == 2 and "judged by different juries (gpt-4o | llama)" in outcome.text
    found = json.loads(medtasks("report", "a", "b", "--published", "none", "--json").out)
    assert [entry["entry"] for entry in found["entries"]] == ["ORG/a (jury: gpt-4o)", "ORG/a (jury: llama)"]
    medtasks("card", "a", "-o", "card")
    assert "judged by gpt-4o" in (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")


def test_a_score_over_some_of_the_judgements_is_marked_bounded_unranked_and_on_no_card(medtasks, tmp_path):
    record = {"jury": "gpt-4o"}
    write_run(tmp_path / "a", "ORG/a", {TASK: GOOD, SECOND: GOOD}, record=record)
    with edited(tmp_path / "a", TASK) as stored:
        stored["conditions"]["judged"] = 0.75
        stored["metrics"] |= {"judged": 0.75, "scored": 0.75, "judgements_missing": 10}
    hashed_anew(tmp_path / "a")
    outcome = medtasks("report", "a", "--published", "none", "-o", "out")
    assert "judged in part" in outcome.out
    score = stored["metrics"]["score"]
    assert f"between {0.75 * score:.3f} and {0.75 * score + 0.25:.3f}" in outcome.out
    groups = pl.read_csv(tmp_path / "out" / "groups.csv")
    [suite] = groups.filter(axis="suite").to_dicts()
    assert (suite["rank"], suite["pending"]) == (None, 1)
    medtasks("card", "a", "-o", "card")
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert (
        f"1 task left out: scored on a part of the rows or judgements: `{TASK}` (75% of the judgements)"
        in card
    )
    assert f"| `{TASK}` |" not in card and f"| `{SECOND}` |" in card


def test_what_keeps_a_run_from_its_place_among_published_models_is_said(medtasks, tmp_path):
    values = [1.0] * (N // 2) + [0.0] * (N - N // 2)
    write_run(tmp_path / "own", "ORG/own", {TASK: values})
    write_run(tmp_path / "asked", "ORG/asked", {TASK: values}, loaded=AS_PUBLISHED)
    write_run(tmp_path / "few", "ORG/few", {TASK: values[:7]}, loaded={**AS_PUBLISHED, "n_test": 7})
    found = {
        name: json.loads(medtasks("report", name, "--strategy", "zero_shot", "--json").out)
        for name in ("own", "asked", "few")
    }
    assert any(
        "other conditions than" in text and "wording in 1" in text for text in found["own"]["differences"]
    )
    assert any(
        "other conditions than" in text and "documents in 1" in text for text in found["few"]["differences"]
    )
    assert not any("other conditions than" in text for text in found["asked"]["differences"])
