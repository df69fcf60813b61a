"""One task through lm-eval: build it, make its requests, score it, return its metrics and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.egress import Text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.registry import AnswerBudget, Dataset, Registry
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.runs.manifest import Choice
from medtasks_ext.runs.records import Sample, metrics_in
from medtasks_ext.strict import Config

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed
    from medtasks_ext.harness import LM, Task

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


def reader_of(task: Task) -> Callable[[Mapping[str, Any], str], Parsed]:
    """What reads a response to a document as the task's own filter does."""
    (ensemble,) = task.config.filter_list
    (step,) = ensemble["filter"]
    made = step["function"](**{key: value for key, value in step.items() if key != "function"})
    return lambda row, text: cast("Parsed", made.apply([[text]], [row])[0])


def evaluate_task(lm: LM, task: Task, settings: Settings, choice: Choice | None = None) -> TaskResult:
    """Run one task over the chosen documents, by default all."""
    from medtasks_ext.harness import evaluate as lm_eval_evaluate

    choice, name = choice or Choice(), task.task_name
    try:
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
    finally:
        task._instances = None  # else prompts and answers stay as long as the task
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


def prompts_of(
    task: Task,
    documents: Iterable[dict[str, Any]],
    settings: Settings,
    chat_template: ChatTemplate | None,
    shots: int | None = None,
) -> list[str]:
    """The prompts of documents, as texts: those of a conversation in JSON."""
    prompts = (rendered_prompt(task, one, settings, chat_template, shots) for one in documents)
    return [str(getattr(prompt, "prompt", prompt)) for prompt in prompts]


def takes_system_turn(chat_template: ChatTemplate) -> bool:
    """Whether a chat template shows what a system turn says; one that is absent is refused."""
    system, user = ({"role": role, "content": f"{role} probe"} for role in ("system", "user"))
    try:
        reason = "" if user["content"] in str(chat_template([user])) else "it leaves the user's turn out"
    except Exception as error:  # templates and models refuse in their own ways
        reason = (str(error) or type(error).__name__).splitlines()[0]
    if reason:
        raise MedtasksError(
            f"the model has no chat template that can be applied ({reason})",
            where="--apply_chat_template",
            remedy="leave the flag out for a base model; else give the tokenizer the template of the model",
        )
    with suppress(Exception):
        return system["content"] in str(chat_template([system, user]))
    return False
