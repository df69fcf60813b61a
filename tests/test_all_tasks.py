"""Every dataset folder satisfies what `medtasks dev validate` asks: through lm-eval, in all strategies."""

import pytest

from medtasks_ext.prompts import documents
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from tests.conftest import problems_of

TASKS = registry()


def test_every_task_file_can_be_read():
    assert TASKS.broken == {}


@pytest.mark.parametrize("dataset", TASKS.datasets)
def test_oracle_garbage_prompts_and_sample_rows(dataset):
    assert problems_of(TASKS, TASKS.datasets[dataset]) == []


def test_long_documents_are_packed_and_read_as_they_were(monkeypatch):
    monkeypatch.setattr(documents.PackedDocuments, "_N", 3)  # of several blocks, the last is short
    for dataset in TASKS.datasets.values():
        monkeypatch.setattr(documents, "LONG_PROMPT", 1_000_000)
        plain = check_rows(dataset, "sample").test
        monkeypatch.setattr(documents, "LONG_PROMPT", 0)
        packed = check_rows(dataset, "sample").test
        assert isinstance(packed, documents.PackedDocuments)
        assert [*packed] == plain and packed[-1] == plain[-1] and packed[1:4] == plain[1:4]
        for name in ("input", "instruction", "keeps_end", "question", "record", "row"):
            assert [getattr(one, name) for one in packed] == [getattr(one, name) for one in plain], name
        assert {id(one.loaded.test) for one in packed} == {id(packed)}
        with pytest.raises(IndexError):
            packed[len(plain)]
