"""What a suite is: `tasks/SUITE/suite.yaml`, read by one strict model.

Python names no suite. Whatever differs between suites is said in these files; where a suite needs code of its
own (published tables, a leaderboard's layout), the file names the function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry.blocks import OF_ALL, AnswerBudget, Reference, RowLabel, SuiteOfficial
from medtasks_ext.registry.folders import own_folders, tasks_folder
from medtasks_ext.registry.functions import answer_kinds, function_named
from medtasks_ext.strict import Config, Strict, read_mapping, validated

#: Code of a country that people write for the language -> the language's; some are another language's code.
LANGUAGE_OF_COUNTRY = {
    "br": "pt", "cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "kr": "ko", "se": "sv",
    "ua": "uk", "vn": "vi",
}  # fmt: skip


SUITE_FILE = "suite.yaml"
#: In place of the suite's name, for datasets that belong to none.
NO_SUITE = "own"
#: The value of an axis on which such a dataset has no place.
UNSPECIFIED = "unspecified"
#: With these begin names of groups that are of no suite.
_TAKEN = (NO_SUITE, "medtasks")
VOCABULARY_FILE = Path(__file__).parent / "vocabulary.yaml"
#: shared axis -> its list in the vocabulary
TERMS = {
    "language": "languages",
    "task_type": "task_types",
    "specialties": "specialties",
    "stage": "stages",
    "document_types": "document_types",
    "access": "access",
}
#: Names that no axis of a suite may have: they mean something else where axes are named.
RESERVED = frozenset(
    {*TERMS, "all", "suite", "id", "kind", "name", "summary", "url", "licence", "citation", "n_test", "axes"}
    | {"open_questions", "primary_metric", "oracle_max", "gold_loss", "published_strategy", "official_budget"}
    | {"control_of", "draft", "source_terms", "scoreable", "pinned", "use", "third_party_api", "metric"}
    | {"version", "strategies", "assigned", "added", "left_out"}
)

AssignedBy = Literal["paper", "medtasks"]
Terms = dict[str, str]


@lru_cache(maxsize=1)
def vocabulary() -> dict[str, Terms]:
    """The controlled vocabulary that all suites share: list -> value id -> title."""
    lists: dict[str, Terms] = yaml.safe_load(VOCABULARY_FILE.read_text(encoding="utf-8"))
    return lists


@lru_cache(maxsize=64)
def language_name(code: str) -> str | None:
    """In English; None for anything that is no code of ISO 639, or longer than need be."""
    if (name := vocabulary()["languages"].get(code)) or len(code) != 3:
        return name
    from iso639 import Language, LanguageNotFoundError  # hardly any dataset has such a language

    try:
        language = Language.from_part3(code)
    except LanguageNotFoundError:
        return None
    return None if language.part1 else language.name


def no_language(words: str) -> str:
    """That a text is no code, and the one that it stands for: `ko` for `kor`, `Korean` and `kr`."""
    from iso639 import Language, LanguageNotFoundError

    try:
        language = Language.match(words, strict_case=False)
        meant: str | None = language.part1 or language.part3
    except LanguageNotFoundError:
        meant = LANGUAGE_OF_COUNTRY.get(words.lower())
    hint = f" (did you mean {meant}?)" if meant else ""
    return f"{words!r} is no code of ISO 639, two letters where a language has them, else three{hint}"


def _known_access(value: str | None) -> str | None:
    known = vocabulary()["access"]
    if value is not None and value not in known:
        raise ValueError(f"{value!r} is not in the vocabulary of access{near(value, known)}")
    return value


_NAME = r"^[a-z0-9]+(_[a-z0-9]+)*$"
Identifier = Annotated[str, StringConstraints(pattern=_NAME)]


class AxisPart(Strict):
    title: str  # what readers see
    tasks: list[str] = []  # what the paper's taxonomy counts there


class Axis(Strict):
    title: str | None = None  # what readers see; by default its name
    values: dict[Identifier, str] = {}  # value -> title, in the order of display
    within: str | None = None  # the axis whose values it divides
    parts: dict[str, dict[Identifier, AxisPart]] = {}  # value of that axis -> value of this one -> what it is

    @model_validator(mode="after")
    def _either(self) -> Axis:
        if bool(self.values) == bool(self.parts) or bool(self.parts) != bool(self.within):
            raise ValueError("give either `values`, or `within` and `parts`")
        return self

    @cached_property
    def titles(self) -> Terms:
        return self.values or {
            name: part.title for parts in self.parts.values() for name, part in parts.items()
        }

    def known(self, within: str | None) -> Terms:
        return self.values or {name: part.title for name, part in self.parts.get(within or "", {}).items()}


class Lines(Strict):
    answer: str  # asks for the answer at once
    reason: str  # asks to reason first


class PublishedConditions(Strict):
    """How the suite's paper asked its models, as far as it says."""

    source: str  # where it says so
    decoding: str | None = None  # of all models but the exceptions
    except_models: list[str] = []  # beginnings of names of models that were decoded otherwise
    jury: str | None = None  # the judges of open answers, as the bundled jury names them

    def decoding_of(self, model: str) -> str | None:
        return None if model.startswith(tuple(self.except_models)) else self.decoding


