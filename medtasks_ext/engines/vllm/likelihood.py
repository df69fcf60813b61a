"""How likely vLLM finds the possible answers behind a prompt.

The tokens of all options make a tree. vLLM gives the log-probabilities of chosen tokens behind a text in one
pass (`logprob_token_ids`), so options of one token each take one pass together. Where options have more, each
branching of the tree is a short pass behind the prompt, which the prefix cache holds by then; where there is
no such cache, or a vLLM does not know the setting, the prompt is read anew with each option, as lm-eval does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, TypeAlias

from medtasks_ext.engines.records import Likelihood, Outcome, Request, Usage, likeliest

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams

    Tokens: TypeAlias = tuple[int, ...]

#: Tokens whose log-probabilities vLLM gives in one pass at most.
MOST_IDS = 128
#: Tokens that a pass behind a cached prompt reads: the end of the prompt that fills no block, and the branch.
_SHORT_PASS = 32


@dataclass(frozen=True)
class Pass:
    behind: Tokens  # what follows the prompt
    ids: Tokens = ()  # tokens whose log-probabilities are read behind it; without, those of `behind` are read

    def parameters(self) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        read = {"logprob_token_ids": list(self.ids)} if self.ids else {"prompt_logprobs": 1}
        return SamplingParams(
            temperature=0,
            max_tokens=1,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            **read,
        )


def knows_ids() -> bool:
    """Whether the installed vLLM gives log-probabilities of chosen tokens."""
    from vllm import SamplingParams

    return "logprob_token_ids" in signature(SamplingParams).parameters


class Reading:
    """One request with options on its way.

    Args:
        ids: whether the engine gives log-probabilities of chosen tokens.
        cached: whether it keeps the prompt for the passes that follow.
    """

    def __init__(self, request: Request, *, ids: bool, cached: bool) -> None:
        self._request, self._prompt = request, request.tokens or []
        tree = branches(request.option_tokens)
        whole = len(request.option_tokens) * len(self._prompt)
        short = len(self._prompt) + _SHORT_PASS * (len(tree) - 1)
        by_tree = ids and max(map(len, tree.values())) <= MOST_IDS
        self._by_tree = by_tree and (len(tree) == 1 or (cached and short < whole))
        if self._by_tree:
            self._left = [Pass(behind, tuple(sorted(tokens))) for behind, tokens in tree.items()]
        else:
            self._left = [Pass(option) for option in dict.fromkeys(request.option_tokens)]
        self._under_way = 0
        #: what stands before a token, and the token -> its log-probability, and whether it is the likeliest
        self._read: dict[tuple[Tokens, int], Likelihood] = {}

    def further(self) -> list[Pass]:
        """The passes that can be made now: the first by itself, so that the others find the prompt cached."""
        n = 1 if self._by_tree and not self._read else len(self._left)
        passes, self._left = self._left[:n], self._left[n:]
        self._under_way += len(passes)
        return passes

    def prompt(self, item: Pass) -> list[int]:
        """What the engine reads in a pass."""
        return [*self._prompt, *item.behind]

    def take(self, item: Pass, output: RequestOutput) -> None:
        self._under_way -= 1
        if item.ids:
            completion = output.outputs[0]
            assert completion.logprobs is not None
            logprobs, likeliest_id = completion.logprobs[0], completion.token_ids[0]
            for token in item.ids:
                value = float(logprobs[token].logprob)
                self._read[item.behind, token] = Likelihood(value, token == likeliest_id)
            return
        assert output.prompt_logprobs is not None
        for place, token in enumerate(item.behind):
            logprobs = output.prompt_logprobs[len(self._prompt) + place]
            best = max(logprobs.values(), key=lambda one: one.logprob)
            self._read[item.behind[:place], token] = Likelihood(
                float(logprobs[token].logprob), logprobs[token].logprob == best.logprob
            )

    @property
    def complete(self) -> bool:
        return not self._left and not self._under_way

    def outcome(self) -> Outcome:
        options = self._request.option_tokens
        steps = [[self._read[option[:i], token] for i, token in enumerate(option)] for option in options]
        likelihoods = [Likelihood(sum(s.value for s in one), all(s.greedy for s in one)) for one in steps]
        return likeliest(self._request, likelihoods, Usage(len(self._prompt), sum(map(len, options))))


def branches(options: Sequence[Tokens]) -> dict[Tokens, set[int]]:
    """What stands before a token of some option -> the tokens that follow there; shortest first."""
    tree: dict[Tokens, set[int]] = {}
    for option in options:
        for place, token in enumerate(option):
            tree.setdefault(option[:place], set()).add(token)
    return dict(sorted(tree.items(), key=lambda item: len(item[0])))
