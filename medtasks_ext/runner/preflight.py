"""Before a run: one real answer is looked at, and all prompts are held against the context.

What is said are warnings, since a base model or a long answer may be meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from medtasks_ext.answers.reasoning import reasoning_of, traces
from medtasks_ext.engines import CONTENT_FILTER, Answer, Fault, Outcome, Request
from medtasks_ext.engines.lm import readable
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import shown
from medtasks_ext.prompts.fit import tokenizer_of
from medtasks_ext.run.asker import Asker, Job
from medtasks_ext.run.charge import Budget
from medtasks_ext.runner.evaluate import Reader, RequestBuilder, Settings, rendered_prompt, text_of
from medtasks_ext.runner.preview import Counter, counter_of
from medtasks_ext.runner.run import Run, loaded_record
from medtasks_ext.runner.tally import REASONING_BUDGET, stopped

if TYPE_CHECKING:
    from medtasks_ext.engines import Engine
    from medtasks_ext.harness import LM, Task
    from medtasks_ext.run.charge import Charge

#: Tokens that the answer may take here, if the budget is larger.
ENOUGH = 1024
#: Long inputs of a task that are tokenised; of more, they are drawn evenly and counts scaled.
COUNTED = 1000

#: What stands between turns in some template, or in a conversation written out.
_ROLE_MARKERS = re.compile(
    r"<\|(?:im_start|im_end|user|assistant|system|start_header_id|end_header_id|eot_id|end|endoftext)\|>"
    r"|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|<｜(?:User|Assistant)｜>"
    r"|^[ \t]*(?:#+[ \t]*)?(?:User|Human|Assistant|Instruction|用户|助手)[ \t]*[:：]",
    re.MULTILINE,
)


def check_chat_template(model: LM, settings: Settings) -> None:
    """Refuse a chat template that is asked for and absent."""
    if not settings.apply_chat_template:
        return
    try:
        text = str(model.apply_chat_template([{"role": "user", "content": "user probe"}]))
        reason = "" if "user probe" in text else "it leaves the user's turn out"
    except Exception as error:  # templates and models refuse in their own ways
        reason = (str(error) or type(error).__name__).splitlines()[0]
    if reason:
        raise MedtasksError(
            f"the model has no chat template that can be applied ({reason})",
            where="--apply_chat_template",
            remedy="leave the flag out for a base model; else give the tokenizer the template of the model",
        )


def check_budget(context: int | None, tasks: Mapping[str, Task]) -> None:
    """Refuse a token budget that leaves no room for the prompt; vLLM would cut the prompt away.

    `context`: tokens of prompt and answer; None: unknown.
    """
    budget, most = max(((_budget(task), name) for name, task in tasks.items()), default=(0, ""))
    if context is not None and budget >= context:
        raise MedtasksError(
            f"the answer budget of {budget:,} tokens ({most}) leaves no room in a context of {context:,}",
            where="--gen_kwargs max_gen_toks",
            remedy=f"lower it, for example --gen_kwargs max_gen_toks={context // 4}, or raise max_model_len",
        )


def preflight(
    run: Run,
    model: LM,
    engine: Engine,
    tasks: Mapping[str, Task],
    places: Mapping[str, Sequence[int]],
    settings: Settings,
    charge: Charge | None = None,
    budget: Budget | None = None,
) -> tuple[str, list[str]]:
    """Ask the first question of a run, and say what is wrong with the answer or with the prompts.

    First what was asked, and what came back: nothing where no response did, so that the next call asks again.

    The answer may take `ENOUGH` tokens. Where that is the whole budget, or the model is an endpoint, which
    may charge, the request is the run's own, and its response is stored as the run stores it.

    `places`: task -> places of the documents to ask. `charge`: what requests cost; None where nobody knows.
    """
    engine.check(text_of(task) for name, task in tasks.items() if places[name])
    warnings, tokenizer, count = list[str](), tokenizer_of(model), None
    if tokenizer is not None:
        count = counter_of(tokenizer) or (lambda texts: [len(model.tok_encode(text)) for text in texts])
    if not settings.templated and getattr(tokenizer, "chat_template", None):
        warnings.append(
            "the tokenizer has a chat template and it is not applied: right for a base model; an instruct "
            "model needs --apply_chat_template (in another --output_path)"
        )
    if count is not None and isinstance(context := getattr(model, "max_length", None), int):
        warnings += _too_long(model, count, context, tasks, places, settings)
    name = next(name for name in tasks if places[name])
    task, place = tasks[name], places[name][0]
    asked = RequestBuilder(model, task, settings, run.manifest.identity.digest).build(place)
    limit = most = _budget(task)
    outcome: Outcome | None = run.answers.known([asked.key]).get(asked.key)
    if outcome is None:
        # an endpoint may charge for each answer, and of options nothing is written
        if not (isinstance(getattr(model, "base_url", None), str) or asked.options):
            limit = min(most, ENOUGH)
        if limit < most:
            asked = replace(asked, settings={**asked.settings, "max_gen_toks": limit})
        with public_rows(loaded_record(task)["origin"] != "local"):
            question = _FirstQuestion(engine, run.answers, budget, charge)
            outcome = question.outcome_of(asked, own=limit == most)
    if isinstance(outcome, Fault):
        if outcome.kind.ends_all:
            raise stopped(outcome)
        # the run will say it again
        why = f"the first question was not answered: {outcome.reason.splitlines()[0]}"
        return "", [*warnings, why]
    response, sizes = readable(outcome.text), list[str]()
    n_tokens = outcome.usage.completion if outcome.usage else count([response])[0] if count else None
    if outcome.usage:
        sizes.append(f"{outcome.usage.prompt:,} tokens of prompt")
    if n_tokens is not None:
        sizes.append(f"{n_tokens:,} tokens of response")
    if not asked.options:
        # the text of n tokens may be one token shorter when it is tokenised again
        cut = outcome.finish == "length" if outcome.finish else (n_tokens or 0) >= limit - 1
        prompt = asked.prompt if isinstance(asked.prompt, str) else ""
        reasons, wrong = _judged(response, prompt, outcome.finish, cut, limit, most)
        warnings += wrong
        sizes += ["it reasons first"] if reasons else []
        if not cut:
            valid = Reader(task).valid(task.eval_docs[place], response)
            sizes.append("an answer could be read" if valid else "no answer could be read")
    return f"one question of {name}: {', '.join(sizes) or 'answered'}", warnings


# ---------------------------------------------------------------------- the first answer


class _FirstQuestion(Asker):
    """Asks one question, whose outcome is kept as the run keeps it, if it is the run's own."""

    outcome: Outcome | None = None

    def outcome_of(self, request: Request, *, own: bool) -> Outcome:
        self.own = own
        self.add(Job(), [request])
        self.serve()
        self.answers.flush()
        if self.outcome is None:
            what = f"a question may cost {self.most(request) or 0:,.4f} USD, and the limit leaves less"
            raise MedtasksError(what, where="--max-cost", remedy="raise it")
        return self.outcome

    def sending(self, request: Request, intent: float | None) -> None:
        if self.own:
            super().sending(request, intent)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Take what came; a fault that cost nothing is found out again."""
        self.outcome = outcome
        self.stop()
        kept = self.own and (isinstance(outcome, Answer) or self.charge is not None)
        return super().keep(request, outcome, settles) if kept else 0.0


def _judged(
    response: str, prompt: str, finish: str, cut: bool, limit: int, budget: int
) -> tuple[bool, list[str]]:
    """Whether the model reasons before it answers, and what is wrong with the response."""
    begin, end, unclosed = reasoning_of(response)
    opened = not begin and prompt.rstrip().lower().endswith(tuple(one.open for one in traces()))
    endless, within = unclosed or opened, f"did not end within {limit:,} tokens of a budget of {budget:,}"
    answer, reasons, wrong = "" if endless else response[begin:end], endless or begin > 0, list[str]()
    # of a trace that has room every task counts whether it ended
    if endless and (limit == budget or budget < REASONING_BUDGET):
        wrong.append(
            f"the model reasons before it answers, and its reasoning {within}; without an end there is no "
            f"answer: --gen_kwargs max_gen_toks={max(REASONING_BUDGET, 2 * budget)}, or switch reasoning "
            "off (Qwen3: --model_args …,enable_thinking=False)"
        )
    elif cut and not endless:
        wrong.append(
            f"the response {within}: the model may not know where to stop "
            "(chat template, end token), or answers are longer than that; the budget cuts them off"
        )
    elif finish == CONTENT_FILTER:
        wrong.append("the server's filter took the answer away: such answers count as none")
    elif not answer.strip() and not endless:
        what = "nothing after its reasoning" if reasons else "an empty response"
        wrong.append(
            f"the model gave {what}: check the chat template; behind an endpoint, hidden reasoning may have "
            "used up the budget (--gen_kwargs max_gen_toks)"
        )
    if marker := _ROLE_MARKERS.search(answer):
        wrong.append(
            f"the response holds {marker[0].strip()!r}: the model goes on with a turn that is not its own, "
            "as with a wrong chat template or end token"
        )
    return reasons, wrong


# ---------------------------------------------------------------------- all prompts


def _too_long(
    model: LM,
    count: Counter,
    context: int,
    tasks: Mapping[str, Task],
    places: Mapping[str, Sequence[int]],
    settings: Settings,
) -> list[str]:
    """How many prompts do not fit.

    What surrounds an input (instruction, shots, template) is taken from the first document's prompt.
    """
    long = dict[str, tuple[int, int]]()  # task -> prompts that lose something, and a part of their input
    about = ""
    for name, task in tasks.items():
        if not (documents := [shown(task.eval_docs[place]) for place in places[name]]):
            continue
        first, room = task.eval_docs[places[name][0]], context - _budget(task)
        prompts = (rendered_prompt(task, first, settings, model.apply_chat_template, k) for k in (None, 0))
        own, with_shots, without = count([documents[0], *map(str, prompts)])
        # a token covers at least one byte, so short inputs need no counting
        inputs = [text for text in documents if len(text.encode()) + with_shots - own > room]
        counts = count(inputs[:: len(inputs) // COUNTED + 1])
        about = "about " if len(counts) < len(inputs) else about
        fits = (sum(size + around - own > room for size in counts) for around in (with_shots, without))
        fewer, cut = (round(n * len(inputs) / (len(counts) or 1)) for n in fits)
        long[name] = fewer, cut
    n = sum(map(len, places.values()))
    fewer, cut = (sum(figures) for figures in zip(*long.values(), strict=True))
    left = f"a context of {context:,} tokens less the answer budget of {max(map(_budget, tasks.values())):,}"
    if cut == n:
        raise MedtasksError(
            f"none of the {n:,} prompts fits {left}",
            where="--model_args max_model_len",
            remedy="raise it, or lower --gen_kwargs max_gen_toks; --no-preflight runs and cuts every input",
        )
    most = max(long, key=lambda name: long[name])
    worst = f"(most: {most}, {long[most][0]:,} of {len(places[most]):,})"
    lose = f"examples, {cut:,} of them a part of their input, too" if cut < fewer else "a part of their input"
    said = f"{about}{fewer:,} of {n:,} prompts do not fit {left}, and will lose {lose} {worst}"
    return [said] if fewer else []


def _budget(task: Task) -> int:
    return int((task.config.generation_kwargs or {}).get("max_gen_toks") or 0)
