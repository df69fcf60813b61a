"""Twenty attempts to be ranked among published models, or tested against a run, under other conditions.

Each is a run in the suite's own words on as many rows as the suite has, with one thing changed. Either its
conditions are other ones, named and not ranked, or its difference is harmless and named. Rows that somebody
invented are `test_confirmed.py`'s.
"""

import csv
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from medtasks_ext.registry import registry
from tests.report.made import write_run

TASK = "bridge_brainmri_ais"
N = registry().datasets[TASK].n_documents
USUAL = {"do_sample": False, "until": [], "max_gen_toks": 4000}
CUT = {"shots_dropped": 0, "inputs_cut": 0, "answers_cut": 0}
YES = "Most answers of this benchmark are yes. Think step by step."


@dataclass(frozen=True)
class Attempt:
    """One thing that is changed, and what must be said of it."""

    named: str  # what `results.csv` must hold of it
    moves: bool = True  # whether it can move a score
    condition: str = "generation settings"  # in which it differs
    generation: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    documents: int = N


def generated(key, value):
    return Attempt(key, generation={key: value})


ATTEMPTS = {
    "repetition penalty, beams and a stop string": Attempt(
        "num_beams", generation={"repetition_penalty": 1.8, "num_beams": 5, "until": ["e"]}
    ),
    "a stop string": Attempt("'e'", condition="stop strings", generation={"until": ["e"]}),
    "min_p and a penalty": generated("frequency_penalty", 0.5),
    "presence penalty": generated("presence_penalty", 1.5),
    "guided choice": generated("guided_choice", ["yes", "no"]),
    "structured output": generated("structured_outputs", {"choice": ["yes", "no"]}),
    "logit bias": generated("logit_bias", {"42": 100}),
    "bad words": generated("bad_words", ["no"]),
    "best of five": generated("best_of", 5),
    "tools": generated("tools", [{"type": "function", "function": {"name": "answer"}}]),
    "thinking, by request": Attempt(
        "enable_thinking", False, "variant of the model", generation={"enable_thinking": True}
    ),
    "effort, by request": Attempt(
        "reasoning_effort", False, "variant of the model", generation={"reasoning_effort": "high"}
    ),
    "a system instruction that tells the answer": Attempt(
        "text-", condition="system instruction", settings={"system_instruction": YES}
    ),
    "a chat template of one's own": Attempt(
        "text-",
        condition="chat template",
        settings={"apply_chat_template": False, "layout": f"{{{{ messages }}}} {YES}"},
    ),
    "quantisation": Attempt(
        "quantization", False, "variant of the model", arguments={"quantization": "fp8"}
    ),
    "an adapter": Attempt(
        "lora_local_path", False, "variant of the model", arguments={"lora_local_path": "/tuned"}
    ),
    "thinking, by argument": Attempt(
        "enable_thinking", False, "variant of the model", arguments={"enable_thinking": True}
    ),
    "another precision": Attempt("dtype", False, "precision", arguments={"dtype": "float16"}),
    "an end of answers by argument": Attempt(
        "eos_string", condition="model arguments", arguments={"eos_string": "e"}
    ),
    "sampled answers": Attempt(
        "temperature=0.7", condition="decoding", generation={"temperature": 0.7, "do_sample": True}
    ),
    "a short budget that answers fill": Attempt(
        "budget",
        condition="budget",
        generation={"max_gen_toks": 5},
        record={"cut": {**CUT, "answers_cut": 9}},
    ),
    "a short budget, and nobody counted what it cut": Attempt(
        "budget",
        condition="budget",
        generation={"max_gen_toks": 5},
        record={"cut": {"shots_dropped": 0, "inputs_cut": 0}},
    ),
    "rows in part": Attempt("documents", condition="documents", documents=N - 1),
    "rows rebuilt from the source": Attempt("rebuilt", condition="rows", loaded={"rebuilt": True}),
    "other words": Attempt("own", condition="wording", loaded={"instruction": "own"}),
}  # fmt: skip


def write(folder, name, attempt):
    config = {"num_fewshot": 0, "generation_kwargs": {**USUAL, **attempt.generation}}
    return write_run(
        folder / name,
        f"ORG/{name}",
        {TASK: [float(number % 3 == 0) for number in range(attempt.documents)]},
        loaded={"instruction": "official", **attempt.loaded},
        record={
            "config": config,
            "cut": CUT,
            "conditions": {"rows": {"n_of_suite": N}},
            **attempt.record,
        },
        settings={"apply_chat_template": True, **attempt.settings},
        arguments=attempt.arguments,
    )


def lines(file, model):
    with file.open(encoding="utf-8") as content:
        rows = list(csv.DictReader(content))
    return [row for row in rows if (row["kind"], row["model"]) == ("medtasks", f"ORG/{model}")]


def beside_the_papers(medtasks, folder, name):
    """Its row of results, among how many its suite is ranked, and the report on it and the usual run."""
    outcome = medtasks("report", *dict.fromkeys(("usual", name)), "--json", "-o", "out")
    assert outcome.code == 0, outcome.text
    [row] = [item for item in lines(folder / "out" / "results.csv", name) if item["metric"] == "score"]
    groups = lines(folder / "out" / "groups.csv", name)
    [suite] = [item for item in groups if (item["axis"], item["suite"]) == ("suite", "bridge")]
    return row, suite["rank_of"], json.loads(outcome.out)


def test_without_any_attempt_a_run_is_ranked_among_the_published(medtasks, tmp_path):
    write(tmp_path, "usual", Attempt(""))
    row, among, _ = beside_the_papers(medtasks, tmp_path, "usual")
    assert (row["grade"], row["otherwise"]) == ("close", "") and int(among) > 90


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_is_named_and_ranked_only_where_it_moves_no_score(medtasks, tmp_path, name):
    attempt = ATTEMPTS[name]
    write(tmp_path, "usual", Attempt(""))
    write(tmp_path, "tried", attempt)
    row, among, found = beside_the_papers(medtasks, tmp_path, "tried")
    assert attempt.named in json.dumps(row)
    assert len(found["pairs"]) == (not attempt.moves)
    if attempt.moves:
        assert row["grade"] == "other" and attempt.condition in row["otherwise"]
        assert among in ("", "1") or name == "sampled answers"  # some published answers were drawn, too
    else:
        assert row["grade"] == "close" and int(among) > 90
