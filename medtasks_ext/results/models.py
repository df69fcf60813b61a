"""Which model a row of a published table is of: the registry of models (`results/reference/models.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError, field_validator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.published import reference_folder
from medtasks_ext.strict import Strict, faults_of, read_yaml

if TYPE_CHECKING:
    from medtasks_ext.results.experiments import Entry

#: fact -> what tables call it
_IN_TABLES: Mapping[str, tuple[str, ...]] = {
    "maker": ("organisation", "creator"),
    "released": ("release_date", "release_date_models_log"),
    "parameters_b": ("parameters_b", "parameters_b_leaderboard", "parameters"),
    "access": ("access",),
    "domain": ("domain",),
    "reasoning": ("reasoning",),
    "licence": ("license", "license_paper", "license_leaderboard"),
    "price_in": ("price_in_usd_per_mtok_printed",),
    "price_out": ("price_out_usd_per_mtok_printed",),
}
#: Facts that belong to one version, or to one way to ask: other rows of the model do not tell them.
_OF_A_VERSION = frozenset({"released", "reasoning"})
#: What tables say for closed weights.
_CLOSED = {"proprietary": "closed"}
#: Billions of parameters in the name of a model: Qwen3-8B, 30B-A3B.
_BILLIONS = re.compile(r"(?<![\d.A-Za-z])(\d+(?:\.\d+)?)[bB](?![A-Za-z])")
#: What pages call weights that nobody may have.
WEIGHTS = {"closed": "proprietary"}


class Model(Strict):
    """An entry of the registry."""

    id: str  #: of the hub, else MAKER/NAME.
    title: str  #: what readers see; by default the last part of the id.
    hub: bool = True  #: whether the id is one of the Hugging Face hub.
    maker: str | None = None  #: who made it.
    released: str | None = None  #: date.
    parameters_b: float | None = None  #: billions of parameters.
    access: Literal["open", "closed"] | None = None  #: of the weights.
    domain: Literal["medical", "general"] | None = None  #: medical or general.
    reasoning: Literal["yes", "no"] | None = None  #: whether it reasons before it answers.
    licence: str | None = None  #: of the weights.
    #: suite -> the name in its table, or the names, each with its version.
    rows: Mapping[str, str | Mapping[str, str]] = {}

    @field_validator("released")
    @classmethod
    def _is_a_date(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", value):
            raise ValueError("should be a date: YYYY, YYYY-MM or YYYY-MM-DD")
        return value

    @property
    def versions(self) -> dict[tuple[str, str], str | None]:
        """Suite and name in its table -> the version that it stands for; None where nobody says."""
        named = ((suite, {of: None} if isinstance(of, str) else of) for suite, of in self.rows.items())
        return {(suite, name): version for suite, names in named for name, version in names.items()}


def _folded(name: str) -> str:
    """A name without what tables write in different ways: case, blanks, dashes, underscores."""
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


@lru_cache(maxsize=1)
def known_models() -> Mapping[str, Model]:
    """Id -> model."""
    file = reference_folder() / "models.yaml"
    content = read_yaml(file)
    by_name: dict[str, Model] = {}
    for name, entry in content.items():
        try:
            by_name[name] = Model.model_validate({"title": name.rpartition("/")[2], **entry, "id": name})
        except ValidationError as error:
            raise MedtasksError("; ".join(faults_of(error, name, Model.model_fields)), where=file) from None
    return by_name


@lru_cache(maxsize=1)
def _rows() -> Mapping[tuple[str, str], tuple[Model, str | None]]:
    """Suite and name in its table -> the model and its version."""
    rows: dict[tuple[str, str], tuple[Model, str | None]] = {}
    for model in known_models().values():
        for row, version in model.versions.items():
            if (other := rows.setdefault(row, (model, version))[0]) is not model:
                what = f"{other.id} and {model.id} both claim the row {row[1]!r} of {row[0]}"
                remedy = "leave it with the one that the table means"
                raise MedtasksError(what, where=reference_folder() / "models.yaml", remedy=remedy)
    return rows


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, list[Model]]:
    """What a model as a whole is called, folded -> the models."""
    by_name: dict[str, list[Model]] = {}
    for model in known_models().values():
        for name in {_folded(model.id), _folded(model.id.rpartition("/")[2]), _folded(model.title)}:
            by_name.setdefault(name, []).append(model)
    return by_name


def identity_of(entry: Entry) -> Model | None:
    """The model of an entry; None where the registry does not know it: it is joined with nothing.

    A published row is known by its table and name, a run by the id of its model on the hub.
    """
    if entry.paper:
        return _rows().get((entry.paper, entry.model), (None, None))[0]
    called = entry.details.get("hub_id") or entry.model
    named = _by_name().get(_folded(called), ()) if "/" in called else ()
    return named[0] if len(named) == 1 and named[0].hub else None


def maker_of(owner: str) -> str:
    """What the registry calls the maker behind an owner on the hub; the owner, where it does not say."""
    known = known_models().values()
    makers = {item.maker for item in known if item.hub and item.id.partition("/")[0] == owner}
    return next(iter(makers)) or owner if len(makers) == 1 else owner


def version_of(entry: Entry) -> str | None:
    """The version that a published row is of, or the revision a run asked for; None where nobody says."""
    if not entry.paper:
        revision = (entry.conditions.arguments or {}).get("revision")
        return None if revision in (None, "main") else str(revision)
    return _rows().get((entry.paper, entry.model), (None, None))[1]


def model_id(entry: Entry) -> str | None:
    """What rows of one model have in common; None of one that the registry does not know."""
    known = identity_of(entry)
    return known.id if known else None


def facts_of(entry: Entry, published: Iterable[Entry]) -> dict[str, str]:
    """What is known of an entry's model: facts of `_IN_TABLES`.

    The registry goes first, then the entry's own table, then tables that print the same model; what belongs
    to a version is taken from rows of that version alone.
    """
    model = identity_of(entry)
    tables = [(entry.details, True)]
    facts: dict[str, str] = {}
    if model is not None:
        stated = model.model_dump(exclude={"id", "title", "hub", "rows"}, exclude_none=True)
        facts = {name: str(value) for name, value in stated.items()}
        tables += [
            (other.details, version_of(other) == version_of(entry))
            for other in published
            if other is not entry and identity_of(other) is model
        ]
    for details, same in tables:
        for name, keys in _IN_TABLES.items():
            value = next((details[key] for key in keys if details.get(key)), None)
            if value and value != "N/A" and (same or name not in _OF_A_VERSION):
                facts.setdefault(name, value)
    if "access" in facts:
        facts["access"] = _CLOSED.get(facts["access"], facts["access"])
    return facts


def published_rows(name: str, entries: Iterable[Entry]) -> list[Entry]:
    """The published rows that a name means: of a model (id, title or short name), or of one version of it.

    MedtasksError: no model has this name, several have, or it means two rows of one table.
    """
    folded, rows = _folded(name), list(entries)
    named = _by_name().get(folded, ())
    several = [model.id for model in named] if len(named) > 1 else []
    if named:
        matching = [entry for entry in rows if identity_of(entry) is named[0]]
    else:
        matching = [entry for entry in rows if _folded(entry.model) == folded]
        model, version = (identity_of(matching[0]), version_of(matching[0])) if matching else (None, None)
        if model is not None:
            matching = [
                entry for entry in rows if identity_of(entry) is model and version_of(entry) == version
            ]
    papers: dict[str, list[str]] = {}
    for entry in matching:
        papers.setdefault(entry.paper, []).append(entry.model)
    if several := several or next((names for names in papers.values() if len(names) > 1), []):
        raise MedtasksError(f"{name!r} means more than one: {', '.join(several)}", remedy="name one of them")
    if not matching:
        models = {_folded(entry.model): entry.model for entry in rows}
        models |= {_folded(model.title): model.title for model in known_models().values()}
        close = [model for key, model in models.items() if folded in key][:4]
        close = close or [models[key] for key in get_close_matches(folded, models, n=4)]
        similar = f"; similar: {', '.join(close)}" if close else ""
        raise MedtasksError(
            f"no run and no published model is called {name!r}{similar}",
            remedy="name folders of runs; or models as `medtasks report --published all` lists them",
        )
    return matching


def size_of(entry: Entry, known: Mapping[str, str]) -> float | None:
    """Billions of parameters: as somebody states them (`facts_of`), else as the model's name does."""
    try:
        return float(known.get("parameters_b", "").strip("~B "))
    except ValueError:
        match = _BILLIONS.search(entry.model)
        return float(match[1]) if match else None


def facts_shown(entry: Entry, known: Mapping[str, str]) -> dict[str, str | float | None]:
    """Of what is known (`facts_of`), what pages show and filter by."""
    access, domain = known.get("access", ""), known.get("domain", "").partition(" ")[0].lower()
    return {
        **{"size": size_of(entry, known), "access": WEIGHTS.get(access, access) or None},
        **{"domain": domain or None, "date": known.get("released")},
        **{name: known.get(name) for name in ("reasoning", "maker")},
    }
