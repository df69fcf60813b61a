"""What `medtasks validate` asks of a dataset whose score comes from judges."""

from __future__ import annotations

import shutil

import pytest

from medtasks_ext.registry import Registry, registry
from medtasks_ext.runner.validate import validate_dataset
from tests.conftest import declare_suites

NAME = "medhelm_mimic_rrs"


@pytest.fixture
def problems(tmp_path):
    """Validate a copy of a dataset with one passage of its file replaced."""
    source = registry().root
    for folder in ("", "medhelm"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for file in (source / folder).glob("_*.yaml"):
            shutil.copy(file, tmp_path / folder)
    target = tmp_path / "medhelm" / "mimic_rrs"
    shutil.copytree(source / "medhelm" / "mimic_rrs", target)
    declare_suites(tmp_path)

    def call(old: str, new: str) -> list[str]:
        file = target / "zero_shot.yaml"
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), encoding="utf-8")
        copied = Registry(tmp_path)
        return validate_dataset(copied, copied.datasets[NAME])

    return call


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('question: "{{ findings }}"', 'question: " "', "judge.question is not rendered for row t1"),
        (
            "clarity: Do referring clinicians understand it easily?",
            'clarity: " "',
            "judge: clarity says nothing",
        ),
        (
            "include: ../_open.yaml",
            "include: ../_codes.yaml",
            "has a score before judges have read the answers",
        ),
    ],
)
def test_what_is_missing_is_said(problems, old, new, message):
    assert any(message in problem for problem in problems(old, new))
