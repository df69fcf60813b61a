"""Task files through lm-eval's own TaskManager: what a file says is what is built."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.evaluator import evaluate
from lm_eval.tasks import TaskManager
from lm_eval.utils import handle_non_serializable

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle
from medtasks_ext.registry import Dataset, tasks_folder
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.task import OWN_KEYS
from tests.conftest import write_jsonl

MEDNLI = tasks_folder() / "bridge" / "mednli"
HOSPICE = tasks_folder() / "medhelm" / "hospice_referral"
CHANGED = {
    "instruction": "Does the second sentence follow? {{ strategy }}\nrelation: label",
    "input": "Sentences: {{ input }}",
}
PLACES = ("path", "include_path", "group")
STRATEGIES = ("zero_shot", "cot", "five_shot")


@pytest.fixture
def mine(tmp_path):
    """Write a file that includes MedNLI's and says what is given; a key with the value None is left out."""
    folder = tmp_path / "mine"
    folder.mkdir()

    def call(name: str = "my_mednli", include: Path | None = MEDNLI / "task.yaml", **said: Any) -> Path:
        written = {"include": str(include) if include else None, "task": name, "tag": [], **said}
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in written.items() if value is not None}))
        return path

    return call


def loaded(*specs: str, include_path: Path | None = None, **metadata: Any) -> dict[str, Any]:
    """What lm-eval's manager loads, on sample rows unless said otherwise."""
    manager = TaskManager(
        include_defaults=False,
        include_path=str(include_path) if include_path else None,
        metadata={"data": "sample", **metadata},
    )
    return manager.load(list(specs))


def built(path: Path, **metadata: Any) -> Any:
    (task,) = loaded(str(path), **metadata)["tasks"].values()
    return task


def variant(built_tasks: Path, folder: Path, strategy: str) -> Path:
    name = "task" if strategy == "zero_shot" else strategy
    return built_tasks / folder.parent.name / folder.name / f"{name}.yaml"


def results(tasks: dict[str, Any]) -> dict[str, Any]:
    found = evaluate(lm=Oracle(), task_dict=tasks, bootstrap_iters=0)
    assert found is not None
    return found


def asked(found: dict[str, Any], name: str) -> list[str]:
    return [str(sample["arguments"][0][0]) for sample in found["samples"][name]]


def metrics(task: Any) -> set[str]:
    return set(task.aggregation())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("place", PLACES)
def test_a_changed_prompt_is_asked_wherever_the_file_lies(mine, built_tasks, place, strategy):
    path = mine(prompt=CHANGED, strategy=strategy)
    if place == "group":
        group = {"group": "my_group", "task": ["my_mednli"]}
        (path.parent / "my_group.yaml").write_text(yaml.safe_dump(group))
    spec = {"path": str(path), "include_path": "my_mednli", "group": "my_group"}[place]
    tasks = loaded(spec, include_path=None if place == "path" else path.parent)
    found = results(tasks)
    assert set(found["results"]) - {"my_group"} == {"my_mednli"}
    assert found["results"]["my_mednli"]["score,answer"] == 1
    original = built(variant(built_tasks, MEDNLI, strategy))
    shots = {"zero_shot": 0, "cot": 0, "five_shot": 5}[strategy]
    prompts = asked(found, "my_mednli")
    assert len(prompts) == len(original.eval_docs)
    for prompt, document in zip(prompts, original.eval_docs, strict=True):
        assert prompt.startswith("Does the second sentence follow? ")
        assert prompt.count("Sentences: ") == 1 + shots
        assert prompt.endswith(f"Sentences: {document['prompt']}")


