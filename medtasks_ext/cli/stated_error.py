"""What commands say about a stated error: its options, the draw, and where scores stand."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry.strategies import LIKELIHOOD

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from medtasks_ext.runner.drawing import Design, ErrorTarget, Standing

#: Two models count as alike within so many points.
MARGIN = 1.0
#: Options that choose documents themselves, or split them.
_ELSE = ("limit", "samples")


def add_error_flags(parser: argparse.ArgumentParser) -> None:
    """The options of a stated error."""
    parser.add_argument("--error", type=float)
    parser.add_argument("--watched", action="store_true")
    parser.add_argument("--error-of")
    parser.add_argument("--against")


def error_target_of(own: argparse.Namespace, config: EvaluatorConfig) -> ErrorTarget | None:
    """What the options say of a stated error; None without `--error`.

    Raises:
        MedtasksError: it is no error, or other options choose documents, too.
    """
    target = error_target(own.error, watched=own.watched, scores=own.error_of, against=own.against)
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


def error_target(
    error: float | None, *, watched: bool, scores: str | None, against: str | None = None
) -> ErrorTarget | None:
    """The error that scores may have, as options say it; None without one.

    Raises:
        MedtasksError: it is no error, or there is none that the others are about.
    """
    from medtasks_ext.runner.drawing import ErrorTarget

    if against is not None:
        error, watched = MARGIN if error is None else error, True
    if error is None:
        if watched or scores:
            where = "--watched" if watched else "--error-of"
            raise MedtasksError("say which error scores may have", where=where, remedy="add --error 1.0")
        return None
    if not 0.05 <= error <= 20:
        raise MedtasksError(
            f"{error:g} is no error of a score in points",
            where="--error",
            remedy="give 0.05 to 20, such as 1.0",
        )
    names = tuple(name for name in (scores or "").split(",") if name)
    return ErrorTarget(error, watched=watched, scores=names, against=against or "")


def say_design(design: Design) -> None:
    """What is drawn, as far as it is known before the first answer."""
    planned, scores = sum(design.planned().values()), some([score.words for score in design.scores])
    kind = "may be looked at any time" if design.target.watched else "is shown at the end alone"
    if design.target.against:
        say(
            f"documents are drawn until {scores} is told apart from {design.target.against}, or is as good "
            f"within {design.target.error:g} points; at most {planned:,} of {design.n_documents:,}"
        )
    else:
        say(
            f"an estimate: documents are drawn until {scores} is known to ±{design.target.error:g} points "
            f"(95 %), about {planned:,} of {design.n_documents:,}; the interval {kind}"
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
    standings: Sequence[Standing] = ()

    def said(self, standings: list[Standing]) -> None:
        """After a round. What may not be looked at before the end is not shown."""
        self.n, self.standings = self.n + 1, standings
        words = f"round {self.n}: {self.design.n_asked:,} of {self.design.n_documents:,} documents asked"
        words += f", {self.design.cost_share():.1%} of their cost"
        if self.design.target.watched:
            words += "".join(f"; {standing_in_words(item)}" for item in standings)
        self.say(words)

    def ended(self) -> None:
        """What a comparison came to, and what it cost."""
        if self.design.target.against:
            for line in decisions(self.design, self.standings):
                self.say(line)


def decisions(design: Design, standings: Sequence[Standing]) -> Iterator[str]:
    """What a comparison came to, score by score, and what it cost."""
    for item in standings:
        yield f"{standing_in_words(item)}: {item.words}"
    share = design.cost_share()
    yield (
        f"{design.n_asked:,} of {design.n_documents:,} documents: {share:.1%} of the cost of all of them, "
        f"{1 - share:.1%} saved"
    )


def standing_in_words(item: Standing) -> str:
    """A score or a difference with its interval."""
    value = f"{item.value:+.3f}" if item.words else f"{item.value:.3f}"
    return f"{item.score} {value} ± {item.half:.3f}"
