"""Published lengths of texts: one row per dataset, each with its unit and its source."""

import csv

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.rows.overlap import count_words
from tests.rows.published_lengths import LENGTHS_FILE, published_lengths

LENGTHS = published_lengths()


def test_each_row_is_of_a_dataset_and_says_what_it_counts_and_whence():
    with LENGTHS_FILE.open(encoding="utf-8") as file:
        rows = [row["id"] for row in csv.DictReader(file)]
    assert len(rows) == len(set(rows)) and set(rows) <= set(registry().datasets)
    for lengths in LENGTHS.values():
        assert lengths.unit in ("words", "tokens", "prompt_tokens") and lengths.source
        assert lengths.input > 0 and (lengths.output is None or lengths.output > 0)


def test_bridge_and_medhelm_publish_a_length_of_every_dataset_and_only_bridge_one_of_answers():
    for name, dataset in registry().datasets.items():
        suite = dataset.metadata.suite
        if suite in ("bridge", "medhelm") and dataset.of_paper:
            assert name in LENGTHS
        if name in LENGTHS:
            assert (LENGTHS[name].output is not None) is (suite == "bridge")


def test_bridges_inputs_hold_as_many_words_as_its_table_says():
    datasets = registry().datasets
    words = sum(
        lengths.input * datasets[name].metadata.n_test
        for name, lengths in LENGTHS.items()
        if datasets[name].metadata.suite == "bridge"
    )
    assert words == pytest.approx(28.6e6, rel=0.01)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0), ("Denies fever.", 2), ("ICD-10", 2), ("患者发热3天", 6), ("頭痛が続く", 5),
        ("BMI 24,5 кг/м²", 5),
    ],
)  # fmt: skip
def test_words_are_counted_as_bridge_counts_them(text, words):
    assert count_words(text) == words
