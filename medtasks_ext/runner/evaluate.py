"""One task through lm-eval: build it, run it, return its metrics and samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lm_eval.evaluator import evaluate as lm_eval_evaluate
from lm_eval.evaluator_utils import get_sample_size
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry
from medtasks_ext.runner.store import document_key, request_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lm_eval.api.model import LM
    from lm_eval.api.task import Task


@dataclass(frozen=True)
class Settings:
    """What besides the model decides a task's prompts and responses. Part of a run's identity."""

    num_fewshot: int | None = None
    apply_chat_template: bool | str = False
    fewshot_as_multiturn: bool | None = None
    system_instruction: str | None = None
    system_role: bool = True
    data: str | None = None
    limit: float | None = None
    samples: dict[str, list[int]] | None = None
    gen_kwargs: dict[str, Any] = field(default_factory=dict)
    seed: int | None = 1234

    @property
    def multiturn(self) -> bool:
        """Whether shots are turns of a conversation; the default with a chat template."""
        if self.fewshot_as_multiturn is None:
            return bool(self.apply_chat_template)
        return self.fewshot_as_multiturn


@dataclass
class TaskResult:
    """What one task gave.

    Attributes:
        metrics: metric -> value, without lm-eval's filter suffix.
        samples: lm-eval's records, one per document.
        config: lm-eval's record of the task's configuration.
        loaded: what was loaded (origin, revision, prompt hash, counts).
    """

    task: str
    version: str
    metrics: dict[str, float]
    samples: list[dict[str, Any]]
    config: dict[str, Any]
    loaded: dict[str, Any]


def task_file(registry: Registry, name: str) -> Path:
    """The YAML file of a task."""
    dataset, strategy = registry.tasks[name]
    return dataset.folder / f"{strategy}.yaml"


def build_task(registry: Registry, name: str, settings: Settings) -> Task:
    """Build one lm-eval task, its documents loaded and its prompts rendered.

    Raises:
        MedtasksError: data that is missing or malformed.
    """
    metadata: dict[str, Any] = {"system_role": settings.system_role, "shots": settings.num_fewshot or 0}
    if settings.data:
        metadata["data"] = settings.data
    manager = TaskManager(include_defaults=False, metadata=metadata)
    task = next(iter(manager.load([str(task_file(registry, name))])["tasks"].values()))
    if settings.gen_kwargs:
        task.set_config("generation_kwargs", dict(settings.gen_kwargs), update=True)
    fixed = task.get_config("num_fewshot")
    if fixed is None or (settings.num_fewshot is not None and fixed != 0):
        task.set_config("num_fewshot", settings.num_fewshot or 0)
    task.set_fewshot_seed(settings.seed)
    return task


def chosen_documents(task: Task, settings: Settings) -> Sequence[int]:
    """Places of the documents that `--samples` or `--limit` choose, in file order; all without them.

    Raises:
        MedtasksError: the list names a place that the test file does not have.
    """
    n = len(task.eval_docs)
    if listed := (settings.samples or {}).get(task.task_name):
        if beyond := [place for place in listed if not 0 <= place < n]:
            raise MedtasksError(
                f"{task.task_name} has documents 0 to {n - 1}, not {beyond[0]}",
                where="--samples",
                remedy="draw the list from the rows that are here",
            )
        return sorted(set(listed))
    return range(min(n, get_sample_size(task, settings.limit) or n))


def generate_task(lm: LM, task: Task, settings: Settings, places: Sequence[int]) -> dict[str, str] | None:
    """Ask a model for the responses to some documents of a task; nothing is scored.

    Prompts are those that `evaluate_task` makes for these documents.

    Args:
        lm: the model.
        task: as built, with all its documents.
        settings: of the run.
        places: of the documents in the test file, ascending; at least one.

    Returns:
        Document key -> request key, in file order. None on ranks other than 0.
    """
    # every rank gets as many requests as the others, as lm-eval sees to it
    even = [*places, *[places[-1]] * (-len(places) % lm.world_size)]
    task.build_all_requests(
        samples=frozenset(even[lm.rank :: lm.world_size]),
        system_instruction=settings.system_instruction,
        apply_chat_template=bool(settings.apply_chat_template),
        fewshot_as_multiturn=settings.multiturn,
        chat_template=lm.apply_chat_template if settings.apply_chat_template else None,
    )
    lm.generate_until(task.instances)
    asked = lm.gather_object({document_key(item.doc): request_key(item) for item in task.instances})
    if asked is None:
        return None
    requests = {document: key for part in asked for document, key in part.items()}
    keys = (document_key(task.eval_docs[place]) for place in places)
    return {document: requests[document] for document in keys}


def evaluate_task(lm: LM, task: Task, settings: Settings) -> TaskResult | None:
    """Run one task. Returns None on ranks other than 0."""
    name = task.task_name
    results = lm_eval_evaluate(
        lm=lm,
        task_dict={"tasks": {name: task}, "groups": {}, "group_map": {}},
        limit=settings.limit,
        samples={name: settings.samples[name]} if settings.samples and name in settings.samples else None,
        bootstrap_iters=0,
        apply_chat_template=settings.apply_chat_template,
        fewshot_as_multiturn=settings.multiturn,
        system_instruction=settings.system_instruction,
    )
    if results is None:
        return None
    metrics = {
        key.partition(",")[0]: value
        for key, value in results["results"][name].items()
        if key.endswith(",answer") and "_stderr" not in key
    }
    config = results["configs"][name]
    return TaskResult(
        task=name,
        version=str(results["versions"][name]),
        metrics=metrics,
        samples=results["samples"][name],
        config=config,
        loaded=config["metadata"]["medtasks"]["loaded"],
    )
