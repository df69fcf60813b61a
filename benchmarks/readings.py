"""How often the tolerant reader misreads, by kind of answer and language, and how fast each kind is read.

    python benchmarks/readings.py [counts|speed]

Replies are those of `tests/answers`: frames filled with answers to sample rows, whose answer is known by
construction, and hand-written ones, labelled before a reader saw them. Wrong: another answer was read, or
one where there is none. Unread: there is an answer, and none was read.

Speed is that of the filter, which gives both readings, in seconds of a processor: typical replies a second,
and the slowest of the hostile texts, 1 MB each (brackets, quotes, marks, line ends, digits, halves of
surrogate pairs, announcements, the answer itself, and random mixtures of them; lines of a right answer, all
equal or all different, alone and with noise between them).
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.answers.replies import SETS, HandWritten

from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.registry import registry
from tests.answers import frames, test_frames, test_hard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    for name in ("letters", "letters_languages"):
        for kind, language, block, text, label in test_hard.letters(name):
            yield kind, language, test_hard.read_letter(block, text), label
    for name in ("others", "languages"):
        for kind, language, block, text, label in test_hard.others(name):
            yield kind, language, test_hard.read_other(block, text), label


def unseen() -> Iterator[tuple[str, str, Any, Any]]:
    """Those that were written when the reader was finished."""
    for name in ("unseen", "unseen_letters"):
        for kind, language, block, text, label in test_hard.letters(name):
            yield kind, language, test_hard.read_letter(block, text), label
    for kind, language, block, text, label in test_hard.others("unseen_others"):
        yield kind, language, test_hard.read_other(block, text), label


def neutral(replies: list[HandWritten]) -> Iterator[tuple[str, str, Any, Any]]:
    """(kind, language, what was read, what it is) of kinds that belong to no paper."""
    for item in replies:
        yield item.kind, item.language, item.read(), item.gold


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


HOSTILE = [
    *"[{(]})\"'`*_#\n 0a答<\\:;,、|/-=$%病\ud800\udfffİſ\x00",
    *(
        "```",
        "**",
        "#\n",
        "\n\n",
        "[{",
        '{"',
        "{'a': ",
        '[{"a":1},',
        '"a',
        "a:",
        "a: b;\n",
        "- a\n",
        "1. a\n",
    ),
    *("Answer: ", "Answer: A ", "答案：", "The answer is ", "Result:", "\\boxed{", "<answer>", "<think>"),
    *("</think>", "SELECT a FROM b; ", "<sql>", "14 weeks, 2 days ", "01/01/2024 ", "= 1 ", "1 to ", "yes "),
    *(
        "yes or ",
        "none\n",
        "I10 ",
        "question: \n",
        "Sentence 1 ",
        "a \n",
        "..",
        "of the ",
        "| a | b |\n",
        "> ",
    ),
    *("// a\n", "A, ", "A\n"),
]
NOISE = [mark * length for mark in "İ{}[]\"'`*" for length in (1, 8, 40)]
SIZE, REPLIES = 1_000_000, 400


def hostile(name: str, document: Any) -> Iterator[str]:
    """Texts of 1 MB that repeat one thing, or mix all of them."""
    block = registry().datasets[name].blocks["answer"]
    fields = [f"{field}:" for field in (*block.get("fields", ()), *filter(None, [block.get("prefix")]))]
    for unit in (*HOSTILE, *fields, document["target"], document["target"] + "\n"):
        yield (unit * (SIZE // max(len(unit), 1) + 1))[:SIZE]
    mixed = random.Random(0)
    yield "".join(mixed.choices([*HOSTILE, *fields], k=SIZE))[:SIZE]
    for lines in (_valid(document["target"], numbered=False), _valid(document["target"], numbered=True)):
        yield "\n".join(lines)[:SIZE]
        yield "\n".join(line for valid in lines for line in (valid, mixed.choice(NOISE)))[:SIZE]


def _valid(target: str, *, numbered: bool) -> list[str]:
    """Lines of a right answer, of 1 MB in all; with a number before their last character all differ."""
    lines = target.split("\n")
    many = itertools.islice(itertools.cycle(lines), SIZE * len(lines) // len(target + "\n") + 1)
    return [f"{line[:-1]} {place}{line[-1:]}" if numbered else line for place, line in enumerate(many)]


def seconds(read: Callable[[], object]) -> float:
    """Of a processor."""
    begin = time.process_time()
    read()
    return time.process_time() - begin


def speed() -> None:
    """Print how fast each kind of answer is read."""
    print("| kind | replies a second | slowest 1 MB, ms | of |\n| --- | --- | --- | --- |")
    names = {item.blocks["answer"]["kind"]: name for name, item in registry().datasets.items()}
    for kind, name in sorted(names.items()):
        [document, *_] = frames.documents_of(name) or [None]
        if document is None:
            continue
        read = ParseAnswer(answer=registry().datasets[name].blocks["answer"])
        replies = [[f"{document['target']}\n\nThis is case {number}."] for number in range(REPLIES)]
        documents = [document] * REPLIES
        rate = REPLIES / min(seconds(lambda: read.apply(replies, documents)) for _ in range(2))  # noqa: B023
        texts = list(hostile(name, document))
        times = [
            min(seconds(lambda: read.apply([[text]], [document])) for _ in range(2))  # noqa: B023
            for text in texts
        ]
        worst = max(times)
        unit = texts[times.index(worst)][:40]
        print(f"| {kind} | {rate:,.0f} | {worst * 1e3:.0f} | {unit!r} |", flush=True)


def counts() -> None:
    """Print how often replies are misread."""
    table("Constructed replies", constructed())
    table("Hand-written replies", written())
    table("Hand-written replies, written last", unseen())
    for name, written_ones in SETS.items():
        table(f"Kinds of no paper, {name}", neutral(written_ones()))


if __name__ == "__main__":
    asked = sys.argv[1:] or ["counts", "speed"]
    for name in asked:
        {"counts": counts, "speed": speed}[name]()
