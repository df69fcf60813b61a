"""A real model's answers: followed in part, cut, repeated, in another form than was asked for; each is said.

Texts and scores differ between machines: form, counts, readable or not, ends and repeats are looked at.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.models.demo import NAME
from tests.conftest import ROOT, outcomes
from tests.run_files import result_of, results_of

pytestmark = pytest.mark.engine

TASKS = ["medhelm_medmcqa", "bridge_mednli", "clinicbench_bc5_disease", "bridge_icliniq_10k"]
LONG = TASKS[-1]  # asks for an answer in sentences, which fills a short budget
BUDGET, LIMIT = 24, 4
MEDTASKS = [sys.executable, "-m", "medtasks_ext"]
CHAT = ("--apply_chat_template", "--gen_kwargs", f"max_gen_toks={BUDGET}", "--limit", str(LIMIT))


@pytest.fixture(scope="session")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample", "ACCELERATE_USE_CPU": "true"}


def asked(folder: Path, environment: dict[str, str], *arguments: object, code: int = 0) -> str:
    """What `medtasks run` said in a folder."""
    command = [*MEDTASKS, "run", "--tasks", ",".join(TASKS), *map(str, arguments), *CHAT]
    done = subprocess.run(
        [*command, "--output_path", "run"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr[-4000:]
    return done.stdout + done.stderr


def on_transformers(model: Path) -> tuple[str, ...]:
    return ("--model", "hf", "--device", "cpu", "--batch_size", "4", "--model_args",
            f"pretrained={model},dtype=float32")  # fmt: skip


def stored(folder: Path) -> dict[tuple[str, str], dict]:
    """Task and document -> its outcome; each is there once."""
    found: dict[tuple[str, str], dict] = {}
    for row in outcomes(folder / "run"):
        assert (row["task"], row["document"]) not in found
        found[row["task"], row["document"]] = row
    return found


def results(folder: Path) -> dict:
    return results_of(folder / "run")


@pytest.fixture(scope="module")
def run(real_model, environment, tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("real")
    return folder, asked(folder, environment, *on_transformers(real_model))


def test_its_folder_names_licence_and_origin(real_model):
    assert "Apache License" in (real_model / "LICENSE").read_text()
    assert "checkpoint is no score of SmolLM2" in (real_model / "README.md").read_text()
    assert not list(real_model.parent.glob(".*")), "nothing else stays"


def test_its_answers_are_read_and_scored_under_its_name(run):
    folder, said = run
    found = results(folder)
    assert NAME in found["model_name"]
    for task in TASKS:
        figures = found["results"][task]
        assert 0 <= figures["score,answer"] <= 1 and 0 <= figures["valid,answer"] <= 1, figures
    answers = [record["text"] for record in stored(folder).values()]
    assert len(answers) == LIMIT * len(TASKS)
    assert sum(bool(text.strip()) for text in answers) > len(answers) / 2
    assert "SAMPLE DATA" in said and "SAMPLE score" in said


def cut(folder: Path, task: str) -> int:
    """Answers that fill the budget, as the task's record counts them."""
    return result_of(folder / "run", task)["cut"]["answers_cut"]


def check_cut(folder: Path, said: str) -> None:
    """Most long answers are cut; the run says so when they come, and its record keeps it."""
    assert cut(folder, LONG) > LIMIT / 2 and all(0 <= cut(folder, task) <= LIMIT for task in TASKS)
    assert f"! {LONG}: " in said and "answers are truncated at the token limit" in said
    notes = json.loads((folder / "run/run.json").read_text())["notes"]
    assert any("are truncated at the token limit" in note and LONG in note for note in notes)


def test_what_was_cut_is_counted_and_alarmed(run):
    check_cut(*run)


def test_readable_and_unreadable_answers_are_told_apart_by_viewer_and_report(run, environment):
    folder, _ = run
    valid = [results(folder)["results"][task]["valid,answer"] for task in TASKS]
    assert max(valid) > 0.5, "some answers have the form that was asked for"
    assert min(valid) < 1, "and some have not"
    where = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": True}
    shown = subprocess.run([*MEDTASKS, "view", "run", TASKS[0], "0"], **where)
    assert "── response" in shown.stdout and "── gold answer ──" in shown.stdout
    report = subprocess.run([*MEDTASKS, "report", "run", "-o", "report"], **where)
    assert NAME in report.stdout and "SAMPLE" in report.stdout
    page = (folder / "report" / "report.html").read_text()
    assert NAME in page and "are truncated at the token limit" in page


