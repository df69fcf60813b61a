"""`medtasks preview`: the prompts of one document, and how answers to it are read and scored."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.commands import AsJson, Origin, Prompts
from medtasks_ext.cli.tables import SAMPLE_DATA, short, write, write_heading
from medtasks_ext.cli.words import say_next
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry import registry
from medtasks_ext.registry.groups import left_to_write
from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset

#: Metrics that say something else than how good an answer is.
_NO_QUALITY = ("score", "valid", "scored", "unclosed_reasoning", "SAMPLE_DATA")
_say = partial(write, whole=True)


def preview(
    task: Annotated[str, Argument(help="A task: DATASET, DATASET_cot, DATASET_5shot.")],
    document: Annotated[int, Argument(help="Which test document, from 0.")] = 0,
    data: Origin = None,
    prompts: Prompts = None,
    tokenizer: Annotated[
        str | None, Option(help="Model whose chat template is applied: a folder, or ORG/MODEL of the hub.")
    ] = None,
    response: Annotated[str | None, Option(help="A response to read and score.")] = None,
    as_json: AsJson = False,
) -> int:
    """Show the prompt of a document, and how answers to it are read.

    To the letter; with the gold answer and the score of an answer.

    Example: medtasks preview medhelm_medqa --data sample --response "The answer is B."
    """
    quiet()
    tasks, forced = registry(), forced_origin(data)
    if tasks.asked(task) is None:
        leaves = tasks.leaves_of([task])
        what, remedy = f"{task!r} stands for {len(leaves)} tasks", f"name one, such as {leaves[0]}"
        raise MedtasksError(what, where="TASK", remedy=remedy)
    dataset = tasks.known(task)[0]
    if origin_of(dataset, forced) is None:
        what = f"no rows are at hand: {where_it_goes(dataset)}"
        remedy = f"put them there; invented rows: medtasks preview {task} --data sample"
        raise MedtasksError(what, remedy=remedy)
    from medtasks_ext.prompts.official.words import prompt_source_of
    from medtasks_ext.runner.evaluate import Settings, takes_system_turn
    from medtasks_ext.runner.preview import preview, renderer_of, token_counter

    settings, template = Settings(data=forced, prompts=prompt_source_of(prompts)), None
    if tokenizer:
        _, loaded, why = token_counter(tokenizer, provider=False, trusted=False)
        if not getattr(loaded, "chat_template", None):
            what, remedy = why or "the tokenizer has no chat template", "leave it out, as for a base model"
            raise MedtasksError(what, where=f"--tokenizer {tokenizer}", remedy=remedy)
        template = renderer_of(loaded)
        settings = replace(settings, system_role=takes_system_turn(template))
    seen = preview(tasks, task, settings, place=document, template=template, response=response)
    if as_json:
        typer.echo(json.dumps(seen, ensure_ascii=False, indent=1, default=str))
    else:
        _print(seen, dataset, f"the chat template of {tokenizer}" if tokenizer else "")
        if left := left_to_write(*tasks.known(task)):
            _say(f"not written yet, so no run asks it: {some(left)}", "bold yellow")
        say_next(f"medtasks run --tasks {task} --model vllm --model_args pretrained=ORG/MODEL --limit 2")
    return 0


def _print(seen: Json, dataset: Dataset, template: str) -> None:
    loaded, artefact = seen["loaded"], seen["loaded"].get("artefact")
    sample = loaded["origin"] == "sample"
    _say(f"{seen['task']} ({seen['strategy']})", "bold")
    if draft := dataset.metadata.draft:
        _say(f"DRAFT, in no group: {draft}", "bold yellow")
    if sample:
        _say(SAMPLE_DATA, "bold yellow")
    _say(f"document {seen['place']} of {loaded['n_test']} (from 0), id {seen['id']}; {loaded['where']}")
    asked = f"{loaded['instruction']} prompt{f' of {artefact}' if artefact else ''}; "
    asked += f"{seen['shots']} examples; " if seen["shots"] else ""
    settings = f"settings: {json.dumps(seen['generation'], ensure_ascii=False)}"
    _say(asked + ("likelihood of each possible answer" if seen["options"] else settings))
    if budget := seen["official_budget"]:
        _say(f"a model that does not reason has {budget}, as in the suite's own runs")
    title = f"prompt with {template}" if template else "prompt without a chat template"
    write_heading(f"{title} ({len(seen['prompt']):,} characters)")
    typer.echo(seen["prompt"])  # to the letter, also tabs
    write_heading("gold answer")
    _say(seen["target"] or "(none: this row is predicted, not scored)", "green")
    if seen["gold"] is not None:
        _say(f"compared as: {short(seen['gold'])}", "dim")
    if seen["options"]:
        write_heading(f"possible answers ({len(seen['options'])}), each of them behind the prompt")
        for option in seen["options"]:
            _say(repr(option))
    else:
        write_heading("how answers are read and scored")
        from medtasks_ext.answers import answer_format

        if lacking := answer_format(dataset.blocks["answer"]).unknown_language():
            _say(lacking, "yellow")
        for answer in seen["answers"]:
            _print_answer(answer, seen, "SAMPLE " if sample else "")
    typer.echo()


def _print_answer(answer: Json, seen: Json, mark: str) -> None:
    _say(f"{answer['name']}: {answer['response']!r}", "bold")
    if answer["valid"]:
        span, why = answer["span"], answer["why"]
        place = f"characters {span[0] + 1} to {span[1]}" if span else ""  # from 1
        said = "; ".join(filter(None, (why, place)))
        read = f"  {answer['reader']} reading: {short(answer['parsed'])}"
        _say(f"{read} ({said})" if said else read)
    else:
        what = "no answer can be read in it; it counts as the suite's rule says (docs/metric_names.md)"
        _say(f"  {what}", "red")
    score = answer["metrics"].get("score")
    if seen["judged"]:
        _say("  score: given by judges (medtasks judge)")
    elif score is not None:
        _say(f"  {mark}score {score:.4g}", "green" if score >= 1 else "yellow")
    elif seen["trial"] is not None:
        _say(f"  asking {seen['trial'] + 1} of its question; only all of them together have a score")
    elif seen["gold"] is not None:
        _say("  no score: what its metric needs is not installed, as the warning says", "yellow")
    if others := {key: value for key, value in answer["metrics"].items() if key not in _NO_QUALITY}:
        _say(f"  {mark}{', '.join(f'{key} {value:.4g}' for key, value in others.items())}", "dim")
