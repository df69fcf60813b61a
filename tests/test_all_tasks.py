"""Every dataset folder satisfies what `medtasks dev validate` asks: through lm-eval, in all strategies."""

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.runner.validate import validate_dataset

TASKS = registry()


def test_every_task_file_can_be_read():
    assert TASKS.broken == {}


@pytest.mark.parametrize("dataset", TASKS.datasets)
def test_oracle_garbage_prompts_and_sample_rows(dataset):
    assert validate_dataset(TASKS, TASKS.datasets[dataset]) == []
