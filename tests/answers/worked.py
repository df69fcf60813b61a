"""Worked examples of every answer kind, from `cases/*.yaml`.

A file holds blocks of one `answer:` block and its examples. `mode` is `direct` or `cot`; without it the
example holds in both. `{20000 x}` stands for `x` repeated to 20,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

Block = dict[str, Any]
FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
MODES = {"direct": False, "cot": True}


def examples(part: str) -> Iterator[Any]:
    for file in FILES:
        for block in yaml.safe_load(file.read_text(encoding="utf-8")):
            for example in block.get(part, []):
                yield pytest.param(block, example, id=f"{file.stem}: {example['says']}")


def long(text: str) -> str:
    return re.sub(r"\{20000 (.+?)\}", lambda match: (match[1] * 20_000)[:20_000], text, flags=re.DOTALL)


def modes(example: Block) -> list[bool]:
    return [MODES[example["mode"]]] if "mode" in example else list(MODES.values())
