"""Micro-F1 of extracted tuples, events, codes and recommended drugs against a plain count."""

import json
import unicodedata
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_fscore_support, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.metrics import common, sets
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from tests.metrics.build import INVALID, columns, documents

TASKS = registry().datasets
NAMES = [name for name, dataset in TASKS.items() if dataset.blocks["answer"]["kind"] == "tuples"]
CMEEE, CMEIE, CDEE, SYMPTOMS = (
    TASKS[f"mlb_{name}"].blocks["answer"] for name in ("cmeee", "cmeie", "chip_cdee", "maeesymp")
)
TYPES = list(CMEEE["closed_values"]["type"])
STATISTICS = {
    "score": common.micro_f1, "micro_f1": common.micro_f1, "micro_precision": common.micro_precision,
    "micro_recall": common.micro_recall, "micro_f1_with_types": common.micro_f1,
    "attribute_micro_f1": sets.attribute_micro_f1, "f1_macro": sets.f1_macro_of_classes,
}  # fmt: skip


def scores(block: dict, pairs: list[tuple[str, str]]) -> dict[str, float]:
    form, reader = answer_format(block), ParseAnswer(answer=block)
    docs = documents([form.read_gold(gold, {}) for gold, _ in pairs])
    parsed = reader.apply([[answer] for _, answer in pairs], docs)
    results = [sets.process_tuples(doc, [answer]) for doc, answer in zip(docs, parsed, strict=True)]
    return {
        name: statistic([result[name] for result in results])
        for name, statistic in STATISTICS.items()
        if name in results[0]
    }


def entities(*pairs: tuple[str, str]) -> str:
    return json.dumps([{"entity": name, "type": kind} for name, kind in pairs], ensure_ascii=False)


def test_an_invented_type_is_a_false_positive_and_no_class():
    gold = entities(("a", "dis"))
    plain = scores(CMEEE, [(gold, entities(("a", "dis")))])
    invented = scores(CMEEE, [(gold, entities(("a", "dis"), ("a", "病"), ("b", "entity")))])
    assert invented["micro_precision"] == pytest.approx(1 / 3)
    assert invented["f1_macro"] == plain["f1_macro"] == 1


def triple(kind: str) -> str:
    keys = ("subject", "predicate", "object", "subject_type", "object_type")
    return json.dumps([dict(zip(keys, ("肝", "同义词", "肝脏", kind, kind), strict=True))])


def test_types_of_a_relation_count_apart_from_the_score():
    got = scores(CMEIE, [(triple("部位"), triple("其他"))])
    assert got["score"] == 1 and got["micro_f1_with_types"] == 0 and got["f1_macro"] == 1


EVENT = "主体词：疼痛；发生状态：；描述词：{};解剖部位：{}"


def test_an_event_counts_only_if_all_four_fields_agree_and_lists_are_sets():
    gold = EVENT.format("持续，剧烈", "右上腹")
    assert scores(CDEE, [(gold, EVENT.format("剧烈，持续", "右上腹"))])["score"] == 1
    got = scores(CDEE, [(gold, EVENT.format("持续", "右上腹"))])
    assert got["score"] == 0
    assert got["attribute_micro_f1"] == pytest.approx(2 * 2 / (2 + 3))  # 持续 and 右上腹 of three


def symptoms(*records: dict) -> str:
    return json.dumps(list(records), ensure_ascii=False)


def test_a_symptom_is_its_name_and_its_attributes_are_scored_apart():
    gold = symptoms({"name": "咳嗽", "status": "阳性"}, {"name": "发热", "status": "阴性"})
    answer = symptoms({"name": "咳嗽", "status": "阴性"}, {"name": "发热", "status": "阴性"})
    got = scores(SYMPTOMS, [(gold, answer)])
    assert got["score"] == 1 and got["attribute_micro_f1"] == pytest.approx(0.5)


def test_attributes_that_no_gold_answer_gives_have_no_part():
    gold = symptoms({"name": "咳嗽", "status": "阳性"})
    answer = symptoms({"name": "咳嗽", "status": "阳性", "duration": "3天", "severity": "重"})
    assert scores(SYMPTOMS, [(gold, answer)])["attribute_micro_f1"] == 1
    other = symptoms({"name": "发热", "status": "阳性", "duration": "1天"})
    # once a gold answer gives the duration, an invented one is wrong
    assert scores(SYMPTOMS, [(gold, answer), (other, other)])["attribute_micro_f1"] == pytest.approx(6 / 7)