class Published(Strict):
    entries: Reference  # function of (registry, suite) that gives the models as lines of a leaderboard
    note: str  # what to know before a row of one's own is set beside a published one
    conditions: PublishedConditions | None = None  # how the models were asked
    costs: Reference | None = None  # function of (suite) that gives model -> (US dollars, the rule in words)
    aliases: dict[str, str] = {}  # names of datasets in the published tables -> ours


class Suite(Strict):
    """A benchmark suite, as `suite.yaml` declares it."""

    title: str  #: the name as its paper writes it.
    about: str  #: one line for who adds a dataset.
    citation: str  #: BibTeX key of the paper.
    order: int = 100  #: place among the suites in tables.
    #: axes that only this suite has: name -> `title` and `values` (id -> title); each dataset has a value on
    #: each. An axis that divides another has `within`, and `parts`: value of that axis -> id -> `{title,
    #: tasks}`.
    axes: dict[Identifier, Axis] = {}
    #: axis -> what the names of its groups begin with, after the suite's own name. Shared axes may form
    #: groups, too.
    groups: dict[str, str]
    short: dict[str, Identifier] = {}  #: value -> its name in groups.
    sets: dict[str, dict[Identifier, list[str]]] = {}  #: axis -> name of a group -> the values that it holds.
    #: axes without overlap, whose groups are the members of the suite's own group.
    partition: list[str] = Field(min_length=1)
    main_axes: list[str] = []  #: axes that tables on a terminal show.
    sections: str  #: the axis that divides the suite's page of the catalogue.
    #: the axis over whose values the suite's own figure is the mean, each counting once.
    averaged_over: str | None = None
    left_out: dict[str, list[str]] = {}  #: axis -> datasets that the means of its groups leave out.
    #: false: its tasks are measured unlike each other. No group of several of them has a score.
    averaged: bool = True
    mean_rule: str = ""  #: these rules in words, for readers of a report.
    #: false: the suite is shown beside the others. Its datasets are in its own groups alone, and in no mean
    #: with tasks of other suites.
    in_totals: bool = True
    assigned_by: AssignedBy  #: who says what a dataset's specialties and stage are: `paper` or `medtasks`.
    #: the paper's word for who gets data -> open, gated or private; null where the word does not say.
    access: dict[str, Annotated[str | None, AfterValidator(_known_access)]] = {}
    #: values besides the shared vocabulary: task_types, specialties, stages or document_types -> id -> title.
    vocabulary: dict[Literal["task_types", "specialties", "stages", "document_types"], Terms] = {}
    #: language -> `answer` and `reason`, the line in which prompts of the strategies differ; else the suite's
    #: English lines, else those of medtasks.
    strategy_lines: dict[str, Lines] = {}
    #: the turn in which the instructions of its datasets stand, `system` or `user`, where they do not say.
    instruction_role: Literal["system", "user"] = "user"
    answers: list[str] = []  #: the kinds of answers that its datasets have; by default any.
    jury: str | None = None  #: the bundled jury that judges its open-ended answers.
    #: dotted name of the class that knows the files of rows that the authors give out for each dataset of the
    #: paper, and their public release (`rows.places.AuthorsFiles`).
    files: Reference | None = None
    official: SuiteOfficial | None = None  #: where its own words stand, and how they become prompts.
    #: tokens of an answer in the suite's own runs, for datasets without a figure of their own: `at_most`, and
    #: `share_of_context` where it depends on the model.
    official_budget: AnswerBudget | None = None
    #: dotted name of a function that gives the paper's own interval of a metric on the resamples, to stand
    #: beside ours.
    official_interval: Reference | None = None
    #: column -> what rows may say in it of what they are about, whatever their task; scores are shown apart
    #: by it: `values`, `none`, `most`.
    row_labels: dict[Identifier, RowLabel] = {}
    #: what the paper prints of models: functions `entries` and `costs` by dotted name, `note`, `aliases` of
    #: datasets, and `conditions` (`source`, `decoding`, `except_models`, `jury`).
    published: Published | None = None
    #: dotted name of a function of (run, out, registry, suite, *, own_words) that writes the layout of a
    #: leaderboard, and gives the written files (`path`, `n` rows, `notes`) and why tasks were left out.
    leaderboard: Reference | None = None
    #: the paper's datasets: folders beside the file. The suite's own groups are the means over these.
    datasets: list[str] = []

    _folder: Path = PrivateAttr(default=Path())

    def model_post_init(self, context: Any, /) -> None:
        self._folder = context or Path()

    @cached_property
    def id(self) -> str:
        return self._folder.name

    @property
    def file(self) -> Path:
        return self._folder / SUITE_FILE

    @property
    def where(self) -> str:
        return f"{self.id}/{SUITE_FILE}"

    @field_validator("axes")
    @classmethod
    def _axes_have_names_of_their_own(cls, axes: dict[str, Axis]) -> dict[str, Axis]:
        for name, axis in axes.items():
            if name in RESERVED:
                raise ValueError(f"{name} is no name for an axis: it means something else")
            if axis.within is not None:
                outer = axes.get(axis.within)
                if outer is None or list(axes).index(axis.within) > list(axes).index(name):
                    raise ValueError(f"{name}.within: {axis.within!r} is no axis before it")
                if wrong := sorted(axis.parts.keys() - outer.titles.keys()):
                    what = f"{name}.parts: {wrong[0]!r} is no value of {axis.within}"
                    raise ValueError(what + near(wrong[0], outer.titles))
        return axes

    @field_validator("groups", "sets", "left_out", "partition", "main_axes", "sections", "averaged_over")
    @classmethod
    def _is_an_axis(cls, given: Any, info: ValidationInfo) -> Any:
        known = [*(info.data.get("axes") or {}), *TERMS]
        if info.field_name in ("partition", "main_axes", "left_out") and "groups" in info.data:
            known = list(info.data["groups"])
        for name in [given] if isinstance(given, str) else given or []:
            if name not in known:
                what = "has no groups" if name in TERMS else "is no axis"
                raise ValueError(f"{name!r} {what}{near(name, known)}: {', '.join(known)}")
        return given

    @field_validator("vocabulary")
    @classmethod
    def _adds_to_the_vocabulary(cls, given: dict[str, Terms]) -> dict[str, Terms]:
        for kind, terms in given.items():
            for value in terms:
                if value in vocabulary()[kind]:
                    raise ValueError(f"{kind}: {value!r} is in {VOCABULARY_FILE.name} already: leave it out")
        return given

    @field_validator("answers")
    @classmethod
    def _are_kinds(cls, given: list[str]) -> list[str]:
        known = answer_kinds()
        for kind in given:
            if kind not in known:
                raise ValueError(f"{kind!r} is no kind of answers{near(kind, known)}: {', '.join(known)}")
        return given

    @field_validator("strategy_lines")
    @classmethod
    def _are_languages(cls, given: dict[str, Lines]) -> dict[str, Lines]:
        for code in given:
            if language_name(code) is None:
                raise ValueError(no_language(code))
        return given

    @model_validator(mode="after")
    def _values_are_known(self) -> Suite:
        if not self.averaged and (self.averaged_over or self.left_out):
            raise ValueError("averaged: false leaves no mean for `averaged_over` or `left_out`")
        for axis, named in self.sets.items():
            for value in (value for values in named.values() for value in values):
                known = self.titles(axis)
                if value not in known:
                    raise ValueError(f"sets.{axis}: {value!r} is no value of it{near(value, known)}")
        owner: dict[str, str] = {}
        for name, axis in self._names():
            if other := owner.get(name):
                what = f"groups: {name!r} is of {other} and of {axis}"
                raise ValueError(f"{what}: rename one, or give a prefix")
            owner[name] = axis
        every = {value for axis in self.axes.values() for value in axis.titles}
        if wrong := sorted(self.short.keys() - every):
            raise ValueError(f"short: {wrong[0]!r} is no value of an axis{near(wrong[0], every)}")
        for key, names in self.listings.items():
            if twice := [name for name, n in Counter(names).items() if n > 1]:
                raise ValueError(f"{key}: {twice[0]!r} is listed more than once: leave one")
        return self

    @property
    def listings(self) -> dict[str, list[str]]:
        """Key of the file -> the datasets that it lists."""
        left_out = {f"left_out.{axis}": names for axis, names in self.left_out.items()}
        return {"datasets": self.datasets, **left_out}

    def axis_faults(self, given: Mapping[str, str]) -> Iterator[str]:
        for name in (name for name in given if name not in self.axes):
            known_axes = f"{self.where} has: {', '.join(self.axes) or 'none'}"
            if self.id == NO_SUITE:
                known_axes = "only datasets of a suite have axes (docs/add_a_dataset.md)"
            yield f"{name}: unknown axis{near(name, self.axes)}; {known_axes}"
        for name, axis in self.axes.items():
            known = axis.known(given.get(axis.within) if axis.within else None)
            if name not in given:
                values = f": one of {', '.join(known)}" if known else ""
                yield f"{name}: missing key (an axis of {self.where}){values}"
            elif given[name] not in known and known:  # nothing is known within a value that is wrong itself
                yield (
                    f"{name}: {given[name]!r} is no value of {name}{near(given[name], known)}: "
                    f"{', '.join(known)} (a new one goes into {self.where}, under axes.{name})"
                )

    def _names(self) -> Iterator[tuple[str, str]]:
        yield from ((value, "access") for value in (*vocabulary()["access"], "scoreable", "pinned"))
        yield from ((name, f"sets.{axis}") for axis, named in self.sets.items() for name in named)
        for axis, prefix in self.groups.items():
            yield from ((prefix + self.short.get(value, value), axis) for value in self.titles(axis))

    @cached_property
    def labels(self) -> Mapping[str, RowLabel]:
        """Column -> what rows of its datasets may say in it, `difficulty` among them."""
        # its own come first: a document's hash, by which runs are paired, follows from the order
        return {**self.row_labels, **OF_ALL, **self.row_labels}

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(f"{self.id}/{name}" for name in self.datasets)

    def lists(self, key: str) -> bool:
        """Whether a dataset, as `SUITE/NAME`, is among those that its own groups are the means over."""
        return key in self._listed

    def leaves_out(self, axis: str, key: str) -> bool:
        """Whether the means of an axis' groups leave out a dataset, as `SUITE/NAME`."""
        return key in (f"{self.id}/{name}" for name in self.left_out.get(axis, ()))

    def terms(self, kind: str) -> Terms:
        return {**vocabulary()[kind], **self.vocabulary.get(kind, {})}  # type: ignore[call-overload]

    def titles(self, axis: str) -> Terms:
        return self.axes[axis].titles if axis in self.axes else self.terms(TERMS[axis])

    def title_of_value(self, axis: str, value: str) -> str:
        """What readers see of a value, which another suite may have added to the vocabulary."""
        name = language_name(value) if axis == "language" else None
        return self.titles(axis).get(value) or name or value

    def title_of(self, axis: str) -> str:
        return (self.axes[axis].title if axis in self.axes else None) or axis.replace("_", " ")

    def group_name(self, axis: str, value: str) -> str | None:
        """The zero-shot name of the group of a value; None where the axis has no groups."""
        return None if axis not in self.groups else self.named(self.groups[axis], value)

    def named(self, prefix: str, value: str) -> str:
        return f"{self.id}_{prefix}{self.short.get(value, value)}"


