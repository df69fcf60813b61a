"""What `medtasks dev validate` asks of a dataset whose score comes from judges."""

from __future__ import annotations

import shutil

import pytest

from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.functions import FOLDER
from tests.conftest import declare_suites, problems_of

NAME = "medhelm_mimic_rrs"
#: What the family of billing codes says, stated in a task file.
CODES = "".join(
    line
    for line in (FOLDER / "codes.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    if not line.startswith(("answers:", "primary:"))
) + "".join(
    f"  - {{metric: {name}, aggregation: mean, higher_is_better: true}}\n"
    for name in (
        "valid",
        "unclosed_reasoning",
        "scored",
        "SAMPLE_DATA",
    )
)


@pytest.fixture
def problems(tmp_path):
    """Validate a copy of a dataset with one passage of its file replaced."""
    source = registry().root
    target = tmp_path / "medhelm" / "mimic_rrs"
    shutil.copytree(source / "medhelm" / "mimic_rrs", target)
    declare_suites(tmp_path)

    def call(old: str, new: str) -> list[str]:
        file = target / "task.yaml"
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), encoding="utf-8")
        copied = Registry(tmp_path)
        if NAME not in copied.datasets:  # its file cannot be used at all
            return list(copied.broken.values())
        return problems_of(copied, copied.datasets[NAME])

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
            "task: medhelm_mimic_rrs\n",
            f"task: medhelm_mimic_rrs\n{CODES}",
            "has a score before judges have read the answers",
        ),
        (
            "{kind: free_text}",
            "{kind: exact_letter, letters: [A, B]}",
            "'exact_letter' have no metrics that judges score by axes",
        ),
    ],
)
def test_what_is_missing_is_said(problems, old, new, message):
    assert any(message in problem for problem in problems(old, new))
