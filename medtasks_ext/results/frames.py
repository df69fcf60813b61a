"""Frames: the tables that everything reads which shows results. The schema of each stands here as data.

A frame is an Arrow table. Terminal, CSV, Parquet, the page and notebooks take their columns from
it, and docs/columns.md lists them as `documented` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import suites

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Suite

#: Of the frames: it changes when a column goes, or means something else.
SCHEMA = 2
#: Axes that all suites share.
SHARED_AXES = ("language", "task_type", "stage", "specialties", "document_types", "access")


@dataclass(frozen=True)
class Columns:
    """Columns that stand together in the documentation."""

    names: str  # with `:TYPE` where they hold no text; between blanks
    meaning: str


_AXES = "AXES"  # stands for the axes, which depend on the suites
_OF_PAPER = Columns(
    "paper_interval_low:double paper_interval_high:double",
    "the interval that the suite's paper prints, or its code computes",
)
_INTERVAL = Columns("score:double interval_low:double interval_high:double", "95 % interval")
_LIMITS = Columns(
    "chance:double ceiling:double",
    "what guessing scores: an answer drawn evenly from those that a question lists; what perfect answers "
    "score",
)
_P_VALUES = Columns(
    "p_value:double p_holm:double p_bh:double", "two-sided; adjusted by Holm, and by Benjamini and Hochberg"
)

_CHANGE = (
    Columns("pair name", "which two are compared, in short; group, task or label"),
    Columns("before:double after:double", "scores on what both were asked"),
    Columns(
        "difference:double interval_low:double interval_high:double", "after minus before; 95 % interval"
    ),
    Columns("p:double p_holm:double p_bh:double", "two-sided; adjusted over all rows"),
    Columns(
        "method detectable:double",
        "of the test, or why there is none; the smallest difference that is found with 80 % power",
    ),
)

#: Of the registry of models; joins what papers, runs and submissions call by other names.
_IDENTITY = Columns(
    "model_id model_version",
    "id in the registry of models (`results/reference/models.yaml`), empty of a model that it does not know; "
    "the version that a table states, or the revision that a run asked for",
)

#: Conditions of a result that have a column of their own.
CONDITIONS = (
    "wording source documents_asked decoding generation stop arguments variant brought rounding template "
    "own_template local_template system system_text turns delimiter examples budget:int64 context:int64 "
    "seed:int64"
)
#: frame -> its columns
FRAMES: Mapping[str, tuple[Columns, ...]] = {
    "results": (
        Columns("suite dataset name task strategy", "of the task"),
        Columns(
            "entry model kind sample:bool", "label, model; medtasks, lm_eval or published; synthetic rows"
        ),
        _IDENTITY,
        Columns(
            "metric value:double interval_low:double interval_high:double interval_rough:bool",
            "[95 % interval](compare.md#intervals); whether intervals of its kind hold the truth in "
            "less than 90 %",
        ),
        _OF_PAPER,
        _LIMITS,
        Columns(
            "n:int64 valid:double cut:double inputs_cut:double unclosed:double",
            "documents; shares of readable answers, full budgets, shortened inputs, reasoning that never "
            "ended",
        ),
        Columns(_AXES, "axes of the metadata ([keys](keys.md#cardyaml))"),
        Columns("control_of draft", "whose control the dataset is, why it is not ready"),
        Columns(
            "task_version prompt data rows rebuilt:bool",
            "`N-X`, wording and hash of the prompt, origin @ revision, hash of the documents, rows rebuilt "
            "from the source",
        ),
        Columns("jury judged:double", "who judged and how; share of the answers that all judges judged"),
        Columns("rows_here:int64 rows_of_suite:int64", "rows with an answer, rows of the suite"),
        Columns(CONDITIONS, "the [conditions](conditions.md#conditions)"),
        Columns(
            "rows_are words_are shots_are",
            "`confirmed` as the suite's, `claimed`, `different` ([rules](compare.md#confirmed-or-claimed))",
        ),
        Columns(
            "comparable:bool otherwise unknown",
            "whether it is comparable with the paper's scores, what differs and can move a score, and which "
            "conditions nobody recorded",
        ),
        Columns("input_tokens:int64 output_tokens:int64 usd:double", "of all documents of the task"),
        Columns("settings started medtasks_version lm_eval_version", "of the entry's run"),
    ),
    "conditions": (
        Columns("entry task", "as in the results"),
        Columns(
            "strategy version wording artefact prompt examples examples_cut:bool source revision rows "
            "differs:bool documents n:int64 n_of_suite:int64 held_out:int64 budget:int64 less_room:bool "
            "answers_cut:bool context:int64 inputs_cut:bool decoding generation stop seed:int64 arguments "
            "variant brought rounding template template_hash own_template local_template system system_text "
            "turns delimiter jury requests protocol judged:double engine versions",
            "the [conditions](conditions.md#conditions) that are compared",
        ),
    ),
    "groups": (
        Columns("entry model kind sample:bool strategy", "as above"),
        _IDENTITY,
        Columns(
            "suite axis value title",
            "suite (empty across suites), axis (`all`, `suite` or one of the metadata), value, title of the "
            "value",
        ),
        _INTERVAL,
        _OF_PAPER,
        _LIMITS,
        Columns(
            "interval_rough:bool tasks_scored:int64 tasks:int64 partial:bool limited:bool documents:int64",
            "whether the interval of a task is rough, tasks with a score, all tasks, some are missing, only "
            "some documents were asked, documents of the finished tasks",
        ),
        Columns(
            "estimate_half:double documents_of:int64",
            "half of the 95 % interval of the score over all documents, and how many these are, where some "
            "were drawn (`run --error`)",
        ),
        Columns("valid:double cut:double", "means over the finished tasks"),
        Columns(
            "pending:int64 rows_in_part:int64 other_conditions:int64",
            "tasks that wait for a judge, have fewer rows than the suite, or were asked under other "
            "conditions",
        ),
        Columns("rank:int64 rank_of:int64", "rank, and how many entries are ranked"),
    ),
    "asked": (
        Columns("entry model kind sample:bool", "as above"),
        Columns("name", "of a task or group, as `--tasks` said it"),
        _INTERVAL,
        Columns("interval_rough:bool", "whether the interval of a task is rough"),
        _LIMITS,
        Columns(
            "tasks_scored:int64 tasks:int64 partial:bool documents:int64 valid:double",
            "tasks with a score, all tasks, whether some are missing, documents of the finished tasks, their "
            "mean share of readable answers",
        ),
    ),
    "pairs": (
        Columns("suite strategy sample:bool", "of the tasks that the entries share"),
        Columns("entry minus tasks:int64", "the two entries; how many tasks they are compared on"),
        Columns("difference:double low:double high:double", "first minus second; 95 % interval"),
        _P_VALUES,
        Columns("wins:double", "share of the tasks that the first wins, ties half"),
    ),
    "standings": (
        Columns("entry suite strategy", "whose scores, where"),
        Columns("sentence", "where it stands, in words"),
        Columns(
            "ranked:bool rank:int64 rank_of:int64 rank_range:int64s",
            "whether it has a rank, which, of how many, best and worst within the interval",
        ),
        Columns(
            "score:double tasks:int64 of_suite:int64 official:int64",
            "over all its tasks; how many these are, of how many, and how many with official prompts",
        ),
        Columns(
            "comparable:int64 documents_comparable:int64 score_comparable:double low:double high:double",
            "tasks under the paper's conditions, their documents; score on these; 95 % interval",
        ),
        Columns(
            "confirmed:int64 claimed:int64 different:int64",
            "of its tasks, those whose rows, words and examples are confirmed; where one is only "
            "claimed; where one is different",
        ),
        Columns("reasons:counts", "condition, and in how many tasks it is another"),
        Columns("rivals:scores", "published models with their scores on the same tasks"),
        Columns("remarks:texts", "what else is to know, in words"),
    ),
    "labels": (
        Columns("entry model sample:bool strategy suite", "as above"),
        Columns("axis value", "kind of label, label"),
        _INTERVAL,
        Columns("tasks:int64 documents:int64", "with the label"),
        Columns(
            "score_of_all:double of_all_low:double of_all_high:double documents_of_all:int64",
            "the same tasks on all of their documents",
        ),
        Columns("sources:texts", "files that say the labels; empty where the rows do"),
    ),
    "judgements": (
        Columns("entry suite dataset task strategy", "what was judged"),
        Columns("judges:texts measure value:double", "of whom; what is measured, and its value"),
        Columns("missing:int64", "judgements that are missing in the task"),
    ),
    "agreement": (
        Columns(
            "table task",
            "`judges`, `judge_axes`, `clinicians`, `quality` or `gold`; the task, or `all tasks`",
        ),
        Columns(
            "between item measure",
            "whom it is about; an axis, `mean of axes`, `all axes`, `score` or a level of quality; the "
            "measure",
        ),
        Columns("value:double low:double high:double", "empty where it is undefined; 95 % interval"),
        Columns("n:int64", "instances: ratings of kappa, pairs of raters, models of ranks"),
    ),
    "calibration": (
        Columns("entry suite dataset task strategy", "what was asked by likelihood"),
        Columns("documents:int64", "that have a score"),
        Columns(
            "acc:double acc_norm:double brier_score:double calibration_error:double risk_coverage:double",
            "[metrics](metric_names.md) of the task",
        ),
        Columns(
            "bins:bins", "by confidence: sums of confidence and of rightness, and the number of documents"
        ),
        Columns(
            "risks:numbers risks_sd:numbers",
            "share of errors among the surest 5 %, 10 % … of the documents; its standard deviation over "
            "redrawn documents",
        ),
    ),
    "costs": (
        Columns("entry model kind tasks:int64 counted:int64", "tasks of the entry, and with counted tokens"),
        Columns("input_tokens:int64 output_tokens:int64", "of these tasks"),
        Columns(
            "usd:double usd_batch:double price", "US dollars: of the tokens, as a batch; how that follows"
        ),
        Columns("jury:jury", "what judging cost, and of how many replies; empty if no model judged"),
    ),
    "gaps": (
        Columns("entry suite dataset task strategy", "a task without a score"),
        Columns("state reason", "what became of it, and why"),
    ),
    "group_changes": (*_CHANGE, Columns("tasks:int64 of:int64", "that both have a score of; of the group")),
    "task_changes": (
        *_CHANGE,
        Columns("documents:int64 documents_of_one_alone:int64", "that both were asked; that only one was"),
        Columns("gained:int64 lost:int64", "documents whose score rose, and fell"),
        Columns("differs", "conditions that are not alike"),
    ),
    "flipped": (
        Columns("pair task document", "a document whose score changed"),
        Columns("before:double after:double", "its scores"),
    ),
}


def axes() -> list[str]:
    """The axes that have a column: those of all suites, then those of single ones."""
    for suite in suites().values():
        for fault in axis_faults(suite):
            raise fault
    own = (axis for suite in suites().values() for axis in suite.axes)
    return list(dict.fromkeys((*SHARED_AXES, *own)))


def axis_faults(suite: Suite) -> Iterator[MedtasksError]:
    with_axes = (frame for frame in FRAMES.values() if any(item.names == _AXES for item in frame))
    others = (item.names.split() for frame in with_axes for item in frame if item.names != _AXES)
    taken = {name.partition(":")[0] for found in others for name in found}
    for axis in suite.axes:
        if axis in taken:
            yield MedtasksError(
                f"axes.{axis}: tables of results have a column of that name",
                where=suite.file,
                remedy="give the axis another name",
            )


def _names(columns: Columns) -> list[str]:
    return axes() if columns.names == _AXES else columns.names.split()


def names(frame: str) -> list[str]:
    return [name.partition(":")[0] for columns in FRAMES[frame] for name in _names(columns)]


#: frame -> what a row of it is
ROW_OF: Mapping[str, str] = {
    "results": "One row per task, strategy, entry and metric; of published entries `score` only.",
    "conditions": "One row per result: what decides whether it can stand beside another. "
    "`load(…).conditions` in a notebook.",
    "groups": "One row per entry, strategy and group with a finished task. The value `average` is the "
    "mean over the other values of an axis.",
    "asked": "One row per name that a run was asked, and entry.",
    "pairs": "One row per suite, strategy and two entries whose documents have scores.",
    "standings": "One row per entry, suite and strategy: where it stands among published models.",
    "labels": "One row per entry, suite, strategy and label.",
    "judgements": "One row per judged task, judges and measure.",
    "agreement": "One row per figure of a jury's agreement: `agreement.json` and `agreement.csv` of a "
    "judged run.",
    "calibration": "One row per task that was asked by likelihood.",
    "costs": "One row per entry.",
    "gaps": "One row per task without a score.",
    "group_changes": "One row per pair and group, name that was asked, or label of documents, of `medtasks "
    "compare`: `groups.csv` and `labels.csv` of its `-o OUT`.",
    "task_changes": "One row per task: `tasks.csv`.",
    "flipped": "One row per document whose score changed: `flipped.csv`.",
}


def documented(frame: str) -> list[str]:
    found = []
    for columns in FRAMES[frame]:
        listed = ", ".join(f"`{name.partition(':')[0]}`" for name in _names(columns))
        found.append(f"| {listed} | {columns.meaning} |")
    return found


def schema(frame: str) -> pa.Schema:
    """The metadata of a column say what it means."""
    return _schema(frame, tuple(axes()))


@lru_cache(maxsize=64)
def _schema(frame: str, _axes: tuple[str, ...]) -> pa.Schema:
    import pyarrow as pa

    fields = []
    for columns in FRAMES[frame]:
        for said in _names(columns):
            name, _, kind = said.partition(":")
            fields.append(pa.field(name, _type(kind), metadata={"meaning": columns.meaning}))
    return pa.schema(fields, metadata={"medtasks_schema": str(SCHEMA)})


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    lists = {
        "texts": pa.string(),
        "numbers": pa.float64(),
        "int64s": pa.int64(),
        "scores": pa.struct([("entry", pa.string()), ("score", pa.float64())]),
        "bins": pa.struct([(part, pa.float64()) for part in ("confidence", "rightness", "documents")]),
    }
    if name == "counts":
        return pa.map_(pa.string(), pa.int64())
    if name == "jury":
        spent = {"usd": pa.float64(), "unsure": pa.float64()}
        spent |= dict.fromkeys(("replies", "unpriced", "estimated"), pa.int64())
        return pa.struct(list(spent.items()))
    return pa.list_(lists[name]) if name in lists else pa.type_for_alias(name or "string")


def table(frame: str, columns: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    found = schema(frame)
    arrays = {
        field.name: values
        if isinstance(values := columns[field.name], pa.Array | pa.ChunkedArray)
        else pa.array(values, field.type)
        for field in found
    }
    fields = [field.with_type(arrays[field.name].type) for field in found]
    return pa.table(arrays, schema=pa.schema(fields, metadata=found.metadata))


def table_of(frame: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    found = list(rows)
    return table(frame, {name: [row[name] for row in found] for name in names(frame)})


def records(frame: pa.Table) -> list[Json]:
    """The rows of a frame as JSON holds them: what is a record inside a list becomes a list of its values."""
    import pyarrow as pa

    maps = {field.name for field in frame.schema if pa.types.is_map(field.type)}
    lists = {field.name for field in frame.schema if pa.types.is_list(field.type)}
    rows: list[Json] = frame.to_pylist()
    for row in rows if maps or lists else ():
        row.update({name: dict(row[name]) for name in maps})
        row.update({name: [*map(_values, row[name])] for name in lists if row[name] is not None})
    return rows


def _values(item: Any) -> Any:
    return [*item.values()] if isinstance(item, dict) else item
