"""Each check of submissions has an edit that it names: without the check, the test of that edit fails."""

import ast
import dataclasses
import inspect
import shutil
import sys
from pathlib import Path

from medtasks_ext.registry import registry
from medtasks_lab.submissions import check
from tests.submissions.conftest import PLACE
from tests.submissions.test_check import EDITS

#: What needs more than one edited folder -> the test that looks at it.
ELSEWHERE = {
    "too_large": "test_workflow.py",
    "_confirmed": "test_trust.py",
    "_twice": "test_check.py, the same model twice",
}


def test_every_finding_is_made_by_an_edit(submission, tmp_path, monkeypatch):
    found = {}

    @dataclasses.dataclass(frozen=True)
    class Seen(check.Finding):
        def __post_init__(self):
            found.setdefault(sys._getframe(2).f_lineno, str(self))

    monkeypatch.setattr(check, "Finding", Seen)
    for name, (change, words) in EDITS.items():
        folder = tmp_path / "edits" / name / Path(PLACE).relative_to("submissions")
        shutil.copytree(submission, folder)
        change(folder)
        said = "\n".join(map(str, check.check_submission(folder, registry()).findings))
        assert words in said, name
    for function in ast.walk(ast.parse(inspect.getsource(check))):
        if isinstance(function, ast.FunctionDef) and function.name not in ELSEWHERE:
            made = {node.lineno for node in ast.walk(function) if isinstance(node, ast.Call)
                    and getattr(node.func, "id", "") == "Finding"}  # fmt: skip
            assert made <= found.keys(), function.name
