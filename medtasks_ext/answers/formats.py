"""What all answer formats share, and the formats by their kind."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypedDict, Union, get_args

from pydantic import Field, TypeAdapter, ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import ANSWERS, hooks
from medtasks_ext.privacy import RowValueError
from medtasks_ext.strict import Strict, fault_of

#: (first, last + 1) of characters of a response
Span: TypeAlias = tuple[int, int]
#: marks that answer formats fold
_MARKS = str.maketrans("‘’“”–—", "''\"\"--")


def shortened(text: str, most: int) -> str:
    """A response without its middle, if it is longer than what is read."""
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 1]}\n{text[-half:]}"


class GoldError(RowValueError):
    """A gold answer that its own format does not accept; the message says why."""


class UnknownValueError(GoldError):
    """A gold answer of the right form with a value outside its closed list."""


class Reading(NamedTuple):
    """What was read from a response."""

    answer: Any  # as the answer kind has it, made of JSON types; None where nothing could be read
    valid: bool  # whether an answer could be read
    span: Span | None = None  # (first, last + 1) of it in the response, where the reader says so
    why: str = ""  # by which sign it was found, where the reader says so


class Lead(NamedTuple):
    """What stands before an answer that is taken by likelihood."""

    text: str = ""  # such as `relation:`; empty where the answer follows the prompt
    delimiter: str = " "  # between that and the answer


def reading(answer: Any, span: Span | None = None, why: str = "") -> Reading:
    """A reading of which an answer of None could not be read, and has no place."""
    return Reading(answer, answer is not None, None if answer is None else span, why)


class Parsed(TypedDict):
    """The `Reading` of a response, and what else its record says of it."""

    answer: Any
    valid: bool
    span: Span | None
    why: str
    reader: Literal["official", "shared"]  # the suite's own, or the shared one where it released none
    unclosed_reasoning: bool  # whether a reasoning trace never ended


#: Kind -> its format. A format enters when its class is made; `medtasks_ext.answers` imports all of ours.
KINDS: dict[str, type[AnswerFormat]] = {}
#: `answer:` block, written out -> its format
_BUILT: dict[str, AnswerFormat] = {}


class AnswerFormat(Strict):
    """Base of all formats. Fields are what a task's YAML writes under `answer:`.

    A subclass with a literal `kind` is a kind of answers from then on.
    """

    kind: str

    #: Whether the gold answers of a test file form a label space.
    has_label_pool: ClassVar[bool] = False
    #: Characters of a response that the shared reader sees, half of them from its beginning and half from
    #: its end. What lies between is a model's loop, or the middle of a long trace. Released readers see all.
    most_read: ClassVar[int] = 40_000
    #: Whether the suite replaces an invalid answer by a label drawn from that space.
    draws_invalid: ClassVar[bool] = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if names := get_args(cls.model_fields["kind"].annotation):  # else a base of several
            KINDS[names[0]] = cls
            any_format.cache_clear()
            _BUILT.clear()

    def read_gold(self, text: str, row: Mapping[str, Any]) -> Any:
        """Parse the rendered target of a row, whose prompt fields some formats need, or raise GoldError."""
        raise NotImplementedError

    @property
    def lead(self) -> Lead:
        """What stands before the answer in the form that the prompt asks for."""
        return Lead()

    def possible(self, document: Mapping[str, Any]) -> list[str] | None:
        """The possible answers in the order of the question, as written behind the lead; None if open."""
        return None

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """Parse a model's response, reasoning included, by the suite's own rule if it has one. Never raises.

        `row`: the document (its `options`, where the format needs them; its `gold`, None where it has none).
        """
        if self.has_released_reader(cot=cot):  # to the digit, whatever the length
            return self._read(text, row, cot=cot)
        found = self._read_shared(shortened(text, self.most_read), row, cot=cot)
        left_out = len(text) - self.most_read
        if found.span is None or left_out <= 0:
            return found
        begin, end = (place + left_out * (place >= self.most_read // 2) for place in found.span)
        return found._replace(span=(begin, end))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The suite's own rule, where it has released one."""
        raise NotImplementedError

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        """The shared reader: of kinds without such a rule, and of kinds with both under chain of thought."""
        raise NotImplementedError

    def ceiling(self, gold: Any) -> float:
        """The suite's score of the gold answer itself, where the task's `oracle_max` is `per_document`."""
        return 1.0

    def invalid_score(self, gold: Any) -> float:
        """The suite's score of an unreadable answer, where no label is drawn for it."""
        return 0.0

    def has_released_reader(self, *, cot: bool) -> bool:
        """Whether `read` is the suite's own rule for this prompt."""
        kind = type(self)
        own, shared = kind._read is not AnswerFormat._read, kind._read_shared is not AnswerFormat._read_shared
        return own and not (shared and cot)

    def labels_of(self, gold: Any) -> list[str]:
        """The gold labels that one document adds to the label space of its test file."""
        return gold if isinstance(gold, list) else [gold]

    def unknown_language(self) -> str:
        """What is lacking to read replies in the language of the dataset, and what to do; mostly nothing."""
        return ""

    def mentions(self, gold: Any) -> list[str]:
        """The parts of a gold answer that are words of the input, if the kind asks for such."""
        return []

    def looked_for(self, text: str) -> str:
        """A text in the form in which `mentions` are looked for in it."""
        return "".join(unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold().split())


class OfLabels(AnswerFormat):
    """Base: one or several labels of a closed list."""

    labels: list[str] | dict[str, str]


def enter_kind(name: object) -> None:
    """Enter a kind that an installed package adds, unless it is there; names that nobody adds are passed."""
    if name in KINDS:
        return
    for hook in hooks(ANSWERS):
        if hook.point.name == name:
            hook.load()  # the class enters itself
            if name not in KINDS:
                raise hook.fault("is no AnswerFormat with this `kind`")


@lru_cache(maxsize=1)
def any_format() -> TypeAdapter[Any]:
    """What an `answer:` block may be: one of all kinds, told apart by `kind`."""
    kinds = tuple(KINDS[name] for name in sorted(KINDS))
    return TypeAdapter(Annotated[Union[kinds], Field(discriminator="kind")])  # type: ignore[arg-type]  # noqa: UP007


def answer_format(spec: Mapping[str, Any], *, where: object = None) -> AnswerFormat:
    """Build the format that a task's `answer:` block describes."""
    enter_kind(spec.get("kind"))
    key = repr(spec)  # tells `1`, `1.0` and `true` apart, which are one key of a dictionary
    try:
        if key not in _BUILT:
            _BUILT[key] = any_format().validate_python(spec)
        return _BUILT[key]
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(part for part in first["loc"] if part != spec.get("kind"))
        raise MedtasksError(
            fault_of({**first, "loc": place}, "answer"),
            where=where,
            remedy="docs/keys.md lists the answer kinds and their keys",
        ) from None
