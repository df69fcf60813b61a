"""The forms of codes of medical classifications."""

from __future__ import annotations

import re

#: System -> the form of its codes, in either case.
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
