"""The forms of codes of medical classifications, and which codes exist where their list may be copied."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import yaml

#: System -> the form of its codes, in either case. Whether a code exists: `begins_as_none`.
CODE_SYSTEMS: dict[str, re.Pattern[str]] = {
    name: re.compile(form, re.IGNORECASE)
    for name, form in {
        # WHO, ICD-10 volume 2; clinical modifications have up to four characters behind the dot
        "ICD-10": r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\.?",
        "ICD-10 category": r"[A-Z]\d[0-9A-Z]",
        # CMS, ICD-10-PCS reference manual: seven characters, no I and O; annotators may stop at the fourth
        "ICD-10-PCS": r"[0-9A-HJ-NP-Z]{4}(?:[0-9A-HJ-NP-Z]{3})?",
        "ICD-10-CM or PCS": r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\.?|[0-9A-HJ-NP-Z]{7}",
        # WHO, ICD-O-3: morphology, behaviour; a grade or /H where the annotators of Cantemist add it
        "ICD-O": r"\d{4}/\d{1,2}(?:/H)?",
        # SNOMED International: 6 to 18 digits
        "SNOMED CT": r"[1-9]\d{5,17}",
        # NLM: unique identifiers of descriptors, and of supplementary concepts
        "MeSH": r"[CD]\d{6}(?:\d{3})?",
    }.items()
}

#: System -> the lists that have what its codes begin with. Those of ICD-O and SNOMED CT are their owners' to
#: give; of MeSH none is kept here.
_LISTS = {
    "ICD-10": ("ICD-10-CM",),
    "ICD-10 category": ("ICD-10-CM",),
    "ICD-10-PCS": ("ICD-10-PCS",),
    "ICD-10-CM or PCS": ("ICD-10-CM", "ICD-10-PCS"),
}


def begins_as_none(system: str, code: str) -> bool:
    """Whether a code begins as no code of its classification does.

    Compared are the three characters of a category of ICD-10-CM, or of a table of ICD-10-PCS: these are much
    the same in all editions. A nation's own categories are not in the list, so one code proves nothing.

    Args:
        system: a name of `CODE_SYSTEMS`.
        code: that has the system's form.
    """
    lists = _LISTS.get(system)
    return lists is not None and not any(code[:3].upper() in _beginnings()[name] for name in lists)


@cache
def _beginnings() -> dict[str, frozenset[str]]:
    listed = yaml.safe_load(Path(__file__).with_name("code_lists.yaml").read_text("utf-8"))
    return {
        "ICD-10-CM": frozenset(
            letter + rest for letter, given in listed["ICD-10-CM"].items() for rest in given.split()
        ),
        "ICD-10-PCS": frozenset(
            system + operation for system, given in listed["ICD-10-PCS"].items() for operation in given
        ),
    }
