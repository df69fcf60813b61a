"""Dead ends that users met: each is one message that says what to do."""

import shutil

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("command", "message", "remedy"),
    [
        (
            ("plan", "oracle"),
            "oracle has no weights and asks no server",
            "medtasks run --model oracle --data sample",
        ),
        (
            ("run", "bridge_mie", "--model", "oracle", "--wandb_args", "project=x"),
            "log the results file",
            "leave",
        ),
        (
            ("run", "bridge_mie", "--model", "oracle", "--hf_hub_log_args", "hub_results_org=x"),
            "upload what `medtasks card` writes",
            "leave it out",
        ),
        (
            ("run", "bridge_brateca_mortality", "--model", "vlm"),
            "unknown model type 'vlm'",
            "did you mean vllm",
        ),
        (("data", "check"), "no folder to check", "name it, or set MEDTASKS_DATA_DIR"),
        (("study", "gold", "nowhere", "--jury", "local", "-o", "out"), "nowhere", "→"),
    ],
)
def test_a_dead_end_says_what_to_do(medtasks, monkeypatch, tmp_path, command, message, remedy):
    monkeypatch.delenv("MEDTASKS_DATA_DIR", raising=False)
    outcome = medtasks(*command)
    assert outcome.code == 2 and message in outcome.err and remedy in outcome.err
    assert "Traceback" not in outcome.text and not (tmp_path / "out").exists()


def test_a_download_that_fails_leaves_no_run_and_speaks_of_no_file(medtasks, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("MEDTASKS_CACHE", "XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    outcome = medtasks("run", "bridge_mie", "--model", "oracle", "--data", "hub", "--output_path", "out")
    assert outcome.code == 2 and "tasks that cannot be loaded: 1" in outcome.err
    assert "run once with internet" in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_report_that_fails_leaves_no_folder(medtasks, tmp_path):
    outcome = medtasks("report", "nowhere", "-o", "page")
    assert outcome.code == 2 and "nowhere: no such folder" in outcome.err
    assert not (tmp_path / "page").exists()


def test_a_mistyped_strategy_is_named(medtasks, tmp_path, monkeypatch):
    own = tmp_path / "own" / "hospice"
    shutil.copytree(ROOT / "tasks" / "medhelm" / "hospice_referral", own)
    file = own / "task.yaml"
    text = file.read_text(encoding="utf-8").replace("{{ strategy }}", "{{ stratgy }}")
    file.write_text(
        text.replace("medhelm/", "own/").replace("task: medhelm_", "task: own_"), encoding="utf-8"
    )
    monkeypatch.setenv("MEDTASKS_TASKS", str(own.parent))
    outcome = medtasks("dev", "validate", "hospice")
    assert outcome.code == 1 and "write {{ strategy }} in place of {{ stratgy }}" in outcome.text


@pytest.mark.parametrize("model", ["random-label", "nearest-shot"])
def test_a_floor_of_a_judged_task_runs_without_references(medtasks, model):
    outcome = medtasks("run", "mlb_maethic", "--model", model, "--data", "sample", "--output_path", "run")
    assert outcome.code == 0 and "medtasks judge run --jury mlb --dry-run" in outcome.err
