"""Mistakes of people who add a dataset, each made in a copy of a bundled one.

Those that concern rows on the user's own disk put them beside the folder of tasks, into `data/SUITE/DATASET`.
"""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


def as_shot(column: str, alter: Callable[[str], str]) -> Change:
    def change(test: list[Row], pool: list[Row]) -> None:
        pool[0] = {**test[0], "_split": "fewshot", "id": "shown", column: alter(test[0][column])}

    return rows(change)


def few(n_test: int, n_pool: int) -> Change:
    def change(test: list[Row], pool: list[Row]) -> None:
        del test[n_test:], pool[n_pool:]

    return rows(change)


def swapped(one: str, other: str) -> Change:
    def change(test: list[Row], pool: list[Row]) -> None:
        for row in test:
            row[one], row[other] = row[other], row[one]

    return rows(change)


def line(old: str, *, without: bool = False, file: str = "task.yaml", new: str = "") -> Change:
    """Take the first line that holds a text out of a file, or put another in its place."""

    def change(folder: Path) -> None:
        path = folder / file
        lines = path.read_text("utf-8").split("\n")
        place = next(number for number, text in enumerate(lines) if old in text)
        lines[place : place + 1] = [] if without else [new]
        path.write_text("\n".join(lines), "utf-8")

    return change


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
    separator: str = ",",
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
            written = as_csv(of_split, separator)
            is_test = split == "test"
            content = (text(written) if is_test else written).replace("\n", ends)
            file = place / (name if is_test else "fewshot.csv")
            file.write_bytes(content.encode(encoding if is_test else "utf-8"))

    return change


def as_csv(of_rows: Sequence[Row], separator: str = ",") -> str:
    """Rows as a spreadsheet exports them; lists and objects are JSON."""
    names = list(dict.fromkeys(name for row in of_rows for name in row))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, names, delimiter=separator, lineterminator="\n")
    writer.writeheader()
    for row in of_rows:
        writer.writerow(
            {
                key: cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)
                for key, cell in row.items()
            }
        )
    return out.getvalue()


def of_column(
    column: str, alter: Callable[[Any], Any], n: int = 1_000
) -> Callable[[list[Row], list[Row]], None]:
    def change(test: list[Row], pool: list[Row]) -> None:
        for row in test[:n]:
            row[column] = alter(row[column])

    return change


def unquoted(text: str) -> str:
    """The first record whose cell held a comma, without its quotes."""
    lines = text.split("\n")
    place = next(number for number, one in enumerate(lines) if '"' in one and "[" not in one)
    lines[place] = lines[place].replace('"', "")
    return "\n".join(lines)


def twice(text: str) -> str:
    header, *records = text.strip("\n").split("\n")
    return "\n".join([header, *records[:3], header, *records[3:], ""])


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


def copied(folder: Path) -> None:
    """A second dataset is begun from the first, and its names are left."""
    shutil.copytree(folder, folder.with_name("second"))


#: Stands in each row on the user's disk, and in no message.
CANARY = "ZEBRAMANN"
B, M, C, L = "bridge/", "medhelm/", "clinicbench/", "mlb/"
CHECK = "data check DATA"
SV, KO, ZU, FR, QA = (
    f"commons/{name}"
    for name in ("pubmedqa_sv", "kormedmcqa", "mmlu_clinical_zu", "frenchmedmcqa", "medarabiq_qa")
)
SHOWN = "{{ options | lettered }}"

