"""The `medtasks` command: one module per subcommand, imported when it is called."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from medtasks_ext import __version__
from medtasks_ext.cli.human import human
from medtasks_ext.cli.prompts import prompts
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import shows_text, what_happened
from medtasks_ext.registry.folders import add_own_folders
from medtasks_ext.seed import SEED
from medtasks_ext.telemetry import switch_off_telemetry

BAD_INPUT, INTERRUPTED = 2, 130


class _Commands(TyperGroup):
    """All commands; Typer alone would end an interrupted one without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("medtasks: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="medtasks",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Medical LLM benchmarks (BRIDGE, MedHELM, ClinicBench, MLB) on lm-evaluation-harness.",
    epilog="Exit codes: 0 done; 1 something failed or is not valid; 2 bad input; 130 interrupted.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"medtasks {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version.")] = False,
    tasks_dir: Annotated[
        list[str],
        typer.Option(
            metavar="FOLDER",
            help="A folder with datasets or suites of your own; may be repeated. As MEDTASKS_TASKS.",
        ),
    ] = [],  # noqa: B006
) -> None:
    """Options of the command itself."""
    if tasks_dir:
        add_own_folders(tasks_dir)


@app.command("ls")
def ls(
    filters: Annotated[
        list[str] | None, typer.Argument(help="KEY=VALUE on any metadata field, or part of a name.")
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="List groups and how many tasks they hold.")
    ] = False,
    tags: Annotated[bool, typer.Option("--tags", help="List tags and how many tasks they hold.")] = False,
    taxonomy: Annotated[
        bool,
        typer.Option("--taxonomy", help="Show the suites' taxonomies, and the datasets that cover them."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List datasets and whether their data is at hand.

    Example: medtasks ls language=zh access=open
    """
    from medtasks_ext.cli.ls import list_datasets, list_names, list_taxonomy

    if taxonomy:
        list_taxonomy(as_json=json)
    elif groups or tags:
        list_names("groups" if groups else "tags", filters or [], as_json=json)
    else:
        list_datasets(filters or [], as_json=json)


@app.command(
    "run",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def run(context: typer.Context) -> None:
    """Run tasks with lm-eval's own flags; resumable.

    Example: medtasks run --tasks bridge_zh,medhelm_admin --model vllm --model_args pretrained=ORG/MODEL
    --apply_chat_template

    Exit code 1: a task failed, or its data is missing.
    """
    from medtasks_ext.cli.run import run_command

    raise typer.Exit(run_command(context.args))


@app.command(
    "requests",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def requests(context: typer.Context) -> None:
    """Write a run's requests to files for a batch interface.

    Example: medtasks requests --tasks bridge_zh --model openai-chat-completions --model_args model=NAME
    --apply_chat_template -o requests.jsonl

    Exit code 1: requests cannot be put, or data is missing.
    """
    from medtasks_ext.cli.requests import requests_command

    raise typer.Exit(requests_command(context.args))


@app.command("responses")
def responses(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder of the run.")],
    files: Annotated[
        list[str], typer.Argument(metavar="RESULTS...", help="Files of results and errors, in any order.")
    ],
) -> None:
    """Take the results of a batch back, and score what is complete.

    In the format of OpenAI's output and error files, which `vllm run-batch` writes, too, or Anthropic's.

    Example: medtasks responses runs/MODEL results.jsonl errors.jsonl

    Exit code 1: answers are missing, or lines hold no result of this run.
    """
    from medtasks_ext.cli.responses import responses_command

    raise typer.Exit(responses_command(folder, files))


@app.command("plan")
def plan(
    model: Annotated[
        str,
        typer.Argument(help="ORG/MODEL of the hub, a folder with its tokenizer, or a name of model_configs."),
    ],
    tasks: Annotated[str | None, typer.Option("--tasks", help="Tasks, groups or tags.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="All tasks of one suite.")] = None,
    open_only: Annotated[bool, typer.Option("--open", help="All tasks that anyone can download.")] = False,
    strategy: Annotated[
        str | None, typer.Option("--strategy", help="zero_shot, cot or five_shot of the chosen tasks.")
    ] = None,
    max_gen_toks: Annotated[
        int | None, typer.Option("--max_gen_toks", min=1, help="Tokens that an answer may have.")
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option("--max_model_len", min=1, help="Tokens of prompt and answer together, the context."),
    ] = None,
    thinking: Annotated[
        bool | None,
        typer.Option(
            "--thinking/--no-thinking",
            help="Plan it with or without reasoning before its answers; else as it is by default.",
        ),
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, help="GPUs that work together.")] = None,
    gpu_hour_price: Annotated[
        float | None, typer.Option("--gpu-hour-price", min=0.0, help="USD for an hour of one GPU.")
    ] = None,
    throughput: Annotated[
        float | None,
        typer.Option("--throughput", min=1.0, help="Measured tokens per second, prompt and output together."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate what a run takes: documents, tokens, GPU hours, cost.

    Asks no model and fetches no data. Without a choice of tasks: medtasks_scoreable.

    Example: medtasks plan Qwen/Qwen3-8B --suite bridge --strategy cot --gpu-hour-price 2.50
    """
    from medtasks_ext.cli.plan import Hardware, Options, plan_command

    options = Options(
        tasks=tasks,
        suite=suite,
        open=open_only,
        strategy=strategy,
        max_gen_toks=max_gen_toks,
        max_model_len=max_model_len,
        thinking=thinking,
        hardware=Hardware(gpus, gpu_hour_price, throughput),
        as_json=json,
    )
    raise typer.Exit(plan_command(model, options))


@app.command(
    "contamination",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def contamination(context: typer.Context) -> None:
    """Probe whether a model knows test inputs by heart.

    Resumable.

    Example: medtasks contamination --tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL

    Exit code 1: a task failed, or its data is missing.
    """
    from medtasks_ext.cli.contamination import contamination_command

    raise typer.Exit(contamination_command(context.args))


@app.command("merge")
def merge(
    folders: Annotated[list[str], typer.Argument(metavar="SHARD...", help="Folders of the shards of a run.")],
    out: Annotated[str, typer.Option("-o", "--out", help="Folder of the run that they make.")],
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Leave tasks that lack responses without a score; else refuse."),
    ] = False,
) -> None:
    """Join shards of a run, and score it.

    Example: medtasks merge runs/MODEL-shard-* -o runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    from medtasks_ext.cli.merge import merge_command

    raise typer.Exit(merge_command(folders, out, partial=partial))


@app.command("rescore")
def rescore(
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
) -> None:
    """Compute every metric again, without a model.

    From the stored responses.

    Example: medtasks rescore runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    from medtasks_ext.cli.run import rescore_command

    raise typer.Exit(rescore_command(folder))


@app.command("judge")
def judge(
    folders: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    jury: Annotated[str, typer.Option("--jury", help="Jury file, or a bundled one: medhelm, mlb, local.")],
    tasks: Annotated[str | None, typer.Option("--tasks", help="Only these tasks, groups or tags.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print requests, tokens and cost; ask nobody.")
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0.0, help="Stop before these runs have cost more USD in all."),
    ] = None,
    ratings: Annotated[
        str | None,
        typer.Option("--ratings", help="CSV of clinicians' ratings: task, document, rater, axis, score."),
    ] = None,
    decisions: Annotated[
        str | None,
        typer.Option("--decisions", help="A physician's decisions on disputed cases: decisions.jsonl."),
    ] = None,
    allow_gated: Annotated[
        bool, typer.Option("--allow-gated", help="Send text that is not open to judges elsewhere.")
    ] = False,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests", help="Ask nobody: write what can be asked now to FILE-JUDGE, for batches."
        ),
    ] = None,
    responses: Annotated[
        list[str] | None,
        typer.Option("--responses", help="Take the results of batches back; files, one after the other."),
    ] = None,
) -> None:
    """Let a jury of models rate open-ended answers.

    Resumable.

    Example: medtasks judge runs/MODEL --jury medhelm --dry-run

    Exit code 1: judgements are missing.
    """
    from medtasks_ext.cli.judge import judge_command

    raise typer.Exit(
        judge_command(
            folders,
            jury,
            tasks=tasks,
            dry_run=dry_run,
            max_cost=max_cost,
            ratings=ratings,
            decisions=decisions,
            allow_gated=allow_gated,
            requests=requests,
            responses=responses,
        )
    )


