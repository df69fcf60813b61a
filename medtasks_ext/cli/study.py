"""Studies of contamination, difficulty and departments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks_ext.cli.app import OnlyTasks, Origin, out_option
from medtasks_ext.cli.arguments import (
    lm_eval_config,
    out_folder,
    own_flags,
    quiet,
    requested_tasks,
    say_faults,
)
from medtasks_ext.cli.asking import Asking, ask_jury, asks_jury, end_study
from medtasks_ext.cli.studies import show_tables
from medtasks_ext.cli.words import names_in, say, say_changed, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry import registry
from medtasks_ext.registry.row_labels import LEVELS
from medtasks_ext.seed import SEED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lm_eval.config.evaluate_config import EvaluatorConfig

    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.prompts.documents import Document

PANEL = "Studies"
AFTER_INTERRUPT = "goes on"


def _documents(
    names: Iterable[str], data: str | None, limit: float | None, *, strict: bool = False
) -> tuple[dict[str, list[Document]], dict[str, MedtasksError]]:
    """Dataset -> its first test documents, each question once; and what is wrong with the others."""
    from medtasks_ext.prompts import load_documents
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_ext.runs.choice import Choice

    found, faults = {}, {}
    known, origin = registry(), forced_origin(data)
    for name in dict.fromkeys(known.tasks[leaf][0].id for leaf in names):
        try:
            documents = load_documents(known.datasets[name], cot=False, origin=origin, prompts="own")["test"]
            once = [document for document in documents if not document.get("trial")]
            found[name] = [once[place] for place in Choice(limit=limit).places(len(once))]
        except MedtasksError as error:
            faults[name] = error
    say_faults(faults, stop=strict or not found)
    return found, faults


_DESCRIPTION = """Does a model continue the inputs of a task word for word? BRIDGE's contamination probe: each
test input is cut at tokens 10, 15, 20, 25 and 30; it counts as leaked when at least three times the next
five tokens are predicted exactly. Takes lm-eval's flags that name a model, tasks and an output folder. The
same command continues an interrupted probe. Besides:

  --strict            stop if the data of any task is missing
  --data ORIGIN       read data from: local, hub, release or sample (synthetic rows, to try the command)
  --allow-host HOST   send text that is gated or private to this host, too; repeatable