def test_a_variant_elsewhere_has_the_card_and_the_lock_of_the_dataset(mine):
    """Unless it says where other files lie, which the lock does not know."""
    aci = tasks_folder() / "medhelm" / "aci_bench"
    said = Dataset(aci).config
    changed = built(mine(include=aci / "task.yaml", prompt={**said["prompt"], "cue": "Note:"}))
    assert changed.own["about"]["summary"].startswith("Given the transcript of a visit")
    download = changed.dataset_given.blocks["rows"]["download"]
    assert download == Dataset(aci).blocks["rows"]["download"]
    assert download["revision"] == Dataset(aci).lock.revision and len(download["digests"]) == 4
    elsewhere = {
        **said["rows"]["download"],
        "revision": "2",
        "test": ["https://example.org/{revision}/a.csv"],
    }
    other = built(mine(include=aci / "task.yaml", rows={**said["rows"], "download": elsewhere}))
    assert "digests" not in other.dataset_given.blocks["rows"]["download"]


def test_other_answers_bring_the_metrics_of_their_family(mine):
    answer = yaml.safe_load((MEDNLI / "task.yaml").read_text().replace("!function", ""))["answer"]
    several = {"kind": "label_list", "prefix": answer["prefix"], "labels": answer["labels"]}
    one, other = built(MEDNLI / "task.yaml"), built(mine(answer=several))
    assert metrics(one) == metrics(other)
    found = results(loaded(str(mine(answer=several))))
    assert found["results"]["my_mednli"]["score,answer"] == 1
    assert all(isinstance(sample["doc"]["gold"], list) for sample in found["samples"]["my_mednli"])


def test_what_every_task_reports_says_which_way_is_better(mine):
    better = built(mine()).higher_is_better()
    shared = {"valid": True, "scored": True, "unclosed_reasoning": False, "SAMPLE_DATA": False}
    assert {name: better[name] for name in shared} == shared


@pytest.mark.parametrize(
    ("said", "what", "remedy"),
    [
        (
            {"answer": {"kind": "free_text"}, "metric_list": [{"metric": "acc", "aggregation": "mean"}]},
            "metric_list: lacks score, rougeL, ",
            "leave `metric_list` out, or state `process_results`, too",
        ),
        (
            {"answer": {"kind": "free_text"}, "about": {"primary_metric": "acc"}},
            "about.primary_metric: 'acc' is no metric of answers of kind 'free_text'",
            "leave it out: the score is then rougeL",
        ),
        (
            {"include": tasks_folder() / "medhelm" / "mediqa", "answer": {"kind": "label_word"}},
            "answers of kind 'label_word' have no metrics that judges score by axes",
            "leave `judge:` or `rows.runs` out",
        ),
    ],
)
def test_answers_of_another_kind_with_the_old_metrics_are_refused(mine, said, what, remedy):
    include = said.pop("include", MEDNLI) / "task.yaml"
    if "about" in said:
        said["about"] = {**WHOLE["about"], **said["about"]}
    path = mine(include=include, **said)
    with pytest.raises(MedtasksError) as error:
        built(path)
    assert what in error.value.what and remedy in error.value.remedy
    assert str(error.value.where) == str(path)


def test_one_setting_of_generation_leaves_the_others_as_they_are(mine):
    settings = dict(built(mine(generation_kwargs={"max_gen_toks": 64})).config.generation_kwargs)
    assert settings == {"until": [], "max_gen_toks": 64, "do_sample": False, "temperature": 0}
    assert built(MEDNLI / "task.yaml").config.generation_kwargs["max_gen_toks"] == 4000


