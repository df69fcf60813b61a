"""`medtasks plan`: documents, tokens, GPU hours and cost before a run, by rules that it prints."""

import json
import os
import random
import shlex
import struct
import sys
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import pytest
import yaml

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
    assert (found["documents"], found["counted"], found["rows_here"]) == (8, 8, True)
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
    assert not found["rows_here"] and not found["sample"]
    printed = medtasks("plan", "ORG/Model-8B", *CHIP_CTC).out
    (drawn,) = plan("ORG/Model-8B", "--tasks", "mlb_cmexam")["tasks"]
    assert drawn["documents"] == 3 * 6_811  # all that are there; MLB asked some of them
    row = next(line for line in printed.splitlines() if line.strip().startswith("bridge_chip_ctc"))
    assert row.count("~") == 3 and "~: rows of 1 of 1 tasks are not on this machine" in printed


# ---------------------------------------------------------------------- published lengths


def sample_documents(task: str) -> list[Any]:
    from medtasks_ext.registry import registry
    from medtasks_ext.runner.evaluate import Settings, build_task

    return build_task(registry(), task, Settings(data="sample")).eval_docs


def around(document: Any) -> int:
    """Characters of a prompt of the fake template, beside the input."""
    system = f"[system] {document['system']}\n" if document["system"] else ""
    return len(f"{system}[user] {document['prompt']}") - len(document.input)


def test_texts_that_are_not_here_have_their_published_mean_length(medtasks, plan, tokenizers):
    from medtasks_ext.registry.lengths import count_words, published_lengths

    task = "bridge_cardio_de"
    documents, lengths = sample_documents(task), published_lengths()[task]
    texts, golds = [item.input for item in documents], [item["target"] for item in documents]

    def characters(words: float, sample: list[str]) -> float:
        return words * sum(map(len, sample)) / sum(map(count_words, sample))

    text, gold = characters(lengths.input, texts), characters(lengths.output or 0, golds)
    assert text > 1.5 * fmean(map(len, texts))  # real records are longer than sample rows
    wide = ("--max_gen_toks", "99999")
    (found,) = plan("ORG/Model-8B", "--tasks", task, *wide)["tasks"]
    assert (found["lengths"], found["rows_here"]) == ("published", False)
    assert found["mean_prompt"] == pytest.approx(fmean(map(around, documents)) + text, abs=1)
    assert found["output_tokens"] == pytest.approx(found["documents"] * gold, rel=0.01)
    (shots,) = plan("ORG/Model-8B", "--tasks", f"{task}_5shot", *wide)["tasks"]
    longer = shots["mean_prompt"] - found["mean_prompt"] - 5 * (text + gold)
    assert 0 < longer < 5 * 30  # the marks of five examples' turns
    (cot,) = plan("ORG/Model-8B", "--tasks", f"{task}_cot", *wide)["tasks"]
    assert cot["output_tokens"] - found["output_tokens"] == 300 * found["documents"]
    printed = " ".join(medtasks("plan", "ORG/Model-8B", "--tasks", task).out.split())
    assert "texts of 1 task have the published mean length" in printed


def test_a_suites_own_count_of_prompt_tokens_stands_for_the_whole_prompt(plan, tokenizers):
    (found,) = plan("ORG/Model-8B", "--tasks", "medhelm_cdi_qa")["tasks"]
    assert found["lengths"] == "published" and found["mean_prompt"] == 63_153 + len("[user] ")
    (record,) = plan("ORG/Model-8B", "--tasks", "medhelm_mimic_bhc")["tasks"]
    documents = sample_documents("medhelm_mimic_bhc")
    assert record["mean_prompt"] == pytest.approx(2267 + fmean(map(around, documents)), abs=1)


def test_sample_rows_stand_in_where_no_length_is_published(medtasks, plan, tokenizers):
    both = ("--tasks", "mlb_maexam,bridge_mie")
    assert [task["lengths"] for task in plan("openai", *both)["tasks"]] == ["sample", "published"]
    printed = " ".join(medtasks("plan", "openai", *both).out.split())
    assert "texts of 1 task are those of the bundled sample rows" in printed


