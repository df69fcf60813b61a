"""Scripted servers, feeds, and a clock that does not wait."""

from __future__ import annotations

import asyncio
import sys
import types

import pytest

from medtasks_ext.engines.http import Clock
from tests.engines.server import Server


class QuickClock(Clock):
    """Pauses end at once; the time goes on by what they would have taken."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    async def pause(self, seconds: float, ended: asyncio.Event) -> None:
        self.pauses.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


@pytest.fixture
def server():
    with Server() as one:
        yield one


@pytest.fixture
def clock():
    return QuickClock()


@pytest.fixture
def keys(monkeypatch):
    """Keys of all services, and as much of the package openai as lm-eval's model for Azure looks for."""
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, f"secret of {name}")
    openai = types.SimpleNamespace(AzureOpenAI=lambda **settings: None)
    monkeypatch.setitem(sys.modules, "openai", openai)
