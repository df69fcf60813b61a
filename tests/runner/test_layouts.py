"""Models without a chat template get the plain text that their suite lays out, from their own file."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.run_files import result_of, samples_file

#: Hashes of what BRIDGE's code makes of the sample rows (benchmarks/official/bridge_messages.py).
LAYOUTS = json.loads((Path(__file__).parent / "layouts.json").read_text())
NAMES = {"mie": "MIE", "mednli": "MedNLI"}
INSTRUCTION = "Read the text.\nanswer: text"
SUFFIX = {"zero_shot": "", "five_shot": "_5shot"}


@pytest.fixture
def asked(medtasks, data_dir):
    """The prompts of a run with a model's file: `asked("meditron-7b", "mie", "zero_shot")`."""

    def run(model: str, dataset: str, strategy: str) -> list[str]:
        lines = (ROOT / "tasks/bridge" / dataset / "sample.jsonl").read_text().splitlines()
        rows = [{**json.loads(line), "instruction": INSTRUCTION} for line in lines]
        (data_dir / "bridge/example").mkdir(parents=True, exist_ok=True)
        for split, file in (("test", "{}.SFT.json"), ("fewshot", "example/{}.example.json")):
            part = [row for row in rows if row["_split"] == split]
            (data_dir / "bridge" / file.format(NAMES[dataset])).write_text(json.dumps(part))
        task = f"bridge_{dataset}{SUFFIX[strategy]}"
        done = medtasks(
            "run", "--config", model, "--model", "oracle", "--tasks", task, "--output_path", "run"
        )
        assert done.code == 0, done.text
        samples = samples_file("run", task).read_text().splitlines()
        return [json.loads(line)["arguments"]["gen_args_0"]["arg_0"] for line in samples]

    return run


@pytest.mark.parametrize("dataset", NAMES)
@pytest.mark.parametrize("strategy", SUFFIX)
@pytest.mark.parametrize("model", ["meditron-7b", "MeLLaMA-13B-chat"])
def test_the_text_is_the_one_that_bridges_code_makes(asked, model, strategy, dataset):
    found = [sha256(prompt.encode()).hexdigest()[:16] for prompt in asked(model, dataset, strategy)]
    assert found == LAYOUTS[dataset][model][strategy]


@pytest.mark.parametrize("strategy", SUFFIX)
@pytest.mark.parametrize("model", ["meditron-7b", "MeLLaMA-13B-chat"])
def test_plain_lm_eval_asks_with_the_same_layout(asked, built_tasks, model, strategy):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    metadata = yaml.safe_load((ROOT / f"model_configs/open/{model}.yaml").read_text())["metadata"]
    prompts = asked(model, "mie", strategy)
    manager = TaskManager(include_defaults=False, metadata=metadata)
    file = built_tasks / "bridge/mie" / ("task.yaml" if strategy == "zero_shot" else f"{strategy}.yaml")
    found = simple_evaluate("dummy", tasks=[str(file)], task_manager=manager, bootstrap_iters=0)
    (samples,) = found["samples"].values()
    assert [sample["arguments"][0][0] for sample in samples] == prompts


def test_the_layout_is_a_condition_of_the_result(asked):
    asked("meditron-7b", "mie", "zero_shot")
    record = result_of("run", "bridge_mie")
    assert record["conditions"]["template"] == "of the model's file"


@pytest.mark.parametrize(
    ("layout", "said"), [("{% for %}", "no valid Jinja in line 1"), (["a"], "metadata.layout: is no text")]
)
def test_a_layout_that_is_none_is_one_message(medtasks, layout, said):
    run = medtasks(
        "run", "--model", "oracle", "--tasks", "bridge_mie", "--data", "sample",
        "--metadata", json.dumps({"layout": layout}),
    )  # fmt: skip
    assert run.code == 2 and said in run.text


def test_gemini_and_deepseek_r1_get_instructions_in_the_user_turn(asked):
    (prompt, *_) = asked("gemma-2-9b-it", "mie", "zero_shot")
    assert "[system]" not in prompt and f"[user] {INSTRUCTION}\n\nInput:\n" in prompt
    for model in ("api/google", "open/DeepSeek-R1", "open/BioMistral-7B"):  # the same switch
        content = yaml.safe_load((ROOT / "model_configs" / f"{model}.yaml").read_text())
        assert content["metadata"]["system_role"] is False and content["apply_chat_template"] is True


def test_a_template_that_joins_texts_adds_nothing_to_the_instruction(medtasks, tmp_path):
    """As the templates of ChatML do: the end of the turn follows the instruction at once."""
    template = tmp_path / "chatml.jinja"
    template.write_text(
        "{% for turn in messages %}{{ '<|' + turn.role + '|>' + turn.content + '<|end|>' }}{% endfor %}"
    )
    shown = medtasks("preview", "bridge_mednli", "--data", "sample", "--json",
                     "--tokenizer", template)  # fmt: skip
    found = json.loads(shown.out)
    instruction, _, plain = found["prompt"].partition("\n\n")
    assert found["chat_prompt"] == f"<|system|>{instruction}<|end|><|user|>{plain}<|end|>"
