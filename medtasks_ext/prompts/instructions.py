"""Which instruction a row is asked with: its own, the release's, the data holder's, or the task's."""

from __future__ import annotations

import logging
from functools import cached_property

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.choice import Use
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.strategies import OPEN_KINDS
from medtasks_ext.registry.suites import Lines
from medtasks_ext.rows.expressions import PromptTemplate
from medtasks_ext.rows.places import ReleasedInstruction, authors_of
from medtasks_ext.rows.row import ReadRow, Row
from medtasks_ext.rows.spec import DatasetSpec

log = logging.getLogger(__name__)

#: An official instruction in which only the sentence that asks for reasoning is ours.
OWN_LINE = "official, own strategy line"


class Instructions:
    def __init__(
        self, dataset: Dataset, spec: DatasetSpec, given: str | None, use: Use, *, fetch: bool
    ) -> None:
        self.dataset, self.cot, self.prompts, self.fetch = dataset, use.cot, use.prompts, fetch
        self.given = None if use.prompts == "own" else given  # the data holder's own text, if any
        self.authors = authors_of(dataset, spec.rows)
        self.strategy = strategy_line(dataset, spec, cot=use.cot)  # the strategy line
        #: whose words were used so far: `own`, `official`, or `official, own strategy line`
        self.wording = "official" if self.given else "own"
        #: what holds official instructions besides the rows themselves: file and revision
        self.artefact: tuple[str, str] | None = None
        self._template = PromptTemplate("prompt.instruction", spec.prompt.instruction, dataset.file)
        self._rendered: str | None = None
        self._first: tuple[str, str] | None = None
        self._asked = ""
        self._warned = False

    def of(self, row: ReadRow, values: Row) -> str:
        """MedtasksError: a file's rows differ in their instructions, or wanted official words are missing."""
        if given := self.given:  # plain text in which only the strategy line is placed
            if "{{ strategy }}" in given:
                return given.replace("{{ strategy }}", self.strategy)
            return f"{given}\n{self.strategy}" if self.cot else given
        if self.prompts != "own":
            if (own := row.instruction) is not None:
                return self._official(own, row)
            if released := self._released:
                self.artefact = (released.artefact, released.revision)
                return self._official(released.text, row)
        if self.prompts == "official":
            suite = self.dataset.suite
            why = "its rows carry no instruction" if suite.files else f"{suite.title} has published no prompt"
            what = f"official words are asked for, and none are known: {why}"
            remedy = "leave it to us: --prompts auto; or put instruction.txt beside the rows (docs/data.md)"
            raise MedtasksError(what, where=f"{self.dataset.id} ({row.where})", remedy=remedy)
        if self._rendered is None or not self._same_for_all:
            self._rendered = self._template.of(row, values).rstrip()  # the strategy's line may be empty
        return self._rendered

    @cached_property
    def _same_for_all(self) -> bool:
        return self._template.variables() <= {"strategy", "answer_format"}

    @cached_property
    def _released(self) -> ReleasedInstruction | None:
        must = self.prompts == "official"
        return self.authors.released_instruction(self.dataset.id, must=must) if self.authors else None

    def _official(self, own: str, row: ReadRow) -> str:
        if self._first is None:
            self._first = (own, row.place)
            self._asked = self._in_strategy(own, row)
        elif own != self._first[0]:
            what = f"{self._first[1]} and {row.place} carry different instructions"
            remedy = "a file has one instruction: mend the column `instruction`, or ask in our own words: "
            raise MedtasksError(what, where=row.where, remedy=remedy + "--prompts own")
        return self._asked

    def _in_strategy(self, own: str, row: ReadRow) -> str:
        """An official instruction as this strategy asks it.

        Where it does not carry the sentence that is swapped, the official code keeps it as it is.
        """
        assert self.authors is not None  # it is their instruction
        self.wording = "official"
        if not self.cot:  # as a rule instructions ask for the answer at once as they are: nothing is fetched
            return self.authors.direct(own, must=False, fetch=False)
        swapped, is_theirs = self.authors.reasoned(
            own, self.strategy, must=self.prompts == "official", fetch=self.fetch
        )
        if not is_theirs:
            self.wording = OWN_LINE
        if swapped is None and not self._warned:
            self._warned = True  # for the first row that it concerns, not for thousands
            log.warning("%s: %s keeps the direct prompt under CoT", self.dataset.id, row.place)
        return swapped or own


#: Where a suite says nothing else (`strategy_lines` of its `suite.yaml`).
LINES = Lines(
    answer="Reply with nothing but the answer.",
    reason='First reason step by step. Then start a new line with "Result:", followed by the answer alone.',
)


def strategy_line(dataset: Dataset, spec: DatasetSpec, *, cot: bool) -> str:
    """The strategy line of a dataset: its own, else its suite's in its language, else in English, else ours.

    Free text that is answered at once has none, unless the dataset says so.
    """
    own = spec.prompt.strategy_lines
    if (line := own.reason if cot else own.answer) is not None:
        return line
    if not cot and spec.answer.get("kind") in OPEN_KINDS:
        return ""
    given = dataset.suite.strategy_lines
    lines = given.get(dataset.metadata.language) or given.get("en") or LINES
    return lines.reason if cot else lines.answer
