"""Options in the text of a question: taken apart by their marks, or refused with one message."""

import shutil

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import forget, registry
from medtasks_ext.rows.filters import question_and_options
from tests.conftest import ROOT, write_jsonl

QUESTION = "Which drug lowers potassium?"
FOUR = ["Furosemide", "Spironolactone", "Lisinopril", "Amiloride"]


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("{ABCD}) ", f"{QUESTION} A) Furosemide B) Spironolactone C) Lisinopril D) Amiloride"),
        ("{ABCD}) ", f"{QUESTION}\nA) Furosemide\nB) Spironolactone\nC) Lisinopril\nD) Amiloride\n"),
        ("({abcd})", f"{QUESTION} (a)Furosemide (b) Spironolactone (c)Lisinopril (d) Amiloride"),
        ("\n{1234}. ", f"{QUESTION}\r\n1. Furosemide\r\n2. Spironolactone\r\n3. Lisinopril\r\n4. Amiloride"),
        ("{①②③④}", f"{QUESTION} ①Furosemide ②Spironolactone ③Lisinopril ④Amiloride"),
        ("[{АБВГ}] ", f"{QUESTION} [А] Furosemide [Б] Spironolactone [В] Lisinopril [Г] Amiloride"),
    ],
)  # fmt: skip
def test_question_and_options_are_taken_apart(mark, text):
    assert question_and_options(text, mark) == {"question": QUESTION, "options": FOUR}


def test_texts_without_gaps_between_words():
    found = question_and_options("哪种药物降低血钾？A．呋塞米B．螺内酯C．赖诺普利", "{ABCDE}．")
    assert found == {"question": "哪种药物降低血钾？", "options": ["呋塞米", "螺内酯", "赖诺普利"]}


def test_options_with_an_end():
    text = "Qual a conduta?\n'A': 'Gota d'água.', 'B': 'Repouso.'\n'C': 'Alta.'"
    found = question_and_options(text, "'{ABCDE}': '", "'")
    assert found == {"question": "Qual a conduta?", "options": ["Gota d'água.", "Repouso.", "Alta."]}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Too much vitamin B) or D) does what? A) kills B) heals C) nothing", ["kills", "heals", "nothing"]),
        ("Which? A) gout B) lupus, not A) C) none", ["gout", "lupus, not A)", "none"]),
        ("Which? A) gout B) lupus C) unlike A) and B)", ["gout", "lupus", "unlike A) and B)"]),
        ("Which? A) anaemiaB) B) none", ["anaemiaB)", "none"]),
    ],
)
def test_marks_in_texts_do_no_harm_where_one_reading_is_left(text, options):
    assert question_and_options(text, "{ABCD}) ")["options"] == options


@pytest.mark.parametrize("alef", ["أ", "ا", "إ"])
@pytest.mark.parametrize("ha", ["ه", "هـ"])
def test_arabic_labels_are_found_however_they_are_written(alef, ha):
    text = f"يفرز الأنسولين من: {alef}. الكبد ب. البنكرياس ج. الكظر د. النخامية {ha}. الكلية"
    found = question_and_options(text, "{أبجده}. ")
    assert found == {
        "question": "يفرز الأنسولين من:",
        "options": ["الكبد", "البنكرياس", "الكظر", "النخامية", "الكلية"],
    }


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z"), exclude_characters="()"), min_size=1)
TEXT = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@given(TEXT, st.lists(TEXT, min_size=2, max_size=6), st.sampled_from([" ", "\n", "\r\n  ", "　"]))
def test_any_texts_come_back_as_they_went_in(question, options, gap):
    joined = gap.join(
        [question, *(f"({label}) {text}" for label, text in zip("ABCDEF", options, strict=False))]
    )
    assert question_and_options(joined, "({ABCDEF}) ") == {"question": question, "options": options}


