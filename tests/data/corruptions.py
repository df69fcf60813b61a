"""Ways in which a file of rows goes wrong on its way, over datasets of all suites."""

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

Rows = list[dict[str, Any]]
Damage = Callable[[Rows], Rows]


class Corruption(NamedTuple):
    dataset: str  # SUITE/DATASET
    name: str
    damage: Damage


def each(column: str, change: Callable[[Any], Any], every: int = 1) -> Damage:
    """Change a column, in every n-th row."""

    def damage(rows: Rows) -> Rows:
        return [
            {**row, column: change(row[column])} if number % every == 0 else row
            for number, row in enumerate(rows)
        ]

    return damage


def said(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def turned(column: str, by: int = 1) -> Damage:
    return lambda rows: [{**row, column: rows[(n + by) % len(rows)][column]} for n, row in enumerate(rows)]


def misread(wrong: str, right: str = "utf-8") -> Callable[[str], str]:
    return lambda text: text.encode(right, "replace").decode(wrong, "replace")


def sub(pattern: str, by: Any, flags: int = 0) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, by, text, flags=flags)


def mention(field: str, change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: re.sub(
        rf"(?<={field}: )(.*?)(?=[,;](?: \w[\w -]*:|\n|$))", lambda found: change(found[1]), text
    )


def items(key: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda cells: [{**cell, key: change(cell[key])} for cell in cells]


def renewed(rows: Rows, *, gold: str | None = None, to: Any = None) -> Rows:
    """The rows again under other ids, with another gold if one is given."""
    again = deepcopy(rows)
    for row in again:
        for name in ("id", "pmid", "uid", "key", "Row Number", "qid", "idx"):
            if name in row:
                row[name] = f"{row[name]}b" if isinstance(row[name], str) else row[name] + 1000
        if gold:
            row[gold] = to(row[gold]) if callable(to) else to
    return rows + again


def letter_after(letter: str, last: str = "D") -> str:
    """The next letter, or the first."""
    return "A" if letter == last else chr(ord(letter) + 1)


LOREM = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore."
ENGLISH = "The patient was admitted with chest pain of two hours' duration, without fever."
ENGLISH_PAIR = "Premise statement: The patient has chest pain.\nHypothesis statement: The patient is in pain."
SPANISH = (
    "El paciente debe acudir a su médico de cabecera en dos semanas para control de la presión arterial."
)
GERMAN = (
    "Der Patient wurde wegen seit zwei Stunden bestehender Schmerzen in der Brust, die in Ruhe nicht"
    " nachlassen, in die Notaufnahme gebracht; das EKG ist ohne Befund."
)


_B = "bridge/"
_MADE: list[tuple[str, str, Damage]] = [
    # gold of another row
    ("medhelm/medqa", "answer of the next letter", each("answer_idx", letter_after)),
    (_B + "bronco150_ner_status", "gold one row off", turned("output")),
    (_B + "clinpt_ner", "gold two rows off", turned("output", 2)),
    (_B + "icorpus", "gold one row off", turned("output")),
    (_B + "n2c2_2010_relation", "gold one row off", turned("output")),
    (_B + "cas_evidence", "gold one row off", turned("output")),
    ("mlb/maeesymp", "entities one row off", turned("entities")),
    # mentions that no text has
    (_B + "cardio_de", "first letter lost", each("output", mention("entity", lambda x: "x" + x[1:]))),
    (
        _B + "ruccon",
        "entities in Latin letters",
        each("output", mention("entity", lambda x: "poroki " + x[::-1])),
    ),
    (_B + "grassco_phi", "names masked in the text", each("input", sub(r"\b[A-ZÄÖÜ]\w+", "[NAME]"))),
    (_B + "meddocan", "digits masked in the text", each("input", sub(r"\d", "9"))),
    (_B + "norsynthclinical_ner", "letters ae", each("input", sub("[æøå]", "?"))),
    (
        _B + "medication_extraction",
        "drugs by another name",
        each("output", mention("medication", lambda _: "drug X")),
    ),
    ("mlb/cmeie", "triples one row off", turned("spo_list")),
    ("mlb/maeemedic", "doses joined", each("entities", items("name", lambda x: x + "药品规格"))),
    # codes
    (_B + "cantemist_coding", "decimal comma for slash", each("output", sub("/", ","))),
    (_B + "cantemist_norm", "morphology without behaviour", each("output", sub(r"/\d", ""))),
    (_B + "cares_icd10_subblock", "dot lost", each("output", sub(r"(?<=\d)\.(?=\d)", ""))),
    (_B + "cares_icd10_chapter", "Arabic numerals", each("output", sub(r"\b[IVX]+\b", "7"))),
    (_B + "codiesp_icd10_cm", "ICD-9 codes", each("output", sub(r"(?<=CM: )[A-Z](\d\d)", r"4\1"))),
    (_B + "codiesp_icd10_cm", "description for code", each("output", sub(r"(?<=CM: )[^;]+", "hipertensión"))),
    (_B + "codiesp_icd10_pcs", "letter O for zero", each("output", sub(r"(?<=PCS: )0", "O"))),
    (_B + "codiesp_icd10_pcs", "last character lost", each("output", sub(r"(?<=PCS: )(\w{6})\w", r"\1"))),
    (
        "medhelm/mimic_iv_billing_code",
        "dash for dot",
        each("target", lambda c: [x.replace(".", "-") for x in c]),
    ),
    ("medhelm/mimic_iv_billing_code", "as numbers", each("target", lambda c: [x[1:] for x in c])),
    # characters
    (
        _B + "cas_evidence",
        "UTF-8 read as latin-1 twice",
        each("input", lambda x: misread("latin-1")(misread("latin-1")(x))),
    ),
    (_B + "ruccon", "cp1251 read as latin-1", each("input", misread("latin-1", "cp1251"))),
    (_B + "rudrec_ner", "UTF-8 read as cp866", each("input", misread("cp866"))),
    (_B + "ifmir_ner", "Shift-JIS read as cp1252", each("input", misread("cp1252", "shift-jis"))),
    (
        _B + "bronco150_ner_status",
        "replacement characters",
        each("input", lambda x: x.encode("latin-1", "ignore").decode("utf-8", "replace")),
    ),
    # language
    (_B + "imcs_v2_dac", "English text", each("input", said(ENGLISH))),
    (_B + "norsynthclinical_phi", "German text", each("input", said(GERMAN))),
    (_B + "rumednli", "English text", each("input", said(ENGLISH_PAIR))),
    ("mlb/chip_cdee", "English text", each("text", said(ENGLISH))),
    (_B + "clip", "Spanish text", each("input", said(SPANISH))),
    # cut or emptied
    ("medhelm/clinic_referral", "placeholder", each("context", said("N/A"))),
    (
        "clinicbench/patient_education",
        "placeholder in every other row",
        each("discharge_summary", said("[REDACTED]"), 2),
    ),
    ("medhelm/noteextract", "blind text", each("MO Note", said(LOREM))),
    ("medhelm/mimic_bhc", "a spreadsheet's error", each("target", said("#REF!"), 3)),
    (_B + "cmedqa", "null as a word", each("output", said("null"), 2)),
    ("clinicbench/treatment_recommendation", "drugs are n/a", each("commonMedications", said(["n/a"]), 2)),
    # options
    ("medhelm/medbullets", "two options alike", lambda rows: [{**r, "opb": r["opa"]} for r in rows]),
    (
        "clinicbench/medmcqa",
        "all options alike",
        lambda rows: [{**r, "opa": "x", "opb": "x", "opc": "x", "opd": "x"} for r in rows],
    ),
    (
        "medhelm_live/mmlu_clinical_af",
        "one option for all",
        lambda rows: [{**r, **dict.fromkeys("ABCD", r["A"])} for r in rows],
    ),
    ("mlb/maguidance", "first option lost", each("options", lambda x: x[1:])),
    # other rows
    (
        "medhelm/ent_referral",
        "again with other golds",
        lambda rows: renewed(rows, gold="label", to=lambda x: letter_after(x, "C")),
    ),
    ("clinicbench/pubmedqa", "every row twice", lambda rows: renewed(rows)),
    ("clinicbench/ddi", "one label for all", each("label", said("effect"))),
    (_B + "mediqa_2019_rqe", "one label for all", each("output", said("answer: true"))),
    (
        "medhelm/medcalc_bench",
        "answers times ten",
        each("Ground Truth Answer", lambda x: x.replace(".", "") + "0"),
    ),
]
CORRUPTIONS = [Corruption(*made) for made in _MADE]
