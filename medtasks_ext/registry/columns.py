"""What the registry knows of its datasets: as columns for whatever has a row for each, and as BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.registry.groups import SHARED, SHARED_AXES, Registry
from medtasks_ext.registry.suites import Suite
from medtasks_ext.registry.tasks import Dataset


@lru_cache(maxsize=8)
def axis_values(tasks: Registry, axes: tuple[str, ...]) -> dict[str, dict[str, Sequence[str]]]:
    """Axis -> id of a dataset -> its values there, over all of its suites."""
    return {
        axis: {dataset.id: dataset.metadata.axis(axis) for dataset in tasks.datasets.values()}
        for axis in axes
    }


def grouped_tasks(tasks: Registry, strategies: Iterable[str]) -> list[tuple[Dataset, str, str, str]]:
    """(dataset, suite, strategy, name of the task) of all datasets in groups, in the registry's order."""
    return [
        (dataset, dataset.metadata.suite, strategy, dataset.task(strategy))
        for dataset in tasks.datasets.values()
        if dataset.metadata.grouped
        for strategy in strategies
        if dataset.has(strategy)
    ]


@lru_cache(maxsize=8)
def listed(tasks: Registry) -> dict[str, frozenset[str]]:
    """Suite -> ids of the datasets that its paper has."""
    return {
        suite.id: frozenset(item.id for item in tasks.datasets.values() if suite.lists(item.key))
        for suite in tasks.suites.values()
    }


#: axis, value, and the suite inside which a group is; None across suites
Place = tuple[str, str, str | None]


@dataclass(frozen=True)
class NamedGroup:
    """A group's zero-shot name, and the ids that its score is taken over: a mean over parts."""

    name: str  # empty where the axis has no names
    parts: tuple[tuple[str, ...], ...] | None  # None where the registry has no group of the name


def named_groups(tasks: Registry, places: Iterable[Place]) -> dict[Place, NamedGroup]:
    groups = {}
    for axis, value, suite in places:
        name = f"{SHARED}_{SHARED_AXES[axis]}{value}" if axis in SHARED_AXES else None
        if suite or axis == "suite":
            name = tasks.suites[suite].group_name(axis, value) if suite and axis != "suite" else value
        parts = tuple(map(tuple, tasks.parts(name))) if name in tasks.groups else None
        groups[axis, value, suite] = NamedGroup(name or "", parts)
    return groups


@lru_cache(maxsize=8)
def dataset_facts(tasks: Registry) -> tuple[Json, ...]:
    axes = dict.fromkeys(axis for suite in tasks.suites.values() for axis in suite.axes)
    return tuple(_facts(dataset, [*axes]) for dataset in tasks.datasets.values())


def _facts(dataset: Dataset, axes: Sequence[str]) -> Json:
    record, suite = dataset.metadata, dataset.suite
    left_out = [axis for axis in suite.left_out if suite.leaves_out(axis, dataset.key)]
    assigned = [name for name in ("specialties", "stage", "access") if record.assigned_by(name) == "medtasks"]
    return {
        **{axis: next(iter(record.axis(axis)), None) for axis in axes},
        "id": dataset.id,
        "name": f"{record.name} (draft)" if record.draft else record.name,
        "draft": record.draft,
        "suite": suite.id,
        "summary": record.summary,
        "language": record.language,
        "task_type": record.task_type,
        "stage": record.stage,
        "specialties": list(record.specialties),
        "document_types": list(record.document_types),
        "access": record.access,
        "scoreable": record.scoreable,
        "licence": record.licence.title,
        "use": record.use,
        "third_party_api": record.third_party_api,
        "url": record.url,
        "citation": record.citation,
        "n_test": record.n_test,
        "metric": record.primary_metric,
        "version": dataset.version,
        "oracle_max": record.oracle_max,
        "assigned": assigned,
        "control_of": record.control_of,
        "left_out": {suite.id: left_out} if left_out else {},
        "added": [suite.id] if dataset.joined_later else [],
        "in_totals": suite.in_totals,
        "averaged": suite.averaged,
    }


CITATIONS_FILE = Path(__file__).parent / "citations.bib"
#: Entries in the folder of a dataset or a suite.
BESIDE = "citation.bib"
#: what every use of a task rests on
PACKAGE, HARNESS = "medtasks", "gao2024harness"
#: more authors than these become "et al." in running text
_NAMED_AUTHORS = 3


