"""Blinded forms for experts: one YAML a kind, over one page."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
KINDS = ("pairwise", "points", "likert", "review", "survey")


@lru_cache
def kind_of(name: str) -> dict[str, Any]:
    """What forms of a kind show and ask, and the tables of their results: `kinds/NAME.yaml`."""
    content: dict[str, Any] = yaml.safe_load((HERE / "kinds" / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


@lru_cache
def page_words(language: str) -> dict[str, str]:
    """What pages say besides what their kind says."""
    content = yaml.safe_load((HERE / "page" / "words.yaml").read_text(encoding="utf-8"))
    return {name: said[language] for name, said in content.items()}
