"""What `medtasks human export` hands out, and what it keeps."""

import csv
import json
import re
from collections import Counter

import pytest

from tests.human.conftest import GATED, MODELS, QUEUE, TASK, N, key_of, read, text_of

FILES = [f"expert_{number}.{ending}" for number in (1, 2, 3) for ending in ("csv", "html")]


def shown(folder, expert):
    """(document, text A, text B, run that is A) of each row, with the key's help."""
    key = key_of(folder)["forms"][expert]
    header, *table = read(folder / f"{expert}.csv")
    found = []
    for cells in table:
        row = dict(zip(header, cells, strict=True))
        about = key[row["row"]]["about"]
        found.append((about["document"], row["answer_a"], row["answer_b"], "AB".index(about["first_run_is"])))
    return found


def data_of(page):
    """The form inside a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_every_expert_gets_the_same_documents_in_an_order_and_with_sides_of_their_own(export):
    folder = export()
    forms = {expert: shown(folder, expert) for expert in ("expert_1", "expert_2", "expert_3")}
    for rows in forms.values():
        assert sorted(row[0] for row in rows) == sorted(f"d{i}" for i in range(N))
        assert Counter(row[3] for row in rows) == {0: N / 2, 1: N / 2}  # either run is A half of the time
        for document, a, b, side in rows:
            texts = [text_of(run, int(document[1:])) or "(no answer was given)" for run in (0, 1)]
            assert [a, b] == [
                f"'{text}" if text[0] == "A" else text for text in (texts[side], texts[1 - side])
            ]
    assert len({tuple(row[0] for row in rows) for rows in forms.values()}) == 3
    assert len({tuple(sorted((row[0], row[3]) for row in rows)) for rows in forms.values()}) == 3


def test_forms_name_no_run_model_task_or_document_and_show_no_trace(export):
    folder = export()
    for name in FILES:
        text = (folder / name).read_text(encoding="utf-8-sig")
        for secret in ("llama", "gpt-x", "oracle", "trace of", "<think>", TASK, "first_run"):
            assert secret not in text
        assert not re.search(r"\bd\d+\b", text)
    assert [run["folder"] for run in key_of(folder)["runs"]] == list(MODELS)


def test_the_page_asks_what_the_csv_asks(export):
    folder = export()
    header, *table = read(folder / "expert_2.csv")
    page = data_of((folder / "expert_2.html").read_text(encoding="utf-8"))
    assert [column["header"] for column in page["columns"]] == header[6:]
    assert header[6:] == [
        f"{name} [A|tie|B]" for name in ("factuality", "completeness", "preference", "safety")
    ]
    assert page["digests"] == {cells[1]: cells[2] for cells in table}
    for cells, sheet in zip(table, page["pages"], strict=True):
        assert [item["text"] for item in sheet["above"] + sheet["answer"]] == [
            c.lstrip("'") for c in cells[3:6]
        ]
        assert {prompt["row"] for prompt in sheet["prompts"]} == {cells[1]} and len(sheet["prompts"]) == 4


def test_the_seed_decides_documents_orders_and_sides(export):
    one, again, other = (
        export("-n", 6, "--seed", seed, out=f"forms{number}") for number, seed in enumerate((1, 1, 2))
    )
    rows = [[shown(folder, expert) for expert in ("expert_1", "expert_2")] for folder in (one, again, other)]
    assert rows[0] == rows[1] != rows[2]
    # but not the ids and digests, which belong to one export
    assert {cells[2] for cells in read(one / "expert_1.csv")[1:]}.isdisjoint(
        cells[2] for cells in read(again / "expert_1.csv")[1:]
    )


@pytest.mark.parametrize(("n", "drawn"), [(5, 5), (N, N), (100, N)])
def test_n_documents_of_each_task_are_drawn(export, n, drawn):
    folder = export("-n", n, tasks=f"{TASK},{GATED}", out="both")
    counts = Counter(record["about"]["task"] for record in key_of(folder)["forms"]["expert_1"].values())
    assert counts == {TASK: drawn, GATED: drawn}


def test_a_form_with_text_that_is_not_open_says_so(export, runs, medtasks):
    assert (
        "Handle it as the agreement"
        not in (export() / "expert_1.html").read_text(encoding="utf-8").split('"notices"')[1].split("]")[0]
    )
    done = medtasks("human", "export", *MODELS, "--tasks", GATED, "-o", "gated")
    notices = data_of((runs / "gated" / "expert_1.html").read_text(encoding="utf-8"))["notices"]
    assert (
        len(notices) == 1 and "agreement for the data" in notices[0] and "agreement for the data" in done.err
    )


def test_nothing_outside_the_page_can_be_reached_or_run(export, runs):
    page = (export() / "expert_1.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and set(rules) == {
        "default-src", "style-src", "script-src", "base-uri", "form-action",
    }  # fmt: skip
    assert all(re.fullmatch(r"'sha256-[\w+/=]+'", rules[name]) for name in ("style-src", "script-src"))
    outside = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    assert not re.search(r"https?:|src=|href=|\son\w+=|style=", outside)


def change(runs, run, edit):
    """Edit the records of a run's documents."""
    path = runs / run / f"samples_{TASK}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in edit(lines)))


