"""A dataset's official words, filled with its rows."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, get_args

import jinja2
import yaml

from medtasks_ext.errors import MedtasksError, RowError, some
from medtasks_ext.privacy import what_happened
from medtasks_ext.prompts.official import artefacts
from medtasks_ext.prompts.official.folding import FoldedText, PythonSource, split_at
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.blocks import (
    Artefact,
    Official,
    OfficialJury,
    OfficialPassage,
    Passage,
    SuiteOfficial,
)
from medtasks_ext.registry.functions import function_named
from medtasks_ext.rows.expressions import Template as Jinja
from medtasks_ext.rows.remote import is_offline
from medtasks_ext.rows.row import Row
from medtasks_ext.rows.sandbox import NO_TEMPLATE, REFUSED, Declared
from medtasks_ext.rows.spec import DatasetSpec, Judging, dataset_spec
from medtasks_ext.strict import yaml_text


@dataclass(frozen=True)
class Origin:
    artefact: str  # name of the file
    revision: str  # its version or commit
    sha256: str  # of the words, with the names of slots in their places; the first 12 digits


class OfficialTurn(NamedTuple):
    instruction: str  # empty where one text holds both
    text: str  # the input, or the one text
    #: what the official judges see as the input; empty where the official code does not say
    instance: str = ""
    system: str = ""  # what stands in a turn of its own before all else


class Held(NamedTuple):
    artefact: Artefact
    path: Path


class Words(Protocol):
    """Official words of a dataset."""

    origin: Origin

    def turn(
        self, fields: Row, place: str, own_input: Callable[[], str], *, reasons: bool = False
    ) -> OfficialTurn:
        """Instruction and input of a row.

        `own_input` gives the input as our own prompts have it. `reasons`: a line of ours asks for reasoning,
        where the block says how.
        """
        ...

    def shown(self) -> str:
        """The words, with the names of slots in their places."""
        ...


class PassageWords:
    """A passage of the paper as the instruction; how the input follows is ours."""

    def __init__(self, block: OfficialPassage, held: Mapping[str, Held], where: Path) -> None:
        self.block, self.where = block, where
        artefact, path = held[block.text.artefact]
        text = artefacts.read(artefact, path, block.text.file)
        if block.text.key:
            try:
                said = yaml_text(text)
            except yaml.YAMLError:
                said = None
            text = str(said.get(block.text.key, "")) if isinstance(said, dict) else ""
        words = passage(text, block.text, where=path)
        self.passage = split_at(words, block.slots)
        if missing := sorted(block.slots.keys() - self.passage.slots):
            what = f"official.slots: {missing[0]!r} is not in the passage"
            raise MedtasksError(what, where=where, remedy="correct `slots`")
        self.origin = Origin(artefact.file, artefact.revision, block.text.sha256[:12])

    def shown(self) -> str:
        return self.passage.shown()

    def turn(
        self, fields: Row, place: str, own_input: Callable[[], str], *, reasons: bool = False
    ) -> OfficialTurn:
        filling = Filling(self.block.slots, self.where, fields, place, {"passage": self.passage})
        if self.block.input:
            return OfficialTurn("", filling.text(self.block.input))
        return OfficialTurn(self.passage.filled(filling.slot), own_input())


def strict_sandbox(filters: Mapping[str, Callable[..., Any]]) -> Declared:
    """Jinja for official words, in which a name that a row lacks is an error."""
    return Declared(filters, undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)


class Filling:
    """Values of slots for one row; `pieces`: further texts with slots, which expressions call by name."""

    environment: ClassVar = strict_sandbox({})

    def __init__(
        self, slots: Mapping[str, str], where: Path, fields: Row, place: str,
        pieces: Mapping[str, FoldedText], more: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.slots, self.where, self.place = slots, where, place
        calls = {name: partial(template.filled, self.slot) for name, template in pieces.items()}
        self.names = {**fields, "row": fields, **(more or {}), **calls}

    def slot(self, name: str) -> str:
        return self.text(self.slots[name])

    def text(self, said: str) -> str:
        return str(self.value(said))

    def value(self, said: str) -> Any:
        try:
            value = _compiled(said, self.where, self.environment)(self.names)
            if not isinstance(value, jinja2.Undefined):
                return value
            what = "has no value"
        except REFUSED as error:
            what = f"official: {said[:60]!r} does what a task file may not: {error}"
            raise MedtasksError(what, where=self.where, remedy="mend the Jinja there") from None
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            what = what_happened(error, said)
        what = f"{self.place}: the official prompt cannot be filled: {what}"
        remedy = "the row lacks what the block `official` names; --prompts own uses ours"
        raise RowError(what, row=self.place, where=self.where, remedy=remedy)


@lru_cache(maxsize=512)
def _compiled(said: str, where: Path, environment: Declared) -> Callable[[Mapping[str, Any]], Any]:
    try:
        if "{{" in said or "{%" in said:
            template = environment.from_string(said)
            return lambda names: template.render(names)
        expression = environment.compile_expression(said, undefined_to_none=False)
        return lambda names: expression(names)
    except NO_TEMPLATE as error:
        what = f"official: {said[:60]!r}: {error}"
        raise MedtasksError(what, where=where, remedy="mend the Jinja there") from None


def artefacts_of(block: Official, suite: SuiteOfficial | None, where: Path) -> dict[str, Artefact]:
    """Name -> file that holds a dataset's official words; the main one is the first."""
    names = block.artefacts or ([suite.adapters.artefact] if suite and suite.adapters else [])
    known = suite.artefacts if suite else {}
    missing = [f"artefact {name!r}" for name in names if name not in known] or ([] if names else ["adapters"])
    if missing:
        what = f"official: suite.yaml declares no {missing[0]}"
        raise MedtasksError(what, where=where, remedy="declare it there (docs/keys.md)")
    return {name: known[name] for name in names}


