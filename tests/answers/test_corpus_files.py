"""The corpus of replies keeps its own rules: complete, varied, and each truth is in its reply."""

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parent / "corpus"
LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "ko", "pt", "ru", "zh")
UNREADABLE = "unreadable"
FILES = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("??.yaml"))
}
TAGS = yaml.safe_load((FOLDER / "rules.yaml").read_text(encoding="utf-8"))["tags"]
ENTRIES = [
    {**entry, "language": language, "set": file["sets"][entry["set"]]}
    for language, file in FILES.items()
    for entry in file["replies"]
]
STATED = [entry for entry in ENTRIES if entry["truth"] != UNREADABLE]


def plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def mentioned(entry: dict) -> set[str]:
    """Labels of the set that the reply names, by label or by text."""
    reply, labels = plain(entry["reply"]), entry["set"]["labels"]
    named = set(re.findall(r"[a-zà-ÿа-яё0-9]+|[^\W_]", reply))
    if entry["set"].get("multiple"):  # also written together: "ABD"
        letters = {plain(label) for label in labels}
        named |= {letter for word in named if set(word) <= letters for letter in word}
    texts = entry["set"].get("options", labels)
    return {
        label
        for label, text in zip(labels, texts, strict=True)
        if plain(label) in named or (len(text) > 1 and plain(text) in reply)
    }


def test_every_language_has_its_replies():
    assert sorted(FILES) == sorted(LANGUAGES)
    counts = Counter(entry["language"] for entry in ENTRIES)
    assert min(counts.values()) >= 70
    assert len(ENTRIES) >= 750


def test_ids_and_replies_are_unique():
    assert max(Counter(entry["id"] for entry in ENTRIES).values()) == 1
    assert all(entry["id"].startswith(entry["language"] + "-") for entry in ENTRIES)
    for language, file in FILES.items():
        pairs = Counter((entry["set"], entry["reply"]) for entry in file["replies"])
        assert [pair for pair, count in pairs.items() if count > 1] == [], language


@pytest.mark.parametrize("language", LANGUAGES)
def test_shapes_and_kinds_are_mixed(language):
    entries = [entry for entry in ENTRIES if entry["language"] == language]
    shapes = Counter(entry["set"]["shape"] for entry in entries)
    assert shapes["letters"] >= 0.55 * len(entries)
    assert shapes["values"] >= 0.2 * len(entries)
    assert shapes["items"] >= 0.15 * len(entries)
    assert 0.18 <= sum(entry["truth"] == UNREADABLE for entry in entries) / len(entries) <= 0.27
    tags = Counter(tag for entry in entries for tag in entry["tags"])
    assert tags["rationale_names_others"] >= len(entries) / 3
    assert tags["trace"] >= 0.07 * len(entries)
    assert all(tags[tag] for tag in ("correction", "refusal", "cut", "two_answers", "json", "number", "long"))


def test_every_tag_is_explained():
    assert {tag for entry in ENTRIES for tag in entry["tags"]} == set(TAGS)


def test_sets_are_complete_and_used():
    for language, file in FILES.items():
        assert set(file["sets"]) == {entry["set"] for entry in file["replies"]}, language
        for name, given in file["sets"].items():
            assert given["asked"], (language, name)
            if given["shape"] == "letters":
                assert len(given["labels"]) == len(set(given["labels"])) == len(given["options"]), name
            elif given["shape"] == "values":
                assert ("labels" in given) != ("unit" in given), name
            else:
                assert given["shape"] == "items", name


@pytest.mark.parametrize("entry", STATED, ids=lambda entry: entry["id"])
def test_truth_is_in_the_reply(entry):
    given, truth, reply = entry["set"], entry["truth"], plain(entry["reply"])
    if "labels" in given:
        labels = truth if given.get("multiple") else [truth]
        assert labels and set(labels) <= set(given["labels"])
        assert set(labels) <= mentioned(entry)
    elif "unit" in given:
        assert isinstance(truth, int | float)
        digits = re.sub(r"(?<=\d)[., \u00a0\u202f](?=\d{3}(?!\d))", "", reply).replace(",", ".")
        assert re.search(rf"(?<![\d.]){re.escape(str(truth))}(?![\d]|\.\d)", digits)
    elif "keys" in given:
        assert list(truth) == given["keys"]
        assert all(plain(part) in reply for pair in truth.items() for part in pair)
    else:
        assert isinstance(truth, list)
        assert all(plain(item) in reply for item in truth)


def test_rationales_name_other_labels():
    for entry in ENTRIES:
        if "rationale_names_others" in entry["tags"]:
            truth = entry["truth"] if isinstance(entry["truth"], list) else [entry["truth"]]
            assert mentioned(entry) - set(truth), entry["id"]


def test_open_traces_are_unreadable():
    for entry in ENTRIES:
        if {"trace", "cut"} <= set(entry["tags"]):
            assert entry["truth"] == UNREADABLE, entry["id"]
            assert not re.search(r"</think|</thought|\[/THINK|unused95|<\|end\|>", entry["reply"]), entry[
                "id"
            ]
