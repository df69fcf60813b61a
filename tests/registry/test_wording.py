"""Our prompts are ours: as long as the official ones, since they carry the same, and in other words.

Official texts may not stand in this repository. Two facts about them do: how many words each official
instruction of BRIDGE has (`official_lengths.csv`), and hashes of all runs of eight words, of fourteen
characters in Chinese and Japanese (`official_runs.txt`), of BRIDGE's supplement, MedHELM's wheel and
ClinicBench's Table 8. Terms of art that are as long stand in `set_phrases.csv`, each with a reason.
"""

import base64
import csv
import hashlib
import re
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import pytest

import medtasks_ext
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.originals.build import count_words

HERE = Path(__file__).parent
RUN_WORDS, RUN_CHARACTERS = 8, 14
RUN_LETTERS = 24  # in fewer letters, eight words are the form of an answer: A for yes, B for no
HASH_CHARACTERS = 6  # of base64: 36 bits

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[^\W{_CJK}]+")
_URL = re.compile(r"https?:\S+")
#: Where a run ends: the end of a clause, quotation marks, brackets of lists, a placeholder.
_END = re.compile(r'[.;:!?。；：！？"“”«»《》\[\]{}|]')
_APOSTROPHE = re.compile("['\u2018\u2019]")


def runs(text: str) -> Iterator[str]:
    """All runs of eight words, and of fourteen Chinese or Japanese characters, that no mark interrupts.

    Case, commas, apostrophes and line ends do not count.
    """
    for clause in _END.split(_URL.sub(".", _APOSTROPHE.sub("", text))):
        for piece in re.split(rf"[{_CJK}]", clause):
            words = _WORD.findall(piece.lower())
            for start in range(len(words) - RUN_WORDS + 1):
                run = words[start : start + RUN_WORDS]
                if sum(map(len, run)) >= RUN_LETTERS:
                    yield " ".join(run)
        for piece in re.split(r"[A-Za-z0-9]+", clause):
            characters = "".join(re.findall(f"[{_CJK}]", piece))
            for start in range(len(characters) - RUN_CHARACTERS + 1):
                yield characters[start : start + RUN_CHARACTERS]


def copied(text: str, official: Container[str]) -> list[str]:
    """The runs of a file's text that are official, whether or not lines and string constants interrupt them.

    Args:
        text: of a file of ours, YAML or Python or prose.
        official: hashes of official runs.
    """
    text = re.sub(r"""["']\s*\n\s*[fr]?["']""", "", text)  # a string goes on in the next line
    text = re.sub(r"\n\s*#", " ", text.replace("\\n", " "))  # so does a comment
    return [run for run in runs(text) if hashed(run) in official and run not in _in_set_phrases()]


@cache
def _in_set_phrases() -> frozenset[str]:
    with (HERE / "set_phrases.csv").open(encoding="utf-8") as file:
        return frozenset(run for row in csv.DictReader(file) for run in runs(row["phrase"]))


def hashed(run: str) -> str:
    digest = hashlib.sha256(run.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()[:HASH_CHARACTERS]


TASKS = registry()
PACKAGE = Path(medtasks_ext.__file__).parent
#: Text that people read or models get; titles of papers in `.bib` are no sentences of ours.
SUFFIXES = {".py", ".yaml", ".md", ".j2", ".html", ".js", ".txt", ".csv"}
RUNS = (HERE / "official_runs.txt").read_text(encoding="ascii").replace("\n", "")
OFFICIAL = {RUNS[start : start + HASH_CHARACTERS] for start in range(0, len(RUNS), HASH_CHARACTERS)}
with (HERE / "official_lengths.csv").open(encoding="utf-8") as file:
    LENGTHS = {row["id"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", sorted(LENGTHS))
def test_a_prompt_of_bridge_is_about_as_long_as_the_official_one(name):
    official, reason = int(LENGTHS[name]["words"]), LENGTHS[name]["reason"]
    (ours,) = {
        count_words(document["system"])
        for document in load_documents(TASKS.datasets[name], cot=False, origin="sample")["test"]
    }
    alike = 0.6 <= ours / official <= 1.4
    assert alike or reason, (
        f"{ours} words against {official}: say less or more, or why in official_lengths.csv"
    )
    assert not (alike and reason), "a reason that is not needed"


@pytest.mark.parametrize("folder", [TASKS.root, PACKAGE], ids=["tasks", "medtasks_ext"])
def test_no_sentence_is_an_official_one(folder):
    found = {
        str(path.relative_to(folder)): hits
        for path in sorted(folder.rglob("*"))
        if path.suffix in SUFFIXES and (hits := copied(path.read_text(encoding="utf-8"), OFFICIAL))
    }
    assert found == {}, "say it in other words"
