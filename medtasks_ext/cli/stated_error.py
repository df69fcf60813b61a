"""What commands say about a stated error: its options, the draw, and where scores stand."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry.strategies import LIKELIHOOD

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from medtasks_ext.runner.drawing import Design, ErrorTarget

#: Options that choose documents themselves, or split them.
_ELSE = ("limit", "samples")


def add_error_flags(parser: argparse.ArgumentParser) -> None:
    """The options of a stated error."""
    parser.add_argument("--error", type=float)
    parser.add_argument("--error-of")


def error_target_of(own: argparse.Namespace, config: EvaluatorConfig) -> ErrorTarget | None:
    """What the options say of a stated error; None without `--error`.

    Raises:
        MedtasksError: it is no error, or other options choose documents, too.
    """
    target = error_target(own.error, own.error_of)
    if target is None:
        return None
    given = {"limit": config.limit, "samples": config.samples}
    if both := [f"--{name}" for name in _ELSE if given[name] is not None]:
        raise MedtasksError(
            "chooses documents itself", where="--error", remedy=f"leave out {' and '.join(both)}"
        )
    if own.ask == LIKELIHOOD:
        raise MedtasksError(
            "is of answers that the model writes", where="--error", remedy="leave out --ask likelihood"
        )
    return target


def error_target(error: float | None, scores: str | None) -> ErrorTarget | None:
    """The error that scores may have, as options say it; None without one.

    Raises:
        MedtasksError: it is no error, or groups are named without one.
    """
    from medtasks_ext.runner.drawing import ErrorTarget

    if error is None:
        if scores:
            raise MedtasksError(
                "say which error scores may have", where="--error-of", remedy="add --error 1.0"
            )
        return None
    if not 0.05 <= error <= 20:
        raise MedtasksError(
            f"{error:g} is no error of a score in points",
            where="--error",
            remedy="give 0.05 to 20, such as 1.0",
        )
    names = tuple(name for name in (scores or "").split(",") if name)
    return ErrorTarget(error, names)


def say_design(design: Design) -> None:
    """What is drawn, as far as it is known before the first answer."""
    planned, scores = sum(design.planned().values()), some([score.words for score in design.scores])
    say(
        f"an estimate: documents are drawn until {scores} is known to ±{design.target.error:g} points "
        f"(95 %), about {planned:,} of {design.n_documents:,}"
    )
    for why in dict.fromkeys(design.left_out.values()):
        names = [name for name, reason in design.left_out.items() if reason == why]
        say(f"not asked, {len(names)} tasks ({some(names, 3)}): {why}")


@dataclass
class Rounds:
    """Tells the user where a run with a stated error stands."""

    design: Design
    say: Callable[[str], None]
    n: int = 0

    def said(self) -> None:
        """After a round. What may not be looked at before the end is not shown."""
        self.n += 1
        self.say(
            f"round {self.n}: {self.design.n_asked:,} of {self.design.n_documents:,} documents asked, "
            f"{self.design.cost_share():.1%} of their cost"
        )
