"""Under which conditions a result came about: one record for results of every origin.

`Asked` is complete before the first request, `Observed` after the last. None stands for what nobody recorded.
`results.conditions` decides what may stand beside what, `results.condition_words` puts the record in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from medtasks_ext.engines.described import EngineRecord
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import text_hash
from medtasks_ext.registry.model_configs import ready_layouts
from medtasks_ext.runs.settings import Effect, setting_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.runs.records import TaskRecord

#: Schema of the record.
SCHEMA = 2
#: The suite's own rows, rows rebuilt from the original source, or invented sample rows.
Source: TypeAlias = Literal["suite", "rebuilt", "synthetic"]
#: The suite's words, ours, or the suite's with our own line of the strategy.
Words: TypeAlias = Literal["official", "own", "official, own strategy line"]
#: What the chat template is called that the model's file writes out (`metadata.layout`).
LAYOUT = "of the model's file"

#: Fields of `Observed` that count what did not fit, and what was filtered.
CUTS = ("shots_dropped", "inputs_cut", "answers_cut", "answers_filtered")
#: Model arguments that name the model.
_NAMES = frozenset({"pretrained", "model"})
#: Names of the budget of an answer, the first that is set counts: lm-eval's `normalize_gen_kwargs`.
_BUDGETS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")


class _Part:
    """What a part does not know is refused when it is read."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Rows(_Part):
    source: Source | None = None  # whose rows they are
    origin: str | None = None  # local, hub, release or sample
    revision: str | None = None  # of a download
    hash: str | None = None  # of the rendered documents and their gold
    n_of_suite: int | None = None  # documents that the suite states; None or 0 where it states none
    documents: str | None = None  # the choice of them: `all`, or what was chosen (`runs.choice.Choice.words`)
    folded: str | None = None  # of local rows: the hash that `data.lock` keeps of the suite's
    differs: bool | None = None  # local rows are not those of the public file that `data.lock` knows


@dataclass(frozen=True)
class Wording(_Part):
    kind: Words | None = None
    artefact: str | None = (
        None  # the released file that holds the official words, where rows do not carry them
    )
    revision: str | None = None  # its version or commit
    hash: str | None = None  # of the prompt's templates, or of the official words


@dataclass(frozen=True)
class Shots(_Part):
    k: int | None = None
    hash: str | None = None  # of the examples as rendered; None without any


@dataclass(frozen=True)
class Layout(_Part):
    chat_template: bool | str | None = None  # applied or not, the name of another one, or `LAYOUT`
    system_role: bool | None = None  # whether instructions stand in the system turn
    system_instruction: str | None = None  # further text of the system turn
    shots_as_turns: bool | None = None  # whether examples are turns of a conversation
    #: hash of a template of the user's own, which neither the model's repository nor a ready file brings
    own_template: str | None = None
    #: what stands between prompt and answer where possible answers are compared by likelihood
    target_delimiter: str | None = None


@dataclass(frozen=True)
class Judge(_Part):
    name: str
    model: str | None = None  # where it has another name
    request: str | None = None  # what its requests say besides the question, as JSON
    served: tuple[str, ...] = ()  # other models that answered in its place, as servers call them


@dataclass(frozen=True)
class Jury(_Part):
    judges: tuple[Judge, ...]
    adjudicator: Judge | None = None  # who decides where two assessors differ
    protocol: str | None = None  # its id
    wording: Literal["official", "own"] | None = None  # of the questions to judges
    hash: str | None = None  # of protocol and questions


@dataclass(frozen=True)
class Asked(_Part):
    """What is fixed before the first request."""

    suite: str | None = None
    dataset: str | None = None  # its id
    strategy: str = "zero_shot"  # as it is run: kind of prompt and number of examples
    version: str | None = None  # `N-X` of the task's reader and metric; None of a paper's own scorer
    rows: Rows = Rows()
    wording: Wording = Wording()
    shots: Shots = Shots()
    layout: Layout = Layout()
    budget: int | None = None  # tokens that an answer may have
    context: int | None = None  # tokens of prompt and answer together
    decoding: Mapping[str, Any] | None = None  # generation settings but the budget
    seed: int | None = None  # of the draws
    jury: Jury | None = None  # None where nobody judges, or nobody recorded who
    engine: str | None = None  # lm-eval's type of model
    arguments: Mapping[str, Any] | None = None  # of the model, that can move a score


