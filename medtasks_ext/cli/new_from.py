"""`medtasks new --from`: what a file, or a dataset of the hub, says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from medtasks_ext.cli import tables
from medtasks_ext.cli.words import say
from medtasks_ext.data.hub_dataset import HubDataset, hub_dataset
from medtasks_ext.data.proposal import KINDS, Proposal, propose
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.load import check_loaded_rows
from medtasks_ext.registry import Dataset, Registry
from medtasks_ext.registry.datalock import LOCK_FILE, DataLock
from medtasks_ext.registry.new import DatasetTemplate, suite_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.row import Row, Rows

#: Shape of the gold answers -> what a person may know of them that rows do not say.
_OTHERWISE = {
    "label": "if they are levels of a scale: --kind ordinal",
    "text": "if a jury is to rate answers: --kind prose_axes",
}


@dataclass(frozen=True)
class InspectedSource:
    """A source, and what its rows suggest."""

    proposal: Proposal
    hub: HubDataset | None
    rows: list[Row]
    path: Path  # the file

    @property
    def examples(self) -> str:
        """The file from which examples are taken: of the hub, or beside the test file; else nothing."""
        if self.hub:
            return self.hub.fewshot or ""
        for word in ("train", "dev", "validation", "valid"):
            beside = self.path.with_name(self.path.name.replace("test", word))
            if beside != self.path and beside.is_file():
                return str(beside)
        return ""

    def flags(self, tasks: Registry, given: Mapping[str, Any]) -> dict[str, Any]:
        """Answers to questions of `medtasks new` that need not be asked."""
        found: dict[str, Any] = {"language": self.proposal.language, "n_test": self.proposal.rows}
        suite = suite_of(tasks, str(given.get("id", ""))) or given.get("suite")
        if suite in tasks.suites and (kind := self.proposal.kind_for(tasks.suites[suite])):
            found["kind"] = kind
        if self.hub:
            found |= {"url": self.hub.url, "access": "gated" if self.hub.gated else "open"}
            found |= {"licence": self.hub.licence} if self.hub.licence else {}
        return found

    def template(self, kind: str) -> DatasetTemplate | None:
        """The template for these rows, or nothing where the rows suggest another kind of answer."""
        if kind not in KINDS[self.proposal.shape]:
            say(
                f"note: the rows suggest {' or '.join(KINDS[self.proposal.shape])}; with {kind} the columns"
                " are left to you"
            )
            return None
        template = self.proposal.template(kind, pool=bool(self.examples))
        if self.hub is None or self.hub.gated:
            return template
        head, rest = template.block.split("\nprompt:", 1)
        lock = DataLock(revision=self.hub.revision).text
        return replace(
            template,
            block=f"{head.rstrip()}\n{self.hub.download}\nprompt:{rest}",
            files={**template.files, LOCK_FILE: lock},
        )


def read(source: str, answer: str | None) -> InspectedSource:
    """Read a file, or the test file of a dataset of the hub.

    Raises:
        MedtasksError: there is no such file, it cannot be read, or it does not look like a dataset.
    """
    path, hub = Path(source), None
    if not path.exists():
        if path.suffix or source.count("/") != 1:
            raise MedtasksError(
                "no such file",
                where=f"--from {source}",
                remedy="correct the path, or give ORG/DATASET of the hub",
            )
        from medtasks_ext.rows.remote import RemoteFile

        hub = hub_dataset(source)
        path = RemoteFile(hub.test, hub.revision, source).get()
    rows = read_rows(path)
    return InspectedSource(propose(rows, answer), hub, rows, path)


@dataclass(frozen=True)
class Tried:
    """What the file's own rows make of a new task file."""

    n: int  # rows that can be asked
    n_shown: int  # rows that serve as examples
    fault: str  # what is wrong with the others, if something is
    prompt: str  # of the first row


def tried(found: InspectedSource, dataset: Dataset) -> Tried:
    """Ask the file's rows as the task file says. Nothing is kept."""
    rows = Rows("local", [*found.rows], [], found.path.name)  # reading takes the rows out of a list
    checked = check_loaded_rows(dataset, rows)
    first = checked.test[0] if checked.test else None
    prompt = "\n\n".join(filter(None, (first["system"], shown(first)))) if first else ""
    n = len({document.row.partition(",")[0] for document in checked.test})
    fault = "" if not checked.faults else f"{checked.faults[0].what} → {checked.faults[0].remedy}"
    return Tried(n, len(checked.fewshot), fault, prompt)


def show(found: InspectedSource) -> None:
    """Print what was found; nothing that a row says but the labels."""
    proposal = found.proposal
    roles = proposal.roles
    columns = [
        tables.texts("column", "name"),
        tables.texts("holds", "shown"),
        tables.texts("taken as", lambda column: roles.get(column.name, "not used")),
    ]
    tables.show(proposal.columns, columns, pad_edge=False, collapse_padding=True)
    counts = {column.name: column.values for column in proposal.columns}[proposal.answer]
    if counts and proposal.labels:
        typer.echo("gold answers: " + ", ".join(f"{label} ({n:,})" for label, n in sorted(counts.items())))
    if other := _OTHERWISE.get(proposal.shape):
        typer.echo(other)
    typer.echo(
        f"rows: {proposal.rows:,}; language: {proposal.language}; --answer COLUMN chooses another gold answer"
    )
