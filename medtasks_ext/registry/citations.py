"""BibTeX of the suites, the harness and the sources of the datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.suites import Suite
from medtasks_ext.registry.tasks import Dataset

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
