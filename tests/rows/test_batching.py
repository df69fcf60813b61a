"""Under plain lm-eval the tasks say that questions are asked one by one, and how to change it."""

import shlex
import sys

import pytest

from medtasks_ext.egress import asks_one_by_one, say_batch_size

MODULE = "/venv/lib/python3.11/site-packages/lm_eval/__main__.py"  # also under accelerate launch -m lm_eval
LOCAL = "--model vllm --model_args pretrained=org/model,dtype=auto --tasks bridge_mie"


@pytest.mark.parametrize(
    ("command", "one_by_one"),
    [
        (f"/venv/bin/lm_eval {LOCAL}", True),
        (f"/venv/bin/lm_eval run {LOCAL}", True),
        (f"/venv/bin/lm-eval run {LOCAL}", True),
        (f"lm_eval.exe {LOCAL}", True),
        (f"{MODULE} run {LOCAL}", True),
        ("lm_eval --tasks bridge_mie --model_args pretrained=org/model", True),  # lm-eval's default is hf
        ("lm_eval -M hf -t bridge_mie -a pretrained=org/model", True),
        (f"lm_eval {LOCAL} --max_batch_size 8", True),
        (f"lm_eval {LOCAL} --batch_size auto", False),
        (f"lm_eval {LOCAL} --batch_size=8", False),
        (f"lm_eval {LOCAL} --batch_size 1", False),  # as the user wants it
        (f"lm_eval {LOCAL} -b auto:4", False),
        (f"lm_eval {LOCAL} -b8", False),
        (f"lm_eval {LOCAL} --batch 8", False),  # argparse takes a beginning
        ("lm_eval --tasks bridge_mie --model local-chat-completions --model_args model=m", False),
        ("lm_eval --tasks bridge_mie --model openai-chat-completions", False),
        ("lm_eval ls tasks", False),
        ("lm_eval validate --tasks bridge_mie", False),
        (f"medtasks run {LOCAL}", False),
        (f"my_script.py {LOCAL}", False),
        ("/venv/lib/python3.11/site-packages/pytest/__main__.py", False),
        ("lm_eval --tasks bridge_mie --model", False),  # refused by lm-eval
        ("", False),
    ],
)
def test_a_command_line_shows_whether_questions_are_asked_one_by_one(command, one_by_one):
    assert asks_one_by_one(shlex.split(command)) is one_by_one


@pytest.mark.parametrize(
    ("content", "more", "one_by_one"),
    [
        ("model: vllm\n", "", True), ("model: vllm\nbatch_size: auto\n", "", False),
        ("model: vllm\n", "--batch_size auto", False), ("model: local-completions\n", "", False),
        ("model: local-completions\n", "--model hf", True),
        ("model: vllm\nbatch_size: 4\n", "--model hf", False), ("{oops", "", False), ("", "", False),
        (None, "", False),
    ],
)  # fmt: skip
def test_a_file_states_the_model_and_the_batch_size_too(tmp_path, content, more, one_by_one):
    file = tmp_path / "mine.yaml"
    if content is not None:
        file.write_text(content)
    for flag in ("--config ", "--config=", "-C "):
        command = f"lm_eval {flag}{file} --tasks bridge_mie {more}"
        assert asks_one_by_one(shlex.split(command)) is one_by_one


@pytest.fixture
def once():
    say_batch_size.cache_clear()
    yield
    say_batch_size.cache_clear()


@pytest.fixture
def load(built_tasks):
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=str(built_tasks), metadata={"data": "sample"})
    return lambda *tasks: manager.load_task_or_group(list(tasks))


@pytest.mark.usefixtures("once")
def test_the_tasks_say_it_in_one_line_when_lm_eval_loads_them(monkeypatch, capsys, load):
    monkeypatch.setattr(sys, "argv", ["/venv/bin/lm_eval", "run", *shlex.split(LOCAL)])
    load("bridge_mie", "bridge_mie_cot", "bridge_mie_5shot")
    said = [line for line in capsys.readouterr().err.splitlines() if "--batch_size auto" in line]
    assert len(said) == 1 and said[0].startswith("medtasks: ")


@pytest.mark.usefixtures("once")
def test_of_several_processes_the_first_says_it(monkeypatch, capsys, load):
    monkeypatch.setattr(sys, "argv", [MODULE, "run", *shlex.split(LOCAL)])
    monkeypatch.setenv("LOCAL_RANK", "1")
    load("bridge_mie")
    assert "--batch_size" not in capsys.readouterr().err
