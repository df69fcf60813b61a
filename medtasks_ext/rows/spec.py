"""`rows`, `prompt`, `answer`, `judge` of a task file: where rows come from and how a row becomes a prompt."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator
from typing_extensions import Self

from medtasks_ext.registry.blocks import InsidePath, Official, OfficialJury, OfficialPassage
from medtasks_ext.registry.datalock import Digest, LockedFile
from medtasks_ext.registry.functions import function_named
from medtasks_ext.rows.columns import Column, ColumnType, Value
from medtasks_ext.strict import Config, Strict, validated

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset


class RowSchema(Strict):
    """One schema that source rows may have, and how its columns become the prompt's fields."""

    #: the columns that a row must have, as a list or each with what it holds; the first schema whose columns
    #: are all there is used.
    columns: Annotated[list[str] | dict[str, str], Field(min_length=1)]
    optional: dict[str, str] = {}  #: columns that it may have, each with what it holds.
    #: column -> its type, its values, or both and more (`rows.columns.Column`); text otherwise. What prompts
    #: and answers say of a column's values need not be repeated here.
    types: dict[str, ColumnType | list[Value] | Column] = {}
    #: expression for a list of objects; each becomes a row, with the columns of the row that held it.
    each: str | None = None
    where: str | None = None  #: expression that rows must satisfy.
    #: field -> Jinja expression over the columns and `row`, the whole row: `row['Patient Note']`.
    fields: dict[str, str] = {}
    #: fields; rows alike in them are one row, with the values of the last of them in the place of the first.
    distinct: list[str] = []
    #: True where the suite drew its own test rows: those of the source are not the official ones.
    rebuilt: bool = False

    @model_validator(mode="after")
    def _knows_its_columns(self) -> Self:
        if unknown := [name for name in self.types if name not in {"id", *self.columns, *self.optional}]:
            raise ValueError(f"`types` names {', '.join(unknown)}, which is no column")
        return self


class Database(Strict):
    """An SQLite database on which answers are run. Prompts see its tables as the field `schema`."""

    file: str  #: its name beside the local rows.
    url: str  #: where it is fetched from if it is not there, with `{revision}`.
    revision: str  #: commit of the URL.
    digest: Digest | None = None  #: of its content, as in `rows.download.digests`.
    size: int | None = Field(default=None, ge=0)  #: bytes.
    hosts: list[str] = []  #: other URLs at which it is had.
    sample: str = "sample_db.sql"  #: SQL text beside the sample rows, from which their database is built.


class RowsReader(Strict):
    """Objects: JSON, JSON lines, CSV with a header, Parquet; `_list` is the number of a list of lists."""

    kind: Literal["rows"]


class TableReader(Strict):
    """Lines of cells, or the first sheet of an .xlsx or .xls file."""

    kind: Literal["table"]
    columns: list[str] = []  #: names of the cells; without them the first line holds the names.
    separator: str = "\t"
    quoted: bool = False  #: whether quotation marks enclose cells; otherwise they are text.
    encoding: str = "utf-8-sig"


class TokensReader(Strict):
    """A token per line with its tag after a tab, in text files or .xlsx sheets."""

    kind: Literal["tokens"]
    columns: list[str] = ["token", "tag"]  #: names of the cells, `token` and `tag` among them.
    #: `iob` (also with E and S), or `plain`, where a run of one tag is an entity.
    scheme: Literal["iob", "plain"] = "iob"
    unit: Literal["file", "block"]  #: a document is a whole file, or a block between blank lines.
    comment: str = ""  #: how lines begin that are no tokens.


class BratReader(Strict):
    """brat standoff. File patterns name the texts; annotations lie beside them."""

    kind: Literal["brat"]
    unit: Literal["document", "line"] = "document"  #: a document is a whole text, or one of its lines.
    #: lines that follow each other are one document, as long as they have no more words than this.
    words: int | None = None