def test_an_answer_of_one_letter_is_no_free_text(plan):
    (found,) = plan("openai", "--tasks", "medhelm_medqa")["tasks"]
    assert found["output_tokens"] == 2 * found["documents"]  # a token and the end


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
    download = registry().datasets[UPMC].blocks["rows"]["download"]
    url = download["test"][0].format(revision=download["revision"])
    file = tmp_path / "cache" / sha256(url.encode()).hexdigest()[:16] / url.rpartition("/")[2]
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{i}\tfever\tDenies FEVER, case {i}.\tNegated\n" for i in range(60)))
    after = plan("openai", "--tasks", f"{UPMC},{ADE}")["tasks"]
    assert [item["rows_here"] for item in before] == [False, False]
    assert [item["rows_here"] for item in after] == [True, False]
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
    new = total["prompt_tokens"] - total["cached_tokens"]
    seconds = 16e9 * (new / (0.4 * 989e12) + total["output_tokens"] / (0.1 * 989e12))
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
    assert record["gpu_hours"] is None and any("give --throughput" in rule for rule in record["rules"])
    record = plan("ORG/Unnamed", *CHIP_CTC, "--throughput", "50", "--gpus", "2", "--gpu-hour-price", "3")
    hours = (record["total"]["prompt_tokens"] + record["total"]["output_tokens"]) / 50 / 3600
    assert record["hours"] == pytest.approx(hours) and record["gpu_hours"] == pytest.approx(2 * hours)
    assert record["cost"] == pytest.approx(6 * hours)


def test_a_provider_costs_what_its_file_says(medtasks, plan, chip_ctc):
    record = plan("openai", *CHIP_CTC)
    total = record["total"]
    assert record["gpu_hours"] is None and record["gpus"] is None
    assert record["cost"] == pytest.approx((total["prompt_tokens"] * 2.5 + total["output_tokens"] * 10) / 1e6)
    assert record["most_cost"] == pytest.approx((total["prompt_tokens"] * 2.5 + 8 * 3072 * 10) / 1e6)


def test_judging_is_bound_by_prompts_full_answers_and_full_replies(medtasks, plan, tmp_path):
    judge = {"name": "one", "model": "m", "base_url": "https://example.org/v1", "max_tokens": 500}
    price = {"input": 10, "output": 100, "batch": 0.5}
    (tmp_path / "jury.yaml").write_text(json.dumps({"judges": [{**judge, "price": price}]}))
    task = ("--tasks", "medhelm_mediqa")
    record = plan("openai", *task, "--jury", "jury.yaml")
    [found], [planned] = record["judging"], record["tasks"]
    read = planned["prompt_tokens"] + planned["most_output_tokens"]
    assert found["bound"]["usd"] == pytest.approx((read * 10 + planned["documents"] * 500 * 100) / 1e6)
    assert found["bound"]["batch"] == pytest.approx(found["bound"]["usd"] / 2)
    printed = medtasks("plan", "openai", *task, "--jury", "jury.yaml").out
    assert f"at most {found['bound']['usd']:,.2f} USD" in printed
    assert plan("openai", *task)["judging"][0]["jury"] == "medhelm"  # the suite's own
    assert plan("openai", *CHIP_CTC)["judging"] == []


@pytest.mark.parametrize("given", [("--jury", "nobody"), ("--gpu-hour-price", "nan")])
def test_a_wrong_jury_or_price_is_said_before_anything_is_counted(medtasks, given):
    outcome = medtasks("plan", "openai", "--tasks", "medhelm_mediqa", *given)
    assert outcome.code == 2 and given[0] in outcome.err and not outcome.out


def test_a_configuration_with_a_price_that_is_none_is_refused(medtasks, tmp_path):
    (tmp_path / "own.yaml").write_text(
        "model: openai-chat-completions\nmodel_args: {model: m}\n"
        "metadata: {price: {input: -1, output: .nan}}\n"
    )
    outcome = medtasks("plan", "own.yaml", "--tasks", "medhelm_mediqa")
    assert outcome.code == 2 and "metadata.price.input" in outcome.err and not outcome.out
    run = medtasks("run", "--config", "own.yaml", "--tasks", "medhelm_mediqa", "--data", "sample")
    assert run.code == 2 and "metadata.price" in run.err and not run.out


