"""The facts about a dataset: strict, each written in one place; and the terms under which it is.

Facts that move a prompt, a budget, a score or a permission stand in its task file, the others in its card.
Tags, variants, groups, documentation and the axes of reports are derived from them. What a fact may be
depends on the suite in whose folder the dataset lies (`suites.py`).

The records of terms stand in `licences.yaml`, one for each source, so that a dataset has the same terms in
however many suites it is. A card names one, or holds a record of its own.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from pydantic import (
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema

from medtasks_ext.errors import near, some
from medtasks_ext.registry.functions import answer_kinds
from medtasks_ext.registry.strategies import STRATEGIES, Strategy
from medtasks_ext.registry.suites import (
    NO_SUITE,
    TERMS,
    VOCABULARY_FILE,
    AssignedBy,
    Suite,
    language_name,
    no_language,
)
from medtasks_ext.strict import Strict, validated
from medtasks_ext.tables import cell

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
    "research": "only for research",
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


@dataclass(frozen=True)
class Facts:
    suite: Suite  # whose dataset it is
    kind: str | None = None  # the dataset's answer kind, as far as it is known
    download: bool = False  # whether its rows come with a download
    primary: str = ""  # the metric that `score` repeats, where the family of the answers says one


def _facts(info: ValidationInfo) -> Facts:
    assert isinstance(info.context, Facts), "read a record with `Metadata.read`"
    return info.context


@dataclass(frozen=True)
class _InVocabulary:
    """Marks a text that must be a value of a shared axis."""

    axis: str

    def check(self, value: str, info: ValidationInfo) -> str:
        suite = _facts(info).suite
        known = suite.terms(TERMS[self.axis])
        if self.axis == "language":
            if language_name(value) is None:
                raise ValueError(
                    no_language(value) if value else "missing key: a code of ISO 639, such as en"
                )
        elif value not in known:
            what = f"{value!r} is not in" if value else "missing key: a value of"
            what += f" the vocabulary of {TERMS[self.axis]}{near(value, known)}"
            place = f"{suite.where}, under vocabulary.{TERMS[self.axis]},"
            place += f" or for all suites into registry/{VOCABULARY_FILE.name}"
            if suite.id == NO_SUITE:
                place = f"{VOCABULARY_FILE.name} in your folder, under {TERMS[self.axis]}"
            add = f" (a new one goes into {place})" if self.axis != "access" else ""  # access is complete
            raise ValueError(f"{what}: {', '.join(known)}{add}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.with_info_after_validator_function(self.check, handler(source))


Language = Annotated[str, _InVocabulary("language")]
TaskType = Annotated[str, _InVocabulary("task_type")]
Specialty = Annotated[str, _InVocabulary("specialties")]
StageId = Annotated[str, _InVocabulary("stage")]
AccessId = Annotated[str, _InVocabulary("access")]
DocumentType = Annotated[str, _InVocabulary("document_types")]


class SourceTerms(Strict):
    """The suite's own words, where they are not those that its `suite.yaml` maps to ours."""

    access: str | None = None  #: who can get the data.
    specialties: list[str] = []  #: medical specialties.

    @field_validator("access")
    @classmethod
    def _is_a_word_of_the_suite(cls, given: str | None, info: ValidationInfo) -> str | None:
        suite = _facts(info).suite
        if given is not None and given not in (known := suite.access):
            where = f"(a new one goes into {suite.where}, under access)"
            what = f"{given!r} is no word of the suite{near(given, known)}"
            raise ValueError(f"{what}: {', '.join(known)} {where}")
        return given