def words_of(block: Official, suite: SuiteOfficial | None, held: Mapping[str, Held], where: Path) -> Words:
    if isinstance(block, OfficialPassage):
        return PassageWords(block, held, where)
    assert suite is not None and suite.adapters is not None  # it declares the artefacts
    made: Words = function_named(suite.adapters.code, where=where)(block, held, where)
    return made


@lru_cache(maxsize=64)
def source_of(artefact: Artefact, path: Path, member: str | None) -> PythonSource:
    def beside(module: str) -> PythonSource:
        return source_of(artefact, path, f"{module.replace('.', '/')}.py")

    where = f"{path.name}!{member}" if member else path.name
    return PythonSource(artefacts.read(artefact, path, member), where, beside)


def check_slots(texts: Iterable[FoldedText], block: Official, where: Path) -> None:
    """Each slot that the texts have is filled, and no other."""
    used = set[str]().union(*(text.slots for text in texts))
    if wrong := sorted(used ^ block.slots.keys()):
        what = "is not filled" if wrong[0] in used else "is in none of the texts"
        remedy = "complete or correct `slots`"
        raise MedtasksError(f"official.slots: {wrong[0]!r} {what}", where=where, remedy=remedy)


def origin_of(artefact: Artefact, shown: str) -> Origin:
    return Origin(artefact.file, artefact.revision, sha256(shown.encode()).hexdigest()[:12])


#: What programs that make text of a PDF write in several ways.
_QUOTES = str.maketrans("‘’“”", "''\"\"")


def words_in(text: str) -> list[str]:
    """The words of a text; ligatures and curly quotation marks become plain ones."""
    return unicodedata.normalize("NFKC", text).translate(_QUOTES).split()


class NoPassageError(MedtasksError):
    """A text of a paper that does not hold a passage as its hash has it."""


def passage(text: str, wanted: Passage, *, where: Path) -> str:
    """The passage, with one blank between two words; line ends, blanks and markup around it do not matter.

    Of a word that is divided at a line's end both spellings are tried.
    """
    for variant in dict.fromkeys((text, _DIVIDED.sub("", text), _DIVIDED.sub("-", text))):
        if matched := _found(variant, wanted):
            return matched
    what = f"holds no passage of {wanted.words} words with SHA-256 {wanted.sha256[:16]}…"
    remedy = "make the text anew from the paper, without hyphens at line ends and with its table whole,"
    raise NoPassageError(what, where=where, remedy=f"{remedy} or ask in our own words: --prompts own")


