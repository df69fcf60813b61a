"""A run's end says how many answers could be read."""

from medtasks_ext.cli.end import remarks


def task(**metrics):
    return {
        "metrics": metrics,
        "cut": {},
        "loaded": {"n_held_out": 0, "rebuilt": False, "task": "bridge_mie"},
    }


def test_the_end_of_a_run_says_how_many_answers_could_be_read():
    read, unread = task(valid=1.0, score=0.8), task(valid=0.0, score=0.0)
    judged = task(valid=1.0)  # has no score yet
    [line] = remarks({"a": read, "b": unread, "c": judged})
    assert line == "readable 50.0% (mean of 2 tasks)"
    assert not list(remarks({"c": judged}))
