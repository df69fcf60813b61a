"""Sixty mistakes of people who add a dataset, each made in a copy of a bundled one.

The list was written before the checks that it tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Change = Callable[[Path], None]
Row = dict[str, Any]


class Mistake(NamedTuple):
    """One mistake."""

    dataset: str  # SUITE/DATASET that is copied
    name: str
    make: Change  # changes the folder


def say(old: str, new: str, file: str = "task.yaml") -> Change:
    """Write other words into a file."""

    def change(folder: Path) -> None:
        path = folder / file
        text = path.read_text("utf-8")
        assert old in text, f"{old!r} is not in {path}"
        path.write_text(text.replace(old, new, 1), "utf-8")

    return change


def rows(alter: Callable[[list[Row], list[Row]], None]) -> Change:
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
    """Change a column in the first n rows to ask."""

    def change(test: list[Row], pool: list[Row]) -> None:
        for row in test[:n]:
            row[column] = alter(row[column])

    return rows(change)


def again(**other: Any) -> Change:
    """The first row to ask comes again, under another id."""
    return rows(lambda test, pool: test.append({**test[0], "id": "again", **other}))


def as_shot(column: str, alter: Callable[[str], str]) -> Change:
    """The first row of the pool shows the first row to ask."""

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


def _misread(text: str) -> str:
    return text.encode().decode("cp1252", "replace")


B, M, C, L = "bridge/", "medhelm/", "clinicbench/", "mlb/"
SCENARIO = "Clinical Scenario: {{ question }}"
SHOWN = "{{ options | lettered }}"

MISTAKES = [
    # the gold answer, or what follows from it, stands in the prompt
    Mistake(M + "medbullets", "letter beside the question", say(SCENARIO, SCENARIO + " ({{ answer_idx }})")),
    Mistake(
        M + "medbullets", "letter in the cue", say('cue: "Answer:"', 'cue: "Answer ({{ answer_idx }}):"')
    ),
    Mistake(C + "mmlu_med", "letter behind the options", say(SHOWN, SHOWN + "\n    ({{ letter }})")),
    Mistake(
        C + "mmlu_med", "number of the option", say("Question: {{ question }}", "{{ answer }} {{ question }}")
    ),
    Mistake(
        M + "pubmedqa",
        "word beside the question",
        say("{{ QUESTION }}\n", "{{ QUESTION }} {{ final_decision }}\n"),
    ),
    Mistake(
        M + "hospice_referral",
        "label in the context",
        say("Context: {{ context }}", "{{ context }} {{ label }}"),
    ),
    Mistake(
        C + "hoc",
        "number of labels",
        say("Document: {{ text }}", "{{ hallmarks | length }} labels: {{ text }}"),
    ),
    Mistake(
        L + "cmexam",
        "number of right options",
        say("题目：{{ Question }}", "题目（{{ answer | length }}）：{{ Question }}"),
    ),
    Mistake(
        L + "maexam",
        "right answer as a hint",
        say("题目：{{ question }}", "题目：{{ question }}{{ options['ABCDE'.index(answer)] }}"),
    ),
    Mistake(
        C + "pubmedqa",
        "marked right answer",
        say("{{ QUESTION }}", "{{ QUESTION }}{{ '!' if final_decision == 'yes' else '' }}"),
    ),
    Mistake(
        M + "aci_bench",
        "reference as a part of the input",
        say("    {{ dialogue }}\n", "    {{ dialogue }}\n    {{ note }}\n"),
    ),
    Mistake(
        M + "race_bias",
        "label column in place of the response",
        say("Response: {{ Response }}", "Response: {{ label }}"),
    ),
    # options
    Mistake(
        M + "medbullets", "options sorted", say("{{ options | lettered }}", "{{ options | sort | lettered }}")
    ),
    Mistake(
        C + "mmlu_med", "options from last to first", say(SHOWN, "{{ options | reverse | list | lettered }}")
    ),
    Mistake(C + "mmlu_med", "options are not shown", say("\n    " + SHOWN, "")),
    Mistake(L + "cmexam", "options are not shown", say("\n    " + SHOWN, "")),
    Mistake(C + "mmlu_med", "letters one off", say("'ABCD'[answer]", "'ABCD'[answer - 1]")),
    Mistake(
        M + "medbullets", "one option left out", say("[opa, opb, opc, opd, ope]", "[opb, opc, opd, ope]")
    ),
    Mistake(
        M + "medbullets",
        "two columns of options swapped",
        say("[opa, opb, opc, opd, ope]", "[opb, opa, opc, opd, ope]"),
    ),
    Mistake(M + "medbullets", "an option twice", rows(lambda test, pool: test[0].update(opb=test[0]["opa"]))),
    Mistake(C + "mmlu_med", "an option is empty", each("choices", lambda given: ["", *given[1:]], 1)),
    Mistake(
        C + "mmlu_med", "three letters for four options", say("letters: [A, B, C, D]", "letters: [A, B, C]")
    ),
    Mistake(C + "mmlu_med", "three options in one row", each("choices", lambda given: given[:3], 1)),
    Mistake(
        M + "medbullets",
        "letters in the options",
        rows(
            lambda test, pool: [
                row.update({f"op{x}": f"{x.upper()}. " + row[f"op{x}"] for x in "abcde"}) for row in test
            ]
        ),
    ),
    # rows
    Mistake(M + "hospice_referral", "a row twice", again()),
    Mistake(C + "mmlu_med", "a row twice, under another id", again()),
    Mistake(C + "gad", "a row twice, with another gold", again(labels=["0"])),
    Mistake(B + "mednli", "a test row as a shot", as_shot("input", str)),
    Mistake(C + "pubmedqa", "a test row as a shot, in capitals", as_shot("QUESTION", str.upper)),
    Mistake(
        M + "medication_qa",
        "a test row as a shot, with blanks",
        as_shot("Question", lambda text: f"  {text}  "),
    ),
    Mistake(
        B + "cantemist_ner",
        "a shot that holds a test row",
        as_shot("input", lambda text: text + " Fin del informe."),
    ),
    Mistake(B + "cares_area", "four examples", few(100, 4)),
    Mistake(M + "medhallu", "five test rows", few(5, 100)),
    Mistake(B + "mednli", "a gold answer is missing", each("output", lambda _: "", 1)),
    Mistake(
        B + "cares_area",
        "a gold answer outside its labels",
        each("output", lambda _: "anatomical area: Abdomen", 1),
    ),
    Mistake(C + "pubmedqa", "all gold answers alike", each("final_decision", lambda _: "yes")),
    Mistake(B + "rumeddanet", "texts read in another encoding", each("input", _misread)),
    Mistake(
        B + "cantemist_ner",
        "entities of another row",
        rows(
            lambda test, pool: [
                row.update(output=other)
                for row, other in zip(test, [r["output"] for r in test[1:] + test[:1]], strict=True)
            ]
        ),
    ),
    Mistake(M + "aci_bench", "dialogue and note swapped", swapped("dialogue", "note")),
    Mistake(M + "medication_qa", "a question is empty", each("Question", lambda _: "", 1)),
    Mistake(B + "cares_area", "an id twice", rows(lambda test, pool: test[1].update(id=test[0]["id"]))),
    Mistake(B + "cares_area", "language of another dataset", say("language: es", "language: pt")),
    Mistake(C + "hoc", "HTML in the texts", each("text", lambda text: text.replace(" ", " &lt;b&gt; "))),
    # what is asked
    Mistake(C + "mmlu_med", "the question is not shown", say("Question: {{ question }}\n    ", "")),
    Mistake(M + "hospice_referral", "the record is cut", say("{{ context }}", "{{ context[:80] }}")),
    Mistake(M + "medbullets", "a misspelt column", say("{{ question }}", "{{ qestion }}")),
    Mistake(C + "gad", "no place for the strategy", say(" {{ strategy }}", "")),
    Mistake(M + "medhallu", "left to fill in", say("The reply is a single integer", "TODO: which reply")),
    Mistake(
        C + "pubmedqa",
        "each row shows the first context",
        say("{{ CONTEXTS | join('\\n') }}", "{{ CONTEXTS[0] }}"),
    ),
    # how answers are read
    Mistake(C + "mmlu_med", "the target is a number", say('Answer: {{ letter }}"', 'Answer: {{ answer }}"')),
    Mistake(
        M + "medbullets", "the target is one letter for all", say('target: "{{ answer_idx }}"', 'target: "A"')
    ),
    Mistake(B + "mednli", "another prefix than in the rows", say("prefix: relation", "prefix: label")),
    Mistake(B + "cares_area", "a label is missing", say("Musculoskeletal, Body]", "Body]")),
    Mistake(
        C + "hoc",
        "an alias for another label",
        say(
            "inducing angiogenesis\n    IM:",
            "resisting cell death\n    inducing angiogenesis: resisting cell death\n    IM:",
        ),
    ),
    Mistake(C + "pubmedqa", "a label twice", say('["yes", "no", maybe]', '["yes", "no", maybe, "Yes"]')),
    # files
    Mistake(M + "medbullets", "a tab in the YAML", say("  identity: question", "\tidentity: question")),
    Mistake(C + "mmlu_med", "a key twice", say("prompt:\n", "prompt:\n  cue: x\n  cue: y\n")),
    Mistake(C + "gad", "an unknown kind", say("kind: relation_label", "kind: relation_lable")),
    Mistake(B + "cares_area", "a number in words", say("n_test: ", "n_test: many ", "card.yaml")),
    Mistake(B + "mednli", "an unknown stage", say("stage: ", "stage: x_", "card.yaml")),
]