class CasReader(Strict):
    """UIMA CAS in JSON, as INCEpTION and WebAnno export it: a text and its annotations."""

    kind: Literal["cas"]
    type: str  #: of the annotations that count.
    feature: str  #: what becomes the type of an entity.
    words: int | None = None  #: as in brat.


class XmlReader(Strict):
    """Elements of a file; their attributes and the texts of their children are the fields."""

    kind: Literal["xml"]
    element: str | None = None  #: the elements' name; without it, the root is the one element.
    #: children that hold elements become objects, element name -> this attribute.
    attribute: str | None = None


class InlineReader(Strict):
    """A document per line, its entities between tags that name their type: `<Age>40</Age>`."""

    kind: Literal["inline"]


class LinesReader(Strict):
    """Text files that belong together line by line."""

    kind: Literal["lines"]
    columns: dict[str, str] = Field(min_length=1)  #: column -> pattern of the file that holds it.


class SourceReader(Strict):
    """A source that no other reader fits; the function of that name in `rows/originals/own.py` reads it."""

    kind: Literal["clister", "ehrshot", "medalign", "mimic_iv"]


Reader = Annotated[
    RowsReader
    | TableReader
    | TokensReader
    | BratReader
    | CasReader
    | XmlReader
    | InlineReader
    | LinesReader
    | SourceReader,
    Field(discriminator="kind"),
]


class Join(Strict):
    """Another table of the source. Records whose key it does not have are left out."""

    files: list[str] = Field(min_length=1)  #: patterns that name it, read as rows.
    key: str  #: the column that both have.
    columns: dict[str, str] = {}  #: new name -> column of the table, added to the record.
    every: bool = False  #: repeat the record for every row of its key; otherwise the first row counts.


class Terms(Strict):
    """What a user accepts once before files are downloaded (`medtasks data fetch --accept`)."""

    owner: str  #: who holds the data.
    url: str  #: the page of the owner's terms.
    asks: str  #: what they ask of a user, in our words.
    copy_by: str | None = None  #: who published the copy that is downloaded, where it is not the owner's own.
    token: bool = False  #: whether the hub asks for the user's own account besides.


def _as_pin(said: Any) -> Any:
    """What a task file says of a file's content: its digest alone, or with size and hosts."""
    return {"digest": said} if isinstance(said, str) else said


class Download(Strict):
    """Public files, pinned. `repo` is a dataset on the Hugging Face hub; without it files are URLs.

    With `rows.original`, `test` lists the files and archives of the source, whatever their part. A file may
    name a member of an archive, `Dataset.zip!NAME.json`, or its text files, `Dataset.zip!FOLDER/*.txt`; the
    name is the column `_file` of its rows. `test_ids` names a JSON of official test ids (a list, or an object
    keyed by id) where the source has one file; the other rows are the few-shot pool. `reader` reads files
    that are no rows with named columns, and members that a pattern names: `Corpus.zip!Test/*/*.xml`.

    `digests` has, by the name of a file, what its content is, whoever sends it: `sha256:` of its bytes,
    `git:` the id of its blob, `members:` of an archive's members that are read; or that as `digest` beside
    `hosts`, URLs of the same content, which are asked after the pinned place. `terms` are accepted first.
    """

    repo: str | None = None
    revision: str = "main"
    test: list[str] = Field(min_length=1)
    fewshot: list[str] = []
    test_ids: str | None = None
    reader: Reader | None = None
    terms: Terms | None = None
    digests: dict[str, Annotated[LockedFile, BeforeValidator(_as_pin)]] = {}

    @property
    def names(self) -> list[str]:
        return [*self.test, *self.fewshot, *([self.test_ids] if self.test_ids else [])]

    @model_validator(mode="after")
    def _has_a_revision(self) -> Download:
        if not self.repo and "revision" not in self.model_fields_set:
            raise ValueError("missing key: revision, the commit, release or date of what stands at the URLs")
        return self


