"""Prompts that do not hold their examples: said at the end of a run, in reports, cards and comparisons."""

from pathlib import Path

import pytest

from medtasks_ext.models import Oracle
from tests.run_files import result_of

SHOTS = ("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--num_fewshot", "3", "--output_path")


def tokens(texts, **_):
    return {"input_ids": [list(text) for text in texts]}


@pytest.fixture
def context(monkeypatch, chip_ctc):
    """The context of the model in characters; its answers take 25."""
    monkeypatch.setattr(Oracle, "tokenizer", staticmethod(tokens), raising=False)
    monkeypatch.setattr(Oracle, "tok_encode", lambda self, text: list(text), raising=False)

    def of(n):
        monkeypatch.setattr(Oracle, "max_length", n, raising=False)

    return of


def test_it_is_said_wherever_the_score_stands(medtasks, context):
    context(620)
    fewer = medtasks(*SHOTS, "fewer", "--gen_kwargs", "max_gen_toks=25")
    assert "8 prompts carry fewer shots than asked for, to fit the context" in fewer.text
    record = result_of("fewer", "bridge_chip_ctc")
    assert record["cut"]["shots_dropped"] == 8
    report = " ".join(medtasks("report", "fewer").text.split())
    assert "prompts that carry fewer examples, to fit the context: bridge_chip_ctc" in report
    assert medtasks("card", "fewer", "-o", "card", "--parts").code == 0
    card = "".join(path.read_text() for path in Path("card").rglob("*.md"))
    assert "8 prompts carry fewer examples than asked for, to fit the context." in card


def test_a_score_with_all_its_examples_stands_apart(medtasks, context):
    context(620)
    medtasks(*SHOTS, "fewer", "--gen_kwargs", "max_gen_toks=25")
    context(5000)
    whole = medtasks(*SHOTS, "whole", "--gen_kwargs", "max_gen_toks=25")
    assert "fewer" not in whole.text
    compared = " ".join(medtasks("compare", "fewer", "whole").text.split())
    assert "one model, other wording" in compared and "other examples in the prompt" in compared
    report = " ".join(medtasks("report", "fewer", "whole").text.split())
    assert (
        "entries differ in the examples in the prompt of bridge_chip_ctc_3shot; such entries are not"
        in report
    )
    assert "examples in the prompt: whole | some cut" in report and "Difference(" not in report
