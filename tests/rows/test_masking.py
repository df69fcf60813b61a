"""Entities replaced by masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.rows.filters import masked

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
