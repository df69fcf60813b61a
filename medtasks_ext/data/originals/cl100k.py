"""Tokens of GPT-4 (`cl100k_base`), by which some benchmarks bound the length of a prompt.

The vocabulary is a public file of 1.7 MB that lies beside the source's files; nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import regex

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.data.originals.tree import SourceFile

NAME = "cl100k_base.tiktoken"
URL = f"https://openaipublic.blob.core.windows.net/encodings/{NAME}"
SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
#: Texts are cut into such pieces before bytes are paired (tiktoken, `cl100k_base`).
_PIECE = regex.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Encoding:
    """Cuts texts into tokens, each a string of bytes."""

    def __init__(self, file: SourceFile) -> None:
        """Read the vocabulary.

        Raises:
            MedtasksError: it is another file.
        """
        content = file.read()
        if hashlib.sha256(content).hexdigest() != SHA256:
            raise MedtasksError(
                f"is not the vocabulary cl100k_base (SHA-256 {SHA256[:12]}…)",
                where=file.where,
                remedy=f"download {URL} again",
            )
        self._ranks = {
            base64.b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())
        }
        self._known: dict[str, list[bytes]] = {}

    def tokens(self, text: str) -> Iterator[bytes]:
        """The tokens, in order; joined they are the text in UTF-8."""
        for piece in _PIECE.findall(text):
            if piece not in self._known:
                self._known[piece] = self._paired(piece.encode())
            yield from self._known[piece]

    def count(self, text: str) -> int:
        """The number of tokens."""
        return sum(1 for _ in self.tokens(text))

    def tail(self, text: str, size: int) -> str:
        """The last tokens of a text, at most that many; a character cut in two is replaced."""
        tokens = list(self.tokens(text))
        return b"".join(tokens[max(0, len(tokens) - size) :]).decode(errors="replace")

    def _paired(self, piece: bytes) -> list[bytes]:
        """Byte-pair encoding: neighbours are merged, those of the lowest rank first."""
        parts = [piece[place : place + 1] for place in range(len(piece))]
        while len(parts) > 1:
            ranks = [self._ranks.get(parts[place] + parts[place + 1]) for place in range(len(parts) - 1)]
            best = min((rank for rank in ranks if rank is not None), default=None)
            if best is None:
                break
            place = ranks.index(best)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return parts
