"""Under which conditions a result came about: one flat record for results of every origin.

What is asked is complete before the first request, what was seen after the last answer. None stands for what
nobody recorded. `results.conditions` decides what may stand beside what.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import text_hash
from medtasks_ext.registry.folders import ready_layouts
from medtasks_ext.runs.manifest import EngineRecord
from medtasks_ext.runs.settings import is_harmless
from medtasks_ext.strict import faults_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.runs.records import TaskRecord

#: Schema of the record.
SCHEMA = 4
#: The suite's own rows, rows rebuilt from the original source, or invented sample rows.
Source: TypeAlias = Literal["suite", "rebuilt", "synthetic"]
#: The suite's words, ours, or the suite's with our own line of the strategy.
Words: TypeAlias = Literal["official", "own", "official, own strategy line"]
#: Names of the budget of an answer, the first that is set counts: lm-eval's `normalize_gen_kwargs`.
_BUDGETS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
#: Conditions that have the same name in the record of what was loaded.
_OF_ROWS = ("origin", "revision", "folded", "differs", "n_dropped", "n_faulty")


class _Strict:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")  # of what is read


@dataclass(frozen=True)
class Judge(_Strict):
    name: str
    model: str | None = None  # where it has another name
    request: str | None = None  # what its requests say besides the question, as JSON
    served: tuple[str, ...] = ()  # other models that answered in its place, as servers call them


@dataclass(frozen=True)
class Jury(_Strict):
    judges: tuple[Judge, ...]
    adjudicator: Judge | None = None  # who decides where two assessors differ
    protocol: str | None = None  # its id
    wording: Literal["official", "own"] | None = None  # of the questions to judges
    hash: str | None = None  # of protocol and questions


@dataclass(frozen=True)
class Conditions(_Strict):
    """Everything that can move a score, as far as it is known; of a run, what all its tasks share."""

    # the task
    dataset: str | None = None  # its id
    strategy: str = "zero_shot"  # as it is run: kind of prompt and number of examples
    version: str | None = None  # `N-X` of the task's reader and metric; None of a paper's own scorer
    # rows
    source: Source | None = None  # whose rows they are
    origin: str | None = None  # local, hub, release or sample
    revision: str | None = None  # of a download
    rows: str | None = None  # hash of the rendered documents and their gold
    folded: str | None = None  # of local rows: the hash that `data.lock` keeps of the suite's
    differs: bool | None = None  # local rows are not those of the public file that `data.lock` knows
    documents: str | None = None  # the choice of them: `all`, or what was chosen (`Choice.words`)
    n_of_suite: int | None = None  # documents that the suite states; None or 0 where it states none
    n: int | None = None  # documents that were answered
    n_here: int | None = None  # documents of the test file that was read
    held_out: int | None = None  # test rows that serve as examples
    n_dropped: int | None = None  # test rows without gold that the suite leaves out
    n_faulty: int | None = None  # local test rows with faults that the user let go; None where none was
    # wording, examples
    wording: Words | None = None
    artefact: str | None = None  # the released file with the official words, where rows do not carry them
    artefact_revision: str | None = None  # its version or commit
    prompt: str | None = None  # hash of the prompt's templates, or of the official words
    shots: int | None = None
    examples: str | None = None  # hash of the examples as rendered; None without any
    shots_dropped: int | None = None  # prompts that carry fewer examples than asked for, to fit
    # layout
    template: bool | str | None = None  # chat template: applied or not, or which other one
    #: hash of a template of the user's own, which neither the model's repository nor a ready file brings
    own_template: str | None = None
    system: bool | None = None  # whether instructions stand in the system turn
    system_instruction: str | None = None  # further text of the system turn
    turns: bool | None = None  # whether examples are turns of a conversation
    #: what stands between prompt and answer where possible answers are compared by likelihood
    delimiter: str | None = None
    # budget, context, and what did not fit
    budget: int | None = None  # tokens that an answer may have
    context: int | None = None  # tokens of prompt and answer together
    inputs_cut: int | None = None  # inputs that lost a part, to fit
    answers_cut: int | None = None  # answers that fill the budget
    answers_looped: int | None = None  # answers that the engine ended since they repeated themselves
    answers_filtered: int | None = None  # answers that the server's filter took away
    # decoding
    decoding: Mapping[str, Any] | None = None  # settings but the budget; of a run, in place of the tasks' own
    seed: int | None = None  # of the draws
    repeats: int = 1  # how often each document was asked
    # judges
    jury: Jury | None = None  # None where nobody judges, or nobody recorded who
    judged: float | None = None  # share of the answers that were judged; None where nobody judges
    # engine
    engine: str | None = None  # lm-eval's type of model
    arguments: Mapping[str, Any] | None = None  # of the model, that can move a score
    served: tuple[str, ...] | None = None  # models that answered, as servers call them
    versions: tuple[Mapping[str, str], ...] = ()  # of packages, in each session, equal ones once
    engines: tuple[EngineRecord, ...] = ()  # what answered in each session, equal ones once

    @property
    def synthetic(self) -> bool:
        return self.source == "synthetic"

    @property
    def cut(self) -> dict[str, int]:
        """What did not fit, and what was filtered; kinds that nobody counted are left out."""
        kinds = ("shots_dropped", "inputs_cut", "answers_cut", "answers_filtered")
        return {kind: n for kind in kinds if (n := getattr(self, kind)) is not None}

    @cached_property
    def accounted(self) -> int | None:
        """Where all here are answered: asked, or held out."""
        rows = self.n if self.n_here is None else self.n_here
        return rows and accounted_rows(rows, self.held_out, self.n_dropped, self.n_of_suite or 0)

    def record(self) -> Json:
        """What is unknown is left out."""
        known = _ADAPTER.dump_python(self, exclude_defaults=True)
        return {"schema": SCHEMA, "strategy": self.strategy, **known}


def accounted_rows(here: int, held_out: int | None, dropped: int | None, stated: int) -> int:
    """Here, held out, or without gold."""
    return here if here >= stated else min(here + (held_out or 0) + (dropped or 0), stated)


_ADAPTER = TypeAdapter(Conditions)


def read_conditions(content: Mapping[str, Any], where: object = None) -> Conditions:
    """MedtasksError of another schema, or of what no record holds."""
    what = f"schema is {content.get('schema')!r}, and this version reads {SCHEMA}"
    try:
        if content.get("schema") == SCHEMA:
            return _ADAPTER.validate_python({key: content[key] for key in content if key != "schema"})
    except ValidationError as error:
        what = faults_of(error)[0]
    raise MedtasksError(f"conditions: {what}", where=where, remedy="medtasks rescore RUN") from None


def conditions_of(stored: TaskRecord, documents: str, where: object) -> Conditions:
    """The record of a stored result, which stands over the documents that the run chose for it."""
    return replace(read_conditions(stored["conditions"], where), documents=documents, n=stored["n"])


def run_conditions(manifest: Mapping[str, Any]) -> Conditions:
    """What all tasks of a run share. Plain `lm_eval` results have a manifest of the same keys."""
    settings, model = manifest["identity"]["settings"], manifest["identity"]["model"]
    given, multiturn = settings.get("apply_chat_template"), settings.get("fewshot_as_multiturn")
    written = None if given else settings.get("layout")
    template = "of the model's file" if written else given
    return Conditions(
        engine=str(model["model"]),
        arguments=moving(model["model_args"]),
        template=template,
        # the model's chat template may have refused what was asked for
        system=bool(manifest.get("system_role", settings.get("system_role", True))),
        system_instruction=settings.get("system_instruction") or None,
        turns=bool(template) if multiturn is None else bool(multiturn),
        own_template=text_hash(written) if written and written not in ready_layouts() else None,
        decoding=settings.get("gen_kwargs") or {},
    )


def moving(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """All but the name of the model and those that are harmless."""
    named = ("pretrained", "model")
    return {key: value for key, value in arguments.items() if key not in named and not is_harmless(key)}


def task_conditions(run: Conditions, loaded: LoadedRecord, config: Mapping[str, Any]) -> Conditions:
    """What a run, the record of what was loaded, and lm-eval's of the configuration say of a task."""
    generation = dict(config.get("generation_kwargs") or {})
    given = [generation.pop(name, None) for name in _BUDGETS]
    budget = next((value for value in given if value is not None), None)
    kind, of_rows = loaded.get("instruction"), cast("Json", {name: loaded.get(name) for name in _OF_ROWS})
    by_likelihood = config.get("output_type") == "multiple_choice"
    return replace(
        run,
        source="rebuilt" if loaded.get("rebuilt") else "suite" if loaded else None,
        rows=loaded.get("rows_hash"),
        n_here=loaded.get("n_test"),
        held_out=loaded.get("n_held_out"),
        wording=cast("Words", kind) if kind in get_args(Words) else None,
        prompt=loaded.get("prompt_hash"),
        artefact=loaded.get("artefact"),
        artefact_revision=loaded.get("artefact_revision"),
        **of_rows,
        shots=int(config.get("num_fewshot") or 0),
        delimiter=str(config.get("target_delimiter", " ")) if by_likelihood else None,
        budget=None if budget is None else int(budget),
        decoding=generation if generation or budget is not None else None,
        repeats=1 if by_likelihood else int(config.get("repeats") or 1),
    )