def test_examples_that_a_providers_cache_keeps_have_their_price(medtasks, plan, tmp_path):
    file = (
        "model: openai-chat-completions\nmodel_args: {model: m}\nmetadata: {price: {input: 2, output: 8%s}}\n"
    )
    (tmp_path / "full.yaml").write_text(file % "")
    (tmp_path / "less.yaml").write_text(file % ", cached: 0.5")
    task = ("--tasks", "medhelm_dischargeme_5shot")
    full, less = plan("full.yaml", *task), plan("less.yaml", *task)
    cached = sum(item["cached_tokens"] for item in full["tasks"])
    assert cached and full["cost"] - less["cost"] == pytest.approx(cached * 1.5 / 1e6)
    assert "0.5 for" in " ".join(medtasks("plan", "less.yaml", *task).out.split())
    for short in ("bridge_chip_ctc", "bridge_chip_ctc_5shot"):  # providers keep 1,024 tokens and more
        assert plan("full.yaml", "--tasks", short)["cost"] == plan("less.yaml", "--tasks", short)["cost"]
        assert plan("ORG/Model-8B", "--tasks", short)["total"]["cached_tokens"] > 0


def test_a_batch_costs_its_share_where_the_provider_takes_batches(medtasks, plan):
    record = plan("anthropic", "--suite", "mlb")
    assert record["batch_cost"] == pytest.approx(record["cost"] / 2)
    printed = " ".join(medtasks("plan", "anthropic", "--suite", "mlb").out.split())
    assert f"{record['batch_cost']:.3g}" in printed and "as a batch (medtasks batch out)" in printed
    assert "50% of that in a batch" in printed
    without = medtasks("plan", "openrouter", *CHIP_CTC)
    assert plan("openrouter", *CHIP_CTC)["batch_cost"] is None and "batch (" not in without.out


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
    total = record["total"]
    work = (total["prompt_tokens"] - total["cached_tokens"]) / 0.4 + total["output_tokens"] / 0.1
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


@pytest.mark.parametrize(("file", "said"), [("GLM-4.7", "358 billion"), ("Kimi-K3", "2,800 billion")])
def test_where_a_name_says_no_size_the_registry_of_models_does(medtasks, file, said):
    outcome = medtasks("plan", file, "--tasks", "bridge_mednli")
    assert outcome.code == 0
    assert f"{said} parameters (the registry of models," in " ".join(outcome.out.split())


# ---------------------------------------------------------------------- reasoning


class Switchable(Characters):
    """A tokenizer whose chat template has Qwen's switch, on by default or not."""

    def __init__(self, *, on: bool) -> None:
        self.chat_template = "{% if enable_thinking %}"
        self.on = on

    def apply_chat_template(self, turns: list[dict[str, str]], **switches: Any) -> str:
        thinks = switches.get("enable_thinking")
        mark = "" if (self.on if thinks is None else thinks) else "<think></think>"
        return super().apply_chat_template(turns) + mark


def test_a_known_model_thinks_by_default_and_both_figures_are_said(medtasks, plan, chip_ctc):
    named, by_id = plan("Qwen3-8B-Thinking", *CHIP_CTC), plan("Qwen/Qwen3-8B", *CHIP_CTC)
    assert by_id == named == plan("qwen/qwen3-8b", *CHIP_CTC) and by_id["thinking"] is True
    without = plan("Qwen/Qwen3-8B", *CHIP_CTC, "--no-thinking")
    assert without["config"] == "Qwen3-8B-Non-Thinking" and without["thinking"] is False
    assert by_id["other"] == {key: without[key] for key in by_id["other"]}
    assert without["other"] == {key: by_id[key] for key in without["other"]}
    assert by_id["total"]["output_tokens"] - without["total"]["output_tokens"] == 8 * 2000
    outcome = medtasks("plan", "Qwen/Qwen3-8B", *CHIP_CTC)
    printed = " ".join(outcome.out.split())
    assert "thinking: about" in printed and "not thinking: about" in printed
    assert "(--no-thinking, or --config Qwen3-8B-Non-Thinking)" in printed
    assert "the model thinks before it answers unless that is switched off" in printed
    assert printed.endswith("medtasks run --tasks bridge_chip_ctc --config Qwen3-8B-Thinking")


def test_each_way_has_the_suites_own_budget(plan):
    """Qwen3 has 16,384 tokens where it thinks; where it does not, ACI-Bench gives an answer 768."""
    one = plan("Qwen/Qwen3-8B", "--tasks", "medhelm_aci_bench")
    other = plan("Qwen/Qwen3-8B", "--tasks", "medhelm_aci_bench", "--no-thinking")
    assert one["thinking"] and one["tasks"][0]["most_output_tokens"] == 120 * 16_384
    assert one["other"]["total"]["most_output_tokens"] == other["total"]["most_output_tokens"] == 120 * 768
    for context, tokens in ((4096, 512), (40_960, 3072)):
        few = plan("Qwen/Qwen3-8B", "--tasks", "bridge_mie", "--no-thinking", "--max_model_len", context)
        (task,) = few["tasks"]
        assert task["most_output_tokens"] == task["documents"] * tokens
        assert task["room"] == context - tokens