class Original(Strict):
    """One layout in which the source is distributed, and how rows are made of its records.

    For BRIDGE a row is a document: `id`, `input` and `output` are Jinja templates over a record. Without them
    the records are the rows.
    """

    reader: Reader  #: the format of the files.
    #: patterns that name the files, compared with the last parts of a path.
    test: list[str] = Field(min_length=1)
    fewshot: list[str] = []  #: files of the source's other parts, from which five rows are drawn.
    #: `official`: files under `test` are the source's test part; `drawn`, by the suite's rule: it has none.
    split: Literal["official", "drawn"]
    each: str | None = None  #: a list in the record whose items become the records.
    group: list[str] = []  #: fields by whose values records are collected into one, as its `rows`.
    texts: list[str] = []  #: text files; the record's `text` is the one named by its first `group` field.
    join: list[Join] = []  #: other tables, one after the other.
    where: str | None = None  #: expression that records must satisfy.
    first: str | None = None  #: a field; of the records alike in it only the first counts.
    #: field -> Jinja expression over a record and `file`, the name of its file without suffix.
    fields: dict[str, str] = {}
    id: str | None = None
    input: str | None = None
    output: str | None = None
    distinct: bool = True  #: leave out documents with the input of an earlier one, as the suite does.
    rebuilt: bool = True  #: False where the suite reads these very files.

    @property
    def patterns(self) -> list[str]:
        joined = [pattern for table in self.join for pattern in table.files]
        return [*self.test, *joined, *self.fewshot, *self.texts]

    @property
    def read(self) -> list[str]:
        """All files that are read, annotations that lie beside texts among them."""
        beside = [f"{name.removesuffix('.txt')}.ann" for name in self.test + self.fewshot]
        return [*self.patterns, *(beside if isinstance(self.reader, BratReader) else [])]

    @model_validator(mode="after")
    def _consistent(self) -> Original:
        if self.split == "drawn" and self.fewshot:
            raise ValueError("a drawn split takes its few-shot rows from the files under `test`")
        if self.texts and not self.group:
            raise ValueError("`texts` needs `group`, whose first field names the text file")
        if (self.input is None) != (self.output is None):
            raise ValueError("`input` and `output` belong together")
        if self.input is None and self.split == "drawn":
            raise ValueError("a split is drawn from documents, which need `input` and `output`")
        return self


class Exclusion(Strict):
    """Rows of a pinned download that cannot be scored and nobody can mend. Local rows are never excluded."""

    when: str  #: expression over the columns of such rows, such as `Answer == 'nan'`.
    reason: str  #: why they cannot be scored.
    #: how many test rows `when` may exclude; if it takes more, the download is not what it was.
    most: int = Field(ge=1)


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


def _known_system(name: str) -> str:
    if name not in CODE_SYSTEMS:
        raise ValueError(f"unknown classification; one of: {', '.join(CODE_SYSTEMS)}")
    return name


CodeSystem = Annotated[str, AfterValidator(_known_system), Field(json_schema_extra={"enum": [*CODE_SYSTEMS]})]


