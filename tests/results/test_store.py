"""A store keeps what runs found out, in a form that is read without the runs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.registry import registry
from medtasks_ext.results.document_scores import (
    DocumentScores,
    load_document_scores,
    save_document_scores,
    score_statistic,
)
from medtasks_ext.results.entries import read_results
from medtasks_ext.results.frames import schema
from medtasks_ext.results.store.ingest import ingest
from medtasks_ext.results.store.resample import _compact, _sums, open_store, task_bootstrap
from medtasks_ext.stats.bootstrap import resample, resampling_weights, score_interval
from tests.conftest import unsealed, write_jsonl

#: pooled F1 over clusters, in two strategies; questions with trials; means of runs; a mean; not judged yet
TASKS = (
    "bridge_mie",
    "bridge_mie_cot",
    "mlb_cmexam",
    "medhelm_ehrshot",
    "medhelm_hospice_referral",
    "medhelm_aci_bench",
)


def run_tasks(folder, *more, tasks=TASKS, model="random-label"):
    from medtasks_ext.cli.run import run_command

    arguments = ["--model", model, "--tasks", ",".join(tasks), "--output_path", str(folder), *more]
    assert run_command(arguments) == 0
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on sample rows, to be copied."""
    folder = run_tasks(tmp_path_factory.mktemp("runs") / "run", "--data", "sample")
    counted = {"tokens": {"input": 900, "output": 80}, "cut": {"answers_cut": 1}}
    edit(folder / "tasks" / "bridge_mie.json", lambda item: item.update(counted))
    return folder


@pytest.fixture
def run(made, tmp_path):
    """Copies of a run; `started` and `pretrained` make another one of it."""

    def call(name="run", **changes):
        folder = shutil.copytree(made, tmp_path / name)
        unsealed(folder)
        manifest = json.loads((folder / "run.json").read_text())
        manifest["started"] = changes.get("started", manifest["started"])
        if "pretrained" in changes:
            manifest["identity"]["model"]["model_args"] = {"pretrained": changes["pretrained"]}
        (folder / "run.json").write_text(json.dumps(manifest))
        return folder

    return call


def put(store, *folders, **options):
    return ingest([Path(folder) for folder in folders], store, registry(), **options)


def states(store, *folders, **options):
    items, faults = put(store, *folders, **options)
    assert faults == []
    return [item.state for item in items]


def read(*paths):
    results = read_results([Path(path) for path in paths], registry())
    assert results.faults == []
    return results.entries


