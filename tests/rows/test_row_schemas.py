"""Row schemas: rows that hold several documents, rows left out, rows that are alike, and Word files."""

import json
import zipfile

import docx
import pytest
from docx.shared import RGBColor

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.files import read_rows
from tests.conftest import write_jsonl

TASKS = registry().datasets
MEDHALLU, HEAD_QA, RACE_BIAS, MEDMCQA, MEDCALC, MEDEC = (
    TASKS[f"medhelm_{name}"].folder
    for name in ("medhallu", "head_qa", "race_bias", "medmcqa", "medcalc_bench", "medec")
)


def question(number: int, *, right: int = 1, image: str | None = None, options: int = 4) -> dict:
    answers = [{"aid": aid, "atext": f"option {aid} of {number}"} for aid in range(1, options + 1)]
    return {"qid": number, "qtext": f"Question {number}?", "ra": right, "image": image, "answers": answers}


def documents(folder) -> list:
    return load_documents(Dataset(folder), cot=False)["test"]


def facts(count: int) -> list[dict]:
    names = ("Question", "Knowledge", "Ground Truth", "Hallucinated Answer")
    cells = ((f"Q{i}?", ["k", "l"], f"true {i}", f"false {i}") for i in range(count))
    return [dict(zip(names, row, strict=True)) for row in cells]


def test_each_answer_of_a_row_is_a_document_of_its_own(data_dir):
    write_jsonl(data_dir / "medhelm" / "medhallu" / "test.jsonl", facts(3))
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


def test_the_rows_of_a_pool_are_limited_after_they_were_taken_apart(data_dir):
    folder = data_dir / "medhelm" / "head_qa"
    for split, first in (("test", 0), ("fewshot", 1000)):
        exams = {"B": {"data": [question(first + i) for i in range(150)]}}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{split}.json").write_text(json.dumps({"version": "1.0", "exams": exams}))
    splits = load_documents(Dataset(HEAD_QA), cot=False)
    assert len(splits["test"]) == 150 and len(splits["fewshot"]) == 100


def test_a_row_that_holds_no_list_is_named(data_dir):
    rows = facts(2)
    folder = data_dir / "medhelm" / "head_qa"
    folder.mkdir(parents=True)
    (folder / "test.json").write_text(json.dumps({"version": "1.0", "exams": {"B": {"data": [1]}}}))
    with pytest.raises(MedtasksError, match="test row 1: `each` gives no list of objects") as error:
        documents(HEAD_QA)
    assert error.value.remedy
    del rows[1]["Ground Truth"]
    write_jsonl(data_dir / "medhelm" / "medhallu" / "test.jsonl", rows)
    with pytest.raises(MedtasksError, match="test row 2 has no column Ground Truth"):
        documents(MEDHALLU)


def test_a_right_answer_that_is_no_option_is_named(data_dir):
    write_jsonl(data_dir / "medhelm" / "head_qa" / "test.jsonl", [question(1), question(2, right=5)])
    with pytest.raises(MedtasksError, match="test row 2, field answer"):
        documents(HEAD_QA)


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


def test_a_row_has_as_many_letters_as_options(data_dir):
    from medtasks_ext.answers import answer_format

    write_jsonl(
        data_dir / "medhelm" / "head_qa" / "test.jsonl", [question(1, options=5, right=5), question(2)]
    )
    five, four = documents(HEAD_QA)
    form = answer_format({"kind": "exact_letter", "letters": ["A", "B", "C", "D", "E"]})
    assert five["gold"] == "E" and "\nE. option 5 of 1\n" in five["prompt"]
    assert form.read("E", five, cot=False).valid and not form.read("E", four, cot=False).valid


def calculation(**change) -> dict:
    row = {
        "Row Number": "7", "Category": "lab", "Patient Note": "n", "Question": "q",
        "Ground Truth Answer": "2", "Lower Limit": "1", "Upper Limit": "3",
    }  # fmt: skip
    return {**row, **change}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Upper Limit": ""}, "column Upper Limit holds nothing, expected text"),
        ({"Lower Limit": "1 to 3"}, "lower_limit '1 to 3' is no number"),
        ({"Category": "x-ray"}, "category 'x-ray' is none of"),
    ],
)
def test_a_calculation_without_readable_limits_names_its_row(data_dir, change, message):
    path = write_jsonl(
        data_dir / "medhelm" / "medcalc_bench" / "test.jsonl",
        [calculation(), calculation(**{"Row Number": "8", **change})],
    )
    with pytest.raises(MedtasksError, match="test row 2") as error:
        documents(MEDCALC)
    assert message in str(error.value) and str(path) in str(error.value) and error.value.remedy


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


@pytest.mark.parametrize("content", [b"not a zip", None])
def test_a_file_that_is_no_word_file_is_refused(tmp_path, content):
    path = tmp_path / "test.docx"
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("word/other.xml", "<x/>")
    else:
        path.write_bytes(content)
    with pytest.raises(MedtasksError, match="is not a Word") as error:
        read_rows(path)
    assert str(path) in str(error.value) and error.value.remedy
