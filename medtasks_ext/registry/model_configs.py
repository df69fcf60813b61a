"""Configurations of models: files for `--config`, by path or by the name of one that comes with medtasks."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

import yaml

from medtasks_ext.errors import MedtasksError

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


def bundled_configs() -> dict[str, Path]:
    package = Path(__file__).resolve().parents[1]
    return {
        path.stem: path
        for root in (package / "model_configs", package.parent / "model_configs")
        for folder in _CONFIG_FOLDERS
        for path in sorted((root / folder).glob("*.yaml"))
    }


@lru_cache(maxsize=1)
def ready_layouts() -> frozenset[str]:
    """The chat templates that bundled configurations write out for models without one (`metadata.layout`)."""
    texts = (path.read_text(encoding="utf-8") for path in bundled_configs().values())
    # two in a hundred have one
    read = (yaml.safe_load(text).get("metadata") or {} for text in texts if "layout:" in text)
    return frozenset(str(metadata["layout"]) for metadata in read if metadata.get("layout"))
