"""The functions for notebooks: the same figures as the commands print, as frames; and the notebook runs."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from medtasks_ext import compare, datasets, load
from medtasks_ext.errors import MedtasksError
from tests.conftest import ROOT, read_json


@pytest.fixture
def runs(tmp_path, medtasks):
    for model in ("oracle", "nearest-shot"):
        medtasks.done(
            "run", "--data", "sample", "--model", model, "--tasks", "medhelm_admin", "--output_path", model
        )
    return tmp_path / "nearest-shot", tmp_path / "oracle"


def test_groups_and_scores_are_those_of_the_report(runs, medtasks):
    found = load(*runs)
    said = json.loads(medtasks("report", *map(str, runs), "--published", "none", "--json").out)["groups"]
    assert found.groups.select("entry", "title", "score", "rank").rows() == [
        (row["entry"], row["title"], row["score"], row["rank"]) for row in said
    ]
    oracle = found.scores.filter(entry="oracle", metric="score")
    assert len(oracle) == 5 and set(oracle["value"]) == {1.0}
    assert found.conditions.filter(entry="oracle").height == 5
    assert set(found.conditions["strategy"]) == {"zero_shot"} and set(found.conditions["source"]) == {
        "synthetic"
    }


def test_changes_are_those_of_compare(runs, medtasks):
    found = compare(*runs)
    said = json.loads(medtasks("compare", *map(str, runs), "--json").out)
    frames = {"asked": found.asked, "groups": found.groups, "tasks": found.tasks, "flipped": found.documents}
    for name, frame in frames.items():
        assert frame.to_dicts() == said[name]


def test_without_polars_one_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MedtasksError, match=r"pip install .*\[notebook\]"):
        datasets()


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = read_json(notebook)["cells"]
    names: dict = {"run_line": _shell}
    for cell in cells:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            assert not cell["outputs"], "no output is kept: figures on sample rows look like results"
            for line in [part for part in source.splitlines() if part.startswith("!")]:
                source = source.replace(line, f"run_line({line[1:]!r})")
            exec(compile(source, notebook.name, "exec"), names)


def _shell(line: str) -> None:
    words = shlex.split(line)
    assert words[0] == "medtasks"
    done = subprocess.run(
        [sys.executable, "-m", "medtasks_ext", *words[1:]],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
