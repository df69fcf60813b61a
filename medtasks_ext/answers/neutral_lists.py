"""Kinds of answers that belong to no paper: several labels, mentions of a text, and prose, in any script."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import regex
from pydantic import Field

from medtasks_ext.answers.formats import GoldError, Repaired, repaired
from medtasks_ext.answers.neutral import OfNames, OfNoPaper
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.folding import plain
from medtasks_ext.answers.tolerant.json_text import values
from medtasks_ext.answers.tolerant.listed import EDGES, announced, pieces_of, squeezed
from medtasks_ext.answers.tolerant.lists import items_of
from medtasks_ext.answers.tolerant.markers import text_of
from medtasks_ext.answers.tolerant.phrases import any_of
from medtasks_ext.answers.tolerant.reply import Reply
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from medtasks_ext.answers.tolerant.reply import Span

_BULLET = regex.compile(r"\A\s*(?:[-*+•·–—▪●◦]+\s*|\(?\p{N}{1,3}[.)、：:]\s*)+")
_CLAUSE = regex.compile(r"[,;.、；。\n]")
#: what explains an item
_REMARK = regex.compile(r"\s*[:(\[（［：]|\s[-–—]\s")
_SENTENCE_END = regex.compile(r"[.!?。！？।]\s*\Z")
#: words, and characters in scripts without blanks, from which a line that ends as a sentence is one
_SENTENCE, _UNSPACED_SENTENCE = 5, 12
_HEADED = regex.compile(r"\A([^:：\n]{1,40})[:：]\s*(?=\S)")
#: said where there is none, in any language
_NOTHING = ("none", "no", "nil", "-", "n/a", "[]", "{}")


def _items(text: str, language_reply: Reply) -> tuple[list[str], Span]:
    """Lines or array of a reply's list, and where it stands."""
    listed = items_of(text, language_reply)
    return listed.items, listed.span


class _Listed(OfNoPaper):
    """Base of lists.

    Attributes:
        nothing: the word that the prompt asks for where no item is right; gold answers have it, too.
    """

    nothing: str = Field(default="none", min_length=1)

    @cached_property
    def _says_none(self) -> regex.Pattern[str]:
        said = (self.nothing, *_NOTHING, *self.known.none)
        return any_of(tuple(dict.fromkeys(said)))

    def _is_none(self, text: str) -> bool:
        return bool(self._says_none.fullmatch(plain(text.strip(EDGES)) or "-"))

    def _listed(self, text: str) -> tuple[Reply, list[str], Span]:
        """The reply from its announcement on, and its items."""
        reply = reply_of(text)
        begin, end = announced(reply, self._phrases)
        part = Reply(reply.text, begin, end, reply.traced)
        return part, *_items(text, part)


