"""Where the files are: tasks as people write them and as built for lm-eval; configurations of models."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import SUITES, Hook, results

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
            remedy = "correct MEDTASKS_TASKS or --include_path"
            raise MedtasksError(what, where=f"tasks of your own, {folder}", remedy=remedy)
    return tuple(dict.fromkeys([*folders, *package_folders()]))


@lru_cache(maxsize=1)
def package_folders() -> tuple[Path, ...]:
    return tuple(folder for _, folder in results(SUITES, Hook.folder))


def writable(folders: Iterable[Path]) -> list[Path]:
    return [folder for folder in folders if folder not in package_folders()]


def add_own_folder(folder: str) -> None:
    named = [os.environ.get("MEDTASKS_TASKS", ""), str(Path(folder).absolute())]
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


#: Folders of `model_configs` whose files are lm-eval's; juries and recipes have other forms.
_CONFIG_FOLDERS = (".", "open", "api")
#: Some that are named where a name resembles none.
_EXAMPLES = "vllm, openai_compatible or Qwen3-8B-Thinking"


def find_config(name: str) -> Path:
    """The file of a configuration given by path or by the name of a bundled one."""
    if Path(name).is_file():
        return Path(name)
    bundled = bundled_configs()
    if name in bundled:
        return bundled[name]
    folded = {known.casefold(): known for known in bundled}
    close = [folded[near] for near in get_close_matches(name.casefold(), folded, n=3)]
    remedy = f"did you mean {' or '.join(close)}?"
    if not close:
        remedy = f"name a YAML file, or one of the {len(bundled)} that come with medtasks, as {_EXAMPLES}"
        remedy += " (model_configs/README.md lists them)"
    raise MedtasksError("no such file or bundled configuration", where=f"--config {name}", remedy=remedy)


def bundled_configs(folders: Iterable[str] = _CONFIG_FOLDERS) -> dict[str, Path]:
    return {
        path.stem: path
        for root in (PACKAGE / "model_configs", CHECKOUT / "model_configs")
        for folder in folders
        for path in sorted((root / folder).glob("*.yaml"))
    }


@lru_cache(maxsize=1)
def ready_layouts() -> frozenset[str]:
    """The chat templates that bundled configurations write out for models without one (`metadata.layout`)."""
    texts = (path.read_text(encoding="utf-8") for path in bundled_configs().values())
    # two in a hundred have one
    read = (yaml.safe_load(text).get("metadata") or {} for text in texts if "layout:" in text)
    return frozenset(str(metadata["layout"]) for metadata in read if metadata.get("layout"))
