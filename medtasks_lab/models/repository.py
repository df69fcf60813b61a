"""The small files of a model's repository: of a folder, a mirror, the hub's cache or the hub. None is run."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError

#: Files that are read; of none of them code is executed.
FILES = (
    "config.json", "generation_config.json", "tokenizer_config.json", "chat_template.jinja",
    "chat_template.json", "model.safetensors.index.json", "README.md",
    "quantize_config.json", "params.json", "adapter_config.json",
)  # fmt: skip
#: A file above this is none that describes a model.
_MOST_BYTES = 50_000_000
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_HASH = 40


@dataclass(frozen=True)
class Repository:
    """A model's repository at one revision.

    Attributes:
        name: ORG/MODEL, or a folder's path.
        revision: the commit; empty of a folder.
        folder: where the files lie.
    """

    name: str
    revision: str
    folder: Path

    def text(self, file: str) -> str | None:
        """The text of a file; None where there is none.

        Raises:
            MedtasksError: it is too large, or no UTF-8.
        """
        path = self.folder / file
        if not path.is_file():
            return None
        if path.stat().st_size > _MOST_BYTES:
            raise MedtasksError("is too large to be read", where=path, remedy="name a model's own repository")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise MedtasksError("is not UTF-8 text", where=path, remedy="download it again") from None

    def json(self, file: str) -> dict[str, Any]:
        """The object in a JSON file; empty where there is none.

        Raises:
            MedtasksError: it holds no object.
        """
        if (text := self.text(file)) is None:
            return {}
        try:
            content = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise MedtasksError("holds no JSON object", where=self.folder / file, remedy="download it again")
        return content

    @cached_property
    def config(self) -> dict[str, Any]:
        """`config.json`, with what it says of the language model above what it says of the whole."""
        whole = self.json("config.json")
        inner = whole.get("text_config")
        return {**whole, **inner} if isinstance(inner, dict) else whole


def find_repository(named: str, *, mirror: Path | None = None, local: bool = False) -> Repository:
    """The repository that `ORG/MODEL[@REVISION]`, or a folder, names.

    Args:
        named: by the user.
        mirror: folder that holds the repository, or ORG/MODEL below it.
        local: whether nothing may be downloaded.

    Raises:
        MedtasksError: there is none, it is gated, or it holds no `config.json`.
    """
    name, _, revision = named.partition("@")
    if mirror is not None:
        folder = next((place for place in (mirror / name, mirror) if (place / "config.json").is_file()), None)
        if folder is None:
            raise _without_config(mirror / name, mirror / name, "name the mirror's folder")
        return Repository(name, revision, folder)
    if Path(named).is_dir():
        if not (Path(named) / "config.json").is_file():
            raise _without_config(named, Path(named), "name the folder of a model")
        return Repository(named, "", Path(named))
    if not _NAME.fullmatch(name):
        raise MedtasksError(
            "is no model", where=named, remedy="write ORG/MODEL, ORG/MODEL@REVISION, or a folder's path"
        )
    return _cached(name, revision or "main") or _downloaded(name, revision or None, local=local)


def _without_config(where: str | Path, folder: Path | None, remedy: str) -> MedtasksError:
    """What a repository that has no `config.json` holds instead, and what to do with that."""
    holds = "no config.json"
    if folder is not None and (folder / "adapter_config.json").is_file():
        base = Repository("", "", folder).json("adapter_config.json").get("base_model_name_or_path")
        holds, remedy = (
            f"an adapter of {base or 'another model'}, and no weights of its own",
            f"write {base or 'that model'} in model_args.pretrained and this in lora_local_path",
        )
    elif folder is not None and any(folder.glob("*.gguf")):
        holds, remedy = (
            "GGUF files and no config.json",
            "name the model that they were made of, or serve them: --config openai_compatible",
        )
    elif folder is not None and (folder / "params.json").is_file():
        holds, remedy = (
            "Mistral's own form, and no config.json",
            "serve it (vllm serve with --config-format, --load-format and --tokenizer-mode mistral) and ask"
            " it with --config openai_compatible",
        )
    return MedtasksError(f"holds {holds}", where=where, remedy=remedy)


def _cached(name: str, revision: str) -> Repository | None:
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    pointer = place / "refs" / revision
    commit = pointer.read_text().strip() if pointer.is_file() else revision
    folder = place / "snapshots" / commit
    return Repository(name, commit, folder) if (folder / "config.json").is_file() else None


def _downloaded(name: str, revision: str | None, *, local: bool) -> Repository:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    away = MedtasksError(
        "is not in the hub's cache here, and the hub cannot be asked",
        where=name,
        remedy="unset HF_HUB_OFFLINE, or name a folder: --from DIR",
    )
    if local or constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE") == "1":
        raise away
    folder: Path | None = None
    for file in FILES:
        try:
            folder = Path(hf_hub_download(name, file, revision=revision)).parent
        except GatedRepoError:
            raise MedtasksError(
                "is gated",
                where=name,
                remedy=f"accept its terms at https://huggingface.co/{name}, then hf auth login",
            ) from None
        except (RepositoryNotFoundError, RevisionNotFoundError):
            raise MedtasksError(
                "the hub has no such model or revision, or it is private",
                where=name,
                remedy="correct the name",
            ) from None
        except LocalEntryNotFoundError:
            raise away from None
        except EntryNotFoundError:
            continue
        except Exception:  # a broken connection, in any of httpx's words
            raise away from None
    if folder is None or not (folder / "config.json").is_file():
        raise _without_config(name, folder, "name a model in transformers' form")
    return Repository(name, folder.name if len(folder.name) == _HASH else revision or "", folder)