def test_prompts_are_counted_in_the_words_that_a_run_would_ask(medtasks, plan, tokenizers, helm, monkeypatch):
    """One token a character: the prompt of a run, to the letter."""
    tasks = ("ORG/Model-8B", "--tasks", "medhelm_medhallu", "--no-thinking")
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    sizes = {}
    for words in ("official", "own"):
        found = plan(*tasks, "--prompts", words)
        assert found["tasks"][0]["wording"] == words and found["command"].count(f"--prompts {words}") == 1
        run = medtasks("run", "--tasks", "medhelm_medhallu", "--model", "oracle", "--prompts", words,
                       "--apply_chat_template", "--output_path", words)  # fmt: skip
        assert run.code == 0
        sizes[words] = found["tasks"][0]["prompt_tokens"]
        lines = Path(words, "samples_medhelm_medhallu.jsonl").read_text().splitlines()
        asked = [json.loads(line)["arguments"][0][0] for line in lines]
        assert sizes[words] == sum(map(len, asked))
    assert (
        sizes["official"] != sizes["own"] and plan(*tasks)["tasks"][0]["prompt_tokens"] == sizes["official"]
    )
    said = medtasks("plan", *tasks, "--prompts", "own").out
    assert "prompts: in the suites' own words for 0 of 1 task; those of 1 more are known" in said


def test_a_known_model_that_cannot_be_switched_has_one_figure(plan, chip_ctc):
    for name, thinks in (("Qwen/QwQ-32B", True), ("google/gemma-3-4b-it", False)):
        record = plan(name, *CHIP_CTC)
        assert record["thinking"] is thinks and record["other"] is None
    record = plan("Qwen/QwQ-32B", *CHIP_CTC, "--no-thinking")
    assert (record["thinking"], record["other"]["thinking"]) == (False, True)
    assert "no setting is known that changes it" in record["rules"][0]


@pytest.mark.parametrize(
    ("tokenizer", "thinks", "other", "why"),
    [
        (Switchable(on=True), True, False, "enable_thinking, on unless it is turned off"),
        (Switchable(on=False), False, True, "enable_thinking, off unless it is turned on"),
        ("{{ '<think>' }}", True, False, "holds <think>, so it is assumed to think"),
        ("[INST]", False, None, "shows no reasoning"),
        (None, False, None, "no chat template is applied"),
    ],
    ids=["switch, on", "switch, off", "mark", "plain", "base model"],
)
def test_the_chat_template_of_another_model_tells(plan, tokenizers, chip_ctc, tokenizer, thinks, other, why):
    if not isinstance(tokenizer, Characters):
        text, tokenizer = tokenizer, Characters()
        tokenizer.chat_template = text
    tokenizers["ORG/Other-8B"] = tokenizer
    record = plan("ORG/Other-8B", *CHIP_CTC)
    assert record["thinking"] is thinks and why in record["rules"][0]
    assert (record["other"] and record["other"]["thinking"]) is other


def test_a_model_that_nobody_knows_is_assumed_not_to_think_and_both_figures_are_said(plan, chip_ctc):
    record = plan("ORG/Nobody-8B", *CHIP_CTC)
    assert record["thinking"] is False and record["other"]["thinking"] is True
    assert "assumed not to think" in record["rules"][0]
    assert record["other"]["total"]["output_tokens"] - record["total"]["output_tokens"] == 8 * 2000


def test_a_model_of_unknown_size_has_no_hours_and_no_empty_line(medtasks):
    outcome = medtasks("plan", "ORG/Nobody", *CHIP_CTC)
    assert outcome.code == 0 and "not thinking: time and cost are not known\n" in outcome.out
    assert "--gpu-hour-price" not in outcome.out and "give --throughput" in outcome.text