def test_the_same_machine_gives_the_same_answers_again(run, real_model, environment, tmp_path):
    asked(tmp_path, environment, *on_transformers(real_model))
    first = {key: record["text"] for key, record in stored(run[0]).items()}
    assert {key: record["text"] for key, record in stored(tmp_path).items()} == first
    assert results(tmp_path)["results"] == results(run[0])["results"]


def test_without_a_chat_template_it_is_refused_by_chat_in_one_message(real_model, environment, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(real_model, bare, ignore=shutil.ignore_patterns("chat_template.jinja"))
    said = asked(tmp_path, environment, *on_transformers(bare), code=2)
    assert said.count("medtasks: ") == 1 and "no chat template that can be applied" in said
    assert "leave the flag out for a base model" in said and "Traceback" not in said
    assert not outcomes(tmp_path / "run")


@pytest.mark.nightly
def test_vllm_and_its_server_answer_in_the_same_form(run, real_model, environment, served, tmp_path):
    """The engine in this process and a server: as many answers, each with its end; both say what was cut."""
    here, there = tmp_path / "vllm", tmp_path / "served"
    here.mkdir()
    there.mkdir()
    model = f"pretrained={real_model},dtype=float32,enforce_eager=True,max_model_len=4096,max_num_seqs=8"
    said = [asked(here, environment, "--model", "vllm", "--model_args", model)]
    with served(real_model, NAME, context=4096) as address:
        arguments = f"model={NAME},base_url={address}/v1/chat/completions,num_concurrent=4"
        said.append(asked(there, environment, "--model", "local-chat-completions", "--model_args", arguments))
    for folder, words in zip((here, there), said, strict=True):
        check_form(folder, run[0])
        check_cut(folder, words)


def check_form(folder: Path, other: Path) -> None:
    """A run answers each document of another run, each with its end; what fills the budget is cut."""
    found = stored(folder)
    assert found.keys() == stored(other).keys()
    for task in TASKS:
        ends = [record["finish"] for (name, _), record in found.items() if name == task]
        assert set(ends) <= {"stop", "length"} and ends.count("length") == cut(folder, task)


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["batch file", "ray"])
def test_batch_files_give_answers_of_the_same_form(way, run, real_model, environment, served, tmp_path):
    """`vllm run-batch`, and a server that Ray Data asks: the file comes back with all answers."""
    here = {"cwd": tmp_path, "env": {**environment, "RAY_USAGE_STATS_ENABLED": "0"}}

    def call(*command: object) -> str:
        done = subprocess.run([*map(str, command)], **here, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout + done.stderr

    model = ("--model", "local-chat-completions", "--model_args", f"model={NAME}")
    asked = (*MEDTASKS, "run", "--tasks", ",".join(TASKS), *model, *CHAT, "--output_path", "run")
    call(*asked, "--to-batch", "requests.jsonl")
    if way == "ray":
        pytest.importorskip("ray", reason="make_engine_env.sh installs it")
        with served(real_model, NAME, context=4096) as address:
            program = ROOT / "model_configs" / "ask_servers.py"
            call(sys.executable, program, "requests.jsonl", "results.jsonl", address)
    else:
        files = ("-i", "requests.jsonl", "-o", "results.jsonl")
        call("vllm", "run-batch", *files, "--model", real_model, "--served-model-name", NAME,
             "--dtype", "float32", "--enforce-eager", "--max-model-len", 4096)  # fmt: skip
    said = call(*asked, "--from-batch", "results.jsonl")
    assert f"{LIMIT * len(TASKS)} of {LIMIT * len(TASKS)} answers are new" in said
    check_form(tmp_path, run[0])
    assert cut(tmp_path, LONG) > LIMIT / 2
    valid = [results(tmp_path)["results"][task]["valid,answer"] for task in TASKS]
    assert max(valid) > 0.5 and min(valid) < 1
