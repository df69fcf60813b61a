"""Likelihoods are those of plain lm-eval on the same text, and no generated answer stands beside them.

The nine tasks of the Open Medical LLM leaderboard ask what lm-eval's own tasks ask, too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import lm_eval.tasks
import pytest
import yaml

from medtasks_ext.registry import registry
from medtasks_ext.registry.build import build
from tests.conftest import write_jsonl
from tests.engine.conftest import MEDTASKS, called
from tests.engine.tiny_model import make
from tests.run_files import samples_of

pytestmark = pytest.mark.engine

#: task -> what stands before the answer, and between both
TASKS = {"bridge_mednli": ("relation:", " "), "mlb_maexam": ("答案：", ""), "medhelm_medmcqa": ("", " ")}


def on_transformers(model: Path) -> tuple[str, ...]:
    """One question at a time."""
    arguments = f"pretrained={model},dtype=float32"
    return ("--model", "hf", "--device", "cpu", "--batch_size", "1", "--model_args", arguments)


def asked_by_lm_eval(
    names: list[str], model: Path, out: Path, environment: dict[str, str], *more: str
) -> dict[str, list]:
    """The samples of a call of plain lm-eval, by task."""
    command = (sys.executable, "-m", "lm_eval", "run", "--tasks", ",".join(names), *on_transformers(model),
               "--log_samples", "--output_path", out, *more)  # fmt: skip
    called(command, out.parent, environment)
    found = {}
    for name in names:
        [path] = out.rglob(f"samples_{name}_2*.jsonl")
        found[name] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return found


@pytest.fixture(scope="module")
def asked(tiny, environment, tmp_path_factory) -> tuple[Path, dict[str, list]]:
    out = tmp_path_factory.mktemp("ll") / "out"
    return out, asked_by_lm_eval([f"{name}_ll" for name in TASKS], tiny, out, environment)


def values(sample: dict[str, Any]) -> list[float]:
    return [float(response[0][0]) for response in sample["resps"]]


def test_likelihoods_are_those_of_plain_tasks_with_the_same_text(asked, tiny, environment, tmp_path):
    for task, (lead, delimiter) in TASKS.items():
        assert len(asked[1][f"{task}_ll"]) >= 8 and registry().datasets[task].is_closed
        rows = []
        for sample in asked[1][f"{task}_ll"]:
            document = sample["doc"]
            system = f"{document['system']}\n\n" if document["system"] else ""
            context = system + document["prompt"] + (f"\n{lead}" if lead else "")
            options = [argument["arg_1"].removeprefix(delimiter) for argument in sample["arguments"].values()]
            rows.append({"context": context, "options": options, "gold": int(sample["target"])})
        data = write_jsonl(tmp_path / f"{task}.jsonl", rows)
        plain = {
            "task": f"plain_{task}", "dataset_path": "json", "test_split": "test",
            "dataset_kwargs": {"data_files": {"test": str(data)}}, "output_type": "multiple_choice",
            "doc_to_text": "{{context}}", "doc_to_choice": "{{options}}", "doc_to_target": "gold",
            "target_delimiter": delimiter,
        }  # fmt: skip
        (tmp_path / f"{task}.yaml").write_text(yaml.safe_dump(plain), encoding="utf-8")
    names, more = [f"plain_{task}" for task in TASKS], ("--include_path", str(tmp_path))
    other = asked_by_lm_eval(names, tiny, tmp_path / "out", environment, *more)
    for task in TASKS:
        for one, two in zip(asked[1][f"{task}_ll"], other[f"plain_{task}"], strict=True):
            assert values(one) == pytest.approx(values(two), abs=1e-6)
            assert one["acc"] == two["acc"] and one["acc_norm"] == two["acc_norm"]


def test_a_report_ranks_them_beside_nothing_that_was_generated(asked, environment, tmp_path):
    folder = next(path.parent for path in asked[0].rglob("results_*.json"))
    said = called((*MEDTASKS, "report", folder, "-o", "report"), tmp_path, environment)
    assert "bridge_mednli_ll" in said and "zero-shot" not in said.split("caveats:")[0]
    assert "above" not in said


@pytest.mark.parametrize(("kind", "most"), [("hf", 1e-6), ("vllm", 1e-3), ("local-completions", 1e-3)])
def test_a_run_gives_the_likelihoods_of_plain_lm_eval(
    kind, most, asked, tiny, request, environment, tmp_path
):
    """vLLM takes one pass for labels of one token, and `vllm serve` says those of what it is sent."""
    arguments = f"pretrained={tiny},dtype=float32,enforce_eager=True,max_model_len=8192"
    if kind == "local-completions":
        address = request.getfixturevalue("server")
        arguments = f"model=tiny,base_url={address}/v1/completions,tokenizer={tiny},num_concurrent=4"
    model = on_transformers(tiny) if kind == "hf" else ("--model", kind, "--model_args", arguments)
    command = (*MEDTASKS, "run", "--tasks", ",".join(TASKS), "--ask", "likelihood", *model)
    called((*command, "--output_path", "run"), tmp_path, environment)
    for task in TASKS:
        ours, theirs = samples_of(tmp_path / "run", f"{task}_ll"), asked[1][f"{task}_ll"]
        for one, two in zip(ours, theirs, strict=True):
            assert one["arguments"] == two["arguments"]
            assert values(one) == pytest.approx(values(two), abs=most)
            assert one["acc"] == two["acc"] and one["acc_norm"] == two["acc_norm"]


# ---------------------------------------------------------------------- lm-eval's own tasks

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
LABELS = ["yes", "no", "maybe"]


def in_hub_layout(dataset: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as the repository has it from which lm-eval's own task reads."""
    if dataset != "medqa" or "sent1" in row:
        return row
    endings = {f"ending{place}": row["options"][letter] for place, letter in enumerate("ABCD")}
    return {"sent1": row["question"], **endings, "label": "ABCD".index(row["answer_idx"])}


