"""A hundred ways in which a file of rows goes wrong on its way, over datasets of all suites.

Each is done to the bundled test rows of a dataset. The list was written before the checks that are to find
it, and nothing in it was taken out afterwards.
"""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

Rows = list[dict[str, Any]]
Damage = Callable[[Rows], Rows]


class Corruption(NamedTuple):
    """One file that is not what it should be."""

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
    """The column of another row."""
    return lambda rows: [{**row, column: rows[(n + by) % len(rows)][column]} for n, row in enumerate(rows)]


def shuffled(column: str) -> Damage:
    """The column sorted apart from its rows."""

    def damage(rows: Rows) -> Rows:
        cells = sorted((row[column] for row in rows), key=lambda cell: json.dumps(cell, ensure_ascii=False))
        if cells == [row[column] for row in rows]:
            cells.reverse()
        return [{**row, column: cell} for row, cell in zip(rows, cells, strict=True)]

    return damage


def swapped(one: str, other: str) -> Damage:
    """Two columns under each other's name."""
    return lambda rows: [{**row, one: row[other], other: row[one]} for row in rows]


def misread(wrong: str, right: str = "utf-8") -> Callable[[str], str]:
    """A text written in one encoding and read in another."""
    return lambda text: text.encode(right, "replace").decode(wrong, "replace")


def sub(pattern: str, by: Any, flags: int = 0) -> Callable[[str], str]:
    """A replacement in texts."""
    return lambda text: re.sub(pattern, by, text, flags=flags)


def mention(field: str, change: Callable[[str], str]) -> Callable[[str], str]:
    """Change a field of the lines of a gold answer."""
    return lambda text: re.sub(
        rf"(?<={field}: )(.*?)(?=[,;](?: \w[\w -]*:|\n|$))", lambda found: change(found[1]), text
    )


