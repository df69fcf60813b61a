"""Builds the task files that lm-eval's index needs, for the wheel and for editable installations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TasksBuildHook(BuildHookInterface):
    """Puts the built tasks where lm-eval's own scan finds them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build into a folder below `build`; hatchling takes the files from there."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        sys.path.insert(0, self.root)
        try:
            from medtasks_ext.registry import Registry
            from medtasks_ext.registry.build import build
            from medtasks_ext.registry.folders import FROM_INSTALLED
        finally:
            sys.path.remove(self.root)
        built = root / "build" / "wheel"
        # the hand-written tasks travel in medtasks_ext/tasks, or stay in the checkout
        written = None if version == "editable" else FROM_INSTALLED
        build(Registry(root / "tasks"), built, tasks=written)
        included = "force_include_editable" if version == "editable" else "force_include"
        build_data[included][str(built)] = "lm_eval/tasks/medtasks"