Needs a model that continues plain text and whose tokenizer is known: hf, vllm, local-completions.
Without --output_path the results go to runs/MODEL.
"""
#: lm-eval flags that would change what is asked.
_REFUSED = dict.fromkeys(
    [
        *("apply_chat_template", "system_instruction", "fewshot_as_multiturn", "num_fewshot", "gen_kwargs"),
        *("samples", "seed", "use_cache", "cache_requests", "log_samples", "check_integrity", "write_out"),
        *("predict_only", "wandb_args", "trackio_args"),
    ],
    "the model continues the plain input, greedily, as long as the rule says; use --limit for fewer",
)


def contamination(context: typer.Context) -> int:
    """Probe whether a model knows test inputs by heart.

    Resumable.

    Example: medtasks study contamination --tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL

    Exit code 1: a task failed, or its data is missing.
    """
    quiet()
    from medtasks_ext.cli.end import say_sent
    from medtasks_ext.cli.model import check_address, check_one_process, model_name, output_folder
    from medtasks_ext.egress import Egress
    from medtasks_ext.runner.requests import dataset_text
    from medtasks_ext.runs.lease import Lease
    from medtasks_ext.runs.manifest import identity_of
    from medtasks_ext.runs.sent import SentLog
    from medtasks_ext.studies.contamination import FILE, probe
    from medtasks_ext.studies.said import study

    check_one_process()
    own, rest = own_flags().parse_known_args(context.args)
    example = "--tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
    config = lm_eval_config(rest, "study contamination", _DESCRIPTION, example, _REFUSED, keys=own.allow_key)
    address = str(config.model_args.get("base_url") or "")
    if "chat" in config.model or address.rstrip("/").endswith("/chat/completions"):
        raise MedtasksError(
            "a chat endpoint answers a text and does not continue it",
            where=f"--model {config.model}",
            remedy="use hf, vllm, or local-completions: base_url=…/v1/completions,tokenizer=ORG/MODEL",
        )
    tasks, resolved = requested_tasks(config)
    documents, faults = _documents(
        [leaf for leaves in resolved.values() for leaf in leaves], own.data, config.limit, strict=own.strict
    )
    texts = {name: dataset_text(tasks.datasets[name], items[0].loaded) for name, items in documents.items()}
    folder, identity = output_folder(config), identity_of(config.model, config.model_args, {})
    egress = Egress.of(own.allow_host).recording(SentLog(folder).add)
    check_address(config, egress, texts.values())
    failed: dict[str, MedtasksError] = {}
    with Lease(
        folder, "medtasks study contamination", private=not all(text.is_open for text in texts.values())
    ):
        content: dict[str, Any] = {"name": model_name(config), "identity": identity.model, "tasks": {}}
        if (folder / FILE).is_file() and (content := read_json(folder / FILE))["identity"] != identity.model:
            raise MedtasksError(
                "holds the probe of another model", where=folder, remedy="another --output_path"
            )
        write_json(
            folder / FILE, content
        )  # before the first request: it says whose responses the folder holds
        engine, tokenizer, fixed = _continuing(config, egress, texts.values())
        for name, items in documents.items():
            loaded = items[0].loaded.record
            try:
                row = probe(
                    name,
                    items,
                    tokenizer,
                    engine,
                    folder,
                    identity=identity.digest,
                    fixed=fixed,
                    text=texts[name],
                )
            except MedtasksError as error:
                failed[name] = error
                continue
            content["tasks"][name] = {"origin": loaded["origin"], "rows_hash": loaded["rows_hash"], **row}
            write_json(folder / FILE, content)
            say(f"{name}: {row['n_leaked']:,} of {row['n_probed']:,} leaked")
    rows = [{"task": name, **content["tasks"][name]} for name in documents if name in content["tasks"]]
    sample = any(row["origin"] == "sample" for row in rows)
    show_tables(study("contamination")["tables"], {"tasks": rows, "model": content["name"]}, sample=sample)
    for name, fault in failed.items():
        say(f"✗ {name}: {fault.what}; {fault.remedy}")
    say_sent(folder)
    if rows:
        say(f"results: {folder / FILE}")
        say_next(f"medtasks report RUN --by {folder}")
    return int(bool(failed or faults))


def _continuing(
    config: EvaluatorConfig, egress: Any, texts: Iterable[Any]
) -> tuple[Engine, Any, dict[str, Any]]:
    """The engine of a model, its tokenizer, and generation settings that make it greedy."""
    from medtasks_ext.cli.model import create_model
    from medtasks_ext.egress import hold
    from medtasks_ext.studies.contamination import ModelTokenizer

    is_api, held = "completions" in config.model, list(texts)
    if is_api:  # the server splits the text as its model needs it, beginning-of-text token included
        config.model_args.setdefault("tokenized_requests", False)
    try:
        loaded = create_model(config)
    except MedtasksError as error:
        if not is_api or "tokenizer" in config.model_args or error.where != "--model_args":
            raise
        raise MedtasksError(
            error.what, where=error.where, remedy="name the tokenizer: tokenizer=ORG/MODEL"
        ) from None
    engine, tokenizer = loaded.engine(say=say, egress=egress), ModelTokenizer(loaded.lm)
    engine.check(held)
    if tokenizer.is_remote:  # the server is given the texts before they are cut
        place = egress.place(engine.address)
        hold(place, egress)
        for text in held:
            egress.record(place, text)
    # hf would take a repetition penalty from the model's own defaults; servers need not know the name
    fixed: dict[str, Any] = {"do_sample": False, "temperature": 0.0}
    return engine, tokenizer, fixed if is_api else {**fixed, "repetition_penalty": 1.0}


def difficulty(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of the panel's runs, one per model.")
    ],
    tasks: OnlyTasks = None,
    out: Annotated[str, out_option("Folder for TASK.json.")] = "difficulty",
) -> int:
    """Grade questions as easy, medium or hard.

    By the answers of a panel of models, as MLB does.

    Example: medtasks study difficulty runs/A runs/B runs/C runs/D runs/E --tasks mlb -o difficulty
    """
    from medtasks_ext.studies.difficulty import PAPERS_PANEL, grade, write_levels

    say_changed(folders)
    known = registry()
    graded = grade(folders, known, list(dict.fromkeys(known.leaves_of(names_in(tasks)) if tasks else [])))
    written = [write_levels(Path(out), levels) for levels in graded]
    rows = [
        {
            **levels,
            "questions": len(levels["questions"]),
            **{name: levels["counts"].get(name, 0) for name in LEVELS},
        }
        for levels in graded
    ]
    columns = {name: f"{{{name}}}" for name in ("task", "method", "questions", *LEVELS)}
    table = {"frame": "rows", "names": 2, "columns": columns}
    show_tables([table], {"rows": rows}, sample=any(levels["origin"] == "sample" for levels in graded))
    if len(folders) != PAPERS_PANEL:
        typer.echo(f"the paper's panel has {PAPERS_PANEL} models; easy: all are right, medium: all but one")
    typer.echo("\n".join(map(str, written)))
    say_next(f"medtasks study sample {written[0]} --size 300 -o samples.json")
    return 0


@asks_jury("Jury file with one model, which labels.")
def departments(
    tasks: Annotated[str, typer.Option(help="Whose test questions are labelled: tasks, groups, tags.")],
    sample: Annotated[
        Path | None, typer.Option(help="Labels of people to agree with: columns task, id, department.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first N questions of each task.")] = None,
    data: Origin = None,
    out: Annotated[str, out_option("Folder for TASK.json.")] = "departments",
    *,
    asking: Asking,
) -> int:
    """Label questions with clinical departments by a model.

    Up to three of a two-tier list, or none, as MLB does; with the agreement with people where rows or a file
    name departments. Resumable.

    Example: medtasks study departments --tasks mlb --jury labeller.yaml -o departments

    Exit code 1: labels are missing.
    """
    quiet()
    from medtasks_ext.studies import departments as label
    from medtasks_ext.studies.said import study

    if len(asking.jury.models) != 1:
        raise MedtasksError(
            "has several models", where=f"--jury {asking.name}", remedy="name one: it labels alone"
        )
    documents, _ = _documents(registry().leaves_of(names_in(tasks)), data, limit)
    people, rubric = label.people_of(documents, sample), label.DepartmentRubric()
    if strangers := {task for task, _ in people} - documents.keys():
        raise MedtasksError(
            f"{min(strangers)} is not labelled", where=f"--sample {sample}", remedy="name it with --tasks"
        )
    cases = [
        label.texts_to_label(registry().datasets[name], items, rubric) for name, items in documents.items()
    ]
    asked = ask_jury(asking, cases, Path(out), "medtasks study departments", "labels of questions")
    if asked is None:
        return 0
    made = [label.labelled(task, asked[0], rubric, documents[task.name][0].loaded.record) for task in cases]
    for labels in made:
        write_json(out_folder(out) / f"{labels['task']}.json", labels)
    named = {(of["task"], row["id"]): row["department"] for of in made for row in of["questions"]}
    tables = {
        "tasks": [label.summary_of(labels) for labels in made],
        "agreed": label.agreement(people, named),
    }
    synthetic = any(case.synthetic for task in cases for case in task.cases)
    show_tables(study("departments")["tables"], tables, sample=synthetic)
    say_next(f"medtasks report RUN --by {out}")
    return end_study(asked[1], sum(len(labels["missing"]) for labels in made), "labels of questions")


def sample(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="LEVELS...", help="Files TASK.json of `medtasks study difficulty`."),
    ],
    size: Annotated[int, typer.Option("-n", "--size", min=1, help="Questions to draw from each.")],
    ratio: Annotated[str, typer.Option(help="HARD:MEDIUM:EASY.")] = "3:5:2",
    by: Annotated[
        str | None, typer.Option(help="Draw in proportion over this column, e.g. department.")
    ] = None,
    rows: Annotated[Path | None, typer.Option(help="File with columns id and --by.")] = None,
    seed: Annotated[int, typer.Option(help="Decides which questions are drawn.")] = SEED,
    out: Annotated[Path, out_option("List for --samples; tasks already in it are kept.")] = Path(
        "samples.json"
    ),
) -> int:
    """Draw a sample with a mix of difficulty levels.

    Stratified, as MLB does.

    Example: medtasks study sample difficulty/mlb_maguidance.json --size 300 --by department -o samples.json

    Exit code 1: the mix is not met.
    """
    from medtasks_ext.rows.files import read_rows
    from medtasks_ext.studies.difficulty import read_levels
    from medtasks_ext.studies.sample import draw, parse_ratio, strata_of

    shares, lists = parse_ratio(ratio), read_json(out) if out.is_file() else {}
    graded, reports, met, drawn = [read_levels(path) for path in files], {}, True, []
    for levels in graded:
        of = {row["id"]: row["level"] for row in levels["questions"]}
        strata = strata_of(levels, read_rows(rows) if rows else None, by) if by else dict.fromkeys(of, "")
        ids, report = draw(of, strata, size, shares, seed)
        chosen = set(ids)
        # in the order of the documents: lm-eval pairs the list with them one by one
        places = sorted(
            place for row in levels["questions"] if row["id"] in chosen for place in row["documents"]
        )
        lists.update(dict.fromkeys(levels["same_documents"], places))
        about = {"size": size, "ratio": ratio, "by": by, "seed": seed, "rows_hash": levels["rows_hash"]}
        reports[levels["task"]] = {**about, **report, "ids": ids}
        drawn += [{"task": levels["task"], "of": by or "level", "name": row["stratum"], **row}
                  for row in report["strata"] if by and row["drawn"] != row["wanted"]]  # fmt: skip
        drawn += [
            {"task": levels["task"], "of": "level", "name": row["level"], **row} for row in report["levels"]
        ]
        met &= all(row["drawn"] == row["wanted"] for row in report["levels"])
    write_json(out, lists)
    write_json(out.with_suffix(".report.json"), reports)
    columns = {
        "task": "{task}",
        "of": "{of}",
        "": "{name}",
        **{name: f"{{{name}}}" for name in ("pool", "wanted", "drawn")},
    }
    table = {"frame": "drawn", "names": 3, "columns": columns}
    show_tables([table], {"drawn": drawn}, sample=any(levels["origin"] == "sample" for levels in graded))
    typer.echo(f"{out}: for --samples; {out.with_suffix('.report.json')}: what was aimed at and drawn")
    if not met:
        typer.echo("not met: the pool has too few of a level; other levels make up the size")
    say_next(
        f"medtasks run {','.join(reports)} --samples {out} --model vllm --model_args pretrained=ORG/MODEL"
    )
    return int(not met)