NAME = st.sampled_from(["咳嗽", "ＣＴ", "ct", "肺 炎", "A", "a"])
ENTITY = st.tuples(NAME, st.sampled_from(TYPES[:4]))
ENTITIES = st.lists(ENTITY, max_size=8)


def folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).lower()


def binary(gold: list[int], found: list[int]) -> tuple[float, ...]:
    return precision_recall_fscore_support(gold, found, average="binary", zero_division=0)[:3]


@given(st.lists(st.tuples(ENTITIES, ENTITIES), min_size=1, max_size=8))
def test_metrics_are_those_of_scikit_learn_on_all_possible_tuples(rows):
    got = scores(CMEEE, [(entities(*gold), entities(*answer)) for gold, answer in rows])
    places, gold_marks, answer_marks = [], [], []
    for number, (gold, answer) in enumerate(rows):
        wanted, given_ = ({(folded(name), kind) for name, kind in side} for side in (gold, answer))
        for item in sorted(wanted | given_):
            places.append((number, item))
            gold_marks.append(int(item in wanted))
            answer_marks.append(int(item in given_))
    wanted = binary(gold_marks, answer_marks) if places else (0.0, 0.0, 0.0)
    found = [got[f"micro_{name}"] for name in ("precision", "recall", "f1")]
    assert found == pytest.approx(wanted, abs=1e-12) and got["score"] == got["micro_f1"]
    by_class = []
    for kind in sorted({item[1] for (_, item), mark in zip(places, gold_marks, strict=True) if mark}):
        chosen = [i for i, (_, item) in enumerate(places) if item[1] == kind]
        by_class.append(binary(*([marks[i] for i in chosen] for marks in (gold_marks, answer_marks)))[2])
    assert got["f1_macro"] == pytest.approx(sum(by_class) / len(by_class) if by_class else 0.0, abs=1e-12)


@given(st.lists(ENTITY, min_size=1, max_size=8), st.randoms())
def test_the_order_of_entities_and_keys_and_the_width_of_letters_do_not_matter(found, rng):
    gold = entities(*found)
    records = [
        dict(rng.sample([("entity", f" {name.upper()}\u3000"), ("type", kind)], 2)) for name, kind in found
    ]
    rng.shuffle(records)
    answer = f"```json\n{json.dumps(records, ensure_ascii=rng.random() < 0.5, indent=1)}\n```"
    assert scores(CMEEE, [(gold, answer)])["score"] == pytest.approx(1)


