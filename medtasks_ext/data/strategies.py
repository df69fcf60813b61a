"""The one line in which the strategies differ, per suite, in the project's own words."""

from __future__ import annotations

_ANSWER_EN = "Reply with nothing but the answer."
_REASON_EN = (
    'First reason step by step. Then write "Result:" at the start of a line and after it '
    "nothing but the answer."
)

#: suite -> (answer at once, reason first). BRIDGE's answer template follows its line.
STRATEGY_LINES: dict[str, tuple[str, str]] = {
    "bridge": (
        "Reply with nothing but the answer, in exactly this format:",
        "Work through the text step by step before you decide, and reply in exactly this format:\n"
        "Analysis:\n...\nResult:",
    ),
    "medhelm": (_ANSWER_EN, _REASON_EN),
    "clinicbench": (_ANSWER_EN, _REASON_EN),
    "mlb": ("请直接作答，不要写出分析过程。", "请先逐步分析，最后单独一行写出答案。"),
}

#: The sentence that BRIDGE's own instructions carry, by which its code recognises a direct prompt.
BRIDGE_DIRECT_SENTENCE = "Return your answer in the following format. DO NOT GIVE ANY EXPLANATION:"


def strategy_line(suite: str, *, cot: bool) -> str:
    """The strategy line of a suite."""
    return STRATEGY_LINES[suite][cot]


def official_to_cot(instruction: str) -> str | None:
    """An official BRIDGE instruction with its strategy sentence swapped for chain-of-thought.

    Returns None where the instruction does not carry the sentence; the official code then keeps
    the direct prompt (BRIDGE, `dataset/process.py`).
    """
    if BRIDGE_DIRECT_SENTENCE not in instruction:
        return None
    return instruction.replace(BRIDGE_DIRECT_SENTENCE, STRATEGY_LINES["bridge"][1])
