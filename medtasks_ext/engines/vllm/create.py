"""lm-eval's vLLM model, loaded in this process."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines.vllm.lanes import MEMORY_REMEDY
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from lm_eval.models.vllm_causallms import VLLM


def create(model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> tuple[VLLM, list[BaseProcess]]:
    """Load the model with a vLLM of its own, and say which processes that has started.

    Args:
        model_args: of lm-eval's model; `data_parallel_size` is left out.
        extra: more of them, as lm-eval's command line passes them.

    Raises:
        MedtasksError: vLLM does not start.
        ImportError, OSError, TypeError, ValueError: as lm-eval's class raises them.
    """
    from lm_eval.models.vllm_causallms import VLLM

    own = deepcopy({name: value for name, value in model_args.items() if name != "data_parallel_size"})
    before = active_children()
    try:
        lm = VLLM.create_from_arg_obj(own, dict(extra))
    except RuntimeError as error:
        raise MedtasksError(f"vLLM does not start: {error}", where="vLLM", remedy=MEMORY_REMEDY) from error
    return lm, [process for process in active_children() if process not in before]