@pytest.mark.nightly
@pytest.mark.parametrize("origin", ["sample", "local"])
@pytest.mark.parametrize("kind", ["random", "real"])
def test_likelihoods_are_those_of_lm_evals_own_tasks(kind, origin, request, environment, tmp_path):
    [suite] = [suite for suite in registry().suites.values() if suite.id == SUITE]
    assert set(suite.datasets) == set(OWN)
    if origin == "local" and ROWS not in os.environ:
        pytest.skip(f"needs the nine tasks' rows: {ROWS}")
    build(registry(), built := tmp_path / "built")
    for dataset, path in OWN.items():
        file = registry().datasets[f"{SUITE}_{dataset}"].sample_file
        if origin == "local":
            file = Path(os.environ[ROWS], SUITE, dataset, "test.jsonl")
        found = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        rows = [row for row in found if row.pop("_split", "test") == "test"][:MOST]
        assert len(rows) >= (6 if origin == "sample" else MOST), dataset
        write_jsonl(tmp_path / "rows" / SUITE / dataset / "test.jsonl", rows)
        data = write_jsonl(tmp_path / f"{dataset}.jsonl", [in_hub_layout(dataset, row) for row in rows])
        own: dict[str, Any] = {
            "include": str(Path(lm_eval.tasks.__file__).parent / path), "task": f"own_{dataset}",
            "dataset_path": "json", "dataset_name": None, "training_split": None, "validation_split": None,
            "test_split": "test", "fewshot_split": "test",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
        }  # fmt: skip
        (tmp_path / "tasks").mkdir(exist_ok=True)
        (tmp_path / "tasks" / f"{dataset}.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    model = make(tmp_path / "model", layers=1) if kind == "random" else request.getfixturevalue("real_model")
    here = {**environment, "MEDTASKS_DATA": origin, "MEDTASKS_DATA_DIR": str(tmp_path / "rows")}
    names = [f"{SUITE}_{name}_ll" for name in OWN]
    asked = asked_by_lm_eval(names, model, tmp_path / "ours", here, "--include_path", str(built))
    more = ("--include_path", str(tmp_path / "tasks"))
    own = asked_by_lm_eval([f"own_{name}" for name in OWN], model, tmp_path / "own", here, *more)
    for dataset in OWN:
        for one, two in zip(asked[f"{SUITE}_{dataset}_ll"], own[f"own_{dataset}"], strict=True):
            target = two["target"]
            assert one["arguments"] == two["arguments"], f"{dataset}: texts or delimiters differ"
            assert int(one["target"]) == (LABELS.index(target) if target in LABELS else int(target))
            assert values(one) == pytest.approx(values(two), abs=1e-6) and one["acc"] == two["acc"]