def test_a_file_of_ones_own_is_planned_as_its_model_is_known(plan, chip_ctc, tmp_path):
    content = {"model": "vllm", "model_args": {"pretrained": "Qwen/Qwen3-8B"}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    assert plan("mine.yaml", *CHIP_CTC)["thinking"] is True
    content["model_args"]["enable_thinking"] = False
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    record = plan("mine.yaml", *CHIP_CTC)
    assert record["thinking"] is False and record["other"]["thinking"] is True


# ---------------------------------------------------------------------- the command

MINE = {
    "model": "vllm",
    "model_args": {
        "pretrained": "ORG/Mine-8B",
        "chat_template_args": {"level": "low"},
        "max_model_len": 8192,
    },
    "gen_kwargs": {"do_sample": False, "temperature": 0},
}


@pytest.mark.parametrize(
    "arguments",
    [
        ["Qwen/Qwen3-8B"],
        ["Qwen/Qwen3-8B", "--no-thinking", "--max_gen_toks", "500"],
        ["Qwen3-8B-Thinking", "--no-thinking", "--max_model_len", "8192", "--gpus", "2"],
        ["openai", "--max_gen_toks", "500"],
        ["gpt-oss-20b", "--max_model_len", "16384"],
        ["ORG/Model-8B", "--thinking"],
        ["ORG/Model-80B", "--max_model_len", "8192", "--thinking"],
        ["ORG/Switch-8B"],
        ["ORG/Switch-8B", "--no-thinking"],
        ["ORG/Off-8B", "--thinking"],
        ["mine.yaml", "--gpus", "2"],
        ["mine.yaml", "--max_gen_toks", "100", "--max_model_len", "4096"],
        ["openai", "--strategy", "cot"],
        ["openai", "--tasks", "bridge_mie_cot,medhelm_medqa", "--strategy", "five_shot"],
        ["openai", "--tasks", "bridge_imcs_v2_*"],
        ["openai", "--suite", "mlb", "--strategy", "cot"],
    ],
    ids=" ".join,
)
def test_the_command_runs_what_was_planned(plan, tokenizers, tmp_path, arguments):
    from medtasks_ext.cli.arguments import requested_tasks
    from medtasks_ext.cli.run import _parse, _settings
    from medtasks_ext.registry import registry
    from medtasks_ext.runner.evaluate import build_task

    tokenizers["ORG/Model-80B"] = Characters()
    tokenizers["ORG/Switch-8B"], tokenizers["ORG/Off-8B"] = Switchable(on=True), Switchable(on=False)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(MINE))
    tasks = [] if "--tasks" in arguments or "--suite" in arguments or "cot" in arguments else [*CHIP_CTC]
    record = plan(*arguments, *tasks)
    program, command, *words = shlex.split(record["command"])
    assert (program, command) == ("medtasks", "run")
    if words[-1] == "[--apply_chat_template]":
        words[-1] = "--apply_chat_template"
    own, config = _parse(words)
    leaves = {leaf for names in requested_tasks(config)[1].values() for leaf in names}
    assert leaves == {task["task"] for task in record["tasks"]}
    given = dict(pairwise(arguments))
    context = config.model_args.get("max_model_len") or config.model_args.get("max_length")
    assert context == record["context"] and str(context) == given.get("--max_model_len", str(context))
    settings = _settings(own, config)
    most = {
        task["task"]: build_task(registry(), task["task"], replace(settings, data="sample"))
        .config.generation_kwargs["max_gen_toks"] * task["documents"]
        for task in record["tasks"]
    }  # fmt: skip
    assert {task["task"]: task["most_output_tokens"] for task in record["tasks"]} == most
    budget = config.gen_kwargs.get("max_gen_toks")
    assert str(budget) == given.get("--max_gen_toks", str(budget))
    gpus = config.model_args.get("tensor_parallel_size", 1)
    assert record["gpus"] in (None, gpus) and str(gpus) == given.get("--gpus", str(gpus))
    if "Qwen" in record["model"] or "Switch" in record["model"]:
        assert (config.model_args.get("enable_thinking") is None) is record["thinking"]
    if "Off" in record["model"]:
        assert config.model_args["enable_thinking"] and config.model_args["think_end_token"] == "</think>"
    if record["config"] and (file := record["config"]).endswith(".yaml"):
        assert file == "mine.yaml" and config.model_args["chat_template_args"] == {"level": "low"}
        assert config.gen_kwargs["temperature"] == 0


# ---------------------------------------------------------------------- the context


