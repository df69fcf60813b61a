"""A prompt as a model gets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from medtasks_ext.prompts.template import layout_template

if TYPE_CHECKING:
    from medtasks_ext.harness import Task
    from medtasks_ext.runner.evaluate import Settings

#: Turns of a conversation -> the prompt.
ChatTemplate = Callable[..., Any]


def rendered_prompt(
    task: Task,
    document: dict[str, Any],
    settings: Settings,
    chat_template: ChatTemplate | None,
    shots: int | None = None,
) -> Any:
    """The prompt of one document.

    Args:
        chat_template: the model's, used where the settings ask for it and have no layout of their own.
        shots: how many; by default what the task carries.

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
