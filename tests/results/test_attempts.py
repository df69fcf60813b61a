"""Twenty attempts to be ranked among published models, or tested against a run, under other conditions.

Each is a run in the suite's own words on as many rows as the suite has, with one thing changed. Either its
conditions are other ones, named and not ranked, or its difference is harmless and named. Rows that somebody
invented are `test_confirmed.py`'s.
"""

import csv
import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from medtasks_ext.registry import registry
from tests.conftest import command
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
        record={"config": config, "cut": CUT, "conditions": {"rows": {"n_of_suite": N}}, **attempt.record},
        settings={"apply_chat_template": True, **attempt.settings},
        arguments=attempt.arguments,
    )


def lines(file):
    with file.open(encoding="utf-8") as content:
        return [row for row in csv.DictReader(content) if row["kind"] == "medtasks"]


@pytest.fixture(scope="module")
def runs(made_once):
    """A folder with the usual run, all attempts, and one report on them beside the papers."""

    def fill(folder):
        write(folder, "usual", Attempt(""))
        for name, attempt in ATTEMPTS.items():
            write(folder, folder_of(name), attempt)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            command("report", "usual", *map(folder_of, ATTEMPTS), "-o", "out")

    return made_once("attempts", fill)


@pytest.fixture(scope="module")
def beside_the_papers(runs):
    """Its row of results, and among how many its suite is ranked."""
    results, groups = lines(runs / "out" / "results.csv"), lines(runs / "out" / "groups.csv")

    def found(name):
        [row] = [item for item in results if (item["model"], item["metric"]) == (f"ORG/{name}", "score")]
        of_suite = (f"ORG/{name}", "suite", "bridge")
        [suite] = [item for item in groups if (item["model"], item["axis"], item["suite"]) == of_suite]
        return row, suite["rank_of"]

    return found


def folder_of(name):
    return re.sub(r"\W+", "-", name)


def test_without_any_attempt_a_run_is_ranked_among_the_published(beside_the_papers):
    row, among = beside_the_papers("usual")
    assert (row["grade"], row["otherwise"]) == ("close", "") and int(among) > 90


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_is_named_and_ranked_only_where_it_moves_no_score(medtasks, runs, beside_the_papers, name):
    attempt, (row, among) = ATTEMPTS[name], beside_the_papers(folder_of(name))
    assert attempt.named in json.dumps(row)
    both = medtasks("report", runs / "usual", runs / folder_of(name), "--published", "none", "--json")
    assert len(json.loads(both.out)["pairs"]) == (not attempt.moves)
    if attempt.moves:
        assert row["grade"] == "other" and attempt.condition in row["otherwise"]
        # among its like alone, of which are two; some published answers were drawn, too
        assert among in ("", "1", "2") or name == "sampled answers"
    else:
        assert row["grade"] == "close" and int(among) > 90
