"""Signs of what may tell who a patient is, by which rows are counted. None of them proves anything."""

from __future__ import annotations

import re

#: A word for a record number and the number, or a number as long as one.
_RECORD_NUMBER = re.compile(r"(mrn|patient|pat_?id|ssn|fallnr|fallnummer)[ _.:#-]*\d|\d{7}", re.IGNORECASE)
#: A form of address and a name. An abbreviation such as `St. Martin` is none.
_NAME = re.compile(
    r"\b(?:Herr|Herrn|Frau|Hr\.|Fr\.|Mr\.?|Mrs\.?|Ms\.?|Miss|Mme|Monsieur|Madame|Sig\.(?:ra)?|Signora?|Sra?\.|"
    r"Señora?|Senhora?|Dhr\.|Mevr\.|Dr\.?|Prof\.)\s+(?:(?:med|von|van|de|di|da)\.?\s+)*[^\W\d_a-zß-ÿ][^\W\d_]+"
)
_BIRTH = re.compile(
    r"\b(?:geb\.?|geboren(?: am)?|dob|born(?: on)?|date of birth|n[ée]e? le|nat[oa] il|nacid[oa] el)"
    r"\W{0,3}\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}",
    re.IGNORECASE,
)
#: What a text may hold -> its sign.
SIGNS = {"a name": _NAME, "a record number": _RECORD_NUMBER, "a date of birth": _BIRTH}


def looks_personal(name: str) -> bool:
    """Whether an id looks like a name or a record number."""
    words = re.split(r"[ _,.-]+", name)
    names = [word for word in words if len(word) > 1 and word.isalpha() and word[0].isupper()]
    return len(names) > 1 or _RECORD_NUMBER.search(name) is not None


def signs_in(text: str) -> list[str]:
    """What a text may hold that tells who a patient is."""
    return [what for what, sign in SIGNS.items() if sign.search(text)]
