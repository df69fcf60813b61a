"""Where the tasks are: those that people write, and those that are built from them for lm-eval."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from medtasks_ext.errors import MedtasksError

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent


def is_checkout() -> bool:
    """Whether the package is imported from a checkout, which has the tasks beside it."""
    return (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / "tasks").is_dir()


def tasks_folder() -> Path:
    """The folder that holds the tasks: the checkout's own, else the copy inside this package.

    `MEDTASKS_TASKS_DIR` names another one, for tasks that are not part of the registry.
    """
    if named := os.environ.get("MEDTASKS_TASKS_DIR"):
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise MedtasksError(
                "no such folder", where=f"MEDTASKS_TASKS_DIR={named}", remedy="correct the path"
            )
        return folder
    return CHECKOUT / "tasks" if is_checkout() else PACKAGE / "tasks"


#: Where a wheel puts what lm-eval's own scan finds, beside the package.
INSTALLED = CHECKOUT / "lm_eval" / "tasks" / "medtasks"
#: The hand-written tasks of a wheel, as seen from a dataset's folder there.
FROM_INSTALLED = "../../../../../medtasks_ext/tasks"


def built_folder() -> Path:
    """The folder that lm-eval can index: of an installed package what was installed, in a checkout
    `build/tasks`, of other tasks a folder of the cache."""
    own = tasks_folder()
    if own == PACKAGE / "tasks":
        return INSTALLED
    if is_checkout() and own == CHECKOUT / "tasks":
        return CHECKOUT / "build" / "tasks"
    return cache_dir() / "built" / sha256(str(own.resolve()).encode()).hexdigest()[:12] / "tasks"


def cache_dir() -> Path:
    """Where files are kept that were fetched or built: `$MEDTASKS_CACHE`, by default `~/.cache/medtasks`."""
    return Path(os.environ.get("MEDTASKS_CACHE") or "~/.cache/medtasks").expanduser()