HOSTILE = [
    "[" * 20_000, "[{" * 10_000, '[{"entity":' * 2_000, '[{"entity": "a", "type": "dis"}, ' * 600,
    '{"entity": "a", "type": "dis"}\n' * 600, "主体词：" * 5_000,
    "主体词：a；发生状态：；描述词：" * 1_000, "；" * 20_000, "#" * 20_000, " " * 20_000 + "答案：",
    "答案：" * 6_000, '[{"entity": ' + "9" * 20_000 + ', "type": "dis"}]',
    '[{"entity": 1e999, "type": NaN, "name": true}]', '[{"name": {"name": [{"name": "a"}]}, "entity": null}]',
    '[{"entity": "\\ud83d", "type": "dis", "name": "\\ud83d", "subject": "\\ud83d"}]', '[null, 1, "a"]',
    "\x00\ud83d",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_hostile_answer_is_right_or_fails(name):
    docs = load_documents(TASKS[name], cot=False, origin="sample")["test"]
    reader = ParseAnswer(answer=TASKS[name].blocks["answer"])
    for text in HOSTILE:
        result = sets.process_tuples(docs[0], reader.apply([[text]], docs[:1]))
        json.dumps(result)
        assert common.micro_f1([result["score"]]) == 0


# Event, relation and code F1 against a plain count.


PAIR = st.tuples(st.sampled_from("abcd"), st.sampled_from("xy")).map(list)
PAIRS = st.lists(PAIR, max_size=6)


def f1_by_counting(rows: list[tuple[set, set]]) -> float:
    tp = sum(item in predicted for gold, predicted in rows for item in gold)
    n_gold = sum(len(gold) for gold, _ in rows)
    n_predicted = sum(len(predicted) for _, predicted in rows)
    if not tp:
        return 0.0
    precision, recall = tp / n_predicted, tp / n_gold
    return 2 * precision * recall / (precision + recall)


@given(st.lists(st.tuples(PAIRS.filter(bool), PAIRS), min_size=1, max_size=12))
def test_event_and_subject_f1_pool_the_counts_of_all_documents(rows):
    got = columns(sets.process_events, documents([gold for gold, _ in rows]), [answer for _, answer in rows])
    whole = [(set(map(tuple, gold)), set(map(tuple, answer))) for gold, answer in rows]
    subjects = [({event[0] for event in gold}, {event[0] for event in answer}) for gold, answer in rows]
    assert common.micro_f1(got["score"]) == pytest.approx(f1_by_counting(whole), abs=1e-12)
    assert common.micro_f1(got["f1_event"]) == common.micro_f1(got["score"])
    assert common.micro_f1(got["f1_subject"]) == pytest.approx(f1_by_counting(subjects), abs=1e-12)
    assert got["acc_event"] == [float(gold == answer) for gold, answer in whole]
    assert got["acc_subject"] == [float(gold == answer) for gold, answer in subjects]


@pytest.mark.parametrize(
    ("line", "event", "subject"),
    [
        ("entity_1: a, entity_2: b, relation: holder;", 1, 1),
        ("entity_1: a, entity_2: b, relation: partner;", 1, 1),  # the label is officially never scored
        ("entity_1: b, entity_2: a, relation: holder;", 0, 1),  # the second place is
        ("entity_1: a, entity_2: c, relation: holder;", 0, 0),
        ("no relation", 0, 0),
    ],
)
def test_relations_are_scored_as_published(line, event, subject):
    block = {
        "kind": "relation_lines",
        "fields": ["entity_1", "entity_2", "relation"],
        "patterns": ["strict", "loose"],
    }
    gold = "entity_1: a, entity_2: b, relation: holder;"
    [document] = documents([answer_format(block).read_gold(gold, {})])
    document["target"] = gold
    result = sets.process_relations(document, ParseAnswer(answer=block).apply([[line]], [document]))
    got = {name: common.micro_f1([value]) for name, value in result.items() if isinstance(value, tuple)}
    assert got == {"score": event, "f1_event": event, "f1_subject": subject}


CODES = st.frozensets(st.sampled_from(["I10", "J44.9", "E11.65", "S72", "Z99"]))


@given(st.lists(st.tuples(CODES, CODES), min_size=1, max_size=4))
def test_billing_code_metrics_are_those_that_helm_takes_from_scikit_learn(rows):
    got = columns(
        sets.process_codes,
        documents([sorted(gold) for gold, _ in rows]),
        [sorted(answer) for _, answer in rows],
    )
    assert got["score"] == got["mimiciv_billing_code_f1"]
    for i, (gold, answer) in enumerate(rows):
        if not gold | answer:
            continue  # scikit-learn refuses; see the next test
        hot = MultiLabelBinarizer(classes=sorted(gold | answer))
        matrices = hot.fit_transform([gold]), hot.transform([answer])
        for name, score in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
            expected = score(*matrices, average="micro", zero_division=0)
            assert got[f"mimiciv_billing_code_{name}"][i] == pytest.approx(expected)
    assert common.micro_f1(got["billing_code_f1_pooled"]) == pytest.approx(f1_by_counting(rows), abs=1e-12)


# Recommended drugs under generic and brand names, compared with a search over all assignments.


DRUG_LIST = answer_format({"kind": "drug_list"})


def counts(reply: str, gold: list[str], metric: str = "micro_f1") -> tuple[int, int, int]:
    reading = DRUG_LIST.read(reply, {}, cot=False)
    answer = reading.answer if reading.valid else INVALID
    got = columns(sets.process_drugs, documents([gold]), [answer])
    assert got["score"] == got["micro_f1"] == got["micro_precision"] == got["micro_recall"]
    return got[metric][0]


GOLD = ["Sildenafil (Viagra)", "Testosterone", "Malathion Topical"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Sildenafil", (1, 0, 2)), ("Viagra", (1, 0, 2)), ("SILDENAFIL (VIAGRA)", (1, 0, 2)),
        ("Sildenafil 50 mg tablets", (1, 0, 2)),
        ("Sildenafil, Viagra", (1, 0, 2)),  # two names of one drug: the second is dropped
        ("Sildenafil\nSildenafil", (1, 0, 2)),
        ("Sildenafil (Revatio)", (0, 1, 3)),  # the brand is another
        ("Tadalafil, Tadalafil 5 mg, tadalafil.", (0, 1, 3)),  # one wrong drug, said three times
        ("Malathion", (1, 0, 2)), ("Malathion lotion 0.5%, testosterone gel, and Viagra.", (3, 0, 0)),
        ("1. Viagra 2. Testosterone 3. Malathion", (3, 0, 0)), ("Sildenafil - relaxes vessels", (0, 1, 3)),
        ("no drug", (0, 1, 3)), ("", (0, 0, 3)),
    ],
)  # fmt: skip
def test_names_count_once_for_each_gold_drug(reply, expected):
    assert counts(reply, GOLD) == expected


