"""Blocks of `suite.yaml` and of a task file: where a suite's own words stand; what rows say of themselves.

No official sentence is kept. The blocks name a released file by its version and hash, and places in it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from medtasks_ext.privacy import excerpt
from medtasks_ext.strict import Strict

#: Dotted name of a function or class: `package.module.name`.
Reference = Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)+$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def _plain_path(value: str) -> str:
    parts = value.split("/")
    if not value or value.startswith("/") or ".." in parts or "\\" in value:
        raise ValueError(f"{value!r} is no path inside the artefact")
    return value


InsidePath = Annotated[str, AfterValidator(_plain_path)]


class AnswerBudget(Strict):
    """Tokens that an answer may have in a suite's own runs."""

    at_most: Annotated[int, Field(ge=1)]
    share_of_context: Annotated[float, Field(gt=0, lt=1)] | None = None  # no more than this

    def tokens(self, context: int | None) -> int:
        """`context`: tokens that a model takes of prompt and answer together; None where nobody knows."""
        if context is None or self.share_of_context is None:
            return self.at_most
        return max(1, min(self.at_most, int(context * self.share_of_context)))

    @property
    def words(self) -> str:
        at_most, share = f"{self.at_most:,} tokens", self.share_of_context
        return f"{at_most}, or {share:.1%} of its context if that is less" if share else at_most


class Artefact(Strict):
    """A file that the suite's authors released, pinned."""

    #: its own file name, by which it is recognised in a folder.
    file: Annotated[str, StringConstraints(pattern=r"^[\w.+-]+$")]
    revision: str  #: version or commit, as people name it.
    #: of the file. The text of a paper has none: its passages have.
    sha256: Sha256 | None = None
    package: str | None = None  #: project on the package index that distributes it.
    #: package of Python that is installed with medtasks and whose folder it is.
    installed: Annotated[str, StringConstraints(pattern=r"^\w+$")] | None = None
    url: str | None = None  #: where it is fetched from otherwise; of a PDF the file is the text.

    @property
    def is_paper(self) -> bool:
        return self.url is not None and self.url.endswith(".pdf")

    @model_validator(mode="after")
    def _can_be_had(self) -> Artefact:
        if not (self.package or self.installed or self.url):
            raise ValueError("say where it is had: `package`, `installed` or `url`")
        if not (self.installed or self.is_paper or self.sha256):
            raise ValueError("what is fetched needs its `sha256`")
        return self


class Adapters(Strict):
    """Prompts that code of the suite's own makes of rows."""

    #: dotted name of the class that makes them (`prompts.official.words.Words`), in a module of
    #: `medtasks_ext.suites`. Its `Block` is what `official` of a task may say.
    code: Reference
    artefact: str  #: that holds the words, where a task names no others.


class Juries(Strict):
    """What the suite's own judges are asked, in Python source. `judge.official` of a task names its file."""

    artefact: str  #: that holds the files.
    folder: InsidePath | None = None  #: where they are; without it the artefact is the one file.
    template: str  #: the text of a file.
    #: what stands in that text -> Jinja template over `question`, `response`, `gold`, and `item`, the
    #: criterion that a judge is asked about with its weight before it: `[5] Asks for the age.`
    slots: dict[str, str] = {
        "{QUESTION}": "{{ question }}",
        "{RESPONSE}": "{{ response }}",
        "{GOLD_RESPONSE}": "{{ gold }}",
    }
    criteria: str | None = None  #: the dictionary of a file whose keys are the axes, where judges rate axes.


class SuiteOfficial(Strict):
    """How a suite's own words become prompts."""

    artefacts: dict[str, Artefact] = {}  #: name -> released file.
    adapters: Adapters | None = None  #: for suites whose prompts code of their own makes.
    juries: Juries | None = None  #: for suites whose judges are asked by released texts.

    @model_validator(mode="after")
    def _artefacts_are_known(self) -> SuiteOfficial:
        for part in (self.adapters, self.juries):
            if part and part.artefact not in self.artefacts:
                raise ValueError(f"{part.artefact!r} is none of `artefacts`: {', '.join(self.artefacts)}")
        return self


class TextLocation(Strict):
    """A text in Python source, found without running it."""

    artefact: str | None = None  #: of `suite.yaml`, that holds it; by default that of the other texts.
    #: the file below the suite's folder of wrappers; by default that of the wrapper.
    file: InsidePath | None = None
    #: the function that holds it; by default the module itself.
    inside: str | None = Field(default=None, alias="in")
    take: str  #: the variable that it is assigned to, `return`, or the function that it is handed to.
    nth: int | None = Field(default=None, ge=0)  #: which of several, counted from 0.
    key: str | None = None  #: of the dictionary that stands there.
    braces: bool = False  #: whether names in braces are filled in, as `str.format` does.
    marks: bool = False  #: whether the names of slots stand in the text itself, where the code replaces them.


class OfficialJury(Strict):
    """One message that judges get about an answer, in the suite's own words, and how its code reads them."""

    text: TextLocation  #: the message.
    #: what stands in that text -> Jinja template over `question`, `response`, `gold` and `context`.
    slots: dict[str, str]
    #: how a verdict is written. `tags`: each axis in a tag, and one that is missing is false. `object`: the
    #: last JSON object of the reply has a key for each axis. `yes`: the reply holds "yes", and "no" nowhere,
    #: be it within a word.
    form: Literal["tags", "object", "yes"]
    fields: dict[str, str] = {}  #: axis -> name of its tag or key.
    inverted: list[str] = []  #: axes of which a judge says the contrary.