def contents(store):
    return {path: path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def words(store):
    """Everything that the files of a store say."""
    parts = [str(pq.ParquetFile(path).read().to_pydict()) for path in store.rglob("*.parquet")]
    return "".join([*parts, *(path.read_text() for path in store.rglob("*.json"))])


def edit(file, change):
    unsealed(file)
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def forget(folder, task):
    """Make a run as it was before a task was done."""
    edit(folder / "run.json", lambda item: item["tasks"].update({task: {"state": "waiting"}}))
    (folder / "tasks" / f"{task}.json").unlink()


def spoil(folder, what, task="medhelm_hospice_referral"):
    """Change the documents of a task."""
    file = folder / "tasks" / f"{task}.parquet"
    if what == "cut short":
        file.write_bytes(file.read_bytes()[:-200])
    elif what == "missing":
        file.unlink()
    else:
        known = load_document_scores(file, score_statistic(registry().tasks[task][0]))
        scored, scores, counts = known.scored.copy(), known.scores.copy(), known.counts.copy()
        scores[3] = np.nan
        if what == "NaN":
            counts[3, 0] = np.nan
        else:
            scored[3], counts[3] = False, 0
        save_document_scores(file, replace(known, scored=scored, scores=scores, counts=counts))


def as_lm_eval(folder, target):
    """The run in lm-eval's own layout."""
    content = json.loads((folder / "results.json").read_text())
    content |= {"config": {"model": "vllm", "model_args": "pretrained=org/model"}, "date": 1.5}
    target.mkdir()
    (target / "results_2026-01-01T00-00-00.json").write_text(json.dumps(content))
    for task in content["configs"]:
        shutil.copy(folder / f"samples_{task}.jsonl", target / f"samples_{task}_2026-01-01T00-00-00.jsonl")
    return target


# ---------------------------------------------------------------------- what is in it


@pytest.mark.parametrize("plain", [False, True], ids=["medtasks", "lm_eval"])
def test_a_store_gives_what_the_run_folder_gave(run, tmp_path, plain):
    folder = as_lm_eval(run(), tmp_path / "plain") if plain else run()
    put(tmp_path / "store", folder)
    [before] = read(folder)
    shutil.move(folder, tmp_path / "gone")
    [entry] = read(tmp_path / "store")
    shutil.move(tmp_path / "gone", folder)
    for name in ("model", "label", "kind", "conditions", "words", "notes", "sample"):
        assert getattr(entry, name) == getattr(before, name), name
    assert entry.experiments.keys() == before.experiments.keys() == set(TASKS)
    for task, stored in entry.experiments.items():
        original = before.experiments[task]
        for name in (
            "dataset",
            "strategy",
            "version",
            "metrics",
            "intervals",
            "n",
            "conditions",
            "words",
            "loaded",
        ):
            assert getattr(stored, name) == getattr(original, name), (task, name)
        assert (stored.cut, stored.tokens, stored.sample) == (original.cut, original.tokens, original.sample)
        config = json.loads(json.dumps(original.config))
        assert config["metadata"].pop("medtasks") and stored.config == config
        one, other = original.read_documents(), stored.read_documents()
        assert (one.documents, one.contents) == (other.documents, other.contents)
        for name in ("units", "scored", "scores", "valid", "unclosed", "counts"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=f"{task} {name}")
        draws = original.read_resampled()
        assert (stored.read_resampled() is None) == (draws is None) == (task == "medhelm_aci_bench")
        if draws is not None:
            np.testing.assert_allclose(stored.read_resampled(), draws, rtol=0, atol=1e-12)


def test_results_are_a_tidy_table_for_polars_and_duckdb(run, tmp_path):
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    model = "Org/Modell Ü: 模型 100%"
    folder, store = run(pretrained=model), tmp_path / "store"
    put(store, folder)
    [entry] = read(folder)
    expected = sorted(
        (item.dataset.metadata.suite, item.strategy, task, metric, value)
        for task, item in entry.experiments.items()
        for metric, value in item.metrics.items()
    )
    columns = "suite, strategy, task, metric, value"
    [file] = store.glob("run-*/results.parquet")
    glob = f"{store}/run-*/results.parquet"
    polars = pl.read_parquet(glob).filter(pl.col("value").is_not_null())
    assert sorted(polars.select(columns.split(", ")).rows()) == expected
    assert polars["model"].unique().to_list() == [model] and polars["sample"].all()
    found = duckdb.sql(
        f"select {columns} from read_parquet('{glob}') where value is not null and model = '{model}'"
    )
    assert sorted(found.fetchall()) == expected
    interval = entry.experiments["bridge_mie"].intervals["score"]
    row = polars.filter(task="bridge_mie", metric="score").row(0, named=True)
    assert (row["interval_low"], row["interval_high"]) == (interval.low, interval.high)
    assert row["prompt"] == entry.experiments["bridge_mie"].words["prompt"]
    assert row["settings"] == "; ".join(f"{name}: {value}" for name, value in entry.words.items())
    entries = pl.read_parquet(f"{store}/run-*/documents.parquet")["entry"]
    assert polars["entry"].unique().to_list() == entries.unique().to_list() == [file.parent.name[4:16]]
    assert pq.read_schema(file).names == schema("results").names


def test_documents_are_a_table_whose_means_are_the_scores(run, tmp_path):
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    folder, store = run(), tmp_path / "store"
    put(store, folder)
    [entry] = read(folder)
    glob = f"{store}/run-*/documents.parquet"
    frame = pl.scan_parquet(glob).filter(task="medhelm_hospice_referral", suite="medhelm").collect()
    score = entry.experiments["medhelm_hospice_referral"].score
    assert frame["score"].mean() == pytest.approx(score) and len(frame) == frame["document"].n_unique()
    [(mean, n)] = duckdb.sql(
        f"select avg(score), count(*) from '{glob}' where task = 'medhelm_hospice_referral'"
    ).fetchall()
    assert (mean, n) == (pytest.approx(score), len(frame))
    unscored = duckdb.sql(f"select distinct score, scored from '{glob}' where task = 'medhelm_aci_bench'")
    assert unscored.fetchall() == [(None, False)]


# ---------------------------------------------------------------------- putting runs in


def test_the_same_run_twice_changes_no_byte(run, medtasks, tmp_path):
    folder, store = run(), tmp_path / "store"
    outcome = medtasks("ingest", folder, "--store", store)
    assert outcome.code == 0 and "1 new" in outcome.out and "SAMPLE" in outcome.err
    before = contents(store)
    again = medtasks("ingest", folder, folder, "--store", store, "--json")
    assert contents(store) == before
    [item] = json.loads(again.out)["runs"]
    assert (item["state"], item["tasks"], item["model"]) == ("unchanged", len(TASKS), "random-label")


def test_a_run_that_went_on_takes_the_place_of_its_former_state(run, tmp_path):
    whole, part, store = run("whole"), run("part"), tmp_path / "store"
    for task in ("bridge_mie_cot", "mlb_cmexam"):
        forget(part, task)
    assert states(store, part) == ["new"] and states(store, whole) == ["replaced"]
    assert set(read(store)[0].experiments) == set(TASKS)
    assert states(store, part) == ["replaced"]
    [entry] = read(store)
    assert set(entry.experiments) == set(TASKS) - {"bridge_mie_cot", "mlb_cmexam"}
    [file] = store.glob("run-*/results.parquet")
    assert set(pq.read_table(file)["suite"].to_pylist()) == {"bridge", "medhelm"}


def test_a_run_that_was_scored_again_takes_the_place_of_its_former_state(run, tmp_path):
    folder, store = run(), tmp_path / "store"
    put(store, folder)
    edit(folder / "tasks" / "mlb_cmexam.json", lambda item: item["metrics"].update(score=0.123))
    assert states(store, folder) == ["replaced"]
    assert read(store)[0].experiments["mlb_cmexam"].score == 0.123
    assert len(list(store.glob("run-*"))) == 1


def test_two_runs_of_one_model_are_both_kept(run, tmp_path):
    store = tmp_path / "store"
    one, other = run("one"), run("other", started="2031-01-01T00:00:00")
    edit(other / "tasks" / "mlb_cmexam.json", lambda item: item["metrics"].update(score=0.123))
    assert states(store, one, other) == ["new", "new"]
    results = read_results([store], registry())
    assert [entry.label for entry in results.entries] == ["random-label", "random-label #2"]
    assert "disagrees" in results.faults[0].what


def test_runs_and_stores_can_be_read_together(run, tmp_path):
    stored, other = run("a", pretrained="org/a"), run("b", pretrained="org/b")
    put(tmp_path / "store", stored)
    assert [entry.label for entry in read(tmp_path / "store", other, stored)] == ["org/a", "org/b"]


def test_one_run_in_two_states_is_refused_and_nothing_is_stored(run, tmp_path):
    one, other = run("one"), run("other")
    forget(other, "mlb_cmexam")
    with pytest.raises(MedtasksError, match="in another state"):
        put(tmp_path / "store", one, other)
    with pytest.raises(MedtasksError, match="no results"):
        read(tmp_path / "store")
    assert states(tmp_path / "store", one) == ["new"]


# ---------------------------------------------------------------------- texts


def test_no_text_is_stored_unless_asked_for_and_it_leaves_again(medtasks, data_dir, tmp_path):
    marker = "Mrs Marker of 12 Secret Lane"
    rows = [{"prompt": "Eligible?", "context": f"{marker} {n}", "label": "AB"[n % 2]} for n in range(12)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    folder = run_tasks(tmp_path / "run", tasks=["medhelm_hospice_referral"])
    error = {"state": "failed", "error": marker, "traceback": f"Traceback\n  ...\nKeyError: '{marker}'\n"}
    edit(folder / "run.json", lambda item: item["tasks"].update(bridge_mie=error))
    store = tmp_path / "store"
    medtasks("ingest", folder, "--store", store)
    assert marker not in words(store)
    manifest = read(store)[0].manifest
    assert manifest["tasks"]["bridge_mie"] == {"state": "failed", "error": "KeyError"}
    assert read(store)[0].experiments["medhelm_hospice_referral"].read_samples is None

    outcome = medtasks("ingest", folder, "--store", store, "--with-text")
    assert "with texts: replaced" in outcome.err and marker in words(store)
    records = read(folder)[0].experiments["medhelm_hospice_referral"].read_samples()
    stored = read(store)[0].experiments["medhelm_hospice_referral"]
    assert stored.read_samples() == records and stored.read_samples(2) == records[:2]

    assert "1 replaced" in medtasks("ingest", folder, "--store", store).out
    assert marker not in words(store)
    assert "gated and private" in " ".join(medtasks("ingest", "--help").out.split())


# ---------------------------------------------------------------------- resampling


@settings(max_examples=25)
@given(st.integers(2, 40), st.integers(1, 4), st.sampled_from(["whole", "fractions", "large"]), st.data())
def test_all_models_at_once_are_resampled_as_each_alone(n, models, kind, data):
    """Pooled F1 and means of models on the same documents, some of them unscored, in clusters or not."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    scale = {"whole": 1, "fractions": 0.3, "large": 10**7}[kind]
    matrices = [rng.integers(0, 9, (n, 3)) * scale * 1.0 for _ in range(models)]
    for matrix in matrices:
        matrix[:, 2] = matrices[0][:, 2]  # what is to be found is the same for all
    weights = resampling_weights("d", n)
    totals, sums = _sums([_compact(matrix.T) for matrix in matrices], weights)
    np.testing.assert_allclose(totals, [matrix.sum(axis=0) for matrix in matrices], rtol=1e-13)
    assert sums.shape == (1000, models, 3) and sums.dtype == float
    for place, matrix in enumerate(matrices):
        expected = np.array([(weight[:, None] * matrix).sum(axis=0) for weight in weights.astype(float)])
        np.testing.assert_allclose(sums[:, place], expected, rtol=1e-13 if kind == "fractions" else 0)
    scores = DocumentScores([], [], np.arange(n), np.ones(n, bool), [], [], [], matrices[0], micro_f1)
    alone = resample([scores.by_unit()], "d")["score"].values
    np.testing.assert_allclose(micro_f1.value(sums[:, 0]), alone, rtol=1e-12)


def test_task_bootstrap_gives_every_score_and_interval(run, tmp_path):
    store = tmp_path / "store"
    folders = [run(f"{n}", pretrained=f"org/{n}") for n in range(3)]
    spoil(folders[2], "without gold")  # of one document, so that this model's resamples are others
    put(store, *folders)
    opened = open_store(store, registry())
    found = {
        (run, task): (value, draws, interval)
        for item in task_bootstrap(opened)
        for (run, task), value, draws, interval in zip(
            item.experiments, item.values, item.resampled, item.intervals, strict=True
        )
    }
    assert len(found) == 3 * (len(TASKS) - 1)  # one is not judged yet
    by_model = {run.model: name for name, run in opened.runs.items()}
    for entry in read(*folders):
        for task, experiment in entry.experiments.items():
            documents = experiment.read_documents()
            if not documents.scored.any():
                continue
            value, draws, interval = found[by_model[entry.model], task]
            expected = resample([documents.by_unit()], experiment.dataset.id)["score"].values
            assert value == pytest.approx(documents.value)
            np.testing.assert_allclose(draws, expected, rtol=0, atol=1e-12)
            stated = score_interval(documents.by_unit(), experiment.dataset.id)
            assert interval == pytest.approx([stated.low, stated.high])
    some = list(task_bootstrap(opened, ["mlb_cmexam"]))
    assert [item.dataset.id for item in some] == ["mlb_cmexam"] and len(some[0].experiments) == 3


# ---------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("index", "said", "remedy"),
    [
        ('{"schema": 0, "medtasks": "0.1.0"}', "damaged", "ingest again from the run folders"),
        ('{"schema": 4, "runs": []}', "a newer version (layout 4, this one reads 1 to 3)", "upgrade"),
        ('{"schema": 3, "runs": {"a"', "damaged", "ingest again from the run folders"),
        ('{"schema": 3, "runs": ["a"]}', "damaged", "medtasks ingest RUN... --store NEW"),
    ],
)
def test_a_store_that_cannot_be_read_is_refused_and_left_alone(run, tmp_path, medtasks, index, said, remedy):
    store = tmp_path / "store"
    put(store, run())
    (store / "medtasks-store.json").write_text(index)
    before = contents(store)
    for arguments in (("ingest", run("other"), "--store", store), ("report", store, "-o", "report")):
        outcome = medtasks(*arguments)
        assert outcome.code == 2 and said in outcome.err and remedy in outcome.err
    assert contents(store) == before


def as_layout_2(store):
    """The store as the version before wrote it: results and records of tasks in one table."""
    names = {"entry": "run", "task_version": "version"} | {
        f"{side}_tokens": f"tokens_{side}" for side in ("input", "output")
    }
    own = (
        "suite model strategy task entry dataset task_version sample n prompt data rows rebuilt examples jury"
    )
    own += " input_tokens output_tokens metric value interval_low interval_high"
    for folder in store.glob("run-*"):
        results, tasks = (pq.read_table(folder / f"{name}.parquet") for name in ("results", "tasks"))
        records = {row["task"]: row for row in tasks.to_pylist()}
        found = results.select(own.split())
        for name in ("cut", "loaded", "conditions", "config"):
            found = found.append_column(name, [[records[task][name] for task in found["task"].to_pylist()]])
        tables = {"results": found, "documents": pq.read_table(folder / "documents.parquet")}
        if (folder / "responses.parquet").is_file():
            tables["responses"] = pq.read_table(folder / "responses.parquet")
        for name, table in tables.items():
            renamed = [names.get(column, column) for column in table.column_names]
            pq.write_table(table.rename_columns(renamed), folder / f"{name}.parquet", row_group_size=2**14)
        (folder / "tasks.parquet").unlink()
        edit(folder / "run.json", lambda item: item.pop("layout"))
    edit(store / "medtasks-store.json", lambda item: item.update(schema=2))


def as_layout_1(store):
    """The store as the first version wrote it: tables for each suite, model and strategy, and no index."""
    as_layout_2(store)
    for folder in store.glob("run-*"):
        stored = json.loads((folder / "run.json").read_text())
        tables = {file.stem: pq.read_table(file) for file in folder.glob("*.parquet")}
        tables["results"] = tables["results"].drop_columns(["jury", "conditions"])
        parts = []
        rows = tables["documents"].to_pylist()
        for suite, strategy in sorted({(row["suite"], row["strategy"]) for row in rows}):
            path = f"suite={suite}/model=M/strategy={strategy}/{stored['run']}.parquet"
            for name, table in tables.items():
                mine = [(row["suite"], row["strategy"]) == (suite, strategy) for row in table.to_pylist()]
                file = store / name / path
                file.parent.mkdir(parents=True)
                found = table.filter(mine).drop_columns(["suite", "model", "strategy"])
                pq.write_table(found, file, row_group_size=2**14)
            tasks = list(
                dict.fromkeys(
                    row["task"] for row in rows if (row["suite"], row["strategy"]) == (suite, strategy)
                )
            )
            first, documents = 0, {}
            for task in tasks:
                documents[task] = stored["documents"][task] | {"first": first}
                first += documents[task]["n"]
            parts.append({"path": path, "documents": documents, "responses": "responses" in tables})
        kept = {name: stored[name] for name in ("run", "kind", "model", "folder", "notes", "manifest")}
        content = {"schema": 1, **kept, "fingerprint": stored["state"], "text": True, "parts": parts}
        (store / "runs").mkdir(exist_ok=True)
        (store / "runs" / f"{stored['run']}.json").write_text(json.dumps(content))
        shutil.rmtree(folder)
    (store / "medtasks-store.json").write_text('{"schema": 1, "medtasks": "0.1.0"}')


@pytest.mark.parametrize("as_before", [as_layout_1, as_layout_2])
def test_a_store_of_an_earlier_layout_is_read_marked_and_converted_when_it_is_written_to(
    run, tmp_path, as_before
):
    one, other, store = run("one"), run("other", pretrained="org/other"), tmp_path / "store"
    ingest([one], store, registry(), with_text=True)
    [expected] = map(said, read(store))
    as_before(store)
    before = contents(store)
    [entry] = read(store)
    assert contents(store) == before
    [note] = [note for note in entry.notes if not note.startswith("not sealed")]
    assert note.startswith("stored by an earlier version, without") and "intervals are rough" in note
    assert ("who judged" in note) == (as_before is as_layout_1)
    if as_before is as_layout_2:  # its records of conditions are whole
        assert said(entry) == expected
    shown = said(entry)
    found = {task for item in task_bootstrap(open_store(store, registry())) for _, task in item.experiments}
    assert found == set(TASKS) - {"medhelm_aci_bench"}
    assert states(store, other) == ["new"]
    [converted] = [entry for entry in read(store) if entry.model == "random-label"]
    assert said(converted) == shown and converted.notes == entry.notes
    files = [*store.glob("run-*/results.parquet")]
    assert len(files) == 2 and all(pq.read_schema(file).names == schema("results").names for file in files)
    assert all("entry" in pq.read_schema(file).names for file in store.glob("run-*/[dr]*.parquet"))
    names = {path.name for path in store.iterdir() if not path.name.startswith((".", "run-"))}
    assert names == {"medtasks-store.json"}


def test_a_run_of_an_earlier_layout_that_cannot_be_converted_whole_stays_as_it_is(run, tmp_path):
    store = tmp_path / "store"
    put(store, run("one"))
    as_layout_1(store)
    [file] = (store / "runs").iterdir()
    other = shutil.copy(file, tmp_path)
    edit(file, lambda item: item["parts"][0]["documents"]["bridge_mie_cot"].update(statistic="old_f1"))
    assert states(store, run("other", pretrained="org/other")) == ["new"]
    assert file.is_file()
    results = read_results([store], registry())
    assert "was old_f1, and is micro_f1" in results.faults[0].what
    assert {entry.model for entry in results.entries} == {"random-label", "org/other"}
    shutil.copy(other, file)
    assert len(read(store)) == 2


def test_an_ingest_of_an_earlier_version_that_was_killed_halfway_is_told(run, tmp_path, medtasks):
    store = tmp_path / "store"
    put(store, run())
    as_layout_1(store)
    (store / "_journal.json").write_text("{}")
    outcome = medtasks("report", store)
    assert outcome.code == 2 and "killed halfway" in outcome.err and "ingest again" in outcome.err


def said(entry):
    """What is read of a run, of each document and text, too."""
    return entry.words | {
        task: repr(
            (
                item.conditions,
                item.metrics,
                {name: (found.low, found.high) for name, found in item.intervals.items()},
                item.n,
                item.tokens,
                item.loaded,
                item.config,
                [*item.read_documents().scores],
                item.read_samples and item.read_samples(),
            )
        )
        for task, item in entry.experiments.items()
    }


def test_scores_that_are_made_in_another_way_by_now_are_not_resampled(run, tmp_path):
    store = tmp_path / "store"
    put(store, run())
    [file] = store.glob("run-*/run.json")
    edit(file, lambda item: item["documents"]["bridge_mie_cot"].update(statistic="old_f1"))
    results = read_results([store], registry())
    [fault] = results.faults
    assert "was old_f1, and is micro_f1" in fault.what and "bridge_mie_cot" in fault.where
    experiment = results.entries[0].experiments["bridge_mie_cot"]
    assert experiment.score is not None and experiment.read_documents is None
    assert "bridge_mie_cot" not in [
        task for item in task_bootstrap(open_store(store, registry())) for _, task in item.experiments
    ]


# ---------------------------------------------------------------------- bad input


def test_results_without_samples_go_in_without_documents(run, tmp_path, medtasks):
    plain = as_lm_eval(run(), tmp_path / "plain")
    for file in plain.glob("samples_m*"):
        file.unlink()
    outcome = medtasks("ingest", plain, "--store", "store")
    assert outcome.code == 0 and "4 of 6 tasks have no samples file" in outcome.err
    [entry] = read(tmp_path / "store")
    assert entry.experiments["mlb_cmexam"].score is not None
    assert entry.experiments["mlb_cmexam"].read_documents is None
    assert entry.experiments["bridge_mie"].read_documents() is not None


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("cut short", "damaged"),
        ("missing", "no such file"),
        ("NaN", "1 of 10 scores are not numbers (the first at place 4)"),
    ],
)
def test_documents_that_cannot_be_used_are_named_and_the_rest_goes_in(run, tmp_path, medtasks, what, said):
    folder = run()
    spoil(folder, what)
    outcome = medtasks("ingest", folder, "--store", "store")
    assert outcome.code == 1
    assert "1 of 6 tasks lack documents" in outcome.err and "medhelm_hospice_referral: " in outcome.err
    assert said in outcome.err and "medtasks rescore RUN" in outcome.err
    [entry] = read(tmp_path / "store")
    assert entry.experiments["medhelm_hospice_referral"].read_documents is None
    assert entry.experiments["mlb_cmexam"].read_resampled() is not None
    shutil.copy(run("whole") / "tasks" / "medhelm_hospice_referral.parquet", folder / "tasks")
    assert states(tmp_path / "store", folder) == ["replaced"]


def test_tasks_that_are_unknown_or_damaged_are_named_and_left_out(run, tmp_path, medtasks):
    folder = run()
    edit(folder / "run.json", lambda item: item["tasks"].update(mmlu={"state": "done", "n": 1}))
    (folder / "tasks" / "mlb_cmexam.json").write_text('{"task": "mlb')
    nan = float("nan")
    edit(folder / "tasks" / "bridge_mie.json", lambda item: item["metrics"].update(f1_event=nan, score=nan))
    outcome = medtasks("ingest", folder, "--store", "store")
    assert outcome.code == 1 and "mmlu" in outcome.err and "damaged" in outcome.err
    assert "metric f1_event is nan, and is left out" in outcome.err
    [entry] = read(tmp_path / "store")
    assert set(entry.experiments) == set(TASKS) - {"mlb_cmexam"}
    assert (
        entry.experiments["bridge_mie"].score is None and "valid" in entry.experiments["bridge_mie"].metrics
    )


@pytest.mark.parametrize(
    ("manifest", "said"), [(None, "no such folder"), ('{"schema": 1, "ident', "damaged")]
)
def test_what_is_no_run_is_refused_before_anything_is_stored(run, tmp_path, medtasks, manifest, said):
    if manifest is not None:
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "run.json").write_text(manifest)
    outcome = medtasks("ingest", run(), "bad", "--store", "store")
    assert outcome.code == 2 and said in outcome.err and "bad" in outcome.err
    assert outcome.err.count("→") == 1 and not (tmp_path / "store").exists()


def test_a_place_that_can_be_no_store_is_refused(run, tmp_path, medtasks):
    folder = run()
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.docx").write_text("x")
    for store, said in (("file", "is a file"), ("full", "thesis.docx")):
        outcome = medtasks("ingest", folder, "--store", store)
        assert outcome.code == 2 and said in outcome.err and "name another folder" in outcome.err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.docx"]
    put(tmp_path / "store", folder)
    assert "is a store, not a run" in medtasks("ingest", "store", "--store", "other").err


def test_a_damaged_run_says_which_file_and_comes_back_as_it_says(run, tmp_path):
    folder, store = run(), tmp_path / "store"
    put(store, folder)
    whole = contents(store)
    [file] = store.glob("run-*/documents.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    [entry] = read(store)
    again = f"delete the folder {file.parent.name}, then ingest again from the run folders: "
    with pytest.raises(MedtasksError, match="damaged") as error:
        entry.experiments["mlb_cmexam"].read_documents()
    assert error.value.where == file
    assert error.value.remedy == f"{again}medtasks ingest RUN... --store {store}"
    file.unlink()
    with pytest.raises(MedtasksError, match="no such file"):
        entry.experiments["mlb_cmexam"].read_resampled()
    (file.parent / "run.json").write_text("{}")
    with pytest.raises(MedtasksError, match=r"(?s)not a run as a store records it.*medtasks ingest RUN"):
        read(store)
    shutil.rmtree(file.parent)
    with pytest.raises(MedtasksError, match=r"(?s)no such file.*medtasks ingest RUN"):
        read(store)
    assert states(store, folder) == ["replaced"]
    assert contents(store).keys() == whole.keys() and len(read(store)[0].experiments) == len(TASKS)


def test_a_run_that_is_stored_anew_while_it_is_read_is_not_mixed(run, tmp_path):
    folder, store = run(), tmp_path / "store"
    put(store, folder)
    [entry] = read(store)
    edit(folder / "tasks" / "mlb_cmexam.json", lambda item: item["metrics"].update(score=0.123))
    put(store, folder)
    with pytest.raises(MedtasksError, match="stored anew since the store was opened"):
        entry.experiments["mlb_cmexam"].read_documents()


def test_a_full_disk_is_said_and_the_store_stays(run, tmp_path, medtasks, monkeypatch):
    store = tmp_path / "store"
    put(store, run())
    before = contents(store)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    outcome = medtasks("ingest", run("other", pretrained="org/other"), "--store", store)
    assert outcome.code == 2 and "No space left on device" in outcome.err and contents(store) == before


def test_an_interrupt_on_the_way_leaves_no_trace(run, tmp_path):
    store = tmp_path / "store"
    put(store, run())
    before = contents(store)

    def interrupt(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put(store, run("other", pretrained="org/other"), report=interrupt)
    assert contents(store) == before and len(list(store.iterdir())) == 3  # index, lock, one run