class Source(RowSchema):
    """Where rows come from, and which columns they have; `schemas` where they come in several forms."""

    #: the authors' own name of the dataset, which names the files that they give out.
    official_name: str | None = None
    columns: list[str] | dict[str, str] = []
    #: several forms that rows may have, each with the keys that say columns here; the first that fits counts.
    several: list[RowSchema] = Field(default=[], alias="schemas")
    #: layouts of the source as its owner distributes it; the first whose files are there is used.
    original: list[Original] = []
    download: Download | None = None  #: public files, if there are any.
    exclude: list[Exclusion] = []  #: rows of the download that are left out, counted in results.
    database: Database | None = None  #: the database on which answers are run, if they are SQL.
    identity: str = "input"  #: the field by which a few-shot row is recognised among test rows.
    #: expression for what several rows ask about (a note, a patient, a dialogue), such as `context`;
    #: intervals draw it with all its rows. A row that lacks what it names stands alone.
    cluster: str | None = None
    skip_blank: str | None = None  #: leave out rows in which this field is blank, as the suite does.
    #: the field that names the run of a row, where the suite takes the mean over several runs.
    runs: str | None = None
    #: ask each question so often, with its options in other seeded orders (MLB; 1: a control for too frequent
    #: a gold letter). Few-shot rows are permuted once. Without it options stand as in the source.
    option_trials: int | None = Field(default=None, ge=1)
    #: without a few-shot pool five test rows serve as one: they are held out where a prompt shows shots, or
    #: `always`, so that the same rows are scored at every number of shots.
    held_out: Literal["for_shots", "always"] = "for_shots"
    #: draw the few-shot pool (seed 42), where rows are sorted by label or document; else shots are the first.
    draw_fewshot: bool = False
    #: evaluate at most this many test rows (of each run), drawn as HELM does (numpy seed 0).
    max_test: int | None = None
    #: which end of the longest column is cut where a prompt in one turn does not fit the context.
    cut: Literal["start", "end"] = "end"
    #: share of the gold mentions that stand in the input, below 1; `medtasks data check` finds fewer a fault.
    mentions: float | None = Field(default=None, ge=0, le=1)
    #: the classification whose codes the gold answers are, or field of the answer -> classification.
    codes: CodeSystem | dict[str, CodeSystem] | None = None
    #: options that each question has, where all have as many.
    n_options: int | None = Field(default=None, ge=2)
    #: expressions that are true of each row that has their columns, such as `answer == options[answer_idx]`.
    holds: list[str] = []

    @model_validator(mode="after")
    def _has_schema(self) -> Source:
        stray = self._said - {"columns"}
        if stray and not self.columns:
            raise ValueError(f"`{min(stray)}` needs `columns` beside it")
        if self.columns and self.several:
            raise ValueError("write `columns` under `schemas`, as one of several forms")
        if not self.official_name and not self.schemas:
            raise ValueError("name the accepted row schemas: `columns`, or `schemas` where there are several")
        return self

    @property
    def _said(self) -> set[str]:
        return self.model_fields_set & RowSchema.model_fields.keys()

    @cached_property
    def schemas(self) -> list[RowSchema]:
        own = [RowSchema.model_construct(**{name: getattr(self, name) for name in self._said})]
        return own if self.columns else self.several

    def place_of(self, schema: RowSchema) -> str:
        number = next((number for number, item in enumerate(self.schemas) if item is schema), 0)
        return f"rows.schemas.{number}" if self.several else "rows"


class OwnLines(Strict):
    """The strategy line of one dataset, where it is not its suite's."""

    #: asks for the answer at once; empty where the suite's own prompt does not ask for that.
    answer: str | None = None
    reason: str | None = None  #: asks to reason first.


class Prompt(Strict):
    """Jinja templates over a row's fields. `instruction` must place `{{ strategy }}`."""

    #: a dialogue whose last turn is the user's: an expression for a list of objects with role and content.
    #: `input` then is the text of its last turn, and `transcript` all of it as one text.
    messages: str | None = None
    instruction: str  #: what is to be done.
    #: the turn in which the instruction stands; by default as the suite says.
    instruction_role: Literal["system", "user"] = "user"
    input: str = "{{ input }}"  #: the row.
    #: the last line of a prompt that asks for the answer at once, such as `Answer:`; others end without.
    cue: str = ""
    target: str = "{{ output }}"  #: the gold answer.
    strategy_lines: OwnLines = OwnLines()  #: lines of the strategies in place of the suite's.

    @model_validator(mode="after")
    def _has_strategy(self) -> Prompt:
        if "{{ strategy }}" not in self.instruction + self.input:
            names = re.findall(r"\{\{\s*(\w+)\s*\}\}", self.instruction + self.input)
            near = get_close_matches("strategy", names, n=1)
            if near:
                raise ValueError(f"write {{{{ strategy }}}} in place of {{{{ {near[0]} }}}}")
            raise ValueError("place {{ strategy }} where the strategy line belongs")
        return self


