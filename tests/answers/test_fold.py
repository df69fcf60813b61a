"""BRIDGE's normalisation and its released readers, against plain statements of their rules."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.normalise import fold

FORMS = {"\u3000": " ", "。": ".", "“": '"', "”": '"', "‘": "'", "’": "'"}
#: letters whose small form depends on their neighbours or has another length, halves of pairs, zero
ODD = st.text(st.sampled_from([*"İiΣσςſKÅßﬀ．，：；！？“’。　aB9 \n\x00", "\ud800", "\udfff", "😀"]))
TEXTS = st.text() | ODD | st.text(st.characters(min_codepoint=0xFF00, max_codepoint=0xFF60))


def by_the_rule(text: str) -> str:
    """Character by character."""
    folded = []
    for character in text.lower():
        full_width = "！" <= character <= "～" and character not in "！？"
        folded.append(chr(ord(character) - 0xFEE0) if full_width else FORMS.get(character, character))
    return "".join(folded).strip()


@given(TEXTS)
def test_folding_is_the_rule_character_by_character(text):
    assert fold(text) == by_the_rule(text)


QUESTIONS = ["genre", "origine", "origine du cas"]
PASSAGES = answer_format(
    {"kind": "passages", "prefix": "Evidence of", "questions": dict.fromkeys(QUESTIONS, "")}
)
PIECES = [
    "Evidence of ",
    "genre",
    "origine",
    "origine du cas",
    " du cas",
    ":",
    ": ",
    ";",
    "x",
    " ",
    "\n",
    "ſ",
]


def passages_line_by_line(text: str) -> list[str]:
    """Each line goes to the first question without an answer whose pattern matches."""
    found: dict[str, str] = {}
    for line in fold(text).split("\n"):
        for question in QUESTIONS:
            for mark in (f"evidence of {question}: ", f"{question}:"):
                if question in found or mark not in line.strip():
                    continue
                rests = [
                    line.strip()[i + len(mark) :]
                    for i in range(len(line))
                    if line.strip()[i:].startswith(mark)
                ]
                value = next((rest.split(";")[0] for rest in rests if rest.split(";")[0]), None)
                if value is not None:
                    found[question] = value.strip()
                    break
            else:
                continue
            break
    return [found.get(question, "") for question in QUESTIONS]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_passages_go_line_by_line_to_the_first_question_without_one(text):
    assert PASSAGES.read(text, {}, cot=False).answer == passages_line_by_line(text)


LISTS = answer_format(
    {"kind": "label_list", "prefix": "Codes", "labels": ["I", "II", "VII", "a b", "x", "X"]}
)


@given(
    st.lists(st.sampled_from(["i", "ii", "v", "a b", "a", " ", ",", '"', "x", "Codes: ", "\n"])).map("".join)
)
def test_a_piece_counts_as_the_longest_label_in_it(text):
    reading = LISTS.read(text, {}, cot=False)
    line = fold(text)
    if "codes:" in line:
        line = line.partition("codes: ")[2].split("\n")[0]
        assume(line)  # else the other patterns are tried: those of the cases
    else:
        assume(not line or ("\n" not in line and line[0].isalnum()))
    pieces = [piece.strip().replace('"', "") for piece in line.split(",")]
    longest_first = ["vii", "a b", "ii", "i", "x"]
    named = {label for piece in pieces if (label := next((x for x in longest_first if x in piece), None))}
    assert reading.answer == (sorted(named) or None)


@given(TEXTS, st.sampled_from(["", "答", "Σ"]))
def test_what_stands_beside_a_letter_changes_no_other_one(text, beside):
    """Texts in ASCII alone, those with a letter that depends on its neighbours, and others go other ways."""
    assert fold(text + beside) == by_the_rule(text + beside)


def test_every_character_is_folded_by_the_rule():
    everything = "".join(map(chr, range(0x110000)))
    assert fold(everything) == by_the_rule(everything)
    without = everything.replace("Σ", "")
    assert fold(without) == by_the_rule(without)
