"""BibTeX of the suites, the harness and the sources of the datasets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medtasks_ext.registry.tasks import Dataset

CITATIONS_FILE = Path(__file__).parent / "citations.bib"
#: what every use of a task rests on
PACKAGE, HARNESS = "medtasks", "gao2024harness"
_OPEN = re.compile(r"@(\w+)\{([^,\s]+),")
_FIELD = re.compile(r"  (\w+) = \{(.+)\},")
#: more authors than these become "et al." in running text
_NAMED_AUTHORS = 3


@dataclass(frozen=True)
class Entry:
    """One BibTeX entry.

    Attributes:
        kind: article, inproceedings, misc.
        key: by which metadata names it.
        fields: name -> value, with the braces that keep capitals.
        text: the entry as it stands in the file.
    """

    kind: str
    key: str
    fields: dict[str, str]
    text: str

    @property
    def unverified(self) -> bool:
        """Whether it rests on memory: its facts could not be confirmed."""
        return self.fields.get("note", "").startswith("unverified")

    @property
    def link(self) -> str | None:
        """Where the work is, by DOI, address or arXiv number."""
        if doi := self.fields.get("doi"):
            return f"https://doi.org/{doi}"
        if url := self.fields.get("url"):
            return url
        return f"https://arxiv.org/abs/{self.fields['eprint']}" if "eprint" in self.fields else None

    @property
    def reference(self) -> str:
        """One line for a reader: authors, year, title, where it appeared."""
        names = [name.strip("{}") for name in self.fields["author"].split(" and ")]
        if len(names) > _NAMED_AUTHORS or names[-1] == "others":
            authors = f"{names[0]} et al."
        else:
            authors = "; ".join(names)
        venue = next((self.fields[key] for key in _VENUES if key in self.fields), "")
        parts = [authors, f"({self.fields['year']}).", f"{self.fields['title'].rstrip('?.!')}."]
        if venue:
            place = ", ".join(self.fields[key] for key in ("volume", "pages") if key in self.fields)
            parts.append(f"{venue}{' ' + place if place else ''}.")
        return re.sub("[{}]", "", " ".join(parts)).replace("--", "–")


_VENUES = ("journal", "booktitle", "howpublished", "publisher")


def read_bibtex(path: Path) -> dict[str, Entry]:
    """Read entries of the plain form of `citations.bib`: a field per line, values in braces.

    Returns:
        Key -> entry, in the order of the file.

    Raises:
        MedtasksError: a line is not of that form, or a key or field occurs twice.
    """
    entries: dict[str, Entry] = {}
    lines: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not lines and (not line or line.startswith("%")):
            continue
        lines.append(line)
        fault = _fault(lines, entries)
        if fault:
            raise MedtasksError(
                fault, where=f"{path}:{number}", remedy="write `@kind{key,`, `  field = {value},` … and `}`"
            )
        if line == "}":
            entry = _entry(lines)
            entries[entry.key], lines = entry, []
    if lines:
        raise MedtasksError("an entry has no end", where=path, remedy=f"close {lines[0]}")
    return entries


def _fault(lines: list[str], entries: dict[str, Entry]) -> str | None:
    """What is wrong with the last of an entry's lines so far."""
    line = lines[-1]
    if len(lines) == 1:
        opened = _OPEN.fullmatch(line)
        if not opened:
            return "not the beginning of an entry"
        return f"key {opened[2]} is there already" if opened[2] in entries else None
    if line == "}":
        return None
    field = _FIELD.fullmatch(line)
    if not field or field[2].count("{") != field[2].count("}"):
        return "not a field"
    return f"field {field[1]} is there already" if field[1] in _fields(lines[1:-1]) else None


def _fields(lines: list[str]) -> dict[str, str]:
    return {match[1]: match[2] for match in map(_FIELD.fullmatch, lines) if match}


def _entry(lines: list[str]) -> Entry:
    opened = _OPEN.fullmatch(lines[0])
    assert opened
    return Entry(opened[1], opened[2], _fields(lines[1:-1]), "\n".join(lines))


@lru_cache(maxsize=1)
def citations() -> dict[str, Entry]:
    """The entries of `citations.bib`, read once per process."""
    return read_bibtex(CITATIONS_FILE)


def cited_by(datasets: Iterable[Dataset]) -> dict[str, list[str]]:
    """What a use of datasets rests on.

    Returns:
        Key -> what it is the source of: this package and the harness (of everything), the suites, then
        the datasets by id; keys in that order, each once.
    """
    used: dict[str, list[str]] = {PACKAGE: ["the tasks"], HARNESS: ["the harness"]}
    datasets = list(datasets)
    for dataset in datasets:
        used.setdefault(dataset.suite.citation, [f"the suite {dataset.suite.id}"])
    for dataset in datasets:
        for key in dataset.metadata.axis("citation"):
            used.setdefault(key, []).append(dataset.id)
    return used
