"""The functions for notebooks: the same figures as the commands print, as frames; and the notebook runs."""

import json
import os
import shlex
import subprocess
import sys

import polars as pl
import pytest

import medtasks_ext
from medtasks_ext import compare, datasets, load
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
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


def test_a_folder_without_results_is_one_error(tmp_path):
    with pytest.raises(MedtasksError):
        load(tmp_path)


def test_datasets_have_their_facts():
    found = datasets()
    assert found.height == len(registry().datasets)
    assert found.filter(
        (pl.col("language") == "ja") & pl.col("dataset").str.starts_with("bridge_")
    ).height == len(registry().leaves("medtasks_ja"))


def test_without_polars_one_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MedtasksError, match=r"pip install .*\[notebook\]"):
        datasets()


#: prints what `sys.modules` has of Polars after a command
USED = """
import sys
from medtasks_ext.cli.main import main
sys.argv = ["medtasks", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("polars" in sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("report", "oracle", "nearest-shot", "-o", "page"),
        ("compare", "oracle", "nearest-shot"),
        ("card", "oracle", "-o", "card"),
    ],
    ids=lambda command: command[0],
)
def test_commands_do_without_polars(runs, tmp_path, command):
    words = [sys.executable, "-c", USED, *command]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "False", done.stderr


def test_the_package_offers_what_it_says():
    assert all(hasattr(medtasks_ext, name) for name in medtasks_ext.__all__)
    with pytest.raises(AttributeError):
        medtasks_ext.nothing  # noqa: B018


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
