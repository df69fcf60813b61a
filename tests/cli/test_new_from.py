"""`medtasks new --from` and `new suite`: from a file of rows to a dataset that runs, without Python."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import Dataset, forget, registry
from medtasks_ext.rows import remote
from medtasks_ext.rows.missing import source_of
from tests.conftest import write_jsonl

FLAGS = (
    "--task-type", "text_classification", "--document-types", "general_ehr_note", "--specialties", "general",
    "--stage", "initial_assessment",
)  # fmt: skip
NEW = ("new", "--from", "test.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS)
SECRET = "Patient seen by Dr Unlikely on 31 February"
NOTES = [{"id": i, "note": f"{SECRET}, visit {i}", "outcome": ("refer", "stay")[i % 2]} for i in range(8)]
QUESTIONS = [
    {
        "question": f"¿Cuál es el tratamiento del paciente {i}?",
        "options": ["uno", "dos", "tres"],
        "answer": "ABC"[i % 3],
    }
    for i in range(9)
]
CODED = [
    {"text": f"Der Patient klagt über Schmerzen, Fall {i}", "codes": [["pain"], ["pain", "fever"], []][i % 3]}
    for i in range(9)
]
FREE = [{"letter": f"Le patient a été vu le jour {i}", "summary": f"Résumé numéro {i}"} for i in range(9)]


#: Invented rows in the forms of public datasets.
FRENCH = [
    {
        "id": f"{i:064x}",
        "question": f"Parmi les affirmations suivantes sur le médicament {i}, lesquelles sont exactes ?",
        "answers": {label: f"Affirmation {label} du médicament {i}" for label in "abcde"},
        "correct_answers": [["a"], ["b", "d"], ["c", "d", "e"]][i % 3],
        "subject_name": "pharmacie",
        "nbr_correct_answers": [1, 2, 3][i % 3],
    }
    for i in range(12)
]
JAPANESE = [
    {
        "problem_id": f"999A{i}",
        "problem_text": f"架空の疾患{i}について、正しいのはどれか。二つ選べ。",
        "choices": [f"選択肢{i}の{n}番目" for n in range(5)],
        "text_only": i % 4 != 0,
        "answer": [["a"], ["b", "d"], ["e"]][i % 3],
        "points": "1",
    }
    for i in range(12)
]
ARABIC = [
    {
        "Question": f"أي من العبارات الآتية صحيحة عن الدواء رقم {i}؟\n"
        + "\n".join(f"{label}. العبارة {label} عن الدواء {i}" for label in "أبجد"),
        "Answer": f"{'أبجد'[i % 4]}. العبارة {'أبجد'[i % 4]} عن الدواء {i}",
        "Category": ("Histology", "Oncology")[i // 6],
    }
    for i in range(12)
]
OWN_LETTERS = [
    {
        "question": f"أي دواء يناسب الحالة المخترعة رقم {i} من الحالات الآتية؟",
        **{label: f"الدواء {label} للحالة {i}" for label in "ABCD"},
        "right": "أبجد"[i % 4],
        "subject": "باطنة",
    }
    for i in range(12)
]
COLUMNS = [
    {
        "the question": f"Which treatment fits the invented case number {i}?",
        **{f"option {label}": f"treatment {label} of case {i}" for label in "abcd"},
        "cop": i % 4,
        "exp": f"Treatment {'abcd'[i % 4]} is right.",
    }
    for i in range(12)
]
KEY = [
    {
        # many words and a mark behind them: an ambiguous pattern of letters would try each way to divide them
        "q": f"Which of these vaccines does the invented traveller from the town of {'abcdefghijkl'[i]} need"
        " before the first day of work on a farm with many animals and very little clean water?",
        "options": ["MMR", "Tdap", "IPV"],
        "key": "ABC"[i % 3],
    }
    for i in range(12)
]
THAI = [
    {
        "คำถาม": f"ผู้ป่วยรายที่ {i} มีไข้และปวดท้อง ควรให้ยาใดเป็นลำดับแรก",
        **dict(zip("กขคง", ("พาราเซตามอล", "ไอบูโพรเฟน", "มอร์ฟีน", "แอสไพริน"), strict=True)),
        "เฉลย": "กขคง"[i % 4],
    }
    for i in range(13)
]
PORTUGUESE = [
    {
        "id_caso": f"c{i}",
        "relato": f"Paciente de {20 + i} anos com dor torácica, tosse e febre; saturação {98 - 2 * i}%.",
        "gravidade": ("leve", "moderada", "grave")[i % 3],
    }
    for i in range(13)
]
SWAHILI = [
    {
        "swali": f"Mgonjwa wa miaka {30 + i} ana homa kwa siku {i + 1}. Nifanye nini nyumbani?",
        "jibu": f"Kunywa maji mengi, pumzika, na uende kliniki homa ikiendelea zaidi ya siku {i + 2}.",
    }
    for i in range(13)
]
SEVERAL = [
    {
        "السؤال": f"أي من الآتي من أعراض المرض رقم {i}؟",
        "الخيارات": [f"حمى {i}", "سعال", f"طفح {i}", "يرقان"],
        "الإجابات": [["أ"], ["ب", "د"], ["أ", "ج"]][i % 3],
    }
    for i in range(13)
]
SCALE = [
    {"letter": f"The patient reports pain after visit number {i}.", "label": i % 3 + 1} for i in range(12)
]
DOSES = [{"text": f"Der Patient erhält jeden Tag {i} Tabletten.", "label": i * 12.5} for i in range(12)]


FILES = ("README.md", "data/train.jsonl", "data/test.jsonl")


@pytest.mark.parametrize(
    ("rows", "kind", "language", "labels"),
    [
        (NOTES, "category", "en", ["refer", "stay"]),
        (QUESTIONS, "choice", "es", ["A", "B", "C"]),
        (FRENCH, "choices", "fr", ["a", "b", "c", "d", "e"]),
        (JAPANESE, "choices", "ja", ["a", "b", "c", "d", "e"]),
        (ARABIC, "choice", "ar", ["أ", "ب", "ج", "د"]),
        (OWN_LETTERS, "choice", "ar", ["أ", "ب", "ج", "د"]),
        (COLUMNS, "choice", "en", ["A", "B", "C", "D"]),
        (KEY, "choice", "en", ["A", "B", "C"]),
        (THAI, "choice", "th", ["ก", "ข", "ค", "ง"]),
        (SEVERAL, "choices", "ar", ["أ", "ب", "ج", "د"]),
        (SCALE, "ordinal", "en", ["1", "2", "3"]),
        (DOSES, "number", "de", []),
        (CODED, "labels", "de", ["fever", "pain"]),
        (FREE, "prose", "fr", []),
        (
            [{"note": row["note"], "falls": row["id"] % 2 == 0} for row in NOTES],
            "category",
            "en",
            ["yes", "no"],
        ),
    ],
)
def test_a_file_of_rows_becomes_a_dataset_that_an_oracle_solves(medtasks, own, rows, kind, language, labels):
    write_jsonl(Path("rows.jsonl"), rows)
    made = medtasks(
        "new", "--from", "rows.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS
    )
    assert made.code == 0, made.text
    forget()
    (listed,) = json.loads(medtasks("ls", "--json", "own_mine").out)
    assert (listed["language"], listed["n_test"]) == (language, len(rows))
    text = (own / "mine" / "task.yaml").read_text()
    assert f"kind: {kind}\n" in text and all(label in text for label in labels)
    run = medtasks(
        "run", "--model", "oracle", "--tasks", "own_mine", "--data", "sample", "--output_path", "run"
    )
    assert run.code == 0, run.text
    results = json.loads((own.parent / "run" / "results.json").read_text())["results"]["own_mine"]
    assert results["score,answer"] == 1.0


def test_nothing_that_a_row_says_is_printed_or_written_but_labels(medtasks, own):
    write_jsonl(Path("rows.jsonl"), NOTES)
    made = medtasks(
        "new", "--from", "rows.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS
    )
    written = "".join(file.read_text() for file in own.rglob("*") if file.is_file())
    assert (
        "Unlikely" not in made.text + written
        and "refer (4), stay (4)" in made.text
        and SECRET not in made.text
    )


def proposed_and_placed(medtasks, own, monkeypatch) -> None:
    """A task proposed for rows.jsonl, and these rows where its own data belongs."""
    assert medtasks(
        "new", "--from", "rows.jsonl", "--suite", "own", "--id", "mine", "--access", "private", *FLAGS
    ).code == 0  # fmt: skip
    data = own.parent / "data"
    (data / "own" / "mine").mkdir(parents=True)
    (own.parent / "rows.jsonl").rename(data / "own" / "mine" / "test.jsonl")
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(data))
    forget()


def test_the_rows_themselves_are_then_read_with_the_file_as_it_is(medtasks, own, monkeypatch):
    write_jsonl(Path("rows.jsonl"), NOTES)
    proposed_and_placed(medtasks, own, monkeypatch)
    run = medtasks("run", "--model", "oracle", "--tasks", "own_mine", "--output_path", "run")
    results = json.loads((own.parent / "run" / "results.json").read_text())["results"]["own_mine"]
    assert run.code == 0 and results["score,answer"] == 1.0 and "SAMPLE_DATA,answer" not in results


def test_options_keep_their_labels_where_a_row_has_them_in_another_order(medtasks, own, monkeypatch):
    turned = [{**row, "answers": dict(reversed(row["answers"].items()))} for row in FRENCH[6:]]
    write_jsonl(Path("rows.jsonl"), [*FRENCH[:6], *turned])
    proposed_and_placed(medtasks, own, monkeypatch)
    documents = load_documents(registry().datasets["own_mine"], cot=False, origin="local")["test"]
    assert len(documents) == 7
    for document in documents:
        assert [text.split()[1] for text in document["options"]] == [*"abcde"]


def test_another_column_can_be_the_answer(medtasks, own):
    write_jsonl(Path("rows.jsonl"), [{**row, "ward": ("a1", "b2")[row["id"] // 4]} for row in NOTES])
    made = medtasks(
        "new", "--from", "rows.jsonl", "--answer", "ward", "--suite", "own", "--id", "mine",
        "--access", "private", *FLAGS,
    )  # fmt: skip
    assert made.code == 0 and "gold answers: a1 (4), b2 (4)" in made.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "nowhere.csv"), "no such file"),
        (("--from", "rows.jsonl", "--answer", "colour"), "there is no column 'colour'"),
        (("--from", "one.jsonl"), "a column for the input and one for the gold answer"),
        (("--answer", "outcome"), "add --from FILE"),
    ],
)
def test_what_cannot_be_read_is_said(medtasks, own, arguments, said):
    write_jsonl(Path("rows.jsonl"), NOTES)
    write_jsonl(Path("one.jsonl"), [{"note": "x"}])
    outcome = medtasks("new", *arguments, "--suite", "own", "--id", "mine")
    assert outcome.code == 2 and said in outcome.text and not any(own.iterdir())


def test_a_dataset_of_the_hub_brings_its_revision_licence_and_files(medtasks, own, monkeypatch):
    from huggingface_hub.hf_api import DatasetInfo

    class Hub:
        def dataset_info(self, repo):
            return DatasetInfo(
                id=repo, sha="1" * 40, gated=False, cardData={"license": "mit"},
                siblings=[{"rfilename": name} for name in FILES],
                private=False, downloads=0, likes=0, tags=[],
            )  # fmt: skip

    asked = []

    def file(remote_file):
        asked.append((remote_file.repo, remote_file.revision, remote_file.name))
        write_jsonl(Path("rows.jsonl"), NOTES)
        return own.parent / "rows.jsonl"

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr(remote.RemoteFile, "get", file)
    made = medtasks("new", "--from", "org/notes", "--suite", "own", "--id", "mine", *FLAGS)
    assert made.code == 0, made.text
    text = "".join((own / "mine" / name).read_text() for name in ("task.yaml", "card.yaml"))
    assert json.loads((own / "mine" / "data.lock").read_text()) == {"revision": "1" * 40}
    assert source_of(Dataset(own / "mine")).download.revision == "1" * 40
    assert asked == [("org/notes", "1" * 40, "data/test.jsonl")]
    assert all(
        line in text
        for line in (
            "repo: org/notes", "test: [data/test.jsonl]", "fewshot: [data/train.jsonl]", "licence: mit",
            "access: open", "url: https://huggingface.co/datasets/org/notes",
        )
    )  # fmt: skip


@pytest.mark.parametrize("rows", [FRENCH, JAPANESE, ARABIC], ids=["fr", "ja", "ar"])
def test_the_file_that_was_proposed_for_has_no_fault(medtasks, own, tmp_path, monkeypatch, rows):
    long = [{**row, **{name: cell * 9 for name, cell in row.items() if name == "question"}} for row in rows]
    write_jsonl(Path("test.jsonl"), long)
    assert medtasks(*NEW).code == 0
    write_jsonl(tmp_path / "data" / "own" / "mine" / "test.jsonl", long)
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "data"))
    forget()
    checked = medtasks("data", "check", str(tmp_path / "data"))
    assert checked.code == 0 and "the gold answers themselves score 1.0000" in checked.out, checked.text


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        *((rows, "") for rows in (FRENCH, JAPANESE, ARABIC, OWN_LETTERS, COLUMNS, THAI, SEVERAL)),
        (PORTUGUESE, "ordinal"),
        (SWAHILI, "prose_axes"),
    ],
    ids=["fr", "ja", "ar", "own letters", "en", "th", "several", "pt", "sw"],
)
def test_what_was_left_to_write_is_all_that_is_wrong_and_the_file_itself_can_be_asked(
    medtasks, own, rows, kind
):
    """Filled in, the proposal passes the review; its real rows have the answers that the file has."""
    write_jsonl(Path("test.jsonl"), rows)
    made = medtasks(*NEW, *([f"--kind={kind}"] if kind else []))
    assert made.code == 0 and f"{len(rows) - 5} of {len(rows)} rows can be asked" in made.out, made.text
    assert len((own / "mine" / "task.yaml").read_text("utf-8").splitlines()) <= 50
    folder = own / "mine"
    task = (folder / "task.yaml").read_text("utf-8")
    assert "nbr_correct" not in task and "subject_name" not in task and "points" not in task
    assert "exp:" not in task and "Category" not in task
    for name in ("task.yaml", "card.yaml"):
        text = (folder / name).read_text("utf-8")
        text = re.sub(r"TODO: BibTeX[^'\n]*", "made2026", text)
        text = text.replace("TODO: say in your own words, in the language of the rows, what", "Say what")
        if kind == "ordinal":  # as the comment beside them says
            text = text.replace('["grave", "leve", "moderada"]', '["leve", "moderada", "grave"]')
        (folder / name).write_text(text.replace("TODO: ", ""), "utf-8")
    (folder / "citation.bib").write_text(
        "@misc{made2026, title={Made}, author={Nobody}, year={2026}}\n", "utf-8"
    )
    split = [{"_split": ("fewshot", "test")[place > 4], **row} for place, row in enumerate(rows)]
    write_jsonl(folder / "sample.jsonl", split)
    forget()
    outcome = medtasks("dev", "validate", "own_mine")
    assert outcome.code == 0, outcome.text


@pytest.mark.parametrize(("rows", "asked"), [(FRENCH, True), (COLUMNS, False)], ids=["fr", "en"])
def test_lines_of_the_strategies_are_asked_for_where_they_would_be_english_in_another_language(
    medtasks, own, rows, asked
):
    write_jsonl(Path("test.jsonl"), rows)
    assert medtasks(*NEW).code == 0
    task = (own / "mine" / "task.yaml").read_text("utf-8")
    assert task.count('"TODO: in the language of the rows: rep') == asked
    assert task.count('"TODO: in the language of the rows: reason') == asked


def test_arabic_options_are_found_where_rows_write_their_letters_and_lines_in_several_ways(medtasks, own):
    ways = ("\nأ. {}\nب. {}\nج. {}", " ا. {}\nب. {}\nج. {}", "\n أ. {}\n ب. {}\n ج. {}")
    rows = [
        {
            "Question": f"ما سبب المرض رقم {n}؟" + ways[n % 3].format(*(f"سبب {n}{x}" for x in (1, 2, 3))),
            "Answer": f"{'أبج'[n % 3]}. سبب {n}{n % 3 + 1}",
        }
        for n in range(12)
    ]
    write_jsonl(Path("test.jsonl"), rows)
    made = medtasks(*NEW)
    assert made.code == 0 and "7 of 12 rows can be asked" in made.out, made.text


def test_on_a_terminal_one_prompt_is_shown_and_nothing_is_kept_that_is_not_wanted(medtasks, own, monkeypatch):
    write_jsonl(Path("test.jsonl"), FRENCH)
    write_jsonl(Path("train.jsonl"), FRENCH)
    arguments = (*NEW, "--name", "Mine", "--summary", "a question in, letters out")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    outcome = medtasks(*arguments)
    assert "b. Affirmation b du médicament 0" in outcome.out and "nothing was written" in outcome.out, (
        outcome.text
    )
    assert outcome.code == 1 and not any(own.iterdir())
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    kept = medtasks(*arguments)
    assert kept.code == 0 and "train.jsonl $MEDTASKS_DATA_DIR/own/mine/fewshot.jsonl" in kept.out, kept.text
    assert "held_out" not in (own / "mine" / "task.yaml").read_text("utf-8")


# ---------------------------------------------------------------------- a suite

SUITE = ("new", "suite", "--id", "wards", "--title", "WardBench", "--about", "texts of two wards")


def test_a_suite_and_its_dataset_run_without_python(medtasks, own):
    write_jsonl(Path("rows.jsonl"), NOTES)
    suite = medtasks(
        *SUITE, "--axis", "unit=emergency,clinic", "--dataset", "triage", "--dataset", "bridge/mednli"
    )
    assert suite.code == 0, suite.text
    assert "medtasks new --id wards_triage --axis unit=emergency" in suite.out
    forget()
    made = medtasks(
        "new", "--from", "rows.jsonl", "--id", "wards_triage", "--axis", "unit=clinic", "--access", "private",
        *FLAGS,
    )  # fmt: skip
    assert made.code == 0, made.text
    forget()
    run = medtasks("run", "--model", "oracle", "--tasks", "wards", "--data", "sample", "--output_path", "run")
    assert run.code == 0, run.text
    assert "2/2" in run.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_suite_is_asked_for(medtasks, own, monkeypatch):
    replies = ["mlb_two", "<", "ward", "?", "<", "wards", "WardBench", "", "Two wards", "unit", "?"]
    replies += [
        "unit=emergency,clinic; setting=home,ward",
        "<",
        "unit=emergency,clinic",
        "?",
        "triage, bridge/mednli",
    ]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(replies) + "\n"))
    made = medtasks("new", "--suite")
    assert made.code == 0, made.text
    assert "'mlb_two' is the name of a suite, or begins with one: use another one" in made.err
    assert "this is the first question" in made.err and "this cannot wait" in made.err
    assert "'unit' is no axis with its values: write --axis NAME=VALUE,VALUE" in made.err
    for key in ("title", "axis", "dataset"):
        assert re.search(rf"^  {key}: .* As a flag: --{key} VALUE$", made.err, re.M), made.err
    asked = (own / "wards" / "suite.yaml").read_text()
    (own / "wards" / "suite.yaml").unlink()
    again = medtasks(
        "new", "--suite", "--id", "wards", "--title", "WardBench", "--about", "Two wards",
        "--axis", "unit=emergency,clinic", "--dataset", "triage", "--dataset", "bridge/mednli",
    )  # fmt: skip
    assert again.code == 0 and (own / "wards" / "suite.yaml").read_text() == asked


def test_what_is_missing_of_a_suite_is_said_at_once(medtasks, own):
    outcome = medtasks("new", "suite", "--id", "wards", "--about", "two wards")
    assert outcome.code == 2 and "2 answers are missing" in outcome.err and "--axis" not in outcome.err
    assert "--title: " in outcome.err and "--dataset: " in outcome.err and not any(own.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--id", "bridge_two"), "begins with one"),
        (("--id", "Wards"), "is no name of a suite"),
        (("--axis", "unit"), "is no axis with its values"),
        (("--axis", "language=en"), "is no axis with its values"),
    ],
)
def test_a_suite_that_cannot_be_is_refused(medtasks, own, change, said):
    outcome = medtasks(*SUITE, "--dataset", "triage", *change)
    assert outcome.code == 2 and said in outcome.text and not any(own.iterdir())


def test_a_suite_needs_a_folder_of_ones_own(medtasks, monkeypatch):
    monkeypatch.delenv("MEDTASKS_TASKS", raising=False)
    outcome = medtasks(*SUITE, "--dataset", "triage")
    assert outcome.code == 2 and "export MEDTASKS_TASKS=my_tasks" in outcome.text
