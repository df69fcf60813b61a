"""Commands over the real vLLM on the CPU: README's line, a kill, a server, batch files, a real model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from medtasks_ext.models.demo import NAME
from medtasks_ext.run.store import rows_in
from tests.conftest import ROOT
from tests.engine.conftest import MEDTASKS, answers, called
from tests.engine.tiny_model import make
from tests.run_files import result_of, results_of
from tests.transcripts.console import PAGES, Shell, check

pytestmark = pytest.mark.engine

GROUPS = ["bridge_zh", "medhelm_admin"]
ARGUMENTS = "dtype=float32,max_model_len=16384,enforce_eager=True"
SHORT = ("--apply_chat_template", "--gen_kwargs", "max_gen_toks=16")
CHATS = ("--apply_chat_template", "--model", "local-chat-completions", "--model_args")


def test_the_first_hour_of_an_author_goes_as_its_page_says(environment, tmp_path):
    make(tmp_path / "my-model")
    kept = ("VLLM_CPU_KVCACHE_SPACE", "VLLM_NO_USAGE_STATS")
    shell = Shell(tmp_path, Path(sys.executable).parent, {name: environment[name] for name in kept})
    check(PAGES / "author.md", shell)


@pytest.fixture(scope="module")
def literal(tiny, environment, tmp_path_factory) -> tuple[str, dict]:
    """README's lm_eval command, zero-shot and 5-shot in one call."""
    folder = tmp_path_factory.mktemp("literal")
    names = ",".join([*GROUPS, *(f"{name}_5shot" for name in GROUPS)])
    command = ("lm_eval", "--tasks", names, "--model", "vllm", "--model_args",
               f"pretrained={tiny},{ARGUMENTS}", "--batch_size", "auto", *SHORT, "--output_path", folder,
               "--log_samples")  # fmt: skip
    printed = called(command, folder, environment)
    return printed, json.loads(next(folder.rglob("results_*.json")).read_text())


def roll_up_rows(printed: str) -> list[tuple[str, str]]:
    """(group, metric) of lm-eval's table of groups, which writes a group's name once."""
    rows, name = [], ""
    for line in printed.split("Groups")[-1].splitlines()[2:]:
        cells = [cell.strip(" -") for cell in line.strip("|").split("|")]
        if len(cells) > 5:
            name = cells[0] or name
            rows.append((name, cells[4]))
    return rows


def test_the_literal_command_prints_one_roll_up_row_per_group(literal):
    printed, results = literal
    rows = roll_up_rows(printed)
    for name in [*GROUPS, *(f"{group}_5shot" for group in GROUPS)]:
        assert rows.count((name, "score")) == 1, printed
        tasks = results["group_subtasks"][name]
        mean = sum(results["results"][task]["score,answer"] for task in tasks) / len(tasks)
        assert results["groups"][name]["score,answer"] == pytest.approx(mean)
        assert results["groups"][name]["SAMPLE_DATA,answer"] == 1
    assert len(results["group_subtasks"]["bridge_zh"]) == 16
    assert len(results["group_subtasks"]["medhelm_admin_5shot"]) == 5
    assert results["n-shot"]["bridge_mie_5shot"] == 5


def counted(folder: Path) -> dict[str, list[str]]:
    """Task -> keys of the requests that are answered, also while a run goes on."""
    found: dict[str, list[str]] = {}
    for row in rows_in(folder, "answer"):
        found.setdefault(row["task"], []).append(row["key"])
    return found


def test_a_run_killed_in_the_middle_of_generation_goes_on_and_gives_the_same(
    literal, tiny, environment, tmp_path
):
    command = ("medtasks", "run", "--tasks", ",".join(GROUPS), "--model", "vllm", "--model_args",
               f"pretrained={tiny},{ARGUMENTS}", *SHORT, "--output_path", "run")  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    folder = tmp_path / "run"

    def states() -> dict[str, dict]:
        return json.loads((folder / "run.json").read_text())["tasks"]

    while sum(map(len, counted(folder).values())) < 40:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = counted(folder)
    done_before = {task for task, state in states().items() if state["state"] == "done"}
    called(command, tmp_path, environment)
    complete, after = counted(folder), states()
    assert len(done_before) < len(complete)
    for task, keys in complete.items():
        stored = kept.get(task, [])
        assert keys[: len(stored)] == stored
        if task not in done_before:  # `generated` counts what the model was asked for
            assert after[task]["generated"] == len(keys) - len(stored), task
    results, scored = literal[1], results_of(folder)["results"]
    for task in (task for group in GROUPS for task in results["group_subtasks"][group]):
        assert scored[task]["score,answer"] == pytest.approx(results["results"][task]["score,answer"]), task


