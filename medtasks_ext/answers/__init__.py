"""Answer formats: how an answer is written, and how it is read from a text.

A format reads gold answers and model responses alike and depends on nothing but its text,
so the data layer (gold), the filter (responses) and the tests use the same code.

Every response is read twice. The official reading is the suite's own rule, with its defects; the repaired
one is the answer that a careful reader finds. A record holds both, each with its place (`span`) and the sign
by which it was found (`why`). `score` and `valid` belong to the official reading, or to the repaired one
where the suite has released no reader for that way of asking:

- BRIDGE's kinds, free texts, `panel_rating`, `verified_letter` (but its part `first`): official, also under
  chain of thought;
- `exact_letter`, `medcalc`, `medec`, `codes_in_text`, `sql`, `option_letter`, `label_word`,
  `relation_label`, `label_set`, `entity_list`, `drug_list`: official for zero-shot and shots, repaired under
  chain of thought;
- `marked_letters`, `tuples`, the kinds of no paper: repaired.

HELM decodes one token for MedHELM's letters. Zero-shot, the official answer is therefore the first letter of
the reply, if no letter or digit follows: `D. text` is D, `Despite` is not. After a reasoning trace, and with
`one_token: false`, the whole reply is the answer.

Before the official reading, BRIDGE's responses lose everything up to the first `</think>`, under chain of
thought up to the first `result:`, and up to the first `assistantfinal`; they are put in lower case and in
ASCII, and an unclosed trace stays. Others lose everything up to the last `</think>`; of an unclosed trace
the text before it is read; under chain of thought bold marks go, and the text after the last `Result:` (MLB:
`答案：`) is read.
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