_BUNDLED: list[tuple[str, str, Change]] = [
    # options
    (L + "cmexam", "options are not shown", say("\n    " + SHOWN, "")),
    (C + "mmlu_med", "letters one off", say("'ABCD'[answer]", "'ABCD'[answer - 1]")),
    (M + "medbullets", "one option left out", say("[opa, opb, opc, opd, ope]", "[opb, opc, opd, ope]")),
    (
        M + "medbullets",
        "two columns of options swapped",
        say("[opa, opb, opc, opd, ope]", "[opb, opa, opc, opd, ope]"),
    ),
    (M + "medbullets", "an option twice", rows(lambda test, pool: test[0].update(opb=test[0]["opa"]))),
    (C + "mmlu_med", "an option is empty", each("choices", lambda given: ["", *given[1:]], 1)),
    (C + "mmlu_med", "three options in one row", each("choices", lambda given: given[:3], 1)),
    (
        M + "medbullets",
        "letters in the options",
        rows(
            lambda test, pool: [
                row.update({f"op{x}": f"{x.upper()}. " + row[f"op{x}"] for x in "abcde"}) for row in test
            ]
        ),
    ),
    # rows
    (C + "gad", "a row twice, with another gold", again(labels=["0"])),
    (B + "mednli", "a test row as a shot", as_shot("input", str)),
    (
        M + "medication_qa",
        "a test row as a shot, with blanks",
        as_shot("Question", lambda text: f"  {text}  "),
    ),
    (
        B + "cantemist_ner",
        "a shot that holds a test row",
        as_shot("input", lambda text: text + " Fin del informe."),
    ),
    (B + "cares_area", "four examples", few(100, 4)),
    (B + "mednli", "a gold answer is missing", each("output", lambda _: "", 1)),
    (
        B + "cares_area",
        "a gold answer outside its labels",
        each("output", lambda _: "anatomical area: Abdomen", 1),
    ),
    (C + "pubmedqa", "all gold answers alike", each("final_decision", lambda _: "yes")),
    (
        B + "cantemist_ner",
        "entities of another row",
        rows(
            lambda test, pool: [
                row.update(output=other)
                for row, other in zip(test, [r["output"] for r in test[1:] + test[:1]], strict=True)
            ]
        ),
    ),
    (M + "medication_qa", "a question is empty", each("Question", lambda _: "", 1)),
    (B + "cares_area", "an id twice", rows(lambda test, pool: test[1].update(id=test[0]["id"]))),
    (B + "cares_area", "language of another dataset", say("language: es", "language: pt")),
    # what is asked
    (M + "medbullets", "a misspelt column", say("{{ question }}", "{{ qestion }}")),
    (C + "gad", "no place for the strategy", say(" {{ strategy }}", "")),
    (M + "medhallu", "left to fill in", say("The reply is a single integer", "TODO: which reply")),
    # how answers are read
    (C + "mmlu_med", "the target is a number", say('Answer: {{ letter }}"', 'Answer: {{ answer }}"')),
    (M + "medbullets", "the target is one letter for all", say('target: "{{ answer_idx }}"', 'target: "A"')),
    (B + "mednli", "another prefix than in the rows", say("prefix: relation", "prefix: label")),
    (B + "cares_area", "a label is missing", say("Musculoskeletal, Body]", "Body]")),
    (
        C + "hoc",
        "an alias for another label",
        say(
            "inducing angiogenesis\n    IM:",
            "resisting cell death\n    inducing angiogenesis: resisting cell death\n    IM:",
        ),
    ),
    # files
    (M + "medbullets", "a tab in the YAML", say("  identity: question", "\tidentity: question")),
    (C + "mmlu_med", "a key twice", say("prompt:\n", "prompt:\n  cue: x\n  cue: y\n")),
    (C + "gad", "an unknown kind", say("kind: relation_label", "kind: relation_lable")),
    (B + "cares_area", "a number in words", say("n_test: ", "n_test: many ", "card.yaml")),
    (B + "mednli", "an unknown stage", say("stage: ", "stage: x_", "card.yaml")),
]
MISTAKES = [Mistake(*made) for made in _BUNDLED]

