"""Fields that settings add to a request: which of them change what is asked, by whom, or what it costs.

A budget holds since a request has one answer, of one model, of at most so many tokens. A field that says
otherwise is refused wherever it comes from. Fields that are not known here may cost something as well, so
that under a limit each needs a word of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from medtasks_ext.errors import MedtasksError

#: What lm-eval calls the settings of an answer; no fields of the request.
OF_LM_EVAL = frozenset({"do_sample", "max_gen_toks", "temperature", "until"})
#: Arguments of lm-eval's models that have such names, and say what the model is.
OF_MODELS = frozenset({"model", "max_gen_toks", "max_length"})
#: Fields that no provider charges for, and that leave number, length and model of the answers as they are.
HARMLESS = OF_LM_EVAL | {
    *("chat_template_kwargs", "enable_thinking", "frequency_penalty", "logit_bias", "min_p"),
    *("presence_penalty", "reasoning_effort", "repetition_penalty", "response_format", "seed"),
    *("skip_special_tokens", "stop", "stop_sequences", "top_k", "top_p", "user"),
}
#: Compared without case, `_` and `-`.
_TAKEN = {
    *("n", "model", "models", "messages", "prompt", "prompts", "input", "contents", "system", "stream"),
    *("streamoptions", "bestof", "numchoices", "candidatecount", "numcompletions", "numreturnsequences"),
    *("numpredict", "npredict", "maxlength", "extrabody"),
}
_LIMIT = re.compile(r"max.*tok")


def check_refused(names: Iterable[str], where: str) -> None:
    plain = {name: re.sub(r"[^a-z]", "", name.lower()) for name in names if name not in OF_LM_EVAL}
    if barred := [name for name, bare in plain.items() if bare in _TAKEN or _LIMIT.search(bare)]:
        raise MedtasksError(
            f"{', '.join(barred)}: model, text, number and length of answers have options of their own",
            where=where,
            remedy="leave it out; the length is max_gen_toks, in a jury file max_tokens",
        )


def check_under_limit(names: Iterable[str], where: str) -> None:
    """Unless fields are known to cost nothing."""
    unknown = [name for name in dict.fromkeys(names) if name not in HARMLESS]
    if unknown:
        raise MedtasksError(
            f"nobody knows here whether {', '.join(unknown)} may cost something, and there is a limit",
            where=where,
            remedy="leave it out, or ask without --max-cost",
        )
