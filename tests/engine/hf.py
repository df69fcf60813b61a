"""`medtasks` with a model of transformers that writes down its batches: `python -m tests.engine.hf run …`.

The type of the model is `hf-noted`. What happens goes to `BATCHES` in the current folder, a line each:
`search` where lm-eval looks for the size of batches, else the number of prompts in a batch. Variables:

HF_ROWS  prompts that the memory holds; a larger batch fails as one on a GPU does
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.registry import register_model
from lm_eval.models.huggingface import HFLM


@register_model("hf-noted")
class Noted(HFLM):
    """Transformers as lm-eval asks them."""

    def _detect_batch_size(self, *arguments: Any, **more: Any) -> int:
        note("search")
        return super()._detect_batch_size(*arguments, **more)

    def _model_generate(self, context: Any, *arguments: Any, **more: Any) -> Any:
        note(str(len(context)))
        if len(context) > int(os.environ.get("HF_ROWS", "1000")):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return super()._model_generate(context, *arguments, **more)


@register_model("hf-ranks")
class Ranks(Noted):
    """Shares documents between processes, as lm-eval's class does where there are GPUs."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if hasattr(self, "accelerator"):
            self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes


def note(what: str) -> None:
    """Append a line."""
    with Path("BATCHES").open("a") as file:
        file.write(f"{what}\n")


if __name__ == "__main__":
    from medtasks_ext.cli.main import main

    main()
