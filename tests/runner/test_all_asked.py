"""One call of a run on a server asks everything, once, and scores it, however many tasks share records."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry import forget
from tests.conftest import ROOT, write_jsonl
from tests.engines.server import Server
from tests.run_files import results_of

#: A dataset whose zero-shot and chain of thought share a long record, so that they are asked in turn.
LONG = "allergie_farmaci"
SUITES = ("bridge", "medhelm", "clinicbench", "mlb")
STRATEGIES = ("", "_cot", "_5shot")
ALL = [name + strategy for name in (LONG, *SUITES) for strategy in STRATEGIES]


@pytest.fixture
def long_records(tmp_path, monkeypatch):
    folder = tmp_path / "mine" / LONG
    shutil.copytree(ROOT / "tests" / "own_tasks" / LONG, folder)
    text = (folder / "task.yaml").read_text(encoding="utf-8").replace("class: !function ", "class: ")
    task = yaml.safe_load(text)
    task["prompt"] |= {"instruction": "", "input": "{{ testo }}\n\nAllergia? sì o no. {{ strategy }}"}
    text = yaml.safe_dump(task, allow_unicode=True, sort_keys=False)
    (folder / "task.yaml").write_text(text.replace("class: ", "class: !function "), encoding="utf-8")
    rows = [
        {"_split": split, "id": f"{split}{n}", "testo": f"Nota {n} {split}. " * 300, "allergia": "no"}
        for split in ("test", "fewshot")
        for n in range(5)
    ]
    write_jsonl(folder / "sample.jsonl", rows)
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    forget()
    yield
    forget()


@pytest.mark.parametrize(
    ("tasks", "more"),
    [
        ([LONG, "medhelm_race_bias", f"{LONG}_cot"], ("--gen_kwargs", "max_gen_toks=50")),
        ([*(LONG + strategy for strategy in STRATEGIES), "clinicbench"], ("--limit", "1")),
        pytest.param(ALL, ("--limit", "1"), marks=pytest.mark.nightly),
    ],
)
def test_one_call_asks_every_request_once_and_scores_every_task(medtasks, long_records, tasks, more):
    with Server() as server:
        address = f"model=m-2026,base_url={server.url}/chat/completions,num_concurrent=16"
        command = ("run", "--data", "sample", "--tasks", ",".join(tasks), "--model", "local-chat-completions",
                   "--model_args", address, "--apply_chat_template", "--no-preflight", *more)  # fmt: skip
        done = medtasks(*command, "--output_path", "run")
    assert done.code == 0, done.text
    states = {
        name: entry["state"] for name, entry in json.loads(Path("run/run.json").read_text())["tasks"].items()
    }
    results = results_of("run")
    assert set(states.values()) == {"done"} and len(states) >= len(tasks)
    documents = sum(len(path.read_bytes().splitlines()) for path in Path("run").glob("samples_*.jsonl"))
    assert Counter(asked.content for asked in server.asked).most_common(1)[0][1] == 1
    assert len(server.asked) == documents >= len(states) == len(results["configs"])
