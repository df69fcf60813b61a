"""Contamination, difficulty, departments, samples, choice of a prompt, forms for experts."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.arguments import (
    check_address,
    check_one_process,
    create_model,
    lm_eval_config,
    model_name,
    out_folder,
    output_folder,
    quiet,
    requested_tasks,
    say_faults,
)
from medtasks_ext.cli.commands import DryRun, OnlyTasks, out_option
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.judge import ask_jury, end_code
from medtasks_ext.cli.tables import show_tables
from medtasks_ext.cli.words import names_in, say, say_changed, say_next
from medtasks_ext.egress import Egress, hold
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.judge.cases import judged_tasks
from medtasks_ext.judge.jury import load_jury
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.sources import forced_origin
from medtasks_ext.run.store import Answers
from medtasks_ext.runs.manifest import Choice, identity_of
from medtasks_ext.strict import read_mapping
from medtasks_ext.studies import forms as experts_forms
from medtasks_ext.studies import judge_data, labels
from medtasks_ext.studies.contamination import FILE, ModelTokenizer, probe
from medtasks_ext.studies.difficulty import draw, grade, strata_of
from medtasks_ext.studies.prompts import chosen, write_wordings
from medtasks_ext.studies.said import study, write_tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medtasks_ext.judge.asking import End


def _documents(names: Iterable[str], limit: float | None = None) -> Any:
    """Dataset -> its first test documents, each question once; and whether others have none."""
    found, faults, known, origin = {}, dict[str, MedtasksError](), registry(), forced_origin()
    for name in dict.fromkeys(known.tasks[leaf][0].id for leaf in names):
        try:
            documents = load_documents(known.datasets[name], cot=False, origin=origin, prompts="own")["test"]
            once = [document for document in documents if not document.get("trial")]
            found[name] = [once[place] for place in Choice(limit=limit).places(len(once))]
        except MedtasksError as error:
            faults[name] = error
    say_faults(faults, stop=not found)
    return found, bool(faults)


def _end(end: End | None, missing: int, what: str) -> int:
    again = f"missing in all: {missing:,} {what}; the same command asks for them again"
    return end_code(end, missing=missing > 0, again=again)


_CONTAMINATION = """Does a model continue the inputs of a task word for word? BRIDGE's contamination probe:
each test input is cut at tokens 10, 15, 20, 25 and 30; it counts as leaked when at least three times the
next five tokens are predicted exactly. Takes lm-eval's flags that name a model, tasks and an output folder.
The same command continues an interrupted probe.

