"""NLTK's Punkt data, which English BLEU and French ROUGE need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

#: Folder below that of `data fetch --to`: what NLTK_DATA has to name.
CARRIED = "nltk_data"
_NAME = "punkt_tab"
PUNKT_REMEDY = f"`python -m nltk.downloader {_NAME}`"


def needs_punkt(dataset: Dataset) -> bool:
    """Whether a metric of the dataset divides texts into sentences."""
    by_characters = dataset.metadata.language in ("zh", "ja")
    return not by_characters and any(metric["metric"] == "bleu_4" for metric in dataset.metric_list)


def fetch_punkt(to: Path | None) -> Path:
    """Fetch the data, unless it is there.

    Args:
        to: folder of `data fetch --to`; without one, NLTK's own folder of the user.

    Returns:
        The folder in which NLTK finds the data.

    Raises:
        MedtasksError: it could not be fetched.
    """
    from nltk.data import find
    from nltk.downloader import Downloader

    folder = to / CARRIED if to else None
    try:
        find(f"tokenizers/{_NAME}/english/", [str(folder)] if folder else None)
    except LookupError:
        pass
    else:
        return folder or Path(find(f"tokenizers/{_NAME}/english/")).parents[2]
    loader = Downloader()
    folder = folder or Path(loader.default_download_dir())
    try:
        loader.download(_NAME, download_dir=str(folder), quiet=True, raise_on_error=True)
    except (ValueError, OSError) as error:
        raise MedtasksError(
            f"NLTK's Punkt data could not be fetched ({type(error).__name__})",
            remedy=f"{PUNKT_REMEDY}; without it some metrics are left out",
        ) from None
    return folder
