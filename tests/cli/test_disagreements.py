"""`medtasks rescore --disagreements` names answers that the two readings see differently, and no others."""

from __future__ import annotations

from typing import Any

from medtasks_ext.cli.rescore import differs, lines_of

RESPONSE = "The best answer is D."


def sample(**changes: Any) -> dict[str, Any]:
    repaired = {"gold": "D", "answer": "D", "span": [19, 20], "why": "announced"}
    read = {
        "answer": RESPONSE,
        "valid": False,
        "span": None,
        "why": "",
        "reader": "official",
        "repaired": repaired,
    }
    doc = {"id": "q7", "item": "q7", "trial": None, "data": "local"}
    made = {"doc": doc, "doc_id": 6, "resps": [[RESPONSE]], "filtered_resps": [read]}
    return {**made, "score": 0.0, "score_repaired": 1.0, "valid": 0.0, "readable_repaired": 1.0, **changes}


def test_readings_differ_by_score_or_by_whether_there_is_an_answer():
    same = {"score": 1.0, "score_repaired": 1.0, "valid": 1.0, "readable_repaired": 1.0}
    assert differs(sample())
    assert not differs(sample(**same))
    assert differs(sample(**{**same, "valid": 0.0}))


def test_where_there_is_one_reading_nothing_differs():
    made = sample()
    made["filtered_resps"][0]["reader"] = "repaired"
    assert not differs(made)


def test_the_response_is_shown_where_the_text_is_open_alone():
    shown, hidden = ("\n".join(lines_of("task", sample(), shown=open_)) for open_ in (True, False))
    assert "The best answer is D." in shown.split("repaired", 1)[1]
    assert hidden.split("\n")[0] == "task #7"
    assert hidden.split("\n")[2] == '  repaired: "D" (announced)'
