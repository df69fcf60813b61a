"""The engine for a model of lm-eval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.engines.lm import LmEngine

if TYPE_CHECKING:
    from lm_eval.api.model import LM

    from medtasks_ext.engines.engine import Engine


def engine_of(model: LM) -> Engine:
    """The engine that answers with a loaded model."""
    return LmEngine(model)
