"""Where the tasks are: those that people write, and those that are built from them for lm-eval."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import SUITES
from medtasks_ext.hooks import folders as hook_folders

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent


@lru_cache(maxsize=1)
def is_checkout() -> bool:
    return (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / "tasks").is_dir()


def tasks_folder() -> Path:
    """The folder that holds the tasks: the checkout's own, else the copy inside this package.

    `MEDTASKS_TASKS_DIR` names another one in its place, as tests and benchmarks need it.
    """
    if named := os.environ.get("MEDTASKS_TASKS_DIR"):
        folder = Path(named).expanduser()
        if not folder.is_dir():
            where = f"MEDTASKS_TASKS_DIR={named}"
            raise MedtasksError("no such folder", where=where, remedy="correct the path")
        return folder
    return CHECKOUT / "tasks" if is_checkout() else PACKAGE / "tasks"


#: Where a wheel puts what lm-eval's own scan finds, beside the package.
INSTALLED = CHECKOUT / "lm_eval" / "tasks" / "medtasks"
#: The hand-written tasks of a wheel, as seen from a dataset's folder there.
FROM_INSTALLED = "../../../../../medtasks_ext/tasks"


def own_folders() -> tuple[Path, ...]:
    """Folders with tasks besides the built-in ones.

    Those that `MEDTASKS_TASKS` names, several with `:` (on Windows `;`) between them; then those that
    installed packages add. Raises MedtasksError: one does not exist.
    """
    named = [text for text in os.environ.get("MEDTASKS_TASKS", "").split(os.pathsep) if text]
    folders = [Path(text).expanduser().absolute() for text in named]
    for folder in folders:
        if not folder.is_dir():
            what = "no such folder"
            remedy = "correct MEDTASKS_TASKS, --tasks-dir or --include_path"
            raise MedtasksError(what, where=f"tasks of your own, {folder}", remedy=remedy)
    return tuple(dict.fromkeys([*folders, *package_folders()]))


@lru_cache(maxsize=1)
def package_folders() -> tuple[Path, ...]:
    return tuple(folder for _, folder in hook_folders(SUITES))


def writable(folders: Iterable[Path]) -> list[Path]:
    return [folder for folder in folders if folder not in package_folders()]


def add_own_folders(folders: Iterable[str]) -> None:
    named = [os.environ.get("MEDTASKS_TASKS", ""), *(str(Path(name).absolute()) for name in folders)]
    os.environ["MEDTASKS_TASKS"] = os.pathsep.join(filter(None, named))


def built_folder() -> Path:
    """The folder that lm-eval can index.

    Of an installed package what was installed, in a checkout `build/tasks`. Where there are tasks of
    one's own, a folder of the user's cache, which holds them alone.
    """
    root, own = tasks_folder(), own_folders()
    if not own and root == PACKAGE / "tasks":
        return INSTALLED
    if not own and is_checkout() and root == CHECKOUT / "tasks":
        return CHECKOUT / "build" / "tasks"
    named = "\n".join(str(folder.resolve()) for folder in (root, *own))
    return cache_dir() / "built" / sha256(named.encode()).hexdigest()[:12] / "tasks"


def cache_dir() -> Path:
    """Where files are kept that were fetched or built: `$MEDTASKS_CACHE`, by default `~/.cache/medtasks`."""
    return Path(os.environ.get("MEDTASKS_CACHE") or "~/.cache/medtasks").expanduser()