_DIVIDED = re.compile(r"-[ \t]*\r?\n[ \t]*")


@lru_cache(maxsize=256)
def _found(text: str, wanted: Passage) -> str | None:
    digest = bytes.fromhex(wanted.sha256)
    joined, starts = _spaced(text)
    for first, after in zip(starts, starts[wanted.words :], strict=False):
        part = joined[first : after - 1]
        if sha256(part).digest() == digest:
            return part.decode()
    return None


@lru_cache(maxsize=4)
def _spaced(text: str) -> tuple[bytes, list[int]]:
    """The words of a text with one blank after each, and where each begins, the end included."""
    words = [f"{word} ".encode() for word in words_in(text)]
    return b"".join(words), [0, *accumulate(map(len, words))]


log = logging.getLogger(__name__)

#: `auto`: official where the words can be had, else ours. `official`: nothing else. `own`: ours alone.
PromptSource = Literal["auto", "official", "own"]


@dataclass(frozen=True)
class Use:
    """How the rows of a dataset become prompts."""

    cot: bool
    shots: int
    system_role: bool  # False: instructions stand in the first user turn
    prompts: PromptSource
    without: frozenset[str] = frozenset()  # rows that are left out, since their faults are known
    fetch: bool = False  # whether `auto` may download the file that holds official words


def prompt_source_of(option: object = None) -> PromptSource:
    """What the user asks for: by a flag, or `--metadata prompts=…`; by default auto.

    Raises MedtasksError: it is none of the three.
    """
    value = "auto" if option is None else option
    if value not in get_args(PromptSource):
        what = f"unknown wording {value!r}"
        remedy = f"use one of: {', '.join(get_args(PromptSource))}"
        raise MedtasksError(what, where="--prompts", remedy=remedy)
    return value  # type: ignore[return-value]


def own_words_notes(asked: Mapping[str, tuple[Dataset, str]], of: int, prompts: str | None) -> Iterator[str]:
    """That tasks with our prompts are comparable with no published score, and what mends it.

    `asked`: task with our prompts -> dataset and strategy. Nothing where their suites have no other prompts.
    """
    ways: dict[str, list[str]] = {}
    for name, (dataset, strategy) in asked.items():
        suite, block = dataset.suite, dataset_spec(dataset).official
        if suite.official is None or not (suite.files or (block and strategy == "zero_shot")):
            continue
        files = artefacts_of(block, suite.official, dataset.file).values() if block else ()
        if prompts == "own":
            mend = "--prompts own asks with ours; leave it out for official ones"
        elif not all(artefacts.place_of(artefact).exists() for artefact in files):
            mend = "their official prompts are not on this machine, so ours are asked; "
            mend += "`medtasks data fetch official` gets them"
        else:
            mend = "the files here do not hold their prompts; `medtasks data fetch official` says more"
        ways.setdefault(mend, []).append(name)
    for mend, names in ways.items():
        which = f"{len(names)} of {of} tasks ({some(names)})"
        yield f"not comparable with published scores: {which}: {mend}"


def chosen_words(dataset: Dataset, spec: DatasetSpec, use: Use) -> Words | None:
    """The words of the dataset's block `official`; None where ours, or those of its rows, are asked."""
    block, must, suite = spec.official, use.prompts == "official", dataset.suite.official
    if use.prompts == "own" or block is None:
        return None
    # where nothing but official words is wanted, a line of ours behind them is too much
    reason = "reasoning step by step" if use.cot and (must or use.shots or not block.reasons) else ""
    if not reason and use.shots and not (isinstance(block, OfficialPassage) and block.input is None):
        reason = "prompts with examples"
    if reason and not must:
        return None
    if reason:
        what = f"there are no official prompts for {reason}"
        remedy = "ask without, or leave it to us: --prompts auto"
        raise MedtasksError(what, where=dataset.id, remedy=remedy)
    held: dict[str, Held] = {}
    for name, artefact in artefacts_of(block, suite, dataset.file).items():
        if (path := find_artefact(artefact, must=must, fetch=use.fetch)) is None:
            return None
        held[name] = Held(artefact, path)
    try:
        return words_of(block, suite, held, dataset.file)
    except NoPassageError as error:
        if must or not any(item.artefact.is_paper for item in held.values()):
            raise
        log.warning("%s: our prompts are asked: %s %s", dataset.id, Path(str(error.where)).name, error.what)
        return None