class Labels(_Listed, OfNames):
    """Several labels of a closed list, or none of them.

    They stand on lines, between commas, in an array, or in a table of yes and no. What explains a label does
    no harm; a label that is denied is not said.
    """

    kind: Literal["labels"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The gold labels, in their order; there may be none.

        Raises:
            GoldError: a piece of it is no label, or it says nothing.
        """
        said = self._bare(text)
        if self._is_none(said):
            if not said:
                raise GoldError(f"write the labels with commas between, or {self.nothing}")
            return []
        named = {name for piece in pieces_of(said, self._phrases) for name in self._gold(piece)}
        return [label for label in self.labels if label in named]

    def _gold(self, piece: str) -> Iterator[str]:
        name = self.spellings.get(plain(piece))
        if name is None:
            raise GoldError(f"{excerpt(piece)} is not one of: {', '.join(self.labels)}")
        yield name

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The labels of the reply's list, else those that stand in its words and are not denied."""
        part, items, span = self._listed(text)
        told = self._table(text, part)
        if told is None:
            told, said = set(), False
            for item in items:
                named = self._of_item(item)
                said |= named is not None
                told |= named or set()
            if not said:
                return repaired(document, None, None, "no label was found")
        return repaired(document, [label for label in self.labels if label in told], span, "a list")

    def _table(self, text: str, part: Reply) -> set[str] | None:
        """The labels of an object that gives each a truth value; those of an empty array."""
        for item in reversed(values(text, part)):
            if item.value in ([], {}):
                return set()
            if isinstance(item.value, dict) and item.value:
                pairs = {self.spellings.get(plain(str(key))): value for key, value in item.value.items()}
                if None not in pairs and all(isinstance(value, bool) for value in pairs.values()):
                    return {label for label, value in pairs.items() if value and label}
        return None

    def _of_item(self, item: str) -> set[str] | None:
        """The labels that an item names, none if it says that there is none; None if it says nothing."""
        bare = _BULLET.sub("", item)
        if (whole := self.spellings.get(plain(bare.strip(EDGES)))) is not None:
            return {whole}
        if self._is_none(bare):
            return set()
        if (verdict := self._verdict(bare)) is not None:
            return verdict
        pieces = [self._named(piece) for piece in pieces_of(bare, self._phrases)]
        if pieces and all(name is not None for name in pieces):
            return {name for name in pieces if name}
        if remark := _REMARK.search(bare, 1):
            head = self.spellings.get(plain(bare[: remark.start()].strip(EDGES)))
            if head is not None:
                return {head}
        if told := self._mentioned(plain(bare)) or {name for name in pieces if name}:
            return told
        return set() if self._says_none.match(plain(bare.strip(EDGES))) else None

    def _named(self, piece: str) -> str | None:
        return self.spellings.get(plain(_BULLET.sub("", piece).strip(EDGES)))

    def _verdict(self, item: str) -> set[str] | None:
        """Of a line `label: yes` or `label: no`."""
        head, colon, tail = plain(item).rpartition(":")
        name = self.spellings.get(head.strip(EDGES)) if colon else None
        if name is None:
            return None
        words = self.known
        if any_of((*words.yes, "1", "x", "✓")).fullmatch(tail.strip(EDGES)):
            return {name}
        return set() if any_of((*words.no, *words.wrong, "0")).fullmatch(tail.strip(EDGES)) else None

    @cached_property
    def _any(self) -> regex.Pattern[str]:
        return any_of(tuple(self.spellings))

    def _mentioned(self, text: str) -> set[str]:
        """The labels that stand in a sentence and have no negation before them in their clause."""
        labels = set()
        for clause in _CLAUSE.split(text):
            named = list(self._any.finditer(clause))
            for match in named:
                # what follows the last label of a clause may deny it, as in Japanese or Turkish
                behind = match is named[-1] and self._phrases.not_.search(clause, match.end())
                if not behind and not self._denied(clause[: match.start()]):
                    labels.add(self.spellings[plain(match[0])])
        return labels

    def _denied(self, before: str) -> bool:
        words = self.known
        return bool(any_of((*words.not_, *words.no, *words.none, self.nothing)).search(before))

    def not_covered(self, golds: list[list[str]]) -> list[str]:
        """Labels that no row has."""
        return [label for label in self.labels if not any(label in gold for gold in golds)]


class Spans(_Listed):
    """Mentions, copied from the text that is asked about, or none: on lines, between commas, or as an array.

    A comma separates where what it joins does not stand in the prompt as a whole. Mentions are compared
    in plain form and without blanks, since texts may be tokenised. Mentions have no place: a text that
    occurs twice counts once.
    """

    kind: Literal["spans"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The distinct mentions in the form in which they are compared, sorted; there may be none.

        Raises:
            GoldError: it says neither a mention nor that there are none.
        """
        said = self._bare(text)
        if said and self._is_none(said):
            return []
        mentions = {squeezed(line.strip(EDGES)) for line in said.split("\n")} - {""}
        if not mentions:
            raise GoldError(f"write one mention on each line, or {self.nothing}")
        return sorted(mentions)

    def mentions(self, gold: list[str]) -> list[str]:
        """All of them."""
        return gold

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The mentions of the list that the reply holds."""
        part, items, span = self._listed(text)
        if not items:
            empty = any(found.value in ([], {}) for found in values(text, part))
            why = "an empty list" if empty else "the reply is empty"
            return repaired(document, [] if empty else None, span if empty else None, why)
        prompt = squeezed(str(document.get("prompt") or ""))
        found, said = set(), False
        for item in items:
            bare = self._bare_item(_BULLET.sub("", item), prompt)
            if self._is_none(bare):
                said = True
                continue
            # one line with commas is a list, though all of it may stand in the prompt
            pieces = pieces_of(bare, self._phrases, whole="" if len(items) == 1 else prompt)
            if not all(squeezed(piece) in prompt for piece in pieces):
                pieces = pieces_of(bare, self._phrases, whole=prompt)
            if prompt and _is_sentence(bare) and not any(squeezed(piece) in prompt for piece in pieces):
                said |= bool(self._says_none.search(plain(bare)))
                continue
            found |= {mention for piece in pieces if (mention := self._mention(piece, prompt))}
        if not found and not said:
            return repaired(document, None, None, "no list was found")
        return repaired(document, sorted(found), span, "a list")

    @staticmethod
    def _bare_item(item: str, prompt: str) -> str:
        """An item without a word before a colon that the prompt does not have."""
        head = _HEADED.match(item)
        return item[head.end() :] if head and squeezed(head[1].strip(EDGES)) not in prompt else item

    @staticmethod
    def _mention(piece: str, prompt: str) -> str:
        """A piece in the form in which it is compared, without what explains it."""
        mention = squeezed(piece.strip(EDGES))
        if not prompt or mention in prompt:
            return mention
        if remark := _REMARK.search(piece, 1):
            head = squeezed(piece[: remark.start()].strip(EDGES))
            if head and head in prompt:
                return head
        return mention


def _is_sentence(text: str) -> bool:
    words = len(text.split())
    return words >= _SENTENCE or (
        bool(_SENTENCE_END.search(text)) and words < 3 and len(text) >= _UNSPACED_SENTENCE
    )


class Prose(OfNoPaper):
    """Any text, with the words of its language where it is announced.

    Attributes:
        reference: the field that answers are compared with, where that is not the task's target.
    """

    kind: Literal["prose"]
    reference: str | None = None

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The reference text, without what the prompt asks for before it.

        Raises:
            GoldError: it is empty.
        """
        gold = self._bare(str(row[self.reference]) if self.reference else text)
        if not gold:
            raise GoldError("empty reference")
        return gold

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The text without a fence; after reasoning, what follows the last line that announces it."""
        reply = reply_of(text)
        begin, end = announced(reply, self._phrases, others=("result",)) if cot else (reply.begin, reply.end)
        begin, end = text_of(Reply(reply.text, begin, end, reply.traced), "(?!)")
        answer = self._bare(text[begin:end])
        why = "the text" if answer else "the reply is empty"
        return repaired(document, answer or None, (begin, end) if answer else None, why)