def test_prompts_that_do_not_fit_are_counted_and_planned_as_cut(plan, tokenizers, data_dir):
    lengths = [100] * 6 + [2000] * 3 + [9000]
    rows = [sft_row(i, "长" * n, "clinical trial criterion: 年龄") for i, n in enumerate(lengths)]
    write_jsonl(data_dir / "bridge" / "chip_ctc" / "test.jsonl", rows)
    limits = ("--max_gen_toks", "500")
    (free,) = plan("ORG/Model-8B", *CHIP_CTC, *limits)["tasks"]
    assert free["room"] is free["inputs_cut"] is None
    around = round(free["mean_prompt"] - fmean(lengths))
    record = plan("ORG/Model-8B", *CHIP_CTC, *limits, "--max_model_len", str(500 + around + 1000))
    (found,) = record["tasks"]
    assert (found["room"], found["inputs_cut"], found["shots_dropped"]) == (around + 1000, 4, 0)
    assert found["prompt_tokens"] == 10 * around + 6 * 100 + 4 * 1000
    mean = f"{free['mean_prompt'] / 1000:.3g} thousand"
    assert f"bridge_chip_ctc, {mean} on average, 4 of 10" in " ".join(record["rules"])
    assert "lose examples first" in " ".join(record["rules"])


def test_examples_that_do_not_fit_are_no_cut_inputs(plan, tokenizers, chip_ctc):
    task = "bridge_chip_ctc_5shot"
    (whole,) = plan("ORG/Model-8B", "--tasks", task, "--max_gen_toks", "500")["tasks"]
    tokens = str(500 + whole["mean_prompt"] - 20)
    (found,) = plan("ORG/Model-8B", "--tasks", task, "--max_gen_toks", "500", "--max_model_len", tokens)[
        "tasks"
    ]
    assert (found["shots_dropped"], found["inputs_cut"]) == (8, 0)


def test_of_published_lengths_the_mean_decides(medtasks, plan):
    tasks = ("--tasks", "medhelm_cdi_qa,bridge_mie")
    record = plan("Qwen3-8B-Non-Thinking", *tasks)
    found = {task["task"]: task for task in record["tasks"]}
    assert record["context"] == 40_960
    cut, whole = found["medhelm_cdi_qa"], found["bridge_mie"]
    assert cut["inputs_cut"] == cut["documents"] and cut["prompt_tokens"] == cut["documents"] * cut["room"]
    assert whole["inputs_cut"] == 0
    printed = " ".join(medtasks("plan", "Qwen3-8B-Non-Thinking", *tasks).out.split())
    assert "Too long in 1 task: medhelm_cdi_qa, 63.2 thousand on average" in printed
    served = plan("gpt-oss-20b", *tasks, "--max_model_len", "32768")
    assert "the server refuses such prompts" in " ".join(served["rules"])
    (refused,) = (task for task in served["tasks"] if task["task"] == "medhelm_cdi_qa")
    assert refused["prompt_tokens"] == refused["documents"] * refused["mean_prompt"]


def test_the_context_of_a_folder_is_its_own(plan, tokenizers, chip_ctc, tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    tokenizers[str(folder)] = Characters()
    assert plan(folder, *CHIP_CTC)["context"] is None
    for content in ({"max_position_embeddings": 8192}, {"text_config": {"max_position_embeddings": 8192}}):
        (folder / "config.json").write_text(json.dumps(content))
        assert plan(folder, *CHIP_CTC)["context"] == 8192
    assert plan(folder, *CHIP_CTC, "--max_model_len", "4096")["context"] == 4096


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


def test_a_stated_error_asks_a_part_and_says_so(medtasks, plan):
    given = ("ORG/Model-8B", "--suite", "bridge")
    whole, part = plan(*given), plan(*given, "--error", "1.0")
    assert part["total"]["documents"] < whole["total"]["documents"] / 10
    assert part["command"].endswith(" --error 1") and part["rules"][0].startswith("an estimate to ±1 points")
    documents = {task["task"]: task["documents"] for task in whole["tasks"]}
    assert all(8 <= task["documents"] <= documents[task["task"]] for task in part["tasks"])
    more = plan(*given, "--error", "0.5")
    assert part["total"]["documents"] < more["total"]["documents"] < whole["total"]["documents"]


def test_a_stated_error_leaves_out_what_judges_score(plan):
    tasks = "bridge_chip_ctc,medhelm_medication_qa"
    part = plan("ORG/Model-8B", "--tasks", tasks, "--error", "4")
    assert [task["task"] for task in part["tasks"]] == ["bridge_chip_ctc"]
    assert "1 task without an estimate left out" in part["rules"][0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--error", "0.1", "--tasks", "bridge_chip_ctc"), "half of it gives about ±"),
        (("--error", "0"), "give 0.05 to 20"),
        (("--error-of", "bridge"), "add --error 1.0"),
        (("--error", "2", "--tasks", "medhelm_medication_qa"), "no score of these tasks can be estimated"),
    ],
)
def test_an_error_that_no_plan_reaches_is_said(medtasks, given, said):
    outcome = medtasks("plan", "ORG/Model-8B", *given)
    assert outcome.code != 0 and said in " ".join(outcome.text.split())