def suite_of(folder: Path) -> Suite:
    """The suite of a dataset folder: the one beside whose file it lies; none of the papers' for others."""
    above = folder.absolute().parent
    if (above / SUITE_FILE).is_file() or above.parent == tasks_folder().absolute():
        return read_suite(above)
    return no_suite()


def no_suite() -> Suite:
    """In place of a suite, for datasets that belong to none, so that they have groups and rows."""
    files = (folder / VOCABULARY_FILE.name for folder in own_folders())
    return _no_suite(tuple((file, file.stat().st_mtime_ns) for file in files if file.is_file()))


@lru_cache(maxsize=8)
def _no_suite(files: tuple[tuple[Path, int], ...]) -> Suite:
    said: Config = {
        "title": "Own datasets",
        "about": "datasets of your own that belong to no suite",
        "citation": "",
        "order": 1000,
        "groups": {"language": "", "task_type": "", "specialties": "spec_", "stage": "stage_"},
        "partition": ["language"],
        "main_axes": ["language", "task_type"],
        "sections": "task_type",
        "assigned_by": "medtasks",
    }
    # nobody needs to say where a dataset of no suite belongs
    unsaid = ("task_types", "document_types", "specialties", "stages")
    added: dict[str, Terms] = {kind: {UNSPECIFIED: "Not specified"} for kind in unsaid}
    for file, _ in files:
        own = _validated({**said, "vocabulary": read_mapping(file)}, file, Path(NO_SUITE))
        for kind, terms in own.vocabulary.items():
            added[kind] = {**added.get(kind, {}), **terms}
    return Suite.model_validate({**said, "vocabulary": added}, context=Path(NO_SUITE))


