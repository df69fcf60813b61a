"""Two runs on sample rows whose answers went wrong in all the ways that a viewer tells apart."""

from pathlib import Path

import pytest

from tests.conftest import command, edited_json, rewrite_answers

LABEL, EVENTS, CODES = "bridge_mednli", "bridge_ade_extraction", "medhelm_mimic_iv_billing_code"
TASKS = (LABEL, EVENTS, CODES)
HOSTILE = '</script><img src=x onerror="window.hit=1"><script>window.hit=1</script> &amp; 中文 "\'\\'
LONG = 1_000_000
#: Run -> task -> document -> its response, where that is not the gold answer.
ANSWERS: dict[str, dict[str, dict[str, str]]] = {
    "one": {
        LABEL: {
            "t1": "relation: neutral",  # wrong
            "t2": HOSTILE,  # unreadable
            "t3": "",  # empty
            "t4": "<think>It could be either",  # cut off
            "t5": "relation: undetermined",  # no such label
            "t6": f"[THINK]one {HOSTILE}[/THINK]relation: neutral",
            "t7": f"relation: contradiction {'x' * LONG}",
        },
        EVENTS: {
            "t1": "drug: ethambutol, adverse effect: progressive visual loss;",  # boundary
            "t3": "drug: ifosfamide, adverse effect: rash;",  # attribute
        },
        CODES: {"t2": "A41.51,B96.29,N10.,N17.9,R65.20,Z88.0"},
    },
    "two": {LABEL: {"t1": "relation: entailment", "t8": "relation: contradiction"}},
}


def make_runs(root: Path) -> tuple[Path, Path]:
    """The folders of both runs, below a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name, answers in ANSWERS.items():
            command("run", "--model", "oracle", "--data", "sample", "--tasks", ",".join(TASKS),
                    "--output_path", name)  # fmt: skip
            for task, texts in answers.items():
                rewrite_answers(root / name, task, texts)
            command("rescore", name)
            with edited_json(root / name / "run.json") as manifest:
                manifest["identity"]["model"]["model_args"] = {"model": f"model-{name}"}
    return root / "one", root / "two"