def find_artefact(artefact: Artefact, *, must: bool, fetch: bool) -> Path | None:
    """None where it cannot be had, unless it `must`; `fetch`: one try is made to download it otherwise."""
    if path := artefacts.local_artefact(artefact):
        return path
    if must:
        return artefacts.fetched_artefact(artefact)
    return _tried(artefact, artefacts.place_of(artefact)) if fetch and not is_offline() else None


@lru_cache(maxsize=64)
def _tried(artefact: Artefact, _place: Path) -> Path | None:
    try:
        return artefacts.fetched_artefact(artefact)
    except MedtasksError as error:  # a fetch that fails stops no run: ours are asked, and the run says so
        log.warning("official prompts of %s could not be fetched: %s", artefact.file, error.what)
        return None


@dataclass(frozen=True)
class JuryWords:
    template: FoldedText  # with slots for the texts under review
    slots: Mapping[str, Jinja]  # slot -> what fills it
    origin: Origin  # where it was read
    jury: OfficialJury | None = None  # how its verdicts are read; None: as one JSON object

    def message(self, texts: Mapping[str, str]) -> str:
        names = {"gold": "", "item": "", "context": "", **texts}
        return self.template.filled(lambda slot: self.slots[slot].render(names))


def jury_words(
    dataset: Dataset, judging: Judging, prompts: PromptSource, *, fetch: bool = False
) -> JuryWords | None:
    """The official words for the judges of a dataset; None where ours are asked."""
    if prompts == "own" or (judging.official is None and prompts == "auto"):
        return None
    if judging.official is None:
        what = "there are no official prompts for its judges"
        remedy = "leave it to us, --prompts auto, or name other --tasks"
        raise MedtasksError(what, where=dataset.id, remedy=remedy)
    official, must = dataset.suite.official, prompts == "official"
    if isinstance(jury := judging.official, OfficialJury):
        return _of_one_message(dataset, jury, must=must, fetch=fetch)
    if official is None or official.juries is None:
        what = "judge.official: suite.yaml declares no juries"
        raise MedtasksError(what, where=dataset.file, remedy="declare them there (docs/keys.md)")
    artefact, juries = official.artefacts[official.juries.artefact], official.juries
    path = find_artefact(artefact, must=must, fetch=fetch)
    if path is None:
        return None
    source = source_of(artefact, path, f"{juries.folder}/{judging.official}" if juries.folder else None)
    if juries.criteria and (axes := list(source.table(juries.criteria))) != list(judging.axes):
        what = f"judge.axes: the released jury rates {', '.join(map(str, axes))}"
        raise MedtasksError(what, where=dataset.file, remedy="name the same axes there, in the same order")
    template = split_at(source.text(juries.template), juries.slots)
    slots = {slot: Jinja(said, dataset.suite.file) for slot, said in juries.slots.items()}
    return JuryWords(template, slots, origin_of(artefact, template.shown()))


def _of_one_message(dataset: Dataset, jury: OfficialJury, *, must: bool, fetch: bool) -> JuryWords | None:
    official = dataset.suite.official
    named = jury.text.artefact
    if official is None or named is None or named not in official.artefacts:
        what = f"judge.official: suite.yaml declares no artefact {named!r}"
        raise MedtasksError(what, where=dataset.file, remedy="declare it there (docs/evaluate.md)")
    artefact = official.artefacts[named]
    path = find_artefact(artefact, must=must, fetch=fetch)
    if path is None:
        return None
    template = source_of(artefact, path, jury.text.file).taken(jury.text, jury.slots)
    if wrong := sorted(template.slots ^ jury.slots.keys()):
        what = f"judge.official.slots: {wrong[0]!r} is not in both"
        raise MedtasksError(what, where=dataset.file, remedy="name the slots of that text")
    slots = {slot: Jinja(said, dataset.file) for slot, said in jury.slots.items()}
    return JuryWords(template, slots, origin_of(artefact, template.shown()), jury)