def check_suite_name(file: Path, others: Iterable[Path]) -> None:
    """Refuse a suite whose groups could have the names of `others`."""
    name = file.parent.name
    fault = ""
    if not re.fullmatch(_NAME, name):
        fault = "is no name of a suite: use lower-case letters, digits and single underscores"
    taken = {**dict.fromkeys(_TAKEN, "what is of no suite"), **{one.parent.name: str(one) for one in others}}
    for other, owner in taken.items():
        if name == other:
            fault = f"is taken by {owner}"
        elif name.startswith(f"{other}_") or other.startswith(f"{name}_"):
            fault = f"could be part of the names of groups of {other} ({owner})"
    if fault:
        what = f"the suite's name {name!r} {fault}"
        raise MedtasksError(what, where=file, remedy="rename the suite's folder, and its tasks with it")


def read_suite(folder: Path) -> Suite:
    """The suite whose datasets lie in a folder."""
    file = folder / SUITE_FILE
    try:
        facts = file.stat()
    except OSError:
        what = f"the suite {folder.name} is not declared: no such file"
        remedy = 'write it (docs/keys.md, "suite.yaml"), or copy it from the repository'
        raise MedtasksError(what, where=file, remedy=remedy) from None
    return _read(file, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=64)
def _read(file: Path, _time: int, _size: int) -> Suite:
    return _validated(read_mapping(file), file, file.parent)


def _validated(said: Mapping[str, Any], file: Path, folder: Path) -> Suite:
    remedy, known = "docs/keys.md lists the keys", Suite.model_fields
    return validated(
        lambda: Suite.model_validate(dict(said), context=folder), where=file, remedy=remedy, known=known
    )


def suites_below(folders: Iterable[Path]) -> dict[str, Suite]:
    """The suites that files declare, in their order; files that cannot be read are left out."""
    suites = []
    for folder in folders:
        try:
            suites.append(read_suite(folder))
        except MedtasksError:
            continue
    return {suite.id: suite for suite in sorted(suites, key=lambda suite: (suite.order, suite.id))}


def function(suite: Suite, reference: str) -> Callable[..., Any]:
    code: Callable[..., Any] = function_named(reference, where=suite.file)
    return code
