"""How likely vLLM finds the possible answers behind a prompt.

The tokens of all options make a tree. vLLM gives the log-probabilities of chosen tokens behind a text in one
pass (`logprob_token_ids`), so options of one token each take one pass together. Where options have more, each
branching of the tree is a short pass behind the prompt, which the prefix cache holds by then; where there is
no such cache, or a vLLM does not know the setting, the prompt is read anew with each option, as lm-eval does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
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


async def option_likelihoods(
    request: Request,
    ask: Callable[[Sequence[int], SamplingParams], Awaitable[RequestOutput]],
    *,
    ids: bool,
    cached: bool,
) -> Outcome:
    """The answer to a request with options.

    `ask`: gives what the engine says to tokens. `ids`: whether it gives log-probabilities of chosen tokens.
    `cached`: whether it keeps the prompt for the passes that follow.
    """
    prompt, options = tuple(request.tokens or ()), request.option_tokens
    tree = branches(options)
    short = len(prompt) + _SHORT_PASS * (len(tree) - 1)
    by_tree = ids and max(map(len, tree.values())) <= MOST_IDS
    if by_tree and (len(tree) == 1 or (cached and short < len(options) * len(prompt))):
        passes = [(behind, tuple(sorted(tokens))) for behind, tokens in tree.items()]
        first = 1  # by itself, so that the others find the prompt cached
    else:
        passes = [(option, Tokens()) for option in dict.fromkeys(options)]
        first = len(passes)
    #: what stands before a token, and the token -> its log-probability, and whether it is the likeliest
    read: dict[tuple[Tokens, int], Likelihood] = {}
    for part in (passes[:first], passes[first:]):
        outputs = await asyncio.gather(*(ask([*prompt, *one[0]], _parameters(one[1])) for one in part))
        for (behind, tokens), output in zip(part, outputs, strict=True):
            read.update(_read(len(prompt), behind, tokens, output))
    steps = [[read[option[:i], token] for i, token in enumerate(option)] for option in options]
    likelihoods = [Likelihood(sum(s.value for s in one), all(s.greedy for s in one)) for one in steps]
    return likeliest(request, likelihoods, Usage(len(prompt), sum(map(len, options))))


@cache
def knows_ids() -> bool:
    """Whether the installed vLLM gives log-probabilities of chosen tokens."""
    from vllm import SamplingParams

    return "logprob_token_ids" in signature(SamplingParams).parameters


def _parameters(tokens: Tokens) -> SamplingParams:
    from vllm import SamplingParams

    read = {"logprob_token_ids": list(tokens)} if tokens else {"prompt_logprobs": 1}
    return SamplingParams(temperature=0, max_tokens=1, detokenize=False, **read)


def _read(
    prompt: int, behind: Tokens, tokens: Tokens, output: RequestOutput
) -> dict[tuple[Tokens, int], Likelihood]:
    """Of a pass: of chosen tokens behind a text, or without them of the text itself."""
    if tokens:
        logprobs, best = output.outputs[0].logprobs[0], output.outputs[0].token_ids[0]
        return {
            (behind, token): Likelihood(float(logprobs[token].logprob), token == best) for token in tokens
        }
    read = {}
    for place, token in enumerate(behind):
        found = {one: item.logprob for one, item in output.prompt_logprobs[prompt + place].items()}
        read[behind[:place], token] = Likelihood(float(found[token]), found[token] == max(found.values()))
    return read


def branches(options: Sequence[Tokens]) -> dict[Tokens, set[int]]:
    """What stands before a token of some option -> the tokens that follow there; shortest first."""
    tree: dict[Tokens, set[int]] = {}
    for option in options:
        for place, token in enumerate(option):
            tree.setdefault(option[:place], set()).add(token)
    return dict(sorted(tree.items(), key=lambda item: len(item[0])))
