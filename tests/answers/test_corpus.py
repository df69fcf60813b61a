"""The shared reader on the corpus of replies and on drawn ones: nothing is read wrongly."""

import random
import re
import unicodedata
from pathlib import Path

import pytest
import yaml

from medtasks_ext.answers import answer_format
from tools.draw_answers import ITEMS, LETTERS, VALUES, draw, forms, judged

FOLDER = Path(__file__).parent / "corpus"
#: of all replies that state an answer, at most so many may be unread
MOST_UNREAD = 12


def entries():
    for path in sorted(FOLDER.glob("??.yaml")):
        file = yaml.safe_load(path.read_text(encoding="utf-8"))
        for entry in file["replies"]:
            yield path.stem, file["sets"][entry["set"]], entry


ENTRIES = list(entries())


def asked_before(asked: str) -> str:
    """What the prompt asks for before the answer: `Severity:` of `Severity: X`."""
    colon = re.match(r"[^:：<\\]+[:：]", asked)
    return colon[0].rstrip() if colon else ""


def format_of(language, given):
    block = {"language": language, "before": asked_before(given["asked"])}
    if given["shape"] == "letters":
        kind = "choices" if given.get("multiple") else "choice"
        return answer_format({"kind": kind, "labels": given["labels"], **block})
    if given["shape"] == "values":
        about = {"kind": "category", "labels": given["labels"]} if "labels" in given else {"kind": "number"}
        return answer_format({**about, **block})
    if "keys" in given:
        return answer_format({"kind": "tuples", "form": "lines", "fields": given["keys"]})
    return answer_format({"kind": "spans", "language": language})


def gold_of(form, given, truth):
    """The truth as the kind parses it."""
    if form.kind == "tuples":
        return form.read_gold("；".join(f"{key}：{value}" for key, value in truth.items()), {})
    if form.kind == "spans":
        return form.read_gold("\n".join(truth) or "none", {})
    return truth


def read(language, given, entry, text=None):
    form = format_of(language, given)
    document = {"gold": None, "target": "", "prompt": ""}
    if "options" in given:
        document["options"] = given["options"]
    return form.read(entry["reply"] if text is None else text, document, cot=False)


@pytest.mark.parametrize(("language", "given", "entry"), ENTRIES, ids=lambda item: str(item)[:0])
def test_nothing_is_read_wrongly(language, given, entry):
    reading = read(language, given, entry)
    if entry["truth"] == "unreadable":
        assert not reading.valid, entry["id"]
    elif reading.valid:
        form = format_of(language, given)
        assert reading.answer == gold_of(form, given, entry["truth"]), entry["id"]


def test_few_stated_answers_are_unread():
    stated = [item for item in ENTRIES if item[2]["truth"] != "unreadable"]
    unread = [entry["id"] for language, given, entry in stated if not read(language, given, entry).valid]
    assert len(unread) <= MOST_UNREAD, unread


RATIONALES = [
    "\n\nThe CURB-65 score is 1, which means low risk.",
    "\n\nThe other options are not the correct answer:\nA. not here\nD. nor here",
    "\n\nOption A would be right if there were fever; B may occur later.",
    "\n\nReferences:\nA. Handbook, page 3\nB. Atlas, page 1",
]


@pytest.mark.parametrize("rationale", RATIONALES)
def test_a_rationale_that_announces_nothing_changes_no_reading(rationale):
    for given, entry in ((g, e) for language, g, e in ENTRIES if language == "en" and "options" in g):
        before = read("en", given, entry)
        if before.valid and before.why == "announced":
            assert read("en", given, entry, entry["reply"] + rationale).answer == before.answer, entry["id"]


