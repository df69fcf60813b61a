"""How entity lists, relation labels and label sets are read from replies (ClinicBench)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

ENTITIES = answer_format({"kind": "entity_list", "types": ["disease"]})
GAD = answer_format({"kind": "relation_label", "labels": ["Yes", "No"]})


def answer_of(dataset: str):
    return answer_format(registry().datasets[dataset].blocks["answer"])


DDI, HOC = answer_of("clinicbench_ddi"), answer_of("clinicbench_hoc")
APOPTOSIS, VESSELS = "resisting cell death", "inducing angiogenesis"
SPREAD, GENOME = "activating invasion and metastasis", "genomic instability and mutation"


def read(form, text: str, *, cot: bool = False):
    reading = form.read(text, {}, cot=cot)
    assert reading.valid is (reading.answer is not None)
    return reading.answer


@pytest.mark.parametrize(
    ("reply", "mentions"),
    [
        ("Hepatitis\nGraves ' disease", ["graves'disease", "hepatitis"]),
        ("hepatitis; Hepatitis ;\tFEVER.", ["fever", "hepatitis"]),
        ("- hepatitis\n* **fever**\n3. <rash>\n(4) “jaundice”", ["fever", "hepatitis", "jaundice", "rash"]),
        ("nausea , vomiting", ["nausea,vomiting"]),  # commas are part of mentions
        ("renal - cell carcinoma\nrenal-cell carcinoma", ["renal-cellcarcinoma"]),
        ("5 - oxoprolinuria", ["5-oxoprolinuria"]),
        ("G6PD ( EC 1 ; 49 ) deficiency; anemia", ["anemia", "g6pd(ec1;49)deficiency"]),
        ("hepatitis (Disease)\nHIT ( type II )", ["hepatitis", "hit(typeii)"]),
        ("Diseases: hepatitis\nfever", ["fever", "hepatitis"]),
        ("The diseases are:\n\nhepatitis", ["hepatitis"]),
        ("None", []),
        ("No diseases mentioned.", []),
        ("There are no disease mentions in the sentence.", []),
        ("None\nhepatitis", ["hepatitis"]),
        ("nonesuch syndrome", ["nonesuchsyndrome"]),
        ("<think>fever</think>hepatitis", ["hepatitis"]),
        ("<think>fever", None),
        ("", None),
        (" \n--- ; ...\n:", None),
    ],
)
def test_entities_of_a_reply(reply, mentions):
    assert read(ENTITIES, reply) == mentions


def test_under_chain_of_thought_what_follows_the_result_is_read():
    assert read(ENTITIES, "fever is one.\nResult:\nhepatitis", cot=True) == ["hepatitis"]
    assert read(DDI, "It could be <effect>.\n**Result:** <int>", cot=True) == "int"
    assert read(HOC, "none at first sight\nResult: resisting cell death", cot=True) == [APOPTOSIS]


@given(st.lists(st.text("abcdefg ,-()'", min_size=3).filter(lambda text: any(c.isalpha() for c in text))))
def test_mentions_are_read_back_whatever_white_space_and_case_they_have(mentions):
    """By the plain rule: no white space, lower case, no punctuation at the edges."""
    plain = {"".join(text.lower().split()).strip("'.,:*_\"") for text in mentions}
    mentions = [text for text in mentions if not text.lstrip().startswith("-")]
    plain = {"".join(text.lower().split()).strip("'.,:*_\"") for text in mentions}
    texts = [" ".join(text.upper()) for text in mentions]
    assert read(ENTITIES, "\n".join(texts) or "None") == sorted(plain)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("<effect>", "effect"),
        ("**<Mechanism>**", "mechanism"),
        ("< advise >", "advice"),  # the corpus's own spelling
        ("<None>", "none"),
        ("int", "int"),
        ("The label is: advice.", "advice"),
        ("<effect>\nIt is no <mechanism>, since levels are unchanged.", "effect"),  # the first one decides
        ("Neither effect nor int, but <advice>", "advice"),
        ("It may be <effect> or <int>", None),
        ("effect or mechanism", None),
        ("effects, interaction, nonetheless", None),  # parts of words
        ("<interaction>", None),
        ("", None),
        ("<think><int></think>", None),
    ],
)
def test_relation_of_a_reply(reply, label):
    assert read(DDI, reply) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [("Yes", "yes"), ("no.", "no"), ("<No>", "no"), ("Yes, there is no doubt", None), ("nothing", None)],
)
def test_a_relation_of_two_labels(reply, label):
    assert read(GAD, reply) == label


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        (APOPTOSIS, [APOPTOSIS]),
        ("Resisting Cell-Death\nActivating invasion & metastasis", [SPREAD, APOPTOSIS]),
        ("inducing angiogenesis, resisting cell death; Genome instability & mutation",
         [GENOME, VESSELS, APOPTOSIS]),
        ("3, 5", [VESSELS, APOPTOSIS]),
        ("CD\nA", [VESSELS, APOPTOSIS]),
        ("1. Resisting cell death (CD)\n2. Inducing angiogenesis - VEGF was raised", [VESSELS, APOPTOSIS]),
        ("- **Resisting cell death**: apoptosis was seen", [APOPTOSIS]),
        ("resisting cell death\nresisting cell death", [APOPTOSIS]),
        ("none", []),
        ("None.", []),
        ("none\nCD", [APOPTOSIS]),
        ("resisting cell death\nfierce hallmark", [APOPTOSIS]),  # what is no label is left out
        ("the abstract is on cancer", None),
        ("11", None),
        ("", None),
    ],
)  # fmt: skip
def test_labels_of_a_reply(reply, labels):
    assert read(HOC, reply) == labels


@given(st.sets(st.sampled_from(list(HOC.labels))), st.sampled_from(["\n", ", ", "; ", "\n- "]))
def test_any_set_of_labels_is_read_back(labels, joint):
    for text in (joint.join(labels), joint.join(label.upper() for label in labels)):
        assert read(HOC, text or "none") == sorted(labels) == HOC.read_gold(text or "none", {})


@pytest.mark.parametrize(
    ("form", "gold"),
    [(ENTITIES, ""), (ENTITIES, "..."), (DDI, "effects"), (GAD, "maybe"), (HOC, "growth"), (HOC, "")],
)
def test_a_gold_answer_of_another_form_is_refused(form, gold):
    with pytest.raises(GoldError):
        form.read_gold(gold, {})


def test_a_relation_needs_a_label_for_no_relation():
    with pytest.raises(MedtasksError, match="No or None"):
        answer_format({"kind": "relation_label", "labels": ["effect", "int"]})
