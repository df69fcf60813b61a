"""Row schemas: rows that hold several documents, rows left out, rows that are alike, and Word files."""

import json

import docx
import pytest
from docx.shared import RGBColor

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.runner.evaluate import Settings, build_task
from tests.conftest import sample_rows, write_jsonl

TASKS = registry().datasets
MEDHALLU, HEAD_QA, RACE_BIAS, MEDMCQA, MEDEC = (
    TASKS[f"medhelm_{name}"].folder for name in ("medhallu", "head_qa", "race_bias", "medmcqa", "medec")
)


def question(number: int, *, right: int = 1, image: str | None = None, options: int = 4) -> dict:
    answers = [{"aid": aid, "atext": f"option {aid} of {number}"} for aid in range(1, options + 1)]
    return {"qid": number, "qtext": f"Question {number}?", "ra": right, "image": image, "answers": answers}


def documents(folder) -> list:
    return load_documents(Dataset(folder), cot=False)["test"]


def test_each_answer_of_a_row_is_a_document_of_its_own(data_dir):
    facts = [
        {
            "Question": f"Q{i}?",
            "Knowledge": ["k", "l"],
            "Ground Truth": f"true {i}",
            "Hallucinated Answer": f"false {i}",
        }
        for i in range(3)
    ]
    write_jsonl(data_dir / "medhelm" / "medhallu" / "test.jsonl", facts)
    found = documents(MEDHALLU)
    assert [document["id"] for document in found] == ["1-1", "1-2", "2-1", "2-2", "3-1", "3-2"]
    assert [document["gold"] for document in found] == ["0", "1"] * 3
    assert "Answer: true 1" in found[2]["prompt"] and "Answer: false 1" in found[3]["prompt"]
    assert "World Knowledge: k\nl\n" in found[0]["prompt"]


def test_questions_are_found_in_the_booklets_of_one_object_and_those_with_an_image_are_left_out(data_dir):
    exams = {
        "B": {"name": "B", "year": "2016",
         "data": [question(1), question(2, image="2.png"), question(3, right=4)]},
        "E": {"name": "E", "year": "2016", "data": [question(4, right="2", image="")]},
    }  # fmt: skip
    folder = data_dir / "medhelm" / "head_qa"
    folder.mkdir(parents=True)
    (folder / "test.json").write_text(json.dumps({"version": "1.0", "exams": exams}))
    nested = documents(HEAD_QA)
    assert [document["gold"] for document in nested] == ["A", "D", "B"]
    flat = [row for exam in exams.values() for row in exam["data"]]
    write_jsonl(data_dir / "other" / "medhelm" / "head_qa" / "test.jsonl", flat)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_DATA_DIR", str(data_dir / "other"))
        assert [(d["prompt"], d["gold"]) for d in documents(HEAD_QA)] == [
            (d["prompt"], d["gold"]) for d in nested
        ]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (4, "test row 1, column cop holds '4' .*expected one of: -1, 0, 1, 2, 3"),
        (-1, "test row 1 .*'none' is not one of the letters"),
    ],
)
def test_an_index_that_counts_from_one_and_a_withheld_gold_are_noticed(data_dir, index, message):
    row = {"question": "Q?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": index}
    write_jsonl(data_dir / "medhelm" / "medmcqa" / "test.jsonl", [row])
    with pytest.raises(MedtasksError, match=message):
        documents(MEDMCQA)


def test_notes_that_are_blank_records_are_left_out(data_dir):
    head = "Text ID,Sentences,Error Flag,Error Sentence ID,Corrected Sentence\n"
    rows = [
        'ms-1,"0 She coughs.\n1 Fluoxetine is given.\n",1,1,Amoxicillin is given.',
        'ms-2,"0 He is well.\n",0,-1,NA',
        'ms-3,"0 He is well, too.\n",1,-1,NA',  # HELM takes a note without correction for a right one
        "ms-4, ,1,0,x",
        ",,,,",
    ]
    folder = data_dir / "medhelm" / "medec"
    folder.mkdir(parents=True)
    (folder / "test.csv").write_text(head + "\n".join(rows) + "\n")
    found = documents(MEDEC)
    assert {document["id"]: document["target"] for document in found} == {
        "ms-1": "1 Amoxicillin is given.", "ms-2": "CORRECT", "ms-3": "CORRECT",
    }  # fmt: skip


