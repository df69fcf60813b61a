"""A prompt as a model gets it, and what a tokenizer makes of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.runner.evaluate import Settings

#: Texts -> the number of tokens of each, without special tokens.
Counter = Callable[[Sequence[str]], list[int]]
#: Turns of a conversation -> the prompt.
ChatTemplate = Callable[..., Any]

_AT_ONCE = 1024


def rendered_prompt(
    task: Task,
    document: dict[str, Any],
    settings: Settings,
    chat_template: ChatTemplate | None,
    shots: int | None = None,
) -> Any:
    """The prompt of one document.

    Args:
        chat_template: the model's, used where the settings ask for it.
        shots: how many; by default what the task carries.

    Returns:
        Text, or what an API model wraps a conversation in.
    """
    templated = bool(settings.apply_chat_template)
    return task.fewshot_context(
        document,
        num_fewshot=int(task.config.num_fewshot or 0) if shots is None else shots,
        system_instruction=settings.system_instruction,
        apply_chat_template=templated,
        fewshot_as_multiturn=settings.multiturn,
        chat_template=chat_template if templated else None,
    )


def takes_system_turn(chat_template: ChatTemplate) -> bool:
    """Whether a chat template shows what a system turn says."""
    turns = [{"role": "system", "content": "system probe"}, {"role": "user", "content": "user probe"}]
    try:
        return "system probe" in str(chat_template(turns))
    except Exception:  # templates refuse in their own ways
        return False


def counter_of(tokenizer: Any) -> Counter | None:
    """How a tokenizer counts; None for one that is not transformers'."""
    if not callable(tokenizer):
        return None

    def count(texts: Sequence[str]) -> list[int]:
        return [
            len(ids)
            for start in range(0, len(texts), _AT_ONCE)
            for ids in tokenizer(
                list(texts[start : start + _AT_ONCE]), add_special_tokens=False, verbose=False
            )["input_ids"]
        ]

    return count
