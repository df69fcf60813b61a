"""Replies whose answer is known by construction: frames (`frames/*.yaml`) filled with answers to rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import yaml

from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry

FOLDER = Path(__file__).parent / "frames"
LETTER_KINDS = ("marked_letters", "exact_letter", "option_letter")
WORD_KINDS = ("label_word", "relation_label")
#: kinds whose answers are the text itself
TEXT_KINDS = ("text", "free_text", "prose", "passages")
#: rows of each task
ROWS = 4


class Reply(NamedTuple):
    """A filled frame; `expected` is None where no answer is to be read."""

    task: str
    kind: str
    language: str
    document: Any
    text: str
    expected: Any


class Frame(NamedTuple):
    language: str
    frame: str
    text: bool
    unread: bool
    kinds: tuple[str, ...]


@lru_cache(maxsize=8)
def frames(name: str) -> list[Frame]:
    found = []
    for language, items in yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")).items():
        for item in items:
            said = item if isinstance(item, dict) else {"frame": item}
            kinds = tuple(said.get("kinds", ()))
            found.append(
                Frame(language, said["frame"], said.get("text", False), said.get("unread", False), kinds)
            )
    return found


def tasks_of(*kinds: str) -> list[str]:
    return [name for name, item in registry().datasets.items() if item.blocks["answer"]["kind"] in kinds]


def documents_of(name: str) -> list[Any]:
    split = load_documents(registry().datasets[name], cot=True, origin="sample")["test"]
    return [document for document in list(split)[:ROWS] if document["gold"] is not None]


def letters(name: str) -> Iterator[Reply]:
    kind = registry().datasets[name].blocks["answer"]["kind"]
    for document in documents_of(name):
        options = document.get("options")
        if not options:
            continue
        for chosen in _choices(document, kind):
            other = next(place for place in range(len(options)) if place not in chosen)
            single, plain = len(chosen) == 1, options[chosen[0]]
            says_more = (
                len(plain.strip()) > 1
                and [item.strip().lower() for item in options].count(plain.strip().lower()) == 1
            )
            for frame in frames("letters"):
                if frame.text and not (single and says_more):
                    continue
                text = frame.frame.replace("%L", "".join(ascii_uppercase[place] for place in chosen))
                text = (
                    text.replace("%T", plain)
                    .replace("%W", ascii_uppercase[other])
                    .replace("%X", options[other])
                )
                text = text.replace(
                    "%O", "\n".join(f"{ascii_uppercase[i]}. {item}" for i, item in enumerate(options))
                )
                names = (
                    sorted(options[place] for place in chosen)
                    if kind == "marked_letters"
                    else ascii_uppercase[chosen[0]]
                )
                yield Reply(name, kind, frame.language, document, text, None if frame.unread else names)


def _choices(document: Any, kind: str) -> list[list[int]]:
    """The right places, and wrong ones."""
    options = document["options"]
    if kind == "marked_letters":
        right = sorted(options.index(text) for text in document["gold"])
        return [right, [next(place for place in range(len(options)) if place not in right)], [0, 2]]
    right = ascii_uppercase.index(document["gold"])
    return [[right], [(right + 1) % len(options)]]


def words(name: str) -> Iterator[Reply]:
    block = registry().datasets[name].blocks["answer"]
    labels = list(block["labels"])
    for document in documents_of(name)[:1]:
        for place, label in enumerate(labels):
            other = labels[(place + 1) % len(labels)]
            for frame in frames("words"):
                text = frame.frame.replace("%L", label).replace("%W", other)
                yield Reply(
                    name,
                    block["kind"],
                    frame.language,
                    document,
                    text,
                    None if frame.unread else label.lower(),
                )


def texts(name: str, read: Any) -> Iterator[Reply]:
    """`read`: (document, text) -> the repaired answer, which a frame must not change."""
    block = registry().datasets[name].blocks["answer"]
    for document in documents_of(name):
        expected = read(document, document["target"])
        for frame in frames("texts"):
            if not frame.kinds or block["kind"] in frame.kinds:
                text = frame.frame.replace("%A", document["target"])
                yield Reply(name, block["kind"], frame.language, document, text, expected)
