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
