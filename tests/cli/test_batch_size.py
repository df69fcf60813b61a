"""lm-eval asks one question at a time unless it is told otherwise; the commands ask in full batches."""

import os

import pytest

from medtasks_ext.cli.arguments import lm_eval_config

MODEL = ("--tasks", "bridge_mie", "--model_args", "pretrained=org/model")


def batch_size(*arguments: str) -> object:
    config = lm_eval_config([*arguments], "run", "", "", {})
    return config.batch_size


@pytest.mark.parametrize("model", ["vllm", "hf"])
def test_a_local_model_is_asked_in_full_batches_unless_a_size_is_given(model):
    assert batch_size("--model", model, *MODEL) == "auto"
    assert batch_size("--model", model, *MODEL, "--batch_size", "1") == "1"


def test_the_size_that_a_file_states_is_kept(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("model: hf\nmodel_args: {pretrained: org/model}\nbatch_size: 1\n")
    assert batch_size("--config", str(file), "--tasks", "bridge_mie") == 1
    file.write_text("model: hf\nmodel_args: {pretrained: org/model}\n")
    assert batch_size("--config", str(file), "--tasks", "bridge_mie") == "auto"


@pytest.mark.parametrize(("model", "hidden"), [("vllm-vlm", False), ("vllm", True), ("hf", True)])
def test_bars_are_hidden_where_the_engine_does_not_count_with_them(model, hidden, monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")
    batch_size("--model", model, *MODEL)
    assert ("TQDM_DISABLE" in os.environ) is hidden


def test_what_a_configuration_file_says_is_not_printed(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("model: local-chat-completions\nmodel_args: {model: m, auth_token: SECRET}\n")
    batch_size("--config", str(file), "--tasks", "bridge_mie")
    printed = capsys.readouterr()
    assert "SECRET" not in printed.out + printed.err
