"""Words of messages."""


def counted(n: int, noun: str) -> str:
    """A number and what is counted: 1 task, 2,000 tasks."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