@dataclass(frozen=True)
class Observed(_Part):
    """What is known after the last answer."""

    n: int | None = None  # documents that were answered
    n_here: int | None = None  # documents of the test file that was read
    n_held_out: int | None = None  # test rows that serve as examples
    n_dropped: int | None = None  # test rows without gold that the suite leaves out
    n_faulty: int | None = None  # local test rows with faults that the user let go; None where none was
    shots_dropped: int | None = None  # prompts that carry fewer examples than asked for, to fit
    inputs_cut: int | None = None  # inputs that lost a part, to fit
    answers_cut: int | None = None  # answers that fill the budget
    answers_looped: int | None = None  # answers that the engine ended since they repeated themselves
    answers_filtered: int | None = None  # answers that the server's filter took away
    judged: float | None = None  # share of the answers that were judged; None where nobody judges
    own_words_instead: bool | None = None  # the suite's words were wished and could not be had whole
    served: tuple[str, ...] | None = None  # models that answered, as servers call them
    versions: tuple[Mapping[str, str], ...] = ()  # of packages, in each session, equal ones once
    engines: tuple[EngineRecord, ...] = ()  # what answered in each session, equal ones once

    def counted(self, cut: Mapping[str, int]) -> Observed:
        """With counts of what did not fit, by name of a field; those that nobody counted are not there."""
        return replace(
            self,
            shots_dropped=cut.get("shots_dropped"),
            inputs_cut=cut.get("inputs_cut"),
            answers_cut=cut.get("answers_cut"),
            answers_looped=cut.get("answers_looped"),
            answers_filtered=cut.get("answers_filtered"),
        )


def accounted_rows(here: int, held_out: int | None, dropped: int | None, stated: int) -> int:
    """Here, held out, or without gold."""
    return here if here >= stated else min(here + (held_out or 0) + (dropped or 0), stated)


@dataclass(frozen=True)
class Conditions(_Part):
    """Everything that can move a score, as far as it is known."""

    asked: Asked = Asked()
    observed: Observed = Observed()

    @property
    def synthetic(self) -> bool:
        return self.asked.rows.source == "synthetic"

    @property
    def cut(self) -> dict[str, int]:
        """Kinds that nobody counted are left out."""
        counts = {kind: getattr(self.observed, kind) for kind in CUTS}
        return {kind: n for kind, n in counts.items() if n is not None}

    @cached_property
    def accounted(self) -> int | None:
        """Where all here are answered: asked, or held out."""
        seen, stated = self.observed, self.asked.rows.n_of_suite or 0
        rows = seen.n if seen.n_here is None else seen.n_here
        return None if rows is None else accounted_rows(rows, seen.n_held_out, seen.n_dropped, stated)

    def on(self, documents: str, n: int) -> Conditions:
        return replace(
            self,
            asked=replace(self.asked, rows=replace(self.asked.rows, documents=documents)),
            observed=replace(self.observed, n=n),
        )

    def record(self) -> Json:
        """What is unknown is left out."""
        return {"schema": SCHEMA, **_known(asdict(self))}


@dataclass(frozen=True)
class RunConditions(_Part):
    """What all tasks of a run share. None: nobody recorded it."""

    engine: str | None = None  # lm-eval's type of model
    arguments: Mapping[str, Any] | None = None  # of the model, that can move a score
    layout: Layout = Layout()
    decoding: Mapping[str, Any] | None = None  # settings in place of the tasks' own; empty: none
    documents: tuple[str, ...] | None = None  # the choices of documents that its tasks stand over
    synthetic: bool | None = None  # whether rows of any task are invented
    juries: tuple[Jury, ...] = ()  # that judged its tasks

    def record(self) -> Json:
        """What is unknown is left out."""
        return _known(asdict(self))


def _known(content: dict[str, Any]) -> dict[str, Any]:
    """Without what is None or has no content; an empty mapping says that there is nothing."""
    known = {}
    for key, value in content.items():
        if isinstance(value, dict) and key not in _MAPPINGS:
            value = _known(value)
            if not value:
                continue
        elif isinstance(value, tuple):
            value = tuple(_known(one) if isinstance(one, dict) else one for one in value)
        if value is not None and value != ():
            known[key] = value
    return known


