"""The command line: listing, filtering, wrong arguments."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.cli.arguments import lm_eval_config
from medtasks_ext.registry import registry
from tests.conftest import ROOT, read_json
from tests.test_docs import check_line


def test_ls_filters_by_any_metadata_field_and_says_where_data_is(medtasks, chip_ctc):
    outcome = medtasks("ls", "suite=bridge", "task_type=text_classification")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert next(line for line in lines if "chip_ctc" in line).endswith("local files")
    assert next(line for line in lines if "c_emrs" in line).endswith("missing")
    assert next(line for line in lines if "dialmed" in line).endswith("download")
    assert not any("bridge_mie" in line for line in lines)


def test_ls_names_files_that_cannot_be_read(medtasks, tmp_path, monkeypatch):
    root = tmp_path / "tasks"
    shutil.copytree(registry().root, root)
    (root / "bridge" / "mie" / "task.yaml").write_text("task: [")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    outcome = medtasks("ls")
    assert "not listed: mie" in outcome.err and "not valid YAML" in outcome.err


@pytest.mark.parametrize(
    ("command", "place", "goes_on"),
    [
        (("run", "bridge_mie", "--model", "oracle"), "execute.RunCall", True),
        (("data", "fetch", "bridge_mie"), "data.chosen", True),
        (("report", "run"), "report.gather", False),
    ],
)
def test_ctrl_c_ends_a_command_with_a_word_and_says_how_it_goes_on(
    medtasks, monkeypatch, command, place, goes_on
):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"medtasks_ext.cli.{place}", interrupted)
    outcome = medtasks(*command)
    assert outcome.code == 130 and not outcome.out and "medtasks: interrupted" in outcome.err
    assert f"the same command goes on:\n  medtasks {' '.join(command)}\n" in outcome.err or not goes_on


def test_ls_lists_the_tasks_of_groups_and_joins_names(medtasks):
    listed = json.loads(medtasks("ls", "bridge_zh_cot", "medhelm_medqa", "--json").out)
    assert [item["task"] for item in listed] == [*registry().leaves("bridge_zh_cot"), "medhelm_medqa"]
    outcome = medtasks("ls", "medtasks_scoreable")
    n = len(registry().leaves("medtasks_scoreable"))
    assert outcome.code == 0 and len(outcome.out.splitlines()) == n + 2 and f"{n} datasets" in outcome.out
    few = medtasks("ls", "medtasks_scoreable", "language=zh", "--json")
    assert {item["language"] for item in json.loads(few.out)} == {"zh"}


@pytest.mark.parametrize(
    "arguments", [["bridge_mie", "medhelm_medqa"], ["bridge_mie", "--tasks", "medhelm_medqa"]]
)
def test_run_takes_names_of_tasks_by_themselves(medtasks, tmp_path, arguments):
    asked = ("--model", "oracle", "--data", "sample", "--limit", "2", "--output_path", "r")
    medtasks.done("run", *arguments, *asked)
    found = read_json(tmp_path / "r" / "run.json")["tasks"]
    assert set(found) == {"bridge_mie", "medhelm_medqa"}


def test_report_takes_a_folder_of_runs(medtasks, tmp_path):
    for name in ("oracle", "random-label"):
        command = ["run", "bridge_mie", "--model", name, "--data", "sample", "--output_path", f"runs/{name}"]
        assert medtasks(*command).code == 0
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{")
    (tmp_path / "runs" / "notes").mkdir()
    outcome = medtasks("report", "runs", "--json")
    found = json.loads(outcome.out)
    assert {entry["model"] for entry in found["entries"]} == {"oracle", "random-label"}
    assert outcome.code == 1 and [Path(fault["where"]).name for fault in found["faults"]] == ["broken"]


def test_run_takes_the_folder_that_lm_eval_takes(medtasks):
    arguments = "run --model oracle --tasks bridge_mie --data sample --output_path run --include_path"
    outcome = medtasks(*arguments.split(), medtasks("dev", "build").out.strip())
    assert outcome.code == 0 and "1.0000" in outcome.out


def test_what_a_configuration_file_says_is_not_printed(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("model: local-chat-completions\nmodel_args: {model: m, auth_token: SECRET}\n")
    lm_eval_config(["--config", str(file), "--tasks", "bridge_mie"], "run", "", "", {})
    printed = capsys.readouterr()
    assert "SECRET" not in printed.out + printed.err


def test_a_terminal_and_a_path_that_are_not_utf_8_are_taken(tmp_path):
    folder = b"out\xff"
    run = (
        "run",
        "--model",
        "oracle",
        "--data",
        "sample",
        "--tasks",
        "bridge_chip_ctc",
        "--output_path",
        folder,
    )
    for command in (
        run,
        ("report", folder, "--published", "none"),
        ("preview", "bridge_chip_ctc", "--data", "sample"),
    ):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
        words = [sys.executable, "-m", "medtasks_ext", *command]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == 0 and done.stdout.strip(), done.stderr.decode(errors="replace")


RUN = ("run", "--data", "sample", "--tasks", "bridge_chip_ctc,medhelm_mediqa", "--output_path", "a")
FORMS = ("study", "forms", "a", "--kind", "likert", "--tasks", "medhelm_mediqa", "-o", "forms")


def test_a_command_ends_with_the_one_that_makes_sense_next(medtasks):
    """Beside what is printed, never in it, and never after JSON."""
    medtasks.done(*RUN, "--model", "random-label")
    for command, then in (
        (("ls", "bridge_zh"), "medtasks preview"),
        (("preview", "bridge_chip_ctc", "--data", "sample"), "medtasks run"),
        (("report", "a", "--published", "none"), "medtasks report a -o report"),
        (("judge", "a", "--jury", "local", "--dry-run"), "the same command without --dry-run"),
        (FORMS, "medtasks study forms"),
        (("dev", "validate", "bridge_chip_ctc"), "medtasks preview bridge_chip_ctc"),
        (("data", "status", "bridge_zh"), "medtasks data"),
        (("data", "template", "bridge_mednli", "-o", "own"), "medtasks data check own"),
        (("study", "reproduce", "bridge:tables3"), "medtasks study reproduce bridge:tables3 -o figures"),
    ):
        outcome = medtasks.done(*command)
        said = [line.strip() for line in outcome.err.partition("next:")[2].splitlines() if line.strip()]
        assert any(line.startswith(then) for line in said) and "next:" not in outcome.out, command
        for words in (shlex.split(line.replace("…", "oracle")) for line in said):
            if words[0] == "medtasks":
                check_line(words)
    assert "next:" not in medtasks.done("ls", "bridge_zh", "--json").text


def test_a_download_that_fails_leaves_no_run_and_speaks_of_no_file(medtasks, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("MEDTASKS_CACHE", "XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    outcome = medtasks("run", "bridge_mie", "--model", "oracle", "--data", "hub", "--output_path", "out")
    assert outcome.code == 2 and "tasks that cannot be loaded: 1" in outcome.err
    assert "run once with internet" in outcome.err
    assert not (tmp_path / "out").exists()


ON_SAMPLES = "--model oracle --tasks bridge_mie --data sample"
#: command -> what its one message says
REFUSED = {
    "ls language=chinese": ["did you mean language=zh?"],
    "ls acess=open": ["did you mean access?"],
    "ls language=ja suite=mlb": ["leave one out: language=ja has"],
    "ls --groups nowhere": ["`medtasks ls --groups` lists all"],
    "run --model oracle --tasks bridge_mee": ["did you mean: bridge_mie"],
    "run --model oracle": ["no tasks given"],
    f"run {ON_SAMPLES}s": ["unknown data origin"],
    f"run {ON_SAMPLES} --model oracl": ["unknown model type"],
    f"run {ON_SAMPLES} -m oracle": ["did you mean --model or"],
    f"run {ON_SAMPLES} --wandb_args project=x": ["log the results file", "leave it out"],
    "run --config nope --tasks bridge_mie": ["no such file or bundled configuration"],
    "run --config qwen3-8b-thinkin --tasks bridge_mie": ["did you mean Qwen3-8B-Thinking"],
    "run --model oracle --tasks bridge_brateca_mortality": ["files go to bridge/Brateca-Mortality.SFT.json"],
    "plan oracle": ["oracle has no weights and asks no server", "medtasks run --model oracle --data sample"],
    "plan Qwen/Qwen3-8B --task bridge": ["No such option: --task (Possible options: --tasks)"],
    "data check": ["no folder to check", "name it, or set MEDTASKS_DATA_DIR"],
    "judge runs/a": ["For example: medtasks judge runs/MODEL --jury medhelm --dry-run"],
    "study gold nowhere --jury local": ["nowhere"],
}


@pytest.mark.parametrize("command", REFUSED)
def test_bad_input_is_refused_by_one_message_with_a_remedy(medtasks, tmp_path, monkeypatch, command):
    monkeypatch.delenv("MEDTASKS_DATA_DIR", raising=False)
    outcome = medtasks(*command.split())
    said = " ".join(outcome.err.split())
    assert outcome.code == 2 and all(words in said for words in REFUSED[command])
    assert any(words in said for words in ("→", "did you mean", "Possible options", "For example"))
    assert "Traceback" not in outcome.text and not outcome.out and not (tmp_path / "gold").exists()