def test_an_openai_compatible_server_is_evaluated_and_asked_once_per_document(server, environment, tmp_path):
    # long records would not fit this server's context, and no API says how to cut them
    tasks = {"bridge_mie_cot", "medhelm_bmt_status", "medhelm_medconfinfo", "medhelm_privacy_detection"}
    model = f"model=tiny,base_url={server}/v1/chat/completions,num_concurrent=2"
    command = ("medtasks", "run", "--tasks", ",".join(sorted(tasks)), *CHATS, model, *SHORT[1:],
               "--output_path", "run")  # fmt: skip
    assert "medhelm_privacy_detection" in called(command, tmp_path, environment)
    assert {task for task, _ in answers(tmp_path / "run")} == tasks
    before = (tmp_path / "run/answers.jsonl").read_bytes()
    called(command, tmp_path, environment)
    assert (tmp_path / "run/answers.jsonl").read_bytes() == before


# ---------------------------------------------------------------------- batch files

TASKS = ("bridge_chip_ctc", "medhelm_mediqa")
LONGEST_ANSWER = 16
Call = Callable[..., str]


@pytest.fixture
def call(environment, tmp_path) -> Call:
    """Run `medtasks run` on two tasks, or another command."""

    def run(*more: object, run: str = "run", code: int = 0) -> str:
        ours = (*MEDTASKS, "run", "--tasks", ",".join(TASKS), *SHORT, "--output_path", run)
        command = (*ours, *more) if str(more[0]).startswith("--") else more
        return called(command, tmp_path, {**environment, "RAY_USAGE_STATS_ENABLED": "0"}, (code,))

    return run


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_batch_file_is_answered_by_vllm_and_what_did_not_fit_is_asked_in_a_second_one(call, tiny, tmp_path):
    from transformers import AutoTokenizer

    def run_batch(file: str, context: int) -> tuple[str, str]:
        results = f"{file}.results"
        call("vllm", "run-batch", "-i", file, "-o", results, "--model", tiny, "--served-model-name", "tiny",
             "--dtype", "float32", "--enforce-eager", "--max-model-len", context)  # fmt: skip
        return "--from-batch", results

    asked = (*CHATS, "model=tiny")
    call(*asked, "--to-batch", "requests.jsonl")
    written = lines(tmp_path / "requests.jsonl")
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    template = {"add_generation_prompt": True, "return_dict": False}
    messages = [line["body"]["messages"] for line in written]
    sizes = sorted(len(tokenizer.apply_chat_template(each, **template)) for each in messages)
    context = sizes[len(sizes) // 2] + LONGEST_ANSWER  # half of them fit into it
    given = run_batch("requests.jsonl", context)
    said = call(*asked, *given, code=1)
    # versions differ in whether an answer that has less room than its budget is refused or cut
    fit = sum(item["response"]["status_code"] == 200 for item in lines(tmp_path / given[1]))
    room = [context - size for size in sizes]
    assert sum(left >= LONGEST_ANSWER for left in room) <= fit <= sum(left > 0 for left in room)
    left = len(written) - fit
    assert f"{fit} of {fit} answers are new" in said and left
    assert f"{left} results: prompt and answer do not fit the model's context" in said
    call(*asked, "--to-batch", "rest.jsonl")
    assert len(lines(tmp_path / "rest.jsonl")) == left
    assert f"{left} of {left} answers are new" in call(*asked, *run_batch("rest.jsonl", 16384))
    found = answers(tmp_path / "run").values()
    assert {record["key"] for record in found} == {line["custom_id"] for line in written}
    for record in found:
        assert record["model"] == "tiny" and record["request_id"] and record["finish"] in ("length", "stop")
        assert 0 < record["usage"]["completion"] <= LONGEST_ANSWER < record["usage"]["prompt"]
    assert set(results_of(tmp_path / "run")["results"]) == set(TASKS)
    assert "nothing is left to ask" in call(*asked, "--to-batch", "none.jsonl")


@pytest.mark.nightly
def test_the_program_of_the_page_asks_a_server_through_a_ray_cluster(call, tiny, server, tmp_path):
    pytest.importorskip("ray", reason="make_engine_env.sh installs it")
    program = ROOT / "model_configs" / "ask_servers.py"
    texts = ("--model", "local-completions", "--model_args", f"model={tiny},max_length=16384")
    for name, kind in {"conversations": (*CHATS, "model=tiny"), "texts": texts}.items():
        call(*kind, "--to-batch", f"{name}.jsonl", run=name)
        call(sys.executable, program, f"{name}.jsonl", f"{name}.results.jsonl", server)
        written = lines(tmp_path / f"{name}.jsonl")
        said = call(*kind, "--from-batch", f"{name}.results.jsonl", run=name)
        assert f"{len(written)} of {len(written)} answers are new" in said
        found = answers(tmp_path / name).values()
        assert {record["key"] for record in found} == {line["custom_id"] for line in written}
        assert all(record["usage"]["completion"] > 0 for record in found)


# ---------------------------------------------------------------------- a real model
# Texts and scores differ between machines: form, counts, readable or not, ends and repeats are looked at.

REAL_TASKS = ["medhelm_medmcqa", "bridge_mednli", "clinicbench_bc5_disease", "bridge_icliniq_10k"]
LONG = REAL_TASKS[-1]  # asks for an answer in sentences, which fills a short budget
LIMIT = 4


def asked_of(model: Path, folder: Path, environment: dict[str, str], code: int = 0) -> str:
    """What `medtasks run` said on transformers."""
    command = (*MEDTASKS, "run", "--tasks", ",".join(REAL_TASKS), "--model", "hf", "--device", "cpu",
               "--batch_size", "4", "--model_args", f"pretrained={model},dtype=float32",
               "--apply_chat_template", "--gen_kwargs", "max_gen_toks=24", "--limit", LIMIT,
               "--output_path", "run")  # fmt: skip
    return called(command, folder, environment, (code,))


def test_a_real_models_answers_are_read_scored_and_shown_and_what_was_cut_is_said(
    real_model, environment, tmp_path
):
    assert "Apache License" in (real_model / "LICENSE").read_text()
    assert "checkpoint is no score of SmolLM2" in (real_model / "README.md").read_text()
    assert not list(real_model.parent.glob(".*")), "nothing else stays"
    said = asked_of(real_model, tmp_path, environment)
    found, run = results_of(tmp_path / "run"), tmp_path / "run"
    assert NAME in found["model_name"] and "SAMPLE DATA" in said
    valid = [found["results"][task]["valid,answer"] for task in REAL_TASKS]
    assert max(valid) > 0.5, "some answers have the form that was asked for"
    assert min(valid) < 1, "and some have not"
    assert all(0 <= found["results"][task]["score,answer"] <= 1 for task in REAL_TASKS)
    first = {key: record["text"] for key, record in answers(run).items()}
    assert len(first) == LIMIT * len(REAL_TASKS)
    assert sum(bool(text.strip()) for text in first.values()) > len(first) / 2
    cut = {task: result_of(run, task)["cut"]["answers_cut"] for task in REAL_TASKS}
    assert cut[LONG] > LIMIT / 2 and all(0 <= n <= LIMIT for n in cut.values())
    assert (
        any(f"! {task}: " in said for task in REAL_TASKS)
        and "answers are truncated at the token limit" in said
    )
    notes = json.loads((run / "run.json").read_text())["notes"]
    assert any("are truncated at the token limit" in note and LONG in note for note in notes)

    shown = called((*MEDTASKS, "view", "run", REAL_TASKS[0], "0"), tmp_path, environment)
    assert "── response" in shown and "── gold answer ──" in shown
    report = called((*MEDTASKS, "report", "run", "-o", "report"), tmp_path, environment)
    assert NAME in report and "SAMPLE" in report
    page = (tmp_path / "report" / "report.html").read_text()
    assert NAME in page and "are truncated at the token limit" in page

    (again := tmp_path / "again").mkdir()
    asked_of(real_model, again, environment)
    assert {key: record["text"] for key, record in answers(again / "run").items()} == first
    assert results_of(again / "run")["results"] == found["results"]


def test_without_a_chat_template_it_is_refused_by_chat_in_one_message(real_model, environment, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(real_model, bare, ignore=shutil.ignore_patterns("chat_template.jinja"))
    said = asked_of(bare, tmp_path, environment, code=2)
    assert said.count("medtasks: ") == 1 and "no chat template that can be applied" in said
    assert "leave the flag out for a base model" in said and "Traceback" not in said
    assert not answers(tmp_path / "run")
