"""Tokenizers and models whose behaviour is known: they stand in for real ones."""

from __future__ import annotations

import re
import threading
from typing import Any, ClassVar

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

BOS = 0


class Tokenizer:
    """A tokenizer in the manner of transformers: adds BOS unless told not to."""

    clean_up_tokenization_spaces = True

    def __init__(self) -> None:
        self._ids: dict[Any, int] = {}
        self._pieces: list[Any] = ["<s>"]

    def _split(self, text: str) -> list[Any]:
        raise NotImplementedError

    def _join(self, pieces: list[Any]) -> str:
        return "".join(pieces)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids = [BOS] if add_special_tokens else []
        for piece in self._split(text):
            if piece not in self._ids:
                self._ids[piece] = len(self._pieces)
                self._pieces.append(piece)
            ids.append(self._ids[piece])
        return ids

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return self._join([self._pieces[item] for item in ids if item != BOS or not skip_special_tokens])


class Words(Tokenizer):
    """One token per word, its space in front of it."""

    def _split(self, text: str) -> list[str]:
        return re.findall(r"\s*\S+|\s+", text)


class Bytes(Tokenizer):
    """Tokens of a fixed number of UTF-8 bytes, which split characters."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._pieces[BOS] = b"<s>"

    def _split(self, text: str) -> list[bytes]:
        content = text.encode()
        return [content[start : start + self.size] for start in range(0, len(content), self.size)]

    def _join(self, pieces: list[bytes]) -> str:
        return b"".join(pieces).decode(errors="replace")


class LooksAhead(Tokenizer):
    """`ab` is one token before a `c` and two elsewhere."""

    def _split(self, text: str) -> list[str]:
        return re.findall(r"ab(?=c)|.", text)


class Plain:
    """A tokenizer seen as the probe sees it: without special tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)


class GoneError(Exception):
    """Raised by a model that fails."""


@register_model("memory")
class Memory(LM):
    """Knows texts by heart up to a number of tokens, and babbles otherwise."""

    texts: ClassVar[list[str]] = []
    prompts: ClassVar[list[str]] = []
    settings: ClassVar[list[dict]] = []
    #: raised, or called, in place of the response of this number
    interrupt: ClassVar[tuple[int, Any] | None] = None
    #: set when the interrupted command has ended
    over: ClassVar[threading.Event] = threading.Event()
    tokenizer_kind: ClassVar[Any] = Words

    def __init__(self, tokens: int = 10**6, name: str = "memory", **_: Any) -> None:
        super().__init__()
        self.tokenizer = self.tokenizer_kind()
        self.tokens = int(tokens)

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        responses = []
        for prompt, settings in (request.args for request in requests):
            if self.interrupt and len(self.prompts) == self.interrupt[0]:
                if isinstance(stop := self.interrupt[1], BaseException):
                    raise stop
                stop()
                self.over.wait(60)
                raise GoneError("interrupted")
            self.prompts.append(prompt)
            self.settings.append(settings)
            responses.append(self._continue(prompt, settings["max_gen_toks"]))
            self.cache_hook.add_partial("generate_until", (prompt, settings), responses[-1])
        return responses

    def _continue(self, prompt: str, n: int) -> str:
        given = len(self.tokenizer.encode(prompt))
        for text in self.texts:
            if text.startswith(prompt):
                known = self.tokenizer.encode(text)[: self.tokens + 1]  # BOS is one more
                babble = self.tokenizer.encode(" ?" * n, add_special_tokens=False)
                return self.tokenizer.decode([*known[given:], *babble][:n], skip_special_tokens=True)
        return " ?" * n

    loglikelihood = loglikelihood_rolling = None
