"""Hashes of the prompts of MedHELM's living successor for the sample rows, made by medhelm 0.8.0 itself.

Run in an environment as for `helm_messages.py`, with `medhelm==0.8.0` in place of crfm-helm:

    /tmp/medhelm/bin/python benchmarks/official/medhelm_live_messages.py tasks/medhelm_live \\
        > tasks/medhelm_live/official.json
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path

from helm_messages import _csv, digest, message_list, requests, specs


def _scenario(name):
    """A module of scenarios; the stubs of `helm_messages` come first."""
    return importlib.import_module(f"helm.benchmark.scenarios.{name}_scenario")


def _sct_bench(rows, folder):
    module = _scenario("sct_bench")
    scenario = module.SCTBenchScenario()
    module.ensure_file_downloaded = lambda **_: None
    _csv(folder / scenario.FILENAME, rows)
    return scenario.get_instances(str(folder))


def _medxpertqa(rows, folder):
    module = _scenario("medxpert_qa_text")
    module.load_dataset = lambda *_, **__: {"test": rows}
    return module.MedXpertQATextScenario().get_instances(str(folder))


TASKS = {
    "medxpertqa": (specs.get_medxpert_qa_text_spec, _medxpertqa),
    "sct_bench": (specs.get_sct_bench_spec, _sct_bench),
}


def main():
    """Hashes of the message lists of all datasets, as JSON."""
    root, found = Path(sys.argv[1]), {}
    for name, (make_spec, make_instances) in TASKS.items():
        rows = [
            json.loads(line)
            for line in (root / name / "sample.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        rows = [
            {key: value for key, value in row.items() if key != "_split"}
            for row in rows
            if row["_split"] == "test"
        ]
        with tempfile.TemporaryDirectory() as folder:
            asked = requests(make_spec(), make_instances(rows, Path(folder)))
        found[name] = {
            "messages": {"zero_shot": [digest(message_list(request)) for request in asked]},
            "max_tokens": asked[0].max_tokens,
            "stop": asked[0].stop_sequences,
        }
    made_by = {"package": "medhelm", "version": "0.8.0"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(proof)}" for name, proof in found.items())
    print(f'{{"made_by": {json.dumps(made_by)},\n "tasks": {{\n{lines}\n}}}}')


if __name__ == "__main__":
    main()
