"""What `medtasks doctor` says of the machine: engines, Punkt, BERTScore, room on the disk, permissions."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from medtasks_ext.registry.folders import cache_dir

#: sound?, or None for what may well be so; what was found
Check: TypeAlias = "tuple[bool | None, str]"

LEAST_FREE = 2 * 2**30  # bytes: responses of a run, and a small download


def bad(text: str, remedy: str) -> Check:
    """What needs attention, and what to do."""
    return False, f"{text} → {remedy}"


def surroundings(data: Path | None) -> Iterator[Check]:
    """Look at what is outside the package.

    Args:
        data: the user's data folder.
    """
    yield _engines()
    yield _punkt()
    yield _bertscore()
    yield from _disk()
    if data:
        yield _permissions(data)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _engines() -> Check:
    found = [f"{name} {version}" for name in ("vllm", "transformers") if (version := _version(name))]
    # what lm-eval's extra `api` adds
    if _version("tenacity") and importlib.util.find_spec("tiktoken"):
        found.append("OpenAI-compatible servers")
    if not found:
        return None, "no engine for models → pip install 'medtasks[vllm]', [hf] or [api]"
    return True, f"engines: {', '.join(found)}"


def _punkt() -> Check:
    from nltk.data import find

    missing = []
    for language in ("english", "french"):
        try:
            find(f"tokenizers/punkt_tab/{language}/")
        except LookupError:
            missing.append(language)
    if not missing:
        return True, "NLTK's Punkt data is here"
    return None, (
        f"NLTK's Punkt data is missing ({', '.join(missing)}): English BLEU and French ROUGE are left out"
        " → python -m nltk.downloader punkt_tab"
    )


def _bertscore() -> Check:
    installed = bool(importlib.util.find_spec("bert_score"))
    if os.environ.get("MEDTASKS_BERTSCORE") == "1":
        if not installed:
            return bad("BERTScore is switched on but not installed", "pip install 'medtasks[bertscore]'")
        return True, "BERTScore is switched on"
    state = "installed and switched off" if installed else "not installed"
    return None, f"BERTScore is {state}; no score needs it"


def _disk() -> Iterator[Check]:
    places = {"this folder": Path.cwd(), "the cache": cache_dir()}
    for name, folder in places.items():
        existing = next(path for path in (folder, *folder.parents) if path.is_dir())
        if not os.access(existing, os.W_OK):
            yield bad(f"{name} cannot be written: {folder}", _remedy(name))
            continue
        free = shutil.disk_usage(existing).free
        if free < LEAST_FREE:
            yield bad(f"{free / 2**30:.1f} GB are free in {name}: {folder}", _remedy(name))
    yield True, f"{shutil.disk_usage(Path.cwd()).free / 2**30:,.0f} GB are free here"


def _remedy(name: str) -> str:
    return "set MEDTASKS_CACHE to another folder" if name == "the cache" else "work in another folder"


def _permissions(data: Path) -> Check:
    if os.name == "posix" and data.stat().st_mode & (stat.S_IROTH | stat.S_IXOTH):
        return None, (
            f"every user of this machine can read {data}; if it holds data that is not open"
            f" → chmod -R o-rwx {data}"
        )
    return True, "other users of this machine cannot read the data folder"
