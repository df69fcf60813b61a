"""Under which terms a dataset is: what may be done with its scores, and where its text may go.

The records stand in `licences.yaml`, one for each source, so that a dataset has the same terms in
however many suites it is. A card names one, or holds a record of its own.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from pydantic import Field, field_validator, model_validator

from medtasks_ext.errors import some
from medtasks_ext.strict import Strict, validated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

    from medtasks_ext.jsonfile import Json

LICENCES_FILE = Path(__file__).parent / "licences.yaml"
Use = Literal["any", "share-alike", "research", "unclear"]
Allowed = Literal["yes", "no", "unclear"]
#: What SPDX expressions do not have: nothing is stated there; nobody knows.
NONE, UNKNOWN = "NONE", "NOASSERTION"
_NAMED = 3  # sources that a line names; `ls` lists all
#: Licences of SPDX that let scores be used for anything.
_PERMISSIVE = (
    "MIT", "Apache-2.0", "BSD-", "CC-BY-1", "CC-BY-2", "CC-BY-3", "CC-BY-4", "CC0-", "ODC-By-", "PDDL-",
)  # fmt: skip
#: Licences that datasets often have, which a mistyped one is compared with.
COMMON = (
    "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "CC0-1.0", "MIT", "Apache-2.0",
)  # fmt: skip
_COPYLEFT = ("CC-BY-SA-", "GPL-", "LGPL-", "AGPL-", "ODbL-")
_SAID: Mapping[Use, str] = {
    "research": "for research alone",
    "share-alike": "share-alike",
    "unclear": "with unclear terms",
}


class Evidence(Strict):
    """Where the terms stand."""

    address: str = Field(pattern="^https?://")  #: of the terms, or of the place where they should stand.
    #: the day on which they were read there, or in a stored copy; nothing where nobody has.
    seen: datetime.date | None = None


class Licence(Strict):
    """The terms of a dataset; a text in its place is the name of a record, or a licence of SPDX."""

    #: the licence, as SPDX writes it (https://spdx.org/licenses); `LicenseRef-NAME` for terms that SPDX does
    #: not have, NONE where the place states none, NOASSERTION where that is not known.
    spdx: str
    evidence: Evidence | None = None  #: where that stands.
    use: Use  #: what the data, and scores on them, may serve.
    third_party_api: Allowed = "unclear"  #: whether its text may be sent to a service of someone else.
    note: str = ""  #: what the terms say besides, in a few words.

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return _of_text(given) if isinstance(given, str) else given

    @field_validator("third_party_api", mode="before")
    @classmethod
    def _from_bool(cls, given: Any) -> Any:
        """YAML reads a bare yes or no as true or false."""
        return {True: "yes", False: "no"}[given] if isinstance(given, bool) else given

    @field_validator("spdx")
    @classmethod
    def _is_expression(cls, given: str) -> str:
        if given in (NONE, UNKNOWN):
            return given
        try:
            return canonicalize_license_expression(given)
        except InvalidLicenseExpression:
            what = f"{given!r} is no licence of SPDX"
            raise ValueError(f"{what}: write its id, LicenseRef-NAME, {NONE} or {UNKNOWN}") from None

    @model_validator(mode="after")
    def _is_no_wider(self) -> Licence:
        if self.use == "any" and use_of(self.spdx) != "any":
            raise ValueError(f"use: {self.spdx} does not allow any use")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return {"anyOf": [{"type": "string"}, handler(core)]}

    @property
    def title(self) -> str:
        """The licence for a reader, with what the terms say besides."""
        plain = {NONE: "none stated", UNKNOWN: "not known"}
        name = plain.get(self.spdx, self.spdx.removeprefix("LicenseRef-"))
        return f"{name}: {self.note}" if self.note else name

    @property
    def place(self) -> str:
        return self.evidence.address if self.evidence else ""

    def __str__(self) -> str:
        """The value by which `ls licence=…` finds it."""
        return self.spdx


def use_of(spdx: str) -> Use:
    """What a licence of SPDX lets scores be used for; `unclear` where it is none that we know."""
    if "-NC-" in f"{spdx}-":
        return "research"
    if spdx.startswith(_COPYLEFT):
        return "share-alike"
    return "any" if spdx.startswith(_PERMISSIVE) else "unclear"


@lru_cache(maxsize=1)
def licences() -> dict[str, Licence]:
    remedy, known = "docs/add_a_dataset.md says what a record holds", Licence.model_fields
    return {
        name: validated(
            partial(Licence.model_validate, record), name, where=LICENCES_FILE, remedy=remedy, known=known
        )
        for name, record in yaml.safe_load(LICENCES_FILE.read_text(encoding="utf-8")).items()
    }


def _of_text(text: str) -> Any:
    if named := licences().get(text):
        return named.model_dump()
    try:
        spdx = canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        return {"spdx": UNKNOWN, "use": "unclear", "note": text}
    use = use_of(spdx)
    return {"spdx": spdx, "use": use, "third_party_api": "unclear" if use == "unclear" else "yes"}


def is_no_name(text: str) -> bool:
    """Whether a text of one word looks like the name of a licence, and is none of SPDX and of ours."""
    return bool(text) and " " not in text and text not in licences() and _of_text(text)["spdx"] == UNKNOWN


#: Datasets whose terms a plan, and the start of a run, name one by one.
FEW = 10


def restrictions(terms: Iterable[tuple[str, Licence]], *, named: int | None = None) -> str:
    """What the terms of datasets restrict, in one line; empty where they restrict nothing.

    `terms`: (dataset's id, its terms). Of more than `named`, numbers alone, and the command that names them.
    """
    known = list(terms)
    names = named is None or len(known) <= named
    parts = [(words, [item for item in known if item[1].use == use]) for use, words in _SAID.items()]
    closed = [item for item in known if item[1].third_party_api == "no"]
    parts.append(("whose text may go to no third party", closed))
    shown = ((f"{len(items)} {words}", items) for words, items in parts if items)
    said = [f"{words} ({_named(items)})" if names else words for words, items in shown]
    if not said:
        return ""
    n, which = len({name for name, _ in known}), "" if names else " (which: medtasks data status TASKS)"
    return f"terms of {n} dataset{'' if n == 1 else 's'}: {'; '.join(said)}{which}"


def _named(items: list[tuple[str, Licence]]) -> str:
    """The first datasets of a list with the addresses of their terms, one of each place."""
    by_place: dict[str, list[str]] = {}
    for name, licence in items:
        by_place.setdefault(licence.place, []).append(name)
    shown = [f"{some(names, 1, '')} {place}".rstrip() for place, names in by_place.items()]
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f", and those of {more} more sources" if more > 0 else "")
