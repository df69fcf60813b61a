"""What the hub says of a dataset: revision, files of the splits, licence, language, access."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.files import SUFFIXES

_TEST = ("test", "validation", "valid", "dev")
_FEWSHOT = ("train", "validation", "valid", "dev")


@dataclass(frozen=True)
class HubDataset:
    """A dataset of the hub."""

    repo: str  # ORG/NAME
    revision: str  # the commit that is there now
    test: str  # file of the rows that are asked, the best that was found
    fewshot: str | None  # file from which examples may be taken
    licence: str  # as the card says, or nothing
    gated: bool  # whether access has to be asked for

    @property
    def url(self) -> str:
        """Its page."""
        return f"https://huggingface.co/datasets/{self.repo}"

    @property
    def download(self) -> str:
        """The block `download` of a task file, within `rows`."""
        lines = [f"repo: {self.repo}", f"test: [{self.test}]"]
        lines += [f"fewshot: [{self.fewshot}]"] if self.fewshot else []
        return "  download:\n" + "".join(f"    {line}\n" for line in lines)


def hub_dataset(repo: str) -> HubDataset:
    """Ask the hub about a dataset. No rows are fetched.

    Raises:
        MedtasksError: the hub cannot be reached, has no such dataset, or has no file of rows in it.
    """
    from huggingface_hub import HfApi

    try:
        info = HfApi().dataset_info(repo)
    except Exception as error:  # the hub's client has had several HTTP libraries, each with its own errors
        raise MedtasksError(
            f"the hub says nothing of it ({type(error).__name__})",
            where=f"--from {repo}",
            remedy="check the name and the connection, log in where it is gated, or give a file",
        ) from None
    files = sorted(item.rfilename for item in info.siblings or [])
    rows = [name for name in files if PurePosixPath(name).suffix in SUFFIXES]
    test = _named(rows, _TEST) or (rows[0] if rows else None)
    if test is None:
        raise MedtasksError(
            f"none of its files holds rows that can be read ({', '.join(SUFFIXES)})",
            where=f"--from {repo}",
            remedy="download the data and give the file",
        )
    card = info.card_data
    licence = getattr(card, "license", None) if card else None
    return HubDataset(
        repo=repo,
        revision=info.sha or "main",
        test=test,
        fewshot=_named([name for name in rows if name != test], _FEWSHOT),
        licence=", ".join(licence) if isinstance(licence, list) else licence or "",
        gated=bool(info.gated),
    )


def _named(files: list[str], words: tuple[str, ...]) -> str | None:
    return next((name for word in words for name in files if word in PurePosixPath(name).stem.lower()), None)