@given(st.text("AB) \nx", max_size=60))
def test_every_text_is_read_in_one_way_or_refused(text):
    """Against all ways to choose the marks, one by one."""
    places = {
        label: [
            at for at in range(len(text))
            if text.startswith(f"{label}) ", at) and (not at or not text[at - 1].isalpha())
        ]
        for label in "AB"
    }  # fmt: skip
    ways = [(a, b) for a in places["A"] for b in places["B"] if a < b]
    whole = [
        (text[:a].strip(), text[a + 3 : b].strip(), text[b + 3 :].strip()) for a, b in ways if len(ways) == 1
    ]
    if whole and all(whole[0]):
        found = question_and_options(text, "{AB}) ")
        assert (found["question"], *found["options"]) == whole[0]
    else:
        with pytest.raises(ValueError, match="option"):
            question_and_options(text, "{AB}) ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Which?", "no option found"),
        ("Which? A) gout", "one option found"),
        ("Which? B) gout C) lupus", "no option found"),
        ("Which? A) gout B) lupus D) none", "option D stands there, option C before it does not"),
        ("Which? A) gout A) gout B) lupus", "the options A to B can be read in several ways"),
        ("Which? A) vitamin C) deficit B) gout", "option C stands there|several ways"),
        ("Which? A) HLA-B) risk B) none", "several ways"),
        ("Which? A) B) lupus", "option A has no text"),
        ("Which? A) gout B) ", "option B has no text"),
        ("A) gout B) lupus", "no question stands before its options"),
    ],
)
def test_a_text_that_does_not_fit_is_refused_by_name(text, problem):
    with pytest.raises(ValueError, match=problem):
        question_and_options(text, "{ABCD}) ")


def test_an_option_without_its_end_is_refused():
    with pytest.raises(ValueError, match="option B does not end with"):
        question_and_options("Q? 'A': 'x' 'B': 'y' and so on", "'{AB}': '", "'")


@pytest.mark.parametrize("mark", ["", "A) ", "{A}) ", "{AA}) ", "{AB}) {CD}) ", "{A B}) "])
def test_a_mark_without_labels_is_refused(mark):
    with pytest.raises(ValueError, match="labels of options in braces"):
        question_and_options("Which? A) gout B) lupus", mark)


@pytest.mark.parametrize("part", ["A) ", "B) A) ", "A) B) C) D) ", "((((", " ", "A"])
def test_readings_of_a_hostile_text_are_counted_and_not_tried(part):
    """Two million characters: a search through their readings would never end."""
    text = "Which? " + part * (2_000_000 // len(part))
    with pytest.raises(ValueError, match="option"):
        question_and_options(text, "{ABCD}) ")


@pytest.fixture
def task(tmp_path, monkeypatch, data_dir):
    """A task of one's own whose rows hold question and options in one column; how its rows are loaded."""
    folder = tmp_path / "mine" / "quiz"
    shutil.copytree(ROOT / "tests/own_tasks/allergie_farmaci", folder)
    text = (folder / "task.yaml").read_text(encoding="utf-8").replace("allergie_farmaci", "quiz")
    head, _, rest = text.partition("\ndataset:")
    said = yaml.safe_load(f"dataset:{rest}")
    apart = "(domanda | question_and_options('{ABCD}) '))"
    said["rows"] = {
        "schemas": [{"columns": ["domanda", "lettera"], "types": {"lettera": ["A", "B", "C", "D"]},
         "fields": {"quesito": f"{apart}.question", "options": f"{apart}.options"}}],
        "identity": "quesito",
    }  # fmt: skip
    said["prompt"] = {
        "instruction": "Rispondi con una lettera. {{ strategy }}",
        "input": "{{ quesito }}\n{{ options | lettered }}",
        "target": "{{ lettera }}",
    }
    said["answer"] = {"kind": "exact_letter", "letters": ["A", "B", "C", "D"]}
    file = folder / "task.yaml"
    file.write_text(f"{head}\n{yaml.safe_dump(said, allow_unicode=True)}", encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    forget()

    def load(*rows: str):
        texts = [{"domanda": text, "lettera": "A"} for text in rows]
        write_jsonl(data_dir / "own/quiz" / "test.jsonl", texts)
        return load_documents(registry().datasets["quiz"], cot=False)["test"]

    yield load
    forget()


def test_a_task_file_alone_takes_options_out_of_a_text(task):
    [document] = task("Quale farmaco? A) furosemide B) amiloride C) enalapril")
    assert "Quale farmaco?\nA. furosemide\nB. amiloride\nC. enalapril" in document["prompt"]
    assert document["options"] == ["furosemide", "amiloride", "enalapril"]


def test_a_row_that_does_not_fit_is_named_without_its_text(task, monkeypatch):
    good = "Quale farmaco? A) furosemide B) amiloride"
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")
    with pytest.raises(MedtasksError) as caught:
        task(good, "Il signor Rossi prende? A) furosemide C) amiloride")
    said = str(caught.value)
    assert "test row 2" in said and "option" in said
    assert "Rossi" not in said and "furosemide" not in said
