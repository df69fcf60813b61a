"""What tests of several commands share."""

from pathlib import Path

import pytest

from medtasks_ext.registry import forget


@pytest.fixture
def own(tmp_path, monkeypatch) -> Path:
    """An empty folder of one's own tasks, below the folder in which commands are called."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder))
    monkeypatch.chdir(tmp_path)
    forget()
    yield folder
    forget()
