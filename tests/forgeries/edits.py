"""What a forger does, each by a name that `forgeries.yaml` uses."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medtasks_lab.submissions.record import record_digest
from tests.forgeries.forgery import Forgery


@dataclass(frozen=True)
class Hands:
    """What a forger works on.

    Attributes:
        forgery: his submission, sound so far.
        others: model -> an honest submission.
        chance: his own.
    """

    forgery: Forgery
    others: dict[str, Forgery]
    chance: random.Random


# ---------------------------------------------------------------------- scores and answers


def plant(hands: Hands, task: str, value: float, share: float = 1.0) -> None:
    """Scores that no answer gives; sums, shares and intervals fit."""
    hands.forgery.plant(task, value, share)
    hands.forgery.sum_up()


def gold(hands: Hands, task: str, share: float, around: str = "{}") -> None:
    """Gold answers in place of some, scored as they deserve."""
    golds, forgery = hands.forgery.golds(task), hands.forgery
    forgery.answers[task] = [
        replace(item, answer=around.format(golds[item.document])) if hands.chance.random() < share else item
        for item in forgery.answers[task]
    ]
    forgery.score_again()


def say(hands: Hands, task: str, text: str, n: int) -> None:
    """Another answer to the first documents; the scores stay."""
    items = hands.forgery.answers[task]
    hands.forgery.answers[task] = [replace(item, answer=text) for item in items[:n]] + items[n:]


def reorder(hands: Hands, task: str) -> None:
    """The answers in another order than the documents."""
    hands.forgery.answers[task] = hands.forgery.answers[task][::-1]


def trade(hands: Hands, task: str) -> None:
    """Each answer under the document of the next one."""
    items = hands.forgery.answers[task]
    hands.forgery.answers[task] = [
        replace(item, answer=other.answer) for item, other in zip(items, items[1:] + items[:1], strict=True)
    ]


def change(hands: Hands, task: str, what: str, value: Any, n: int) -> None:
    """Another column of the first answers: a document, the hash of a prompt, whether it was sent."""
    items = hands.forgery.answers[task]
    made = [replace(item, **{what: f"{value}{place}" if what == "document" else value})
            for place, item in enumerate(items[:n])]  # fmt: skip
    hands.forgery.answers[task] = made + items[n:]


def no_answers(hands: Hands, tasks: list[str]) -> None:
    """No answers at all."""
    for task in tasks:
        del hands.forgery.answers[task]
        hands.forgery.content["tasks"][task].pop("answers", None)


def pick(hands: Hands, task: str, share: float) -> None:
    """The documents with the highest scores alone; the record says that these are all."""
    scores = hands.forgery.documents[task].scores.scores
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[: round(share * len(scores))]
    hands.forgery.keep(task, sorted(best))
    hands.forgery.sum_up()


def repeat(hands: Hands, task: str) -> None:
    """The documents with the highest scores, each twice, so that their number fits."""
    scores = hands.forgery.documents[task].scores.scores
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[: len(scores) // 2]
    hands.forgery.keep(task, sorted([*best, *best]))
    hands.forgery.sum_up()


# ---------------------------------------------------------------------- others


def copied(hands: Hands, model: str, tasks: list[str]) -> None:
    """The answers and scores of another submission."""
    other = hands.others[model]
    for task in tasks:
        hands.forgery.answers[task] = other.answers[task]
    hands.forgery.score_again()


def touch_up(hands: Hands, task: str, share: float, end: str) -> None:
    """A small change of some answers, so that no hash of a whole file is the same."""
    items = hands.forgery.answers[task]
    hands.forgery.answers[task] = [
        replace(item, answer=item.answer + end) if hands.chance.random() < share else item for item in items
    ]
    hands.forgery.score_again()


def best_of(hands: Hands, models: list[str], tasks: list[str]) -> None:
    """Of every document the best answer of several runs that nobody has published."""
    for task in tasks:
        columns = []
        for _ in models:
            _answer_anew(hands, task)
            hands.forgery.score_again()
            columns.append((hands.forgery.answers[task], hands.forgery.documents[task].scores.scores))
        n = len(columns[0][0])
        best = [max(range(len(columns)), key=lambda k, i=i: columns[k][1][i]) for i in range(n)]
        hands.forgery.answers[task] = [columns[best[place]][0][place] for place in range(n)]
    hands.forgery.score_again()


def _answer_anew(hands: Hands, task: str) -> None:
    from tests.forgeries.base import answered

    answered(hands.forgery, task, hands.chance, 0.4)


# ---------------------------------------------------------------------- the record and its files


def put(hands: Hands, path: str, value: Any) -> None:
    """Another value in the record."""
    place, key = _place(hands.forgery.content, path)
    place[key] = value


def drop(hands: Hands, path: str) -> None:
    """A value less in the record."""
    place, key = _place(hands.forgery.content, path)
    place.pop(key, None)


def _place(content: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    *above, key = path.split("/")
    for name in above:
        content = content.setdefault(name, {})
    return content, key


def claim(hands: Hands, tasks: list[str], level: str) -> None:
    """A level of trust."""
    for task in tasks:
        hands.forgery.content["tasks"][task]["trust"] = level


def only(hands: Hands, tasks: list[str]) -> None:
    """These tasks alone."""
    content = hands.forgery.content
    content["tasks"] = {name: item for name, item in content["tasks"].items() if name in tasks}
    hands.forgery.sum_up()


def named(hands: Hands, model: str | None = None, date: str | None = None) -> None:
    """Another name or day."""
    hands.forgery.model = model or hands.forgery.model
    hands.forgery.date = date or hands.forgery.date


def file(hands: Hands, name: str, text: str) -> None:
    """A file more in the folder."""
    hands.forgery.after.append(lambda folder, _: _write(folder / name, text))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def answers_file(hands: Hands, how: str) -> None:
    """The file of answers after the record was written: gone, cut, another one, or a page of the web."""

    def spoil(_: Path, place: Path) -> None:
        content = place.read_bytes()
        if how == "gone":
            place.unlink()
        elif how == "cut":
            place.write_bytes(content[: len(content) // 2])
        elif how == "page":
            place.write_bytes(b"<!doctype html><title>Sign in</title>")
        else:
            place.write_bytes(content + b"\0")

    hands.forgery.after.append(spoil)


def confirmed(hands: Hands, by: str, tasks: list[str], **more: Any) -> None:
    """The word of a second site, written by the forger."""

    def write(folder: Path, _: Path) -> None:
        items = hands.forgery.content["tasks"]
        said = {
            "schema": 1, "by": by, "day": "2026-06-02", "record": record_digest(hands.forgery.record),
            "basis": "own run", "tolerance": 0.02,
            "tasks": {name: {"n": items[name]["n"], "score": items[name]["score"],
                             "submitted": items[name]["score"]} for name in tasks},
        }  # fmt: skip
        _write(folder / f"confirmed-{by}.json", json.dumps({**said, **more}))

    hands.forgery.after.append(write)


# ---------------------------------------------------------------------- folders of runs


def run_text(run: Path, file: str, old: str, new: str) -> None:
    """Other words in a file of a run."""
    path = run / file
    text = path.read_text(encoding="utf-8")
    assert old in text, (file, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def run_put(run: Path, file: str, path: str, value: Any) -> None:
    """Another value in a file of a run."""
    content = json.loads((run / file).read_text(encoding="utf-8"))
    place, key = _place(content, path)
    place[key] = value
    (run / file).write_text(json.dumps(content), encoding="utf-8")


def run_drop(run: Path, file: str) -> None:
    """A file of a run less."""
    (run / file).unlink()


def run_lines(run: Path, file: str, keep: int) -> None:
    """The first lines of a file of a run."""
    lines = (run / file).read_bytes().splitlines(keepends=True)
    (run / file).write_bytes(b"".join(lines[:keep]))


def run_swap(run: Path, one: str, other: str) -> None:
    """Two files of a run in each other's place."""
    first = (run / one).read_bytes()
    (run / one).write_bytes((run / other).read_bytes())
    (run / other).write_bytes(first)


EDITS: dict[str, Callable[..., None]] = {
    item.__name__: item
    for item in (
        plant,
        gold,
        say,
        reorder,
        trade,
        change,
        no_answers,
        pick,
        repeat,
        copied,
        touch_up,
        best_of,
        put,
        drop,
        claim,
        only,
        named,
        file,
        answers_file,
        confirmed,
        run_text,
        run_put,
        run_drop,
        run_lines,
        run_swap,
    )
}