#: Fields that hold a mapping of values, and not a part of the record.
_MAPPINGS = ("decoding", "arguments", "generation")


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Conditions]:
    return TypeAdapter(Conditions)


def read_conditions(content: Mapping[str, Any], where: object = None) -> Conditions:
    """MedtasksError of another schema, or of what no record holds."""
    if content.get("schema") != SCHEMA:
        raise MedtasksError(
            f"conditions: schema is {content.get('schema')!r}, and this version reads {SCHEMA}",
            where=where,
            remedy="medtasks rescore RUN",
        )
    try:
        return _adapter().validate_python({key: value for key, value in content.items() if key != "schema"})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise MedtasksError(
            f"conditions: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}",
            where=where,
            remedy="medtasks rescore RUN",
        ) from None


def conditions_of(stored: TaskRecord, documents: str, where: object) -> Conditions:
    """The record of a stored result, which stands over the documents that the run chose for it."""
    return read_conditions(stored["conditions"], where).on(documents, stored["n"])


def run_conditions(manifest: Mapping[str, Any]) -> RunConditions:
    """Plain `lm_eval` results have a manifest of the same keys."""
    identity = manifest["identity"]
    settings, model = identity["settings"], identity["model"]
    given, multiturn = settings.get("apply_chat_template"), settings.get("fewshot_as_multiturn")
    written = None if given else settings.get("layout")
    template = LAYOUT if written else given
    return RunConditions(
        engine=str(model["model"]),
        arguments=moving(model["model_args"]),
        layout=Layout(
            chat_template=template,
            # the model's chat template may have refused what was asked for
            system_role=bool(manifest.get("system_role", settings.get("system_role", True))),
            system_instruction=settings.get("system_instruction") or None,
            shots_as_turns=bool(template) if multiturn is None else bool(multiturn),
            own_template=text_hash(written) if written and written not in ready_layouts() else None,
        ),
        decoding=settings.get("gen_kwargs") or {},
    )


def moving(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """All but the name of the model and those that are harmless."""
    return {key: value for key, value in arguments.items() if not is_harmless(key) and key not in _NAMES}


def is_harmless(argument: str) -> bool:
    """Whether a model argument moves no score, whatever its value: where and how fast a model answers."""
    line = setting_of("model", argument)
    return line is not None and line.effect is Effect.HARMLESS


def task_conditions(
    asked: Asked, observed: Observed, run: RunConditions, loaded: LoadedRecord, config: Mapping[str, Any]
) -> Conditions:
    """The record of a task that was run.

    Args:
        observed: what was loaded aside.
        loaded: the record of what was loaded; empty where nobody recorded it.
        config: lm-eval's record of the task's configuration.
    """
    generation = dict(config.get("generation_kwargs") or {})
    given = [generation.pop(name, None) for name in _BUDGETS]
    budget = next((value for value in given if value is not None), None)
    kind, origin = loaded.get("instruction"), loaded.get("origin")
    source: Source | None = "rebuilt" if loaded.get("rebuilt") else "suite" if loaded else None
    rows = replace(
        asked.rows,
        source=asked.rows.source or source,
        origin=None if origin is None else str(origin),
        revision=loaded.get("revision"),
        hash=loaded.get("rows_hash"),
        folded=loaded.get("folded"),
        differs=loaded.get("differs"),
    )
    wording = Wording(
        cast("Words", kind) if kind in get_args(Words) else None,
        loaded.get("artefact"),
        loaded.get("artefact_revision"),
        loaded.get("prompt_hash"),
    )
    return Conditions(
        replace(
            asked,
            rows=rows,
            wording=wording,
            shots=replace(asked.shots, k=int(config.get("num_fewshot") or 0)),
            layout=replace(run.layout, target_delimiter=_delimiter(config)),
            budget=asked.budget if budget is None else int(budget),
            decoding=generation if generation or budget is not None else None,
            engine=run.engine,
            arguments=run.arguments,
        ),
        replace(
            observed,
            n_here=loaded.get("n_test"),
            n_held_out=loaded.get("n_held_out"),
            n_dropped=loaded.get("n_dropped"),
            n_faulty=loaded.get("n_faulty"),
        ),
    )


def _delimiter(config: Mapping[str, Any]) -> str | None:
    """None where the model writes its answer."""
    return (
        str(config.get("target_delimiter", " ")) if config.get("output_type") == "multiple_choice" else None
    )
