"""A roll-up is the mean of its parts, and says what it lacks and what is synthetic."""

from types import SimpleNamespace

from medtasks_ext.results.rollup import Members, Row, roll_up_one


def roll_up(name, tasks, metrics, sizes, parts=None) -> Row:
    finished = {
        task: SimpleNamespace(metrics=item, intervals={}, n=sizes.get(task, 0), estimate=None)
        for task, item in metrics.items()
    }
    return roll_up_one(Members(name, tuple(tasks), tuple(map(tuple, parts or [tasks]))), finished)


def test_a_group_with_missing_tasks_is_partial_and_one_without_scores_has_none():
    metrics = {"a": {"score": 0.5, "valid": 1.0}, "b": {"valid": 0.5}}
    row = roll_up("g", ["a", "b", "c"], metrics, {"a": 4, "b": 6})
    assert (row.score, row.n_scored, row.n_tasks, row.n_documents, row.partial) == (0.5, 1, 3, 10, True)
    assert row.valid == 0.75
    assert roll_up("g", ["b"], metrics, {}).score is None


def test_sample_rows_mark_every_group_that_holds_them():
    metrics = {"a": {"score": 1.0, "SAMPLE_DATA": 1.0}, "b": {"score": 1.0}}
    assert roll_up("g", ["a", "b"], metrics, {}).sample
    assert not roll_up("g", ["b"], metrics, {}).sample


def test_a_mean_over_parts_counts_each_part_once_whatever_its_size():
    metrics = {"a": {"score": 1.0}, "b": {"score": 0.5}, "c": {"score": 0.0}, "d": {"valid": 1.0}}
    row = roll_up("g", list("abcd"), metrics, {}, parts=[["a"], ["b", "c"], ["d"]])
    assert (row.score, row.n_scored, row.n_tasks, row.partial) == ((1.0 + 0.25) / 2, 3, 4, True)


def test_tasks_outside_the_parts_are_run_without_counting():
    metrics = {"a": {"score": 1.0}, "b": {"score": 0.0}}
    row = roll_up("g", ["a", "b"], metrics, {"a": 2, "b": 3}, parts=[["a"]])
    assert (row.score, row.n_scored, row.n_tasks, row.n_documents) == (1.0, 1, 1, 5)
