"""Whether the model that answered is the one that was asked for, by the names that servers give it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

#: What a server adds to a name, or an alias stands for: a date or the number of an edition, `latest`, or a
#: tag of a provider's (`gpt-4o-2024-08-06`, `gemini-2.0-flash-001`, `mistral-large-2411`, `llama3:latest`).
_EDITION = re.compile(
    r"(?:[-_@:](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-[0-3]\d|[01]\d-20\d\d|\d{4}|\d{3}|v\d+(?::\d+)?|latest)"
    r"|:[a-z][a-z-]*)\Z"
)
_ODD = re.compile(r"[^\w./:@+-]")
#: Characters of a name that are shown.
_SHOWN = 80


def other_models(asked: str, served: Iterable[str]) -> list[str]:
    """Names of models that are not the one asked for, as a line may show them.

    A name that has a provider before it, or a date or edition behind it that the other leaves out, is of the
    same model; letters may be large or small.
    """
    others = sorted({name for name in served if not _same(asked.lower(), name.lower())})
    return [_ODD.sub("?", name)[:_SHOWN] for name in others]


def served_note(asked: str, served: Collection[Iterable[str]]) -> str:
    """A line where another model answered; empty where none did, or where nobody knows what was asked."""
    found = [others for names in served if asked and (others := other_models(asked, names))]
    if not found:
        return ""
    names = ", ".join(sorted({name for others in found for name in others}))
    of = f"{len(found)} of {len(served)} tasks" if len(served) > 1 else "the task"
    return f"asked for {_ODD.sub('?', asked)}, and the server answered as {names}, in {of}"


def _same(asked: str, served: str) -> bool:
    (one, edition), (other, served_edition) = _parted(asked), _parted(served)
    alike = one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
    return alike and (edition == served_edition or not edition or not served_edition)


def _parted(name: str) -> tuple[str, str]:
    """A name without its editions, and the last of these that is more than a tag."""
    editions = []
    while match := _EDITION.search(name):
        name = name[: match.start()]
        if re.search(r"\d", match[0]):
            editions.append(match[0])
    return name, "".join(editions)
