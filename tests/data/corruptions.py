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
GERMAN = (
    "Der Patient wurde wegen seit zwei Stunden bestehender Schmerzen in der Brust, die in Ruhe nicht"
    " nachlassen, in die Notaufnahme gebracht; das EKG ist ohne Befund."
)


_B = "bridge/"
CORRUPTIONS = [
    # gold of another row
    Corruption("medhelm/medqa", "answer of the next letter", each("answer_idx", letter_after)),
    Corruption(_B + "bronco150_ner_status", "gold one row off", turned("output")),
    Corruption(_B + "clinpt_ner", "gold two rows off", turned("output", 2)),
    Corruption(_B + "icorpus", "gold one row off", turned("output")),
    Corruption(_B + "n2c2_2010_relation", "gold one row off", turned("output")),
    Corruption(_B + "cas_evidence", "gold one row off", turned("output")),
    Corruption("mlb/maeesymp", "entities one row off", turned("entities")),
    # mentions that no text has
    Corruption(
        _B + "cardio_de", "first letter lost", each("output", mention("entity", lambda x: "x" + x[1:]))
    ),
    Corruption(
        _B + "ruccon",
        "entities in Latin letters",
        each("output", mention("entity", lambda x: "poroki " + x[::-1])),
    ),
    Corruption(
        _B + "grassco_phi", "names masked in the text", each("input", sub(r"\b[A-ZÄÖÜ]\w+", "[NAME]"))
    ),
    Corruption(_B + "meddocan", "digits masked in the text", each("input", sub(r"\d", "9"))),
    Corruption(_B + "norsynthclinical_ner", "letters ae", each("input", sub("[æøå]", "?"))),
    Corruption(
        _B + "medication_extraction",
        "drugs by another name",
        each("output", mention("medication", lambda _: "drug X")),
    ),
    Corruption("mlb/cmeie", "triples one row off", turned("spo_list")),
    Corruption("mlb/maeemedic", "doses joined", each("entities", items("name", lambda x: x + "药品规格"))),
    # codes
    Corruption(_B + "cantemist_coding", "decimal comma for slash", each("output", sub("/", ","))),
    Corruption(_B + "cantemist_norm", "morphology without behaviour", each("output", sub(r"/\d", ""))),
    Corruption(_B + "cares_icd10_subblock", "dot lost", each("output", sub(r"(?<=\d)\.(?=\d)", ""))),
    Corruption(_B + "cares_icd10_chapter", "Arabic numerals", each("output", sub(r"\b[IVX]+\b", "7"))),
    Corruption(_B + "codiesp_icd10_cm", "ICD-9 codes", each("output", sub(r"(?<=CM: )[A-Z](\d\d)", r"4\1"))),
    Corruption(
        _B + "codiesp_icd10_cm",
        "description for code",
        each("output", sub(r"(?<=CM: )[^;]+", "hipertensión")),
    ),
    Corruption(_B + "codiesp_icd10_pcs", "letter O for zero", each("output", sub(r"(?<=PCS: )0", "O"))),
    Corruption(
        _B + "codiesp_icd10_pcs", "last character lost", each("output", sub(r"(?<=PCS: )(\w{6})\w", r"\1"))
    ),
    Corruption(
        "medhelm/mimic_iv_billing_code",
        "dash for dot",
        each("target", lambda c: [x.replace(".", "-") for x in c]),
    ),
    Corruption("medhelm/mimic_iv_billing_code", "as numbers", each("target", lambda c: [x[1:] for x in c])),
    # characters
    Corruption(
        _B + "cas_evidence",
        "UTF-8 read as latin-1 twice",
        each("input", lambda x: misread("latin-1")(misread("latin-1")(x))),
    ),
    Corruption(_B + "ruccon", "cp1251 read as latin-1", each("input", misread("latin-1", "cp1251"))),
    Corruption(_B + "rudrec_ner", "UTF-8 read as cp866", each("input", misread("cp866"))),
    Corruption(_B + "ifmir_ner", "Shift-JIS read as cp1252", each("input", misread("cp1252", "shift-jis"))),
    Corruption(
        _B + "bronco150_ner_status",
        "replacement characters",
        each("input", lambda x: x.encode("latin-1", "ignore").decode("utf-8", "replace")),
    ),
    # language
    Corruption(
        _B + "imcs_v2_dac",
        "English text",
        each(
            "input",
            lambda _: "The patient has had a cough and fever for two days and took some medicine at home.",
        ),
    ),
    Corruption(_B + "norsynthclinical_phi", "German text", each("input", lambda _: GERMAN)),
    Corruption(
        _B + "rumednli",
        "English text",
        each(
            "input",
            lambda _: (
                "Premise statement: The patient has chest pain.\n"
                "Hypothesis statement: The patient is in pain."
            ),
        ),
    ),
    Corruption(
        "mlb/chip_cdee",
        "English text",
        each(
            "text",
            lambda _: "The patient was admitted with chest pain of two hours' duration, without fever.",
        ),
    ),
    Corruption(
        _B + "clip",
        "Spanish text",
        each(
            "input",
            lambda _: (
                "El paciente debe acudir a su médico de cabecera en dos semanas"
                " para control de la presión arterial."
            ),
        ),
    ),
    # cut or emptied
    Corruption("medhelm/clinic_referral", "placeholder", each("context", lambda _: "N/A")),
    Corruption(
        "clinicbench/patient_education",
        "placeholder in every other row",
        each("discharge_summary", lambda _: "[REDACTED]", 2),
    ),
    Corruption("medhelm/noteextract", "blind text", each("MO Note", lambda _: LOREM)),
    Corruption("medhelm/mimic_bhc", "a spreadsheet's error", each("target", lambda _: "#REF!", 3)),
    Corruption(_B + "cmedqa", "null as a word", each("output", lambda _: "null", 2)),
    Corruption(
        "clinicbench/treatment_recommendation",
        "drugs are n/a",
        each("commonMedications", lambda _: ["n/a"], 2),
    ),
    # columns
    # options
    Corruption(
        "medhelm/medbullets", "two options alike", lambda rows: [{**r, "opb": r["opa"]} for r in rows]
    ),
    Corruption(
        "clinicbench/medmcqa",
        "all options alike",
        lambda rows: [{**r, "opa": "x", "opb": "x", "opc": "x", "opd": "x"} for r in rows],
    ),
    Corruption(
        "medhelm_live/mmlu_clinical_af",
        "one option for all",
        lambda rows: [{**r, **dict.fromkeys("ABCD", r["A"])} for r in rows],
    ),
    Corruption("mlb/maguidance", "first option lost", each("options", lambda x: x[1:])),
    # other rows
    Corruption(
        "medhelm/ent_referral",
        "again with other golds",
        lambda rows: renewed(rows, gold="label", to=lambda x: letter_after(x, "C")),
    ),
    Corruption("clinicbench/pubmedqa", "every row twice", lambda rows: renewed(rows)),
    Corruption("clinicbench/ddi", "one label for all", each("label", lambda _: "effect")),
    Corruption(_B + "mediqa_2019_rqe", "one label for all", each("output", lambda _: "answer: true")),
    Corruption(
        "medhelm/medcalc_bench",
        "answers times ten",
        each("Ground Truth Answer", lambda x: x.replace(".", "") + "0"),
    ),
]
