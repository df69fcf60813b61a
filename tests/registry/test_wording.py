"""Our prompts are ours: as long as the official ones, since they carry the same, and in other words."""

from pathlib import Path

import pytest

import medtasks_ext
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.originals.build import count_words
from tests.registry.official_wording import copied, hashed, official_lengths, official_runs, runs, set_phrases

TASKS = registry()
LENGTHS = official_lengths()
OFFICIAL = official_runs()
PACKAGE = Path(medtasks_ext.__file__).parent
#: Text that people read or models get; titles of papers in `.bib` are no sentences of ours.
SUFFIXES = {".py", ".yaml", ".md", ".j2", ".html", ".js", ".txt", ".csv"}
INVENTED = "Tell whether the kettle in the kitchen has boiled, and name the tea that is in it."


def test_every_dataset_of_bridge_has_an_official_length():
    assert set(LENGTHS) == {
        name
        for name, item in TASKS.datasets.items()
        if item.suite.id == "bridge" and not item.metadata.control_of
    }


@pytest.mark.parametrize("name", sorted(LENGTHS))
def test_a_prompt_of_bridge_is_about_as_long_as_the_official_one(name):
    official, reason = LENGTHS[name]
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


@pytest.mark.parametrize(
    "text",
    [
        f"prompt:\n  instruction: |-\n    {INVENTED}\n",
        INVENTED.replace("in the kitchen", "in the\n    Kitchen"),
        'LINE = (\n    "Tell whether the kettle in the "\n    "kitchen has boiled, and"\n)',
        "# Tell whether the kettle in the\n# kitchen has boiled.",
    ],
    ids=["task file", "broken line", "two constants", "comment"],
)
def test_a_copied_sentence_is_found_in_any_file(text):
    assert copied(text, {hashed(run) for run in runs(INVENTED)})


def test_fewer_than_eight_words_in_common_are_no_copy():
    official = {hashed(run) for run in runs(INVENTED)}
    assert copied("Tell whether the kettle in the kitchen is old.", official) == []
    assert len(list(runs("患者的症状和体征，以及既往史现病史"))) == 3


@pytest.mark.parametrize(("phrase", "why"), set_phrases().items(), ids=list(set_phrases()))
def test_a_set_phrase_is_short_needed_and_explained(phrase, why):
    ours = "\n".join(path.read_text(encoding="utf-8") for path in TASKS.root.rglob("task.yaml"))
    assert len(phrase.split()) <= 10, "a set phrase is no sentence"
    assert any(hashed(run) in OFFICIAL for run in runs(phrase)), "no official text holds it"
    assert phrase in " ".join(ours.split()).lower(), "no prompt needs it"
    assert len(why.split()) >= 5


def test_a_set_phrase_allows_nothing_around_it():
    (phrase, *_) = set_phrases()
    longer = f"kindly say now if one {phrase}"
    found = copied(longer, {hashed(run) for run in runs(longer)})
    assert found
    assert all(run not in phrase for run in found)
