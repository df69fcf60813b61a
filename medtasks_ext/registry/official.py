"""Where a suite's own words stand: the blocks `official` of `suite.yaml` and of a task file.

No official sentence is kept. The blocks name a released file by its version and hash, and places in it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

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
    #: of the file. A text that each user makes of the paper has none: its pieces have.
    sha256: Sha256 | None = None
    package: str | None = None  #: project on the package index that distributes it.
    #: package of Python that is installed with medtasks and whose folder it is.
    installed: Annotated[str, StringConstraints(pattern=r"^\w+$")] | None = None
    url: str | None = None  #: where it is fetched from otherwise.
    how: str = ""  #: how a user gets it where neither is given.

    @model_validator(mode="after")
    def _can_be_had(self) -> Artefact:
        if not (self.package or self.installed or self.url or self.how):
            raise ValueError("say where it is had: `package`, `installed`, `url` or `how`")
        if (self.package or self.url) and not self.sha256:
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