class TaskFacts(Strict):
    """Facts in a task file that move a prompt, a budget, a score or a permission, at its top level."""

    name: str  #: the suite's own name of the dataset.
    language: Language  #: of the documents, a code of ISO 639.
    #: who can get the data.
    access: AccessId = "private"  # who does not say it gives nothing away
    #: the metric that `score` repeats, where the answer kind does not say (`metrics` of `suite.yaml`).
    primary_metric: str = Field(default="", validate_default=True)
    #: what a perfect answer gets; 1 unless the official rule prevents it; `unbounded` if it can exceed 1;
    #: `per_document` if it depends on the rows, and the answer format knows.
    oracle_max: float | Literal["unbounded", "per_document"] = 1.0
    #: how much of that the suite's own reading may lose on its own rows; a larger loss means that the gold
    #: answers are wrong.
    gold_loss: float = Field(default=0.0, ge=0, lt=1)
    #: the strategy whose prompt asks as the paper's did; a score that the paper calls zero-shot stands beside
    #: ours of that strategy.
    published_strategy: Literal["zero_shot", "cot"] = "zero_shot"
    #: in which its prompts are built. Where the suite's own protocol has one way to ask, that is
    #: `[zero_shot]`.
    strategies: tuple[Strategy, ...] = STRATEGIES
    #: tokens that an answer may have in the suite's own runs of models that do not reason.
    official_budget: int | None = Field(default=None, ge=1)

    @field_validator("strategies")
    @classmethod
    def _in_order(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if given[:1] != STRATEGIES[:1] or list(given) != [item for item in STRATEGIES if item in given]:
            known = ", ".join(STRATEGIES)
            raise ValueError(f"name `zero_shot` and what else there is, in this order: {known}")
        return given

    @field_validator("primary_metric")
    @classmethod
    def _of_the_answer_kind(cls, given: str, info: ValidationInfo) -> str:
        facts = _facts(info)
        if metric := given or facts.primary:
            return metric
        if facts.kind not in answer_kinds():  # the fault is there, and whoever reads the file says so
            return given
        raise ValueError(f"missing key: answers of kind {facts.kind!r} do not say which metric is the score")


class Card(Strict):
    """`card.yaml`: what a reader wants to know of a dataset."""

    summary: str  #: one sentence: what goes in, what comes out.
    task_type: TaskType  #: what is done with a document.
    document_types: list[DocumentType] = Field(min_length=1)  #: the kinds of documents.
    #: medical specialties; a task counts fully in each of them.
    specialties: list[Specialty] = Field(min_length=1)
    stage: StageId  #: clinical stage.
    #: the values on the suite's own axes, which its `suite.yaml` lists.
    axes: dict[str, str] = Field(default={}, validate_default=True)
    #: the suite's own words for access and specialties, where they differ.
    source_terms: SourceTerms = SourceTerms()
    url: str  #: where the data is.
    #: the terms under which it is: a name of `registry/licences.yaml`, or a record (`Licence`).
    licence: Licence
    #: BibTeX key of its source, or several; `registry/citations.bib` has the entries. Private data that
    #: belongs to no paper needs none.
    citation: str | Annotated[list[str], Field(min_length=1)] = Field(default="", validate_default=True)
    n_test: int  #: number of test documents that the paper states.
    #: rows of the test part from which the paper drew these, where it does not name the rows.
    n_rows: int | None = None
    open_questions: list[str] = []  #: what could not be settled, one sentence each.
    #: the dataset whose rows this one asks in another form, as a control, in no group.
    control_of: str | None = None
    #: why the dataset is not ready to be reported, in one sentence. It can be run, and belongs to no group.
    draft: str | None = Field(default=None, min_length=1)

    @field_validator("citation")
    @classmethod
    def _has_a_source(cls, given: str | list[str], info: ValidationInfo) -> str | list[str]:
        unpublished = info.data.get("access") == "private" and not _facts(info).suite.citation
        if not given and not unpublished:
            raise ValueError("missing key: name the source; only private data of no paper has none")
        return given

    @field_validator("axes")
    @classmethod
    def _are_axes_of_the_suite(cls, given: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if faults := list(_facts(info).suite.axis_faults(given)):
            raise ValueError("; ".join(faults))
        return given


class Metadata(Card, TaskFacts):
    """All facts about a dataset: of its task file and its card, or of `about` in a task file for both."""

    _facts: Facts = PrivateAttr()

    @classmethod
    def read(cls, record: Any, facts: Facts) -> Metadata:
        return cls.model_validate(record, context=facts)

    def model_post_init(self, context: Any, /) -> None:
        self._facts = context

    @property
    def declared(self) -> Suite:
        return self._facts.suite

    @property
    def suite(self) -> str:
        return self.declared.id

    @property
    def scoreable(self) -> bool:
        """Whether it is downloaded with its gold answers, without asking anyone."""
        return self.access == "open" and self._facts.download

    @property
    def use(self) -> Use:
        return self.licence.use

    @property
    def third_party_api(self) -> Allowed:
        return self.licence.third_party_api

    @property
    def grouped(self) -> bool:
        """Whether it belongs to groups and counts in means: it is neither a control nor a draft."""
        return not (self.control_of or self.draft)

    def assigned_by(self, axis: str) -> AssignedBy:
        """Who says the value of specialties, stage or access: the suite's paper, or medtasks."""
        if axis != "access":
            return self.declared.assigned_by
        word = self.own_terms("access")
        return "paper" if word and self.declared.access.get(word[0]) == self.access else "medtasks"

    def own_terms(self, axis: str) -> list[str]:
        """The suite's words for its access or its specialties; `[]` where it has none of its own."""
        if axis == "access":
            words = [word for word, ours in self.declared.access.items() if ours == self.access]
            return [self.source_terms.access] if self.source_terms.access else words[:1]
        return self.source_terms.specialties if axis == "specialties" else []

    def axis(self, name: str) -> list[str]:
        """The values of one axis or fact as a list, whatever its shape (`[]` where the suite has none)."""
        value: Any = self.axes.get(name, getattr(self, name, None))
        if value is None or value == "":
            return []
        return [str(item) for item in (value if isinstance(value, list) else [value])]


def terms_words(record: Metadata, link: str = "{}") -> str:
    """Licence, what it allows, and where it stands; `link` is what stands for an address."""
    licence = record.licence
    parts = [cell(licence.title), f"use: {licence.use}", f"text to a third party: {licence.third_party_api}"]
    if licence.evidence:
        seen = licence.evidence.seen
        parts.append(
            link.format(licence.place) + (f", read on {seen}" if seen else ", not read for this record")
        )
    return "; ".join(parts)
