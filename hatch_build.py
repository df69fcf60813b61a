"""What the wheel holds besides `medtasks_ext`: a second copy of the tasks, for the `medtasks` command.

lm-eval's own scan finds the first copy (`pyproject.toml`). A folder can be named there once, so this copy is
added entry by entry; a new suite needs no line.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TasksHook(BuildHookInterface):
    """Adds the entries of `tasks` to the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel is built; an editable one reads the checkout's own tasks."""
        if version == "editable":
            return
        for entry in sorted(Path(self.root, "tasks").iterdir()):
            if entry.name != "README.md" and not entry.name.startswith("."):
                build_data["force_include"][str(entry)] = f"medtasks_ext/tasks/{entry.name}"
