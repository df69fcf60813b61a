"""Replies whose answer is known by construction are read as that answer, or as none where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from medtasks_ext.answers import answer_format
from medtasks_ext.registry import registry
from tests.answers import frames

KINDS = sorted({item.blocks["answer"]["kind"] for item in registry().datasets.values()})
OTHERS = [
    kind for kind in KINDS if kind not in (*frames.LETTER_KINDS, *frames.WORD_KINDS, *frames.TEXT_KINDS)
]


def read(name: str, document: Any, text: str) -> Any:
    form = answer_format(registry().datasets[name].blocks["answer"])
    return json.loads(json.dumps(form.read_repaired(text, document, cot=True)["answer"]))


def misread(replies: Any) -> list[tuple[str, str, Any, Any]]:
    found = []
    for reply in replies:
        answer = read(reply.task, reply.document, reply.text)
        if answer != reply.expected:
            found.append((reply.task, reply.text, answer, reply.expected))
    return found


@pytest.mark.parametrize("name", frames.tasks_of(*frames.LETTER_KINDS))
def test_a_letter_is_read_in_every_frame(name):
    assert misread(frames.letters(name)) == []


@pytest.mark.parametrize("name", frames.tasks_of(*frames.WORD_KINDS))
def test_a_label_is_read_in_every_frame(name):
    assert misread(frames.words(name)) == []


@pytest.mark.parametrize("name", frames.tasks_of(*OTHERS))
def test_what_stands_around_an_answer_changes_nothing(name):
    assert misread(frames.texts(name, lambda document, text: read(name, document, text))) == []
