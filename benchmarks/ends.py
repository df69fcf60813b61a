"""A model that babbles: tokens of its answers with and without their end at the next question.

The real vLLM engine on the CPU, with a tiny model whose weights say the same pieces over and over: a letter,
then a question of its own with its answer, and so on to the end of the budget, as base models do. One run
with `--whole-answers`, one without, on the sample rows of tasks whose readers look no further than that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import ROOT, Row, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECES = ["B", "\n\nQuestion", ": What", " is next?", "\nA. one", "\nB. two", "\nAnswer: "]
TASKS = ["mlb_cmexam", "medhelm_pubmedqa", "medhelm_head_qa", "medhelm_head_qa_5shot", "medhelm_head_qa_cot",
         "clinicbench_medqa_cot"]  # fmt: skip
BUDGET, SHARE = 512, 0.2


def run(quick: bool) -> Iterator[Row]:
    name = f"answers of a model that babbles, {len(TASKS)} tasks, a budget of {BUDGET} tokens"
    if find_spec("vllm") is None:
        yield Row(name, "not run: needs the engine environment", f"at most {SHARE:.0%} of the tokens")
        return
    sys.path.insert(0, str(ROOT))
    from tests.engine.tiny_model import make_babbler

    with tempfile.TemporaryDirectory() as made:
        model = make_babbler(Path(made) / "model", PIECES)
        tasks = TASKS[:2] if quick else TASKS
        ended = _results(Path(made) / "ended", model, tasks)
        whole = _results(Path(made) / "whole", model, tasks, "--whole-answers")
    tokens = [sum(item["tokens"]["output"] for item in results.values()) for results in (ended, whole)]
    n = sum(item["cut"].get("answers_ended", 0) for item in ended.values())
    asked = sum(item["n"] for item in ended.values())
    share = tokens[0] / tokens[1]
    figures = f"{share:.1%} of the tokens ({tokens[0]:,} of {tokens[1]:,}; {n} of {asked} answers ended)"
    yield Row(name, figures, f"at most {SHARE:.0%}", share <= SHARE)
    same = all(ended[task]["metrics"] == whole[task]["metrics"] for task in tasks)
    yield Row("all metrics of both", "equal" if same else "not equal", "equal", same)


def _results(out: Path, model: Path, tasks: list[str], *more: str) -> dict[str, dict[str, Any]]:
    """Task -> its stored results."""
    arguments = f"pretrained={model},dtype=float32,enforce_eager=True,max_model_len=8192,max_num_seqs=32"
    command = [
        *(sys.executable, "-m", "medtasks_ext", "run", "--no-preflight", "--data", "sample", *more),
        *("--tasks", ",".join(tasks), "--model", "vllm", "--model_args", arguments),
        *("--gen_kwargs", f"max_gen_toks={BUDGET}", "--output_path", str(out)),
    ]
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1",
           "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}  # fmt: skip
    env = environment(**own, PYTHONPATH=str(ROOT))
    subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True)
    return {task: json.loads((out / "tasks" / f"{task}.json").read_text()) for task in tasks}