@app.command("difficulty")
def difficulty(
    folders: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Folders of the panel's runs, one per model.")
    ],
    tasks: Annotated[str | None, typer.Option("--tasks", help="Only these tasks, groups or tags.")] = None,
    out: Annotated[str, typer.Option("-o", "--out", help="Folder for TASK.json.")] = "difficulty",
) -> None:
    """Grade questions as easy, medium or hard.

    By the answers of a panel of models, as MLB does.

    Example: medtasks difficulty runs/A runs/B runs/C runs/D runs/E --tasks mlb -o difficulty
    """
    from medtasks_ext.cli.difficulty import difficulty_command

    raise typer.Exit(difficulty_command(folders, tasks, out))


@app.command("sample")
def sample(
    files: Annotated[
        list[str], typer.Argument(metavar="LEVELS...", help="Files TASK.json of `medtasks difficulty`.")
    ],
    size: Annotated[int, typer.Option("-n", "--size", min=1, help="Questions to draw from each.")],
    ratio: Annotated[str, typer.Option("--ratio", help="HARD:MEDIUM:EASY.")] = "3:5:2",
    by: Annotated[
        str | None, typer.Option("--by", help="Draw in proportion over this column, e.g. department.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", help="File with columns id and --by; else the task's own rows.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides which questions are drawn.")] = SEED,
    out: Annotated[
        str, typer.Option("-o", "--out", help="List for --samples; tasks already in it are kept.")
    ] = "samples.json",
) -> None:
    """Draw a sample with a mix of difficulty levels.

    Stratified, as MLB does.

    Example: medtasks sample difficulty/mlb_maguidance.json --size 300 --by department -o samples.json

    Exit code 1: the mix is not met.
    """
    from medtasks_ext.cli.sample import sample_command

    raise typer.Exit(sample_command(files, size, ratio=ratio, by=by, rows=rows, seed=seed, out=out))


