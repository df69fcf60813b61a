"""Answer formats: how an answer is written, and how it is read from a text.

A format reads gold answers and model responses alike and depends on nothing but its text,
so the data layer (gold), the filter (responses) and the tests use the same code.
"""

# each module enters its kinds; whoever imports a module of this package has all of them
from medtasks_ext.answers import (  # noqa: F401
    choices,
    event_lines,
    labels,
    lists,
    medcalc,
    medec,
    neutral,
    neutral_lists,
    sql,
    text,
    tuples,
    verified_letter,
)
from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, UnknownValueError, answer_format

__all__ = ["AnswerFormat", "GoldError", "Reading", "UnknownValueError", "answer_format"]
