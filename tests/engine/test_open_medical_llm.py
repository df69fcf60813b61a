"""The leaderboard's nine tasks ask what lm-eval's own tasks ask, and get the same likelihoods."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lm_eval.tasks
import pytest
import yaml

from medtasks_ext.registry import registry
from medtasks_ext.registry.build import build
from tests.engine.test_likelihood import lm_eval as evaluated
from tests.engine.tiny_model import make

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

SUITE = "open_medical_llm"
#: names a folder of rows for this test, as MEDTASKS_DATA_DIR does: `open_medical_llm/DATASET/test.jsonl`
ROWS = "MEDTASKS_OPEN_MEDICAL_LLM_ROWS"
#: documents of each task that are asked of such rows
MOST = 100
SUBJECTS = (
    "anatomy", "clinical_knowledge", "college_biology", "college_medicine", "medical_genetics",
    "professional_medicine",
)  # fmt: skip
#: dataset -> lm-eval's own file, below its folder of tasks
OWN = {
    "medqa": "medqa/medqa.yaml",
    "medmcqa": "medmcqa/medmcqa.yaml",
    "pubmedqa": "pubmedqa/pubmedqa.yaml",
    **{f"mmlu_{subject}": f"mmlu/default/mmlu_{subject}.yaml" for subject in SUBJECTS},
}


def in_hub_layout(dataset: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as the repository has it from which lm-eval's own task reads."""
    if dataset != "medqa" or "sent1" in row:
        return row
    options = [row["options"][letter] for letter in "ABCD"]
    endings = {f"ending{place}": option for place, option in enumerate(options)}
    return {"sent1": row["question"], **endings, "label": "ABCD".index(row["answer_idx"])}


def own_tasks(folder: Path, rows: dict[str, list]) -> list[str]:
    """Write a file for each of lm-eval's own tasks that gives it rows of this machine; the tasks' names."""
    folder.mkdir()
    for dataset, path in OWN.items():
        data = folder / f"{dataset}.jsonl"
        text = "".join(json.dumps(in_hub_layout(dataset, row)) + "\n" for row in rows[dataset])
        data.write_text(text, encoding="utf-8")
        own: dict[str, Any] = {
            "include": str(Path(lm_eval.tasks.__file__).parent / path), "task": f"own_{dataset}",
            "dataset_path": "json", "dataset_name": None, "training_split": None, "validation_split": None,
            "test_split": "test", "fewshot_split": "test",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
        }  # fmt: skip
        (folder / f"{dataset}.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    return [f"own_{dataset}" for dataset in OWN]


def test_the_suite_has_the_leaderboards_tasks():
    [suite] = [suite for suite in registry().suites.values() if suite.id == SUITE]
    assert set(suite.datasets) == set(OWN)
    assert all(registry().datasets[f"{SUITE}_{name}"].is_closed for name in OWN)


def compare(rows: dict[str, list], model: Path, out: Path, environment: dict[str, str]) -> dict[str, float]:
    """Ask both; the largest difference of two likelihoods, by dataset."""
    names = [f"{SUITE}_{name}_ll" for name in OWN]
    build(registry(), built := out / "built")
    asked = evaluated(names, model, out / "ours", environment, "--include_path", str(built))
    names = own_tasks(out / "tasks", rows)
    own = evaluated(names, model, out / "own", environment, "--include_path", str(out / "tasks"))
    found = {}
    for dataset in OWN:
        ours, theirs = asked[f"{SUITE}_{dataset}_ll"], own[f"own_{dataset}"]
        assert len(ours) == len(theirs) == len(rows[dataset])
        worst = 0.0
        for one, two in zip(ours, theirs, strict=True):
            assert one["arguments"] == two["arguments"], f"{dataset}: texts or delimiters differ"
            assert int(one["target"]) == right_place(two["target"])
            pairs = zip(one["resps"], two["resps"], strict=True)
            worst = max(worst, *(abs(float(a[0][0]) - float(b[0][0])) for a, b in pairs))
            assert one["acc"] == two["acc"]
        found[dataset] = worst
    return found


def right_place(target: Any) -> int:
    """The place of lm-eval's right answer, where its target is a label, too."""
    labels = ["yes", "no", "maybe"]
    return labels.index(target) if target in labels else int(target)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(params=["random", "real"])
def model(request, tmp_path) -> Path:
    if request.param == "random":
        return make(tmp_path / "model", layers=1)
    return request.getfixturevalue("real_model")


def test_likelihoods_are_those_of_lm_evals_own_tasks(model, environment, tmp_path):
    rows = {}
    for name in OWN:
        said = lines(registry().datasets[f"{SUITE}_{name}"].sample_file)
        rows[name] = [row for row in said if row["_split"] == "test"]
        assert len(rows[name]) >= 6
    here = {**environment, "MEDTASKS_DATA": "sample", "ACCELERATE_USE_CPU": "true"}
    differences = compare(rows, model, tmp_path, here)
    assert max(differences.values()) <= 1e-6, differences


def test_likelihoods_of_real_rows_are_those_of_lm_evals_own_tasks(model, environment, tmp_path):
    if ROWS not in os.environ:
        pytest.skip(f"needs the nine tasks' rows: {ROWS}")
    given = Path(os.environ[ROWS], SUITE)
    rows = {name: lines(given / name / "test.jsonl")[:MOST] for name in OWN}
    for name, first in rows.items():
        assert len(first) == MOST, name
        file = tmp_path / "rows" / SUITE / name / "test.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in first), encoding="utf-8")
    local = {"MEDTASKS_DATA": "local", "MEDTASKS_DATA_DIR": str(tmp_path / "rows")}
    differences = compare(rows, model, tmp_path, {**environment, **local, "ACCELERATE_USE_CPU": "true"})
    assert max(differences.values()) <= 1e-6, differences
