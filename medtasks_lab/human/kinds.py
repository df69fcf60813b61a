"""Kinds of forms as data: which texts are shown, what is asked, and which answers there are."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from medtasks_ext.strict import Strict

_HERE = Path(__file__).parent

Language = Literal["en", "zh"]
KindName = Literal["pairwise", "points", "likert", "review", "survey"]


class Translated(Strict):
    """The same words in the languages that forms come in."""

    en: str
    zh: str

    def of(self, language: Language) -> str:
        """The words in one language."""
        return self.en if language == "en" else self.zh


class ShownText(Strict):
    """A text that the expert reads: above the answers, as an answer, as what is asked, or below that."""

    id: str
    place: Literal["above", "answer", "prompt", "help"]
    label: Translated


class FormQuestion(Strict):
    """A question that is asked about each row."""

    id: str
    label: Translated
    help: Translated


class Option(Strict):
    """One of the answers to a question."""

    value: str
    label: Translated

    @classmethod
    def named(cls, value: str, label: str | None = None) -> Option:
        """An option that is called alike in all languages; by default as files hold it."""
        return cls(value=value, label=Translated(en=label or value, zh=label or value))


class Kind(Strict):
    """One file of `medtasks_lab/human/kinds`.

    A form is a list of rows. A row has the texts of its kind and is asked every question; rows that
    share all but the texts with place `prompt` and `help` stand on one page.
    """

    title: Translated
    introduction: Translated
    texts: list[ShownText] = Field(min_length=1)
    questions: list[FormQuestion] = Field(min_length=1)
    prompts: list[FormQuestion] = Field(default=[])  # what rows ask, where that is the same in every export
    options: list[Option] = Field(default=[])  # answers to every question; none where each row brings its own
    record: list[str] = Field(default=[])  # what the key holds besides the forms

    @property
    def values(self) -> list[str]:
        """The answers that a question may have, as files hold them."""
        return [option.value for option in self.options]


@lru_cache(maxsize=8)
def load_kind(name: KindName) -> Kind:
    """A kind by its name."""
    return Kind(**yaml.safe_load((_HERE / "kinds" / f"{name}.yaml").read_text(encoding="utf-8")))


@lru_cache(maxsize=1)
def page_words() -> dict[str, Translated]:
    """What pages say besides what their kind says."""
    content = yaml.safe_load((_HERE / "page" / "words.yaml").read_text(encoding="utf-8"))
    return {name: Translated(**item) for name, item in content.items()}
