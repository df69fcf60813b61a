"""Whether a dataset is asked in its suite's words or in ours."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official import artefacts
from medtasks_ext.prompts.official.words import Held, Words, artefacts_of, words_of
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.blocks import Artefact, Official, OfficialPassage
from medtasks_ext.rows.spec import DatasetSpec
from medtasks_ext.rows.transfer import NotHereError

log = logging.getLogger(__name__)

#: `auto`: official where the words can be had, else ours. `official`: nothing else. `own`: ours alone.
PromptSource = Literal["auto", "official", "own"]


@dataclass(frozen=True)
class Use:
    """How the rows of a dataset become prompts."""

    cot: bool
    shots: int
    system_role: bool  # False: instructions stand in the first user turn
    prompts: PromptSource
    without: frozenset[str] = frozenset()  # rows that are left out, since their faults are known


def prompt_source_of(option: object = None) -> PromptSource:
    """What the user asks for: by a flag, or `--metadata prompts=…`; by default auto.

    Raises MedtasksError: it is none of the three.
    """
    value = "auto" if option is None else option
    if value not in get_args(PromptSource):
        what = f"unknown wording {value!r}"
        remedy = f"use one of: {', '.join(get_args(PromptSource))}"
        raise MedtasksError(what, where="--prompts", remedy=remedy)
    return value  # type: ignore[return-value]


def chosen_words(dataset: Dataset, spec: DatasetSpec, use: Use, *, fetch: bool) -> Words | None:
    """The official words of the dataset's block `official`; None where ours, or those of its rows, are asked.

    `fetch`: `auto` may download the file that holds the words.
    """
    if use.prompts == "own" or spec.official is None:
        return None
    if reason := _not_asked(spec.official, use):
        if use.prompts == "official":
            what = f"there are no official prompts for {reason}"
            remedy = "ask without, or leave it to us: --prompts auto"
            raise MedtasksError(what, where=dataset.id, remedy=remedy)
        return None
    suite = dataset.suite.official
    held: dict[str, Held] = {}
    for name, artefact in artefacts_of(spec.official, suite, dataset.file).items():
        path = find_artefact(artefact, must=use.prompts == "official", fetch=fetch)
        if path is None:
            return None
        held[name] = Held(artefact, path)
    return words_of(spec.official, suite, held, dataset.file)


def _not_asked(block: Official, use: Use) -> str:
    """The way of asking that the suite does not have; nothing for one that it has.

    Where nothing but official words is wanted, a line of ours behind them is too much.
    """
    if use.cot and (use.prompts == "official" or use.shots or not block.reasons):
        return "reasoning step by step"
    if use.shots and not (isinstance(block, OfficialPassage) and block.input is None):
        return "prompts with examples"
    return ""


def find_artefact(artefact: Artefact, *, must: bool, fetch: bool) -> Path | None:
    """None where it cannot be had, unless it `must`; `fetch`: one try is made to download it otherwise."""
    if path := artefacts.local_artefact(artefact):
        return path
    if must:
        return artefacts.fetched_artefact(artefact)
    return _tried(artefact, artefacts.place_of(artefact)) if fetch else None


@lru_cache(maxsize=64)
def _tried(artefact: Artefact, _place: Path) -> Path | None:
    try:
        return artefacts.fetched_artefact(artefact)
    except NotHereError as error:
        said = (
            "official prompts of %s are not available, so ours are used: %s (medtasks data status official)"
        )
        log.warning(said, artefact.file, error.what)
        return None
