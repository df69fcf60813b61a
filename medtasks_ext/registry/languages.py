"""Languages that have a code of three letters alone (ISO 639-3). The vocabulary has those of two letters."""

from __future__ import annotations

from functools import lru_cache


def three_letter_name(code: str) -> str | None:
    """The English name of a language that has no shorter code; None for anything else."""
    return three_letter_names().get(code) if len(code) == 3 else None


@lru_cache(maxsize=1)
def three_letter_names() -> dict[str, str]:
    """Code -> English name of all such languages."""
    from iso639 import ALL_LANGUAGES  # hardly any dataset has one

    return {item.part3: item.name for item in sorted(ALL_LANGUAGES, key=_code) if not item.part1}


def code_of(words: str) -> str | None:
    """The code that a language's name or longer code stands for, such as `ko` for `kor` and `Korean`."""
    from iso639 import Language, LanguageNotFoundError

    try:
        found = Language.match(words, strict_case=False)
    except LanguageNotFoundError:
        return None
    return found.part1 or found.part3


def _code(language: object) -> str:
    return str(getattr(language, "part3", ""))