RED, BLACK, PLAIN = "FF0000", "000000", None


def word_file(path, paragraphs: list[list[tuple[str | None, str]]]):
    """A .docx with runs of coloured text; a table precedes the rest."""
    document = docx.Document()
    document.add_table(1, 1).cell(0, 0).text = "Run 0: in a table?"
    for runs in paragraphs:
        paragraph = document.add_paragraph()
        for colour, text in runs:
            run = paragraph.add_run(text)
            if colour:
                run.font.color.rgb = RGBColor.from_string(colour)
    path.parent.mkdir(parents=True, exist_ok=True)
    document.save(path)
    return path


INTERVIEWS = [
    [(PLAIN, "Title in "), (RED, "red")], [(PLAIN, "Run 1: How "), (BLACK, "much?")],
    [(PLAIN, "It is "), (RED, "10% less"), (PLAIN, ".")], [], [(PLAIN, " See\tthere.\nSoon. ")],
    [(PLAIN, "Run 2: How much?")], [(BLACK, "The same in everyone.")],
    [(PLAIN, "Run 3:\xa0 no blank after the colon ends the second answer, but is no item")], [(RED, "lost")],
    [(RED, "Run 4: Red question, black answer?\nFirst line of the answer.")], [(BLACK, "Second line.")],
    [(PLAIN, "Run 5: How much?")], [(RED, "The same in everyone.")],
]  # fmt: skip


def test_red_text_in_a_word_file_labels_the_answers(data_dir):
    word_file(data_dir / "medhelm" / "race_bias" / "test.docx", INTERVIEWS)
    found = documents(RACE_BIAS)
    text = [document["prompt"].partition("Question: ")[2].partition("\nA. yes")[0] for document in found]
    assert text == [
        "How much?\nResponse: It is 10% less.\n\nSee\tthere.\nSoon.",
        "How much?\nResponse: The same in everyone.",  # asked twice: one document, the last label
        "Red question, black answer?\nFirst line of the answer.\nResponse: Second line.",
    ]
    assert [document["gold"] for document in found] == ["A", "A", "B"]


CLINICBENCH = [name for name, item in TASKS.items() if item.metadata.suite == "clinicbench"]


def with_ids(name: str) -> list[dict]:
    return [{**row, "id": f"row {number}"} for number, row in enumerate(sample_rows(name, ""))]


@pytest.mark.parametrize("name", CLINICBENCH)
def test_the_same_rows_are_scored_at_every_number_of_shots(data_dir, name):
    folder, rows = TASKS[name].folder, with_ids(name)
    write_jsonl(data_dir / "clinicbench" / folder.name / "test.jsonl", rows)
    scored, pools = [], []
    for shots in (0, 1, 3, 5):
        task = build_task(registry(), name, Settings(num_fewshot=shots))
        scored.append([document["id"] for document in task.test_docs()])
        pools.append([document["id"] for document in task.fewshot_docs()])
    for strategy in ("cot", "five_shot"):
        task = build_task(registry(), TASKS[name].task(strategy), Settings())
        scored.append([document["id"] for document in task.test_docs()])
        pools.append([document["id"] for document in task.fewshot_docs()])
    assert all(ids == scored[0] for ids in scored) and all(ids == pools[0] for ids in pools)
    assert len(pools[0]) == 5 and len(scored[0]) == len(rows) - 5
    assert not set(scored[0]) & set(pools[0])


def test_a_pool_is_drawn_where_the_order_of_the_source_is_no_chance(data_dir):
    """GAD's files are sorted by label: their first rows are all related."""
    folder = TASKS["clinicbench_gad"].folder
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


PUBLISHED = TASKS["clinicbench_pharmacology_qa"].folder
SHUFFLED = TASKS["clinicbench_pharmacology_qa_shuffled"].folder


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
