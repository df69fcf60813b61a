"""Text normalisation as BRIDGE has it, and elements of a text."""

from collections.abc import Iterator

#: full-width forms and marks -> ASCII; the official table has no entry for ！ and ？
_FOLDED = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in "！？"}
_FOLDED |= {"\u3000": " ", "。": ".", "“": '"', "”": '"', "‘": "'", "’": "'"}


def fold(text: str) -> str:
    """Lower-case, full-width forms to ASCII, strip (BRIDGE, `util/preprocess.py`).

    Applied to gold answers and responses alike, before any pattern is tried.
    """
    text = text.lower()
    if not text.isascii():
        for wide in _FOLDED.keys() & set(text):  # one by one: `translate` looks each character up
            text = text.replace(wide, _FOLDED[wide])
    return text.strip()


def answer_part(text: str, *, cot: bool) -> str:
    """Normalise a response and cut what stands before its answer (BRIDGE, `dataset/process.py`).

    Everything up to the first `</think>` goes; an unclosed trace changes nothing. Under
    chain-of-thought everything up to the first `result:` goes, if there is one. Everything up
    to the first `assistantfinal` goes.
    """
    text = _after_first(fold(text), "</think>")
    if cot:
        text = _after_first(text, "result:").strip()
    return _after_first(text, "assistantfinal").strip()


def _after_first(text: str, marker: str) -> str:
    return text.partition(marker)[2] if marker in text else text


def tagged(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where what stands in the tags of a name begins and ends, without blanks around it.

    A tag ends where the next one ends; one that never ends holds nothing.
    """
    opening, closing = f"<{name}>", f"</{name}>"
    begin = text.find(opening)
    while begin >= 0 and (end := text.find(closing, begin := begin + len(opening))) >= 0:
        inside = text[begin:end]
        start = end - len(inside.lstrip())
        yield start, max(start, begin + len(inside.rstrip()))
        begin = text.find(opening, end + len(closing))
