"""Few-shot rows drawn by class: balanced, seeded, the same on every machine, never a test row."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.prompts.pool import ClassDraw
from medtasks_ext.registry import forget, registry
from medtasks_ext.rows.row import ReadRow
from medtasks_ext.rows.spec import DrawByClass
from tests.conftest import ROOT, write_jsonl

SIZES = st.dictionaries(st.sampled_from(["sì", "no", "forse", "7", "Ω"]), st.integers(1, 12), min_size=1)


GOLDEN = ["no 3", "sì 1", "forse 1", "no 0", "sì 0", "forse 0"]


def pool(sizes: dict[str, int]) -> list[ReadRow]:
    rows = [(f"{label} {n}", label) for label, size in sizes.items() for n in range(size)]
    return [
        ReadRow({"id": str(number), "text": text, "label": label}, f"few-shot row {number}", "pool")
        for number, (text, label) in enumerate(rows, start=1)
    ]


def drawn(rows: list[ReadRow], shots: int, *, by: str = "label", seed: int = 42) -> list[ReadRow]:
    draw = ClassDraw(DrawByClass(by=by, seed=seed), Path("task.yaml"), lambda row: row.fields["text"])
    return draw.drawn(rows, shots, "pool")


def names(rows: list[ReadRow]) -> list[str]:
    return [row.fields["text"] for row in rows]


@given(SIZES, st.integers(0, 2**32), st.data())
def test_every_class_has_its_share_of_any_number_of_shots(sizes, seed, data):
    shots = data.draw(st.integers(0, len(sizes) * min(sizes.values())))
    first = drawn(pool(sizes), shots, seed=seed)[:shots]
    counts = Counter(row.fields["label"] for row in first)
    assert len(first) == shots == len(set(names(first)))
    shares = [counts[label] for label in sizes]
    assert max(shares) - min(shares) <= 1
    if shots >= len(sizes):
        assert set(counts) == set(sizes)
    else:  # the largest classes come first, as in HELM
        assert min((sizes[label] for label in counts), default=99) >= max(
            sizes[x] for x in sizes if x not in counts
        )


@given(SIZES, st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_plays_no_part(sizes, seed, order):
    rows = pool(sizes)
    shuffled = order.sample(rows, len(rows))
    assert names(drawn(shuffled, 1, seed=seed)) == names(drawn(rows, 1, seed=seed))
    assert sorted(names(drawn(rows, 1, seed=seed))) == sorted(names(rows))


def test_the_draw_is_this_one_on_every_machine():
    rows = pool({"sì": 4, "no": 4, "forse": 2})
    assert names(drawn(rows, 6))[:6] == GOLDEN
    assert names(drawn(rows, 6, seed=1))[:6] != GOLDEN


def test_every_row_of_a_class_has_the_same_chance():
    rows = pool({"sì": 5, "no": 5})
    counts = Counter(names(drawn(rows, 2, seed=seed))[place] for seed in range(2_000) for place in (0, 1))
    assert len(counts) == 10 and all(300 < n < 500 for n in counts.values())  # 400 each, 5.6 sigma


def test_rows_of_one_text_are_drawn_once():
    rows = pool({"sì": 3, "no": 3})
    assert len(drawn(rows + rows, 6)) == 6


def test_a_class_with_too_few_rows_is_named_with_what_it_lacks(monkeypatch):
    rows = pool({"sì": 6, "no": 1})
    assert len(drawn(rows, 3)) == 7
    with pytest.raises(MedtasksError) as caught:
        drawn(rows, 5)
    assert "5 shots of 2 classes need 2 of class 'no', the few-shot pool has 1" in str(caught.value)
    assert caught.value.where == "pool" and "fewer shots" in caught.value.remedy
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    with pytest.raises(MedtasksError, match="of class <text of 2 characters>"):
        drawn(rows, 5)


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("etichetta", "nothing"),
        ("etichetta.nome", "is undefined"),
        ("none", "nothing"),
        ("''", "nothing"),
        ("[label]", "names no class"),
    ],
)
def test_a_row_without_a_class_is_named(by, problem):
    with pytest.raises(MedtasksError, match=problem) as caught:
        drawn(pool({"sì": 2}), 1, by=by)
    assert "few-shot row 1" in str(caught.value) and "rows.draw_fewshot.by" in str(caught.value)


@pytest.fixture
def task(tmp_path, monkeypatch, data_dir):
    """A task of one's own that draws by class, its folder of rows, and how it is loaded."""
    folder = tmp_path / "mine" / "allergie_farmaci"
    shutil.copytree(ROOT / "tests/own_tasks/allergie_farmaci", folder)
    file = folder / "task.yaml"
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))

    def load(test, fewshot=(), *, draw="{by: allergia}", shots=4):
        text = (ROOT / "tests/own_tasks/allergie_farmaci/task.yaml").read_text(encoding="utf-8")
        text = text.replace("  identity: testo\n", f"  identity: testo\n  draw_fewshot: {draw}\n")
        file.write_text(text, encoding="utf-8")
        forget()
        for split, rows in (("test", test), ("fewshot", fewshot)):
            if rows:
                write_jsonl(data_dir / "own/allergie_farmaci" / f"{split}.jsonl", rows)
        return load_documents(registry().datasets["allergie_farmaci"], cot=False, shots=shots)

    yield load
    forget()


