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
    """A file that the suite's authors released, pinned.

    Attributes:
        file: its own file name, by which it is recognised in a folder.
        revision: version or commit, as people name it.
        sha256: of the file. A text that each user makes of the paper has none: its pieces have.
        package: project on the package index that distributes it.
        installed: package of Python that is installed with medtasks and whose folder it is.
        url: where it is fetched from otherwise.
        how: how a user gets it where neither is given.
    """

    file: Annotated[str, StringConstraints(pattern=r"^[\w.+-]+$")]
    revision: str
    sha256: Sha256 | None = None
    package: str | None = None
    installed: Annotated[str, StringConstraints(pattern=r"^\w+$")] | None = None
    url: str | None = None
    how: str = ""

    @model_validator(mode="after")
    def _can_be_had(self) -> Artefact:
        if not (self.package or self.installed or self.url or self.how):
            raise ValueError("say where it is had: `package`, `installed`, `url` or `how`")
        if (self.package or self.url) and not self.sha256:
            raise ValueError("what is fetched needs its `sha256`")
        return self


class Adapters(Strict):
    """Prompts that code of the suite's own makes of rows.

    Attributes:
        code: dotted name of the class that makes them (`prompts.official.words.Words`), in a module of
            `medtasks_ext.suites`. Its `Block` is what `official` of a task may say.
        artefact: that holds the words, where a task names no others.
    """

    code: Reference
    artefact: str


class Juries(Strict):
    """What the suite's own judges are asked, in Python source. `judge.official` of a task names its file.

    Attributes:
        artefact: that holds the files.
        folder: where they are; without it the artefact is the one file.
        template: the text of a file.
        slots: what stands in that text -> Jinja template over `question`, `response`, `gold`, and `item`, the
            criterion that a judge is asked about with its weight before it: `[5] Asks for the age.`
        criteria: the dictionary of a file whose keys are the axes, where judges rate axes.
    """

    artefact: str
    folder: InsidePath | None = None
    template: str
    slots: dict[str, str] = {
        "{QUESTION}": "{{ question }}",
        "{RESPONSE}": "{{ response }}",
        "{GOLD_RESPONSE}": "{{ gold }}",
    }
    criteria: str | None = None


class SuiteOfficial(Strict):
    """How a suite's own words become prompts.

    Attributes:
        artefacts: name -> released file.
        adapters: for suites whose prompts code of their own makes.
        juries: for suites whose judges are asked by released texts.
    """

    artefacts: dict[str, Artefact] = {}
    adapters: Adapters | None = None
    juries: Juries | None = None

    @model_validator(mode="after")
    def _artefacts_are_known(self) -> SuiteOfficial:
        for part in (self.adapters, self.juries):
            if part and part.artefact not in self.artefacts:
                raise ValueError(f"{part.artefact!r} is none of `artefacts`: {', '.join(self.artefacts)}")
        return self


class TextLocation(Strict):
    """A text in Python source, found without running it.

    Attributes:
        artefact: of `suite.yaml`, that holds it; by default that of the other texts.
        file: the file below the suite's folder of wrappers; by default that of the wrapper.
        inside: the function that holds it; by default the module itself.
        take: the variable that it is assigned to, `return`, or the function that it is handed to.
        nth: which of several, counted from 0.
        key: of the dictionary that stands there.
        braces: whether names in braces are filled in, as `str.format` does.
        marks: whether the names of slots stand in the text itself, where the code replaces them.
    """

    artefact: str | None = None
    file: InsidePath | None = None
    inside: str | None = Field(default=None, alias="in")
    take: str
    nth: int | None = Field(default=None, ge=0)
    key: str | None = None
    braces: bool = False
    marks: bool = False


class OfficialJury(Strict):
    """One message that judges get about an answer, in the suite's own words, and how its code reads them.

    Attributes:
        text: the message.
        slots: what stands in that text -> Jinja template over `question`, `response`, `gold` and `context`.
        form: how a verdict is written. `tags`: each axis in a tag, and one that is missing is false.
            `object`: the last JSON object of the reply has a key for each axis. `yes`: the reply holds "yes",
            and "no" nowhere, be it within a word.
        fields: axis -> name of its tag or key.
        inverted: axes of which a judge says the contrary.
    """

    text: TextLocation
    slots: dict[str, str]
    form: Literal["tags", "object", "yes"]
    fields: dict[str, str] = {}
    inverted: list[str] = []


class Passage(Strict):
    """A passage of a text that the user has, recognised by its hash alone.

    Attributes:
        artefact: the text.
        file: the file that holds it, where the artefact is a folder.
        key: of that file, where it is YAML and the passage stands in one of its values.
        words: how many words it has.
        sha256: of its words with one blank between two.
    """

    artefact: str
    file: InsidePath | None = None
    key: str | None = None
    words: int = Field(ge=3)
    sha256: Sha256


class Official(Strict):
    """Where a dataset's official words stand, and how a row fills them.

    A value of `slots`, `references` or `input` is a Jinja expression over the row, or a Jinja template if it
    has braces.

    Attributes:
        slots: what stands in a text, as its source writes it -> its value.
    """

    slots: dict[str, str] = {}

    @property
    def reasons(self) -> bool:
        return False

    @property
    def artefacts(self) -> list[str]:
        """Names of artefacts that hold the words, the main one first; none: that of the adapters."""
        return []


class OfficialPassage(Official):
    """A passage of the paper is the instruction.

    Attributes:
        slots: what stands in the passage -> its value: a Jinja expression over the row, or a template if it
            has braces.
        text: the passage. Our own input follows, unless `input` says the whole prompt.
        input: the whole prompt, in which `{{ passage() }}` is the passage.
    """

    text: Passage
    input: str | None = None

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