def with_doc(field, value):
    def edit(lines):
        lines[4]["doc"][field] = value
        return lines

    return edit


@pytest.mark.parametrize(
    ("edit", "difference"),
    [
        (lambda lines: lines[:-2], "2 documents are in runs/llama-med alone (first: d10)"),
        (lambda lines: [*lines, {**lines[0], "doc": {**lines[0]["doc"], "id": "new"}}], "(first: new)"),
        (with_doc("question", "Another question?"), "document d4 has another input"),
        (with_doc("target", "Another reference."), "document d4 has another reference"),
        (with_doc("data", "sample"), "document d4 has another origin of the data"),
    ],
)
def test_runs_on_other_documents_are_refused_with_the_difference(runs, medtasks, edit, difference):
    change(runs, MODELS[1], edit)
    done = medtasks("human", "export", *MODELS, "--tasks", TASK, "-o", "forms")
    assert done.code == 2 and difference in done.err and done.err.count("medtasks:") == 1
    assert not (runs / "forms").exists()


def test_an_instruction_in_front_of_one_models_input_makes_no_other_document(runs, medtasks):
    def without_question(prompt):
        def edit(lines):
            for line in lines:
                text = line["doc"].pop("question")
                line["doc"].update(system="", prompt=prompt.format(text))
            return lines

        return edit

    change(runs, MODELS[0], without_question("{}"))
    change(runs, MODELS[1], without_question("Answer the question.\n\nInput:\n{}"))
    assert medtasks("human", "export", *MODELS, "--tasks", TASK, "-o", "forms").code == 0
    assert {path.stat().st_mode & 0o777 for path in (runs / "forms").iterdir()} == {0o600}  # with the key


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", MODELS[0], "--tasks", TASK, "-o", "x"), "name two runs"),
        (("export", MODELS[0], MODELS[0], "--tasks", TASK, "-o", "x"), "the same folder"),
        (("export", MODELS[0], "nowhere", "--tasks", TASK, "-o", "x"), "no such file"),
        (("export", *MODELS, "-o", "x"), "no tasks given"),
        (("export", *MODELS, "--tasks", "medhelm_qa_cot", "-o", "x"), "not among the finished tasks"),
        (("export", *MODELS, "--tasks", "nonsense", "-o", "x"), "nonsense"),
        (("export", "--kind", "poll", *MODELS, "-o", "x"), "no kind 'poll'"),
        (("export", "--kind", "points", *MODELS, "-o", "x"), "one JSONL file"),
        (("export", "--kind", "points", "nowhere.jsonl", "-o", "x"), "no such file"),
    ],
)
def test_wrong_arguments_get_one_message(runs, medtasks, arguments, message):
    done = medtasks("human", *arguments)
    assert done.code == 2 and message in done.err and not (runs / "x").exists()


