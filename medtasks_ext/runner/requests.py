"""The requests of a task: prompts as a model gets them, built one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import Text
from medtasks_ext.engines.lm import lm_eval_prompt
from medtasks_ext.engines.records import Prompt, Request
from medtasks_ext.prompts.documents import Loaded, document_key
from medtasks_ext.prompts.fit import PromptFitter
from medtasks_ext.run.key import request_key
from medtasks_ext.runner.prompts import rendered_prompt

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Instance, Task
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runner.evaluate import Settings

#: Half of a surrogate pair: no reader of texts takes it.
_HALF = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with the replacement character for halves of surrogate pairs."""
    return _HALF.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class AskedPrompt:
    """One document's request."""

    key: str
    document: str  # its key
    prompt: Prompt  # as sent
    cut: str = ""  # what did not fit: `shots`, `input`, or nothing
    options: tuple[str, ...] = ()  # the possible answers, where the model is asked how likely they are

    @property
    def argument(self) -> Any:
        """The prompt as lm-eval records it."""
        return lm_eval_prompt(self.prompt)


def chooses(task: Task) -> bool:
    """Whether the model is asked how likely the possible answers of a task are."""
    return bool(task.OUTPUT_TYPE == "multiple_choice")


def text_of(task: Task) -> Text:
    """Whose text the prompts of a task hold; of a task of another class nobody knows."""
    from medtasks_ext.task import MedicalTask  # with lm-eval: reading a run does without

    if not isinstance(task, MedicalTask):
        return Text(task.task_name, is_open=False)
    return dataset_text(task.dataset_given, task.dataset["test"][0].loaded)


def dataset_text(dataset: Dataset, loaded: Loaded) -> Text:
    """Whose text the documents of a dataset hold. Synthetic rows are open."""
    return Text(dataset.id, is_open=dataset.metadata.access == "open" or loaded.record["origin"] == "sample")


class RequestBuilder:
    """Makes the requests of one task of what lm-eval builds of its documents.

    Args:
        task: as built, with all its documents; its prompts are cut to the context of the model from now on.
    """

    def __init__(self, model: LM, task: Task, settings: Settings, identity: str) -> None:
        from medtasks_ext.models.baselines import Baseline  # with lm-eval: reading a run does without

        self._task, self._identity, self._text = task, identity, text_of(task)
        self._settings, self._model = settings, model
        self._reads_document = isinstance(model, Baseline)
        self._chooses = chooses(task)
        self.settings: Config = {} if self._chooses else dict(task.config.generation_kwargs or {})
        task.fitter = PromptFitter(model)

    def build(self, place: int) -> AskedPrompt:
        """The prompt for the document at a place of the test file, and the key of its request."""
        row, settings = self._task.eval_docs[place], self._settings
        template = self._model.apply_chat_template if settings.apply_chat_template else None
        prompt = rendered_prompt(self._task, row, settings, template)
        name = self._task.task_name
        made = self._task.construct_requests(
            row, prompt, metadata=(name, place, 1), apply_chat_template=settings.templated
        )
        return self.asked(made if isinstance(made, list) else [made])

    def asked(self, instances: Sequence[Instance]) -> AskedPrompt:
        """The request of a document, whose instances these are."""
        first = instances[0]
        document, given = document_key(first.doc), first.args[0]
        options = tuple(str(instance.args[1]) for instance in instances) if self._chooses else ()
        prompt: Prompt = json.loads(given.prompt) if hasattr(given, "prompt") else given
        key = self._key(document, prompt, options or self.settings)
        cut = getattr(self._task, "cuts", {}).get(document, "")
        return AskedPrompt(key, document, prompt, cut, options)

    def requests(self, documents: Collection[str]) -> dict[str, Request]:
        """Those of some documents."""
        rows = ((place, row, document_key(row)) for place, row in enumerate(self._task.eval_docs))
        return {key: self.request(self.build(place), row) for place, row, key in rows if key in documents}

    def request(self, asked: AskedPrompt, row: Mapping[str, Any], budget: int | None = None) -> Request:
        """The request itself.

        Args:
            row: the document.
            budget: tokens that the answer may have; those of the task by default.
        """
        settings, key, name = self.settings, asked.key, self._task.task_name
        if budget is not None and not asked.options and budget != settings.get("max_gen_toks"):
            settings = {**settings, "max_gen_toks": budget}
            key = self._key(asked.document, asked.prompt, settings)
        return Request(
            key,
            name,
            asked.document,
            asked.prompt,
            settings,
            row,
            text=self._text,
            options=asked.options,
        )

    def _key(self, document: str, prompt: Prompt, asked: Mapping[str, Any] | Sequence[str]) -> str:
        whose = (self._task.task_name, document)
        reads, apart = self._reads_document, "" if self._text.is_open else self._text.dataset
        return request_key(self._identity, prompt, asked, whose, reads_document=reads, apart=apart)
