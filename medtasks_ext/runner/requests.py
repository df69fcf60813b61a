"""The requests of a task: prompts as a model gets them, built one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import Text
from medtasks_ext.engines.records import Request
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.fit import PromptFitter
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.run.requests import request_of

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Instance, Task
    from medtasks_ext.runner.evaluate import Settings

#: Turns of a conversation -> the prompt.
ChatTemplate = Callable[..., Any]
#: Half of a surrogate pair: no reader of texts takes it.
_HALF = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with the replacement character for halves of surrogate pairs."""
    return _HALF.sub("\ufffd", text)


def chooses(task: Task) -> bool:
    """Whether the model is asked how likely the possible answers of a task are."""
    return bool(task.OUTPUT_TYPE == "multiple_choice")


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
    """The prompt of one document.

    `chat_template`: the model's, used where the settings ask for it and have no layout of their own. `shots`:
    how many; by default what the task carries.

    Returns:
        Text, or what an API model wraps a conversation in.
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
        from medtasks_ext.models.baselines import Baseline  # with lm-eval: reading a run does without

        self._model, self._task, self._settings = model, task, settings
        self._identity, self._reads_document = identity, isinstance(model, Baseline)
        task.fitter = PromptFitter(model)

    def build(self, place: int, budget: int | None = None) -> Request:
        """The request about the document at a place of the test file.

        `budget`: tokens that the answer may have; those of the task by default.
        """
        row, settings = self._task.eval_docs[place], self._settings
        template = self._model.apply_chat_template if settings.apply_chat_template else None
        prompt = rendered_prompt(self._task, row, settings, template)
        name = self._task.task_name
        made = self._task.construct_requests(
            row, prompt, metadata=(name, place, 1), apply_chat_template=settings.templated
        )
        return self.request(made if isinstance(made, list) else [made], budget)

    def request(self, instances: Sequence[Instance], budget: int | None = None) -> Request:
        """The request about a document, whose instances these are."""
        document = document_key(instances[0].doc)
        settings = None if budget is None else {**instances[0].args[1], "max_gen_toks": budget}
        return request_of(
            instances,
            self._identity,
            document,
            settings=settings,
            reads_document=self._reads_document,
            apart=True,
            cut=self._task.cuts.get(document, ""),
        )
