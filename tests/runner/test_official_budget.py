"""Answers have the tokens of the suite's own runs where the model is known not to reason."""

import json

import pytest
from lm_eval.config.evaluate_config import EvaluatorConfig

from medtasks_ext.cli.model import reasons
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task
from tests.run_files import result_of

DIALOG = "medhelm_med_dialog"


def budget(task, **settings):
    built = build_task(registry(), task, Settings(data="sample", **settings))
    return built.config.generation_kwargs["max_gen_toks"]


def test_a_direct_answer_has_the_suites_budget_and_any_other_the_longer_one():
    assert budget(DIALOG, official_budget=True) == budget(f"{DIALOG}_5shot", official_budget=True) == 80
    assert budget(f"{DIALOG}_cot", official_budget=True) == budget(DIALOG) == 4000


def test_a_letter_is_read_from_a_longer_response_and_keeps_its_room():
    assert registry().datasets["medhelm_medqa"].metadata.official_budget == 1
    assert budget("medhelm_medqa", official_budget=True) == 4000


def test_what_the_user_says_goes_first():
    assert budget(DIALOG, official_budget=True, gen_kwargs={"max_gen_toks": 300}) == 300


@pytest.mark.parametrize(
    ("model_args", "metadata", "expected"),
    [
        ({"pretrained": "meta-llama/Llama-3.1-8B-Instruct"}, {}, False),
        ({"pretrained": "Qwen/Qwen3-8B"}, {}, True),
        ({"pretrained": "Qwen/Qwen3-8B", "enable_thinking": False}, {}, False),
        ({"pretrained": "Qwen/Qwen3-8B"}, {"thinking": False}, False),
        ({"pretrained": "some/model"}, {"thinking": True}, True),
        ({"pretrained": "some/model"}, {}, None),
        ({}, {}, None),
    ],
)
def test_whether_a_model_reasons_is_known_from_its_configuration(model_args, metadata, expected):
    config = EvaluatorConfig(model="vllm", model_args=model_args, tasks=[DIALOG], metadata=metadata)
    assert reasons(config) is expected


def test_a_run_asks_with_the_suites_budget_and_records_it(medtasks, tmp_path):
    command = ("run", "--tasks", DIALOG, "--data", "sample", "--model", "oracle", "--output_path")
    assert medtasks(*command, str(tmp_path / "plain"), "--metadata", '{"thinking": false}').code == 0
    assert medtasks(*command, str(tmp_path / "thinks"), "--metadata", '{"thinking": true}').code == 0
    stored = [result_of(tmp_path / run, DIALOG) for run in ("plain", "thinks")]
    assert [record["conditions"]["budget"] for record in stored] == [80, 4000]


@pytest.mark.parametrize("suffix", ["", "_cot"])
@pytest.mark.parametrize(
    ("context", "tokens"), [(4096, 512), (8192, 1024), (24_576, 3072), (131_072, 3072), (None, 3072)]
)
def test_a_suites_rule_gives_each_model_its_share_of_the_context(medtasks, tmp_path, context, tokens, suffix):
    """BRIDGE's: an eighth, at most 3,072. The figures are those of its release 1.0.0 for these contexts."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": context} if context else {}))
    done = medtasks("run", "--tasks", f"bridge_mie{suffix}", "--data", "sample", "--model", "oracle",
                    "--model_args", f"pretrained={model}", "--metadata", '{"thinking": false}',
                    "--output_path", "run")  # fmt: skip
    assert done.code == 0, done.text
    record = result_of("run", f"bridge_mie{suffix}")
    assert record["conditions"]["budget"] == tokens


def test_a_model_that_reasons_or_may_reason_keeps_the_longer_budget():
    assert budget("bridge_mie") == budget("bridge_mie", context=8192) == 4000


def test_the_budget_is_shown(medtasks):
    shown = medtasks("preview", DIALOG, "--data", "sample").out
    assert "a model that does not reason has 80 tokens" in shown
    (record,) = json.loads(medtasks("ls", DIALOG, "--json").out)
    assert record["official_budget"] == 80
    shown = " ".join(medtasks("preview", "bridge_mie", "--data", "sample").out.split())
    assert "has 3,072 tokens, or 12.5% of its context if that is less, as in the suite's own runs" in shown
    (record,) = json.loads(medtasks("ls", "bridge_mie", "--json").out)
    assert record["official_budget"] == 3072
