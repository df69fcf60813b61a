"""Answer formats: how an answer is written, and how it is read from a text.

A response has one reading: by the suite's own rule, with its defects, where it has released one (`_read`),
else by the shared reader (`_read_shared`). What cannot be read counts as the suite's rule says.
"""

# each module enters its kinds; whoever imports a module of this package has all of them
from medtasks_ext.answers import (  # noqa: F401
    choices,
    event_lines,
    helm,
    labels,
    lists,
    neutral,
    text,
    tuples,
    verified_letter,
)
from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, UnknownValueError, answer_format

__all__ = ["AnswerFormat", "GoldError", "Reading", "UnknownValueError", "answer_format"]
