"""`medtasks plan`: documents, prompt tokens, the most output, cost; what is not here is named."""

import json
import os
import shlex
import sys
from hashlib import sha256
from types import ModuleType
from typing import Any

import pytest

from tests.run_files import samples_file

CHIP_CTC = ("--tasks", "bridge_chip_ctc")
UPMC = "bridge_clinicalnotes_upmc"  # a file by its URL
ADE = "bridge_ade_identification"  # a dataset of the hub


class Characters:
    """A tokenizer of one token per character, whose template writes as the built-in models do."""

    chat_template = "yes"

    def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [list(map(ord, text)) for text in texts]}

    def apply_chat_template(self, turns: list[dict[str, str]], **_: Any) -> str:
        return "\n".join(f"[{turn['role']}] {turn['content']}" for turn in turns)


@pytest.fixture
def tokenizers(monkeypatch):
    """Name -> tokenizer, in place of what transformers would load."""
    known: dict[str, Any] = {"ORG/Model-8B": Characters()}
    module = ModuleType("transformers")

    class AutoTokenizer:
        @staticmethod
        def from_pretrained(name: str, **_: Any) -> Any:
            if name not in known:
                raise OSError(f"{name} has no tokenizer")
            return known[name]

    module.AutoTokenizer = AutoTokenizer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)
    return known


@pytest.fixture
def plan(medtasks):
    def call(*arguments: object) -> dict[str, Any]:
        outcome = medtasks.done("plan", *arguments, "--json")
        return json.loads(outcome.out)

    return call


def prompts_of_run(medtasks, tmp_path, task: str, *more: object) -> list[str]:
    medtasks("run", "--model", "oracle", "--tasks", task, "--output_path", task, *more)
    lines = samples_file(tmp_path / task, task).read_text().splitlines()
    return [json.loads(line)["arguments"]["gen_args_0"]["arg_0"] for line in lines]


@pytest.mark.parametrize("task", ["bridge_chip_ctc", "bridge_chip_ctc_cot", "bridge_chip_ctc_5shot"])
@pytest.mark.parametrize("chat", [True, False])
def test_prompts_are_those_of_the_run(medtasks, plan, tokenizers, chip_ctc, tmp_path, task, chat):
    tokenizers["ORG/Model-8B"].chat_template = "yes" if chat else None
    prompts = prompts_of_run(medtasks, tmp_path, task, *(["--apply_chat_template"] if chat else []))
    record = plan("ORG/Model-8B", "--tasks", task)
    (found,) = record["tasks"]
    assert found["prompt_tokens"] == sum(map(len, prompts)) == record["total"]["prompt_tokens"]
    assert (found["documents"], found["counted"], found["missing"]) == (8, 8, "")
    assert found["most_output_tokens"] == record["total"]["most_output_tokens"] == 8 * 4000
    assert record["command"].endswith("--apply_chat_template") is chat


def test_what_is_not_here_is_not_counted_and_how_to_get_it_is_said(medtasks, plan, chip_ctc):
    tasks = ("--tasks", f"bridge_chip_ctc,{UPMC},mlb_cmexam,medhelm_cdi_qa")
    record = plan("openai", *tasks)
    here, *absent = record["tasks"]
    assert [task["prompt_tokens"] for task in absent] == [None] * 3 and record["total"]["missing"] == 3
    assert absent[0]["missing"] == f"medtasks data fetch {UPMC}" and "files go to" in absent[2]["missing"]
    assert absent[1]["documents"] == 3 * 6811  # as many orders of the options
    assert record["total"]["prompt_tokens"] == here["prompt_tokens"]
    assert record["total"]["most_cost"] == pytest.approx(
        (here["prompt_tokens"] * 2.5 + here["most_output_tokens"] * 10) / 1e6
    )
    printed = " ".join(medtasks("plan", "openai", *tasks).out.split())
    assert "rows of 3 tasks are not on this machine" in printed
    assert f"to have rows: medtasks data fetch {UPMC}" in printed and "files go to medhelm/cdi_qa" in printed