@dataclass(frozen=True)
class BibEntry:
    kind: str  # article, inproceedings, misc
    key: str  # by which metadata names it
    fields: dict[str, str]  # name -> value, with the braces that keep capitals

    @property
    def text(self) -> str:
        fields = "".join(f"  {name} = {{{value}}},\n" for name, value in self.fields.items())
        return f"@{self.kind}{{{self.key},\n{fields}}}"

    @property
    def unverified(self) -> bool:
        """Whether it rests on memory: its facts could not be confirmed."""
        return self.fields.get("note", "").startswith("unverified")

    @property
    def link(self) -> str | None:
        if doi := self.fields.get("doi"):
            return f"https://doi.org/{doi}"
        if url := self.fields.get("url"):
            return url
        return f"https://arxiv.org/abs/{self.fields['eprint']}" if "eprint" in self.fields else None

    @property
    def reference(self) -> str:
        names = [name.strip("{}") for name in self.fields["author"].split(" and ")]
        many = len(names) > _NAMED_AUTHORS or names[-1] == "others"
        authors = f"{names[0]} et al." if many else "; ".join(names)
        venue = next((self.fields[key] for key in _VENUES if key in self.fields), "")
        parts = [authors, f"({self.fields['year']}).", f"{self.fields['title'].rstrip('?.!')}."]
        if venue:
            place = ", ".join(self.fields[key] for key in ("volume", "pages") if key in self.fields)
            parts.append(f"{venue}{' ' + place if place else ''}.")
        return re.sub("[{}]", "", " ".join(parts)).replace("--", "–")


_VENUES = ("journal", "booktitle", "howpublished", "publisher")


def read_bibtex(path: Path) -> dict[str, BibEntry]:
    """Key -> entry, in the order of the file."""
    from pybtex.database import parse_string  # here, since tasks need no citations
    from pybtex.exceptions import PybtexError

    check_regular(path)
    try:
        # authors are a field like others: names stay as they are written
        parsed = parse_string(path.read_text(encoding="utf-8"), "bibtex", person_fields=())
    except PybtexError as error:
        what, remedy = f"is not sound BibTeX ({error})", "mend the entry; a key or field occurs once"
        raise MedtasksError(what, where=path, remedy=remedy) from None
    return {key: BibEntry(entry.type, key, dict(entry.fields)) for key, entry in parsed.entries.items()}


@lru_cache(maxsize=1)
def citations() -> dict[str, BibEntry]:
    return read_bibtex(CITATIONS_FILE)


def entries_of(datasets: Iterable[Dataset], suites: Iterable[Suite] = ()) -> dict[str, BibEntry]:
    """The shared entries, and those of `citation.bib` in a dataset's folder or its suite's."""
    folders = {folder for dataset in datasets for folder in (dataset.folder, dataset.folder.parent)}
    folders |= {suite.file.parent for suite in suites}
    entries = dict(citations())
    for path in sorted(folder / BESIDE for folder in folders):
        if path.is_file():
            entries |= read_bibtex(path)
    return entries


def cited_by(datasets: Iterable[Dataset], suites: Iterable[Suite] = ()) -> dict[str, list[str]]:
    """What a use of datasets rests on: key -> what it is the source of, in that order, each once:

    this package and the harness (of everything), the suites, then the datasets by id. `suites`: that are used
    as such; those of the datasets' folders always are.
    """
    used: dict[str, list[str]] = {PACKAGE: ["the tasks"], HARNESS: ["the harness"]}
    datasets = list(datasets)
    for suite in (*suites, *(dataset.suite for dataset in datasets)):
        if suite.citation:
            used.setdefault(suite.citation, [f"the suite {suite.id}"])
    for dataset in datasets:
        for key in dataset.metadata.axis("citation"):
            used.setdefault(key, []).append(dataset.id)
    return used


def references(datasets: Iterable[Dataset], suites: Iterable[Suite] = ()) -> str:
    """The BibTeX of what a use of datasets, and of `suites` as such, rests on."""
    datasets, suites = list(datasets), list(suites)
    entries, used = entries_of(datasets, suites), cited_by(datasets, suites)
    for key, of in used.items():
        if key not in entries:
            what = f"no BibTeX entry {key!r}, the source of {of[0]}"
            remedy = f"add the entry there or to {BESIDE} beside the task, or correct `citation` there"
            raise MedtasksError(what, where=CITATIONS_FILE, remedy=remedy)
    notes = {key: " (check before use)" * entries[key].unverified for key in used}
    parts = (f"% {', '.join(of)}{notes[key]}\n{entries[key].text}\n" for key, of in used.items())
    return "\n".join(parts)
