"""A store of many runs (being written)."""


def is_store(path):
    return False


def read_store(path, tasks, faults):
    return []
