"""Two runs on the same documents, and experts who fill forms."""

import csv
import shutil
from pathlib import Path

import pytest

from tests.conftest import command, read_json, rewrite_answers, write_jsonl
from tests.judge.conftest import make_rows, make_task, rows
from tests.report.made import data_of

N = 12
TASK, GATED = "medhelm_qa", "medhelm_gated"
MODELS = ("runs/llama-med", "runs/gpt-x")


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory) -> Path:
    """A folder with the tasks and the runs of two models on them."""
    root = tmp_path_factory.mktemp("human")
    for name, access in (("qa", "open"), ("gated", "gated")):
        make_task(root / "tasks", name, access=access)
        make_rows(root / "data", name, rows(N))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MEDTASKS_TASKS_DIR", str(root / "tasks"))
        patch.setenv("MEDTASKS_DATA_DIR", str(root / "data"))
        for number, run in enumerate(MODELS):
            command("run", "--model", "oracle", "--tasks", f"{TASK},{GATED}", "--output_path", run)
            texts = {f"d{i}": f"<think>the trace of {run}</think>{text_of(number, i)}" for i in range(N)}
            for task in (TASK, GATED):
                rewrite_answers(root / run, task, texts)
            command("rescore", run)
    return root


def text_of(run: int, document: int) -> str:
    """The answer of a run (0 or 1); the second run leaves document 3 without one."""
    return "" if (run, document) == (1, 3) else f"Advice {'ab'[run]}{document}: rest."


@pytest.fixture
def runs(made_runs, tmp_path, monkeypatch) -> Path:
    """A folder of one's own with a copy of both runs."""
    shutil.copytree(made_runs / "runs", tmp_path / "runs")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(made_runs / "tasks"))
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(made_runs / "data"))
    return tmp_path


@pytest.fixture
def export(runs, medtasks):
    """Export forms: `export("-n", 5)` writes the folder `forms`."""

    def call(*options: object, tasks: str = TASK, out: str = "forms") -> Path:
        medtasks.done("study", "forms", *MODELS, "--tasks", tasks, *options, "-o", out)
        return runs / out

    return call


QUEUE = [
    {
        "id": f"c{case}",
        "question": f"胸痛患者{case},如何处理?",
        "answer": f"=立即行心电图检查,第{case}例。",
        "points": [
            {"id": f"p{point}", "text": f"要点{point}:及时再灌注", "weight": point + 1}
            for point in range(case + 1)
        ],
    }
    for case in range(3)
]


@pytest.fixture
def queue(tmp_path) -> Path:
    """Three cases with one, two and three points."""
    return write_jsonl(tmp_path / "queue.jsonl", QUEUE)


def key_of(folder: Path) -> dict:
    return read_json(folder / "key.json")


def write(folder: Path, expert: str, choose) -> Path:
    """Fill a form as its page exports it: `choose(about)` answers each question of a row."""
    key = key_of(folder)
    page = data_of(folder / f"{expert}.html")
    table = [["form", "row", *page["columns"]]]
    for row, record in key["forms"][expert].items():
        given = (choose(record["about"], question) for question in page["columns"])
        table.append([f"{key['export']}/{expert}", row, *given])
    path = folder.parent / f"{folder.name}_{expert}.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(table)
    return path
