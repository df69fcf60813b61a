"""Words of messages and of help."""

#: Help of an option that several commands have.
ALLOW_HOST = "Send text that is gated or private to this host, too; repeatable."


def counted(n: int, noun: str) -> str:
    """A number and what is counted: 1 task, 2,000 tasks."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in two units at most: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
