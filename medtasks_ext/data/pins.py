"""Writing into a task file what pins its source: the commit of a branch, the SHA-256 of a file at a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from medtasks_ext.atomic import write_text
from medtasks_ext.rows.digests import members_digest, sha256_of
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import COMMIT, RemoteFile, remote_file

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset


def pin(dataset: Dataset) -> list[str]:
    """Pin what is not pinned, to the content that is in the caches now.

    Only the lines of the pins change; comments and layout of the file stay. Files must have been fetched.

    Returns:
        What was written, a line each; empty where everything is pinned, or nothing can be.
    """
    download = source_of(dataset).download
    if download is None:
        return []
    names = [*download.test, *download.fewshot, *([download.test_ids] if download.test_ids else [])]
    files = {name.partition("!")[0]: remote_file(source_of(dataset), name) for name in names}
    loose = {name: file for name, file in files.items() if not file.is_pinned}
    if not loose:
        return []
    text = dataset.file.read_text(encoding="utf-8")
    if download.repo:
        if (commit := _commit(next(iter(loose.values())))) is None:
            return []
        changed, said = _with_revision(text, commit), [f"revision: {commit}"]
    else:
        digests = {name: _digest(file) for name, file in loose.items()}
        said = [f"{_quoted(name)}: {digest}" for name, digest in digests.items()]
        changed = _with_digests(text, said)
    write_text(dataset.file, changed)
    return said


def _commit(file: RemoteFile) -> str | None:
    """The commit that a file of the hub's cache is of, which names its folder there."""
    parts = file.get().parts
    found = parts[parts.index("snapshots") + 1] if "snapshots" in parts else ""
    return found if COMMIT.fullmatch(found) else None


def _digest(file: RemoteFile) -> str:
    path = file.get()
    return f"members:{members_digest(path, file.members)}" if file.members else f"sha256:{sha256_of(path)}"


def _quoted(name: str) -> str:
    return f'"{name}"' if ":" in name or "{" in name else name


def _download(text: str) -> yaml.MappingNode:
    """`rows.download` with the places of its keys."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key in ("rows", "download"):
        assert isinstance(node, yaml.MappingNode)  # the task was read before
        node = next(value for name, value in node.value if name.value == key)
    assert isinstance(node, yaml.MappingNode)
    return node


def _with_revision(text: str, commit: str) -> str:
    node = next(value for name, value in _download(text).value if name.value == "revision")
    return text[: node.start_mark.index] + commit + text[node.end_mark.index :]


def _with_digests(text: str, entries: list[str]) -> str:
    """The text with further digests, behind those that are there or behind the keys of the download."""
    download = _download(text)
    indent = " " * download.start_mark.column
    there = next((value for name, value in download.value if name.value == "digests"), None)
    lines = [f"{indent}  {entry}\n" for entry in entries]
    last = (there or download).value[-1][1]
    if there is None:
        lines = [f"{indent}digests:\n", *lines]
    end = text.find("\n", _end(last)) + 1
    return text[:end] + "".join(lines) + text[end:]


def _end(node: yaml.Node) -> int:
    """Where a node's own text ends: a block ends behind the blank lines and comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)
