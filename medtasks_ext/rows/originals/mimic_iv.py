"""MIMIC-IV: discharge summaries with the ICD-10 codes of their stay.

The preprocessing is that of Edin et al. (2023), from whose file HELM took its rows: text in lower case
without other characters than letters and digits and without free-standing numbers; a dot after the
third character of a diagnosis code, none in procedure codes; codes sorted, procedures first; codes of
fewer than ten stays dropped, and then stays without a code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from medtasks_ext.rows.originals.readers import Record, records, with_columns
from medtasks_ext.rows.originals.tree import SourceFile, only
from medtasks_ext.rows.spec import RowsReader

MIN_STAYS = 10
_OTHER = re.compile(r"[^a-z0-9]+")
_NUMBERS = re.compile(r"(\s\d+)+\s")


def rows(files: list[SourceFile]) -> Iterator[Record]:
    """Records with `text` and `target`, in the order of the summaries."""
    procedures = _codes(files, "hosp/procedures_icd.csv", dotted=False)
    diagnoses = _codes(files, "hosp/diagnoses_icd.csv", dotted=True)
    notes: list[tuple[str, str, str]] = []
    seen = set()
    for record in _table(files, "note/discharge.csv", ["hadm_id", "text"]):
        stay, text = record.fields["hadm_id"], record.fields["text"]
        if text and (stay in procedures or stay in diagnoses) and (stay, hash(text)) not in seen:
            seen.add((stay, hash(text)))
            notes.append((stay, _plain(text), record.where))
    stays = [stay for stay, _, _ in notes]
    kept = [(codes, _frequent(codes, stays)) for codes in (procedures, diagnoses)]
    for stay, text, where in notes:
        target = [code for codes, wanted in kept for code in codes.get(stay, []) if code in wanted]
        if target:
            yield Record({"text": text, "target": target}, where)


def _codes(files: list[SourceFile], name: str, *, dotted: bool) -> dict[str, list[str]]:
    """Stay -> its distinct ICD-10 codes, sorted."""
    by_stay: dict[str, set[str]] = {}
    for record in _table(files, name, ["hadm_id", "icd_code", "icd_version"]):
        code = record.fields["icd_code"].strip().replace(".", "")
        if code and record.fields["icd_version"] == "10":
            by_stay.setdefault(record.fields["hadm_id"], set()).add(
                f"{code[:3]}.{code[3:]}" if dotted else code
            )
    return {stay: sorted(codes) for stay, codes in by_stay.items()}


def _frequent(codes: dict[str, list[str]], stays: list[str]) -> set[str]:
    counts = Counter(code for stay in stays for code in codes.get(stay, []))
    return {code for code, count in counts.items() if count >= MIN_STAYS}


def _plain(text: str) -> str:
    return " ".join(_NUMBERS.sub(" ", _OTHER.sub(" ", text.lower())).split())


def _table(files: list[SourceFile], name: str, columns: list[str]) -> Iterator[Record]:
    return with_columns(records(RowsReader(kind="rows"), files, [only(files, name).name]), columns)
