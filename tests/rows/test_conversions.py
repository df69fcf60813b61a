"""What filters make of the forms in which makers write options, right answers and entities; masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.rows.expressions import Expression
from medtasks_ext.rows.filters import masked
from medtasks_ext.rows.originals.readers import annotated_rows

SENTENCE = "Calcium lowers nonheme and heme iron."


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        (["0-6", "27-35"], "@DRUG$ lowers nonheme and @DRUG$."),
        (["27-35", "0-6"], "@DRUG$ lowers nonheme and @DRUG$."),
        (["0-6", "15-21;32-35"], "@DRUG$ lowers @DRUG$."),  # in two pieces
        (["15-21;32-35", "27-35"], "Calcium lowers @DRUG-DRUG$."),  # overlapping
        ([], SENTENCE),
    ],
)
def test_both_drugs_are_masked(offsets, text):
    assert masked(SENTENCE, offsets, "DRUG") == text


@pytest.mark.parametrize("offset", ["0", "a-b", "5-3", "30-60", "1-2-3"])
def test_an_offset_that_names_no_part_of_the_text_is_refused(offset):
    with pytest.raises(ValueError, match=r"offset|outside|literal"):
        masked(SENTENCE, [offset], "DRUG")


@given(st.lists(st.text("ab ", min_size=1, max_size=5), min_size=5, max_size=5))
def test_what_stands_around_two_entities_is_kept(parts):
    before, one, between, other, after = parts
    text = "".join(parts)
    first, second = len(before), len(before + one + between)
    offsets = [f"{first}-{first + len(one) - 1}", f"{second}-{second + len(other) - 1}"]
    assert masked(text, offsets, "X") == f"{before}@X${between}@X${after}"


#: Cells of a row, an expression over them -> what it gives, or words of the message.
FORMS = [
    ({"o": {"a": "gout", "b": "lupus"}}, "o | split_options", ["gout", "lupus"]),
    ({"o": "A) gout; rare\nB) lupus"}, "o | split_options", ["gout; rare", "lupus"]),
    ({"o": "A) gout B) lupus C) flu"}, "o | split_options", ["gout", "lupus", "flu"]),
    ({"o": "(A) gout (B) lupus"}, "o | split_options", ["gout", "lupus"]),
    ({"o": [{"id": 1, "text": "gout"}, {"id": 2, "text": "flu"}]}, "o | picked('text')", ["gout", "flu"]),
    ({"o": {"x": [{"y": "gout"}]}}, "o | picked('x.y')", ["gout"]),
    ({"o": {"x": 1}}, "o | picked('y')", "has no y"),
    ({"a": "b"}, "a | option_letters(['gout', 'lupus'])", "B"),
    ({"a": "lupus"}, "a | option_letters(['gout', 'lupus'])", "B"),
    ({"a": ["c", "a"]}, "a | option_letters(['gout', 'lupus', 'flu'])", "AC"),
    ({"a": "A, C"}, "a | option_letters(['gout', 'lupus', 'flu'])", "AC"),
    ({"a": "AB"}, "a | option_letters(['A', 'B', 'AB', '0'])", "C"),
    ({"a": 0}, "a | option_letters(['gout', 'lupus'], 0)", "A"),
    ({"a": "2"}, "a | option_letters(['gout', 'lupus'], 1)", "B"),
    ({"a": 2}, "a | option_letters(['gout', 'lupus'], 0)", "names no option of 2"),
    ({"a": 1}, "a | option_letters(['gout', 'lupus'])", "--count-from says from which number"),
    ({"a": "A"}, "a | option_letters(['B', 'A'])", "is the letter of one option and the text of another"),
    ({"t": ["one", "", ["two", 3]]}, "t | as_text", "one\n\ntwo\n\n3"),
    ({"t": {"x": 1}}, "t | as_text", "stands where text belongs"),
    ({"e": ["gout"]}, "e | as_entities", [("gout", "")]),
    ({"e": [[0, 4, "D"], [9, 12]]}, "e | as_entities('gout and flu')", [("gout", "D"), ("flu", "")]),
    ({"e": [{"begin": 0, "end": 4, "label": "D"}]}, "e | as_entities('gout')", [("gout", "D")]),
    ({"e": [{"offsets": [[0, 4], [9, 12]], "text": ["gout", "flu"], "type": "D"}]}, "e | as_entities",
     [("gout flu", "D")]),
    ({"e": [{"offsets": [[0, 4], [9, 12]]}]}, "e | as_entities('gout and flu')", [("gout flu", "")]),
    ({"e": [{"entity_text": "gout", "entity_type": "D"}]}, "e | as_entities", [("gout", "D")]),
    ({"e": [[0, 40]]}, "e | as_entities('gout')", "neither a text nor offsets within the 4 characters"),
    ({"e": "gout"}, "e | as_entities", "is no list of entities"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "expression", "made"), FORMS, ids=range(len(FORMS)))
def test_a_form_is_read_or_named(row, expression, made):
    if isinstance(made, str) and " " in made.strip("\n") and "\n" not in made:
        with pytest.raises(ValueError, match=made):
            Expression(expression, "task.yaml").value(row)
        return
    found = Expression(expression, "task.yaml").value(row)
    if "as_entities" in expression:
        found = [(item["entity"], item["type"]) for item in found]
    assert found == made


def test_annotated_texts_are_told_by_their_lines_and_no_others():
    tagged = "# id\nHigh\tO\nfever\tB-D\nnow\tO\n\nNo\tO\ncough\tB-D\nat\tI-D\n"
    rows = annotated_rows(tagged)
    assert [row["text"] for row in rows] == ["High fever now", "No cough at"]
    assert [[(x["text"], x["type"]) for x in row["entities"]] for row in rows] == [
        [("fever", "D")], [("cough at", "D")],
    ]  # fmt: skip
    pubtator = "7|t|Gout now.\n7|a|No flu.\n7\t0\t4\tGout\tDisease\tD1\n7\tCID\tD1\tD2\n"
    (row,) = annotated_rows(pubtator)
    assert (row["id"], row["text"]) == ("7", "Gout now.\nNo flu.")
    assert row["entities"] == [{"start": 0, "end": 4, "text": "Gout", "type": "Disease"}]
    for other in ("question\tanswer\nWhy?\tO\n", '{"a": "O"}\n', "", "one two\n"):
        assert annotated_rows(other) == []