#: Rows, files and folders as people have them.
OWN = [
    # rows of one's own, as files hold them
    Mistake(SV, "CSV in cp1252", local(encoding="cp1252"), CHECK),
    Mistake(SV, "CSV in UTF-16 without a mark", local(encoding="utf-16-le"), CHECK),
    Mistake(SV, "CSV with a mark and CR LF", local(encoding="utf-8-sig", ends="\r\n"), CHECK, taken=True),
    Mistake("commons/healthfc", "a comma in a cell without quotes", local(text=unquoted), CHECK),
    Mistake(ZU, "a header with semicolons over records with commas",
     local(text=lambda text: text.replace(",", ";", text.split("\n")[0].count(","))), CHECK),
    Mistake(KO, "the header again in the middle", local(text=twice), CHECK),
    Mistake(QA, "the header again in the middle, all columns are texts", local(text=twice), CHECK),
    Mistake(KO, "a number with a word", local(of_column("answer", lambda n: f"{n}번")), CHECK),
    Mistake(KO, "gold counted from 0 in place of 1", local(of_column("answer", lambda n: n - 1)), CHECK),
    Mistake(C + "mmlu_med", "gold counted from 1 in place of 0", local(of_column("answer", lambda n: n + 1)),
     CHECK),
    Mistake(ZU, "gold in small letters", local(of_column("answer", str.lower)), CHECK),
    Mistake(ZU, "gold in full width", local(of_column("answer", lambda a: chr(ord(a) + 0xFEE0))), CHECK),
    Mistake(ZU, "gold with a dot", local(of_column("answer", "{}.".format)), CHECK),
    Mistake(ZU, "gold is the text of the option",
     local(lambda test, pool: [row.update(answer=row[row["answer"]]) for row in test]), CHECK),
    Mistake(SV, "gold is the word null", local(of_column("final_decision", lambda _: "null", 2)), CHECK),
    Mistake(SV, "a list as Python writes it", local(of_column("CONTEXTS", str)), CHECK, taken=True),
    Mistake(FR, "several right options behind semicolons", local(of_column("correct_answers", ";".join)),
     CHECK),
    Mistake(KO, "a date in place of a year", local(of_column("year", "{}-01-01".format)), CHECK),
    Mistake(KO, "an option is empty in one row", local(of_column("D", lambda _: "", 1)), CHECK),
    Mistake(ZU, "examples are the rows to ask", local(lambda test, pool: pool.__setitem__(slice(None), test)),
     CHECK),
    Mistake(KO, "two columns of options in one",
     local(lambda test, pool: [row.update(A=row["A"] + "; " + row.pop("B")) for row in test]), CHECK),
    # sample rows
    Mistake(SV, "sample rows with a mark", saved(file="sample.jsonl", encoding="utf-8-sig"), taken=True),
    Mistake(SV, "sample rows as one list",
     saved(lambda text: json.dumps([json.loads(x) for x in text.splitlines()]), file="sample.jsonl")),
    Mistake(SV, "sample rows as Python writes them",
     saved(lambda text: "\n".join(str(json.loads(x)) for x in text.splitlines()), file="sample.jsonl")),
    Mistake(SV, "another name of a split",
     saved(lambda text: text.replace('"_split": "fewshot"', '"_split": "train"'), file="sample.jsonl")),
    Mistake(SV, "a row without a split",
     saved(lambda text: text.replace('"_split": "test", ', "", 1), file="sample.jsonl")),
    # YAML
    Mistake(SV, "a block one blank too deep", say("  input: |-", "   input: |-")),
    Mistake(SV, "a key twice in the card",
     say("stage: research", "stage: research\nstage: research", "card.yaml")),
    Mistake(SV, "an include of no file", saved("include: ../base.yaml\n{}".format)),
    Mistake(SV, "an alias without its anchor", say("labels: [ja, nej, kanske]", "labels: *labels")),
    Mistake(C + "pubmedqa", "yes and no without quotes", say('["yes", "no", maybe]', "[yes, no, maybe]")),
    Mistake(B + "norsynthclinical_ner", "language: no, which YAML reads as false",
     say('language: "no"', "language: no")),
    Mistake(SV, "language by its country's code", say("language: sv", "language: se")),
    Mistake(KO, "language by its country's code, which is none", say("language: ko", "language: kr")),
    Mistake(SV, "a column of another dataset", say("{{ QUESTION }}", "{{ Frage }}")),
    Mistake(SV, "no target", line("target:", without=True)),
    Mistake(ZU, "labels end before the gold", say("labels: [A, B, C, D]", "labels: [A, B, C]")),
    Mistake(FR, "examples from the file of test rows", say("corpus/dev.json", "corpus/test.json")),
    Mistake(SV, "an unknown metric", say("language: sv", "language: sv\nprimary_metric: accuracy")),
    Mistake(SV, "an unknown licence", say("licence: pubmedqa_sv", "licence: cc-by", "card.yaml")),
    Mistake(SV, "no citation", line("citation:", without=True, file="card.yaml")),
    Mistake(SV, "a brace too few in the citation",
     saved(lambda text: text.rstrip()[:-1], file="citation.bib")),
    Mistake(SV, "the row by lm-eval's name", say("{{ QUESTION }}", "{{ doc.QUESTION }}")),
    Mistake(SV, "curly quotes in a template", say("join('\\n')", "join(”\\n”)")),
    Mistake(SV, "a key of lm-eval's own tasks", say("prompt:\n", 'doc_to_text: "{{ QUESTION }}"\nprompt:\n')),
    Mistake(FR, "a branch in place of a commit",
     unlocked(say("revision: 4e36a4055245feec3218573c9f6bb1a9ecb1756b", "revision: main"))),
    Mistake(SV, "saved in cp1252", saved(encoding="cp1252")),
    # where things lie, and what is called
    Mistake(SV, "the ending .yml", moved("task.yml", "task.yaml"), "dev validate commons_pubmedqa_sv"),
    Mistake(SV, "a blank in the folder's name", moved("pubmedqa sv"), "dev validate commons_pubmedqa_sv"),
    Mistake(SV, "a task with the name of another", copied),
    Mistake(SV, "sample rows behind a symbolic link", linked),
    Mistake(SV, "local rows in a folder of another name", local(at="pubmedqa_sv"), CHECK),
    Mistake(SV, "a row file with a name of its own", local(name="Test rows (final).csv"), CHECK),
]  # fmt: skip

MISTAKES += OWN
