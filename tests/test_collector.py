"""The garbage collector is paused and spared without a walk over all that it is spared from."""

import gc

import pytest

from medtasks_ext.process import collector_paused, collector_sparing


@pytest.fixture(autouse=True)
def nothing_is_frozen():
    assert gc.get_freeze_count() == 0 and gc.isenabled()
    yield
    assert gc.get_freeze_count() == 0 and gc.isenabled()


def test_a_pause_leaves_nothing_frozen():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_pause_among_spared_objects_thaws_none_and_walks_over_none(monkeypatch):
    """One answer is read in such a pause; with 1,600 answers, counting took half of a run."""
    spared: list[object] = []

    def walks():
        raise AssertionError("counts all that is frozen")

    with collector_sparing():
        with monkeypatch.context() as patch:
            patch.setattr(gc, "get_freeze_count", walks)
            with collector_paused():
                pass
        assert not any(item is spared for item in gc.get_objects())  # which lists what is not frozen
    assert any(item is spared for item in gc.get_objects())


def test_blocks_that_spare_may_stand_in_each_other():
    with collector_sparing():
        with collector_sparing():
            pass
        assert gc.get_freeze_count() > 0


def test_an_error_inside_leaves_the_collector_as_it_was():
    for block in (collector_paused, collector_sparing):
        with pytest.raises(KeyError), block():
            raise KeyError