@app.command("judge-data")
def judge_data(
    files: Annotated[list[str], typer.Argument(metavar="CASES...", help="JSONL files of adjudicated cases.")],
    expert: Annotated[
        list[str] | None,
        typer.Option("--expert", help="Decisions of experts (`medtasks human ingest`), if not in CASES."),
    ] = None,
    test_share: Annotated[
        float, typer.Option("--test-share", help="Share of the questions that are held out.")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", help="Of the split and the order of rows.")] = SEED,
    out: Annotated[str, typer.Option("-o", "--out", help="Folder for the data.")] = "judge_data",
) -> None:
    """Write fine-tuning data of a judge model.

    From cases that experts decided, as MLB does.

    Example: medtasks judge-data queue.jsonl --expert decisions.jsonl -o judge_data
    """
    from medtasks_ext.cli.judge_data import judge_data_command

    raise typer.Exit(judge_data_command(files, expert or [], test_share=test_share, seed=seed, out=out))


@app.command("judge-eval")
def judge_eval(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="CASES...", help="JSONL files of cases.")
    ] = None,
    expert: Annotated[
        list[str] | None, typer.Option("--expert", help="Decisions of experts, if not in CASES.")
    ] = None,
    judge_files: Annotated[
        list[str] | None, typer.Option("--judge", help="Decisions of a judge; once for each judge.")
    ] = None,
    jury: Annotated[
        str | None, typer.Option("--jury", help="Jury file: ask these judges about each point; resumable.")
    ] = None,
    out: Annotated[str, typer.Option("-o", "--out", help="Folder for results.")] = "judge_eval",
    allow_gated: Annotated[
        bool, typer.Option("--allow-gated", help="Send text that is not open to judges elsewhere.")
    ] = False,
    published: Annotated[
        bool, typer.Option("--published", help="Recompute what follows from the paper's own table.")
    ] = False,
) -> None:
    """Compare judges' decisions with experts'.

    On scoring points, as MLB does.

    Example: medtasks judge-eval judge_data/test_cases.jsonl --jury judge.yaml -o judge_eval

    Exit code 1: decisions are missing.
    """
    from medtasks_ext.cli.judge_eval import judge_eval_command

    raise typer.Exit(
        judge_eval_command(
            files or [],
            expert or [],
            judge_files or [],
            jury,
            out=out,
            allow_gated=allow_gated,
            published=published,
        )
    )


