"""The table of a run says the highest possible score where perfect answers do not score 1."""

import json

from tests.run_files import result_of


def test_the_highest_possible_score_stands_beside_the_score(medtasks, tmp_path):
    run = tmp_path / "run"
    tasks = "medhelm_medcalc_bench,bridge_ruccon,medhelm_medec"
    done = medtasks.done(
        "run", "--tasks", tasks, "--model", "random-label", "--output_path", run, "--data", "sample"
    )
    records = {name: result_of(run, name) for name in tasks.split(",")}
    perfect = tmp_path / "perfect"
    medtasks.done("run", "--tasks", tasks, "--model", "oracle", "--output_path", perfect, "--data", "sample")
    for name, record in records.items():
        reached = result_of(perfect, name)["metrics"]["score"]
        line = next(line for line in done.out.splitlines() if line.strip().startswith(name))
        assert f" {reached:.3f} " in line and record["highest"] == (reached if reached < 1 else None)
    assert records["medhelm_medcalc_bench"]["highest"] < 1


def test_gold_that_a_suite_reads_in_part_is_the_highest_possible_score(medtasks, data_dir, tmp_path):
    rows = [
        {"task": "RuCCoN", "language": "ru", "task type": "t", "id": n, "split": "test", "instruction": "I",
         "input": f"Текст {n}: боль; жар.",
         "output": f"entity: {'боль; жар' if n == 0 else 'боль'}, type: Symptom;"}
        for n in range(100)
    ]  # fmt: skip
    (data_dir / "bridge").mkdir()
    (data_dir / "bridge" / "RuCCoN.SFT.json").write_text(json.dumps(rows), "utf-8")
    asked = "run --tasks bridge_ruccon --model oracle --data local --output_path run"
    done = medtasks(*asked.split())
    record = result_of(tmp_path / "run", "bridge_ruccon")
    assert record["highest"] == record["metrics"]["score"] < 1
    assert f" {record['highest']:.3f} " in done.out
