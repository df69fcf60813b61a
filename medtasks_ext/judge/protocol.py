"""Protocols: what judges are asked and how their verdicts become a score, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.judge.reply import (
    CODE,
    Verdict,
    read_only_verdict,
    read_released,
    read_verdict,
    verdict_schema,
)
from medtasks_ext.rows.expressions import Template
from medtasks_ext.strict import Strict, read_yaml, validated

if TYPE_CHECKING:
    from medtasks_ext.prompts.official.words import JuryWords
    from medtasks_ext.registry.blocks import OfficialJury
    from medtasks_ext.rows.spec import Judging

N_ASSESSORS = 2


def weighted_mean(ratings: Mapping[str, float], weights: Mapping[str, float]) -> Fraction:
    """Mean of one judge's ratings; axes weigh the same. Exact in the decimal digits of the weights:
    a difference of a quarter is a quarter, which it need not be in floating point.

    A negative weight is a penalty: it is taken off, and the whole is what the positive weights add up to, so
    that the least is below 0 (HealthBench, `healthbench_eval.py`).
    """
    shares = {axis: _exact(weights[axis]) for axis in ratings}
    reached = sum((share * Fraction(ratings[axis]) for axis, share in shares.items()), Fraction())
    return reached / sum(share for share in shares.values() if share > 0)


@lru_cache(maxsize=1024)
def _exact(weight: float) -> Fraction:
    return Fraction(str(weight))


# Fences around texts that a judge must not obey. What a model wrote is untrusted input to the judge. It
# stands between two lines that carry a code which the text cannot contain, and nothing in it can look like
# the end of the fence or like a turn of the judge's own conversation.

_FENCE_LIKE = re.compile(r"<{3,}|>{3,}")
#: How chat templates mark turns. A server that renders a template reads such text as a new turn.
_TURN_LIKE = re.compile(
    r"<(?=[|｜]|/?s>|(?:bos|eos|pad|unk)>|(?:start|end)_of_turn>|</?SYS>>|/?think(?:ing)?>)"
    r"|<(?=/?tool_(?:call|response)s?>|_(?:user|bot|system|end)>|/?(?:user|assistant|system)>)"
    r"|<(?=(?:unused|reserved_(?:special_token_)?|extra_id_)\d+>)|\](?=<\])|<(?=\])"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|THINK|g?MASK|sMASK)\])"
    r"|(?-i:^(?:Human|Assistant))(?=:)",
    re.IGNORECASE | re.MULTILINE,
)
#: what no turn marker is without; a look for it is quick
_TURNS_BEGIN = ("<", "[", "]", "Human:", "Assistant:")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def fence_code(texts: Iterable[str]) -> str:
    """A code that none of the texts can know: it depends on every character of all of them."""
    digest = sha256()
    for text in texts:
        digest.update(text.encode(errors="replace") + b"\x1e")
    return digest.hexdigest()[:16]


def escape_fences(text: str, code: str) -> str:
    """The text with everything that could pass for a fence or a turn marker set apart by blanks."""
    return _without_marks(text).replace(code, " ".join(code))


@lru_cache(maxsize=64)  # an answer is shown beside each of its criteria
def _without_marks(text: str) -> str:
    text = text.encode(errors="replace").decode()  # half a surrogate pair cannot be sent
    text = CONTROL.sub(" ", text)
    if "<<<" in text or ">>>" in text:
        text = _FENCE_LIKE.sub(lambda found: " ".join(found[0]), text)
    if any(begins in text for begins in _TURNS_BEGIN):
        text = _TURN_LIKE.sub(r"\g<0> ", text)
    return text


def fenced(label: str, text: str, code: str) -> str:
    return f"<<<{label} {code}\n{escape_fences(text, code)}\n{code} END OF {label}>>>"


#: The one key of a verdict on a scoring point.
AXIS = "decision"
FOLDER = Path(__file__).parent / "protocols"
#: Whose words a judge is asked in.
Wording: TypeAlias = Literal["own", "official"]


class Protocol(Strict):
    """One file of `medtasks_ext/judge/protocols`."""

    #: whether judges are asked about each scoring point by itself, or about everything at once
    each_point: bool = False
    #: difference of two assessments on 0-1 above which an adjudicator decides (MLB, Section 3.6.2). None:
    #: every judge rates, and the mean of all ratings counts (MedHELM, Methods: the mean of all nine)
    dispute_above: float | None = Field(default=None, ge=0, le=1)
    #: what a judge returns per axis: field -> allowed values from worst to best, or `text`
    verdict: dict[str, list[bool] | list[int] | list[str] | Literal["text"]] = Field(min_length=1)
    rating: str  # the field that counts
    system: str  # Jinja template of the instruction
    user: str  # Jinja template of the message with the texts, each of which arrives fenced
    #: Jinja template of the system turn where the message is in the suite's own words, which say nothing of
    #: the fences
    notice: str = ""

    @model_validator(mode="after")
    def _has_rating(self) -> Protocol:
        if not isinstance(self.verdict.get(self.rating), list):
            raise ValueError("`rating` names a field of `verdict` with a list of values")
        return self

    @cached_property
    def numbers(self) -> list[float]:
        """From worst to best."""
        return [self.number(value) for value in self.verdict[self.rating]]

    def number(self, value: bool | int | str) -> float:
        """A value of the rating as a number; words count by their place, from 0."""
        values: Sequence[Any] = self.verdict[self.rating]
        return float(values.index(value)) if isinstance(value, str) else float(value)

    @cached_property
    def scale(self) -> tuple[float, float]:
        return self.numbers[0], self.numbers[-1]

    def normalised(self, rating: float) -> float:
        """A rating, or a mean of some, on 0-1: (x - 1) / 4 on a scale of 1 to 5."""
        low, high = self.scale
        return (rating - low) / (high - low)


@lru_cache(maxsize=16)
def load_protocol(name: str) -> Protocol:
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(item.stem for item in FOLDER.glob("*.yaml")))
        raise MedtasksError(f"no protocol {name!r}", where="judge.protocol", remedy=f"there is: {known}")
    remedy = "docs/judges.md describes protocols"
    return validated(lambda: Protocol(**read_yaml(path)), "protocol", where=path, remedy=remedy)


class Rubric:
    """A protocol with a task's role and axes: prompts, schema and reading of verdicts.

    `points`: id -> text of a document's own scoring points, in place of the axes. `words`: the suite's own,
    in place of role, goal and questions.
    """

    def __init__(
        self, judging: Judging, points: Mapping[str, str] | None = None, words: JuryWords | None = None
    ) -> None:
        self.judging, self.protocol, self.words = judging, load_protocol(judging.protocol), words
        #: how verdicts are read, where the suite's own words ask for no single JSON object
        self._released: OfficialJury | None = words.jury if words else None
        self.questions = judging.axes if points is None else dict(points)
        #: whether a verdict on one point has no name around it, as released words ask for it
        self._is_bare = words is not None and self.axes == [AXIS]
        if CODE in self.questions:
            raise MedtasksError(
                f"an axis or scoring point has the name {CODE!r}, which verdicts need for themselves",
                where="judge.axes" if points is None else "points",
                remedy="give it another name",
            )

    @property
    def axes(self) -> list[str]:
        return list(self.questions)

    @cached_property
    def of_one_point(self) -> Rubric:
        return Rubric(self.judging.model_copy(update={"axes": {AXIS: "-"}, "points": None}), words=self.words)

    @cached_property
    def version(self) -> str:
        """Identifies everything that decides what a judge is asked, besides the texts."""
        verdict = {"verdict", "rating"}
        parts: list[Any] = [
            self.protocol.model_dump(include=verdict | ({"notice"} if self.words else {"system", "user"}))
        ]
        if self.words:
            parts.append(self.words.origin.sha256)
            parts += [self._released.model_dump(mode="json")] if self._released else []
        else:
            parts.append(self.judging.model_dump(include={"role", "goal", "compare", "lowest", "axes"}))
        return sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:12]

    @property
    def wording(self) -> Wording:
        return "official" if self.words else "own"

    @cached_property
    def schema(self) -> Json | None:
        """JSON Schema of a verdict; None where it is no single JSON object."""
        if self._released:
            return None
        schema = verdict_schema(self.axes, self.protocol.verdict, coded=not self.words)
        return dict(schema["properties"][AXIS]) if self._is_bare else schema

    def messages(self, texts: Mapping[str, str]) -> list[dict[str, str]]:
        """The conversation that a judge gets. `texts` are fenced; absent ones are false in the templates."""
        system, user = _turns(self, tuple(texts.items()))
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]

    def read(self, reply: str, texts: Mapping[str, str]) -> Verdict:
        if self._released:
            rating, rated = self.protocol.rating, texts.get("response", "")
            return read_released(reply, self._released, self.axes, rating, rated=rated)
        if self.words:
            name = AXIS if self._is_bare else None
            return read_only_verdict(reply, self.axes, self.protocol.verdict, texts.values(), bare=name)
        return read_verdict(reply, self.axes, self.protocol.verdict, fence_code(texts.values()))

    def written(self, verdict: Verdict, texts: Mapping[str, str]) -> Mapping[str, Any]:
        if self._is_bare:
            return verdict[AXIS]
        return verdict if self.words else {CODE: fence_code(texts.values()), **verdict}

    def ratings(self, verdict: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        return {axis: self.protocol.number(verdict[axis][self.protocol.rating]) for axis in self.axes}


@lru_cache(maxsize=256)  # judges of one jury work on the same cases at about the same time
def _turns(rubric: Rubric, pairs: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    texts, judging, protocol = dict(pairs), rubric.judging, rubric.protocol
    code = fence_code(texts.values())
    shown = {name: fenced(name.upper(), text, code) for name, text in texts.items()}
    values = {
        **dict.fromkeys(("question", "gold", "points", "context"), ""),
        **shown,
        **{name: getattr(judging, name) for name in ("role", "goal", "compare", "lowest")},
        "axes": rubric.questions,
        "code": code,
    }
    system = Template(protocol.notice if rubric.words else protocol.system, FOLDER).render(values)
    user = rubric.words.message(shown) if rubric.words else Template(protocol.user, FOLDER).render(values)
    return system, user
