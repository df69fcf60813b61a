"""Datasets of one's own in other scripts: from a folder without Python to a run that an oracle wins."""

import json

import pytest
import yaml

from medtasks_ext.registry import forget
from tests.conftest import write_jsonl

FACTS = {
    "name": "Mine", "summary": "A question of an exam, and its answer.", "task_type": "question_answering",
    "document_types": ["exam_question"], "specialties": ["general"], "stage": "treatment_and_intervention",
    "url": "https://example.org",
    "licence": "hospital only", "n_test": 4, "access": "private",
}  # fmt: skip
ARABIC = [
    ("ما العلاج الأول للتأق؟ حالة {n}", ["الأدرينالين", "الهيبارين", "الأسبرين", "الوارفارين"], "أبجد"),
    ("كلمة السؤال هنا، حالة {n}", ["القلب", "الكبد", "الرئة", "الكلية"], "أبجد"),
]


def write(folder, name: str, language: str, columns: list[str], blocks: dict, rows: list[dict]) -> None:
    place = folder / name
    place.mkdir()
    task = {
        "class": "!function medtasks_ext.task.MedicalTask",
        "task": f"own_{name}",
        "dataset": f"own/{name}",
        "rows": {"schemas": [{"columns": columns, "types": blocks.pop("types", {})}], "identity": columns[0]},
        **blocks,
        "about": {**FACTS, "language": language},
        "metadata": {"version": "1-A"},
    }
    text = yaml.safe_dump(task, allow_unicode=True, sort_keys=False)
    (place / "task.yaml").write_text(text.replace("'!function medtasks_ext.task.MedicalTask'", task["class"]))
    split = [{"_split": "fewshot" if n < 5 else "test", "id": f"r{n}", **row} for n, row in enumerate(rows)]
    write_jsonl(place / "sample.jsonl", split)
    forget()


def arabic(*, options: list[str] | None = None, answer: str | None = None) -> list[dict]:
    rows = []
    for n in range(11):
        question, texts, letters = ARABIC[n % 2]
        rows.append({"q": question.format(n=n), "options": texts, "answer": letters[n % 4]})
    if options:
        rows[7]["options"] = options
    if answer:
        rows[8]["answer"] = answer
    return rows


ARABIC_BLOCKS = {
    "types": {"options": "options"},
    "prompt": {
        "instruction": "اختر الإجابة الصحيحة واكتب حرفها فقط. {{ strategy }}",
        "input": '{{ q }}\n{{ options | lettered("أبجد") }}',
        "target": "{{ answer }}",
    },
    "answer": {"kind": "choice", "labels": list("أبجد")},
}


def test_letters_of_another_script_are_validated_and_read(medtasks, own):
    write(own, "exam", "ar", ["q", "options", "answer"], dict(ARABIC_BLOCKS), arabic())
    medtasks.done("dev", "validate", "own_exam")
    shown = medtasks("preview", "own_exam", "--data", "sample", "--response", "الإجابة الصحيحة هي: ب")
    assert shown.code == 0 and "ب" in shown.out, shown.text
    forms = json.loads(medtasks("ls", "--json", "own_exam").out)
    assert forms[0]["language"] == "ar"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": ["القلب", "الكبد", "القلب", "الكلية"]}, "options أ and ج have the same text"),
        ({"answer": "هـ"}, "is none of أ, ب, ج, د, and no option's text"),
    ],
)
def test_a_row_that_cannot_be_answered_is_named_with_its_remedy(medtasks, own, change, said):
    write(own, "exam", "ar", ["q", "options", "answer"], dict(ARABIC_BLOCKS), arabic(**change))
    checked = medtasks("dev", "validate", "own_exam")
    assert checked.code != 0 and said in checked.text.replace("\n", " "), checked.text
    assert "Traceback" not in checked.text


def test_a_language_without_words_asks_for_them(medtasks, own):
    blocks = {
        "types": {"answer": ["ae", "kao"]},
        "prompt": {"instruction": "Whakautua. {{ strategy }}", "input": "{{ q }}", "target": "{{ answer }}"},
        "answer": {"kind": "category", "labels": ["ae", "kao"]},
    }
    rows = [{"q": f"He pātai {n}?", "answer": ("ae", "kao")[n % 2]} for n in range(11)]
    write(own, "patai", "mi", ["q", "answer"], {**blocks}, rows)
    checked = medtasks("dev", "validate", "own_patai")
    assert checked.code == 1 and "no words of the language 'mi' are known" in checked.text, checked.text
    shown = medtasks("preview", "own_patai", "--data", "sample")
    assert shown.code == 0 and "read only with English words" in shown.text
    task = own / "patai" / "task.yaml"
    said = task.read_text("utf-8").replace("  - kao\nabout", "  - kao\n  words: {answer: [whakautu]}\nabout")
    task.write_text(said, "utf-8")
    forget()
    medtasks.done("dev", "validate", "own_patai")
