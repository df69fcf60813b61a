"""What the files of a run hold: a line of a samples file, and the result of a task."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from medtasks_ext.prompts.dialogue import Turn
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.rows.row import Point
    from medtasks_ext.stats.bootstrap import IntervalRecord


class _Document(TypedDict):
    id: str
    system: str
    prompt: str
    target: str
    gold: Any
    cot: bool
    data: str


class SampleDocument(_Document, total=False):
    """A document as it was asked (`prompts.documents.Document`).

    Attributes:
        id: unique within the task, together with `trial`.
        system: the instruction, where the chat has a system turn for it.
        gold: the gold answer as parsed; None where the row has none.
        cot: whether it asks for a chain of thought.
    """

    options: list[str]  # the texts of a multiple-choice question, in the order in which they were shown
    item: str  # the question of a trial
    trial: int  # which trial of its question it is
    cluster: str  # what several documents ask about
    department: list[str]  # the departments of a question
    difficulty: str  # its level, where the rows say one
    run: str  # the run of its benchmark that it belongs to
    question: str  # what judges see as the task's input
    context: str  # what else they see
    points: list[Point]  # its scoring points
    tags: list[str]  # kinds that it belongs to, whose answers judges' scores are reported of
    before: list[Turn]  # of a dialogue, the turns before the last one
    turn: str  # `instruction_in_user_turn` where the first user turn holds the instruction


class _Sample(TypedDict):
    doc_id: int
    doc: SampleDocument
    target: str
    arguments: Any
    resps: list[list[str]]
    filtered_resps: list[Any]


class Sample(_Sample, total=False):
    """lm-eval's record of one document. The metrics of the document stand beside these keys, by name.

    Attributes:
        doc_id: place of the document in the task.
        arguments: prompt and generation settings of each request, by the names `gen_args_N` and `arg_N` in a
            file; a conversation is JSON in a list.
        resps: the responses to each request.
        filtered_resps: each as the answer format reads it (`samples.parsed_of`).
    """

    request: str  # key of its outcome
    valid: float  # whether an answer could be read, 0 or 1
    unclosed_reasoning: float  # whether a reasoning trace never ended, 0 or 1
    score: Any  # what the document contributed to the task's score: a number, or (run, number)


class EstimateRecord(TypedDict):
    variance: float  # of its distance to the score of all documents
    degrees: float  # of freedom
    asked: int  # documents
    of: int


class _TaskRecord(TypedDict):
    task: str
    version: str
    n: int
    metrics: dict[str, Any]
    config: Config
    loaded: LoadedRecord


class TaskRecord(_TaskRecord, total=False):
    """The result of a task in a results file (`runs.results`). Plain lm_eval writes the first six.

    Attributes:
        version: `N-X`.
        metrics: metric -> value, without the name of the filter.
        config: lm-eval's record of the task's configuration.
        loaded: what was loaded (`prompts.documents.Loaded.record`), a part of that.
        conditions: under which it came about (`runs.conditions`).
        cut: kind of cut -> prompts that did not fit.
        intervals: metric -> its interval and how that was taken.
        highest: what perfect answers to these documents score by the suite's reading; None: 1, or not known.
        estimate: of drawn documents, how near the score is to that of all.
        unknown_traces: how answers begin that hold reasoning in a form that no rule knows -> how many do.
    """

    intervals: dict[str, IntervalRecord]
    conditions: dict[str, Any]
    cut: dict[str, int]
    tokens: dict[str, int] | None
    highest: float | None
    estimate: EstimateRecord
    unknown_traces: dict[str, int]
    judged_metrics: list[str]  # metrics that judges gave, which a new scoring takes out


def note_of_traces(records: Collection[Mapping[str, Any]]) -> str:
    """What share of the answers begin with reasoning that is not taken off; empty where none does.

    `records`: of tasks.
    """
    begins = Counter[str]()
    for record in records:
        begins.update(record.get("unknown_traces") or {})
    if not begins:
        return ""
    share = begins.total() / sum(record["n"] for record in records)
    return (
        f"{share:.1%} of the answers begin with what looks like reasoning ({begins.most_common(1)[0][0]}), in"
        " marks that no rule knows, and are read and judged with it → let the server take it off (vLLM:"
        " --reasoning-parser), or enter the marks in answers/traces.yaml and run `medtasks rescore`"
    )
