"""The engine for a model of lm-eval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from medtasks_ext.engines.lm import LmEngine
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.egress import Egress
    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.engines.records import Request
    from medtasks_ext.harness import LM


def engine_of(
    model: LM,
    *,
    quotes: Callable[[Request], bool] = lambda request: False,
    say: Callable[[str], None] = lambda line: None,
    egress: Egress | None = None,
    replicas: Sequence[str] = (),
) -> Engine:
    """A fault may quote a server, which may quote the row, as `quotes` says; `replicas` are addresses."""
    kinds = {kind.__name__ for kind in type(model).__mro__}  # their modules need packages of their own
    if "TemplateAPI" in kinds:
        from medtasks_ext.engines.api import ApiEngine, reader_of

        if reader_of(type(model)):
            return ApiEngine(model, quotes=quotes, say=say, egress=egress, replicas=replicas)
    if replicas:
        raise MedtasksError(
            f"models of type {type(model).__name__} are asked at one address",
            where="--model_args base_url",
            remedy="name one",
        )
    return LmEngine(model, say, egress)
