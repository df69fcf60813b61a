"""Does a model continue the inputs of a benchmark word for word? The contamination probe of BRIDGE.

Source: BRIDGE, Methods, "Data Contamination Analysis"; for what the paper leaves open the released code
(`data_contamination/utils.py`): special tokens are not counted, decoding is greedy, no chat template is
applied, an input of fewer than 35 tokens is not probed. The paper is followed where the code differs: it
takes the first 64 rows, reports the mean share of matching cuts, and cuts inside characters, after which
nothing can match.

Models take and return text here. Comparing texts is comparing tokens by where a text is cut: a cut moves left
to the nearest place at which a character ends and the text before it is split into the same tokens again, and
the prediction runs to the end of the character in which its fifth token ends. So it can only hide a match.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from scipy.stats import binomtest

from medtasks_ext.engines.records import Answer, Fault, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.runner.requests import request_key
from medtasks_ext.studies.said import study

if TYPE_CHECKING:
    from medtasks_ext.egress import Text
    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.prompts.documents import Document

FILE, RESPONSES = "contamination.json", "contamination_responses.jsonl"
CUTS, N_PREDICTED, THRESHOLD = (study("contamination")[name] for name in ("cuts", "predicted", "threshold"))
#: Tokens that an input needs: the last cut and what is predicted there.
SHORTEST = CUTS[-1] + N_PREDICTED
#: Tokens beyond that in which a character that was begun will have ended; characters that are split first.
_AHEAD, _HEAD = 16, 2000


class Tokenizer(Protocol):
    """A model's tokenizer, without special tokens."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""

    def decode(self, ids: list[int]) -> str:
        """The text of tokens; U+FFFD where they hold a part of a character."""


class Completion(NamedTuple):
    """One cut: what the model is given and what follows in the input."""

    cut: int  # the cut that the paper names, in tokens
    prefix: str  # the text before it
    expected: str  # the text that follows
    n_tokens: int  # tokens to predict; five unless the cut was moved


def completions(text: str, tokenizer: Tokenizer) -> list[Completion]:
    """The five cuts of an input; none if it has fewer than 35 tokens."""
    ids = tokenizer.encode(text[:_HEAD])
    if len(ids) < 2 * SHORTEST and len(text) > _HEAD:
        ids = tokenizer.encode(text)
    if len(ids) < SHORTEST:
        return []
    ids = ids[: SHORTEST + _AHEAD]
    texts = [tokenizer.decode(ids[:n]) for n in range(len(ids) + 1)]
    whole = [
        n for n, start in enumerate(texts) if texts[-1].startswith(start)
    ]  # places where a character ends
    cuts = []
    for cut in CUTS:
        before = [n for n in reversed(whole) if n <= cut]
        near = (n for n in before if n > cut - N_PREDICTED and tokenizer.encode(texts[n]) == ids[:n])
        first, last = next(near, before[0]), next(n for n in whole if n >= cut + N_PREDICTED)
        cuts.append(Completion(cut, texts[first], texts[last][len(texts[first]) :], last - first))
    return cuts


def is_match(expected: str, predicted: str) -> bool:
    """Whether a model wrote what follows in the input.

    Leading spaces are not compared: tokenizers of the SentencePiece kind lose one when a continuation
    is decoded by itself (lm-eval's `hf`), and keep it when it is decoded after its prompt (`vllm`).
    """
    return bool(predicted) and predicted.lstrip(" ") == expected.lstrip(" ")


