"""Own words state what the suite's own prompt states, item by item, and what they add is said here."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import Dataset, registry

_SAID: dict[str, list[Any]] = yaml.safe_load((Path(__file__).parent / "items.yaml").read_text("utf-8"))
#: Words of a pattern: more would be a sentence.
_MOST = 8


class Item(NamedTuple):
    """One piece of information: a pattern for each prompt, None where it is not there, and why."""

    official: str | None
    ours: str | None
    because: str


def _item(said: Any) -> Item:
    if isinstance(said, str):
        return Item(said, said, "")
    if isinstance(said, list):
        official, ours = said
        return Item(official, ours, "")
    return Item(said.get("official"), said.get("ours"), said["because"])


ITEMS = {key: [_item(item) for item in said] for key, said in _SAID.items() if not key.startswith("_")}


def prompt_of(dataset: Dataset, prompts: str) -> str:
    """What is asked of the first bundled row, zero-shot."""
    document = load_documents(dataset, cot=False, origin="sample", prompts=prompts)["test"][0]
    return f"{document['system']}\n{document['prompt']}"


def lacking(patterns: list[str | None], prompt: str) -> list[str]:
    return [text for text in patterns if text and not re.search(text, prompt, re.IGNORECASE)]


def _words(pattern: str) -> int:
    return max(len(part.split()) for part in re.split(r"\.\*|\\n|\|", pattern))


def dataset(key: str) -> Dataset:
    found = registry().dataset(key)
    assert found is not None, key
    return found


def test_every_dataset_whose_words_are_own_has_items():
    suites = ("medhelm", "clinicbench", "medhelm_live", "medmarks", "open_medical_llm")
    every = {item.key for item in registry().datasets.values() if item.suite.id in suites}
    # no prompt of these is released; what they are asked is said in their cards
    none = {
        "medhelm_live/healthqa_br", "medhelm_live/mmlu_clinical_af", "medmarks/med_halt",
        "open_medical_llm/medmcqa", "open_medical_llm/medqa", "open_medical_llm/pubmedqa",
    }  # fmt: skip
    assert every - none == set(ITEMS)
    assert all(item.official or item.ours for items in ITEMS.values() for item in items)


def test_no_item_is_a_sentence():
    patterns = [text for items in ITEMS.values() for item in items for text in item[:2] if text]
    assert [text for text in patterns if _words(text) > _MOST] == []


@pytest.mark.parametrize("key", ITEMS)
def test_each_item_stands_in_our_prompt(key):
    assert lacking([item.ours for item in ITEMS[key]], prompt_of(dataset(key), "own")) == []


@pytest.mark.parametrize("key", ITEMS)
def test_each_item_stands_in_the_official_prompt(released, key):
    try:
        prompt = prompt_of(dataset(key), "official")
    except MedtasksError as error:
        pytest.skip(error.what[:90])  # not released, or not on this machine: medtasks data fetch official
    assert lacking([item.official for item in ITEMS[key]], prompt) == []
    left_out = [item.official for item in ITEMS[key] if item.ours is None]
    added = [item.ours for item in ITEMS[key] if item.official is None]
    assert lacking(left_out, prompt_of(dataset(key), "own")) == left_out
    assert lacking(added, prompt) == added


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("clinicbench/hospitalization_summarization", "at most 200 words", "a few words"),
        ("medhelm/medec", "reply: CORRECT", "say so"),
        ("medhelm/ent_referral", "C for no mention", "C otherwise"),
        ("medhelm/aci_bench", "3. RESULTS\n", ""),
    ],
)
def test_a_label_or_limit_that_is_taken_out_is_missed(tasks_of, key, old, new):
    file = tasks_of(key) / key / "task.yaml"
    text = file.read_text("utf-8")
    short = re.sub(re.escape(old).replace("\\\n", r"\n\s*"), new, text)
    assert short != text
    file.write_text(short, "utf-8")
    assert lacking([item.ours for item in ITEMS[key]], prompt_of(Dataset(file.parent), "own"))
