"""One task through lm-eval: build it, make its requests, score it, return its metrics and samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import Text
from medtasks_ext.engines import Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.fit import PromptFitter
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.registry import AnswerBudget, Dataset, Registry
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.run.asker import request_of
from medtasks_ext.runs.manifest import Choice
from medtasks_ext.runs.records import Sample, metrics_in
from medtasks_ext.strict import Config

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed
    from medtasks_ext.harness import LM, Instance, Task

#: Answers of which the official reading takes one token, however long the response is.
_CUT_BACK = "exact_letter"


@dataclass(frozen=True)
class Settings:
    """What besides the model decides a task's prompts and responses. Part of a run's identity."""

    num_fewshot: int | None = None  # shots of zero-shot and 5-shot prompts; None: as many as the task says
    apply_chat_template: bool | str = False  # whether, or which
    #: whether shots are turns of a conversation; None: with a chat template
    fewshot_as_multiturn: bool | None = None
    system_instruction: str | None = None  # further text of the system turn
    system_role: bool = True  # whether instructions stand in the system turn
    data: str | None = None  # origin of the rows; None: the first that is there
    prompts: str | None = None
    #: settings of generation in place of the tasks' own
    gen_kwargs: Config = field(default_factory=dict)
    seed: int | None = 1234  # of lm-eval's shots
    #: whether answers have the tokens that they have in the suites' own runs of models that do not reason
    #: (`official_budget`), where `gen_kwargs` do not say
    official_budget: bool = False
    context: int | None = None  # tokens of prompt and answer, on which that budget may depend
    layout: str | None = None  # a chat template in Jinja for models that have none and read plain text
    drop_faulty: bool | None = None  # whether local rows with faults are left out; None: they are refused

    @property
    def templated(self) -> bool:
        """Whether a prompt is a conversation that a template lays out."""
        return bool(self.apply_chat_template or self.layout)

    @property
    def multiturn(self) -> bool:
        """Whether shots are turns of a conversation."""
        return self.templated if self.fewshot_as_multiturn is None else self.fewshot_as_multiturn


@dataclass
class TaskResult:
    """What one task gave."""

    version: str
    metrics: dict[str, float]  # metric -> value, without lm-eval's filter suffix
    samples: list[Sample]  # lm-eval's records, one per document
    config: Config  # lm-eval's record of the task's configuration


def official_budget(dataset: Dataset, strategy: str) -> AnswerBudget | None:
    """What an answer may have where a run keeps to the suite's own budget; None where it does not.

    Asking to reason first is ours and takes more. The first token of a longer response is what a budget of
    one token would have left of it. A file that states `max_gen_toks` is kept to.
    """
    config = dataset.config
    stated = "max_gen_toks" in (config.get("generation_kwargs") or {})
    ours = strategy == "cot" and dataset.metadata.official_budget is not None
    if ours or stated or config["answer"]["kind"] == _CUT_BACK:
        return None
    return dataset.official_budget


def build_task(registry: Registry, name: str, settings: Settings) -> Task:
    """Build one lm-eval task, its documents loaded and its prompts rendered."""
    from medtasks_ext.task import MedicalTask  # with lm-eval: reading a run needs neither

    metadata: dict[str, Any] = {"system_role": settings.system_role, "shots": settings.num_fewshot or 0}
    metadata["prompts"] = settings.prompts or "auto"
    for key in ("data", "drop_faulty"):
        if value := getattr(settings, key):
            metadata[key] = value
    dataset, strategy = registry.known(name)
    task = MedicalTask.of(dataset, strategy, metadata)
    task.fits = False  # who asks cuts prompts, and counts what was cut
    writes = not by_likelihood(strategy)
    if writes and settings.official_budget and (budget := official_budget(dataset, strategy)):
        tokens = budget.tokens(settings.context)
        task.set_config("generation_kwargs", {"max_gen_toks": tokens}, update=True)
    if writes and settings.gen_kwargs:
        task.set_config("generation_kwargs", dict(settings.gen_kwargs), update=True)
    fixed = task.get_config("num_fewshot")
    if fixed is None or (settings.num_fewshot is not None and fixed != 0):
        task.set_config("num_fewshot", settings.num_fewshot or 0)
    task.set_fewshot_seed(settings.seed)
    task.check_repeats()
    return task


class Reader:
    """Reads answers to a task as its own filter does, one at a time."""

    def __init__(self, task: Task) -> None:
        (ensemble,) = task.config.filter_list
        (step,) = ensemble["filter"]
        arguments = {key: value for key, value in step.items() if key != "function"}
        self._filter = step["function"](**arguments)

    def read(self, row: Mapping[str, Any], text: str) -> Parsed:
        """What is read from a response to a document."""
        parsed: Parsed
        (parsed,) = self._filter.apply([[text]], [row])
        return parsed

    def valid(self, row: Mapping[str, Any], text: str) -> bool:
        """Whether an answer can be read from a response to a document."""
        return bool(self.read(row, text)["valid"])


def chosen_documents(task: Task, choice: Choice) -> Sequence[int]:
    """Places of the chosen documents, in file order."""
    n = len(task.eval_docs)
    places = choice.places(n)
    if beyond := [place for place in places if not 0 <= place < n]:
        raise MedtasksError(
            f"{task.task_name} has documents 0 to {n - 1}, not {beyond[0]}",
            where="--samples",
            remedy="draw the list from the rows that are here",
        )
    return places


def same_documents(task: Task, one: Choice, other: Choice) -> bool:
    n = len(task.eval_docs)
    return one == other or list(one.places(n)) == list(other.places(n))


def evaluate_task(lm: LM, task: Task, settings: Settings, choice: Choice | None = None) -> TaskResult:
    """Run one task over the chosen documents, by default all."""
    from medtasks_ext.harness import evaluate as lm_eval_evaluate

    choice, name = choice or Choice(), task.task_name
    results = lm_eval_evaluate(
        lm=lm,
        task_dict={"tasks": {name: task}, "groups": {}, "group_map": {}},
        limit=choice.limit,
        samples=None if choice.samples is None else {name: list(choice.samples)},
        bootstrap_iters=0,
        apply_chat_template=settings.apply_chat_template or settings.templated,
        fewshot_as_multiturn=settings.multiturn,
        system_instruction=settings.system_instruction,
    )
    version, samples = str(results["versions"][name]), results["samples"][name]
    return TaskResult(version, metrics_in(results["results"][name]), samples, results["configs"][name])


#: Turns of a conversation -> the prompt.
ChatTemplate = Callable[..., Any]


def chooses(task: Task) -> bool:
    """Whether the model is asked how likely the possible answers of a task are."""
    return bool(task.OUTPUT_TYPE == "multiple_choice")


def answer_budget(task: Task) -> int:
    """Tokens that an answer may have; 0 where nothing is written."""
    return int((task.config.generation_kwargs or {}).get("max_gen_toks") or 0)


def text_of(task: Task) -> Text:
    """Whose text the prompts of a task hold."""
    text: Text = task.eval_docs[0].loaded.text
    return text


def rendered_prompt(
    task: Task,
    document: dict[str, Any],
    settings: Settings,
    chat_template: ChatTemplate | None,
    shots: int | None = None,
) -> Any:
    """The prompt of one document: text, or what an API model wraps a conversation in.

    `chat_template`: the model's, used where the settings ask for it and have no layout of their own. `shots`:
    how many; by default what the task carries.
    """
    template = layout_template(settings.layout) if settings.layout else chat_template
    return task.fewshot_context(
        document,
        num_fewshot=int(task.config.num_fewshot or 0) if shots is None else shots,
        system_instruction=settings.system_instruction,
        apply_chat_template=settings.templated,
        fewshot_as_multiturn=settings.multiturn,
        chat_template=template if settings.templated else None,
        gen_prefix=task.doc_to_prefix(document),
    )


def takes_system_turn(chat_template: ChatTemplate) -> bool:
    """Whether a chat template shows what a system turn says."""
    turns = [{"role": "system", "content": "system probe"}, {"role": "user", "content": "user probe"}]
    try:
        return "system probe" in str(chat_template(turns))
    except Exception:  # templates refuse in their own ways
        return False


class RequestBuilder:
    """Makes the requests of one task of what lm-eval builds of its documents.

    `task`: as built, with all its documents; its prompts are cut to the context of the model from now on.
    """

    def __init__(self, model: LM, task: Task, settings: Settings, identity: str) -> None:
        from medtasks_ext.models import Baseline  # with lm-eval: reading a run does without

        self._model, self._task, self._settings = model, task, settings
        self._identity, self._reads_document = identity, isinstance(model, Baseline)
        task.fitter = PromptFitter(model)

    def build(self, place: int) -> Request:
        """The request about the document at a place of the test file."""
        row, settings, task = self._task.eval_docs[place], self._settings, self._task
        template = self._model.apply_chat_template if settings.apply_chat_template else None
        prompt, about = rendered_prompt(task, row, settings, template), (task.task_name, place, 1)
        made = task.construct_requests(row, prompt, metadata=about, apply_chat_template=settings.templated)
        return self.request(made if isinstance(made, list) else [made])

    def request(self, instances: Sequence[Instance], draw: int = 0) -> Request:
        """The request about a document, whose instances these are; `draw`: of how many before."""
        document = document_key(instances[0].doc)
        return request_of(
            instances,
            self._identity,
            document,
            draw=draw,
            seed=getattr(self._model, "_seed", None),
            reads_document=self._reads_document,
            apart=True,
            cut=self._task.cuts.get(document, ""),
        )
