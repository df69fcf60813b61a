"""What `validate`, and `data check`, find in datasets with a mistake."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from medtasks_ext.registry import forget
from tests.conftest import series

Change = Callable[[Path], None]
Row = dict[str, Any]


class Mistake(NamedTuple):
    dataset: str  # SUITE/DATASET that is copied
    name: str
    make: Change  # changes the folder
    #: what names it first: TASK, ROOT (the folder of tasks) and DATA (that of local rows) are put in
    command: str = "dev validate TASK"
    taken: bool = False  # no harm is done: rows are read as they were meant


def say(old: str, new: str, file: str = "task.yaml") -> Change:
    def change(folder: Path) -> None:
        path = folder / file
        text = path.read_text("utf-8")
        assert old in text, f"{old!r} is not in {path}"
        path.write_text(text.replace(old, new, 1), "utf-8")

    return change


def rows(alter: Callable[[list[Row], list[Row]], object]) -> Change:
    """Change the sample rows: `alter` takes those to ask and those of the pool, as lists of its own."""

    def change(folder: Path) -> None:
        path = folder / "sample.jsonl"
        every = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        test = [row for row in every if row["_split"] == "test"]
        pool = [row for row in every if row["_split"] == "fewshot"]
        alter(test, pool)
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (*pool, *test)), "utf-8"
        )

    return change


def each(column: str, alter: Callable[[Any], Any], n: int = 1_000) -> Change:
    return rows(of_column(column, alter, n))


def again(**other: Any) -> Change:
    """The first row to ask comes again, under another id."""
    return rows(lambda test, pool: test.append({**test[0], "id": "again", **other}))


def saved(
    alter: Callable[[str], str] = str, *, file: str = "task.yaml", encoding: str = "utf-8", ends: str = "\n"
) -> Change:
    def change(folder: Path) -> None:
        text = alter((folder / file).read_text("utf-8"))
        (folder / file).write_bytes(text.replace("\n", ends).encode(encoding))

    return change


def local(
    alter: Callable[[list[Row], list[Row]], object] = lambda test, pool: None,
    *,
    text: Callable[[str], str] = str,
    name: str = "test.csv",
    at: str = "",
    encoding: str = "utf-8",
    ends: str = "\n",
) -> Change:
    """Put rows on the user's disk, as CSV: `alter` changes rows, `text` what is written of those to ask."""

    def change(folder: Path) -> None:
        every = [json.loads(one) for one in (folder / "sample.jsonl").read_text("utf-8").splitlines()]
        parts: dict[str, list[Row]] = {"fewshot": [], "test": []}
        for row in every:
            parts[row.pop("_split")].append(row)
        for row in parts["test"]:
            asked = max(
                (key for key, cell in row.items() if isinstance(cell, str)), key=lambda key: len(row[key])
            )
            row[asked] += f" {CANARY}"
        alter(parts["test"], parts["fewshot"])
        suite, dataset = folder.parts[-2:]
        place = folder.parents[2] / "data" / (at or f"{suite}/{dataset}")
        place.mkdir(parents=True)
        for split, of_split in parts.items():
            written = as_csv(of_split)
            is_test = split == "test"
            content = (text(written) if is_test else written).replace("\n", ends)
            file = place / (name if is_test else "fewshot.csv")
            file.write_bytes(content.encode(encoding if is_test else "utf-8"))

    return change


def as_csv(of_rows: Sequence[Row]) -> str:
    """Rows as a spreadsheet exports them; lists and objects are JSON."""
    names = list(dict.fromkeys(name for row in of_rows for name in row))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in of_rows:
        cells = {key: cell if isinstance(cell, str) else json.dumps(cell) for key, cell in row.items()}
        writer.writerow(cells)
    return out.getvalue()


def of_column(
    column: str, alter: Callable[[Any], Any], n: int = 1_000
) -> Callable[[list[Row], list[Row]], None]:
    def change(test: list[Row], pool: list[Row]) -> None:
        for row in test[:n]:
            row[column] = alter(row[column])

    return change


def moved(new: str, old: str = "") -> Change:
    """The dataset's folder, or a file in it, has another name."""

    def change(folder: Path) -> None:
        path = folder / old
        path.rename(path.with_name(new))

    return change


