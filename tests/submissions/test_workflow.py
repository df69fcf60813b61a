"""What a pull request runs: the base branch's check on the folders that differ; names of files stay data."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.conftest import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "submissions.yml"
UNDER = "results/submissions/Org/random-label/2026-05-01"


@pytest.fixture
def clone(submission, tmp_path):
    """A repository whose branch adds a submission; returns a call of the check."""
    folder = tmp_path / "clone"
    programs = tmp_path / "programs"
    programs.mkdir()
    command = programs / "medtasks"
    command.write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec '{sys.executable}' -m medtasks_ext \"$@\"\n")
    command.chmod(0o755)

    def git(*arguments):
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        return subprocess.run(
            ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
        )

    folder.mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "base")
    base = git("rev-parse", "HEAD").stdout.strip()
    shutil.copytree(submission, folder / UNDER)

    def check():
        git("add", "-A")
        git("commit", "-q", "-m", "change")
        path = f"{programs}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", str(ROOT / ".github" / "check_submissions.sh"), str(folder)],
            env={**os.environ, "PATH": path, "BASE": base},
            capture_output=True,
            text=True,
        )

    return folder, check


def test_a_submission_passes_and_an_edited_one_does_not(clone):
    folder, check = clone
    passed = check()
    assert passed.returncode == 0 and f"✓ {UNDER}: answers checked: 2 of 4" in passed.stdout, passed.stderr
    file = folder / UNDER / "submission.json"
    file.write_text(file.read_text().replace('"score": 0', '"score": 1', 1))
    assert check().returncode == 1


def test_names_that_a_shell_would_run_are_only_names(clone):
    """One check of a stray file of each name: what is no word of a command is named."""
    folder, check = clone
    names = ["--help", "$(touch hit)", "`touch hit`; touch hit", "a\nb", "Org -> /etc", "2026-05-01"]
    for name in names:
        stray = folder / "results" / "submissions" / name / "x"
        stray.parent.mkdir(parents=True)
        stray.write_text("text")
    found = check()
    assert found.returncode == 1 and found.stdout.count("is no file of a submission") == len(names)
    assert not list(folder.rglob("hit"))


def test_the_workflow_has_no_secrets_writes_nothing_and_runs_the_base():
    content = yaml.safe_load(WORKFLOW.read_text())
    text = WORKFLOW.read_text()
    assert content["permissions"] == {"contents": "read"} and list(content["on"]) == ["pull_request"]
    assert "secrets." not in text and "pull_request_target" not in text
    steps = content["jobs"]["check"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ["python -m pip install ./base", "sh base/.github/check_submissions.sh head"]
    # what a stranger can name never becomes a word of a command
    assert not any("${{" in command for command in commands)
    assert all(
        step["with"]["persist-credentials"] is False for step in steps if "checkout" in step.get("uses", "")
    )
