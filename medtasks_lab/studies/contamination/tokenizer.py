"""The tokenizer behind an lm-eval model, whichever kind it is."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from lm_eval.api.model import LM


class ModelTokenizer:
    """Splits text as the model does, without special tokens.

    Knows tokenizers of transformers, mistral-common, tiktoken and vLLM's server.

    Raises:
        MedtasksError: the model shows no tokenizer.
    """

    def __init__(self, model: LM) -> None:
        tokenizer: Any = getattr(model, "tokenizer", None)
        if not (hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode")):
            raise MedtasksError(
                "the model shows no tokenizer, and the probe cuts texts between its tokens",
                where="--model",
                remedy="use hf, vllm, or local-completions with --model_args tokenizer=ORG/MODEL",
            )
        self._tokenizer = tokenizer
        #: whether the model's server splits the texts, and so receives them
        self.is_remote = getattr(model, "tokenizer_backend", "") == "remote"
        # what the model wrote is compared, and must not be tidied up
        if getattr(tokenizer, "clean_up_tokenization_spaces", False):
            tokenizer.clean_up_tokenization_spaces = False
        parameters = inspect.signature(tokenizer.encode).parameters
        self._plain: dict[str, Any] = {}
        if "add_special_tokens" in parameters:
            self._plain = {"add_special_tokens": False}
        elif "disallowed_special" in parameters:  # tiktoken
            self._plain = {"disallowed_special": ()}

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return list(self._tokenizer.encode(text, **self._plain))

    def decode(self, ids: list[int]) -> str:
        """The text of tokens; U+FFFD where they hold a part of a character."""
        text: str = self._tokenizer.decode(ids)
        return text
