"""Raters that raise."""


def ratings(path, runs, *, keep):
    """Divide by nothing."""
    return 1 / 0