def notes(n: int, kind: str, rare: int = 3) -> list[dict]:
    return [{"testo": f"{kind} {i}", "allergia": "no" if i % rare else "sì"} for i in range(n)]


def shown(splits, n: int = 4) -> list[str]:
    return [document["target"] for document in splits["fewshot"][:n]]


def test_shots_of_a_pool_sorted_by_label_are_balanced(task):
    fewshot = sorted(notes(300, "nota"), key=lambda row: row["allergia"])  # the first 200 are all `no`
    splits = task(notes(9, "test"), fewshot)
    assert shown(splits) == ["no", "sì", "no", "sì"]
    assert len(splits["test"]) == 9 and len(splits["fewshot"]) == 100
    assert shown(task(notes(9, "test"), fewshot, draw="false")) == ["no"] * 4


def test_shots_do_not_depend_on_the_test_rows(task):
    fewshot, test = notes(40, "nota"), notes(12, "test")
    one = task(test, fewshot)
    other = task(random.Random(1).sample(test, 7), fewshot)
    assert [item["prompt"] for item in one["fewshot"]] == [item["prompt"] for item in other["fewshot"]]
    seeded = task(test, fewshot, draw="{by: allergia, seed: 1}")
    assert [item["prompt"] for item in one["fewshot"]] != [item["prompt"] for item in seeded["fewshot"]]


def test_rows_held_out_as_shots_are_drawn_by_class_whatever_the_order(task):
    test = notes(30, "nota", rare=10)  # 3 of 30 are `sì`
    splits = task(test)
    assert shown(splits, 5) == ["no", "sì", "no", "sì", "no"]
    asked = {document["prompt"] for document in splits["test"]}
    held = [document["prompt"] for document in splits["fewshot"]]
    assert len(asked) == 25 and not asked & set(held)
    assert [item["prompt"] for item in task(test[::-1])["fewshot"]] == held


def test_a_class_that_the_pool_lacks_rows_of_is_one_message(task):
    with pytest.raises(
        MedtasksError, match="4 shots of 2 classes need 2 of class 'sì', the few-shot pool has 1"
    ):
        task(notes(9, "test"), notes(20, "nota", rare=20))


def test_a_mistake_in_the_expression_is_found_before_any_run(medtasks, task, data_dir):
    task(notes(9, "test"), notes(20, "nota"), draw="{by: allergia}")
    assert medtasks("dev", "validate", "allergie_farmaci").code == 0
    with pytest.raises(MedtasksError, match=r"draw_fewshot\.by: no valid Jinja"):
        task(notes(9, "test"), notes(20, "nota"), draw="{by: 'allergia |'}")
    outcome = medtasks("dev", "validate", "allergie_farmaci")
    assert outcome.code == 1 and "rows.draw_fewshot.by: no valid Jinja" in outcome.text


def test_the_shots_of_a_run_are_those_of_the_draw(medtasks, task, tmp_path):
    splits = task(notes(9, "test"), notes(40, "nota"), shots=5)
    medtasks.done("run", "--model", "oracle", "--tasks", "allergie_farmaci_5shot", "--output_path", "run")
    preview = medtasks.done("preview", "allergie_farmaci_5shot", "--json")
    text = json.dumps(json.loads(preview.out), ensure_ascii=False)
    places = [text.index(document["prompt"].split("\n")[-1]) for document in splits["fewshot"][:5]]
    assert places == sorted(places)
