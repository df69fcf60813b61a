"""Every dataset folder satisfies what `medtasks dev validate` asks: through lm-eval, in all strategies."""

import pytest

from medtasks_ext.registry import registry
from tests.conftest import problems_of

TASKS = registry()


def test_every_task_file_can_be_read():
    assert TASKS.broken == {}


@pytest.mark.parametrize("dataset", TASKS.datasets)
def test_oracle_garbage_prompts_and_sample_rows(dataset):
    assert problems_of(TASKS, TASKS.datasets[dataset]) == []
