"""The one line in which the strategies differ, in the project's own words or the suite's."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from medtasks_ext.registry import Dataset
from medtasks_ext.registry.suites import Lines
from medtasks_ext.rows.spec import DatasetSpec

#: Answers that are texts of any length: "nothing but the answer" would ask for a short one.
_OPEN = "free_text"

#: Where a suite says nothing else (`strategy_lines` of its `suite.yaml`).
LINES = Lines(
    answer="Reply with nothing but the answer.",
    reason='First reason step by step. Then write "Result:" at the start of a line and after it '
    "nothing but the answer.",
)
#: The sentence of official instructions by which their code recognises a direct prompt (BRIDGE): its
#: length and SHA-256, since its words are not ours.
DIRECT_SENTENCE = (72, "94f52a806e0f65ed89a3881c3d8db70a87e08acd3cc287cda9289ea4b711a491")


def strategy_line(dataset: Dataset, spec: DatasetSpec, *, cot: bool) -> str:
    """The strategy line of a dataset: its own, else its suite's in its language, else in English, else ours.

    Free text that is answered at once has none, unless the dataset says so.

    Args:
        dataset: whose prompt it stands in.
        cot: whether the prompt asks to reason first.
    """
    own = spec.prompt.strategy_lines
    if (line := own.reason if cot else own.answer) is not None:
        return line
    if not cot and spec.answer.get("kind") == _OPEN:
        return ""
    given = dataset.suite.strategy_lines
    lines = given.get(dataset.metadata.language) or given.get("en") or LINES
    return lines.reason if cot else lines.answer


def official_to_cot(instruction: str, line: str) -> str | None:
    """An official instruction with its strategy sentence swapped for chain-of-thought.

    Returns None where the instruction does not carry the sentence; the official code then keeps
    the direct prompt (BRIDGE, `dataset/process.py`).

    Args:
        line: the chain-of-thought line that takes the sentence's place.
    """
    sentence = direct_sentence(instruction)
    return instruction.replace(sentence, line) if sentence else None


@lru_cache(maxsize=256)  # the rows of a file share their instruction
def direct_sentence(instruction: str) -> str | None:
    """The sentence of an official instruction that asks for the answer alone, if it has one."""
    length, digest = DIRECT_SENTENCE
    windows = (instruction[start : start + length] for start in range(len(instruction) - length + 1))
    return next((text for text in windows if hashlib.sha256(text.encode()).hexdigest() == digest), None)
