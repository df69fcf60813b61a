"""`medtasks card --layout bridge`: the folder that the leaderboard takes."""

import json
import shutil

from medtasks_ext.registry.folders import tasks_folder

RUN = ("run", "--model", "oracle", "--output_path", "run", "--tasks")


def test_each_strategy_is_written_where_the_official_code_would_write_it(medtasks, chip_ctc, tmp_path):
    medtasks.done(*RUN, ",".join(f"bridge_chip_ctc{suffix}" for suffix in ("", "_cot", "_5shot")))
    medtasks.done("card", "run", "--layout", "bridge", "-o", "out", "--parts")
    for mode in ("direct", "cot", "direct-5-shot"):
        path = tmp_path / "out/result/CHIP-CTC/oracle" / f"CHIP-CTC-{mode}-greedy-42.result.json"
        rows = json.loads(path.read_text())
        assert len(rows) == 8
        assert " ".join(sorted(rows[0])) == (
            "id input instruction language notes output pred split task task type"
        )
        assert rows[0]["id"] == "test-0" and rows[0]["input"] == "入组标准第0条"
        assert rows[0]["pred"].endswith(rows[0]["output"])


def test_a_dataset_that_is_not_the_papers_is_named(medtasks, data_dir, tmp_path, monkeypatch):
    built_in, root = tasks_folder() / "bridge", tmp_path / "tasks" / "bridge"
    shutil.copytree(built_in / "mednli", root / "later")
    shutil.copy(built_in / "suite.yaml", root)
    file = root / "later" / "task.yaml"
    said = file.read_text().replace("mednli\n", "later\n")
    columns = "rows:\n  schemas:\n    - columns: [id, input, output]\n"
    file.write_text(said.replace("rows:\n", columns, 1))
    rows = data_dir / "bridge" / "later" / "test.jsonl"
    rows.parent.mkdir(parents=True)
    shutil.copy(built_in / "mednli" / "sample.jsonl", rows)
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root.parent))
    medtasks(*RUN, "bridge_later")
    outcome = medtasks("card", "run", "--layout", "bridge", "-o", "out", "--parts")
    assert outcome.code == 2 and "bridge_later is none of the leaderboard's tasks" in outcome.err
