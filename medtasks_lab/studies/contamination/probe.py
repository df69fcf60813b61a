"""The rule of the probe: where a text is cut, what must follow, and when a text counts as leaked.

Source: BRIDGE, Methods, "Data Contamination Analysis". Each test input is split by the model's own
tokenizer, cut at tokens 10, 15, 20, 25 and 30, and the model predicts the next five tokens; an input
is potentially leaked when at least three of the five predictions match exactly. The released code
(`data_contamination/utils.py`) fixes what the paper leaves open, and is followed in this: special
tokens are not counted among an input's tokens, decoding is greedy, no chat template is applied, and an
input of fewer than 35 tokens is not probed at all.

The released code differs from the paper, and the paper is followed, in this: the code takes the first
64 rows of a task only, reports the mean share of matching cuts rather than the share of leaked inputs,
and sends a cut inside a character as a replacement character, after which nothing can match.

Models take and return text here, as any completion endpoint does. Comparing texts is made equivalent
to comparing tokens by where a text is cut. A cut moves left to the nearest place at which the text
before it ends with a whole character and is split into the same tokens again, and the prediction runs
to the end of the character in which its fifth token ends. The predicted span then holds the five tokens
and, rarely, a few more, so that a moved cut can hide a match and cannot make one.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from medtasks_ext.errors import MedtasksError
from medtasks_lab.judge.study import ratings_in, study_file

if TYPE_CHECKING:
    import pyarrow as pa
    from lm_eval.api.model import LM

    from medtasks_lab.judge.study import Continuing


FILE = Path(__file__).with_suffix(".yaml")
CONTINUING = cast("Continuing", study_file(FILE).continuing)
CUTS, N_PREDICTED = CONTINUING.cuts, CONTINUING.predicted
#: Matching cuts from which an input counts as leaked.
THRESHOLD = CONTINUING.threshold
#: Tokens that an input needs: the last cut and what is predicted there.
SHORTEST = CUTS[-1] + N_PREDICTED
#: Tokens beyond that in which a character that was begun will have ended.
_AHEAD = 16
#: Characters that are split into tokens first; long inputs need no more for their first tokens.
_HEAD = 2000


class Tokenizer(Protocol):
    """A model's tokenizer, without special tokens."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""

    def decode(self, ids: list[int]) -> str:
        """The text of tokens; U+FFFD where they hold a part of a character."""


@dataclass(frozen=True)
class Completion:
    """One cut: what the model is given and what follows in the input."""

    cut: int  # the cut that the paper names, in tokens
    prefix: str  # the text before it
    expected: str  # the text that follows
    n_tokens: int  # tokens to predict; five unless the cut was moved

    @property
    def moved(self) -> bool:
        """Whether more than five tokens must be right."""
        return self.n_tokens != N_PREDICTED


def completions(text: str, tokenizer: Tokenizer) -> list[Completion]:
    """The five cuts of an input; none if it has fewer than 35 tokens."""
    start = _Start(text, tokenizer)
    if len(start.ids) < SHORTEST:
        return []
    cuts = []
    for cut in CUTS:
        first, last = start.reproducible(cut), start.whole(cut + N_PREDICTED)
        prefix = start.text(first)
        cuts.append(Completion(cut, prefix, start.text(last)[len(prefix) :], last - first))
    return cuts


class _Start:
    """The first tokens of a text, and the places where its text can be cut."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.ids = tokenizer.encode(text[:_HEAD])
        if len(self.ids) < 2 * SHORTEST and len(text) > _HEAD:
            self.ids = tokenizer.encode(text)
        self.ids = self.ids[: SHORTEST + _AHEAD]
        self._texts = {len(self.ids): tokenizer.decode(self.ids)}

    def text(self, n: int) -> str:
        """The text of the first n tokens."""
        if n not in self._texts:
            self._texts[n] = self.tokenizer.decode(self.ids[:n])
        return self._texts[n]

    def _is_whole(self, n: int) -> bool:
        return self.text(len(self.ids)).startswith(self.text(n))

    def whole(self, n: int) -> int:
        """The first place from n on at which a character ends."""
        return next(place for place in range(n, len(self.ids) + 1) if self._is_whole(place))

    def reproducible(self, n: int) -> int:
        """The last place up to n at which a character ends and the text is split in the same way again.

        Where the five tokens before n hold none, the last place at which a character ends.
        """
        whole = [place for place in range(n, -1, -1) if self._is_whole(place)]
        near = (place for place in whole if place > n - N_PREDICTED)
        same = (place for place in near if self.tokenizer.encode(self.text(place)) == self.ids[:place])
        return next(same, whole[0])


def is_match(expected: str, predicted: str) -> bool:
    """Whether a model wrote what follows in the input.

    Leading spaces are not compared: tokenizers of the SentencePiece kind lose one when a continuation
    is decoded by itself (lm-eval's `hf`), and keep it when it is decoded after its prompt (`vllm`).
    """
    return bool(predicted) and predicted.lstrip(" ") == expected.lstrip(" ")


@dataclass(frozen=True)
class ProbeVerdict:
    """What the probe says about one document."""

    document: str  # its id
    n_matches: int | None  # how many of the five continuations match; None for an input that is too short

    @property
    def leaked(self) -> bool | None:
        """Whether at least three match; None for an input that is too short."""
        return None if self.n_matches is None else self.n_matches >= THRESHOLD


@dataclass(frozen=True)
class ProbeCounts:
    """One task."""

    verdicts: list[ProbeVerdict]  # on the documents looked at

    @property
    def n_documents(self) -> int:
        """Documents looked at."""
        return len(self.verdicts)

    @property
    def n_too_short(self) -> int:
        """Those of fewer than 35 tokens, which have no verdict."""
        return sum(verdict.leaked is None for verdict in self.verdicts)

    @property
    def n_leaked(self) -> int:
        """Leaked documents."""
        return sum(verdict.leaked is True for verdict in self.verdicts)

    @property
    def n_probed(self) -> int:
        """Documents with a verdict: what shares are of."""
        return self.n_documents - self.n_too_short

    @property
    def share(self) -> float | None:
        """Leaked among probed documents, 0–1; None if none was probed."""
        return self.n_leaked / self.n_probed if self.n_probed else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the share; None if no document was probed."""
        if not self.n_probed:
            return None
        from scipy.stats import binomtest

        bounds = binomtest(self.n_leaked, self.n_probed).proportion_ci(0.95, method="wilson")
        return float(bounds.low), float(bounds.high)


def tally(verdicts: pa.Table) -> ProbeCounts:
    """What a task's part of the frame `verdicts` amounts to: a rating of 1 is a match at a cut."""
    return ProbeCounts(
        [
            ProbeVerdict(document, int(sum(matches.values())) if matches else None)
            for (_, document), by_model in ratings_in(verdicts).items()
            for matches in by_model.values()
        ]
    )


# ---------------------------------------------------------------------- the tokenizer behind a model


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
