"""`medtasks plan`: documents, tokens, GPU hours and cost before a run, by rules that it prints."""

import json
import os
import random
import struct
import sys
from hashlib import sha256
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT, sft_row, write_jsonl

CHIP_CTC = ("--tasks", "bridge_chip_ctc")


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
    """The plan as JSON."""

    def call(*arguments: object) -> dict[str, Any]:
        outcome = medtasks("plan", *arguments, "--json")
        assert outcome.code == 0, outcome.text
        return json.loads(outcome.out)

    return call


def run_of(medtasks, tmp_path, task: str, *more: object) -> tuple[list[str], list[str]]:
    """Prompts and gold answers of a run."""
    medtasks("run", "--model", "oracle", "--tasks", task, "--output_path", task, *more)
    lines = (tmp_path / task / f"samples_{task}.jsonl").read_text().splitlines()
    samples = [json.loads(line) for line in lines]
    return [item["arguments"][0][0] for item in samples], [item["target"] for item in samples]


@pytest.mark.parametrize("task", ["bridge_chip_ctc", "bridge_chip_ctc_cot", "bridge_chip_ctc_5shot"])
@pytest.mark.parametrize("chat", [True, False])
def test_tokens_are_those_of_the_run_where_the_rows_are_here(
    medtasks, plan, tokenizers, chip_ctc, tmp_path, task, chat
):
    tokenizers["ORG/Model-8B"].chat_template = "yes" if chat else None
    prompts, golds = run_of(medtasks, tmp_path, task, *(["--apply_chat_template"] if chat else []))
    (found,) = plan("ORG/Model-8B", "--tasks", task)["tasks"]
    assert found["prompt_tokens"] == sum(map(len, prompts))
    steps = 300 if task.endswith("_cot") else 0
    assert found["output_tokens"] == sum(steps + len(gold) + 1 for gold in golds)
    assert (found["documents"], found["counted"], found["at_hand"]) == (8, 8, True)
    assert found["most_output_tokens"] == 8 * 4000


def test_of_many_documents_some_are_counted_and_scaled(medtasks, plan, tokenizers, data_dir, tmp_path):
    numbers = random.Random(3)
    rows = [
        sft_row(
            i, "长" * numbers.randint(10, 900), f"clinical trial criterion: {'年龄' if i % 3 else '疾病'}"
        )
        for i in range(300)
    ]
    write_jsonl(data_dir / "bridge" / "chip_ctc" / "test.jsonl", rows)
    prompts, _ = run_of(medtasks, tmp_path, "bridge_chip_ctc", "--apply_chat_template")
    (found,) = plan("ORG/Model-8B", *CHIP_CTC)["tasks"]
    assert (found["documents"], found["counted"]) == (300, 100)
    assert found["prompt_tokens"] == pytest.approx(sum(map(len, prompts)), rel=0.1)


def test_sample_rows_stand_in_for_rows_that_are_not_here_and_are_marked(medtasks, plan, tokenizers):
    from medtasks_ext.registry import registry

    record = plan("ORG/Model-8B", *CHIP_CTC)
    (found,) = record["tasks"]
    assert found["documents"] == registry().datasets["bridge_chip_ctc"].metadata.n_test
    assert not found["at_hand"] and not found["sample"]
    printed = medtasks("plan", "ORG/Model-8B", *CHIP_CTC).out
    row = next(line for line in printed.splitlines() if line.strip().startswith("bridge_chip_ctc"))
    assert row.count("~") == 3 and "~: rows of 1 of 1 tasks are not on this machine" in printed


UPMC = "bridge_clinicalnotes_upmc"  # a file by its URL
ADE = "bridge_ade_identification"  # a dataset of the hub


def test_nothing_is_fetched_for_a_plan_and_what_was_fetched_is_used(plan, monkeypatch, tmp_path):
    from medtasks_ext.registry import registry

    connected = []
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("socket.getaddrinfo", lambda *address, **_: connected.append(address) or [])
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    before = plan("openai", "--tasks", f"{UPMC},{ADE}")["tasks"]
    download = registry().datasets[UPMC].config["dataset_kwargs"]["medtasks_dataset"]["source"]["download"]
    url = download["test"][0].format(revision=download["revision"])
    file = tmp_path / "cache" / sha256(url.encode()).hexdigest()[:16] / url.rpartition("/")[2]
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{i}\tfever\tDenies FEVER, case {i}.\tNegated\n" for i in range(60)))
    after = plan("openai", "--tasks", f"{UPMC},{ADE}")["tasks"]
    assert [item["at_hand"] for item in before] == [False, False]
    assert [item["at_hand"] for item in after] == [True, False]
    assert 0 < after[0]["documents"] < before[0]["documents"] and not connected
    assert "HF_HUB_OFFLINE" not in os.environ


