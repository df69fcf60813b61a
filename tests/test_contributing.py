"""CONTRIBUTING.md, followed to the letter in a copy of the tree: its commands run, its dataset joins.

A fenced block after `<!-- not run by the test: REASON -->` is left out. Every other `sh` block is run; every
other fenced block is the content of the file that the line above it names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from medtasks_ext.registry import Registry, registry
from tests.conftest import ROOT

TASK = "medhelm_falls_clinic"
#: a dataset in a language that no built-in one has, and whose score comes from judges
POLISH, POLISH_TASK = "pytania_o_leki", "medhelm_pytania_o_leki"
#: tests that count datasets, tasks, groups or languages, or go through all of them
COUNTING = (
    "tests/registry", "tests/report", "tests/results/test_coverage.py", "tests/results/test_departments.py",
    "tests/results/test_reading.py", "tests/results/test_store.py", "tests/cli", "tests/data",
    "tests/test_all_tasks.py", "tests/test_docs.py", "tests/test_rollup.py", "tests/test_medhelm_figures.py",
    "tests/test_own_tasks.py", "tests/runner/test_lock.py", "tests/metrics/test_properties.py",
    "tests/rows/test_row_schemas.py", "tests/answers", "tests/human", "tests/studies/test_sample.py",
)  # fmt: skip
COPIED = ("medtasks_ext", "medtasks_lab", "tasks", "tasks.lock", "docs", "pyproject.toml")
#: what a checkout has beside its files
NOT_COPIED = (".git", ".venv", ".venv-engine", "build", "dist", "runs")
_BLOCK = re.compile(
    r"^(?P<above>[^\n]+)\n\n```(?P<kind>\w+)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Step:
    """One fenced block. `file` is None for commands."""

    content: str
    file: str | None


def steps() -> tuple[list[Step], list[str]]:
    """What a contributor types, in order; and why blocks are left out."""
    followed, left_out = [], []
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(_BLOCK.findall(text)) == text.count("```") / 2
    for block in _BLOCK.finditer(text):
        if reason := re.fullmatch(r"<!-- not run by the test: (.+) -->", block["above"]):
            left_out.append(reason[1])
        elif block["kind"] == "sh":
            followed.append(Step(block["content"], None))
        else:
            *_, file = re.findall(r"`([^`]+/[^`]+)`", block["above"])
            followed.append(Step(block["content"], file))
    return followed, left_out


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree in which all steps were followed, and what was printed."""
    tree = tmp_path_factory.mktemp("contributing") / "medtasks"
    for name in COPIED:
        source = ROOT / name
        copied = shutil.copytree if source.is_dir() else shutil.copy
        tree.mkdir(exist_ok=True)
        copied(source, tree / name)
    command = tree / ".bin" / "medtasks"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m medtasks_ext "$@"\n')
    command.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MEDTASKS_")}
    environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(tree)}
    printed = ""
    for step in steps()[0]:
        if step.file is None:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", step.content],
                cwd=tree, env=environment, text=True, capture_output=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, f"{step.content}\n{done.stdout}\n{done.stderr}"
            printed += done.stdout
        else:
            file = tree / step.file
            assert file.parent.is_dir(), f"{step.file}: no earlier step made its folder"
            file.write_text(step.content, encoding="utf-8")
    return tree, printed


def test_the_example_is_a_dataset_that_does_not_exist():
    assert TASK not in registry().tasks
    assert {step.file for step in steps()[0] if step.file} == {
        "tasks/medhelm/falls_clinic/task.yaml",
        "tasks/medhelm/falls_clinic/sample.jsonl",
        "tasks/medhelm/falls_clinic/card.yaml",
        "tasks/medhelm/falls_clinic/citation.bib",
    }


def test_only_the_network_and_the_whole_test_suite_are_left_out():
    assert set(steps()[1]) == {"it needs a network", "it runs all tests"}


def test_the_new_task_is_valid_listed_and_run(copy):
    tree, printed = copy
    assert f"✓ {TASK}\n" in printed and "1 checked, 0 with problems" in printed
    assert re.search(rf"^{TASK}  +en  +text_classification .*missing$", printed, re.MULTILINE)
    metrics = json.loads((tree / "runs/try/results.json").read_text())["results"][f"{TASK}_5shot"]
    assert metrics["SAMPLE_DATA,answer"] == 1 and 0 <= metrics["score,answer"] <= 1


def test_the_new_task_joins_its_groups(copy):
    before, after = registry(), Registry(copy[0] / "tasks")
    for group in ("medhelm", "medhelm_admin", "medtasks_en", "medtasks_spec_primary_care", "medhelm_private"):
        for suffix in ("", "_cot", "_5shot"):
            joined = set(after.leaves(group + suffix)) - set(before.leaves(group + suffix))
            assert joined == {TASK + suffix}
    assert set(after.groups) == set(before.groups)


def test_the_preview_says_what_the_page_says(copy):
    shown = copy[1].partition("your answer: 'A. refer'")[2]
    assert shown.splitlines()[1] == '  official reading: "A" (the first token; characters 1 to 1)'
    assert "  SAMPLE score " in shown


def test_what_follows_from_the_new_task_is_built_and_locked(copy):
    tree = copy[0]
    done = subprocess.run(
        [tree / ".bin" / "medtasks", "dev", "build", "--check"],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "FallsClinic" in (tree / "build/catalogue/medhelm.md").read_text(encoding="utf-8")
    built = (tree / "build/tasks/medhelm/falls_clinic/cot.yaml").read_text()
    assert f"task: {TASK}_cot\n" in built and "medhelm_admin_cot_tasks" in built
    before, after = ((root / "tasks.lock").read_text().splitlines() for root in (ROOT, tree))
    (added,) = set(after) - set(before)
    assert added.startswith(f"{TASK} 1-A ") and set(before) < set(after)


# ---------------------------------------------------------------------- the tests of the others


def add_polish(tree: Path) -> None:
    """The Polish dataset of tests/own_tasks as one of MedHELM, with its citation beside it."""
    own, folder = ROOT / "tests" / "own_tasks" / "wards", tree / "tasks" / "medhelm" / POLISH
    shutil.copytree(own / POLISH, folder)
    shutil.copy(own / "citation.bib", folder)
    file = folder / "task.yaml"
    text = file.read_text(encoding="utf-8")
    axes = "{category: patient_communication, subcategory: providing_patient_education_resources}"
    for old, new in (
        (f"wards_{POLISH}", POLISH_TASK),
        (f"wards/{POLISH}", f"medhelm/{POLISH}"),
        ("{unit: outpatient}", axes),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


@pytest.mark.nightly
def test_datasets_that_were_added_make_no_other_test_red(copy):
    """Counts of tests are over the papers' lists: with the example and a Polish dataset, all hold."""
    tree = copy[0]
    for source in ROOT.iterdir():
        if source.is_dir() and not (tree / source.name).exists() and source.name not in NOT_COPIED:
            shutil.copytree(source, tree / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file() and not (tree / source.name).exists():
            shutil.copy(source, tree)
    add_polish(tree)
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    commands = (
        ("medtasks_ext", "dev", "validate", POLISH_TASK),
        ("medtasks_ext", "dev", "build"),
        ("medtasks_ext", "dev", "lock", POLISH_TASK),
        ("pytest", "-q", "-n", "0", "-m", "not engine and not install and not nightly", *COUNTING),
    )
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tree, env=environment, text=True, capture_output=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