class Passage(Strict):
    """A passage of a text that the user has, recognised by its hash alone."""

    artefact: str  #: the text.
    file: InsidePath | None = None  #: the file that holds it, where the artefact is a folder.
    key: str | None = None  #: of that file, where it is YAML and the passage stands in one of its values.
    words: int = Field(ge=3)  #: how many words it has.
    sha256: Sha256  #: of its words with one blank between two.


class Official(Strict):
    """Where a dataset's official words stand, and how a row fills them.

    A value of `slots`, `references` or `input` is a Jinja expression over the row, or a Jinja template if it
    has braces.
    """

    slots: dict[str, str] = {}  #: what stands in a text, as its source writes it -> its value.

    @property
    def reasons(self) -> bool:
        return False

    @property
    def artefacts(self) -> list[str]:
        """Names of artefacts that hold the words, the main one first; none: that of the adapters."""
        return []


class OfficialPassage(Official):
    """A passage of the paper is the instruction."""

    #: what stands in the passage -> its value: a Jinja expression over the row, or a template if it has
    #: braces.
    slots: dict[str, str] = {}
    text: Passage  #: the passage. Our own input follows, unless `input` says the whole prompt.
    input: str | None = None  #: the whole prompt, in which `{{ passage() }}` is the passage.

    @property
    def artefacts(self) -> list[str]:
        return [self.text.artefact]

    @model_validator(mode="before")
    @classmethod
    def _has_a_text(cls, data: Any) -> Any:
        if isinstance(data, dict) and "text" not in data:
            raise ValueError(
                "needs `text`: suite.yaml names no code that reads other words (`official.adapters`)"
            )
        return data


Level: TypeAlias = Literal["hard", "medium", "easy"]
#: Levels of difficulty, in the order in which a ratio names them.
LEVELS: tuple[Level, ...] = ("hard", "medium", "easy")
DIFFICULTY = "difficulty"


class RowLabel(Strict):
    """A column of rows that says what a row is about, whatever its task."""

    #: value -> the values within it, each with another name that rows may use, if it has one. Rows name one
    #: of these; where there are none, the value itself.
    values: dict[str, dict[str, str | None]] = Field(min_length=1)
    none: str | None = None  #: what rows that are about none of them say.
    most: int = Field(default=1, ge=1)  #: how many a row may name.

    @field_validator("values")
    @classmethod
    def _have_plain_names(cls, given: dict[str, dict[str, str | None]]) -> dict[str, dict[str, str | None]]:
        names = [name for whole, parts in given.items() for name in parts or [whole]]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]!r} stands twice")
        if comma := [name for name in (*given, *names) if ", " in name]:
            raise ValueError(f"{comma[0]!r}: write it without a comma, which stands before a value within it")
        return given

    @cached_property
    def whole_of(self) -> dict[str, str]:
        """What a row may name -> the value that it is or lies within."""
        wholes = {name: whole for whole, parts in self.values.items() for name in parts or [whole]}
        return {**wholes, **({self.none: self.none} if self.none else {})}

    @cached_property
    def _spelled(self) -> dict[str, str]:
        pairs = [pair for parts in self.values.values() for pair in parts.items()]
        others = {_plain(other): name for name, other in pairs if other}
        return {**others, **{_plain(name): name for name in self.whole_of}}

    def read(self, said: Any) -> list[str]:
        """The values that a row names, as they are written here; ValueError of anything else."""
        names = said if isinstance(said, list) else [said]
        if not 1 <= len(names) <= self.most:
            raise ValueError(f"{len(names)} values; a row has {self.many}")
        if wrong := [name for name in names if _plain(name) not in self._spelled]:
            raise ValueError(f"{excerpt(str(wrong[0]))} is no value of it")
        labels = [self._spelled[_plain(name)] for name in names]
        if len(set(labels)) < len(labels):
            raise ValueError("a value is named twice")
        if self.none in labels and len(labels) > 1:
            raise ValueError(f"{self.none!r} stands beside others")
        return labels

    @property
    def many(self) -> str:
        return "one" if self.most == 1 else f"one to {self.most}"

    def shown(self, named: list[str]) -> tuple[str, ...]:
        """The labels under which a row with these values is shown: each, and what it lies within once."""
        pairs = [(self.whole_of[name], name) for name in named]
        titles = (x for whole, name in pairs for x in (whole, whole if name == whole else f"{whole}, {name}"))
        return tuple(dict.fromkeys(titles))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All such labels in the order of display: each value, those within it after it."""
        titles = []
        for whole, parts in self.values.items():
            titles += [whole, *(f"{whole}, {name}" for name in parts if name != whole)]
        return (*titles, *([self.none] if self.none else []))


def _plain(name: Any) -> str:
    return str(name).strip().casefold().replace("'", "’")


#: Rows of any suite may say how difficult they are.
OF_ALL = {DIFFICULTY: RowLabel(values={level: {} for level in LEVELS})}
