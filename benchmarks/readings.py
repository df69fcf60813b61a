"""How often the tolerant reader misreads, by kind of answer and language: a table of counts.

    python benchmarks/readings.py

Replies are those of `tests/answers`: frames filled with answers to sample rows, whose answer is known by
construction, and hand-written ones, labelled before a reader saw them. Wrong: another answer was read, or
one where there is none. Unread: there is an answer, and none was read.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.answers import frames, test_frames, test_hard

if TYPE_CHECKING:
    from collections.abc import Iterator

NONE = ("none", "ambiguous", None)


def constructed() -> Iterator[tuple[str, str, Any, Any]]:
    """(kind, language, what was read, what it is)."""
    filled = ((frames.letters, frames.LETTER_KINDS), (frames.words, frames.WORD_KINDS))
    for fill, kinds in filled:
        for name in frames.tasks_of(*kinds):
            for reply in fill(name):
                read = test_frames.read(name, reply.document, reply.text)
                yield reply.kind, reply.language, read, reply.expected
    for name in frames.tasks_of(*test_frames.OTHERS):
        for reply in frames.texts(
            name, lambda document, text, name=name: test_frames.read(name, document, text)
        ):
            read = test_frames.read(name, reply.document, reply.text)
            yield reply.kind, reply.language, read, reply.expected


def written() -> Iterator[tuple[str, str, Any, Any]]:
    """(kind, language, what was read, what it is)."""
    for kind, language, block, text, label in test_hard.letters():
        yield kind, language, test_hard.read_letter(block, text), label
    for kind, language, block, text, label in test_hard.others():
        yield kind, language, test_hard.read_other(block, text), label


def table(title: str, replies: Iterator[tuple[str, str, Any, Any]]) -> None:
    """Print counts per kind and language."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for kind, language, read, expected in replies:
        found = counts.setdefault((kind, language), Counter())
        found["replies"] += 1
        if read != expected and not (read in NONE and expected in NONE):
            found["unread" if read in NONE else "wrong"] += 1
    print(f"{title}\n\n| kind | language | replies | wrong | unread |\n| --- | --- | --- | --- | --- |")
    for (kind, language), found in sorted(counts.items()):
        print(f"| {kind} | {language} | {found['replies']} | {found['wrong']} | {found['unread']} |")
    print()


if __name__ == "__main__":
    table("Constructed replies", constructed())
    table("Hand-written replies", written())
    unseen = (
        (kind, language, test_hard.read_letter(block, text), label)
        for kind, language, block, text, label in test_hard.letters("unseen")
    )
    table("Hand-written replies, written last", unseen)
