"""Roles that a chat template refuses, here or at a server: one message, and nothing else is lost."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.template import rendering
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt
from tests.conftest import ROOT, outcomes, write_jsonl
from tests.judge.server import Reply, Server
from tests.run_files import result_of, samples_file

SAYS = "Only user, assistant and system roles are supported!"
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'tool' %}{{ raise_exception('"
    + SAYS
    + "') }}{% endif %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<assistant>"
)
TALK = [
    {"role": "user", "content": "Is my potassium of 5.9 dangerous?"},
    {"role": "assistant", "content": "Let me look at the result."},
    {"role": "tool", "content": "potassium 5.9 mmol/l"},
    {"role": "user", "content": "And now?"},
]


@pytest.fixture
def rows(data_dir):
    """Local dialogues of two tasks; the second of the first task has a turn of a tool."""
    dataset = registry().datasets["healthbench_full"]
    lines = [json.loads(line) for line in dataset.sample_file.read_text(encoding="utf-8").splitlines()]
    good = [{**row} for row in lines if row.pop("_split") == "test"][:4]
    write_jsonl(data_dir / "healthbench/hard/test.jsonl", good)
    write_jsonl(data_dir / "healthbench/full/test.jsonl", [good[0], {**good[1], "prompt": TALK}, *good[2:]])


def refuses(asked, seen):
    if any(turn["role"] == "tool" for turn in asked.body["messages"]):
        return Reply(status=400, body=json.dumps({"error": {"message": SAYS, "type": "BadRequestError"}}))
    return Reply("Please call your doctor today.")


def test_a_servers_template_that_refuses_a_role_is_named_and_all_else_is_kept(
    medtasks, rows, tmp_path, monkeypatch
):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    with Server(refuses) as server:
        command = (
            "run", "--model", "local-chat-completions", "--apply_chat_template", "--output_path", "run",
            "--model_args", f"model=m,base_url={server.url}/chat/completions",
            "--tasks", "healthbench_full,healthbench_hard",
        )  # fmt: skip
        done = medtasks(*command)
        asked = len(server.asked)
        again = medtasks(*command)
    assert done.code == 1 and again.code == 1
    assert done.text.count("the model's chat template refuses the roles of the turns (HTTP 400") == 1
    assert "serve the model with a template that takes such roles" in done.text
    assert "potassium" not in done.text and "Traceback" not in done.text
    assert len(outcomes(tmp_path / "run", "healthbench_full")) == 3
    hard = result_of(tmp_path / "run", "healthbench_hard")
    assert hard["metrics"]["valid"] == 1
    assert len(server.asked) <= asked + 1  # the refused request alone


def laid_out(template: str, place: int) -> str:
    settings = Settings(apply_chat_template=True)
    task = build_task(registry(), "healthbench_full", settings)
    return rendered_prompt(task, task.eval_docs[place], settings, rendering(template, {}, "file"))


def test_a_template_that_refuses_a_dialogue_is_named(rows, monkeypatch):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    with pytest.raises(MedtasksError) as refused:
        laid_out(TEMPLATE, 1)
    assert refused.value.what == f"the chat template refuses the turns of test row 2: {SAYS}"
    assert laid_out(TEMPLATE, 0)


def test_a_template_that_quotes_a_turn_is_not_quoted(rows, monkeypatch):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    quotes = TEMPLATE.replace(f"'{SAYS}'", "m.content")
    with pytest.raises(MedtasksError) as refused:
        laid_out(quotes, 1)
    assert refused.value.what == "the chat template refuses the turns of test row 2"


@pytest.mark.engine
def test_a_tokenizers_own_template_ends_its_task_alone(medtasks, rows, tmp_path):
    """Through transformers: a tiny model whose template refuses turns of tools."""
    from tests.engine.tiny_model import make

    model = make(tmp_path / "tiny", template=TEMPLATE, ends=True, layers=1)
    done = medtasks(
        "run", "--model", "hf", "--model_args", f"pretrained={model}", "--device", "cpu",
        "--apply_chat_template", "--gen_kwargs", "max_gen_toks=8", "--output_path", "run",
        "--tasks", "healthbench_full,healthbench_hard",
    )  # fmt: skip
    assert done.code == 1 and "Traceback" not in done.text
    assert f"the chat template refuses the turns of test row 2: {SAYS}" in done.text
    assert done.text.count("choose a template that takes such roles") == 1
    assert result_of(tmp_path / "run", "healthbench_hard")


# Models without a chat template get the plain text that their suite lays out, from their own file.


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


def test_a_layout_that_is_none_is_one_message(medtasks):
    run = medtasks(
        "run", "--model", "oracle", "--tasks", "bridge_mie", "--data", "sample",
        "--metadata", json.dumps({"layout": "{% for %}"}),
    )  # fmt: skip
    assert run.code == 2 and "no valid Jinja in line 1" in run.text


def test_gemini_and_deepseek_r1_get_instructions_in_the_user_turn(asked):
    (prompt, *_) = asked("gemma-2-9b-it", "mie", "zero_shot")
    assert "[system]" not in prompt and f"[user] {INSTRUCTION}\n\nInput:\n" in prompt
    for model in ("api/google", "open/DeepSeek-R1", "open/BioMistral-7B"):  # the same switch
        content = yaml.safe_load((ROOT / "model_configs" / f"{model}.yaml").read_text())
        assert content["metadata"]["system_role"] is False and content["apply_chat_template"] is True
