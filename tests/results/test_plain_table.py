"""Plain `lm_eval` prints a short table, and a report knows all metrics all the same.

A run writes the same files.
"""

import functools
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import lm_eval.tasks
import pytest
from datasets import load_dataset
from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_file_task_name, get_results_filenames, get_sample_results_filenames, make_table

from medtasks_ext.registry import registry
from medtasks_ext.results.reading import read_results
from tests.conftest import read_json
from tests.run_files import results_file, results_of, samples_of

GROUP = "bridge_doc_case_report"


class Perfect(LM):
    """Answers with the gold."""

    def __init__(self, **_: object) -> None:
        super().__init__()

    def generate_until(self, requests, **_):
        return [item.doc["target"] for item in requests]

    loglikelihood = loglikelihood_rolling = None


register_model("perfect")(Perfect)


@pytest.fixture(scope="module")
def group(built_tasks, tmp_path_factory) -> tuple[Path, str]:
    """What plain `lm_eval` wrote and printed of a group, without an index of its own tasks."""
    folder = tmp_path_factory.mktemp("group")
    command = ["lm_eval", "--model", "perfect", "--tasks", GROUP, "--limit", "6",
               "--include_path", str(built_tasks), "--metadata", '{"data": "sample"}',
               "--output_path", str(folder), "--log_samples"]  # fmt: skip
    included = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr(lm_eval.tasks, "TaskManager", included)
        patch.setattr(sys, "argv", command)
        cli_evaluate()
    return folder, printed.getvalue()


@pytest.fixture
def run(medtasks, tmp_path) -> Path:
    medtasks.done("run", "--model", "oracle", "--tasks", GROUP, "--limit", 6, "--data", "sample", "-o", "run")
    return tmp_path / "run"


def counted(results: dict) -> dict[str, float]:
    named = {key: value for key, value in results.items() if key.endswith(",answer")}
    return {key.partition(",")[0]: value for key, value in named.items() if "_stderr" not in key}


def test_the_table_has_the_score_and_what_must_be_known_of_it_and_at_most_80_lines(group):
    folder, printed = group
    results = read_json(next(folder.rglob("results_*.json")))["results"]
    assert "unclosed_reasoning" not in printed and "f1_macro" not in printed
    for task in registry().leaves(GROUP):
        assert {"valid"} < counted(results[task]).keys() <= {"score", "valid", "SAMPLE_DATA"}
    table = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(registry().leaves(GROUP)) == 21 and 21 < len(table) <= 80


def test_a_report_has_the_metrics_of_a_run_of_plain_lm_eval_as_well(group, run):
    (theirs,), (ours,) = (read_results([place], registry()).entries for place in (group[0], run))
    assert theirs.experiments.keys() == ours.experiments.keys()
    for name, item in ours.experiments.items():
        other = theirs.experiments[name]
        assert other.metrics == pytest.approx(item.metrics) and len(item.metrics) > 3, name
        assert other.intervals == item.intervals, name


def test_groups_of_a_run_are_those_of_one_call_of_lm_eval(group, run):
    theirs, ours = read_json(next(group[0].rglob("results_*.json"))), results_of(run)
    assert ours["groups"].keys() == theirs["groups"].keys() == {GROUP}
    for name, item in theirs["groups"].items():
        assert counted(ours["groups"][name]) == pytest.approx(counted(item))
        assert {key: ours["groups"][name][key] for key in ("alias", "sample_len", "sample_count")} == {
            key: item[key] for key in ("alias", "sample_len", "sample_count")
        }
    for part in ("group_subtasks", "n-samples", "n-shot", "versions"):
        assert ours[part] == theirs[part], part


def test_tools_for_lm_evals_output_read_a_run(group, run):
    names = [str(path) for path in run.iterdir()]
    assert get_results_filenames(names) == [str(results_file(run))]
    samples = get_sample_results_filenames(names)
    tasks = {get_file_task_name(Path(name).name) for name in samples}
    assert tasks == set(registry().leaves(GROUP))
    loaded = load_dataset("json", data_files=sorted(samples)[0], split="train", cache_dir=str(run / "cache"))
    assert len(loaded) == 6 and isinstance(loaded[0]["filtered_resps"][0], str)
    assert GROUP in make_table(results_of(run), "groups")
    first = min(tasks)
    plain = next(path for path in group[0].rglob("samples_*") if get_file_task_name(path.name) == first)
    line = plain.read_bytes().splitlines()[0]
    assert json.loads(line).keys() <= samples_of(run, first)[0].keys()
