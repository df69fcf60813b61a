"""Plain `lm_eval` prints no metric that is for records only, and a report knows them all the same."""

import subprocess
import sys

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.entries import read_results
from tests.conftest import read_json

TASKS = ["bridge_mednli", "medhelm_medcalc_bench", "mlb_chip_cdn"]
FOR_RECORDS = {"unclosed_reasoning"}
#: answers with some text around the gold, or none of it, or a trace without an end
PLAIN = """
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.__main__ import cli_evaluate

@register_model("said")
class Said(LM):
    def __init__(self, **_):
        super().__init__()
    def generate_until(self, requests, **_):
        said = [f"Well. Answer: {item.doc['target']}" for item in requests]
        said[::3] = ["<think> I do not know" for _ in said[::3]]
        said[1::3] = ["" for _ in said[1::3]]
        return said
    def loglikelihood(self, requests, **_): raise NotImplementedError
    def loglikelihood_rolling(self, requests, **_): raise NotImplementedError

cli_evaluate()
"""


@pytest.fixture(scope="module")
def plain(built_tasks, tmp_path_factory):
    """What plain `lm_eval` printed and wrote."""
    folder = tmp_path_factory.mktemp("plain")
    command = [sys.executable, "-c", PLAIN, "--model", "said", "--tasks", ",".join(TASKS), "--limit", "6",
               "--include_path", str(built_tasks), "--metadata", '{"data": "sample"}',
               "--output_path", str(folder / "out"), "--log_samples"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out", done.stdout


def test_the_table_has_no_rows_of_records(plain):
    folder, printed = plain
    results = read_json(next(folder.rglob("results_*.json")))["results"]
    assert not [name for name in FOR_RECORDS if name in printed]
    for task in TASKS:
        named = {key.partition(",")[0] for key in results[task]}
        assert {"score", "valid", "scored", "SAMPLE_DATA"} <= named and not FOR_RECORDS & named


def test_their_counts_follow_from_the_samples(plain):
    (entry,) = read_results([plain[0]], registry()).entries
    for task in TASKS:
        item = entry.experiments[task]
        samples = item.read_samples()
        assert len(samples) == item.n == 6
        # every third answer is a trace without an end, every third is empty
        assert item.metrics["unclosed_reasoning"] == pytest.approx(1 / 3)
        assert item.read_documents().unclosed.mean() == pytest.approx(1 / 3)