class LengthAdjustment(Strict):
    """What the length of an answer takes off its score or adds to it (HealthBench Professional)."""

    center: int = Field(ge=0)  #: characters of an answer whose score stays as it is.
    #: taken off the score, on 0-1, for every `per` characters more, and added for as many fewer.
    points: float = Field(gt=0, le=1)
    per: int = Field(ge=1)  #: characters.

    def adjusted(self, score: float, answer: str) -> float:
        """The score of one answer; it may lie outside 0-1, as the mean over answers may not."""
        return score - self.points * (len(answer) - self.center) / self.per


class Judging(Strict):
    """How models judge the answers of an open-ended task (`medtasks judge`)."""

    #: what judges are asked and how their replies become a score; a file of `medtasks_ext/judge/protocols`.
    protocol: str
    #: Jinja template of what a judge sees as the task's input; by default the prompt's `input`.
    question: str = ""
    #: Jinja template of what else a judge sees, such as the guidance that the answer is held to.
    context: str = ""
    role: str  #: who the judge is asked to be.
    goal: str = ""  #: what the judge is to find out about a response, after "Find out".
    #: whether the response is held against the gold answer: where needed, always, or without a word on it.
    compare: Literal["when_needed", "always", "unsaid"] = "when_needed"
    lowest: str = "very poor"  #: what the lowest rating means.
    axes: dict[str, str] = {}  #: axis -> the question that it asks, the same for all rows.
    #: expression that gives a row's own scoring points in place of axes (`rows.fields.read_points`).
    points: str | None = None
    #: whether points may have negative weights, as what an answer should not say has.
    penalties: bool = False
    tags: list[str] = []  #: what tags begin with that are reported by themselves: `axis` for `axis:accuracy`.
    #: expression for a list of tags of the whole row, besides those of its points.
    row_tags: str | None = None
    #: expression for what the weights of a row's points must add up to; a row may have none.
    total: str | None = None
    #: gives the metric `score_length_adjusted` beside the score.
    length_adjustment: LengthAdjustment | None = None
    show_gold: bool = True  #: whether a judge sees the gold answer. With points, a row may have none.
    #: the released file of the suite's own words for judges, below the folder that `official.juries` of
    #: `suite.yaml` names; or where the one message stands, and how replies are read.
    official: OfficialJury | InsidePath | None = None

    @model_validator(mode="after")
    def _axes_or_points(self) -> Judging:
        if bool(self.axes) == bool(self.points):
            raise ValueError("give either `axes` or `points`")
        if self.total and not self.points:
            raise ValueError("`total` is what the weights of `points` add up to")
        if self.penalties and (self.total or not self.points):
            raise ValueError("`penalties` are for `points` without `total`")
        return self


class DatasetSpec(Strict):
    """Where rows come from, how a row becomes a prompt, and how an answer is read."""

    rows: Source
    prompt: Prompt
    answer: Config
    judge: Judging | None = None
    official: OfficialPassage | None = None


@lru_cache(maxsize=8)
def _with_official(block: type[Official]) -> type[DatasetSpec]:
    return create_model("DatasetSpec", __base__=DatasetSpec, official=(block | None, None))  # type: ignore[arg-type]


def spec_model(dataset: Dataset) -> type[DatasetSpec]:
    suite = dataset.suite
    if "official" in dataset.blocks and suite.official and suite.official.adapters:
        return _with_official(function_named(suite.official.adapters.code, where=suite.file).Block)
    return DatasetSpec


def dataset_spec(dataset: Dataset) -> DatasetSpec:
    """What the dataset's file says of its rows, prompts, answers and judges, and of its suite's words."""
    model = spec_model(dataset)
    remedy = "CONTRIBUTING.md shows a complete task file"
    return validated(lambda: model(**dataset.blocks), where=dataset.file, remedy=remedy)
