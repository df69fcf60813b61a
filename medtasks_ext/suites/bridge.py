"""BRIDGE: the authors' files of rows, their public release, and the instructions that the rows carry.

The release on the hub has the prompts of open tasks, without gold answers. They are read only when asked for
(`--data release`), so that nobody spends hours on predictions by accident.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.blocks import Artefact
from medtasks_ext.registry.suites import Suite
from medtasks_ext.rows.columns import Column
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.places import ReleasedInstruction, letters
from medtasks_ext.rows.remote import RemoteFile
from medtasks_ext.rows.row import Row, Rows
from medtasks_ext.rows.spec import RowSchema

#: The columns of the authors' files.
SCHEMA = RowSchema(
    columns={
        "task": "official name of the task",
        "split": "`test` for rows that are scored",
        "input": "the text",
        "output": "the gold answer, written as the answer format asks",
    },
    optional={"instruction": "what is to be done", "output_list": "all references"},
    types={
        "split": ["train", "val", "valid", "validation", "dev", "test"],
        "output": Column(nullable=True),
        "output_list": "texts",
    },
)
#: How the files of a dataset end, and the archives of the release that hold them.
_ENDINGS = {"test": ".SFT.json", "fewshot": ".example.json"}
_ARCHIVES = {"test": "Dataset.zip", "fewshot": "Example.zip"}
#: Other spellings of datasets' names in published files.
_SPELLINGS = {"Cantemis-NER": "Cantemist-NER", "Cantemis-Norm": "Cantemist-Norm"}
#: The authors do not version their release: the commit that was read is recorded.
_REVISION = "main"
#: The sentence of official instructions by which their code recognises a direct prompt
#: (`dataset/process.py`): its length and SHA-256, since its words are not ours.
DIRECT_SENTENCE = (72, "94f52a806e0f65ed89a3881c3d8db70a87e08acd3cc287cda9289ea4b711a491")
#: The artefact of `suite.yaml` with the sentences of both strategies, and its lists of them, in one order.
_CODE, _ANSWER, _REASON = "code", "list_str_templates_direct", "list_str_templates_cot"


class Files:
    """The authors' files of one dataset (`rows.places.AuthorsFiles`)."""

    schema, gold, languages, repo = SCHEMA, "output", {"cn": "zh", "jp": "ja"}, "YLab-Open/BRIDGE-Open"

    def __init__(self, name: str, suite: Suite) -> None:
        self.suite = suite
        self.names = [name, *([_SPELLINGS[name]] if name in _SPELLINGS else [])]
        test, fewshot = f"{suite.id}/{{}}{_ENDINGS['test']}", f"{suite.id}/example/{{}}{_ENDINGS['fewshot']}"
        self.paths = [(test.format(name), fewshot.format(name)) for name in self.names]

    def local(self, root: Path) -> tuple[Path, Path | None] | None:
        test, fewshot = (_spelled([root / path for path in paths]) for paths in zip(*self.paths, strict=True))
        return (test, fewshot) if test else None

    def read(self, file: Path, member: str | None = None) -> list[Row]:
        rows = read_rows(file, member)
        return rows if any("output" in row for row in rows) else [{**row, "output": ""} for row in rows]

    # ------------------------------------------------------------------ the public release

    def released(self, split: str) -> tuple[Path, str] | None:
        archive, wanted = self._archive(split).get(), {letters(name + _ENDINGS[split]) for name in self.names}
        members = (Path(member).name for member in _members(archive) if member.endswith(_ENDINGS[split]))
        name_inside = next((name for name in members if letters(name) in wanted), None)
        return (archive, name_inside) if name_inside else None

    def _archive(self, split: str) -> RemoteFile:
        return RemoteFile(_ARCHIVES[split], _REVISION, self.repo)

    def released_rows(self) -> Rows:
        test, examples = self.released("test"), self.released("fewshot")
        assert test is not None  # the release has the dataset
        archive, member = test
        commit = archive.parent.name  # of the hub's cache
        return Rows(
            "release",
            self.read(archive, member),
            read_rows(*examples) if examples else [],
            f"hf.co/datasets/{self.repo}@{commit}/{archive.name}!{member}",
            revision=commit,
        )

    def released_inputs(self) -> list[str]:
        release = self.released("test") if self._archive("test").here() else None
        rows = read_rows(*release) if release else []
        return [str(row["input"]) for row in rows if row.get("split", "test") == "test" and row.get("input")]

    def with_released_examples(self, rows: Rows) -> Rows:
        """Rows of the authors bring their own pool; synthetic rows keep theirs."""
        theirs = rows.origin in ("release", "sample") or any(row.get("instruction") for row in rows.fewshot)
        if theirs or not self._archive("fewshot").here() or (release := self.released("fewshot")) is None:
            return rows
        archive, member = release
        # the instruction is asked as for the test rows
        examples = [
            {name: value for name, value in row.items() if name != "instruction"}
            for row in read_rows(archive, member)
        ]
        return replace(rows, fewshot=examples, fewshot_where=f"{archive}!{member}")

    def are_examples(self, rows: Rows) -> bool | None:
        """Whether the pool is that of the release; None where no release is here to compare it with."""
        names = {letters(name + _ENDINGS["fewshot"]) for name in self.names}
        place = (rows.fewshot_where or "").partition("!")
        if rows.origin == "release" or place[2]:
            return True
        if rows.origin != "local" or letters(Path(place[0]).name) not in names:
            return False
        release = self.released("fewshot") if self._archive("fewshot").here() else None
        return read_rows(*release) == rows.fewshot if release else None

    def released_instruction(self, dataset: str, *, must: bool) -> ReleasedInstruction | None:
        """MedtasksError if it must be had and cannot, or rows have two."""
        if not (must or self._archive("test").here()) or (release := self.released("test")) is None:
            return None
        archive, member = release
        texts = {str(row.get("instruction") or "").strip("\n") for row in read_rows(archive, member)} - {""}
        where = f"{archive}!{member}"
        if len(texts) > 1:
            what = f"its rows have {len(texts)} different instructions"
            remedy = "use our prompts, --prompts own, and tell the authors"
            raise MedtasksError(what, where=where, remedy=remedy)
        if not texts:
            return None
        text, commit = texts.pop(), archive.parent.name
        return ReleasedInstruction(text, f"{self.repo}/{_ARCHIVES['test']}", f"unpinned {commit[:12]}")

    # ------------------------------------------------------------------ the strategies' sentences

    def direct(self, instruction: str) -> str:
        answer, reason = self._sentences(must=False, fetch=False) or ((), ())
        return _swapped(instruction, reason, answer) or instruction

    def reasoned(self, instruction: str, line: str, *, must: bool, fetch: bool) -> tuple[str | None, bool]:
        """None where it lacks the sentence that is swapped: the official code keeps the direct prompt."""
        if sentences := self._sentences(must=must, fetch=fetch):
            return _swapped(instruction, *sentences), True
        sentence = direct_sentence(instruction)
        return instruction.replace(sentence, line) if sentence else None, False

    def _sentences(self, *, must: bool, fetch: bool) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Those that ask for the answer at once and those that ask for reasoning; None if not to be had."""
        # what it imports takes longer than a look for files
        from medtasks_ext.prompts.official.words import find_artefact

        official = self.suite.official
        artefact = official.artefacts.get(_CODE) if official else None
        path = find_artefact(artefact, must=must, fetch=fetch) if artefact else None
        return _read(artefact, path) if artefact and path else None


def _spelled(places: list[Path]) -> Path | None:
    """The file at one of the places, whatever its case and punctuation (`Sub-Block`, `Subblock`)."""
    if exact := next((place for place in places if place.is_file()), None):
        return exact
    folder, wanted = places[0].parent, {letters(place.name) for place in places}
    files = [*folder.glob(f"*{''.join(places[0].suffixes[-2:])}")] if folder.is_dir() else []
    return next((path for path in sorted(files) if letters(path.name) in wanted), None)


@lru_cache(maxsize=2)
def _members(archive: Path) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(archive) as content:
            return tuple(content.namelist())
    except zipfile.BadZipFile:
        remedy = "delete it and run again to download it anew"
        raise MedtasksError("is not a zip archive", where=archive, remedy=remedy) from None


@lru_cache(maxsize=8)
def _read(artefact: Artefact, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from medtasks_ext.prompts.official import artefacts
    from medtasks_ext.prompts.official.folding import PythonSource

    source = PythonSource(artefacts.read(artefact, path, None), str(path))
    return tuple(source.texts(_ANSWER)), tuple(source.texts(_REASON))


def _swapped(text: str, old: Iterable[str], new: Iterable[str]) -> str | None:
    pairs = zip(old, new, strict=True)
    return next((text.replace(sentence, other) for sentence, other in pairs if sentence in text), None)


@lru_cache(maxsize=256)  # the rows of a file share their instruction
def direct_sentence(instruction: str) -> str | None:
    """The sentence of an official instruction that asks for the answer alone, if it has one."""
    length, digest = DIRECT_SENTENCE
    windows = (instruction[start : start + length] for start in range(len(instruction) - length + 1))
    return next((text for text in windows if sha256(text.encode()).hexdigest() == digest), None)