def test_questions_asked_with_several_orders_of_options_count_as_often(plan, tokenizers):
    (found,) = plan("ORG/Model-8B", "--tasks", "mlb_cmexam")["tasks"]
    assert found["documents"] == 3 * 6811


def test_by_default_everything_is_planned_that_anyone_can_score(plan, medtasks):
    from medtasks_ext.registry import registry

    tasks = registry()
    record = plan("openai", "--strategy", "cot")
    assert {item["task"] for item in record["tasks"]} == set(tasks.leaves("medtasks_scoreable_cot"))
    assert {item["strategy"] for item in record["tasks"]} == {"cot"}
    total = record["total"]
    for key in ("documents", "prompt_tokens", "output_tokens"):
        assert total[key] == sum(item[key] for item in record["tasks"])
    printed = medtasks("plan", "openai", "--suite", "mlb").out
    assert f"{len(tasks.leaves('mlb'))} " in printed and "medtasks run --tasks mlb --config openai" in printed


def test_output_follows_the_printed_rule(medtasks, plan, tokenizers, chip_ctc):
    plain, thinking, short = (
        plan("ORG/Model-8B", *CHIP_CTC, *more)["total"]
        for more in ((), ("--thinking",), ("--thinking", "--max_gen_toks", "500"))
    )
    assert thinking["output_tokens"] - plain["output_tokens"] == 8 * 2000
    assert short["output_tokens"] == short["most_output_tokens"] == 8 * 500
    printed = medtasks("plan", "ORG/Model-8B", *CHIP_CTC, "--thinking").out
    assert "and before them 2,000 of reasoning" in " ".join(printed.split())
    thinks = plan("Qwen3-8B-Thinking", *CHIP_CTC)["total"]
    assert thinks["most_output_tokens"] == 8 * 16_384 and thinks["output_tokens"] > 8 * 2000


def test_gpu_hours_follow_the_size_of_the_model(medtasks, plan, tokenizers, chip_ctc):
    tokenizers["ORG/Model-80B-A8B"] = Characters()
    dense = plan("ORG/Model-8B", *CHIP_CTC, "--gpu-hour-price", "2.5")
    total = dense["total"]
    seconds = 16e9 * (total["prompt_tokens"] / (0.4 * 989e12) + total["output_tokens"] / (0.1 * 989e12))
    assert dense["gpu_hours"] == pytest.approx(seconds / 3600)
    assert dense["gpus"] == 1 and dense["cost"] == pytest.approx(2.5 * seconds / 3600)
    mixture = plan("ORG/Model-80B-A8B", *CHIP_CTC)
    assert mixture["gpu_hours"] == pytest.approx(dense["gpu_hours"]) and mixture["cost"] is None
    assert mixture["gpus"] == 4 and mixture["hours"] == pytest.approx(mixture["gpu_hours"] / 4)
    printed = " ".join(medtasks("plan", "ORG/Model-8B", *CHIP_CTC).out.split())
    assert "an estimate" in printed and "8 billion parameters (the name)" in printed
    assert "assumptions, not measurements" in printed


def test_a_measured_throughput_replaces_the_rule(plan, tokenizers, chip_ctc):
    tokenizers["ORG/Unnamed"] = Characters()
    record = plan("ORG/Unnamed", *CHIP_CTC)
    assert record["gpu_hours"] is None and "give --throughput" in record["rules"][-1]
    record = plan("ORG/Unnamed", *CHIP_CTC, "--throughput", "50", "--gpus", "2", "--gpu-hour-price", "3")
    hours = (record["total"]["prompt_tokens"] + record["total"]["output_tokens"]) / 50 / 3600
    assert record["hours"] == pytest.approx(hours) and record["gpu_hours"] == pytest.approx(2 * hours)
    assert record["cost"] == pytest.approx(6 * hours)


def test_a_provider_costs_what_its_file_says(medtasks, plan, chip_ctc):
    record = plan("openai", *CHIP_CTC)
    total = record["total"]
    assert record["gpu_hours"] is None and record["gpus"] is None
    assert record["cost"] == pytest.approx((total["prompt_tokens"] * 2.5 + total["output_tokens"] * 10) / 1e6)
    assert record["most_cost"] == pytest.approx((total["prompt_tokens"] * 2.5 + 8 * 4000 * 10) / 1e6)