def test_a_chain_of_thought_holds_no_rows_out_for_shots_that_it_does_not_show(data_dir, built_tasks):
    rows = [{"prompt": "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(12)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    counts = {
        name: len(built(variant(built_tasks, HOSPICE, name), data="local", shots=5).eval_docs)
        for name in STRATEGIES
    }
    assert counts == {"zero_shot": 7, "cot": 12, "five_shot": 7}


def test_values_of_metadata_and_model_arguments_change_no_document(mine):
    """lm-eval merges --metadata and --model_args over the file's metadata."""
    path = mine(prompt=CHANGED)
    names = {*OWN_KEYS, "medtasks", "class", "task", "include", "config_source", "source", "language"}
    names |= {"revision", "pretrained", "cot", "origin", "folder", "kwargs"}
    plain, other = built(path), built(path, **dict.fromkeys(names, "other"))
    assert other.eval_docs is plain.eval_docs
    assert other.config.metadata["medtasks"] == plain.config.metadata["medtasks"]
    assert {key: other.dump_config()[key] for key in plain.own} == plain.own


#: MedNLI's task file, with all facts under `about`
WHOLE = yaml.safe_load((MEDNLI / "task.yaml").read_text().replace("!function ", "!!str "))
WHOLE = {key: value for key, value in WHOLE.items() if key not in TaskFacts.model_fields}
WHOLE["about"] = dict(Dataset(MEDNLI).record)


@pytest.mark.parametrize(
    ("said", "key", "remedy"),
    [
        ({"promt": CHANGED}, "promt: unknown key (did you mean prompt?)", "tasks/README.md lists the keys"),
        ({"dataset_path": "json"}, "dataset_path: unknown key", "tasks/README.md lists the keys"),
        ({"prompt": {"input": "x"}}, "prompt.instruction: missing key", "CONTRIBUTING.md shows"),
        ({"prompt": {"instruction": "x"}}, "prompt: place {{ strategy }}", "CONTRIBUTING.md shows"),
        ({"metadata": {}}, "metadata.version: missing key", "write N-X"),
        ({"dataset": "bridge/mednil"}, "dataset: there is no 'bridge/mednil'", "SUITE/NAME"),
        ({"strategy": "few_shot"}, "strategy is 'few_shot'", "use zero_shot, cot, five_shot"),
        ({"answer": {"kind": "bridge_lable"}}, "answer.kind is 'bridge_lable'", "label"),
        ({"about": {**WHOLE["about"], "langage": "en"}}, "about.langage: unknown key", "docs/keys.md"),
        ({"repeats": 0}, "repeats: should be a whole number, at least 1", "docs/keys.md"),
    ],
)
def test_a_wrong_key_is_refused_with_file_key_and_remedy(mine, said, key, remedy):
    path = mine(**said)
    with pytest.raises(MedtasksError) as error:
        built(path)
    assert key in error.value.what
    assert str(error.value.where) == str(path)
    assert remedy in error.value.remedy


def test_rows_may_be_left_out_where_the_suite_says_where_they_are_and_nowhere_else(mine, chip_ctc):
    followed = built(mine(include=MEDNLI.with_name("chip_ctc") / "task.yaml", rows={}), data="local")
    assert len(followed.eval_docs) == 8
    path = mine(include=HOSPICE / "task.yaml", rows={})
    with pytest.raises(MedtasksError) as error:
        built(path)
    assert "rows: name the accepted row schemas" in error.value.what
    assert str(error.value.where) == str(path) and "CONTRIBUTING.md shows" in error.value.remedy


def test_a_cache_of_prompts_that_knows_neither_rows_nor_decoding_is_refused(mine):
    """`lm_eval --cache_requests true` asked the questions of one data set with the gold of another."""
    tasks = loaded(str(mine()))
    with pytest.raises(MedtasksError, match="lm-eval's cache does not tell rows") as error:
        evaluate(lm=Oracle(), task_dict=tasks, bootstrap_iters=0, cache_requests=True)
    assert error.value.where == "--cache_requests, my_mednli" and "leave the flag out" in error.value.remedy


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_results_hold_the_keys_of_the_file_and_no_row(mine, strategy):
    path = mine(prompt=CHANGED, strategy=strategy)
    found = results(loaded(str(path)))
    config = json.loads(json.dumps(found["configs"]["my_mednli"], default=handle_non_serializable))
    assert {key: config[key] for key in ("dataset", "strategy", "prompt", "rows", "answer", "about")} == {
        **{key: WHOLE[key] for key in ("dataset", "rows", "answer", "about")},
        "strategy": strategy,
        "prompt": CHANGED,
    }
    assert config["metadata"]["medtasks"]["loaded"]["origin"] == "sample"
    assert not {"custom_dataset", "dataset_path", "dataset_kwargs"} & set(config)
    text = json.dumps(config, ensure_ascii=False)
    samples = [json.loads(line) for line in (MEDNLI / "sample.jsonl").read_text().splitlines()]
    assert not [row["input"] for row in samples if json.dumps(row["input"], ensure_ascii=False)[1:-1] in text]
