"""vLLM's engine of this process, or several (`data_parallel_size`), which take a request at any time.

lm-eval's class makes settings, tokens and texts. In place of its `vllm.LLM`, which answers whole lists,
stands vLLM's asynchronous engine, in a loop and a thread of its own.

How likely possible answers are: the tokens of all options make a tree. vLLM gives the log-probabilities of
chosen tokens behind a text in one pass (`logprob_token_ids`), so options of one token take one pass together,
and each further branching a short one behind the prompt, which the prefix cache holds by then. Where there is
no such cache or setting, the prompt is read anew with each option, as lm-eval does.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from inspect import signature
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from medtasks_ext.engines import (
    WAIT_SECONDS,
    Answer,
    Done,
    Engine,
    Fault,
    FaultKind,
    Feed,
    Likelihood,
    Outcome,
    Request,
    Usage,
    likeliest,
    together,
)
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM

    from medtasks_ext.harness import VLLM

_T = TypeVar("_T")

MEMORY_REMEDY = (
    "vLLM's messages above say why; it is mostly memory: lower --model_args gpu_memory_utilization,"
    " max_model_len or max_num_seqs, then repeat the command: it goes on where it stopped"
)
#: vLLM has been asked to stop, or has failed on the request.
_NO_ANSWER = ("abort", "error", None)


class AskedModel:
    """What lm-eval's class gets for `vllm.LLM`."""

    def __init__(self, engine: AsyncLLM) -> None:
        self.llm_engine = engine
        self._numbers, self._loop = itertools.count(), asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="vLLM", daemon=True).start()
        atexit.register(self.close)

    async def output(self, tokens: Sequence[int], parameters: SamplingParams, lora: Any) -> RequestOutput:
        """What vLLM says to tokens, once it is complete."""
        from vllm.sampling_params import RequestOutputKind

        parameters.output_kind = RequestOutputKind.FINAL_ONLY
        prompt = {"type": "token", "prompt_token_ids": list(tokens)}
        name = f"medtasks-{next(self._numbers)}"
        stream = self.llm_engine.generate(prompt, parameters, name, lora_request=lora)
        output = [output async for output in stream][-1]
        if output.outputs[0].finish_reason in _NO_ANSWER:
            raise RuntimeError(f"vLLM gave it up ({output.outputs[0].finish_reason})")
        return output

    def generate(
        self, prompts: list[Any], *, sampling_params: list[Any], use_tqdm: bool, lora_request: Any
    ) -> list[RequestOutput]:
        """As `LLM.generate`, for lm-eval's own calls."""

        async def all_outputs() -> list[RequestOutput]:
            asked = zip(prompts, sampling_params, strict=True)
            return await asyncio.gather(
                *(self.output(prompt["prompt_token_ids"], one.clone(), lora_request) for prompt, one in asked)
            )

        return self.call(all_outputs())

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait for work in the loop; it is given up where the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """The loop goes on, for what vLLM ends in it."""
        atexit.unregister(self.close)
        # kept until the end of Python, it could not be freed without a message
        if engine := vars(self).pop("llm_engine", None):
            # the reader of answers would complain that the engine's process has ended
            if reader := getattr(engine, "output_handler", None):
                self._loop.call_soon_threadsafe(reader.cancel)
            engine.shutdown()


