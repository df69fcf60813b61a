"""Which rows are scored at which number of shots, and questions asked in another order of options."""

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.files import read_rows
from medtasks_ext.runner.evaluate import Settings, build_task
from tests.conftest import sample_rows, write_jsonl

TASKS = registry()
CLINICBENCH = [name for name, item in TASKS.datasets.items() if item.metadata.suite == "clinicbench"]


def with_ids(name: str) -> list[dict]:
    return [{**row, "id": f"row {number}"} for number, row in enumerate(sample_rows(name, ""))]


@pytest.mark.parametrize("name", CLINICBENCH)
def test_the_same_rows_are_scored_at_every_number_of_shots(data_dir, name):
    folder, rows = TASKS.datasets[name].folder, with_ids(name)
    write_jsonl(data_dir / "clinicbench" / folder.name / "test.jsonl", rows)
    scored, pools = [], []
    for shots in (0, 1, 3, 5):
        task = build_task(TASKS, name, Settings(num_fewshot=shots))
        scored.append([document["id"] for document in task.test_docs()])
        pools.append([document["id"] for document in task.fewshot_docs()])
    for strategy in ("cot", "five_shot"):
        task = build_task(TASKS, TASKS.datasets[name].task(strategy), Settings())
        scored.append([document["id"] for document in task.test_docs()])
        pools.append([document["id"] for document in task.fewshot_docs()])
    assert all(ids == scored[0] for ids in scored) and all(ids == pools[0] for ids in pools)
    assert len(pools[0]) == 5 and len(scored[0]) == len(rows) - 5
    assert not set(scored[0]) & set(pools[0])


@pytest.mark.parametrize("shots", [1, 3, 5])
def test_prompts_carry_as_many_shots_as_asked_for(data_dir, shots):
    name = "clinicbench_drug_interaction"
    write_jsonl(data_dir / "clinicbench" / "drug_interaction" / "test.jsonl", with_ids(name))
    task = build_task(TASKS, name, Settings(num_fewshot=shots))
    task.set_config("num_fewshot", shots)
    document, pool = task.test_docs()[0], task.fewshot_docs()
    prompt = task.fewshot_context(document, num_fewshot=shots)
    assert prompt.startswith(pool[0]["prompt"])
    inputs = [row.input for row in (*pool[:shots], document)]
    assert [part in prompt for part in inputs] == [True] * (shots + 1)
    assert not any(row.input in prompt for row in pool[shots:])
    assert prompt.count(document.instruction) == 1
    assert prompt.endswith(f"\n\n{document['prompt'].removeprefix(document.instruction).strip()}")


def test_too_few_rows_are_all_scored_without_shots_and_refused_with_them(data_dir):
    name = "clinicbench_drug_interaction"
    folder = TASKS.datasets[name].folder
    write_jsonl(data_dir / "clinicbench" / folder.name / "test.jsonl", with_ids(name)[:5])
    assert len(load_documents(Dataset(folder), cot=False)["test"]) == 5
    with pytest.raises(MedtasksError, match="too few"):
        load_documents(Dataset(folder), cot=False, shots=1)


def test_a_pool_is_drawn_where_the_order_of_the_source_is_no_chance(data_dir):
    """GAD's files are sorted by label: their first rows are all related."""
    folder = TASKS.datasets["clinicbench_gad"].folder
    rows = [
        {"id": str(i), "sentence": f"@GENE$ {i} and @DISEASE$", "label": "10"[i >= 250]} for i in range(500)
    ]
    write_jsonl(data_dir / "clinicbench" / "gad" / "fewshot.jsonl", rows)
    test = [{"sentence": f"{row['sentence']} again", "label": row["label"]} for row in rows[:6]]
    write_jsonl(data_dir / "clinicbench" / "gad" / "test.jsonl", test)
    pool = load_documents(Dataset(folder), cot=False)["fewshot"]
    ids = [document["id"] for document in pool]
    assert len(set(ids)) == len(ids) == 100
    assert 30 < sum(document["gold"] == "yes" for document in pool) < 70
    load_documents.__globals__["_build"].cache_clear()
    assert ids == [document["id"] for document in load_documents(Dataset(folder), cot=False)["fewshot"]]


PUBLISHED = TASKS.datasets["clinicbench_pharmacology_qa"].folder
SHUFFLED = TASKS.datasets["clinicbench_pharmacology_qa_shuffled"].folder


def options_of(document) -> dict[str, str]:
    return dict(zip("ABCD", document["options"], strict=True))


def test_the_shuffled_control_asks_the_same_questions_with_options_in_other_orders(data_dir):
    rows = [
        {
            "id": str(number), "question": f"Which drug is number {number}?", "answer": "B",
            **{f"option_{letter}": f"drug {letter}{number}" for letter in "ABCD"},
        }
        for number in range(205)
    ]  # fmt: skip
    for folder in (PUBLISHED, SHUFFLED):
        write_jsonl(data_dir / "clinicbench" / folder.name / "test.jsonl", rows)
    published, shuffled = (load_documents(Dataset(folder), cot=False) for folder in (PUBLISHED, SHUFFLED))
    for split in ("test", "fewshot"):
        assert [document["id"] for document in published[split]] == [
            document["id"] for document in shuffled[split]
        ]
        for one, other in zip(published[split], shuffled[split], strict=True):
            assert options_of(one)[one["gold"]] == options_of(other)[other["gold"]]
            assert sorted(one["options"]) == sorted(other["options"])
    letters = [document["gold"] for document in shuffled["test"]]
    assert len(letters) == 200
    # 50 are expected of each; a fair draw leaves these bounds once in a thousand tasks
    assert all(30 < letters.count(letter) < 72 for letter in "ABCD")
    assert len({tuple(map(document["options"].index, sorted(document["options"])))
                for document in shuffled["test"]}) == 24  # fmt: skip


def test_both_forms_of_the_questions_have_the_same_with_ids():
    assert read_rows(PUBLISHED / "sample.jsonl") == read_rows(SHUFFLED / "sample.jsonl")