def test_without_a_tokenizer_the_rule_for_characters_is_said(medtasks, plan, tokenizers, chip_ctc):
    outcome = medtasks("plan", "ORG/Other-8B", *CHIP_CTC)
    printed = " ".join(outcome.out.split())
    assert outcome.code == 0
    assert "by characters per token" in printed and "0.9 in Chinese and Japanese" in printed
    assert "the hub cannot be reached" in printed


def test_characters_count_by_their_script():
    from medtasks_ext.runner.plan import count_by_script

    assert count_by_script(["a" * 38, "я" * 31, "患" * 9, "", "a" * 38 + "患" * 9]) == [10, 10, 10, 0, 20]


def safetensors(path, **shapes: list[int]) -> None:
    header = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()
    }
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def test_the_weights_of_a_folder_say_its_size(plan, tokenizers, chip_ctc, tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    safetensors(folder / "model-1.safetensors", embed=[1000, 64], norm=[64])
    safetensors(folder / "model-2.safetensors", head=[1000, 64])
    tokenizers[str(folder)] = Characters()
    record = plan(folder, *CHIP_CTC)
    work = record["total"]["prompt_tokens"] / 0.4 + record["total"]["output_tokens"] / 0.1
    assert record["gpu_hours"] == pytest.approx(2 * 128_064 * work / 989e12 / 3600)


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("Qwen/Qwen3-0.6B", 0.6, 0.6),
        ("Qwen/Qwen3-235B-A22B", 235, 22),
        ("mistralai/Mixtral-8x7B-Instruct", 56, 56),
        ("axiong/PMC_LLaMA_13B", 13, 13),
        ("org/bert-base", None, None),
        ("org/model-v2", None, None),
    ],
)
def test_a_name_says_the_size(name, total, active):
    from medtasks_ext.runner.model_size import size_of

    size = size_of(name)
    assert (size and size.total / 1e9, size and size.active / 1e9) == (total, active)


ERRORS = {
    "unknown model": (["Qwen3-8B-Thinkin"], "did you mean Qwen3-8B-Thinking"),
    "unknown suite": (["openai", "--suite", "bridges"], "unknown suite 'bridges'"),
    "unknown strategy": (["openai", "--strategy", "5shot"], "zero_shot, cot, five_shot"),
    "unknown task": (["openai", "--tasks", "bridge_chip_ct"], "bridge_chip_ctc"),
    "two choices": (["openai", "--open", "--suite", "mlb"], "keep one"),
    "no GPU": (["openai", "--gpus", "0"], "--gpus"),
}


@pytest.mark.parametrize(("arguments", "message"), ERRORS.values(), ids=ERRORS)
def test_bad_input_is_said_in_words(medtasks, arguments, message):
    outcome = medtasks("plan", *arguments)
    assert outcome.code == 2 and message in outcome.err and "Traceback" not in outcome.err


def test_a_folder_without_a_tokenizer_is_refused(medtasks, tokenizers, tmp_path):
    (tmp_path / "empty").mkdir()
    outcome = medtasks("plan", "empty", *CHIP_CTC)
    assert outcome.code == 2 and "empty: holds no tokenizer that can be loaded" in outcome.err


def test_a_model_that_the_hub_does_not_know_is_refused(medtasks, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError

    def unknown(*_: Any, **__: Any) -> None:
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unknown)
    outcome = medtasks("plan", "ORG/Nowhere", *CHIP_CTC)
    assert outcome.code == 2 and "ORG/Nowhere: the hub has no such model" in outcome.err


def test_a_malformed_file_of_ones_own_costs_only_its_task(medtasks, tokenizers, data_dir, chip_ctc):
    (chip_ctc / "bridge" / "MIE.SFT.json").write_text("{oops")
    outcome = medtasks("plan", "ORG/Model-8B", "--tasks", "bridge_chip_ctc,bridge_mie")
    assert outcome.code == 1 and "✗ bridge_mie: " in outcome.err and "bridge_chip_ctc" in outcome.out
    outcome = medtasks("plan", "ORG/Model-8B", "--tasks", "bridge_mie")
    assert outcome.code == 2 and "tasks that cannot be loaded: 1" in outcome.err


def test_sample_rows_that_are_asked_for_are_marked(medtasks, tokenizers, monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    outcome = medtasks("plan", "ORG/Model-8B", *CHIP_CTC)
    assert outcome.out.startswith("SAMPLE DATA") and "~" not in outcome.out


def test_every_bundled_configuration_of_a_model_can_be_planned():
    from medtasks_ext.cli.plan import find_model

    for folder, provider in (("open", False), ("api", True)):
        for path in (ROOT / "model_configs" / folder).glob("*.yaml"):
            model = find_model(path.stem)
            assert (model.config, model.provider) == (path.stem, provider)
            assert model.name in path.read_text()
