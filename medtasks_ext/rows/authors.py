"""Files of rows that the authors of a suite give out, one for each dataset, with the words they carry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from medtasks_ext.registry.functions import function_named

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Row, Rows
    from medtasks_ext.rows.spec import RowSchema, Source


class ReleasedInstruction(NamedTuple):
    text: str  # the instruction
    artefact: str  # repository and archive
    revision: str  # its commit, called unpinned


class AuthorsFiles(Protocol):
    """The authors' files of one dataset: what the class that `suite.yaml` names under `files` can do.

    Attributes:
        schema: the columns of their rows.
        gold: column of the gold answer. Rows in which it is blank are left out, or predicted if all are.
        languages: codes of languages besides ISO 639 -> those.
        paths: files of test rows and of few-shot rows below the data folder, for each spelling of the name.
        repo: repository of the public release on the hub.
    """

    schema: RowSchema
    gold: str
    languages: Mapping[str, str]
    paths: list[tuple[str, str]]
    repo: str

    def local(self, root: Path) -> tuple[Path, Path | None] | None:
        """Test rows and few-shot rows below a data folder; None where there are no test rows."""

    def read(self, file: Path, member: str | None = None) -> list[Row]:
        """The rows of a file, or of a member of an archive; gold that was left out is blank."""

    def released(self, split: str) -> tuple[Path, str] | None:
        """Archive and member that hold `test` or `fewshot` in the release; None if it has no such dataset."""

    def released_rows(self) -> Rows: ...

    def released_inputs(self) -> list[str]:
        """Inputs of the released test rows, if the release is on this machine; nothing is downloaded."""

    def with_released_examples(self, rows: Rows) -> Rows:
        """Rows with the release's examples as their pool, if it is on this machine."""

    def are_examples(self, rows: Rows) -> bool | None:
        """Whether a pool is the authors' own examples; None where only its place says so."""

    def released_instruction(self, dataset: str, *, must: bool) -> ReleasedInstruction | None:
        """The instruction in the release; None where there is none, or, unless it `must` be had, not here."""

    def direct(self, instruction: str, *, must: bool, fetch: bool) -> str: ...

    def reasoned(self, instruction: str, line: str, *, must: bool, fetch: bool) -> tuple[str | None, bool]:
        """An instruction with reasoning asked for, if it can be, and whether in the suite's own words.

        `line`: ours, for want of theirs. `must`: it is an error that theirs cannot be had. `fetch`: theirs
        may be downloaded otherwise.
        """

    def direct_sentence(self) -> str: ...


def authors_of(dataset: Dataset, source: Source) -> AuthorsFiles | None:
    """The authors' files of a dataset; None where they give none out."""
    suite, name = dataset.suite, source.official_name
    if not (name and suite.files):
        return None
    made: AuthorsFiles = function_named(suite.files, where=suite.file)(name, suite)
    return made
