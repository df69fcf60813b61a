"""docs/first_hours/author.md with the real engine: what the page shows is what the commands print."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.engine.tiny_model import make
from tests.transcripts.console import PAGES, Shell, check

pytestmark = pytest.mark.engine


def test_the_first_hour_of_an_author_goes_as_its_page_says(environment, tmp_path):
    make(tmp_path / "my-model")
    kept = ("VLLM_CPU_KVCACHE_SPACE", "VLLM_NO_USAGE_STATS")
    shell = Shell(tmp_path, Path(sys.executable).parent, {name: environment[name] for name in kept})
    check(PAGES / "author.md", shell)
