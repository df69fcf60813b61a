"""Prompts with examples: what is said once, what again, and which rows are drawn as examples."""

from itertools import pairwise

import pytest
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.models import Oracle
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt
from tests.run_files import samples_of

SETTINGS = Settings(data="sample", prompts="own")


def asked(name, document=0):
    """A task, one of its documents, and the whole prompt of it."""
    task = build_task(registry(), name, SETTINGS)
    item = task.test_docs()[document]
    return task, item, rendered_prompt(task, item, SETTINGS, None)


def turns(task, document):
    def chat(turns, add_generation_prompt=True):
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)

    given = {"apply_chat_template": True, "fewshot_as_multiturn": True, "chat_template": chat}
    return task.fewshot_context(document, 5, **given)


@pytest.mark.parametrize("name", ["medhelm_ehrsql", "medhelm_noteextract", "mlb_cmexam", "commons_crade"])
def test_an_instruction_that_all_share_is_said_once(name):
    task, document, prompt = asked(f"{name}_5shot")
    assert document.instruction and prompt.startswith(document.instruction)
    assert prompt.count(document.instruction) == 1
    rows = [*task.fewshot_docs()[:5], document]
    places = [prompt.index(row["prompt"].removeprefix(row.instruction).strip()) for row in rows]
    assert places == sorted(places)
    _, first, *further = turns(task, document).split("<user>")
    assert first.startswith(document.instruction) and len(further) == 5
    assert not any(document.instruction in turn for turn in further)
    assert task.fewshot_context(document, 0) == document["prompt"]


@pytest.mark.parametrize("place", range(2))
def test_an_instruction_of_the_row_is_said_again_where_it_changes(place):
    task, document, prompt = asked("medhelm_ehrshot_5shot", place)
    said = [row.instruction for row in (*task.fewshot_docs()[:5], document)]
    changes = 1 + sum(before != now for before, now in pairwise(said))
    assert sum(prompt.count(instruction) for instruction in set(said)) == changes
    assert prompt.rindex(document.instruction) == max(prompt.rindex(item) for item in said)


def test_an_example_with_an_empty_answer_ends_before_the_next_one():
    """EHRSQL's questions that cannot be answered have an empty query."""
    task, document, prompt = asked("medhelm_ehrsql_5shot")
    assert any(row["target"] == "" for row in task.fewshot_docs()[:5])
    assert "SQL Query:-- Question:" not in prompt
    assert turns(task, document).count("<assistant>") == 5


def test_no_example_contradicts_the_instruction():
    """HEAD-QA has questions with five options."""
    prompt = asked("medhelm_head_qa_5shot")[2]
    assert "\nE\n" in prompt and "A, B, C or D" not in prompt


class Small(Oracle):
    """A context of so many characters, one token each; keeps what it was asked."""

    tokenizer = object()

    def __init__(self, room: int) -> None:
        super().__init__()
        self.max_length, self.asked = room, []

    def tok_encode(self, text: str) -> list[str]:
        return list(text)

    def generate_until(self, requests, disable_tqdm=False):
        self.asked += [request.args[0] for request in requests]
        return super().generate_until(requests)


@pytest.mark.parametrize("room", [600, 100_000])
def test_prompts_are_cut_as_a_run_of_our_own_cuts_them(medtasks, built_tasks, monkeypatch, tmp_path, room):
    name, more = "bridge_chip_ctc_5shot", {"apply_chat_template": True, "fewshot_as_multiturn": True}
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    model, own = Small(room), {"prompts": "own"}
    tasks = TaskManager(include_defaults=False, include_path=str(built_tasks), metadata=own)
    more |= {"task_manager": tasks, "gen_kwargs": "max_gen_toks=10", "bootstrap_iters": 0}
    simple_evaluate(model, tasks=[name], **more)
    for key, value in (("max_length", room), ("tokenizer", object()), ("tok_encode", Small.tok_encode)):
        monkeypatch.setattr(Oracle, key, value, raising=False)
    run = ("run", "--model", "oracle", "--tasks", name, "--prompts", "own", "--output_path", "run")
    medtasks.done(*run, "--apply_chat_template", "--gen_kwargs", "max_gen_toks=10")
    samples = samples_of(tmp_path / "run", name)
    assert model.asked == [sample["arguments"]["gen_args_0"]["arg_0"] for sample in samples]
    assert all(len(prompt) <= room - 10 for prompt in model.asked)