@pytest.mark.parametrize(
    ("reply", "gold", "exact", "substring"),
    [
        ("Sildenafil (Revatio)", GOLD, (0, 1, 3), (1, 0, 2)),
        ("Hydrocortisone", ["Hydrocortisone-Pramoxine Topical"], (0, 1, 1), (1, 0, 0)),
        ("Fairy dust", ["Air"], (0, 1, 1), (0, 1, 1)),  # whole words
    ],
)
def test_the_substring_variant_takes_names_that_hold_each_other(reply, gold, exact, substring):
    assert counts(reply, gold) == exact
    assert counts(reply, gold, "micro_f1_substring") == substring


def test_two_entries_that_differ_in_form_need_two_names():
    gold = ["Erythromycin", "Erythromycin Ophthalmic", "Timolol"]
    assert counts("Erythromycin", gold) == (1, 0, 2)
    assert counts("Erythromycin Ophthalmic; Erythromycin", gold) == (2, 0, 1)
    assert counts("Erythromycin, Erythromycin Ophthalmic, Erythromycin Topical", gold) == (2, 0, 1)


def test_f1_pools_documents_and_an_unreadable_answer_recommends_nothing():
    golds = [["Aspirin", "Heparin"], ["Codeine"]]
    got = columns(sets.process_drugs, documents(golds), [[["Aspirin", "Warfarin"]], INVALID])
    # 1 right, 1 wrong, 2 missed
    assert common.micro_precision(got["score"]) == pytest.approx(1 / 2)
    assert common.micro_recall(got["score"]) == pytest.approx(1 / 3)
    assert common.micro_f1(got["score"]) == pytest.approx(2 / 5)
    assert got["list_length"] == [2.0, 0.0]
    assert got["valid"] == [1.0, 0.0]


LETTERS = st.sampled_from("abcdef")
DRUGS = st.lists(
    st.one_of(LETTERS, st.tuples(LETTERS, LETTERS).map(lambda names: f"{names[0]} ({names[1]})")),
    min_size=1,
    max_size=5,
)


def by_search(named: list[str], gold: list[str]) -> tuple[int, int, int]:
    """All ways to give names to gold drugs; letters are names, so nothing is normalised."""
    names = [{drug[0], drug[3]} if "(" in drug else {drug} for drug in gold]
    distinct = sorted(set(named))
    slots = [*distinct, *[""] * len(gold)]
    best = max(
        sum(name in allowed for name, allowed in zip(order, names, strict=True))
        for order in set(permutations(slots, len(gold)))
    )
    wrong = sum(not any(name in allowed for allowed in names) for name in distinct)
    return best, wrong, len(gold) - best


@given(st.lists(LETTERS, max_size=4), DRUGS)
def test_as_many_gold_drugs_are_matched_as_any_assignment_can(named, gold):
    assert counts(", ".join(named), gold) == by_search(named, gold)


DRUG_NAMES = [
    "Aspirin", "Insulin, Aspart, Human (Novolog)", "Vitamin B 12", "Zosyn", "Sennosides, Usp (Perdiem)",
    "Air", "Neomycin, Polymyxin",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(DRUG_NAMES), min_size=1, unique=True),
    st.sampled_from(["\n", "; ", ", ", "\n- ", "\n* ", " • "]),
)
def test_the_gold_list_itself_is_right_in_every_spelling_of_a_list(gold, separator):
    reply = "Final Answer:" + separator.strip(" ;,") + " " + separator.join(gold) + "."
    assert counts(reply, gold) == (len(gold), 0, 0)
