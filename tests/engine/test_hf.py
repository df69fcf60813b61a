"""Transformers models through lm-eval, on the CPU: the size of batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.prompts.template import rendering
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.preview import counter_of, preview, renderer_of
from tests.conftest import outcomes
from tests.engine.tiny_model import TEMPLATE, TEMPLATE_WITHOUT_SYSTEM, make
from tests.run_files import results_of

pytestmark = pytest.mark.engine

TASKS = ["bridge_chip_ctc", "medhelm_hospice_referral", "mlb_cmexam"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("model"), layers=1, ends=True)


@pytest.fixture(scope="session")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample", "ACCELERATE_USE_CPU": "true"}


def flags(model: Path, *, kind: str = "hf-noted") -> list[str]:
    """Flags of a run of all tasks."""
    return ["run", "--tasks", ",".join(TASKS), "--model", kind, "--device", "cpu",
            "--model_args", f"pretrained={model},dtype=float32", "--batch_size", "auto",
            "--apply_chat_template", "--gen_kwargs", "max_gen_toks=48", "--output_path", "run"]  # fmt: skip


def run(command: list[str], cwd: Path, environment: dict[str, str], code: int = 0) -> str:
    """What a command said."""
    cwd.mkdir(exist_ok=True)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, said[-6000:]
    return said


def batches(folder: Path) -> list[str]:
    """What the model noted."""
    path = folder / "BATCHES"
    return path.read_text().split() if path.is_file() else []


def answers(folder: Path) -> dict[tuple[str, str], str]:
    """Answers by task and document; each is there once."""
    found: dict[tuple[str, str], str] = {}
    for row in outcomes(folder / "run"):
        assert (row["task"], row["document"]) not in found
        found[row["task"], row["document"]] = row["text"]
    return found


def results(folder: Path) -> dict[str, dict]:
    """Metrics by task."""
    return results_of(folder / "run")["results"]


NOTED = [sys.executable, "-m", "tests.engine.hf"]


@pytest.fixture(scope="module")
def whole(model, environment, tmp_path_factory) -> Path:
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("whole")
    run([*NOTED, *flags(model)], folder, environment)
    return folder


def test_the_size_of_batches_is_found_once_for_all_tasks_and_answers_stay_the_same(
    whole, model, environment, tmp_path
):
    said = run([*NOTED, *flags(model)], tmp_path / "small", {**environment, "HF_ROWS": "3"})
    one_by_one = [*flags(model, kind="hf"), "--batch_size", "1"]
    run([sys.executable, "-m", "medtasks_ext", *one_by_one], tmp_path / "single", environment)
    small = batches(tmp_path / "small")
    assert "search" not in batches(whole) + small
    assert [rows for rows in small if int(rows) > 3] == ["8", "4"]
    assert said.count("the memory does not hold") == 2
    assert answers(whole) == answers(tmp_path / "small") == answers(tmp_path / "single")
    assert results(whole) == results(tmp_path / "small") == results(tmp_path / "single")


def test_processes_of_accelerate_share_the_documents_and_a_later_call_asks_nothing(
    model, environment, tmp_path
):
    asked = ["lm_eval", "--tasks", ",".join(TASKS[:2]), "--limit", "5",
             "--model", "medtasks-hf-ranks", "--batch_size", "1", "--model_args",
             f"run=answers,pretrained={model},dtype=float32", "--apply_chat_template",
             "--gen_kwargs", "max_gen_toks=16", "--output_path", "out", "--log_samples"]  # fmt: skip
    # what `accelerate launch` starts where there are GPUs
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    run([*NOTED, *asked], tmp_path / "one", environment)
    run([*launch, "tests.engine.hf", *asked], tmp_path / "two", environment)
    figures = [json.loads(next((tmp_path / name / "out").rglob("results_*.json")).read_text())["results"]
               for name in ("one", "two")]  # fmt: skip
    assert figures[0] == figures[1]
    files = [tmp_path / "two" / "answers" / f"answers{part}.jsonl" for part in ("", "-rank1")]
    kept = [[json.loads(line)["key"] for line in file.read_text().splitlines()] for file in files]
    assert abs(len(kept[0]) - len(kept[1])) <= len(TASKS)
    assert len(batches(tmp_path / "two")) == len(batches(tmp_path / "one"))
    run([*NOTED, *asked], tmp_path / "two", environment)
    assert len(batches(tmp_path / "two")) == len(batches(tmp_path / "one"))


# Templates that a model's file writes out against transformers itself.


TURNS = [
    {"role": "system", "content": "Answer <briefly> & in “quotes”."},
    {"role": "user", "content": "  患者\t发热三天\n\n  "},
    {"role": "assistant", "content": "A"},
    {"role": "user", "content": "And now?"},
]
TEMPLATES = {
    "plain": TEMPLATE,
    "special tokens": "{{ bos_token }}" + TEMPLATE + "{{ eos_token }}",
    "blocks on own lines": "{% for m in messages %}\n {% if m %}\n{{ m.role }}\n {% endif %}\n{% endfor %}",
    "json": "{% for m in messages %}{{ m | tojson }}{{ m | tojson(indent=2) }}{% endfor %}",
    "loop controls": "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m }}{% endfor %}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "namespace": "{% set s = namespace(n=0) %}{% for m in messages %}{% set s.n = 1 %}{% endfor %}{{ s.n }}",
    "absent tools": "{% if tools is none and not documents %}{{ messages[-1]['content'] }}{% endif %}",
    "date": "{{ strftime_now('%Y') }}{{ messages[0].content }}",
}  # fmt: skip


def test_templates_are_rendered_and_counted_as_transformers_does(tiny, tmp_path):
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(tiny)
    tokens = {name: str(token) for name, token in loaded.special_tokens_map.items()}
    for text in TEMPLATES.values():
        assert rendering(text, tokens, "file")(TURNS) == renderer_of(loaded, chat_template=text)(TURNS), text
    for render in (
        rendering(TEMPLATE_WITHOUT_SYSTEM, {}, "file"),
        renderer_of(loaded, chat_template=TEMPLATE_WITHOUT_SYSTEM),
    ):
        with pytest.raises(Exception, match="no system turn"):
            render(TURNS)
        assert render(TURNS[1:])
    expected = loaded.apply_chat_template(TURNS, add_generation_prompt=True, return_dict=False)
    count = counter_of(loaded)
    assert count is not None and count([renderer_of(loaded)(TURNS)]) == [len(expected)]
    settings = Settings(data="sample", prompts="own")
    plain, shown = (
        preview(registry(), "mlb_maexam", settings, template=template)["prompt"]
        for template in (None, renderer_of(loaded))
    )
    turns = [{"role": "user", "content": plain}]
    assert shown == loaded.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
