"""CONTRIBUTING.md, followed to the letter in a copy of the tree: its commands run, its dataset joins.

A fenced block after `<!-- not run by the test: REASON -->` is left out. Every other `sh` block is run; every
other fenced block is the content of the file that the line above it names.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.registry import Registry, registry
from tests.conftest import ROOT
from tests.run_files import results_of

TASK = "medhelm_falls_clinic"
BLOCK = re.compile(r"^([^\n]+)\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: the dataset of the page under another name
SECOND = (
    ("falls_clinic", "sleep_clinic"), ("falls-clinic", "sleep-clinic"), ("FallsClinic", "SleepClinic"),
    ("2026falls", "2026sleep"), ("A Dataset that Does Not Exist", "A Second Dataset that Does Not Exist"),
)  # fmt: skip


def steps() -> list[tuple[str, str]]:
    """What a contributor types, in order: commands, or a file and its content."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```") / 2
    followed = [block for block in blocks if not block[0].startswith("<!-- not run by the test: ")]
    return [("" if kind == "sh" else re.findall(r"`([^`]+/[^`]+)`", above)[-1], content)
            for above, kind, content in followed]  # fmt: skip


def shell(tree: Path, script: str) -> str:
    """What a script prints where `medtasks` is that of a copy of the tree; it must succeed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MEDTASKS_")}
    environment |= {"PATH": f"{tree}/.bin:{os.environ['PATH']}", "PYTHONPATH": str(tree)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tree, env=environment, text=True, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree in which all steps were followed on a branch, and what was printed."""
    tree = tmp_path_factory.mktemp("contributing") / "medtasks"
    (tree / ".bin").mkdir(parents=True)
    for name in ("medtasks_ext", "tasks", "docs"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("tasks.lock", "pyproject.toml", ".gitattributes", ".gitignore"):
        shutil.copy(ROOT / name, tree)
    command = tree / ".bin" / "medtasks"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m medtasks_ext "$@"\n')
    command.chmod(0o755)
    shell(tree, "git init -q -b main; git config user.name A; git config user.email a@example.org;"
          "git config commit.gpgsign false; git add .gitattributes .gitignore tasks tasks.lock;"
          "git commit -qm base; git switch -q -c falls")  # fmt: skip
    printed = ""
    for file, content in steps():
        if file:
            assert (tree / file).parent.is_dir(), f"{file}: no earlier step made its folder"
            (tree / file).write_text(content, encoding="utf-8")
        else:
            printed += shell(tree, content)
    return tree, printed


def test_the_new_task_is_valid_listed_previewed_run_built_and_locked(copy):
    tree, printed = copy
    assert TASK not in registry().tasks
    assert f"✓ {TASK}\n" in printed and "1 checked, 0 with problems" in printed
    assert re.search(rf"^{TASK}  +en  +text_classification .*missing$", printed, re.MULTILINE)
    shown = printed.partition("your answer: 'A. refer'")[2].splitlines()
    assert shown[1] == '  official reading: "A" (the first token; characters 1 to 1)'
    assert shown[2].startswith("  SAMPLE score ")
    metrics = results_of(tree / "runs/try")["results"][f"{TASK}_5shot"]
    assert metrics["SAMPLE_DATA,answer"] == 1 and 0 <= metrics["score,answer"] <= 1
    shell(tree, "medtasks dev build --check")
    assert f"task: {TASK}_cot\n" in (tree / "build/tasks/medhelm/falls_clinic/cot.yaml").read_text()
    before, after = ((root / "tasks.lock").read_text().splitlines() for root in (ROOT, tree))
    (added,) = set(after) - set(before)
    assert added.startswith(f"{TASK} 1-A ") and set(before) < set(after)


def test_the_new_task_joins_its_groups(copy):
    before, after = registry(), Registry(copy[0] / "tasks")
    for group in ("medhelm", "medhelm_admin", "medtasks_en", "medtasks_spec_primary_care", "medhelm_private"):
        for suffix in ("", "_cot", "_5shot"):
            joined = set(after.leaves(group + suffix)) - set(before.leaves(group + suffix))
            assert joined == {TASK + suffix}
    assert set(after.groups) == set(before.groups)


@pytest.mark.nightly
def test_branches_that_follow_the_page_merge(copy, tmp_path):
    """Two datasets, each on a branch of its own: no conflict, and all is right after it."""
    tree = shutil.copytree(copy[0], tmp_path / "medtasks")
    shell(tree, "git add tasks tasks.lock; git commit -qm 'one dataset'; git switch -q -c sleep main")
    for file, content in steps():
        for old, new in SECOND:
            file, content = file.replace(old, new), content.replace(old, new)
        if file:
            (tree / file).parent.mkdir(exist_ok=True)
            (tree / file).write_text(content, encoding="utf-8")
    shell(tree, "medtasks dev lock medhelm_sleep_clinic; git add tasks tasks.lock; git commit -qm another")
    changed = shell(tree, "git diff --name-only main").split()
    assert [name for name in changed if not name.startswith("tasks/")] == ["tasks.lock"]
    shell(tree, "git switch -q main; git merge -q falls; git merge -q sleep")
    new = ("medhelm_falls_clinic", "medhelm_sleep_clinic")
    assert "2 checked, 0 with problems" in shell(tree, f"medtasks dev validate {' '.join(new)}")
    assert "2 datasets agree" in shell(tree, f"medtasks dev lock --check {' '.join(new)}")
    before, lines = ((root / "tasks.lock").read_text().splitlines() for root in (ROOT, tree))
    assert set(before) < set(lines) and len(lines) == len(before) + 2
