"""Before a run all prompts are held against the context, and its first answer is looked at.

What is said are warnings, since a base model or a long answer may be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from medtasks_ext.answers.reasoning import reasoning_of, traces
from medtasks_ext.engines import CONTENT_FILTER, Answer, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import shown
from medtasks_ext.prompts.fit import tokenizer_of
from medtasks_ext.runner.evaluate import Settings, answer_budget, prompts_of, reader_of
from medtasks_ext.runner.preview import counter_of
from medtasks_ext.runner.tally import REASONING_BUDGET

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Task

#: Long prompts of a task that are tokenised; of more, they are drawn evenly and counts scaled.
COUNTED = 100

#: What stands between turns in some template, or in a conversation written out.
_ROLE_MARKERS = re.compile(
    r"<\|(?:im_start|im_end|user|assistant|system|start_header_id|end_header_id|eot_id|end|endoftext)\|>"
    r"|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|<｜(?:User|Assistant)｜>"
    r"|^[ \t]*(?:#+[ \t]*)?(?:User|Human|Assistant|Instruction|用户|助手)[ \t]*[:：]",
    re.MULTILINE,
)


def check_budget(context: int | None, tasks: Mapping[str, Task]) -> None:
    """Refuse a token budget that leaves no room for the prompt; vLLM would cut the prompt away.

    `context`: tokens of prompt and answer; None: unknown.
    """
    budget, most = max(((answer_budget(task), name) for name, task in tasks.items()), default=(0, ""))
    if context is not None and budget >= context:
        raise MedtasksError(
            f"the answer budget of {budget:,} tokens ({most}) leaves no room in a context of {context:,}",
            where="--gen_kwargs max_gen_toks",
            remedy=f"lower it, for example --gen_kwargs max_gen_toks={context // 4}, or raise max_model_len",
        )


def look_at_prompts(
    model: LM, tasks: Mapping[str, Task], places: Mapping[str, Sequence[int]], settings: Settings
) -> Iterator[str]:
    """What is wrong with the prompts of a run; `places`: task -> places of the documents to ask."""
    tokenizer, context = tokenizer_of(model), getattr(model, "max_length", None)
    if not settings.templated and getattr(tokenizer, "chat_template", None):
        yield (
            "the tokenizer has a chat template and it is not applied: right for a base model; an instruct "
            "model needs --apply_chat_template (in another --output_path)"
        )
    if tokenizer is None or not isinstance(context, int):
        return
    count = counter_of(tokenizer) or (lambda texts: [len(model.tok_encode(text)) for text in texts])
    about = ""
    lose = dict[str, tuple[int, int]]()  # task -> prompts that lose something, and a part of their input
    for name in filter(places.get, tasks):
        task, documents = tasks[name], [tasks[name].eval_docs[place] for place in places[name]]
        with suppress(MedtasksError):  # a template that refuses: said when the task's turn comes
            room, how = context - answer_budget(task), (settings, model.apply_chat_template)
            # a token covers at least one byte: short ones need no counting; around inputs stands the same
            around = _bytes(*prompts_of(task, documents[:1], *how)) - _bytes(shown(documents[0]))
            long = [document for document in documents if _bytes(shown(document)) + around > room]
            some = long[:: len(long) // COUNTED + 1]
            about = "about " if len(some) < len(long) else about
            sizes = (count(prompts_of(task, some, *how, shots)) for shots in (None, 0))
            fewer, cut = (sum(size > room for size in each) * len(long) / (len(some) or 1) for each in sizes)
            lose[name] = round(fewer), round(cut)
    n = sum(map(len, places.values()))
    fewer, cut = (sum(figures[i] for figures in lose.values()) for i in (0, 1))
    budget = max(map(answer_budget, tasks.values()))
    left = f"a context of {context:,} tokens less the answer budget of {budget:,}"
    if cut == n:
        raise MedtasksError(
            f"none of the {n:,} prompts fits {left}",
            where="--model_args max_model_len",
            remedy="raise it, or lower --gen_kwargs max_gen_toks; --no-preflight runs and cuts every input",
        )
    if fewer:
        most = max(lose, key=lambda name: lose[name])
        part = "a part of their input"
        what = f"examples, {cut:,} of them {part}, too" if cut < fewer else part
        worst = f"(most: {most}, {lose[most][0]:,} of {len(places[most]):,})"
        yield f"{about}{fewer:,} of {n:,} prompts do not fit {left}, and will lose {what} {worst}"


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def look_at_answer(task: Task, request: Request, answer: Answer) -> tuple[str, list[str]]:
    """What the first answer of a run shows, and what is wrong with it; no word of it."""
    usage, budget, wrong, shows = answer.usage, answer_budget(task), list[str](), list[str]()
    if usage:
        written = "1 token" if usage.completion == 1 else f"{usage.completion:,} tokens"
        shows += [f"{usage.prompt:,} tokens of prompt", f"{written} of response"]
    if not request.options:
        begin, end, unclosed = reasoning_of(answer.text)
        opening = tuple(one.open for one in traces())
        opened = not begin and str(request.prompt).rstrip().lower().endswith(opening)
        endless, cut = unclosed or opened, answer.finish == "length"
        said, within = "" if endless else answer.text[begin:end], f"did not end within its {budget:,} tokens"
        if endless:
            wrong.append(
                f"the model reasons before it answers, and its reasoning {within}; without an end there is "
                f"no answer: --gen_kwargs max_gen_toks={max(REASONING_BUDGET, 2 * budget)}, or switch "
                "reasoning off (Qwen3: --model_args …,enable_thinking=False)"
            )
        elif cut:
            wrong.append(
                f"the response {within}: the model may not know where to stop "
                "(chat template, end token), or answers are longer than that; the budget cuts them off"
            )
        elif answer.finish == CONTENT_FILTER:
            wrong.append("the server's filter took the answer away: such answers count as none")
        elif not said.strip():
            what = "nothing after its reasoning" if begin else "an empty response"
            wrong.append(
                f"the model gave {what}: check the chat template; behind an endpoint, hidden reasoning may "
                "have used up the budget (--gen_kwargs max_gen_toks)"
            )
        if marker := _ROLE_MARKERS.search(said):
            wrong.append(
                f"the response holds {marker[0].strip()!r}: the model goes on with a turn that is not its "
                "own, as with a wrong chat template or end token"
            )
        shows += ["it reasons first"] if endless or begin else []
        with suppress(Exception):  # the score will say it; a look must not end a run
            if not cut:
                valid = reader_of(task)(request.row or {}, answer.text)["valid"]
                shows.append("an answer could be read" if valid else "no answer could be read")
    return f"one question of {request.task}: {', '.join(shows) or 'answered'}", wrong