WORDS = {
    "vi": ["sốt", "cao", "ho", "khan", "và", "đau", "ngực", "viêm", "gan", "B", "có", "5,5", "mg"],
    "fr": ["fièvre", "élevée", "et", "toux", "sèche", "œdème", "des", "membres", "d'effort", "5,5", "mg/L"],
    "de": ["Fieber", "und", "Ausschlag", "über", "Größe", "1.250", "mg", "keine"],
    "zh": ["发热", "和", "皮疹", "疼痛", "，", "、", "5.5", "mg"],
}


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("kind", ["choice", "category", "ordinal", "labels", "spans"])
def test_a_perfect_answer_is_read_as_the_gold_answer(kind, language):
    """Gold answers with accents, commas, dashes, decimals and joining words in them; accents may be
    characters of their own in a text or a reply."""
    drawn = random.Random(7)
    between = "" if language == "zh" else " "
    for _ in range(200):
        said = drawn.sample(WORDS[language], 5)
        names = [between.join([*said[:2], drawn.choice(["-", ",", ""]), said[2]]), *said[3:]]
        names = [name for name in names if name not in "，、和"]
        options = {"labels": names} if kind in ("category", "ordinal", "labels") else {}
        form = answer_format({"kind": kind, "language": language, **options})
        text = between.join([drawn.choice(said), *names, drawn.choice(said)])
        text = unicodedata.normalize(drawn.choice(["NFC", "NFD"]), text)
        row = {"prompt": text, **({"options": names} if kind == "choice" else {})}
        target = "\n".join(names) if kind in ("labels", "spans") else names[0]
        gold = form.read_gold(unicodedata.normalize(drawn.choice(["NFC", "NFD"]), target), row)
        target = unicodedata.normalize(drawn.choice(["NFC", "NFD"]), target)
        answer = form.read(target, row, cot=False).answer
        assert answer == (gold["level"] if kind == "ordinal" else gold), (target, gold, answer)
        assert all(form.looked_for(item) in form.looked_for(text) for item in form.mentions(gold))


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("joint", [", ", "\n", "; ", "、"])
@pytest.mark.parametrize("kind", ["labels", "spans"])
def test_a_perfect_list_in_other_forms_is_the_gold_list(kind, joint, language):
    """Items that hold marks or joining words stay whole where they stand so in the prompt, or are labels."""
    drawn = random.Random(7)
    between = "" if language == "zh" else " "
    words = [word for word in WORDS[language] if word not in "，、和"]
    # a mention with a comma, between commas, may be two
    marks = ["-", "和" if language == "zh" else "và", *([","] if kind == "labels" else [])]
    for _ in range(50):
        said = drawn.sample(words, 5)
        names = [between.join([said[0], drawn.choice(marks), said[1]]), *said[2:4]]
        options = {"labels": names} if kind == "labels" else {}
        form = answer_format({"kind": kind, "language": language, **options})
        row = {"prompt": f"{said[4]} {' / '.join(names)}"}
        gold = form.read_gold("\n".join(names), row)
        assert kind == "spans" or form.read_gold(joint.join(names), row) == gold
        reply = unicodedata.normalize(drawn.choice(["NFC", "NFD"]), joint.join(names))
        assert form.read(reply, row, cot=False).answer == gold, (reply, gold)


@pytest.mark.parametrize(
    ("language", "reply"),
    [
        ("en", "Final answer: **A** or possibly **B**"),
        ("es", "Respuesta: A o quizás B"),
        ("pt", "Resposta: A ou talvez B."),
        ("de", "Antwort: A oder vielleicht B."),
        ("fr", "Réponse : A ou peut-être B."),
    ],
)
def test_a_hedge_before_an_alternative_leaves_it_one(language, reply):
    form = answer_format({"kind": "choice", "language": language, "labels": list("ABCD")})
    assert not form.read(reply, {"options": ["one", "two", "three", "four"]}, cot=False).valid


KINDS = [*LETTERS, *VALUES, *ITEMS]
EACH = 60


def replies(kind):
    dice = random.Random(kind)
    return [draw(dice, kind) for _ in range(EACH)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_stated_is_read_and_no_other(kind):
    faults = [
        (item.form, item.reply, reading)
        for item in replies(kind)
        for said, reading in [judged(item)]
        if said != "right"
    ]
    assert not faults


@pytest.mark.parametrize("kind", KINDS)
def test_a_rationale_that_announces_nothing_behind_a_reply_changes_no_reading(kind):
    dice = random.Random(kind)
    for item in replies(kind):
        rationale = "\n\n" + dice.choice(forms()[item.language]["after"]).replace("{y}", item.other)
        assert item.read(rationale) == item.read(), (item.reply, rationale)
