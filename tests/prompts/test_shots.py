"""Prompts with examples: what is said once, what again, and which rows are drawn as examples."""

import random
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.prompts.pool import ClassDraw
from medtasks_ext.registry import forget, registry
from medtasks_ext.rows.row import ReadRow
from medtasks_ext.rows.spec import DrawByClass
from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt
from tests.conftest import ROOT, write_jsonl
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


# Rows drawn by class: balanced, seeded, the same on every machine, never a test row.

SIZES = st.dictionaries(st.sampled_from(["sì", "no", "forse", "7", "Ω"]), st.integers(1, 12), min_size=1)
GOLDEN = ["no 3", "sì 1", "forse 1", "no 0", "sì 0", "forse 0"]


def pool(sizes: dict[str, int]) -> list[ReadRow]:
    rows = [(f"{label} {n}", label) for label, size in sizes.items() for n in range(size)]
    return [
        ReadRow({"id": str(number), "text": text, "label": label}, f"few-shot row {number}", "pool")
        for number, (text, label) in enumerate(rows, start=1)
    ]


def drawn(rows: list[ReadRow], shots: int, *, by: str = "label", seed: int = 42) -> list[str]:
    draw = ClassDraw(DrawByClass(by=by, seed=seed), Path("task.yaml"), lambda row: row.fields["text"])
    return [row.fields["text"] for row in draw.drawn(rows, shots, "pool")]


@given(SIZES, st.integers(0, 2**32), st.data())
def test_every_class_has_its_share_of_any_number_of_shots_in_any_order_of_the_rows(sizes, seed, data):
    shots, rows = data.draw(st.integers(0, len(sizes) * min(sizes.values()))), pool(sizes)
    every = drawn(rows, shots, seed=seed)
    counts = Counter(text.split()[0] for text in every[:shots])
    shares = [counts[label] for label in sizes]
    assert max(shares) - min(shares) <= 1
    if shots < len(sizes):  # the largest classes come first, as in HELM
        left = [sizes[label] for label in sizes if label not in counts]
        assert min((sizes[label] for label in counts), default=99) >= max(left)
    assert sorted(every) == sorted(row.fields["text"] for row in rows)
    assert every == drawn(data.draw(st.permutations(rows)), shots, seed=seed)


def test_the_draw_is_this_one_on_every_machine():
    rows = pool({"sì": 4, "no": 4, "forse": 2})
    assert drawn(rows + rows, 6)[:6] == GOLDEN != drawn(rows, 6, seed=1)[:6]
    counts = Counter(
        text for seed in range(2_000) for text in drawn(pool({"sì": 5, "no": 5}), 2, seed=seed)[:2]
    )
    assert len(counts) == 10 and all(300 < n < 500 for n in counts.values())  # 400 each, 5.6 sigma


@pytest.mark.parametrize("shows", [True, False])
def test_a_class_with_too_few_rows_is_named_with_what_it_lacks(monkeypatch, shows):
    rows = pool({"sì": 6, "no": 1})
    assert len(drawn(rows, 3)) == 7
    if not shows:
        monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    name = "'no'" if shows else "<text of 2 characters>"
    said = f"5 shots of 2 classes need 2 of class {name}, the few-shot pool has 1(.|\n)*fewer shots"
    with pytest.raises(MedtasksError, match=said):
        drawn(rows, 5)


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("etichetta", "nothing"),
        ("etichetta.nome", "is undefined"),
        ("''", "nothing"),
        ("[label]", "names no class"),
    ],
)
def test_a_row_without_a_class_is_named(by, problem):
    with pytest.raises(MedtasksError, match=f"few-shot row 1 .*rows.draw_fewshot.by gives .*{problem}"):
        drawn(pool({"sì": 2}), 1, by=by)


@pytest.fixture
def task(tmp_path, monkeypatch, data_dir):
    """A task of one's own that draws by class, its folder of rows, and how it is loaded."""
    folder = tmp_path / "mine" / "allergie_farmaci"
    shutil.copytree(ROOT / "tests/own_tasks/allergie_farmaci", folder)
    written = (folder / "task.yaml").read_text(encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))

    def load(test, fewshot=(), *, draw="{by: allergia}", shots=4):
        said = f"  identity: testo\n  draw_fewshot: {draw}\n"
        (folder / "task.yaml").write_text(written.replace("  identity: testo\n", said), encoding="utf-8")
        forget()
        for split, rows in (("test", test), ("fewshot", fewshot)):
            if rows:
                write_jsonl(data_dir / "own/allergie_farmaci" / f"{split}.jsonl", rows)
        found = load_documents(registry().datasets["allergie_farmaci"], cot=False, shots=shots)
        return found["test"], found["fewshot"]

    yield load
    forget()


def notes(n: int, kind: str, rare: int = 3) -> list[dict]:
    return [{"testo": f"{kind} {i}", "allergia": "no" if i % rare else "sì"} for i in range(n)]


def shown(fewshot) -> list[str]:
    return [document["prompt"] for document in fewshot]


def test_shots_of_a_pool_sorted_by_label_are_balanced_whatever_the_test_rows(medtasks, task):
    fewshot = sorted(notes(300, "nota"), key=lambda row: row["allergia"])  # the first 200 are all `no`
    tests = notes(12, "test")
    asked, drawn = task(tests, fewshot)
    assert [item["target"] for item in drawn[:4]] == ["no", "sì", "no", "sì"]
    assert len(asked) == 12 and len(drawn) == 100
    assert shown(task(random.Random(1).sample(tests, 7), fewshot)[1]) == shown(drawn)
    assert shown(task(tests, fewshot, draw="{by: allergia, seed: 1}")[1]) != shown(drawn)
    assert [item["target"] for item in task(tests, fewshot, draw="false")[1][:4]] == ["no"] * 4
    task(tests, fewshot)
    preview = medtasks.done("preview", "allergie_farmaci_5shot").out
    places = [preview.index(document["prompt"].split("\n")[-1]) for document in drawn[:5]]
    assert places == sorted(places)


def test_rows_held_out_as_shots_are_drawn_by_class_whatever_the_order(task):
    test = notes(30, "nota", rare=10)  # 3 of 30 are `sì`
    asked, held = task(test)
    assert [item["target"] for item in held] == ["no", "sì", "no", "sì", "no"]
    assert len(asked) == 25 and not {item["prompt"] for item in asked} & set(shown(held))
    assert shown(task(test[::-1])[1]) == shown(held)


def test_a_mistake_in_the_expression_is_found_before_any_run(medtasks, task):
    with pytest.raises(MedtasksError, match=r"draw_fewshot\.by: no valid Jinja"):
        task(notes(9, "test"), notes(20, "nota"), draw="{by: 'allergia |'}")
    outcome = medtasks("dev", "validate", "allergie_farmaci")
    assert outcome.code == 1 and "rows.draw_fewshot.by: no valid Jinja" in outcome.text