Needs a model that continues plain text and whose tokenizer is known: hf, vllm, local-completions.
Without --output_path the results go to runs/MODEL.
"""
#: lm-eval flags that would change what is asked.
_REFUSED = dict.fromkeys(
    ["apply_chat_template", "system_instruction", "fewshot_as_multiturn", "num_fewshot", "gen_kwargs",
     "samples", "seed", "use_cache", "cache_requests", "log_samples", "check_integrity", "write_out",
     "predict_only", "wandb_args", "trackio_args"],
    "the model continues the plain input, greedily, as long as the rule says; use --limit for fewer",
)  # fmt: skip


def contamination(context: typer.Context) -> int:
    """Probe whether a model knows test inputs by heart; resumable.

    Example: medtasks study contamination --tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL

    Exit code 1: a task failed, or its data is missing.
    """
    quiet()
    from medtasks_ext.run.lm import Remembering

    check_one_process()
    example = "--tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
    config = lm_eval_config(context.args, "study contamination", _CONTAMINATION, example, _REFUSED)
    address = str(config.model_args.get("base_url") or "")
    if "chat" in config.model or address.rstrip("/").endswith("/chat/completions"):
        what = "a chat endpoint answers a text and does not continue it"
        remedy = "use hf, vllm, or local-completions: base_url=…/v1/completions,tokenizer=ORG/MODEL"
        raise MedtasksError(what, where=f"--model {config.model}", remedy=remedy)
    _, resolved = requested_tasks(config)
    names = [leaf for leaves in resolved.values() for leaf in leaves]
    documents, lacking = _documents(names, config.limit)
    loaded_of = {name: items[0].loaded for name, items in documents.items()}
    folder, identity = output_folder(config), identity_of(config.model, config.model_args, {})
    egress, texts = Egress.of([]), {of.text for of in loaded_of.values()}
    check_address(config, egress, texts)
    path, rows, failed = folder / FILE, list[dict[str, Any]](), list[str]()
    with closing(Answers(folder, command="medtasks study contamination")) as answers:
        egress = egress.recording(answers.sent)
        content: dict[str, Any] = {"name": model_name(config), "identity": identity.model, "tasks": {}}
        if path.is_file() and (content := read_json(path))["identity"] != identity.model:
            what = "holds the probe of another model"
            raise MedtasksError(what, where=folder, remedy="another --output_path")
        write_json(path, content)  # before the first request: it says whose answers the folder holds
        # hf would take a repetition penalty from the model's own defaults; servers need not know the name
        fixed: dict[str, Any] = {"do_sample": False, "temperature": 0.0}
        if "completions" in config.model:  # the server splits texts as its model needs, with its first token
            config.model_args.setdefault("tokenized_requests", False)
        else:
            fixed["repetition_penalty"] = 1.0
        model, engine = create_model(config, egress)
        tokenizer = ModelTokenizer(model)
        if tokenizer.is_remote:  # the server is given the texts before they are cut
            hold(place := egress.place(engine.addresses[0]), egress)
            for text in texts:
                egress.record(place, text)
        with closing(Remembering(model, engine, answers, identity.digest)) as lm:
            for name, items in documents.items():
                of = {key: loaded_of[name].record[key] for key in ("origin", "rows_hash")}
                try:
                    row = content["tasks"][name] = {**of, **probe(name, items, lm, tokenizer, fixed)}
                except MedtasksError as error:
                    failed.append(f"✗ {name}: {error.what}; {error.remedy}")
                    continue
                write_json(path, content)
                rows.append({"task": name, **row})
                say(f"{name}: {row['n_leaked']:,} of {row['n_probed']:,} leaked")
    sample = any(row["origin"] == "sample" for row in rows)
    show_tables(study("contamination")["tables"], {"tasks": rows, "model": content["name"]}, sample=sample)
    for line in failed:
        say(line)
    say_sent(folder)
    if rows:
        say(f"results: {path}")
        say_next(f"medtasks report RUN --by {folder}")
    return int(bool(failed) or lacking)


def difficulty(
    folders: Annotated[list[Path], Argument(metavar="RUN...", help="The panel's runs, one a model.")],
    tasks: OnlyTasks = None,
) -> int:
    """Grade questions as easy, medium or hard.

    By the answers of a panel of models, as MLB does, into difficulty/TASK.json.

    Example: medtasks study difficulty runs/A runs/B runs/C runs/D runs/E --tasks mlb
    """
    say_changed(folders)
    graded = grade(folders, registry(), registry().leaves_of(names_in(tasks)))
    files = [out_folder("difficulty") / f"{levels['task']}.json" for levels in graded]
    for file, levels in zip(files, graded, strict=True):
        write_json(file, levels)
    rows = [{**levels, "questions": len(levels["questions"]), **levels["counts"]} for levels in graded]
    sample = any(levels["origin"] == "sample" for levels in graded)
    show_tables(study("difficulty")["tables"], {"rows": rows}, sample=sample)
    typer.echo("\n".join(map(str, files)))
    say_next(f"medtasks study sample {files[0]} --size 300")
    return 0


def departments(
    tasks: Annotated[str, Option(help="Whose questions: tasks or groups.")],
    jury: Annotated[str, Option(metavar="JURY", help="Jury file with one model, which labels.")],
    dry_run: DryRun = False,
) -> int:
    """Label questions with clinical departments by a model.

    Up to three of a two-tier list, or none, as MLB does, into departments/TASK.json. Resumable.

    Example: medtasks study departments --tasks mlb --jury labeller.yaml

    Exit code 1: labels are missing.
    """
    quiet()
    labeller, out, what = load_jury(jury), Path("departments"), "labels of questions"
    if len(labeller.models) != 1:
        raise MedtasksError("has several models", where=f"--jury {jury}", remedy="name one")
    documents, _ = _documents(registry().leaves_of(names_in(tasks)))
    rubric = labels.DepartmentRubric()
    cases = [labels.texts_to_label(name, items, rubric) for name, items in documents.items()]
    asked = ask_jury(labeller, cases, out, "medtasks study departments", what, dry_run=dry_run)
    if asked is None:
        return 0
    rows, missing = [], 0
    for task in cases:
        labelled = labels.labelled(task, asked[0], documents[task.name][0].loaded.record)
        write_json(out_folder(out) / f"{task.name}.json", labelled)
        n = {"questions": len(task.cases), "labelled": len(labelled["questions"])}
        rows.append({"task": task.name, **n})
        missing += len(labelled["missing"])
    synthetic = any(case.synthetic for task in cases for case in task.cases)
    show_tables(study("departments")["tables"], {"tasks": rows}, sample=synthetic)
    say_next(f"medtasks report RUN --by {out}")
    return _end(asked[1], missing, what)


def sample(
    files: Annotated[list[Path], Argument(metavar="LEVELS...", help="Files of `study difficulty`.")],
    size: Annotated[int, Option("-n", "--size", min=1, help="Questions to draw from each.")],
    by: Annotated[
        str | None, Option(help="Strata: `department`, of the rows, or a file of `study departments`.")
    ] = None,
) -> int:
    """Draw a sample with a mix of difficulty levels.

    Hard, medium and easy 3:5:2, stratified, as MLB does, into samples.json for --samples; other tasks stay.

    Example: medtasks study sample difficulty/mlb_maguidance.json --size 300 --by department

    Exit code 1: the mix is not met.
    """
    out = Path("samples.json")
    lists = read_json(out) if out.is_file() else {}
    graded, drawn = [labels.read_levels(path) for path in files], list[dict[str, Any]]()
    for levels in graded:
        of = {row["id"]: row["level"] for row in levels["questions"]}
        strata = strata_of(levels, by) if by else None
        ids, frame = draw(of, strata, size)
        # in the order of the documents: lm-eval pairs the list with them one by one
        chosen = [place for row in levels["questions"] if row["id"] in ids for place in row["documents"]]
        lists.update(dict.fromkeys(levels["same_documents"], sorted(chosen)))
        drawn += [{"task": levels["task"], **row} for row in frame]
    met = all(row["drawn"] == row["wanted"] for row in drawn if row["of"] == "level")
    write_json(out, lists)
    synthetic = any(levels["origin"] == "sample" for levels in graded)
    show_tables(study("sample")["tables"], {"drawn": drawn}, sample=synthetic)
    typer.echo(f"{out}: for --samples")
    if not met:
        typer.echo("not met: the pool has too few of a level; other levels make up the size")
    names = ",".join(levels["task"] for levels in graded)
    say_next(f"medtasks run {names} --samples {out} --model vllm --model_args pretrained=ORG/MODEL")
    return int(not met)


def choose(file: Annotated[Path, Argument(help="YAML file of a task and its wordings.")]) -> int:
    """Choose among wordings of a prompt.

    First it writes 100 rows of the few-shot pool, never test rows, for each wording, into a folder of the
    file's name without its ending. Run them with several models (ClinicBench: three wordings, three models);
    the same command then names the best mean.

    Example: medtasks study prompts wordings.yaml
    """
    quiet()
    given, known = read_mapping(file), registry()
    out = file.with_suffix("") if file.suffix else file.with_name(f"{file.name}_rows")
    task, wordings = str(given.get("task")), given.get("wordings")
    if (
        task not in known.datasets
        or not (isinstance(wordings, dict) and len(set(map(str, wordings.values()))) == len(wordings) >= 2)
        or not all(isinstance(text, str) and str(name).isalnum() for name, text in wordings.items())
    ):
        what = "names no dataset as `task`, or no two `wordings`, each with a name and a text of its own"
        raise MedtasksError(what, where=file, remedy="docs/evaluate.md has such a file")
    if not out.exists():
        with private_files(known.datasets[task].metadata.access != "open"):
            n, of = write_wordings(out, known.datasets[task], wordings)
        typer.echo(f"{len(wordings)} wordings on {n} rows of the few-shot pool's {of:,}")
        place, model = f"{shlex.quote(str(out))}/WORDING", "--config MODEL --output_path"
        say_next(
            f"MEDTASKS_DATA_DIR={place} medtasks run --tasks {task} {model} {place}/runs/MODEL",
            "the same command chooses",
        )
        return 0
    found = chosen(out, task, wordings, known)
    rows = [{"wording": name, "model": one, "score": score} for name, of in found["scores"].items()
            for one, score in {"mean": found["means"][name], **of}.items()]  # fmt: skip
    show_tables(study("prompts")["tables"], {**found, "rows": rows}, sample=found["SAMPLE_DATA"])
    if found["tied"]:
        typer.echo(f"equal means: {', '.join(found['tied'])}; the first of the file is chosen")
    typer.echo(f"results: {out}/selection.json")
    return 0


def forms(
    sources: Annotated[
        list[str],
        Argument(
            metavar="SOURCE...",
            help="Runs; points: a JSONL file; review: tasks; survey: a suite. With --key: filled forms.",
        ),
    ],
    out: Annotated[str, out_option("Folder for forms and key, or for the results.")],
    kind: Annotated[
        str,
        Option(
            help="pairwise: answers of two runs, four questions; points: one answer, its scoring points; "
            "likert: answers of runs, rated on the axes of their jury; review: test items, five criteria; "
            "survey: a suite's taxonomy."
        ),
    ] = "pairwise",
    tasks: Annotated[str | None, Option(help="What of the runs: tasks or groups.")] = None,
    documents: Annotated[int, Option("-n", "--documents", min=1, help="Documents per task.")] = 100,
    experts: Annotated[int | None, Option(min=1, max=99, help="By default as in the paper.")] = None,
    key: Annotated[Path | None, Option(help="key.json of the forms: read the filled ones, *.csv.")] = None,
) -> int:
    """Write blinded forms for experts, or read the filled ones.

    One HTML page per expert, and the key that stays with you. With --key, what the pages exported is checked
    against the key; then rates, intervals and agreement are computed, of complete rows.

    Example: medtasks study forms runs/MODEL runs/GPT4 --tasks clinicbench_patient_education -o forms

    Example: medtasks study forms filled/*.csv --key forms/key.json -o results
    """
    quiet()
    if key is not None:
        return _read([Path(name) for name in sources], key, out)

    if kind not in experts_forms.KINDS:
        remedy = f"use {', '.join(experts_forms.KINDS)}"
        raise MedtasksError(f"no kind {kind!r}", where="--kind", remedy=remedy)
    of_runs, n = kind in ("pairwise", "likert"), experts or study(f"forms/kinds/{kind}")["experts"]
    if of_runs != bool(tasks) or (kind in ("points", "survey") and len(sources) > 1):
        what = "--tasks names what of runs is shown" if of_runs or tasks else "takes one source"
        remedy = "`medtasks study forms --help` says what each kind takes"
        raise MedtasksError(what, where=f"--kind {kind}", remedy=remedy)
    names = registry().leaves_of(names_in(",".join(sources) if kind == "review" else tasks))
    if of_runs:
        say_changed(map(Path, sources))
    made = experts_forms.KINDS[kind](experts_forms.Wanted(sources, names, registry(), documents, n))
    with private_files(True):  # forms quote answers and rows, and the key undoes the blinding
        *pages, written = experts_forms.write_forms(made, kind, Path(out))
    typer.echo("\n".join(f"wrote {path}" for path in pages))
    if "gated" in made["notices"]:
        say("the forms hold the texts: hand them only to people whom the agreement for the data permits")
    typer.echo(f"keep {written} to yourself: it says which answer is whose")
    say_next("have them filled", f"medtasks study forms *.csv --key {written} -o {out}_results")
    return 0


def _read(files: list[Path], key_file: Path, out: str) -> int:
    key = experts_forms.read_key(key_file)
    rows, missing = experts_forms.read_forms(files, key)
    tables, kind = experts_forms.tables_of(rows, key), study(f"forms/kinds/{key['kind']}")
    with private_files(True):
        experts_forms.write_results(out_folder(out), key, rows, missing, tables)
    for form, some_rows in missing.items():
        say(f"{form}: {len(some_rows)} of {len(key['forms'][form])} rows are missing from all figures")
    show_tables(kind["tables"], tables, sample=bool(key.get("SAMPLE_DATA")))
    typer.echo(f"results: {out}")
    say_next(kind["next"].format(out=out, runs=" ".join(run["folder"] for run in key.get("runs", ()))))
    return 0


def gold(
    folders: Annotated[list[str], Argument(metavar="RUN...", help="Folders of runs.")],
    jury: Annotated[str, Option(metavar="JURY", help="Jury file, or a bundled one; one judge is enough.")],
    tasks: OnlyTasks = None,
    dry_run: DryRun = False,
) -> int:
    """Let models flag doubtful reference answers.

    And compare the jury's scores of answers with and without a flagged reference, into gold. Resumable.

    Example: medtasks study gold runs/MODEL --jury jury.yaml --dry-run

    Exit code 1: verdicts are missing.
    """
    quiet()
    from medtasks_ext.runner.run import Run

    out, what = Path("gold"), "verdicts on references"
    judges, wanted = load_jury(jury), set(registry().leaves_of(names_in(tasks)))
    names = dict.fromkeys(given.rstrip("/") for given in folders)
    runs, judged = {name: Run(Path(name), registry()) for name in names}, []
    for run in runs.values():
        run.load()
        done = [name for name in run.manifest.tasks if run.is_done(name) and (not tasks or name in wanted)]
        judged += judged_tasks(run.folder, registry(), done)
    say_changed(run.folder for run in runs.values())
    if not (cases := judge_data.gold_cases(judged)):
        fault = "no finished task of these runs is judged beside a reference"
        remedy = "`medtasks run` an open-ended task that has references first"
        raise MedtasksError(fault, where=", ".join(runs), remedy=remedy)
    asked = ask_jury(judges, cases, out, "medtasks study gold", what, dry_run=dry_run)
    if asked is None:
        return 0
    tables = judge_data.gold_tables(cases, asked[0], {name: run.files for name, run in runs.items()})
    write_tables(out, "gold", tables, judges=[judge.identity() for judge in judges.judges])
    synthetic = any(case.synthetic for task in cases for case in task.cases)
    show_tables(study("gold")["tables"], tables, sample=synthetic)
    code = _end(asked[1], sum(row["missing"] for row in tables["tasks"]), what)
    if not code:
        judge = f"medtasks judge {' '.join(runs)} --jury {jury}"
        say_next(f"medtasks view {' '.join(runs)}" if tables["scores"] else judge)
    return code


def judge_models(
    files: Annotated[list[Path], Argument(metavar="CASES...", help="JSONL files of cases.")],
    expert: Annotated[list[Path] | None, Option(help="Decisions of experts, if not in CASES.")] = None,
    decided: Annotated[list[Path] | None, Option("--judge", help="Decisions of a judge; repeatable.")] = None,
    jury: Annotated[
        str | None, Option(metavar="JURY", help="Jury file: ask these judges about each point; resumable.")
    ] = None,
) -> int:
    """Write training data of a judge, or compare judges with experts.

    Of cases whose scoring points experts decided, as MLB does: a tenth of the questions is held out, into
    judge_data. With --jury or --judge: accuracy, precision, recall, F1 and kappa of their decisions, into
    judge_eval.

    Example: medtasks study judge queue.jsonl --expert decisions.jsonl

    Example: medtasks study judge judge_data/test_cases.jsonl --jury judge.yaml

    Exit code 1: decisions are missing.
    """
    quiet()
    cases = judge_data.read_cases(files)
    truth = judge_data.expert_decisions(cases, expert or [])
    if not decided and not jury:
        return _write_data(cases, truth, Path("judge_data"))
    by_judge = {str(path): judge_data.decisions_about(cases, path) for path in decided or []}
    end, out = None, Path("judge_eval")
    if jury:
        judges = load_jury(jury)
        task, keys = judge_data.points_to_judge(cases, truth, registry())
        asked = ask_jury(judges, [task], out, "medtasks study judge", "decisions on points", dry_run=False)
        assert asked is not None  # which is so after a dry run alone
        said, end = asked
        by_judge |= {name: {} for name in judges.names}
        for (_, document), ratings in said.items():
            for judge, rated in ratings.items():
                by_judge[judge][keys[document]] = any(rated.values())
    figures = [row for name, by in by_judge.items() for row in judge_data.evaluate(cases, truth, by, name)]
    points = [row for row in figures if row["measure"] == "points"]
    undecided = [{"judge": row["judge"], "n": row["of"] - row["n"]} for row in points if row["n"] < row["of"]]
    write_tables(out_folder(out), "judge_eval", {"figures": figures})
    show_tables(study("judge_eval")["tables"], {"figures": figures, "undecided": undecided})
    code = _end(end, sum(row["n"] for row in undecided), "decisions on points")
    if not code:
        judge = "medtasks judge RUN --jury JURY --dry-run"
        say_next("name the judge as adjudicator in a jury file", judge)
    return code


def _write_data(cases: dict[str, judge_data.Case], truth: judge_data.Decisions, out: Path) -> int:
    with private_files(True):  # rows hold questions and answers
        sides = judge_data.write_split(out, judge_data.split_by_question(cases, truth))
    line = "{side}: {questions:,} questions, {answers:,} answers, {points:,} points ({share:.1%} met)"
    show_tables([{"frame": "sides", "line": line}], {"sides": sides})
    points = sum(len(case["points"]) for case in cases.values())
    if left := points - len(truth):
        typer.echo(f"left out: {left:,} of {points:,} points, which no expert has decided")
    say_next(
        "train a model on it (docs/judges.md)", f"medtasks study judge {out}/test_cases.jsonl --jury JURY"
    )
    return 0