class ModelTokenizer:
    """Splits text as a model does: transformers, mistral-common, tiktoken, vLLM's server.

    Raises:
        MedtasksError: the model shows no tokenizer.
    """

    def __init__(self, model: Any) -> None:
        self._of = tokenizer = cast("Any", getattr(model, "tokenizer", None))
        if not (hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode")):
            raise MedtasksError(
                "the model shows no tokenizer, and the probe cuts texts between its tokens",
                where="--model",
                remedy="use hf, vllm, or local-completions with --model_args tokenizer=ORG/MODEL",
            )
        #: whether the model's server splits the texts, and so receives them
        self.is_remote = getattr(model, "tokenizer_backend", "") == "remote"
        # what the model wrote is compared, and must not be tidied up
        if getattr(tokenizer, "clean_up_tokenization_spaces", False):
            tokenizer.clean_up_tokenization_spaces = False
        known = inspect.signature(tokenizer.encode).parameters
        ways = {"add_special_tokens": False, "disallowed_special": ()}  # transformers, tiktoken
        self._plain = dict(list({name: value for name, value in ways.items() if name in known}.items())[:1])

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return list(self._of.encode(text, **self._plain))

    def decode(self, ids: list[int]) -> str:
        """The text of tokens; U+FFFD where they hold a part of a character."""
        text: str = self._of.decode(ids)
        return text


class _Feed:
    """Requests for an engine, all of which are ready."""

    dry = False

    def __init__(self, requests: Sequence[Request]) -> None:
        self._left = list(reversed(requests))

    @property
    def over(self) -> bool:
        return not self._left

    def take(self) -> Request | None:
        return self._left.pop() if self._left else None

    def wait(self, seconds: float) -> None:
        pass


def probe(
    name: str,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    engine: Engine,
    folder: Path,
    *,
    identity: str,
    fixed: Mapping[str, Any],
    text: Text,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Have a model continue the inputs of a task at each cut; a row with a verdict per document.

    Args:
        folder: what the model wrote is appended there as it comes, and not asked for again.
        identity: digest of the model, a part of the key of each request.
        fixed: generation settings beside the number of tokens.
        text: whose text the prompts hold.

    Raises:
        MedtasksError: a request has no answer; those that came are stored.
    """
    cuts = [completions(document.input, tokenizer) for document in documents]
    path, said, faults = folder / RESPONSES, dict[str, str](), list[str]()
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if line.endswith("}"):  # a crash may have cut the last one
            stored = json.loads(line)
            said[stored["key"]] = stored["text"]
    requests = []
    for document, here in zip(documents, cuts, strict=True):
        for one in here:
            settings = {**fixed, "until": [], "max_gen_toks": one.n_tokens}
            about = f"{document['id']} cut {one.cut}"
            key, row = request_key(identity, name, about, one.prefix, settings), {"expected": one.expected}
            requests.append(Request(key, name, about, one.prefix, settings, {"id": about, **row}, text=text))
    with path.open("a", encoding="utf-8") as file:

        def done(request: Request, outcome: Any) -> None:
            if isinstance(outcome, Answer):
                said[request.key] = outcome.text
                file.write(f"\n{json.dumps({'key': request.key, 'text': outcome.text}, ensure_ascii=False)}")
                file.flush()
            else:
                faults.append(getattr(outcome, "reason", "") or str(outcome))
            tick()

        ready = [engine.prepare(request) for request in requests if request.key not in said]
        faults += [str(item) for item in ready if isinstance(item, Fault)]
        engine.run(_Feed([item for item in ready if isinstance(item, Request)]), done)
    if missing := sum(request.key not in said for request in requests):
        what = f"{missing:,} requests have no answer ({(faults or ['not asked to the end'])[0]})"
        raise MedtasksError(what, where=name, remedy="the same command asks for them again")
    keys, verdicts = iter(requests), []
    for document, here in zip(documents, cuts, strict=True):
        matches = sum(is_match(one.expected, said[next(keys).key]) for one in here)
        leaked = matches >= THRESHOLD if here else None
        verdicts.append({"id": str(document["id"]), "n_matches": matches if here else None, "leaked": leaked})
    n, short = len(verdicts), sum(not here for here in cuts)
    n_leaked = sum(verdict["leaked"] is True for verdict in verdicts)
    around = binomtest(n_leaked, n - short).proportion_ci(0.95, method="wilson") if n > short else None
    return {
        "n_documents": n,
        "n_too_short": short,
        "n_probed": n - short,
        "n_cuts_moved": sum(one.n_tokens != N_PREDICTED for here in cuts for one in here),
        "n_leaked": n_leaked,
        "share": n_leaked / (n - short) if around else None,
        "ci95_low": float(around.low) if around else None,
        "ci95_high": float(around.high) if around else None,
        "documents": verdicts,
    }
