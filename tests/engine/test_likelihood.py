"""Likelihoods are those of plain lm-eval on the same text; no generated answer stands beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry import registry
from tests.conftest import outcomes
from tests.engine.tiny_model import make
from tests.run_files import samples_file

pytestmark = pytest.mark.engine

#: task -> what stands before the answer, and between both
TASKS = {"bridge_mednli": ("relation:", " "), "mlb_maexam": ("答案：", ""), "medhelm_medmcqa": ("", " ")}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("model"), layers=1)


@pytest.fixture(scope="session")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample", "ACCELERATE_USE_CPU": "true"}


#: type of model -> how it is loaded; transformers takes one question at a time
KINDS = {
    "hf": ("--device", "cpu", "--batch_size", "1", "--model_args", "pretrained={},dtype=float32"),
    "vllm": (
        *("--batch_size", "auto", "--model_args"),
        "pretrained={},dtype=float32,enforce_eager=True,max_model_len=8192",
    ),
}


def loaded(kind: str, model: Path) -> list[str]:
    return ["--model", kind, *(part.format(model) for part in KINDS[kind])]


def lm_eval(
    names: list[str], model: Path, out: Path, environment: dict[str, str], *more: str, kind: str = "hf"
) -> dict[str, list]:
    """The samples of a call of plain lm-eval, by task."""
    command = [
        sys.executable, "-m", "lm_eval", "run", "--tasks", ",".join(names), *loaded(kind, model),
        "--log_samples", "--output_path", str(out), *more,
    ]  # fmt: skip
    done = subprocess.run(
        command, env=environment, cwd=out.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = {}
    for name in names:
        [path] = out.rglob(f"samples_{name}_2*.jsonl")
        found[name] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return found


@pytest.fixture(scope="module")
def asked(model, environment, tmp_path_factory) -> tuple[Path, dict[str, list]]:
    out = tmp_path_factory.mktemp("ll") / "out"
    return out, lm_eval([f"{name}_ll" for name in TASKS], model, out, environment)


@pytest.mark.parametrize("task", TASKS)
def test_likelihoods_are_those_of_a_plain_task_with_the_same_text(task, asked, model, environment, tmp_path):
    samples, (lead, delimiter) = asked[1][f"{task}_ll"], TASKS[task]
    assert len(samples) >= 8 and registry().datasets[task].is_closed
    rows = []
    for sample in samples:
        document = sample["doc"]
        system = f"{document['system']}\n\n" if document["system"] else ""
        context = system + document["prompt"] + (f"\n{lead}" if lead else "")
        options = [argument["arg_1"].removeprefix(delimiter) for argument in sample["arguments"].values()]
        rows.append({"context": context, "options": options, "gold": int(sample["target"])})
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    plain = {
        "task": "plain", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{context}}",
        "doc_to_choice": "{{options}}", "doc_to_target": "gold", "target_delimiter": delimiter,
    }  # fmt: skip
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "plain.yaml").write_text(yaml.safe_dump(plain), encoding="utf-8")
    more = ("--include_path", str(tmp_path / "tasks"))
    other = lm_eval(["plain"], model, tmp_path / "out", environment, *more)["plain"]
    for one, two in zip(samples, other, strict=True):
        own, plain_ones = ([float(pair[0][0]) for pair in item["resps"]] for item in (one, two))
        assert own == pytest.approx(plain_ones, abs=1e-6)
        assert one["acc"] == two["acc"] and one["acc_norm"] == two["acc_norm"]


def test_a_report_ranks_them_beside_nothing_that_was_generated(asked, environment, tmp_path):
    folder = next(path.parent for path in asked[0].rglob("results_*.json"))
    command = [sys.executable, "-m", "medtasks_ext", "report", str(folder), "-o", "report"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "by likelihood, 0-shot" in done.stdout and "zero-shot" not in done.stdout.split("caveats:")[0]
    assert "above" not in done.stdout


def ask(out: Path, environment: dict[str, str], *model: str) -> subprocess.CompletedProcess[str]:
    """`medtasks run --ask likelihood` of all tasks."""
    command = [
        sys.executable, "-m", "medtasks_ext", "run", "--tasks", ",".join(TASKS), "--ask", "likelihood",
        *model, "--output_path", str(out),
    ]  # fmt: skip
    return subprocess.run(
        command, env=environment, cwd=out.parent, capture_output=True, text=True, check=False
    )


def run(out: Path, environment: dict[str, str], *model: str) -> dict[str, list]:
    """The samples of such a run, by task."""
    done = ask(out, environment, *model)
    assert done.returncode == 0, done.stderr[-4000:]
    files = {name: samples_file(out, f"{name}_ll") for name in TASKS}
    return {
        name: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for name, file in files.items()
    }


def compare(ours: list, theirs: list, most: float) -> None:
    """Texts are the same, likelihoods as near as that, and so is the answer."""
    assert len(ours) == len(theirs)
    for one, two in zip(ours, theirs, strict=True):
        assert one["arguments"] == two["arguments"]
        values = [[float(response[0][0]) for response in item["resps"]] for item in (one, two)]
        assert values[0] == pytest.approx(values[1], abs=most)
        assert one["acc"] == two["acc"] and one["acc_norm"] == two["acc_norm"]


def test_a_run_gives_the_likelihoods_of_plain_lm_eval_on_transformers(asked, model, environment, tmp_path):
    found = run(tmp_path / "run", environment, *loaded("hf", model))
    for task in TASKS:
        compare(found[task], asked[1][f"{task}_ll"], 1e-6)


def test_a_run_gives_the_likelihoods_of_plain_lm_eval_on_vllm(model, environment, tmp_path):
    """Labels of one token take one pass here, and each option one of its own there."""
    found = run(tmp_path / "run", environment, *loaded("vllm", model))
    names = [f"{task}_ll" for task in TASKS]
    theirs = lm_eval(names, model, tmp_path / "out", environment, kind="vllm")
    for task in TASKS:
        compare(found[task], theirs[f"{task}_ll"], 1e-3)


def test_a_server_with_echo_gives_the_likelihoods_of_transformers(tiny, server, environment, tmp_path):
    """`vllm serve`, whose completions return the log-probabilities of what they are sent."""
    arguments = f"model=tiny,base_url={server}/v1/completions,tokenizer={tiny},num_concurrent=4"
    found = run(tmp_path / "run", environment, "--model", "local-completions", "--model_args", arguments)
    theirs = lm_eval([f"{name}_ll" for name in TASKS], tiny, tmp_path / "out", environment)
    for task in TASKS:
        compare(found[task], theirs[f"{task}_ll"], 1e-3)


def test_the_servers_chats_are_refused_in_one_message(server, environment, tmp_path):
    """They give the 20 likeliest tokens at most, and a label may be none of them."""
    arguments = ("--model_args", f"model=tiny,base_url={server}/v1/chat/completions", "--apply_chat_template")
    done = ask(tmp_path / "run", environment, "--model", "local-chat-completions", *arguments)
    assert done.returncode == 2 and done.stderr.count("medtasks: ") == 1, done.stderr
    assert "at most 20 likeliest tokens" in done.stderr and "local-completions" in done.stderr
    assert not outcomes(tmp_path / "run")