def test_the_dearest_tasks_are_named(plan):
    rules = plan("ORG/Model-8B", "--suite", "mlb")["rules"]
    [line] = [rule for rule in rules if rule.startswith("dearest, by GPU time: ")]
    assert line.count("%") == 10


def test_the_tasks_that_are_dearest_at_a_provider_are_named(plan):
    record = plan("anthropic", "--suite", "mlb")
    [line] = [rule for rule in record["rules"] if rule.startswith("dearest, by price: ")]
    dollars = {
        task["task"]: 3 * task["prompt_tokens"] + 15 * task["output_tokens"] for task in record["tasks"]
    }
    first = max(dollars, key=dollars.get)
    assert line.startswith(f"dearest, by price: {first} {dollars[first] / sum(dollars.values()):.0%}")


def test_examples_that_do_not_fit_are_counted(plan, chip_ctc, tokenizers):
    given = ("ORG/Model-8B", "--tasks", "bridge_chip_ctc_5shot", "--max_gen_toks", 50)
    [whole] = plan(*given)["tasks"]
    assert (whole["shots_asked"], whole["shots_held"]) == (5, None)
    [task] = plan(*given, "--max_model_len", whole["mean_prompt"] + 50 - 20)["tasks"]
    assert 0 < task["shots_held"] < 5 == task["shots_asked"]
    rules = plan(*given, "--max_model_len", whole["mean_prompt"] + 50 - 20)["rules"]
    assert any("a prompt holds on average: bridge_chip_ctc_5shot" in rule for rule in rules)


def test_examples_count_once_in_gpu_hours(plan, chip_ctc, tokenizers):
    """The prefix cache keeps them: what five examples add to a GPU's time is one reading of them a task."""
    given = ("ORG/Model-8B", "--max_gen_toks", 50, "--tasks")
    none, five = (plan(*given, name) for name in ("bridge_chip_ctc", "bridge_chip_ctc_5shot"))
    [task] = five["tasks"]
    shots = task["prompt_tokens"] - none["tasks"][0]["prompt_tokens"]
    instruction = none["tasks"][0]["cached_tokens"]  # which all prompts begin with
    assert task["cached_tokens"] - instruction == pytest.approx(shots * 7 / 8, rel=0.05)
    once = five["gpu_hours"] - none["gpu_hours"]
    hours_of_a_token = 2 * 8e9 / 0.4 / 989e12 / 3600
    assert once == pytest.approx((shots - task["cached_tokens"] + instruction) * hours_of_a_token, rel=0.05)
    assert any("are beginnings that the prefix cache keeps" in rule for rule in five["rules"])


def test_a_record_counts_once_where_both_strategies_are_asked(plan, tokenizers, helm):
    """MedHELM's own words stand before and in the record, in both; the six longest records are shared."""
    given = ("ORG/Model-8B", "--max_model_len", 131_072, "--tasks")
    both = plan(*given, "medhelm_ehrshot,medhelm_ehrshot_cot,medhelm_ehrshot_5shot")
    shares = {item["task"]: item["cached_tokens"] / item["prompt_tokens"] for item in both["tasks"]}
    zero, cot = shares["medhelm_ehrshot"], shares["medhelm_ehrshot_cot"]
    assert min(zero, cot) < 0.05 and max(zero, cot) > 0.97
    alone = plan(*given, "medhelm_ehrshot_cot")
    assert alone["tasks"][0]["cached_tokens"] < 0.05 * alone["tasks"][0]["prompt_tokens"]
    own = plan(*given, "medhelm_ehrshot,medhelm_ehrshot_cot", "--prompts", "own")
    assert own["total"]["cached_tokens"] < 0.05 * own["total"]["prompt_tokens"]
