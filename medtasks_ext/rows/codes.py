"""The forms of codes of medical classifications."""

from __future__ import annotations

import re

#: System -> the form of its codes. Forms alone: whether a code exists, only the owner's list can tell.
CODE_SYSTEMS: dict[str, re.Pattern[str]] = {
    # WHO, ICD-10 volume 2; the clinical modifications (CM, ES, GM) have up to four characters behind the dot
    "ICD-10": re.compile(r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\.?"),
    "ICD-10 category": re.compile(r"[A-Z]\d[0-9A-Z]"),
    "ICD-10 subcategory": re.compile(r"[A-Z]\d[0-9A-Z]\.[0-9A-Z]{1,4}"),
    "ICD-10 chapter": re.compile(r"X{0,2}(?:I{1,3}|I?V|VI{1,3}|I?X)?"),
    # CMS, ICD-10-PCS reference manual: seven characters without I and O; annotators may stop at the fourth
    "ICD-10-PCS": re.compile(r"[0-9A-HJ-NP-Z]{4}(?:[0-9A-HJ-NP-Z]{3})?", re.IGNORECASE),
    "ICD-10-CM or PCS": re.compile(r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\.?|[0-9A-HJ-NP-Z]{7}"),
    # WHO, ICD-O-3: morphology, behaviour; a grade or /H where the annotators of Cantemist add it
    "ICD-O": re.compile(r"\d{4}/\d{1,2}(?:/H)?"),
    # SNOMED International: 6 to 18 digits
    "SNOMED CT": re.compile(r"[1-9]\d{5,17}"),
    # NLM: unique identifiers of descriptors, and of supplementary concepts
    "MeSH": re.compile(r"[CD]\d{6}(?:\d{3})?"),
}
