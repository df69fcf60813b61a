"""What an extraction found, missed and made up; near misses; marks in the text."""

import pytest

from medtasks_ext.results.error_clusters import Items, items_of, marked, near_misses


def test_items_of_an_answer_are_found_missed_or_spurious():
    gold = [["ibuprofen", "nausea"], ["aspirin", "bleeding"]]
    items = items_of("event_lines", gold, [["aspirin", "bleeding"], ["aspirin", "rash"]])
    assert items == Items(
        found=(("aspirin", "bleeding"),), missed=(("ibuprofen", "nausea"),), spurious=(("aspirin", "rash"),)
    )
    assert items_of("event_lines", gold, None).missed == (("ibuprofen", "nausea"), ("aspirin", "bleeding"))
    assert items_of("label", "yes", "no") is None and items_of("entity_list", None, ["x"]) is None


def test_pairs_and_tuples_become_items_of_texts():
    relation = [[["the rash", "penicillin"], "penicillin", "caused by"]]
    assert items_of("relation_lines", relation, []).missed == (("the rash", "penicillin", "caused by"),)
    tuples = {"tuples": [["疼痛", "", ["压榨样", "突发"], ["胸骨后"]]]}
    assert items_of("tuples", tuples, tuples).found == (("疼痛", "", "压榨样, 突发", "胸骨后"),)


@pytest.mark.parametrize(
    ("kind", "missed", "spurious", "near"),
    [
        ("codes_in_text", ("I21.4",), ("I21.9",), "hierarchy"),
        ("code_list", ("m25.561",), ("m25.461",), "hierarchy"),
        ("code_list", ("i10",), ("i11",), None),
        ("code_list", ("8000/3",), ("8000/6",), None),  # morphology has other categories
        ("entity_list", ("severe chest pain",), ("chest pain",), "boundary"),
        ("entity_list", ("chest pain",), ("abdominal cramps",), None),
        ("entity_list", ("压榨样胸痛",), ("胸痛",), "boundary"),
        ("event_lines", ("aspirin", "81 mg"), ("aspirin", "100 mg"), "attribute"),
        ("event_lines", ("acute pain", "present"), ("pain", "present"), "boundary"),
        ("event_lines", ("aspirin", "severe gastric bleeding"), ("aspirin", "gastric bleeding"), "boundary"),
        ("event_lines", ("acute pain", "present"), ("pain", "absent"), None),
        ("relation_lines", ("a cough", "flu", "of"), ("a cough", "flu", "for"), "attribute"),
        ("label_list", ("cardiology",), ("cardiology ward",), None),
    ],
)
def test_near_misses(kind, missed, spurious, near):
    found = near_misses(kind, Items((), (missed,), (spurious,)))
    assert [kind.name.lower() for _, _, kind in found] == ([near] if near else [])


def test_an_item_is_in_one_near_miss_at_most():
    items = Items((), (("I21.4",), ("I21.0",)), (("I21.9",),))
    assert len(near_misses("code_list", items)) == 1


def test_marks_ignore_case_and_blanks_and_keep_every_character():
    text = "The rash, and severe  Chest Pain; no painless rashes."
    items = Items(found=(("chestpain",),), missed=(("rash",),), spurious=(("severe chest pain",),))
    pieces = marked(text, items)
    assert "".join(piece["text"] for piece in pieces) == text
    shown = {piece["text"]: piece["marks"] for piece in pieces if piece["marks"]}
    assert shown == {
        "rash": ("missed",),  # not in `rashes`, which is another word
        "severe  ": ("spurious",),
        "Chest Pain": ("found", "spurious"),
    }


def test_marks_in_a_script_without_blanks():
    pieces = marked("患者胸痛３天", Items(found=(("胸痛3天",),), missed=(), spurious=()))
    assert [(piece["text"], piece["marks"]) for piece in pieces] == [("患者", ()), ("胸痛３天", ("found",))]