def unlocked(change: Change) -> Change:
    def changed(folder: Path) -> None:
        change(folder)
        (folder / "data.lock").unlink()

    return changed


def linked(folder: Path) -> None:
    elsewhere = folder.parents[2] / "elsewhere.jsonl"
    (folder / "sample.jsonl").rename(elsewhere)
    (folder / "sample.jsonl").symlink_to(elsewhere)


#: Stands in each row on the user's disk, and in no message.
CANARY = "ZEBRAMANN"
B, M, C = "bridge/", "medhelm/", "clinicbench/"
CHECK = "data check DATA"
SV, KO, ZU, FR = (
    f"commons/{name}" for name in ("pubmedqa_sv", "kormedmcqa", "mmlu_clinical_zu", "frenchmedmcqa")
)


_BUNDLED: list[tuple[str, str, Change]] = [
    # options
    (C + "mmlu_med", "letters one off", say("'ABCD'[answer]", "'ABCD'[answer - 1]")),
    (M + "medbullets", "one option left out", say("[opa, opb, opc, opd, ope]", "[opb, opc, opd, ope]")),
    (M + "medbullets", "an option twice", rows(lambda test, pool: test[0].update(opb=test[0]["opa"]))),
    # rows
    (C + "gad", "a row twice, with another gold", again(labels=["0"])),
    (B + "cantemist_ner", "a shot that holds a test row",
     rows(lambda test, pool: pool[0].update(input=f"{test[0]['input']} Fin del informe."))),
    (B + "mednli", "a gold answer is missing", each("output", lambda _: "", 1)),
    (B + "cares_area", "a gold answer outside its labels",
     each("output", lambda _: "anatomical area: Abdomen", 1)),
    (C + "pubmedqa", "all gold answers alike", each("final_decision", lambda _: "yes")),
    (B + "cares_area", "an id twice", rows(lambda test, pool: test[1].update(id=test[0]["id"]))),
    (B + "cares_area", "language of another dataset", say("language: es", "language: pt")),
    # what is asked
    (M + "medbullets", "a misspelt column", say("{{ question }}", "{{ qestion }}")),
    (C + "gad", "no place for the strategy", say(" {{ strategy }}", "")),
    (M + "medhallu", "left to fill in", say("The reply is a single integer", "TODO: which reply")),
    # how answers are read
    (C + "mmlu_med", "the target is a number", say('Answer: {{ letter }}"', 'Answer: {{ answer }}"')),
    (B + "cares_area", "a label is missing", say("Musculoskeletal, Body]", "Body]")),
    # files
    (C + "mmlu_med", "a key twice", say("prompt:\n", "prompt:\n  cue: x\n  cue: y\n")),
]  # fmt: skip
MISTAKES = [Mistake(*made) for made in _BUNDLED]

#: Rows, files and folders as people have them.
OWN = [
    # rows of one's own, as files hold them
    Mistake(SV, "CSV in cp1252", local(encoding="cp1252"), CHECK),
    Mistake(SV, "CSV with a mark and CR LF", local(encoding="utf-8-sig", ends="\r\n"), CHECK, taken=True),
    Mistake(KO, "gold counted from 0 in place of 1", local(of_column("answer", lambda n: n - 1)), CHECK),
    Mistake(SV, "a list as Python writes it", local(of_column("CONTEXTS", str)), CHECK, taken=True),
    Mistake(FR, "several right options behind semicolons", local(of_column("correct_answers", ";".join)),
     CHECK),
    Mistake(KO, "an option is empty in one row", local(of_column("D", lambda _: "", 1)), CHECK),
    Mistake(ZU, "examples are the rows to ask", local(lambda test, pool: pool.__setitem__(slice(None), test)),
     CHECK),
    # sample rows
    Mistake(SV, "sample rows with a mark", saved(file="sample.jsonl", encoding="utf-8-sig"), taken=True),
    Mistake(SV, "sample rows as one list",
     saved(lambda text: json.dumps([json.loads(x) for x in text.splitlines()]), file="sample.jsonl")),
    Mistake(SV, "a row without a split",
     saved(lambda text: text.replace('"_split": "test", ', "", 1), file="sample.jsonl")),
    # YAML
    Mistake(SV, "a block one blank too deep", say("  input: |-", "   input: |-")),
    Mistake(SV, "an include of no file", saved("include: ../base.yaml\n{}".format)),
    Mistake(B + "norsynthclinical_ner", "language: no, which YAML reads as false",
     say('language: "no"', "language: no")),
    Mistake(SV, "language by its country's code", say("language: sv", "language: se")),
    Mistake(FR, "examples from the file of test rows", say("corpus/dev.json", "corpus/test.json")),
    Mistake(SV, "an unknown licence", say("licence: pubmedqa_sv", "licence: cc-by", "card.yaml")),
    Mistake(SV, "a key of lm-eval's own tasks", say("prompt:\n", 'doc_to_text: "{{ QUESTION }}"\nprompt:\n')),
    Mistake(FR, "a branch in place of a commit",
     unlocked(say("revision: 4e36a4055245feec3218573c9f6bb1a9ecb1756b", "revision: main"))),
    # where things lie, and what is called
    Mistake(SV, "the ending .yml", moved("task.yml", "task.yaml"), "dev validate commons_pubmedqa_sv"),
    Mistake(SV, "a blank in the folder's name", moved("pubmedqa sv"), "dev validate commons_pubmedqa_sv"),
    Mistake(SV, "sample rows behind a symbolic link", linked),
    Mistake(SV, "local rows in a folder of another name", local(at="pubmedqa_sv"), CHECK),
]  # fmt: skip