def test_answers_that_are_no_texts_are_refused(runs, medtasks):
    def edit(lines):
        lines[0]["filtered_resps"][0]["answer"] = [["fever", "symptom"]]
        return lines

    change(runs, MODELS[0], edit)
    done = medtasks("human", "export", *MODELS, "--tasks", TASK, "-o", "forms")
    assert done.code == 2 and "are not texts" in done.err


def test_an_export_is_never_written_over(export, runs, medtasks):
    before = {path.name: path.read_bytes() for path in export().iterdir()}
    done = medtasks("human", "export", *MODELS, "--tasks", TASK, "-o", "forms")
    assert done.code == 2 and "another folder" in done.err
    assert {path.name: path.read_bytes() for path in (runs / "forms").iterdir()} == before


def test_no_text_becomes_a_formula_a_number_or_an_overflow_in_a_spreadsheet(runs, medtasks):
    awkward = [
        "=1+1",
        "- rest\n- drink",
        "+49 30 1",
        "@SUM(A1)",
        "3/4",
        "x" * 40_000,
        "plain",
        'a "b", c;\td',
    ]

    def edit(lines):
        for line, text in zip(lines, awkward, strict=False):
            line["filtered_resps"][0]["answer"] = text
        return lines

    change(runs, MODELS[0], edit)
    done = medtasks("human", "export", *MODELS, "--tasks", TASK, "-o", "forms", "--experts", 1)
    assert "too long for a cell" in done.err
    cells = [cell for row in read(runs / "forms" / "expert_1.csv")[1:] for cell in row]
    assert all(len(cell) < 32_767 and not cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert {"'=1+1", "'- rest\n- drink", "'+49 30 1", "'@SUM(A1)", "'3/4", "plain", 'a "b", c;\td'} <= set(
        cells
    )
    page = data_of((runs / "forms" / "expert_1.html").read_text(encoding="utf-8"))
    assert set(awkward) <= {item["text"] for sheet in page["pages"] for item in sheet["answer"]}


def test_a_queue_becomes_a_form_in_the_language_of_its_texts(queue, tmp_path, medtasks):
    done = medtasks("human", "export", "--kind", "points", queue, "-o", "forms", "--experts", 2)
    assert done.code == 0, done.text
    header, *table = read(tmp_path / "forms" / "expert_1.csv")
    assert header == ["form", "row", "digest", "question", "answer", "point", "decision [met|not_met]"]
    assert len(table) == sum(len(case["points"]) for case in QUEUE)
    page = data_of((tmp_path / "forms" / "expert_1.html").read_text(encoding="utf-8"))
    assert page["language"] == "zh" and [option["label"] for option in page["options"][0]] == [
        "满足",
        "不满足",
    ]
    asked = {
        sheet["answer"][0]["text"]: [prompt["label"] for prompt in sheet["prompts"]]
        for sheet in page["pages"]
    }
    assert asked == {case["answer"]: [point["text"] for point in case["points"]] for case in QUEUE}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2"),
        ('{"id": "c9", "question": "q", "answer": "a"}', "case.points: missing key"),
        ('{"id": "c9", "question": "q", "answer": "a", "points": []}', "case.points"),
        (json.dumps({**QUEUE[1], "points": [{"id": "p", "text": "t", "weight": -1}]}), "weight"),
        ('{"id": "c9", "question": "q", "answer": "a", "points": [], "score": 1}', "line 2"),
        (json.dumps(QUEUE[0]), "case c0 occurs twice"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path, medtasks, line, message):
    path = tmp_path / "queue.jsonl"
    path.write_text(json.dumps(QUEUE[0]) + "\n" + line + "\n", encoding="utf-8")
    done = medtasks("human", "export", "--kind", "points", path, "-o", "forms")
    assert (
        done.code == 2 and "line 2" in done.err and message in done.err and not (tmp_path / "forms").exists()
    )


def test_the_csv_is_one_that_spreadsheets_read(export):
    raw = (export() / "expert_1.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf") and raw.count(b"\r\n") == N + 1
    rows = list(csv.DictReader(raw.decode("utf-8-sig").splitlines()))
    assert all(
        not re.fullmatch(r"[\d.eE+-]+", row[name]) for row in rows for name in ("form", "row", "digest")
    )
