"""Every place of every download, tried: what it sends, how many rows that has, what an oracle scores.

A scheduled workflow runs `python -m medtasks_ext.data.probe [--pin] FILE.csv [NAME...]` and keeps the table.
With `--pin`, sources that are not pinned and whose rows are as they should be are pinned to what came.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from medtasks_ext.atomic import write_text
from medtasks_ext.csvfile import csv_text
from medtasks_ext.data.card import card_of
from medtasks_ext.data.pins import pin
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.datalock import LOCK_FILE
from medtasks_ext.registry.select import select
from medtasks_ext.rows import transfer
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import RemoteFile, remote_files
from medtasks_ext.rows.sources import is_allowed

_OK = "ok"


@dataclass(frozen=True)
class ProbedFile:
    """One place of one file of a dataset. Rows and scores stand in the first line of a dataset."""

    dataset: str
    file: str
    place: str  # URL, or the hub
    result: str  # `ok`, or why the file cannot be had there
    sha256: str = ""  # of what came
    rows: str = ""  # that can be evaluated
    paper: str = ""  # as many has the suite's own test part
    oracle: str = ""  # what the gold answers themselves score


def probe(dataset: Dataset) -> list[ProbedFile]:
    """Try all places of a dataset's files, and read its rows if one place of each has its file."""
    source = source_of(dataset)
    if not is_allowed(source):
        file = remote_files(source)[0]
        return [ProbedFile(dataset.id, file.name, file.source, "its terms are not accepted here")]
    lines = [line for file in remote_files(source) for line in _places(dataset, file)]
    had = {line.file for line in lines if line.result == _OK}
    if any(line.file not in had for line in lines):
        return lines
    row_check = check_rows(dataset, "hub")
    if row_check.faults:
        return [ProbedFile(dataset.id, "", "rows", str(row_check.faults[0]).replace("\n", " ")), *lines]
    card = card_of(dataset, row_check.test)
    score = "" if card.oracle is None else f"{card.oracle.score:.4f}"
    lines[0] = replace(lines[0], rows=str(card.n_test), paper=str(card.n_paper), oracle=score)
    return lines


def _places(dataset: Dataset, file: RemoteFile) -> Iterator[ProbedFile]:
    if file.repo:
        try:
            yield ProbedFile(dataset.id, file.name, file.source, _OK, sha256_of(file.get()))
        except MedtasksError as error:
            yield ProbedFile(dataset.id, file.name, file.source, error.what)
    for url in file.urls:
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "part"
            try:
                transfer.download(url, part)
            except transfer.NotHereError as error:
                cause = error.__context__ or error  # names the status
                yield ProbedFile(dataset.id, file.name, url, str(cause) or type(cause).__name__)
                continue
            result = _OK if file.is_right(part) else "sends other content than is pinned"
            yield ProbedFile(dataset.id, file.name, url, result, sha256_of(part))


def main(arguments: Sequence[str]) -> int:
    """Write the table, and pins if asked to; 1 if a dataset cannot be had from any of its places."""
    target, *names = (word for word in arguments if word != "--pin")
    datasets = [
        item for item in dict.fromkeys(select(registry(), names).values()) if source_of(item).download
    ]
    probed = {dataset: probe(dataset) for dataset in datasets}
    lines = [line for some in probed.values() for line in some]
    table = [[field.name for field in fields(ProbedFile)], *(asdict(line).values() for line in lines)]
    write_text(Path(target), csv_text(table, ends="\n"))
    for dataset, some in probed.items() if "--pin" in arguments else ():
        lock = dataset.lock
        loose = not dataset.is_pinned or lock is None or lock.rows is None
        for pinned in pin(dataset) if loose and any(line.rows for line in some) else ():
            print(f"pinned in {dataset.folder / LOCK_FILE}: {pinned}")
    tried = {line.dataset for line in lines if "terms" not in line.result}
    lost = sorted(tried - {line.dataset for line in lines if line.rows})
    print(f"{len(tried) - len(lost)} of {len(tried)} datasets can be had; {target}")
    if lost:
        print("not to be had, or not readable:", ", ".join(lost))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
