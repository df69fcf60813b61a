"""Questions of a command: answered by flags, or on the terminal one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import typer

from medtasks_ext.cli.words import aligned, say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.new import Question
from medtasks_ext.rows.json_schema import task_schema

#: What is asked next, from the answers so far.
Asks = Callable[[Mapping[str, Any]], Iterable[Question]]
#: What may be typed in place of an answer.
_HELP, _BACK = "?", "<"


def answers_to(asks: Asks, flags: Mapping[str, Any], *, ask: bool, command: str) -> dict[str, Any]:
    """The answers to all questions: of flags, and, if wished, of the terminal to what no flag says.

    Raises:
        MedtasksError: a wrong value, or, where nothing is asked, flags of `command` that are missing.
    """
    if ask:
        return _from_terminal(asks, flags)
    answers, missing = _from_flags(asks, flags)
    if missing:
        n = len(missing)
        raise MedtasksError(
            f"{n} answers are missing" if n > 1 else "an answer is missing",
            where=command,
            remedy="add" + "".join(f"\n      {_flag(item)}" for item in missing)
            + "\n    or call it on a terminal, where it asks",
        )  # fmt: skip
    return answers


def _from_flags(asks: Asks, flags: Mapping[str, Any]) -> tuple[dict[str, Any], list[Question]]:
    """The answers that flags give, and the questions that must be answered and are not."""
    answers: dict[str, Any] = {}
    missing: list[Question] = []
    try:
        for question in asks(answers):
            value = flags.get(question.key)
            if value is not None:
                answers[question.key] = question.read(value)
            elif question.required:
                missing.append(question)
    except KeyError:  # what else is missing depends on an answer that is missing, too
        pass
    return answers, missing


def _from_terminal(asks: Asks, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The answers of flags, and of the terminal to what no flag says. Going back forgets what came after."""
    answers: dict[str, Any] = {}
    asked: list[str] = []
    while question := next((item for item in asks(answers) if item.key not in answers), None):
        value = flags.get(question.key)
        if value is not None:
            answers[question.key] = question.read(value)
            continue
        if not asked:
            say(f"{_HELP} explains a question, {_BACK} goes back to the one before")
        reply = _asked(question)
        if reply != _BACK:
            answers[question.key] = reply
            asked.append(question.key)
        elif asked:
            given = list(answers)
            for key in given[given.index(asked.pop()) :]:
                del answers[key]
        else:
            say("  this is the first question")
    return answers


def _flag(question: Question) -> str:
    values = ", ".join(question.shown) if question.choices else question.text
    return f"{question.flag.rstrip()}: {values}"


def _asked(question: Question) -> Any:
    """Ask until the answer is one, or `_BACK`; a choice may be given by its number."""
    typer.echo()
    values = question.shown
    meanings = question.choices or {}
    choices = [(str(number), value, meanings[value]) for number, value in enumerate(values, start=1)]
    for line in aligned(choices, {0}):
        typer.echo(f"  {line}")
    text = question.text + (" (several between commas)" if question.many else "")
    while True:
        try:
            reply = typer.prompt(
                text if question.required else f"{text} (Enter: later)", default="", show_default=False
            ).strip()
        except typer.Abort:
            raise KeyboardInterrupt from None
        if reply == _BACK:
            return reply
        if reply == _HELP:
            say(f"  {question.key}: {_meaning(question)} As a flag: {question.flag}VALUE")
            continue
        if question.required and not reply:
            say(f"  this cannot wait; {_HELP} explains it")
            continue
        try:
            return question.read(_numbers_as_values(reply, values))
        except MedtasksError as error:
            say(f"  {error.what}" + (f": {error.remedy}" if question.choices is None else ""))


def _meaning(question: Question) -> str:
    """What belongs there, in a sentence."""
    if question.help:
        return question.help
    said = str(task_schema()["$defs"]["About"]["properties"][question.key]["description"])
    return said if said.endswith(".") else f"{said}."


def _numbers_as_values(reply: str, values: list[str]) -> str:
    parts = [part.strip() for part in reply.split(",")] if values else [reply]
    return ",".join(
        values[int(part) - 1] if part.isdecimal() and 1 <= int(part) <= len(values) else part
        for part in parts
    )