@app.command("cite")
def cite(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Tasks, groups, tags, or folders of runs.")
    ],
) -> None:
    """Print the BibTeX of what was used.

    The sources of the datasets, their suites, lm-eval and medtasks.

    Example: medtasks cite runs/MODEL > references.bib
    """
    from medtasks_ext.cli.cite import cite_command

    raise typer.Exit(cite_command(names))


@app.command("ingest")
def ingest(
    folders: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Folders of runs, or of lm_eval --output_path.")
    ],
    store: Annotated[str, typer.Option("--store", help="Folder of the store; made if there is none.")],
    with_text: Annotated[
        bool,
        typer.Option(
            "--with-text",
            help="Store prompts and responses, too: ALL texts, those of gated and private data included.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put runs into a store of Parquet tables.

    Scores per document and results, for report, DuckDB and Polars; no text. All runs go in, or none; a run
    that went on takes the place of its former state.

    Example: medtasks ingest runs/* --store store
    """
    from medtasks_ext.cli.ingest import ingest_command

    raise typer.Exit(ingest_command(folders, store, with_text=with_text, as_json=json))


@app.command("report")
def report(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Folders of runs or stores, or of lm_eval --output_path."),
    ],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Folder for the page (HTML) and the tables (CSV, Parquet)."),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            "--published",
            help="Published models beside yours: a suite, all or none; by default of the suites you ran.",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", help="Only zero_shot, cot or five_shot; repeatable.")
    ] = None,
    no_examples: Annotated[
        bool, typer.Option("--no-examples", help="No answered documents on the page.")
    ] = False,
    include_text: Annotated[
        bool,
        typer.Option("--include-text", help="Show examples of gated and private data, too: patients' text."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Report scores: how good, where, and how sure.

    Any number of runs side by side, with intervals, ranks, paired comparisons and published models.

    Example: medtasks report runs/A runs/B -o report

    Exit code 1: something in the runs could not be used, and is named.
    """
    from medtasks_ext.cli.report import report_command

    raise typer.Exit(
        report_command(
            folders,
            out,
            published=published,
            strategies=strategy or [],
            with_examples=not no_examples,
            include_text=include_text,
            as_json=json,
        )
    )


@app.command("export")
def export(
    suite: Annotated[str, typer.Argument(help="Suite with a leaderboard, such as bridge.")],
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
    out: Annotated[str, typer.Option("-o", "--out", help="Where the folder `result` goes.")] = ".",
) -> None:
    """Write the layout that a leaderboard takes.

    Example: medtasks export bridge runs/MODEL -o submission
    """
    from medtasks_ext.cli.export import export_command

    raise typer.Exit(export_command(suite, folder, out))


@app.command("compare")
def compare(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="BEFORE AFTER", help="Two runs; or one folder that holds two models."),
    ],
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Folder for groups.csv, tasks.csv and flipped.csv.")
    ] = None,
    documents: Annotated[
        int, typer.Option("--documents", min=0, help="Print so many documents of each task that changed.")
    ] = 0,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all groups and tasks, not the largest changes alone.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what changed between two runs or two models.

    By group and by task, with intervals and adjusted p-values, and the documents that changed.

    Example: medtasks compare runs/BASE runs/TUNED --documents 5
    """
    from medtasks_ext.cli.compare import compare_command

    raise typer.Exit(compare_command(paths, out, documents, everything=everything, as_json=json))


@app.command("card")
def card(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs of one model; or what lm_eval wrote."),
    ],
    out: Annotated[str, typer.Option("-o", "--out", help="Folder to write to.")],
) -> None:
    """Write what the author of a model publishes.

    A section for the model card, its front matter with a model-index, .eval_results for the hub, an
    Every-Eval-Ever record, and a manifest to repeat the run.

    Example: medtasks card runs/MODEL -o card
    """
    from medtasks_ext.cli.card import card_command

    raise typer.Exit(card_command(folders, out))


@app.command("figures")
def figures(
    folders: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    suite: Annotated[
        str | None, typer.Option("--suite", help="Suite with such a table; by default the first.")
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", help="zero_shot, as published; cot; five_shot.")
    ] = "zero_shot",
    price: Annotated[
        list[str] | None,
        typer.Option("--price", help="INPUT,OUTPUT in USD per million tokens, one for each run."),
    ] = None,
) -> None:
    """Put runs into a suite's published table.

    MedHELM: win rates, averages, detectable effects, costs. MLB: dimensions, and scores by department.

    Example: medtasks figures runs/MODEL --price 0.15,0.60
    """
    from medtasks_ext.cli.figures import figures_command

    raise typer.Exit(figures_command(folders, suite, strategy, price or []))


@app.command("new")
def new(
    context: typer.Context,
    id: Annotated[str | None, typer.Option("--id", help="DATASET, or SUITE_DATASET.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="Suite that the dataset joins.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Answer kind (docs/answers.md).")] = None,
    language: Annotated[str | None, typer.Option("--language", help="Of the documents: en, zh, …")] = None,
    task_type: Annotated[
        str | None, typer.Option("--task-type", help="What is done with a document.")
    ] = None,
    documents: Annotated[str | None, typer.Option("--documents", help="Kinds of documents: A,B.")] = None,
    specialties: Annotated[
        str | None, typer.Option("--specialties", help="Medical specialties: A,B.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="Clinical stage.")] = None,
    access: Annotated[str | None, typer.Option("--access", help="open, gated, private.")] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option("--axis", metavar="NAME=VALUE", help="A value on an axis of the suite's own."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The dataset's own name.")] = None,
    summary: Annotated[str | None, typer.Option("--summary", help="What goes in, what comes out.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="Where the data is.")] = None,
    licence: Annotated[str | None, typer.Option("--licence", help="Under which terms.")] = None,
    citation: Annotated[str | None, typer.Option("--citation", help="BibTeX key.")] = None,
    n_test: Annotated[int | None, typer.Option("--n-test", min=1, help="Number of test documents.")] = None,
) -> None:
    """Start a dataset folder.

    Asks what the flags do not say; what may wait is marked TODO. Without a terminal nothing is asked.

    Example: medtasks new --id medhelm_falls_clinic --kind exact_letter
    """
    from medtasks_ext.cli.new import new_command

    raise typer.Exit(new_command(context.params))


@app.command("preview")
def preview(
    task: Annotated[str, typer.Argument(help="Dataset (all strategies), or one of its tasks.")],
    strategy: Annotated[str | None, typer.Option("--strategy", help="zero_shot, cot or five_shot.")] = None,
    document: Annotated[int, typer.Option("--document", help="Which test document, from 0.")] = 0,
    data: Annotated[
        str | None, typer.Option("--data", help="sample, local, hub or release; else what a run takes.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", help="Folder or model whose chat template is applied, too.")
    ] = None,
    chat_template: Annotated[
        str | None,
        typer.Option("--chat-template", help="File with a chat template: Jinja, or tokenizer_config.json."),
    ] = None,
    response: Annotated[str | None, typer.Option("--response", help="A response to read and score.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the prompts of a document, and how answers to it are read.

    To the letter, without and with a chat template; with the gold answer and the score of an answer.

    Example: medtasks preview medhelm_medqa --data sample --response "The answer is B."
    """
    from medtasks_ext.cli.preview import preview_command

    raise typer.Exit(
        preview_command(
            task,
            strategy=strategy,
            document=document,
            data=data,
            tokenizer=tokenizer,
            chat_template=chat_template,
            response=response,
            as_json=json,
        )
    )


@app.command("validate")
def validate(
    names: Annotated[list[str] | None, typer.Argument(help="Dataset ids or folders; all by default.")] = None,
) -> None:
    """Check dataset folders.

    Schema, prompts, sample rows, an oracle, garbage.

    Example: medtasks validate medhelm_hospice_referral

    Exit code 1: a folder has problems.
    """
    from medtasks_ext.cli.validate import validate_command

    raise typer.Exit(validate_command(names or []))


@app.command("build")
def build(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a page is stale.")] = False,
) -> None:
    """Build what follows from task files.

    Variants, tags and groups for lm-eval, the schema for editors, the catalogue; in a checkout the page of
    the commands.

    Example: medtasks build

    Exit code 1: with --check, the page of the commands is stale.
    """
    from medtasks_ext.cli.build import build_command

    raise typer.Exit(build_command(check=check))


@app.command("lock")
def lock(
    names: Annotated[
        list[str], typer.Argument(metavar="[NAME]...", help="Tasks or groups; all by default.")
    ] = [],  # noqa: B006
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if a version must rise.")
    ] = False,
) -> None:
    """Write tasks.lock: what scores follow from.

    Where prompts, readings or scores of sample rows changed and the version's number did not, nothing is
    written, and the task is named.

    Example: medtasks lock --check

    Exit code 1: a task changed without a new version.
    """
    from medtasks_ext.cli.lock import lock_command

    raise typer.Exit(lock_command(names, check=check))


data = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="See, check, fetch and bring data.")
app.add_typer(data, name="data")
app.add_typer(human, name="human")
app.add_typer(prompts, name="prompts")


@data.command("status")
def data_status(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER...]", help="Tasks, tags, groups; KEY=VALUE; part of a name."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show where each dataset would be read from now.

    Rows are counted and checked where they are on this machine. Nothing is downloaded.

    Example: medtasks data status bridge_zh access=gated
    """
    from medtasks_ext.cli.data import status_command

    raise typer.Exit(status_command(words or [], as_json=json))


@data.command("where")
def data_where(
    words: Annotated[
        list[str], typer.Argument(metavar="TASK...", help="Tasks, tags, groups; KEY=VALUE; part of a name.")
    ],
) -> None:
    """Tell how data is got, and where which files go.

    Example: medtasks data where medhelm_ehrshot
    """
    from medtasks_ext.cli.data import where_command

    raise typer.Exit(where_command(words))


@data.command("check")
def data_check(
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Data folder; by default MEDTASKS_DATA_DIR.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    show_text: Annotated[
        bool, typer.Option("--show-text", help="Quote values that are wrong: they may be patients' texts.")
    ] = False,
) -> None:
    """Check local files against the schemas of their datasets.

    Every row is read as a run would read it. Names that nobody looks for are listed.

    Example: medtasks data check /data/medtasks

    Exit code 1: something is not valid, a name looks mistyped, or nothing was found.
    """
    from medtasks_ext.cli.data import check_command

    raise typer.Exit(check_command(folder, as_json=json, show_text=show_text))


@data.command("fetch")
def data_fetch(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER...]", help="Tasks, tags, groups; KEY=VALUE; by default all."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Folder to carry to a machine without internet, as its MEDTASKS_DATA_DIR."),
    ] = None,
) -> None:
    """Download open datasets once, for use without internet.

    Resumable; a second call checks what is there against the hashes that were recorded.

    Example: medtasks data fetch medtasks_scoreable --to /media/stick

    Exit code 1: a dataset could not be had.
    """
    from medtasks_ext.cli.data import fetch_command

    raise typer.Exit(fetch_command(words or [], to))


@data.command("template")
def data_template(
    name: Annotated[str, typer.Argument(help="Dataset or group, for example medhelm_clear.")],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Data folder; by default MEDTASKS_DATA_DIR, else ./medtasks_data."),
    ] = None,
) -> None:
    """Write the files that a dataset's owner fills.

    Columns, one example row, and an empty row file where rows cannot be downloaded.

    Example: medtasks data template medhelm_clear -o /data/medtasks
    """
    from medtasks_ext.cli.data import template_command

    raise typer.Exit(template_command(name, out))


@app.command("path")
def path(
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="Print the file of this task.")] = "",
) -> None:
    """Print the folder of the tasks for lm-eval's --include_path.

    With a task's name: the file that a person wrote, for `include:` in a file of your own.

    Example: lm_eval --include_path "$(medtasks path)" --tasks bridge_mie --model vllm --model_args
    pretrained=ORG/MODEL --batch_size auto
    """
    from medtasks_ext.cli.build import path_command

    typer.echo(path_command(task))


@app.command("doctor")
def doctor() -> None:
    """Check the installation.

    lm-eval, copies of the tasks, names, data folder.

    Example: medtasks doctor

    Exit code 1: something needs attention.
    """
    from medtasks_ext.cli.doctor import doctor_command

    raise typer.Exit(doctor_command())


def main() -> None:
    """Entry point: user errors become one message, exit code 2."""
    switch_off_telemetry()
    try:
        app(standalone_mode=True)
    except MedtasksError as error:
        typer.echo(f"medtasks: {error}", err=True)
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # a defect; what it says may quote a row
        if shows_text():
            raise
        typer.echo("".join(traceback.format_tb(error.__traceback__)), err=True, nl=False)
        typer.echo(f"medtasks: {what_happened(error)} (MEDTASKS_SHOW_TEXT=1 shows all of it)", err=True)
        sys.exit(1)