def test_nothing_is_fetched_for_a_plan_and_what_was_fetched_is_used(plan, monkeypatch, tmp_path):
    from medtasks_ext.registry import registry

    connected = []
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("socket.getaddrinfo", lambda *address, **_: connected.append(address) or [])
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    before = plan("openai", "--tasks", f"{UPMC},{ADE}")["tasks"]
    download = registry().datasets[UPMC].blocks["rows"]["download"]
    url = download["test"][0].format(revision=download["revision"])
    file = tmp_path / "cache" / sha256(url.encode()).hexdigest()[:16] / url.rpartition("/")[2]
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{i}\tfever\tDenies FEVER, case {i}.\tNegated\n" for i in range(60)))
    after = plan("openai", "--tasks", f"{UPMC},{ADE}")["tasks"]
    assert [bool(item["missing"]) for item in before] == [True, True]
    assert [bool(item["missing"]) for item in after] == [False, True]
    assert 0 < after[0]["documents"] < before[0]["documents"] and not connected
    assert "HF_HUB_OFFLINE" not in os.environ


def test_a_configuration_with_a_price_that_is_none_is_refused(medtasks, tmp_path):
    (tmp_path / "own.yaml").write_text(
        "model: openai-chat-completions\nmodel_args: {model: m}\n"
        "metadata: {price: {input: -1, output: .nan}}\n"
    )
    outcome = medtasks("plan", "own.yaml", "--tasks", "medhelm_mediqa")
    assert outcome.code == 2 and "metadata.price.input" in outcome.err and not outcome.out
    run = medtasks("run", "--config", "own.yaml", "--tasks", "medhelm_mediqa", "--data", "sample")
    assert run.code == 2 and "metadata.price" in run.err and not run.out


def test_budgets_are_those_of_a_run_that_knows_whether_the_model_reasons(plan):
    """Qwen3 has 16,384 tokens where it thinks; where it does not, ACI-Bench gives an answer 768."""
    for model, tokens in (("Qwen/Qwen3-8B", 16_384), ("Qwen3-8B-Non-Thinking", 768), ("ORG/Nobody", 4000)):
        (task,) = plan(model, "--tasks", "medhelm_aci_bench")["tasks"]
        assert task["most_output_tokens"] == 120 * tokens
    (task,) = plan("Qwen3-8B-Non-Thinking", "--tasks", "bridge_mie")["tasks"]
    assert task["most_output_tokens"] == task["documents"] * 3072  # an eighth of its context, at most


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Qwen/Qwen3-8B"], ["--config", "Qwen3-8B-Thinking"]),
        (["openai"], ["--config", "openai"]),
        (["ORG/Nobody"], ["--model", "vllm", "--model_args", "pretrained=ORG/Nobody"]),
        (["ORG/Model-8B"], ["--model_args", "pretrained=ORG/Model-8B"]),
    ],
)
def test_the_command_runs_what_was_planned(plan, tokenizers, arguments, said):
    from medtasks_ext.cli.run import _parse

    record = plan(*arguments, *CHIP_CTC)
    program, command, *words = shlex.split(record["command"].replace("[", "").replace("]", ""))
    assert (program, command) == ("medtasks", "run") and " ".join(said) in " ".join(words)
    _parse(words)


def test_a_malformed_file_of_ones_own_costs_only_its_task(medtasks, tokenizers, data_dir, chip_ctc):
    (chip_ctc / "bridge" / "MIE.SFT.json").write_text("{oops")
    outcome = medtasks("plan", "ORG/Model-8B", "--tasks", "bridge_chip_ctc,bridge_mie")
    assert outcome.code == 1 and "✗ bridge_mie: " in outcome.err and "bridge_chip_ctc" in outcome.out
    outcome = medtasks("plan", "ORG/Model-8B", "--tasks", "bridge_mie")
    assert outcome.code == 2 and "tasks that cannot be loaded: 1" in outcome.err