def items(key: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change a key of the objects of a list."""
    return lambda cells: [{**cell, key: change(cell[key])} for cell in cells]


def rotated(cells: Any) -> Any:
    """Options under the next letter."""
    if isinstance(cells, dict):
        values = [*cells.values()]
        return dict(zip(cells, values[1:] + values[:1], strict=True))
    return [*cells[1:], cells[0]]


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
FRENCH = (
    "Le patient a été admis aux urgences pour une douleur de la poitrine qui dure depuis deux heures et qui"
    " ne cède pas au repos ; l'électrocardiogramme ne montre pas de modification."
)
GERMAN = (
    "Der Patient wurde wegen seit zwei Stunden bestehender Schmerzen in der Brust, die in Ruhe nicht"
    " nachlassen, in die Notaufnahme gebracht; das EKG ist ohne Befund."
)
CHINESE = "患者因胸痛两小时就诊，休息后不缓解，心电图未见明显异常，既往有高血压病史，规律服药，否认糖尿病。"
YESNO = {"yes": "no", "no": "yes", "Yes": "No", "No": "Yes", "true": "false", "false": "true"}


def inverted(text: str) -> str:
    """Yes for no."""
    return re.sub(r"\b(yes|no|Yes|No|true|false)\b", lambda found: YESNO[found[1]], text)


def _random_labels(column: str) -> Damage:
    def damage(rows: Rows) -> Rows:
        values = sorted({row[column] for row in rows})
        draw = random.Random(7)
        return [{**row, column: draw.choice(values)} for row in rows]

    return damage


def _some(share: int) -> Damage:
    return lambda rows: rows[::share]


_B = "bridge/"
CORRUPTIONS = [
    # gold of another row
    Corruption(_B + "mednli", "gold two rows off", turned("output", 2)),
    Corruption(_B + "mednli", "gold column sorted", shuffled("output")),
    Corruption(_B + "rumeddanet", "yes for no", each("output", inverted)),
    Corruption(_B + "cares_area", "gold column sorted", shuffled("output")),
    Corruption(_B + "chip_ctc", "labels drawn anew", _random_labels("output")),
    Corruption(_B + "clister", "gold of the last row first", turned("output", -1)),
    Corruption(_B + "jp_sts", "gold column sorted", shuffled("output")),
    Corruption("medhelm/medqa", "answer of the next letter", each("answer_idx", letter_after)),
    Corruption("medhelm/pubmedqa", "yes for no", each("final_decision", inverted)),
    Corruption("medhelm/ehrshot", "flag inverted", each("boolean_value", lambda flag: not flag)),
    Corruption(
        "medhelm/race_bias", "True for False", each("label", lambda x: {"True": "False"}.get(x, "True"))
    ),
    Corruption("clinicbench/hoc", "labels two rows off", turned("labels", 2)),
    Corruption("clinicbench/gad", "0 for 1", each("labels", lambda cells: [str(1 - int(cells[0]))])),
    Corruption("mlb/maexam", "answers one row off", turned("answer")),
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
    Corruption("clinicbench/ncbi_disease", "tags one token off", each("ner_tags", lambda t: [0, *t[:-1]])),
    Corruption("clinicbench/bc5_disease", "tags reversed", each("ner_tags", lambda t: t[::-1])),
    Corruption("mlb/cmeie", "triples one row off", turned("spo_list")),
    Corruption("mlb/maeemedic", "doses joined", each("entities", items("name", lambda x: x + "药品规格"))),
    # codes
    Corruption(_B + "cantemist_coding", "decimal comma for slash", each("output", sub("/", ","))),
    Corruption(_B + "cantemist_norm", "morphology without behaviour", each("output", sub(r"/\d", ""))),
    Corruption(
        _B + "cares_icd10_block",
        "small letters",
        each("output", sub(r"\b[A-Z]\d\d\b", lambda m: m[0].lower())),
    ),
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
    Corruption(_B + "barr2", "UTF-8 read as cp1252", each("input", misread("cp1252"))),
    Corruption(
        _B + "cas_evidence",
        "UTF-8 read as latin-1 twice",
        each("input", lambda x: misread("latin-1")(misread("latin-1")(x))),
    ),
    Corruption(_B + "ruccon", "cp1251 read as latin-1", each("input", misread("latin-1", "cp1251"))),
    Corruption(_B + "rudrec_ner", "UTF-8 read as cp866", each("input", misread("cp866"))),
    Corruption(_B + "dialmed", "UTF-8 read as GBK", each("input", misread("gbk"))),
    Corruption("mlb/cmexam", "GBK read as latin-1", each("Question", misread("latin-1", "gbk"))),
    Corruption(_B + "ifmir_ner", "Shift-JIS read as cp1252", each("input", misread("cp1252", "shift-jis"))),
    Corruption(_B + "brateca_mortality", "UTF-8 read as Mac Roman", each("input", misread("mac-roman"))),
    Corruption(
        _B + "cares_area",
        "accents are question marks",
        each("input", lambda x: x.encode("ascii", "replace").decode()),
    ),
    Corruption(
        _B + "bronco150_ner_status",
        "replacement characters",
        each("input", lambda x: x.encode("latin-1", "ignore").decode("utf-8", "replace")),
    ),
    Corruption(
        "medhelm_live/healthqa_br",
        "HTML entities",
        each("question", lambda x: x.encode("ascii", "xmlcharrefreplace").decode()),
    ),
    Corruption(
        "medhelm/mediqa",
        "escaped twice",
        each(
            "QUESTION",
            lambda x: (
                {**x, "QuestionText": json.dumps(x["QuestionText"])[1:-1].replace(" ", "\\u0020")}
                if "QuestionText" in x
                else x
            ),
        ),
    ),
    Corruption(
        "medhelm/hospice_referral",
        "HTML left in",
        each("context", lambda x: f"<html><body><p>{html.escape(x)}</p><br/>&nbsp;</body></html>"),
    ),
    Corruption(
        "medhelm/aci_bench",
        "RTF left in",
        each(
            "dialogue",
            lambda x: r"{\rtf1\ansi\deff0 {\fonttbl{\f0 Arial;}}\f0\fs20 " + x.replace("\n", r"\par ") + "}",
        ),
    ),
    Corruption(
        "medhelm/clear",
        "Cyrillic letters among Latin",
        each("text", lambda x: x.translate(str.maketrans("aeopc", "аеорс"))),
    ),
    Corruption(
        _B + "mimic_iv_cdm",
        "line breaks written out",
        each("input", lambda x: x.replace("\n", "\\n").replace(". ", ".\\n")),
    ),
    # language
    Corruption("medhelm/head_qa", "French stems", each("qtext", lambda _: FRENCH)),
    Corruption("medhelm/med_dialog", "German text", each("src", lambda _: GERMAN)),
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
    Corruption("clinicbench/medqa", "Chinese stems", each("question", lambda _: CHINESE)),
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
    Corruption("medhelm/medalign", "cut at 255", each("ehr", lambda x: x[:255])),
    Corruption(_B + "mimic_iii_outcome_los", "cut at 1,000", each("input", lambda x: x[:1000])),
    Corruption("medhelm/bmt_status", "cut at 100", each("context", lambda x: x[:100])),
    Corruption(
        _B + "gout_cc_consensus", "first three words", each("input", lambda x: " ".join(x.split()[:3]))
    ),
    Corruption("medhelm/cdi_qa", "an ellipsis for the rest", each("context", lambda x: x[:150] + "...")),
    Corruption("medhelm/medmcqa", "stem of one word", each("question", lambda x: x.split()[-1])),
    Corruption("mlb/chip_cdn", "first two characters", each("text", lambda x: x[:2])),
    Corruption("medhelm/clinic_referral", "placeholder", each("context", lambda _: "N/A")),
    Corruption(
        "clinicbench/patient_education",
        "placeholder in every other row",
        each("discharge_summary", lambda _: "[REDACTED]", 2),
    ),
    Corruption("medhelm/noteextract", "blind text", each("MO Note", lambda _: LOREM)),
    Corruption("medhelm/mimic_bhc", "a spreadsheet's error", each("target", lambda _: "#REF!", 3)),
    Corruption("clinicbench/iu_xray", "nan as a word", each("impression", lambda _: "nan", 3)),
    Corruption(_B + "cmedqa", "null as a word", each("output", lambda _: "null", 2)),
    Corruption(
        "clinicbench/treatment_recommendation",
        "drugs are n/a",
        each("commonMedications", lambda _: ["n/a"], 2),
    ),
    # columns
    Corruption(
        "clinicbench/hospitalization_summarization", "columns swapped", swapped("document", "summary")
    ),
    Corruption("medhelm/mental_health", "columns swapped", swapped("context", "gold_counselor_response")),
    Corruption("medhelm/medication_qa", "columns swapped", swapped("Question", "Answer")),
    Corruption(_B + "icliniq_10k", "columns swapped", swapped("input", "output")),
    Corruption("medhelm/privacy_detection", "columns swapped", swapped("prompt", "context")),
    Corruption(
        "medhelm/adhd_behavior",
        "the gold in the text",
        lambda rows: [{**r, "context": f"{r['context']}\nLabel: {r['label']}"} for r in rows],
    ),
    Corruption(
        "clinicbench/referral_qa",
        "letter is the question",
        lambda rows: [{**r, "letter": r["question"]} for r in rows],
    ),
    # options
    Corruption(
        "medhelm/medbullets", "two options alike", lambda rows: [{**r, "opb": r["opa"]} for r in rows]
    ),
    Corruption("clinicbench/mmlu_med", "options under the next letter", each("choices", rotated)),
    Corruption(
        "clinicbench/medmcqa",
        "all options alike",
        lambda rows: [{**r, "opa": "x", "opb": "x", "opc": "x", "opd": "x"} for r in rows],
    ),
    Corruption(
        "clinicbench/pharmacology_qa",
        "options in the stem",
        lambda rows: [
            {
                **r,
                "question": "\n".join(
                    [r["question"], *(f"{letter}) {r[f'option_{letter}']}" for letter in "ABCD")]
                ),
            }
            for r in rows
        ],
    ),
    Corruption("medhelm_live/medxpertqa", "options under the next letter", each("options", rotated)),
    Corruption(
        "medhelm_live/mmlu_clinical_af",
        "one option for all",
        lambda rows: [{**r, **dict.fromkeys("ABCD", r["A"])} for r in rows],
    ),
    Corruption("mlb/maguidance", "first option lost", each("options", lambda x: x[1:])),
    Corruption(
        "medhelm_live/medxpertqa",
        "letters before options",
        each("options", lambda x: {k: f"{k}. {v}" for k, v in x.items()}),
    ),
    # other rows
    Corruption(
        "medhelm/ent_referral",
        "again with other golds",
        lambda rows: renewed(rows, gold="label", to=lambda x: letter_after(x, "C")),
    ),
    Corruption("clinicbench/pubmedqa", "every row twice", lambda rows: renewed(rows)),
    Corruption("medhelm/medhallu", "every third row", _some(3)),
    Corruption("clinicbench/ddi", "one label for all", each("label", lambda _: "effect")),
    Corruption(_B + "mediqa_2019_rqe", "one label for all", each("output", lambda _: "answer: true")),
    Corruption(
        "medhelm/medcalc_bench",
        "answers times ten",
        each("Ground Truth Answer", lambda x: x.replace(".", "") + "0"),
    ),
]
