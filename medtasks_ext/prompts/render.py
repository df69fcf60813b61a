"""From a row's fields to a document: its turns, its gold answer, and what scores need to know of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any

from medtasks_ext.answers import GoldError, UnknownValueError, answer_format
from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.prompts.documents import (
    Dialogue,
    DialogueError,
    Document,
    Documents,
    Turn,
    digest,
    read_dialogue,
    words,
)
from medtasks_ext.prompts.official.words import Use, chosen_words
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.blocks import RowLabel
from medtasks_ext.registry.strategies import OPEN_KINDS
from medtasks_ext.registry.suites import Lines
from medtasks_ext.rows.expressions import Expression, PromptTemplate, TextReader
from medtasks_ext.rows.places import ReleasedInstruction, authors_of
from medtasks_ext.rows.row import Faults, ReadRow, Row, Rows
from medtasks_ext.rows.sources import find_database
from medtasks_ext.rows.spec import DatasetSpec

log = logging.getLogger(__name__)
#: Values of a label that a message lists.
_FEW = 9


class Renderer:
    def __init__(self, dataset: Dataset, spec: DatasetSpec, rows: Rows, use: Use) -> None:
        self.dataset, self.spec, self.origin = dataset, spec, rows.origin
        self.cot, self.shots, self.system_role = use.cot, use.shots, use.system_role
        self.in_system = spec.prompt.instruction_role == "system" and use.system_role
        self.in_first_turn = spec.prompt.instruction_role == "system" and not use.system_role
        self.answers = answer_format(spec.answer, where=dataset.file)  # the answer format
        #: the suite's own, where they make the whole prompt
        self.words = None if rows.instruction else chosen_words(dataset, spec, use)
        #: whose words the prompts use otherwise
        self.instructions = Instructions(dataset, spec, rows.instruction, use)
        messages = spec.prompt.messages
        #: the turns of a dialogue
        self.said = Expression(messages, dataset.file, "prompt.messages") if messages else None
        self.texts = TextReader(spec, dataset.file, cot=use.cot)
        self.warned = False  # of a gold answer that only the official scorer takes
        shown = "{{ transcript }}" if spec.prompt.messages else spec.prompt.input
        asked = (spec.judge and spec.judge.question) or shown
        self.question = spec.judge and PromptTemplate("judge.question", asked, dataset.file)
        context, tags = (spec.judge.context, spec.judge.row_tags) if spec.judge else ("", None)
        self.context = PromptTemplate("judge.context", context, dataset.file) if context else None
        self.tags = Expression(tags, dataset.file, "judge.row_tags") if tags else None
        cluster = spec.rows.cluster
        self.cluster = Expression(cluster, dataset.file, "rows.cluster") if cluster else None
        self.systems: dict[str, str] = {}
        wanted = spec.rows.database
        #: on which answers are run, if they are SQL
        self.database = find_database(dataset, wanted, rows.origin) if wanted else None

    def documents(self, rows: list[ReadRow], faults: Faults, *, first: Callable[[int], bool]) -> Documents:
        """The documents of rows, which leave the list, and memory, once their documents are made.

        `first`: whether the prompt of the row at that place stands in the first turn of a chat.
        """
        made = Documents()
        rows.reverse()
        for index in range(len(rows)):
            row = rows.pop()
            try:
                made.append(document := self.document(row, first=first(index), scored=not faults.check))
                if faults.examine and row.place.startswith("test"):
                    faults.examine(row, document)
            except Exception as error:  # also of a value of a kind that nobody thought of
                faults.take(error, row.place, row.where)
        return made

    def document(self, row: ReadRow, *, first: bool, scored: bool = True) -> Document:
        """`first`: its prompt stands in the first turn of a chat. `scored`: its cluster is named."""
        fields = row.fields
        values = {**fields, "strategy": self.instructions.strategy, "answer_format": self.spec.answer}
        if self.database:
            values["schema"] = self.database.schema
        dialogue = self._dialogue(row)
        if dialogue:
            values |= {"input": dialogue.last, "transcript": dialogue.transcript}
        alone, text, written = self.texts.read(row, values)
        own_input, instance, apart = text, "", ""
        if self.words:
            instruction, text, instance, apart = self.words.turn(
                values, row.place, lambda: own_input, reasons=self.cot
            )
        else:
            instruction = self.instructions.of(row, values)
        system, before, opening = instruction if self.in_system else apart, list[Turn](), ""
        if dialogue:
            system, before, text = self._turns(dialogue, instruction, text, first=first)
        elif self.in_first_turn:
            text = f"Input:\n{text}"
            text = f"{instruction}\n\n{text}" if first else text
        elif instruction and not self.in_system:
            text, opening = f"{instruction}\n\n{text}", instruction
        elif apart and not self.system_role:
            system, text = "", f"{apart}\n\n{text}"
        target, gold = self._gold(row, written, values)
        document = Document(
            id=str(fields["id"]), system=self._system(system), prompt=text, target=target, gold=gold,
            cot=self.cot, data=self.origin,
        )  # fmt: skip
        if before:
            document["before"] = before
        document.input, document.row = dialogue.transcript if dialogue else alone, row.place
        document.instruction = self._system(opening)
        in_system = self.spec.prompt.instruction_role == "system"
        document.record = "" if in_system or dialogue else _longest(fields, text)
        document.keeps_end = self.spec.rows.cut == "start"
        for extra in ("options", "item", "trial"):
            if extra in fields:
                document[extra] = fields[extra]
        cluster = self.cluster and self.cluster.of_row_or_none(fields)
        if scored and cluster is not None and (named := words(cluster)):
            document["cluster"] = digest([named])  # it may be a whole note
        if not scored or self.origin == "local":  # which a lock is compared with
            document.question = digest([words(fields[self.spec.rows.identity])])
        for column, label in self.dataset.suite.labels.items():
            if fields.get(column):
                document[column] = self._labelled(row, column, label)
        if self.spec.rows.runs:
            document["run"] = str(fields[self.spec.rows.runs])
        if self.question:
            document["question"] = instance or self.question.of(row, values)
        if self.context:
            document["context"] = self.context.of(row, values)
        if row.points is not None:
            document["points"] = row.points
        if self.tags and (tags := self.tags.of_row_or_none(fields)):
            document["tags"] = [str(tag) for tag in tags]
        if (self.in_first_turn or (dialogue and not self.system_role)) and not self.shots:
            document["turn"] = "instruction_in_user_turn"
        return document

    def _gold(self, row: ReadRow, target: str | None, values: Row) -> tuple[str, Any]:
        """The target and the parsed gold of a row; ("", None) where it has none and needs none."""
        points = self.spec.judge and self.spec.judge.points  # they decide; a reference is only shown
        if target is None or (points and not target.strip()):
            return "", None
        try:
            try:
                return target, self.answers.read_gold(target, values)
            except UnknownValueError as error:
                if row.instruction is None:
                    raise
                # the official scorer checks no values, and its own instruction may list others than ours
                if not self.warned:
                    self.warned = True  # for the first row that it concerns, not for thousands
                    log.warning("%s: %s: %s; accepted as official", self.dataset.id, row.place, error)
                return target, self.answers.read_gold(target, {**values, "any_value": True})
        except GoldError as error:
            columns = self.texts.target.variables()  # from which targets are made
            what = f"{row.named}: gold answer: {error}"
            column = next(iter(columns)) if len(columns) == 1 else None
            remedy = "the task's `answer:` block says what a gold answer looks like"
            raise RowError(what, row=row.place, column=column, where=row.where, remedy=remedy) from None

    def _dialogue(self, row: ReadRow) -> Dialogue | None:
        if not self.said:
            return None
        try:
            return read_dialogue(self.said.of_row_or_none(row.fields))
        except DialogueError as error:
            what = f"{row.named}: {error}"
            remedy = "a dialogue is a list of objects with role and content, and ends with a user's turn"
            raise RowError(what, row=row.place, column="messages", where=row.where, remedy=remedy) from None

    def _labelled(self, row: ReadRow, column: str, label: RowLabel) -> str | list[str]:
        """What a row says in the column of a label; a list where it may say several."""
        try:
            named = label.read(row.fields[column])
        except ValueError as error:
            file = self.dataset.suite.where
            few = len(label.whole_of) <= _FEW
            listed = ", ".join(label.whole_of) if few else f"row_labels.{column} of {file}"
            what = f"{row.named}: {column}: {error}"
            remedy = f"name {label.many} of: {listed}; or leave it empty"
            raise RowError(what, row=row.place, column=column, where=row.where, remedy=remedy) from None
        return named if label.most > 1 else named[0]

    def _turns(
        self, dialogue: Dialogue, instruction: str, text: str, *, first: bool
    ) -> tuple[str, list[Turn], str]:
        before = [Turn(**turn) for turn in dialogue.before]
        if self.spec.prompt.instruction_role == "user":
            text = _joined(instruction, text)
            system = dialogue.system
        else:
            system = _joined(instruction, dialogue.system)
        if self.system_role or not (first and system):
            return system if self.system_role else "", before, text
        if before and before[0]["role"] == "user":
            before[0]["content"] = _joined(system, before[0]["content"])
            return "", before, text
        return "", before, _joined(system, text)

    @property
    def wording(self) -> str:
        """Whose words were used: `own`, `official`, or `official, own strategy line`."""
        if self.words:
            return OWN_LINE if self.cot else "official"
        return self.instructions.wording

    @property
    def artefact(self) -> tuple[str, str] | None:
        """File and revision of what holds the words, where they are in no row."""
        origin = self.words and self.words.origin
        return (origin.artefact, origin.revision) if origin else self.instructions.artefact

    def _system(self, text: str) -> str:
        """One object for all documents that share the text."""
        return self.systems.setdefault(text, text)


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _longest(fields: Row, text: str) -> str:
    """The longest text of a row, or of a list in it, that stands in the prompt."""
    values = (item for value in fields.values() for item in (value if isinstance(value, list) else [value]))
    columns = sorted((value.strip() for value in values if isinstance(value, str)), key=len, reverse=True)
    return next((value for value in columns if value in text), "")


#: An official instruction in which only the sentence that asks for reasoning is ours.
OWN_LINE = "official, own strategy line"


class Instructions:
    def __init__(self, dataset: Dataset, spec: DatasetSpec, given: str | None, use: Use) -> None:
        self.dataset, self.cot, self.prompts, self.fetch = dataset, use.cot, use.prompts, use.fetch
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
            return self.authors.direct(own)
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
