"""What commands say about a stated error: its options, and the draw."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry.strategies import LIKELIHOOD

if TYPE_CHECKING:
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.runner.drawing import Design


def add_error_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--error", type=float)


def stated_error(own: argparse.Namespace, config: EvaluatorConfig) -> float | None:
    """The error that scores may have, in points; None without `--error`."""
    if own.error is None:
        return None
    if not 0.05 <= own.error <= 20:
        raise _wrong(f"{own.error:g} is no error of a score in points", "give 0.05 to 20, such as 1.0")
    given = {"limit": config.limit, "samples": config.samples}
    if both := [f"--{name}" for name, value in given.items() if value is not None]:
        raise _wrong("chooses documents itself", f"leave out {' and '.join(both)}")
    if own.ask == LIKELIHOOD:
        raise _wrong("is of answers that the model writes", "leave out --ask likelihood")
    return float(own.error)


def _wrong(what: str, remedy: str) -> MedtasksError:
    return MedtasksError(what, where="--error", remedy=remedy)


def say_design(design: Design) -> None:
    scores, first = some([score.words for score in design.scores]), sum(design.asked.values())
    say(
        f"an estimate: documents are drawn until {scores} is known to ±{design.error:g} points "
        f"(95 %), first {first:,} of {design.n_documents:,}"
    )
    for why in dict.fromkeys(design.left_out.values()):
        names = [name for name, reason in design.left_out.items() if reason == why]
        say(f"not asked, {len(names)} tasks ({some(names, 3)}): {why}")
