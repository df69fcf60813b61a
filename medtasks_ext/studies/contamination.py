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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.errors import MedtasksError
from medtasks_ext.studies.said import study

if TYPE_CHECKING:
    from medtasks_ext.harness import LM
    from medtasks_ext.prompts.documents import Document

FILE = "contamination.json"
CUTS, N_PREDICTED, THRESHOLD = (study("contamination")[name] for name in ("cuts", "predicted", "threshold"))
#: Tokens that an input needs: the last cut and what is predicted there.
SHORTEST = CUTS[-1] + N_PREDICTED
#: Tokens beyond that in which a character that was begun will have ended; characters that are split first.
_AHEAD, _HEAD = 16, 2000


class Completion(NamedTuple):
    """One cut: what the model is given and what follows in the input."""

    cut: int  # the cut that the paper names, in tokens
    prefix: str  # the text before it
    expected: str  # the text that follows
    n_tokens: int  # tokens to predict; five unless the cut was moved


def completions(text: str, tokenizer: Any) -> list[Completion]:
    """The five cuts of an input; none if it has fewer than 35 tokens."""
    ids = tokenizer.encode(text[:_HEAD])
    if len(ids) < 2 * SHORTEST and len(text) > _HEAD:
        ids = tokenizer.encode(text)
    if len(ids) < SHORTEST:
        return []
    ids = ids[: SHORTEST + _AHEAD]
    texts = [tokenizer.decode(ids[:n]) for n in range(len(ids) + 1)]
    whole = [n for n, start in enumerate(texts) if texts[-1].startswith(start)]  # where a character ends
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
    """Splits text as a model does, without special tokens: of transformers, tiktoken, a server."""

    def __init__(self, model: Any) -> None:
        tokenizer: Any = getattr(model, "tokenizer", None)
        self._of = tokenizer
        if not (hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode")):
            what = "the model shows no tokenizer, and the probe cuts texts between its tokens"
            remedy = "use hf, vllm, or local-completions with --model_args tokenizer=ORG/MODEL"
            raise MedtasksError(what, where="--model", remedy=remedy)
        #: whether the model's server splits the texts, and so receives them
        self.is_remote = getattr(model, "tokenizer_backend", "") == "remote"
        # what the model wrote is compared, and must not be tidied up
        if getattr(self._of, "clean_up_tokenization_spaces", False):
            self._of.clean_up_tokenization_spaces = False
        known = inspect.signature(self._of.encode).parameters
        ways = [("add_special_tokens", False), ("disallowed_special", ())]  # transformers, tiktoken
        self._plain = dict([way for way in ways if way[0] in known][:1])

    def encode(self, text: str) -> list[int]:
        return list(self._of.encode(text, **self._plain))

    def decode(self, ids: list[int]) -> str:
        """U+FFFD stands for a part of a character."""
        return str(self._of.decode(ids))


def probe(
    name: str, documents: Sequence[Document], model: LM, tokenizer: Any, fixed: Mapping[str, Any]
) -> dict[str, Any]:
    """Have a model continue the inputs of a task at each cut; a row with a verdict per document.

    `fixed`: generation settings beside the number of tokens.
    """
    from scipy.stats import binomtest

    from medtasks_ext.harness import Instance

    cuts, requests = [completions(document.input, tokenizer) for document in documents], list[Instance]()
    for document, here in zip(documents, cuts, strict=True):
        for one in here:
            given = (one.prefix, {**fixed, "until": [], "max_gen_toks": one.n_tokens})
            about = {"task_name": name, "doc_id": f"{document['id']} cut {one.cut}"}
            requests.append(
                Instance("generate_until", document, given, idx=0, metadata=(*about.values(), 1), **about)
            )
    said, verdicts = iter(model.generate_until(requests, disable_tqdm=True)), []
    for document, here in zip(documents, cuts, strict=True):
        n_matches = sum(is_match(one.expected, next(said)) for one in here) if here else None
        leaked = None if n_matches is None else n_matches >= THRESHOLD
        verdicts.append({"id": str(document["id"]), "n_matches": n_matches, "leaked": leaked})
    n_probed, n_leaked = sum(map(bool, cuts)), sum(verdict["leaked"] is True for verdict in verdicts)
    n_moved = sum(one.n_tokens != N_PREDICTED for here in cuts for one in here)
    n = {"n_documents": len(cuts), "n_too_short": len(cuts) - n_probed, "n_probed": n_probed}
    share = dict[str, float | None].fromkeys(("share", "ci95_low", "ci95_high"))
    if n_probed:
        around = binomtest(n_leaked, n_probed).proportion_ci(0.95, method="wilson")
        share = {"share": n_leaked / n_probed, "ci95_low": float(around.low), "ci95_high": float(around.high)}
    return {**n, "n_cuts_moved": n_moved, "n_leaked": n_leaked, **share, "documents": verdicts}
