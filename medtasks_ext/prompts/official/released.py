"""Instructions of the first rows of a suite's public release, joined by the dataset's official name.

The release has no version: its commit and the hash of each instruction are kept at first use, and another
text later is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import json_bytes
from medtasks_ext.prompts.official.artefacts import FOLDER
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows import release as releases
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.folders import CACHE_REMEDY
from medtasks_ext.rows.remote import RemoteFile
from medtasks_ext.rows.sources import Rows
from medtasks_ext.rows.spec import Source

#: What the revision of a release is called, besides its commit.
UNPINNED = "unpinned"


@dataclass(frozen=True)
class Released:
    """An instruction of the release."""

    text: str  # the instruction
    artefact: str  # repository and archive
    revision: str  # its commit, called unpinned


def released_instruction(dataset: Dataset, source: Source, *, must: bool) -> Released | None:
    """The instruction of a dataset in the release; None where there is none, or it is not on this machine.

    Args:
        source: where its rows come from; its official name is looked up.
        must: download what is not here, and an absence is an error.

    Raises:
        MedtasksError: it must be had and cannot; its rows have two instructions; it is not the text that was
            read at first.
    """
    release = dataset.suite.release
    if release is None or not source.official_name:
        return None
    if not must and RemoteFile(release.rows, releases.REVISION, release.repo).here() is None:
        return None
    found = releases.test_file(release, source)
    if found is None:
        return None
    archive, member = found
    texts = {str(row.get("instruction") or "").strip("\n") for row in read_rows(archive, member)} - {""}
    where = f"{archive}!{member}"
    if len(texts) > 1:
        raise MedtasksError(
            f"its rows have {len(texts)} different instructions",
            where=where,
            remedy="ask in our own words, --prompts own, and tell the authors",
        )
    if not texts:
        return None
    text, commit = texts.pop(), releases.commit(archive)
    _same_as_first(dataset.id, text, commit, where)
    return Released(text, f"{release.repo}/{release.rows}", f"{UNPINNED} {commit[:12]}")


def released_examples(dataset: Dataset, rows: Rows, source: Source) -> Rows:
    """Rows with the suite's own examples as their few-shot pool, where its release is on this machine.

    Rows of the authors bring their own; synthetic rows keep theirs.

    Raises:
        MedtasksError: the archive cannot be read.
    """
    release = dataset.suite.release
    theirs = rows.origin in ("release", "sample") or any(row.get("instruction") for row in rows.fewshot)
    if release is None or theirs or not source.official_name:
        return rows
    if RemoteFile(release.examples, releases.REVISION, release.repo).here() is None:
        return rows
    found = releases.fewshot_file(release, source)
    if found is None:
        return rows
    archive, member = found
    # the instruction is asked as for the test rows
    examples = [
        {name: value for name, value in row.items() if name != "instruction"}
        for row in read_rows(archive, member)
    ]
    return replace(rows, fewshot=examples, fewshot_where=f"{archive}!{member}")


def first_use_file() -> Path:
    """Where commits and hashes of first use are kept."""
    return cache_dir() / FOLDER / "release.json"


def _same_as_first(name: str, text: str, commit: str, where: str) -> None:
    file = first_use_file()
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    digest = sha256(text.encode()).hexdigest()
    first = kept.get(name)
    if first is None:
        kept[name] = {"revision": commit, "sha256": digest}
        with atomic_file(file, remedy=CACHE_REMEDY) as out:
            out.write(json_bytes(kept))
    elif first["sha256"] != digest:
        raise MedtasksError(
            f"the instruction is another one than at first use (then commit {first['revision'][:12]},"
            f" SHA-256 {first['sha256'][:16]}…; now {commit[:12]}, {digest[:16]}…)",
            where=where,
            remedy="scores in the two wordings are not comparable; to go on with the new one,"
            f" delete {name} in {file}",
        )
