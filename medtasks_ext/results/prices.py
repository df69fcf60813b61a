"""What models cost, as the bundled configurations say (`metadata.price` in `model_configs`)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.results.suite_figures import Price

_FOLDERS = ("api", "open")


@lru_cache(maxsize=1)
def prices() -> dict[str, Price]:
    """Model id -> US dollars per million tokens; models whose configurations disagree are left out."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "model_configs"
    root = checkout if checkout.is_dir() else package / "model_configs"
    found: dict[str, set[Price]] = {}
    for folder in _FOLDERS:
        for file in sorted((root / folder).glob("*.yaml")):
            config = read_yaml(file)
            price = (config.get("metadata") or {}).get("price")
            arguments = config.get("model_args") or {}
            model = arguments.get("pretrained") or arguments.get("model") or config.get("pretrained")
            if price and model:
                found.setdefault(str(model), set()).add(Price(float(price["input"]), float(price["output"])))
    return {model: next(iter(some)) for model, some in found.items() if len(some) == 1}
