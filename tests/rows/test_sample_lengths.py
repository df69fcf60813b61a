"""Sample rows are as long as real ones, so that truncation, contexts and plans meet real lengths."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.originals.build import count_words
from tests.rows.published_lengths import published_lengths

TASKS = registry()
#: Words of a long input: some 1,500 characters.
LONG_WORDS = 250
#: Of the published mean: what three rows have at least, and what the longest has.
NEAR_MEAN, LONG_END = 0.7, 1.15
#: Records, notes and dialogues of thousands of tokens, by the mean of the suite's own prompts.
RECORDS = (
    *("medhelm_ehrshot", "medhelm_ent_referral", "medhelm_cdi_qa", "medhelm_medalign"),
    *("medhelm_clinic_referral", "medhelm_hospice_referral", "medhelm_n2c2_ct"),
    *("medhelm_patient_instruct", "medhelm_aci_bench"),
)
LONG = {
    name: lengths.input
    for name, lengths in published_lengths().items()
    if lengths.unit == "words" and lengths.input > LONG_WORDS
}


def inputs(name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    documents = load_documents(Dataset(Path(TASKS.datasets[name].folder)), cot=False)["test"]
    return [document.input for document in documents]


@pytest.mark.parametrize("name", LONG)
def test_three_rows_are_as_long_as_real_ones_and_one_is_longer(name, monkeypatch):
    words = sorted((count_words(text) for text in inputs(name, monkeypatch)), reverse=True)
    assert words[2] >= NEAR_MEAN * LONG[name] and words[0] >= LONG_END * LONG[name], words[:3]


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_as_long_as_real_ones(name, monkeypatch):
    """A tokenizer makes at least one token of each word, number of three digits and mark."""
    pieces = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]|_")
    tokens = sorted((len(pieces.findall(text)) for text in inputs(name, monkeypatch)), reverse=True)
    mean = published_lengths()[name].input
    assert tokens[2] >= NEAR_MEAN * mean and tokens[0] >= LONG_END * mean, tokens[:3]


def test_records_are_what_their_parts_give():
    """The rows in the files are those that the parts give today."""
    tool = Path(__file__).parents[2] / "tools" / "sample_records" / "assemble.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [*sorted(LONG), "medhelm_ent_referral"])
def test_long_texts_are_written_and_not_filled_up(name, monkeypatch):
    """No line of more than twenty words comes twice in a text, and no two texts are alike."""
    texts = inputs(name, monkeypatch)
    assert len(set(texts)) == len(texts)
    for text in texts:
        lines = [line.strip() for line in text.splitlines() if count_words(line) > 20]
        assert len(set(lines)) == len(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0), ("Denies fever.", 2), ("ICD-10", 2), ("患者发热3天", 6), ("頭痛が続く", 5),
        ("BMI 24,5 кг/м²", 5),
    ],
)  # fmt: skip
def test_words_are_counted_as_bridge_counts_them(text, words):
    assert count_words(text) == words