#: What a server adds to a name that an alias or another name of the model leaves out: a date or the number of
#: an edition, or a tag (`gpt-4o-2024-08-06`, `gemini-2.0-flash-001`, `mistral-large-2411`, `llama3:latest`).
_DATE = r"20\d\d-?[01]\d-?[0-3]\d|[01]\d-[0-3]\d|[01]\d-20\d\d"
_EDITIONS = re.compile(rf"([-_@:]({_DATE}|\d{{3,4}}|v\d+(:\d+)?))*")
_TAG = re.compile(r"(-latest|:[a-z][a-z-]*)\Z")
_ODD = re.compile(r"[^\w./:@+-]")


def other_models(asked: str, served: Iterable[str]) -> list[str]:
    """Names of models that are not the one asked for, as a line may show them."""
    return [_ODD.sub("?", name)[:80] for name in sorted({*served}) if not _alike(asked, name)]


def _alike(one: str, other: str) -> bool:
    """Whether two names are of one model: providers may stand before one of them, an edition behind it."""
    names = [_TAG.sub("", name.lower()).split("/") for name in (one, other)]
    parts = min(map(len, names))
    short, long = sorted(("/".join(name[-parts:]) for name in names), key=len)
    return long.startswith(short) and _EDITIONS.fullmatch(long, len(short)) is not None


def served_note(asked: str, served: Collection[Iterable[str]]) -> str:
    """A line where another model answered; empty where none did, or where nobody knows what was asked."""
    found = [others for names in served if asked and (others := other_models(asked, names))]
    names = ", ".join(sorted({name for others in found for name in others}))
    of = f"{len(found)} of {len(served)} tasks" if len(served) > 1 else "the task"
    said = f"asked for {_ODD.sub('?', asked)}, and the server answered as {names}, in {of}"
    return said if found else ""
