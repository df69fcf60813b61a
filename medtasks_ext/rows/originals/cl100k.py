"""Tokens of GPT-4 (`cl100k_base`), by which some benchmarks bound the length of a prompt.

The vocabulary is a public file of 1.7 MB that lies beside the source's files; nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from tiktoken import Encoding

    from medtasks_ext.rows.originals.tree import SourceFile

NAME = "cl100k_base.tiktoken"
URL = f"https://openaipublic.blob.core.windows.net/encodings/{NAME}"
SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
#: Texts are cut into such pieces before bytes are paired (`tiktoken_ext.openai_public.cl100k_base`).
PIECES = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def read_encoding(file: SourceFile) -> Encoding:
    """The encoding whose vocabulary is in the file."""
    try:
        from tiktoken import Encoding
    except ImportError:
        what = "to count tokens of GPT-4 needs tiktoken, which is not installed"
        raise MedtasksError(what, where=file.where, remedy='pip install "medtasks[originals]"') from None
    content = file.read()
    if hashlib.sha256(content).hexdigest() != SHA256:
        what = f"is not the vocabulary cl100k_base (SHA-256 {SHA256[:12]}…)"
        raise MedtasksError(what, where=file.where, remedy=f"download {URL} again")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}
    return Encoding("cl100k_base", pat_str=PIECES, mergeable_ranks=ranks, special_tokens={})


def count(encoding: Encoding, text: str) -> int:
    return len(encoding.encode_ordinary(text))


def tail(encoding: Encoding, text: str, size: int) -> str:
    """The last tokens of a text, at most that many; a character cut in two is replaced."""
    tokens = encoding.encode_ordinary(text)
    return encoding.decode(tokens[max(0, len(tokens) - size) :])
