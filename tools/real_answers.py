"""A real model's answers to bundled rows of every dataset, in three strategies, as a store of outcomes.

    python tools/real_answers.py OUT [--limit N] [--engine vllm|hf] [--model DIR]

The rows are invented and the model is small (`--config demo`): no score of these runs is a result. What
is real are the answers: followed in part, cut, repeated, empty, in another language than was asked for. Each
pass is a run in OUT/runs; the same command goes on with one that was interrupted. OUT/store holds a record of
each document; `python -m tests.answers.real OUT` keeps the answers for the tests of readers.

By default one row of each dataset is asked, half an hour or more on one core; `--limit 0` asks all rows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

SUITES = ("bridge", "medhelm", "clinicbench", "mlb")
MEDTASKS = (sys.executable, "-m", "medtasks_ext")


@dataclass(frozen=True)
class Pass:
    """One way of asking.

    Attributes:
        strategy: what the names of groups end with; "" without examples.
        temperature: 0 is greedy.
        tokens: the budget of an answer: short enough for a CPU, so that some answers are cut.
    """

    strategy: str
    temperature: float
    tokens: int

    @property
    def name(self) -> str:
        """Of the run's folder."""
        return f"{self.strategy or 'zero_shot'}-t{self.temperature:g}"


PASSES = (
    Pass("", 0.0, 96),
    Pass("cot", 0.0, 160),
    Pass("5shot", 0.0, 64),
    Pass("", 1.0, 96),
    Pass("cot", 0.7, 160),
    Pass("5shot", 0.7, 64),
)


def command(one: Pass, out: Path, model: Path, engine: str, limit: int) -> list[str]:
    """The run of a pass."""
    if engine == "vllm":
        how = ",dtype=float32,enforce_eager=True,max_model_len=8192,max_num_seqs=64"
        more = ["--model", "vllm", "--model_args", f"pretrained={model}{how}"]
    else:
        more = ["--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu"]
        more += ["--batch_size", "8"]
    groups = [f"{suite}_{one.strategy}" if one.strategy else suite for suite in SUITES]
    sampling = f"temperature={one.temperature},do_sample=True" if one.temperature else "temperature=0"
    return [
        *MEDTASKS, "run", "--data", "sample", "--prompts", "own", "--tasks", ",".join(groups), *more,
        *(["--limit", str(limit)] if limit else []), "--apply_chat_template",
        "--gen_kwargs", f"max_gen_toks={one.tokens},{sampling}",
        "--output_path", str(out / "runs" / one.name),
    ]  # fmt: skip


def main() -> int:
    """Ask, then store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--limit", type=int, default=1, metavar="N", help="rows a dataset (default 1); 0: all"
    )
    parser.add_argument("--engine", choices=("vllm", "hf"), default="vllm" if find_spec("vllm") else "hf")
    parser.add_argument("--model", type=Path, help="the demo model's folder; made in OUT if there is none")
    given = parser.parse_args()
    model = given.model or given.out / "model"
    if given.model is None:
        subprocess.run([*MEDTASKS, "model", "demo", "-o", str(model)], check=True)
    # the engine's own remarks are many, and the first of its threads is all that so small a model fills
    environment = {
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "TOKENIZERS_PARALLELISM": "false",
    }
    for one in PASSES:
        print(f"\n== {one.name} ==", flush=True)
        asked = command(one, given.out, model, given.engine, given.limit)
        if subprocess.run(asked, env={**environment, **os.environ}, check=False).returncode not in (0, 1):
            return 1
    runs = [str(given.out / "runs" / one.name) for one in PASSES]
    return subprocess.run(
        [*MEDTASKS, "ingest", *runs, "--store", str(given.out / "store")], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
