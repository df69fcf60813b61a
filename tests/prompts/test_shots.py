"""Prompts with examples: what is said once, what again."""

from itertools import pairwise

import pytest
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.models import Oracle
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt
from tests.run_files import samples_of

TASKS = registry()
SETTINGS = Settings(data="sample", prompts="own")


def _chat(turns, add_generation_prompt=True):
    return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)


@pytest.mark.parametrize("name", ["medhelm_ehrsql", "medhelm_noteextract", "mlb_cmexam", "commons_crade"])
def test_an_instruction_that_all_share_is_said_once(name):
    task = build_task(TASKS, f"{name}_5shot", SETTINGS)
    document, pool = task.test_docs()[0], task.fewshot_docs()[:5]
    prompt = rendered_prompt(task, document, SETTINGS, None)
    assert document.instruction
    assert prompt.startswith(document.instruction)
    assert prompt.count(document.instruction) == 1
    ends = [row["prompt"].removeprefix(row.instruction).strip() for row in (*pool, document)]
    places = [prompt.index(end) for end in ends]
    assert places == sorted(places)


def test_turns_of_a_chat_say_it_in_the_first_one():
    task = build_task(TASKS, "medhelm_medqa_5shot", SETTINGS)
    document = task.test_docs()[0]
    prompt = task.fewshot_context(
        document, 5, apply_chat_template=True, fewshot_as_multiturn=True, chat_template=_chat
    )
    first, *further = prompt.split("<user>")[1:]
    assert first.startswith(document.instruction)
    assert len(further) == 5
    assert not any(document.instruction in turn for turn in further)


def test_an_instruction_of_the_row_is_said_again_where_it_changes():
    task = build_task(TASKS, "medhelm_ehrshot_5shot", SETTINGS)
    for document in task.test_docs():
        said = [row.instruction for row in (*task.fewshot_docs()[:5], document)]
        prompt = rendered_prompt(task, document, SETTINGS, None)
        changes = 1 + sum(before != now for before, now in pairwise(said))
        assert sum(prompt.count(instruction) for instruction in set(said)) == changes
        assert prompt.rindex(document.instruction) == max(prompt.rindex(item) for item in said)


def test_without_examples_the_task_with_examples_says_its_instruction():
    task = build_task(TASKS, "medhelm_medqa_5shot", SETTINGS)
    document = task.test_docs()[0]
    assert task.fewshot_context(document, 0) == document["prompt"]


def test_the_layout_of_bridge_has_the_instruction_in_its_own_turn():
    task = build_task(TASKS, "bridge_mednli_5shot", SETTINGS)
    document = task.test_docs()[0]
    assert document.instruction == ""
    assert rendered_prompt(task, document, SETTINGS, None).count(document["system"]) == 1


def test_an_example_with_an_empty_answer_ends_before_the_next_one():
    """EHRSQL's questions that cannot be answered have an empty query."""
    task = build_task(TASKS, "medhelm_ehrsql_5shot", SETTINGS)
    assert any(row["target"] == "" for row in task.fewshot_docs()[:5])
    document = task.test_docs()[0]
    assert "SQL Query:-- Question:" not in rendered_prompt(task, document, SETTINGS, None)
    chat = task.fewshot_context(
        document, 5, apply_chat_template=True, fewshot_as_multiturn=True, chat_template=_chat
    )
    assert chat.count("<assistant>") == 5


def test_no_example_contradicts_the_instruction():
    """HEAD-QA has questions with five options."""
    task = build_task(TASKS, "medhelm_head_qa_5shot", SETTINGS)
    prompt = rendered_prompt(task, task.test_docs()[0], SETTINGS, None)
    assert "\nE\n" in prompt
    assert "A, B, C or D" not in prompt


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


@pytest.mark.parametrize("room", [600, 800, 100_000])
def test_prompts_are_cut_as_a_run_of_our_own_cuts_them(medtasks, built_tasks, monkeypatch, tmp_path, room):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    model = Small(room)
    simple_evaluate(
        model=model,
        tasks=["bridge_chip_ctc_5shot"],
        task_manager=TaskManager(
            include_defaults=False, include_path=str(built_tasks), metadata={"prompts": "own"}
        ),
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        gen_kwargs="max_gen_toks=10",
        bootstrap_iters=0,
    )
    for name, value in (("max_length", room), ("tokenizer", object()), ("tok_encode", Small.tok_encode)):
        monkeypatch.setattr(Oracle, name, value, raising=False)
    medtasks.done(
        *(
            "run",
            "--model",
            "oracle",
            "--tasks",
            "bridge_chip_ctc_5shot",
            "--prompts",
            "own",
            "--output_path",
            "run",
        ),
        *("--apply_chat_template", "--gen_kwargs", "max_gen_toks=10"),
    )
    samples = samples_of(tmp_path / "run", "bridge_chip_ctc_5shot")
    assert model.asked == [sample["arguments"]["gen_args_0"]["arg_0"] for sample in samples]
    assert all(len(prompt) <= room - 10 for prompt in model.asked)