MISTAKES += OWN


#: What a message names: a file, or a folder of tasks.
PLACES = (
    "task.y", "card.yaml", "citation.bib", "sample.jsonl", ".csv", "pubmedqa sv", "pubmedqa_sv:", "/empty:",
)  # fmt: skip

#: How a message says what to do.
REMEDIES = ("→", "did you mean", "should be", "missing key", "TODO:", "place {{ strategy }}", "are called")


def named(item: Mistake) -> str:
    return f"{item.dataset}: {item.name}"


@pytest.fixture
def made(tasks_of, tmp_path, monkeypatch):
    """Make a mistake; the command that names it first, with the places of this test."""
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT", raising=False)

    def make(item: Mistake, command: str = "") -> list[str]:
        root, data = tmp_path / "tasks", tmp_path / "data"
        for folder in (root, data):
            shutil.rmtree(folder, ignore_errors=True)
        tasks_of(item.dataset)
        item.make(root / item.dataset)
        if data.is_dir():
            monkeypatch.setenv("MEDTASKS_DATA_DIR", str(data))
        forget()
        places = {"TASK": item.dataset.replace("/", "_"), "ROOT": str(root), "DATA": str(data)}
        words = (command or item.command).replace("ROWS", "local" if data.is_dir() else "sample")
        for name, place in places.items():
            words = words.replace(name, place)
        return words.split(" ")

    return make


@pytest.mark.parametrize("item", MISTAKES, ids=named)
def test_a_mistake_is_named(medtasks, made, item):
    outcome = medtasks(*made(item))
    assert "Traceback" not in outcome.text and CANARY not in outcome.text
    assert bool(outcome.code) != item.taken, outcome.text
    if outcome.code:
        assert outcome.code in (1, 2) and any(place in outcome.text for place in PLACES), outcome.text
        assert any(remedy in outcome.text for remedy in REMEDIES), outcome.text


@pytest.mark.parametrize("item", [item for item in MISTAKES if item.taken], ids=lambda item: item.name)
def test_what_does_no_harm_is_read_as_it_was_meant(medtasks, made, item):
    """The documents are those of the rows as they should stand there."""
    plain = item._replace(make=local() if item.command == CHECK else lambda folder: None)
    shown = [medtasks(*made(one, "preview TASK --data ROWS --json")).out for one in (plain, item)]
    assert shown[0] == shown[1] != ""


@pytest.mark.parametrize(
    "command",
    [
        "dev validate TASK",
        "preview TASK --data ROWS",
        "run --model oracle --tasks TASK --data ROWS --output_path out",
    ],
)
@pytest.mark.parametrize("item", series(OWN, named))
def test_no_command_has_a_traceback_for_it(medtasks, made, item, command):
    outcome = medtasks(*made(item, command))
    assert outcome.code in (0, 1, 2) and "Traceback" not in outcome.text, outcome.text
    assert "MEDTASKS_SHOW_TEXT" not in outcome.text  # what the message of a defect ends with
    assert command.startswith("preview") or CANARY not in outcome.text
