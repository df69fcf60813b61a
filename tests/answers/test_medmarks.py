"""Letters as Medmarks' own code compares them: `medmarks_verdicts.yaml` has what it said of replies."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

LETTERS = "ABCDEFGHIJ"
KIND = "verified_letter"
NAMES = sorted(
    name for name, item in registry().datasets.items() if item.blocks["answer"].get("kind") == KIND
)
#: For each dataset: four verdicts on 500 replies in each hexadecimal digit.
VERDICTS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("medmarks_verdicts.yaml").read_text(encoding="utf-8")
)
WORDS = [
    *"ABCDEJk",
    *(
        "1",
        "12",
        "10",
        "the answer is",
        "Answer:",
        "final answer",
        "not",
        "isn't",
        "isn\u2019t",
        ". ",
        "! ",
        "? ",
    ),
    *(
        "\n",
        "\n\n",
        "(",
        ")",
        "**",
        "`",
        "\\boxed{",
        "}",
        "{",
        "\\text{B}",
        "$C$",
        "%",
        "is incorrect",
        "is wrong",
    ),
    *(
        "not correct",
        "therefore",
        "so",
        "I choose",
        "option",
        "Option C",
        "most likely",
        "<answer>",
        "</answer>",
    ),
    *("<think>", "</think>", "\uff21", "\u2013", "-", "+", "/", "C. difficile", "vitamin D", "blood group A"),
    *("50% of", "x_1", "\\alpha", "\u03b2", "because", "1. ", "> ", "~", "&", "#", "\\", "^{2}", "$", "'"),
]


def replies(name: str, n: int = 500) -> Iterator[tuple[str, dict[str, object]]]:
    """Invented replies to the rows of a dataset, and the rows."""
    rng = random.Random(name)
    documents = load_documents(registry().datasets[name], cot=False, origin="sample")["test"]
    answer = registry().datasets[name].blocks["answer"]
    part, words_before = answer.get("part", "boxed"), answer.get("announced_by")
    for number in range(n):
        row = documents[number % len(documents)]
        words = [rng.choice(WORDS) for _ in range(int(rng.random() * 10))]
        if rng.random() < 0.3:
            words.insert(int(rng.random() * (len(words) + 1)), str(rng.choice(row["options"])))
        text = ("" if rng.random() < 0.3 else " ").join(words)
        if rng.random() < 0.6:
            text = {"boxed": f"x \\boxed{{{text}}}", "tag": f"x <answer>{text}</answer>"}.get(part, text)
        if words_before and rng.random() < 0.6:
            text = f"{text} {words_before} {rng.choice(WORDS)} {rng.choice(WORDS)}"
        yield text, {"options": row["options"], "gold": row["gold"]}


def verdicts(name: str) -> str:
    form = answer_format(registry().datasets[name].blocks["answer"])
    bits = [form.read(text, row, cot=False).answer == row["gold"] for text, row in replies(name)]
    return "".join(
        f"{sum(bit << at for at, bit in enumerate(bits[n : n + 4])):x}" for n in range(0, len(bits), 4)
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_verdict_is_that_of_the_code_of_medmarks(name: str) -> None:
    assert verdicts(name) == VERDICTS[name]
    assert 0 < VERDICTS[name].count("0") < 125  # some replies are right and some are not


OPTIONS = ["Heparin", "Do not resuscitate", "Acute  kidney injury", "Oxygen"]


@pytest.mark.parametrize(
    ("text", "gold", "read"),
    [
        ("B", "B", "B"),
        ("x \\boxed{A} then \\boxed{\\text{C}}", "C", "C"),
        ("b) since it is so", "B", "B"),
        ("The answer is not B", "B", None),
        ("I choose C. D is wrong", "D", "C"),
        ("C is incorrect, D", "C", "D"),
        ("acute kidney\ninjury", "C", "C"),
        ("do not resuscitate", "B", "B"),
        ("not heparin", "A", None),
        ("A or B", "A", "A"),
        ("A or B", "B", "B"),
        ("50% of patients: B", "B", None),
        ("<think>A</think>D", "D", "D"),
        ("", "A", None),
        ("\\boxed{", "A", None),
    ],
)
def test_replies_that_show_the_rules(text: str, gold: str, read: str | None) -> None:
    form = answer_format({"kind": KIND, "letters": list("ABCD")})
    assert form.read(text, {"options": OPTIONS, "gold": gold}, cot=False).answer == read


@pytest.mark.parametrize(
    ("part", "text", "read"),
    [
        ("tag", "B", None),
        ("tag", "<answer> C </answer> <answer>D</answer>", "C"),
        ("all", "\\boxed{C} A", "A"),
        ("first", "The answer is C", "A"),
        ("first", "(d)", "D"),
        ("first", "no idea? why", "D"),
    ],
)
def test_the_part_that_counts(part: str, text: str, read: str | None) -> None:
    form = answer_format({"kind": KIND, "letters": list("ABCD"), "part": part})
    assert form.read(text, {"options": OPTIONS, "gold": "B"}, cot=False).answer == read


def test_a_gold_answer_is_written_as_the_prompt_asks() -> None:
    row = {"options": OPTIONS}
    boxed, tag = (
        answer_format({"kind": KIND, "letters": list("ABCDEF"), "part": part}) for part in ("boxed", "tag")
    )
    assert (
        boxed.read_gold("\\boxed{C}", row)
        == boxed.read_gold("C", row)
        == tag.read_gold("<answer>C</answer>", row)
    )
    with pytest.raises(GoldError, match="not one of the letters A, B, C, D"):
        boxed.read_gold("\\boxed{E}", row)
