"""Answer formats: how an answer is written, and how it is read from a text.

A format reads gold answers and model responses alike and depends on nothing but its text,
so the data layer (gold), the filter (responses) and the tests use the same code.

A response has one reading, with its place (`span`) and the sign by which it was found (`why`). It is the
suite's own rule, with its defects, where the suite has released one; else the shared reader's (`reader`):

- BRIDGE's kinds, free texts, `panel_rating`, `verified_letter`: the suite's own, also under chain of thought;
- `exact_letter`, `medcalc`, `medec`, `codes_in_text`, `sql`, `label_word`, `relation_label`, `label_set`,
  `entity_list`, `drug_list`: the suite's own for zero-shot and shots, shared under chain of thought;
- `option_letter`, `marked_letters`, `tuples`, the kinds of no paper: shared.

What cannot be read counts as the suite's rule says; `valid` is the share that could be read.

HELM decodes one token for MedHELM's letters. Zero-shot, the official answer is therefore the first letter of
the reply, if no letter or digit follows: `D. text` is D, `Despite` is not. After a reasoning trace, and with
`one_token: false`, the whole reply is the answer.

Before its reading, BRIDGE's responses lose everything up to the first `</think>`, under chain of thought up
to the first `result:`, and up to the first `assistantfinal`; they are put in lower case and in ASCII, and an
unclosed trace stays. Medmarks' code has a rule of its own, too. Others lose reasoning in all forms that
`traces.yaml` lists; one that opens and never closes cannot be read.
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
