"""5-shot prompts through lm-eval's own loop: a medtasks task, and its templates as plain Jinja strings.

5-shot prompts of 200-word documents through lm-eval's `evaluate` with a model that answers at once. From
reading the files to the first request; the same templates as Jinja strings in an lm-eval task over raw
columns (once with the list of labels rendered per document, once written out in the template; its loading
is left out of its time); whether the prompts are identical byte for byte; the whole loop up to scores, at
two sizes, with peak memory.
"""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import TASKS, Row, fresh, peak_gigabytes, words

if TYPE_CHECKING:
    from collections.abc import Iterator

DATASET = TASKS / "bridge" / "chip_ctc"
TARGET = 5000
COMPARED = 200


def run(quick: bool) -> Iterator[Row]:
    part = 10 if quick else 1
    small, large, plain = 20_000 // part, 100_000 // part, 1000 // part
    with tempfile.TemporaryDirectory() as folder:
        own = _measured("medtasks", Path(folder), small)
        rate = small / (own["loading"] + own["building"])
        name = f"5-shot prompts, files to first request: {small:,} documents"
        yield Row(name, f"{rate:,.0f}/s", f"{TARGET:,}/s", rate >= TARGET)
        for how in ("same templates", "labels written out"):
            jinja = _measured("jinja", Path(folder), plain, written_out=how == "labels written out")
            yield _compared(rate, own, jinja, how)
        yield _whole_loop(own)
        yield _whole_loop(_measured("medtasks", Path(folder), large))


def _compared(rate: float, own: dict[str, Any], jinja: dict[str, Any], how: str) -> Row:
    """Plain Jinja renders when prompts are built, so its loading is left out of its time."""
    plain, n = jinja["n"] / jinja["building"], min(COMPARED, jinja["n"])
    same = own["prompts"][:n] == jinja["prompts"][:n]
    figures = f"{plain:,.0f}/s (medtasks {rate / plain:.0f} times as fast), {n} prompts "
    name = f"the same by plain Jinja, {how}: {jinja['n']:,} documents"
    return Row(name, figures + ("identical" if same else "DIFFER"), "identical", same)


def _whole_loop(run: dict[str, Any]) -> Row:
    parts = ", ".join(f"{part} {run[part]:.1f} s" for part in ("loading", "building", "scoring"))
    rate = run["n"] / sum(run[part] for part in ("loading", "building", "scoring"))
    return Row(
        f"evaluate from files to scores: {run['n']:,} documents",
        f"{rate:,.0f}/s, {run['peak']:.1f} GB ({parts})",
    )


def _measured(function: str, folder: Path, n: int, **kwargs: Any) -> dict[str, Any]:
    data = folder / str(n)
    if not data.exists():
        _write(data / "bridge", n)
    return fresh(
        "prompts", function, env={"MEDTASKS_DATA_DIR": str(data), "HF_HOME": str(folder)}, n=n, **kwargs
    )


def _write(folder: Path, n: int) -> None:
    """Rows of 200 random words in BRIDGE's own layout."""
    from medtasks_ext.registry import Dataset

    labels = list(Dataset(DATASET).blocks["answer"]["labels"])
    (folder / "example").mkdir(parents=True)
    for path, size in ((folder / "CHIP-CTC.SFT.json", n), (folder / "example" / "CHIP-CTC.example.json", 5)):
        rng = random.Random(path.name)
        rows = [
            {
                "task": "CHIP-CTC",
                "split": "test",
                "id": f"{path.name} {number}",
                "input": words(rng, 200),
                "output": f"clinical trial criterion: {rng.choice(labels)}",
            }
            for number in range(size)
        ]
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def medtasks(n: int) -> dict[str, Any]:
    file = Path(os.environ["MEDTASKS_DATA_DIR"]) / "five_shot.yaml"
    file.write_text(f"include: {DATASET}/task.yaml\ntask: bridge_chip_ctc_5shot\nstrategy: five_shot\n")
    return _evaluated(str(file), n)


def jinja(n: int, written_out: bool) -> dict[str, Any]:
    """The templates of the medtasks task as strings that lm-eval renders over the raw columns."""
    from medtasks_ext.prompts.render import strategy_line
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import dataset_spec

    dataset = Dataset(DATASET)
    block = dataset.blocks
    spec = dataset_spec(dataset)
    prompt = block["prompt"]
    # the loader trims line ends behind block tags, lm-eval's environment does not
    instruction = re.sub(r"%}\n", "-%}\n", prompt["instruction"])
    instruction = instruction.replace("{{ strategy }}", strategy_line(dataset, spec, cot=False))
    instruction = f"{{% set answer_format = {block['answer']!r} -%}}{instruction}\n\n"
    if written_out:
        from lm_eval.utils import apply_template

        instruction = apply_template(instruction, {})
    bridge = Path(os.environ["MEDTASKS_DATA_DIR"]) / "bridge"
    files = {"test": bridge / "CHIP-CTC.SFT.json", "fewshot": bridge / "example" / "CHIP-CTC.example.json"}
    task = {
        "task": "bench_jinja",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {split: str(path) for split, path in files.items()}},
        "test_split": "test",
        "fewshot_split": "fewshot",
        "fewshot_config": {"sampler": "first_n"},
        "num_fewshot": 5,
        "description": instruction,
        "doc_to_text": prompt.get("input", "{{ input }}"),
        "doc_to_target": prompt.get("target", "{{ output }}"),
        "target_delimiter": "\n",
        "fewshot_delimiter": "\n\n",
        "output_type": "generate_until",
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    return _evaluated(task, n)


def _evaluated(spec: str | dict[str, Any], n: int) -> dict[str, Any]:
    from dummy import Dummy
    from lm_eval.evaluator import evaluate
    from lm_eval.tasks import TaskManager

    manager, model = TaskManager(include_defaults=False), Dummy()
    times = [time.perf_counter()]
    tasks = manager.load([spec])
    times.append(time.perf_counter())
    evaluate(model, tasks, bootstrap_iters=0)
    times += [model.asked_at, time.perf_counter()]
    assert len(model.prompts) == n
    return {
        "n": n,
        "loading": times[1] - times[0],
        "building": times[2] - times[1],
        "scoring": times[3] - times[2],
        "peak": peak_gigabytes(),
        "prompts": [sha256(prompt.encode()).hexdigest() for prompt in model.prompts[:COMPARED]],
    }
