"""From a run to a submission: what of it may be public."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.privacy import text_hash
from medtasks_ext.registry.strategies import suffix_of
from medtasks_ext.results.rollup import group_row
from medtasks_ext.runs.conditions import Conditions, RunConditions, read_conditions
from medtasks_ext.runs.secrets import is_secret
from medtasks_lab.submissions.documents import PublicScores, public_scores, spread_of
from medtasks_lab.submissions.record import (
    LONGEST,
    About,
    GroupResult,
    Place,
    Spread,
    Submission,
    TaskResult,
)

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.runs.conditions import Layout

#: sums of other versions of NumPy differ in their last digits
TOLERANCE = 1e-9
#: Places on somebody's machine or network, among other words; a name of a model has no slash before it.
_PLACES = re.compile(r"\w+://[^\s,;)]+|(?<![\w.~/-])(?:~|\.\.?)?/[^\s,;)]*|\b[A-Za-z]:\\[^\s,;)]*")
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class Made:
    """A submission, not yet written."""

    record: Submission
    documents: list[PublicScores]  # of its tasks, in their order
    left_out: dict[str, str]  # task -> why it is no part of it


def make_submission(entry: Entry, tasks: Registry, place: Place, about: About) -> Made:
    """What may be public of a run's results.

    Args:
        entry: of one run of `medtasks run`.
        place: where it is to lie, which names the model and the date.
        about: the model itself.

    Raises:
        MedtasksError: the rows are synthetic, the run is of another model, no task is left, or a task was
            scored by another version.
    """
    _refuse(entry, place)
    kept: dict[str, Experiment] = {}
    left_out: dict[str, str] = {}
    for name, item in sorted(entry.experiments.items()):
        if why := _why_not(item, tasks):
            left_out[name] = why
        else:
            kept[name] = item
    if not kept:
        reasons = some([f"{name}: {why}" for name, why in left_out.items()], 3, "; ")
        raise MedtasksError(
            "no task can be submitted", where=entry.folders[0], remedy=reasons or "finish the run"
        )
    entry = replace(entry, experiments=kept)
    documents = {name: _documents(item) for name, item in kept.items()}
    record = Submission(
        model=place.model,
        date=place.date,
        called=_called(entry.model),
        about=about,
        run=public_run(entry.conditions),
        versions={
            name: public_words(str(said)) for name, said in (entry.manifest.get("versions") or {}).items()
        },
        started=entry.manifest.get("started"),
        tasks={name: _task(item, documents[name]) for name, item in kept.items()},
        groups=suite_results(entry, tasks),
        root=entry.root,
        heads=_heads(entry, kept),
    )
    _refuse_secrets(record)
    return Made(record, list(documents.values()), left_out)


def suite_results(entry: Entry, tasks: Registry) -> dict[str, GroupResult]:
    """The scores of the suites in which an entry has one, under the names of their groups."""
    strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
    found = {}
    for suite in tasks.suites:
        for strategy in strategies if suite in tasks.groups else ():
            row = group_row(entry, tasks, suite, strategy)
            if row.score is not None:
                found[suite + suffix_of(strategy)] = GroupResult(
                    score=row.score, tasks=row.n_scored, of=row.n_tasks
                )
    return found


# ---------------------------------------------------------------------- what is refused


def _refuse(entry: Entry, place: Place) -> None:
    run = entry.folders[0]
    if samples := [name for name, item in entry.experiments.items() if item.sample]:
        raise MedtasksError(
            f"{some(samples, 3)}: run on synthetic sample rows, whose scores mean nothing",
            where=run,
            remedy="run the tasks on their own data",
        )
    refuse_another_model(entry, place)


def refuse_another_model(entry: Entry, place: Place) -> None:
    """Refuse a run of a model that a folder does not name.

    Raises:
        MedtasksError: it is one.
    """
    called, named = _called(entry.model), place.model.rpartition("/")[2]
    if called and _plain(called.rpartition("/")[2]) != _plain(named):
        raise MedtasksError(
            f"is a run of {called}, and the folder names {place.model}",
            where=entry.folders[0],
            remedy="name the folder ORG/MODEL/DATE after the model of the run",
        )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _why_not(item: Experiment, tasks: Registry) -> str:
    """Why a result is no part of a submission; empty where it is one."""
    if tasks.is_own(item.dataset):
        return "a dataset of your own, which others do not have"
    if item.version.partition("-")[0] != item.dataset.version.partition("-")[0]:
        return f"scored by version {item.version}, and is {item.dataset.version} now (`medtasks rescore RUN`)"
    if item.score is None:
        return "has no score (`medtasks judge run RUN`)"
    if item.read_documents is None:
        return "the scores of its documents are not known"
    return ""


def _refuse_secrets(record: Submission) -> None:
    """Refuse to write what the environment holds as a key."""
    text = record.model_dump_json()
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= _SHORTEST_SECRET and value in text:
            raise MedtasksError(
                f"the value of ${name} stands in the run's settings",
                where="medtasks submit",
                remedy="take it out of the run's settings; keys belong into the environment alone",
            )


# ---------------------------------------------------------------------- what is public of settings


def public_run(run: RunConditions) -> RunConditions:
    """What tasks of a run share, without what its user wrote freely, and without places."""
    content = public_content(replace(run, layout=_public_layout(run.layout)).record())
    return TypeAdapter(RunConditions).validate_python(content)


def public_conditions(record: Conditions) -> Conditions:
    """The conditions of a result, without what its user wrote freely, and without places."""
    asked = replace(record.asked, layout=_public_layout(record.asked.layout))
    return read_conditions(public_content(replace(record, asked=asked).record()))


def _public_layout(layout: Layout) -> Layout:
    text = layout.system_instruction
    return replace(layout, system_instruction=text and text_hash(text))


def public_content(content: Any) -> Any:
    """The same content with `public_words` for every text."""
    if isinstance(content, str):
        return public_words(content) or (content and f"text-{_digest(content)}")
    if isinstance(content, Mapping):
        return {key: public_content(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [public_content(value) for value in content]
    return content


def public_words(text: str) -> str:
    """A setting without places on a machine or network, which a digest stands for, in one line."""
    bare = _PLACES.sub(lambda found: f"place-{_digest(found[0])}", " ".join(text.split()))
    return bare if len(bare) <= LONGEST else f"text-{_digest(bare)}"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:12]


def _called(name: str) -> str | None:
    """What the run called the model; None where that is a place."""
    return name if public_words(name) == name else None


def _heads(entry: Entry, kept: Mapping[str, Experiment]) -> dict[str, str]:
    """The chain of the last line of each file behind these tasks; none of plain `lm_eval`."""
    from medtasks_ext.runs.manifest import Manifest

    if entry.kind != "medtasks":
        return {}
    names = {f"{kind}/{name}" for name in _asked_as(entry, kept) for kind in ("responses", "judgements")}
    heads = Manifest.read(entry.folders[0]).heads
    return {file: head for file, head in heads.items() if file.partition(".")[0] in names}


def _asked_as(entry: Entry, kept: Mapping[str, Experiment]) -> list[str]:
    """The names of tasks in the run; with `--num_fewshot` they are not those of the results."""
    same = [name for name in entry.manifest["tasks"] if name in kept]
    other = [name for name in entry.manifest["tasks"] if name not in kept]
    return same if len(same) == len(kept) else same + other


# ---------------------------------------------------------------------- tasks


def _documents(item: Experiment) -> PublicScores:
    assert item.read_documents is not None  # `_why_not` looked
    found = public_scores(item.read_documents(), is_open=item.dataset.metadata.access == "open")
    if found.value is None or abs(found.value - (item.score or 0.0)) > TOLERANCE:
        raise MedtasksError(
            f"{item.task}: the score is {item.score}, and {found.value} by its documents",
            where="medtasks submit",
            remedy="medtasks rescore RUN",
        )
    return found


def _task(item: Experiment, documents: PublicScores) -> TaskResult:
    interval = documents.interval(item.dataset.id) if documents.sums is None else item.intervals.get("score")
    counted = item.tokens or {}
    tokens = {name: counted[name] for name in ("input", "output") if name in counted}
    return TaskResult(
        n=item.n,
        statistic=documents.scores.statistic.name,
        sums=None if documents.sums is None else list(documents.sums),
        score=documents.value,
        valid=documents.valid,
        unclosed=documents.unclosed,
        spread=None
        if interval is None
        else Spread(**dict(zip(("low", "high", "sd"), spread_of(interval), strict=True))),
        conditions=public_conditions(_counted(item)),
        tokens=tokens or None,
    )


def _counted(item: Experiment) -> Conditions:
    """Its conditions; of old runs that did not count the rows of the test file, those answered."""
    seen = item.conditions.observed
    if seen.n_here is not None:
        return item.conditions
    return replace(item.conditions, observed=replace(seen, n_here=item.n))
