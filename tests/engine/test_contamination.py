"""The contamination probe on real engines, with a tiny model that has learned some rows by heart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from tests.engine.tiny_model import make

pytestmark = pytest.mark.engine

LEARNED, OTHER = "bridge_mie", "bridge_ade_identification"
TOKENS = 45


def inputs(task: str) -> list[str]:
    documents = load_documents(registry().datasets[task], cot=False, origin="sample")["test"]
    return [document.input for document in documents][:5]


@pytest.fixture(scope="module")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample"}


@pytest.fixture(scope="module")
def random_model(tmp_path_factory) -> Path:
    """A model without training, whose tokenizer adds a beginning-of-text token."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    folder = make(tmp_path_factory.mktemp("random"), context=2048)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )
    tokenizer.save_pretrained(folder)
    assert AutoTokenizer.from_pretrained(folder)("a").input_ids[0] == tokenizer.bos_token_id
    return folder


@pytest.fixture(scope="module")
def trained_model(random_model, tmp_path_factory) -> Path:
    """The same, trained on five inputs of one task until it continues them word for word."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(random_model)
    model = AutoModelForCausalLM.from_pretrained(random_model, dtype=torch.float32)
    texts = [tokenizer(text).input_ids[:TOKENS] for text in inputs(LEARNED)]
    batch = torch.tensor([ids + [-100] * (TOKENS - len(ids)) for ids in texts])
    tokens, given = batch.clamp(min=0), (batch >= 0).long()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other are slow on a busy machine
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(400):
        loss = model(input_ids=tokens, attention_mask=given, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss < 0.05:  # the first token alone, one of five, costs 0.04
            break
    torch.set_num_threads(threads)
    assert loss < 0.05
    # a default that hf alone would take over, and that makes greedy decoding something else
    model.generation_config.repetition_penalty = 10.0
    folder = tmp_path_factory.mktemp("trained")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def probe(folder: Path, environment: dict[str, str], *model: str) -> dict[str, dict]:
    """Task -> its results."""
    command = ["medtasks", "study", "contamination", "--tasks", f"{LEARNED},{OTHER}",
               "--limit", "5", "--model", *model, "-o", str(folder)]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return json.loads((folder / "contamination.json").read_text())["tasks"]


def hf(model: Path) -> tuple[str, ...]:
    return "hf", "--model_args", f"pretrained={model},dtype=float32", "--batch_size", "4", "--device", "cpu"


def vllm(model: Path) -> tuple[str, ...]:
    return "vllm", "--model_args", f"pretrained={model},dtype=float32,max_model_len=2048,enforce_eager=True"


@pytest.fixture(scope="module")
def by_hf(trained_model, environment, tmp_path_factory) -> dict[str, dict]:
    return probe(tmp_path_factory.mktemp("hf") / "probe", environment, *hf(trained_model))


def test_rows_learned_by_heart_are_found_and_others_are_not(by_hf):
    assert by_hf[LEARNED]["n_probed"] == 5
    assert [item["leaked"] for item in by_hf[LEARNED]["documents"]] == [True] * 5
    assert by_hf[LEARNED]["n_cuts_moved"] > 0  # the tokens split Chinese characters
    assert by_hf[OTHER]["n_leaked"] == 0 and by_hf[OTHER]["n_probed"] == 5


def test_a_model_without_training_knows_no_row(random_model, environment, tmp_path):
    found = probe(tmp_path / "probe", environment, *hf(random_model))
    assert {item["n_matches"] for task in found.values() for item in task["documents"]} == {0}


def test_vllm_gives_the_same_verdicts_as_hf(by_hf, trained_model, environment, tmp_path):
    assert probe(tmp_path / "probe", environment, *vllm(trained_model)) == by_hf


@pytest.mark.nightly
def test_a_completions_server_gives_the_same_verdicts_as_hf(
    by_hf, trained_model, served, environment, tmp_path
):
    with served(trained_model, "tiny", context=2048, more=("--generation-config", "vllm")) as address:
        arguments = f"model=tiny,base_url={address}/v1/completions,num_concurrent=4"
        model = ("local-completions", "--model_args", f"{arguments},tokenizer={trained_model}")
        assert probe(tmp_path / "probe", environment, *model) == by_hf
        command = ["medtasks", "study", "contamination", "--tasks", OTHER, "-o", "nothing",
                   "--model", "local-completions", "--model_args", arguments]  # fmt: skip
        refused = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert refused.returncode == 2 and "name the tokenizer: tokenizer=ORG/MODEL" in refused.stderr
        assert "Traceback" not in refused.stderr
