"""CONTRIBUTING.md, followed to the letter in a copy of the tree: its commands run, its dataset joins.

A fenced block after `<!-- not run by the test: REASON -->` is left out. Every other `sh` block is run; every
other fenced block is the content of the file that the line above it names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from medtasks_ext.registry import Registry, registry
from tests.conftest import ROOT, write_jsonl
from tests.run_files import results_of

TASK = "medhelm_falls_clinic"
#: a dataset in a language that no built-in one has, and whose score comes from judges
POLISH, POLISH_TASK = "pytania_o_leki", "medhelm_pytania_o_leki"
#: tests that count datasets, tasks, groups or languages, or go through all of them
COUNTING = (
    "tests/registry", "tests/report", "tests/results/test_clusters.py",
    "tests/results/test_reading.py", "tests/cli", "tests/data",
    "tests/test_all_tasks.py", "tests/test_docs.py", "tests/results/test_rollup.py",
    "tests/test_medhelm_figures.py",
    "tests/test_own_tasks.py", "tests/runner/test_lock.py", "tests/metrics/test_properties.py",
    "tests/rows/test_row_schemas.py", "tests/answers", "tests/human", "tests/studies/test_commands.py",
)  # fmt: skip
COPIED = ("medtasks_ext", "tasks", "tasks.lock", "docs", "pyproject.toml")
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


@dataclass(frozen=True)
class Checkout:
    """A copy of the tree, in which commands run as a contributor calls them."""

    tree: Path

    @classmethod
    def made(cls, tree: Path) -> Checkout:
        tree.mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            copied = shutil.copytree if source.is_dir() else shutil.copy
            copied(source, tree / name)
        command = tree / ".bin" / "medtasks"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m medtasks_ext "$@"\n')
        command.chmod(0o755)
        return cls(tree)

    def run(self, script: str) -> str:
        """What a shell script prints; it must succeed."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MEDTASKS_")}
        environment |= {"PATH": f"{self.tree}/.bin:{os.environ['PATH']}", "PYTHONPATH": str(self.tree)}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.tree, env=environment, text=True, capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def follow(self) -> str:
        """Do what the page says; what was printed."""
        printed = ""
        for step in steps()[0]:
            if step.file is None:
                printed += self.run(step.content)
            else:
                file = self.tree / step.file
                assert file.parent.is_dir(), f"{step.file}: no earlier step made its folder"
                file.write_text(step.content, encoding="utf-8")
        return printed

    def write_files(self, *renamed: tuple[str, str]) -> None:
        """The files of the page for a dataset of another name; of its commands the one that writes."""
        for step in steps()[0]:
            if step.file is not None:
                content, name = step.content, step.file
                for old, new in renamed:
                    content, name = content.replace(old, new), name.replace(old, new)
                (self.tree / name).parent.mkdir(exist_ok=True)
                (self.tree / name).write_text(content, encoding="utf-8")
        self.run("medtasks dev lock medhelm_sleep_clinic")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree in which all steps were followed on a branch, and what was printed."""
    checkout = Checkout.made(tmp_path_factory.mktemp("contributing") / "medtasks")
    for name in (".gitattributes", ".gitignore"):
        shutil.copy(ROOT / name, checkout.tree)
    checkout.run(
        "git init -q -b main; git config user.name A; git config user.email a@example.org;"
        "git config commit.gpgsign false; git add .gitattributes .gitignore tasks tasks.lock;"
        "git commit -qm base; git switch -q -c falls"
    )
    return checkout.tree, checkout.follow()


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
    metrics = results_of(tree / "runs/try")["results"][f"{TASK}_5shot"]
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
    built = (tree / "build/tasks/medhelm/falls_clinic/cot.yaml").read_text()
    assert f"task: {TASK}_cot\n" in built
    assert f"  - {TASK}_cot\n" in (tree / "build/tasks/groups/medhelm_admin_cot.yaml").read_text()
    before, after = ((root / "tasks.lock").read_text().splitlines() for root in (ROOT, tree))
    (added,) = set(after) - set(before)
    assert added.startswith(f"{TASK} 1-A ") and set(before) < set(after)


ROWS = [
    {
        "q": f"Which vaccine does invented traveller {n} need first?",
        "options": ["MMR", "Tdap", "IPV"],
        "key": "ABC"[n % 3],
    }
    for n in range(12)
]


def by_the_wizard(checkout: Checkout) -> None:
    """A dataset from a file of rows, with what is marked TODO written."""
    write_jsonl(checkout.tree / "rows.jsonl", ROWS)
    checkout.run(
        "medtasks data new --from rows.jsonl --id commons_vaccines --kind choice access=open language=en"
        " --map question=q --map options=options --map answer=key"
        " task_type=multiple_choice document_types=exam_question specialties=general"
        " stage=initial_assessment"
    )
    folder = checkout.tree / "tasks" / "commons" / "vaccines"
    for name in ("task.yaml", "card.yaml"):
        text = (folder / name).read_text("utf-8")
        text = re.sub("citation: .*", "citation: made2026vaccines", text)
        (folder / name).write_text(re.sub(r"TODO: ?", "", text), "utf-8")
    (folder / "citation.bib").write_text(
        "@misc{made2026vaccines, title={Invented Vaccines}, author={Nobody}, year={2026}}\n"
    )
    split = [{"_split": ("fewshot", "test")[place > 4], **row} for place, row in enumerate(ROWS)]
    write_jsonl(folder / "sample.jsonl", split)
    checkout.run("medtasks dev lock commons_vaccines")


@pytest.mark.nightly
def test_branches_that_follow_the_page_or_the_wizard_merge(copy, tmp_path):
    """Three datasets, each on a branch of its own: no conflict, and all is right after it."""
    checkout = Checkout(shutil.copytree(copy[0], tmp_path / "medtasks"))
    sleep = (
        ("falls_clinic", "sleep_clinic"), ("falls-clinic", "sleep-clinic"), ("FallsClinic", "SleepClinic"),
        ("2026falls", "2026sleep"), ("A Dataset that Does Not Exist", "A Second Dataset that Does Not Exist"),
    )  # fmt: skip
    for branch, write in (
        ("falls", None),  # as the page was followed
        ("sleep", lambda: checkout.write_files(*sleep)),
        ("vaccines", lambda: by_the_wizard(checkout)),
    ):
        if write:
            checkout.run(f"git switch -q -c {branch} main")
            write()
        checkout.run("git add tasks tasks.lock; git commit -qm 'one dataset'")
        changed = checkout.run("git diff --name-only main").split()
        assert [name for name in changed if not name.startswith("tasks/")] == ["tasks.lock"]
    checkout.run("git switch -q main; git merge -q falls; git merge -q sleep; git merge -q vaccines")
    new = ("medhelm_falls_clinic", "medhelm_sleep_clinic", "commons_vaccines")
    assert "3 checked, 0 with problems" in checkout.run(f"medtasks dev validate {' '.join(new)}")
    assert "3 datasets agree" in checkout.run(f"medtasks dev lock --check {' '.join(new)}")
    before, lines = ((root / "tasks.lock").read_text().splitlines() for root in (ROOT, checkout.tree))
    assert set(before) < set(lines) and len(lines) == len(before) + 3
    assert [sum(line.startswith(f"{name} ") for line in lines) for name in new] == [1, 1, 1]


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