def load(model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> VllmEngine:
    """Load lm-eval's vLLM model, `data_parallel_size` times. No process of vLLM outlives this one."""
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM

    from medtasks_ext.harness import VLLM

    own = deepcopy(dict(model_args))
    # lm-eval would load all replicas anew at each call
    replicas = int(own.pop("data_parallel_size", None) or 1)

    def asked(**arguments: Any) -> AskedModel:
        fixed = {"disable_log_stats": True, "data_parallel_size": replicas}
        settings = AsyncEngineArgs(**{**fixed, **arguments})
        # with this context, sizes of batches are those of `vllm.LLM`
        return AskedModel(AsyncLLM.from_engine_args(settings, usage_context=UsageContext.LLM_CLASS))

    start_watcher()
    module = vars(sys.modules[VLLM.__module__])
    theirs, module["LLM"] = module["LLM"], asked
    try:
        with ctrl_c_stays_here():
            return VllmEngine(VLLM.create_from_arg_obj(own, dict(extra)))
    except RuntimeError as error:
        raise MedtasksError(f"vLLM does not start: {error}", where="vLLM", remedy=MEMORY_REMEDY) from error
    finally:
        module["LLM"] = theirs


#: vLLM's processes live on, with all their memory, when the process that started them is killed outright.
_WATCHER = """
import os, psutil, sys, time  # psutil comes with vLLM, and signals no other process that has a number by now
watched, started = psutil.Process(int(sys.argv[1])), set()
while os.getppid() == watched.pid:
    try:
        started.update(watched.children(recursive=True))
    except psutil.Error:
        pass
    time.sleep(0.5)
time.sleep(2)  # most end by themselves
for process in started - {psutil.Process()}:
    try:
        process.kill()
    except psutil.Error:
        pass
"""


def start_watcher() -> None:
    """Start a process that ends all that this one leaves, however it ends."""
    subprocess.Popen(
        [sys.executable, "-c", _WATCHER, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # whoever reads this process's output must not wait for the watcher
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C and the end of the terminal do not reach it
    )


@contextmanager
def ctrl_c_stays_here() -> Iterator[None]:
    """Processes that are started within never get SIGINT, whatever handler they set.

    A terminal sends Ctrl-C to every process of the group, and vLLM's would end with what is under way. A new
    process has the signal mask of the thread that started it, and so have its own children. This process goes
    on to hear the signal through another thread; Python then handles it in the main thread as ever.
    """
    # it is started once per process, and its start would unblock the signal
    resource_tracker.ensure_running()
    over = threading.Event()
    threading.Thread(target=over.wait, name="hears Ctrl-C", daemon=True).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        over.set()


class VllmEngine(Engine):
    """Answers requests with lm-eval's vLLM model, each as lm-eval's `generate_until` would."""

    keeps_prefixes = True

    def __init__(self, lm: VLLM) -> None:
        self.lm = lm
        config = lm.model.llm_engine.vllm_config
        replicas = config.parallel_config.data_parallel_size
        #: twice what vLLM runs at a time. With a window of once that, finished requests leave places empty
        #: until the next step (15 % slower)
        self.window = 2 * config.scheduler_config.max_num_seqs * replicas
        self._cached = bool(config.cache_config.enable_prefix_caching)
        #: the text of the model's last token; some tokenizers decode it to nothing and name it elsewhere
        self._end = lm.tokenizer.decode(lm.eot_token_id) or getattr(lm.tokenizer, "eos_token", None) or ""

    def prepare(self, request: Request) -> Request | Fault:
        """Tokenise as lm-eval does; what does not fit the context is a fault, where lm-eval would cut.

        Prompts that can be shortened were shortened before, by the suite's rule.
        """
        prompt, options = request.prompt, tuple[tuple[int, ...], ...]()
        try:
            text = prompt if isinstance(prompt, str) else str(self.lm.apply_chat_template(prompt))
            if request.options:  # blanks at the end of a prompt belong to the option
                tokens, *whole = self.lm.tok_encode([text.rstrip(), *(text + one for one in request.options)])
                options = tuple(tuple(item[len(tokens) :]) for item in whole)
            else:
                tokens = self.lm.tok_encode(text)
        except Exception as error:  # a lone surrogate; a template that refuses; only the type is free of text
            return Fault(FaultKind.ENGINE, f"the prompt cannot be made into tokens ({type(error).__name__})")
        try:  # vLLM writes a token behind an option
            answer = 1 + max(map(len, options)) if options else self._settings(request.settings)[2]
        except Exception as error:
            return Fault(FaultKind.ENGINE, f"the sampling settings are not valid: {error}")
        room = self.lm.max_length - answer
        if len(tokens) > room:
            why = f"the prompt has {len(tokens):,} tokens and there is room for {max(room, 0):,}"
            why += f" (a context of {self.lm.max_length:,} less {answer:,} for the answer)"
            remedy = "raise --model_args max_model_len, if the model allows it, or lower --gen_kwargs"
            return Fault(FaultKind.TOO_LONG, why, f"{remedy} max_gen_toks")
        return replace(request, tokens=tokens, option_tokens=options)

    def _settings(self, settings: Mapping[str, Any]) -> Any:
        return self.lm.modify_gen_kwargs(
            dict(settings), eos=self._end, default_max_gen_toks=self.lm.max_gen_toks
        )

    def sampling(self, settings: Mapping[str, Any]) -> tuple[SamplingParams, list[str]]:
        """vLLM's parameters, and the texts at which lm-eval cuts the answer.

        Stop texts of the task often stand within reasoning. With `think_end_token` they are applied
        afterwards, to what follows the reasoning.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RepetitionDetectionParams

        more, until, max_tokens = self._settings(settings)
        stop = [text for text in until if text == self._end] if self.lm.think_end_token else until
        if isinstance(loops := more.get("repetition_detection"), Mapping):
            more["repetition_detection"] = RepetitionDetectionParams(**loops)
        return SamplingParams(max_tokens=max_tokens, stop=stop, **more), until

    def run(self, feed: Feed, done: Done) -> None:
        """What had its outcome when vLLM dies has been handed on."""
        turn = asyncio.Lock()
        self.lm.model.call(together(self._work(feed, done, turn) for _ in range(self.window)))

    async def _work(self, feed: Feed, done: Done, turn: asyncio.Lock) -> None:
        """Answer requests, one after the other; a thread makes their tokens, and waits for more."""
        while True:
            async with turn:
                while not (request := await asyncio.to_thread(feed.take)):
                    if feed.over:
                        return
                    await asyncio.to_thread(feed.wait, WAIT_SECONDS)
            try:
                outcome = await self._outcome(request)
            except Exception as error:  # vLLM has seen tokens and settings only, so its words hold no row
                said = error.__cause__ or error
                reason = f"{type(said).__name__}: {said}".splitlines()[0]
                if self.lm.model.llm_engine.errored:
                    raise MedtasksError(
                        f"vLLM's engine has died ({reason})", where="vLLM", remedy=MEMORY_REMEDY
                    ) from None
                outcome = Fault(FaultKind.ENGINE, f"vLLM does not answer the request: {reason}")
            done(request, outcome)

    async def _outcome(self, request: Request) -> Outcome:
        def ask(tokens: Sequence[int], parameters: SamplingParams) -> Coroutine[Any, Any, RequestOutput]:
            model: AskedModel = self.lm.model
            return model.output(tokens, parameters, self.lm.lora_request)

        from medtasks_ext.harness import postprocess_generated_text

        if request.options:
            return await option_likelihoods(request, ask, cached=self._cached)
        began = time.monotonic()
        parameters, until = self.sampling(request.settings)
        output = await ask(request.tokens or [], parameters)
        completion, cached, think_end = output.outputs[0], output.num_cached_tokens, self.lm.think_end_token
        return Answer(
            postprocess_generated_text(completion.text, until, think_end),
            completion.finish_reason or "",
            Usage(len(output.prompt_token_ids or ()), len(completion.token_ids), cached=cached),
            completion.text.rpartition(think_end)[0] if think_end else "",
            seconds=time.monotonic() - began,
        )

    def close(self) -> None:
        self.lm.model.close()


Tokens: TypeAlias = tuple[int, ...]

#: Tokens whose log-probabilities vLLM gives in one pass at most.
MOST_IDS = 128
#: Tokens that a pass behind a cached prompt reads: the end of the prompt that fills no block, and the branch.
_SHORT_PASS = 32


async def option_likelihoods(
    request: Request,
    ask: Callable[[Sequence[int], SamplingParams], Awaitable[RequestOutput]],
    *,
    cached: bool,
) -> Outcome:
    """The answer to a request with options.

    `ask`: gives what the engine says to tokens. `cached`: whether it keeps the prompt for further passes.
    """
    from vllm import SamplingParams

    prompt, options = tuple(request.tokens or ()), request.option_tokens
    tree: dict[Tokens, set[int]] = {}  # what stands before a token of some option -> the tokens there
    for option in options:
        for place, token in enumerate(option):
            tree.setdefault(option[:place], set()).add(token)
    short = len(prompt) + _SHORT_PASS * (len(tree) - 1)
    # an older vLLM has no such setting
    knows = "logprob_token_ids" in signature(SamplingParams).parameters
    by_tree = knows and max(map(len, tree.values())) <= MOST_IDS
    if by_tree and (len(tree) == 1 or (cached and short < len(options) * len(prompt))):
        passes = [(behind, sorted(tree[behind])) for behind in sorted(tree, key=len)]
        first = 1  # by itself, so that the others find the prompt cached
    else:
        passes = [(option, []) for option in dict.fromkeys(options)]
        first = len(passes)
    #: what stands before a token, and the token -> its log-probability, and whether it is the likeliest
    read: dict[tuple[Tokens, int], Likelihood] = {}

    async def one_pass(behind: Tokens, tokens: list[int]) -> None:
        """Read chosen tokens behind a text, or without them those of the text itself."""
        wanted = {"logprob_token_ids": tokens} if tokens else {"prompt_logprobs": 1}
        parameters = SamplingParams(temperature=0, max_tokens=1, detokenize=False, **wanted)
        output = await ask([*prompt, *behind], parameters)
        for token in tokens:
            best = token == output.outputs[0].token_ids[0]
            read[behind, token] = Likelihood(float(output.outputs[0].logprobs[0][token].logprob), best)
        for place, token in enumerate(() if tokens else behind):
            found = {one: item.logprob for one, item in output.prompt_logprobs[len(prompt) + place].items()}
            read[behind[:place], token] = Likelihood(float(found[token]), found[token] == max(found.values()))

    for part in (passes[:first], passes[first:]):
        await asyncio.gather(*(one_pass(*one) for one in part))
    steps = [[read[option[:i], token] for i, token in enumerate(option)] for option in options]
    likelihoods = [Likelihood(sum(s.value for s in one), all(s.greedy for s in one)) for one in steps]
    return likeliest(request, likelihoods, Usage(len(prompt), sum(map(len, options))))
