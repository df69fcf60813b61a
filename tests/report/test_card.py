"""`medtasks card`: what the author of a model publishes."""

import json

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results

from tests.conftest import hashed_anew, read_json, write_jsonl
from tests.run_files import edited, result_of

TASK = "medhelm_hospice_referral"
OTHER = "medhelm_clinic_referral"


@pytest.fixture
def run(medtasks, data_dir, tmp_path):
    for name, question in (("hospice_referral", "prompt"), ("clinic_referral", "question")):
        rows = [{question: "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(12)]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", rows)
    call = ("run", "--model", "random-label", "--tasks", f"{TASK},{OTHER}", "--output_path", "run")
    assert medtasks(*call).code == 0
    return tmp_path / "run"


def edit(file, **changes):
    content = read_json(file)
    file.write_text(json.dumps({**content, **changes}))
    hashed_anew(file)
    return content


def from_the_hub(run, task):
    """As if the task's rows had been downloaded."""
    with edited(run, task) as record:
        record["loaded"] |= {"origin": "hub", "revision": "abc123", "where": "org/name@abc123"}
    hashed_anew(run)


def test_the_section_shows_suites_tasks_settings_and_the_command(medtasks, run, tmp_path):
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    card, text = ((tmp_path / "card" / name).read_text() for name in ("README.md", "medical-evaluation.md"))
    scores = {task: result_of(run, task)["metrics"]["score"] for task in (TASK, OTHER)}
    mean = sum(scores.values()) / 2
    for written in (card, text):
        assert f"| MedHELM (partial) | zero-shot | {mean:.4f} [" in written and "| 2/37 | 24 |" in written
    assert f"**{mean:.2f} on 2 of MedHELM's 37 tasks.**" in card and f"`{TASK}`" not in card
    assert "**2 tasks" not in card and "(medical-evaluation.md)" in card
    assert all(
        f"| `{task}` | zero-shot | exact_match | {score:.4f} [" in text for task, score in scores.items()
    )
    assert f"medtasks run --tasks {TASK},{OTHER} --model random-label" in text
    assert "2 of 2 experiments use medtasks' own prompts; scores from" in text
    assert "SAMPLE" not in text


def test_means_stand_axis_by_axis_in_the_suite_s_order(medtasks, tmp_path):
    call = ("run", "--model", "oracle", "--data", "sample", "--limit", "1", "--tasks", "bridge")
    assert medtasks(*call, "--output_path", "run").code == 0
    assert medtasks("card", "run", "-o", "card").code == 0
    lines = (tmp_path / "card" / "medical-evaluation.md").read_text().splitlines()
    shown = [line.split("|")[1].partition(":")[2].strip() for line in lines if line.startswith("| BRIDGE: ")]
    report = medtasks("report", "run").out.splitlines()
    listed = [line.strip().partition("  ")[0] for line in report if line.startswith("   ")]
    assert len(shown) > 10 and [name for name in listed if name in shown] == shown


def test_the_command_of_a_card_makes_the_same_run(medtasks, run, tmp_path):
    medtasks("card", "run", "-o", "card", "--parts")
    command = read_json(tmp_path / "card" / "medtasks-manifest.json")["command"]
    assert medtasks(*command.split()[1:], "--output_path", "again").code == 0
    first, again = (read_json(tmp_path / name / "run.json") for name in ("run", "again"))
    assert first["identity"] == again["identity"] and first["requested"] == again["requested"]
    for task in (TASK, OTHER):
        one, other = (result_of(tmp_path / name, task)["metrics"] for name in ("run", "again"))
        assert one == other


def test_the_hub_reads_suites_from_the_front_matter_and_a_file_has_every_task(medtasks, run, tmp_path):
    medtasks("card", "run", "-o", "card", "--parts")
    stored = {task: result_of(run, task)["metrics"]["score"] for task in (TASK, OTHER)}
    card = ModelCard((tmp_path / "card" / "README.md").read_text())
    name, [found] = model_index_to_eval_results(card.data.to_dict()["model-index"])
    assert name == "random-label" and "model-index" not in card.text and card.text.startswith("\n## Medical")
    mean = round(sum(stored.values()) / 2, 4)
    # the hub shows name and value alone: a part of the tasks is in the name
    assert (found.metric_name, found.metric_value) == ("mean score (zero-shot, 2 of 37 tasks)", mean)
    assert (found.dataset_name, found.metric_args["tasks"]) == ("MedHELM", "2 of 37")
    details = (tmp_path / "card" / "medical-evaluation.md").read_text()
    assert f"| MedHELM (partial): Administration and workflow | zero-shot | {mean:.4f} [" in details
    every = yaml.safe_load((tmp_path / "card" / "model-index-tasks.yaml").read_text())
    _, results = model_index_to_eval_results(every["model-index"])
    assert {item.metric_args["task"]: item.metric_value for item in results} == {
        task: round(score, 4) for task, score in stored.items()
    }
    assert all(item.metric_args["prompt"].startswith("own ") for item in results)


def test_a_score_of_answers_that_could_not_be_read_is_warned_of_first(medtasks, run, tmp_path):
    with edited(run, TASK) as record:
        record["metrics"]["valid"], record["intervals"] = 0.0, {}
    hashed_anew(run)
    outcome = medtasks("card", "run", "-o", "card", "--parts")
    text = (tmp_path / "card" / "medical-evaluation.md").read_text() if outcome.code == 0 else outcome.err
    assert f"`{TASK}` (zero-shot): 0.0% of the answers could be read" in text
    assert text.index("Read with care") < text.index("| suite | strategy |")


def test_only_rows_from_the_hub_make_entries_there(medtasks, run, tmp_path):
    medtasks("card", "run", "-o", "card", "--parts")
    assert not (tmp_path / "card" / ".eval_results").exists()


def test_entries_for_the_hub_name_dataset_and_revision(medtasks, tmp_path, data_dir):
    """The rows are local; the record says hub, as it would after a download."""
    known = {"options": {"A": "C", "B": "D", "C": "K", "D": "A"}, "answer_idx": "A"}
    rows = [{"question": f"Which vitamin, case {n}?", **known} for n in range(9)]
    write_jsonl(data_dir / "medhelm" / "medqa" / "test.jsonl", rows)
    medtasks.done("run", "--model", "oracle", "--tasks", "medhelm_medqa", "--output_path", "run")
    from_the_hub(tmp_path / "run", "medhelm_medqa")
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    content = yaml.safe_load((tmp_path / "card" / ".eval_results" / "medhelm_medqa.yaml").read_text())
    [entry] = parse_eval_result_entries(content)
    assert (entry.task_id, entry.value) == ("medhelm_medqa", 1.0)
    assert "/" in entry.dataset_id and len(entry.dataset_revision) == 40 and "zero-shot" in entry.notes


def test_the_every_eval_ever_record_has_what_its_schema_requires(medtasks, run, tmp_path):
    medtasks("card", "run", "-o", "card", "--parts")
    record = read_json(tmp_path / "card" / "every_eval_ever.json")
    required = {
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata"),
        *("model_info", "eval_library", "evaluation_results"),
    }
    assert required <= set(record) and record["retrieved_timestamp"].isdigit()
    assert {"deployment_type", "model_availability"} <= set(record["model_info"]["additional_details"])
    for result in record["evaluation_results"]:
        low, high = (
            result["score_details"]["uncertainty"]["confidence_interval"][key] for key in ("lower", "upper")
        )
        assert low <= result["score_details"]["score"] <= high
        assert all(isinstance(value, str) for value in result["score_details"]["details"].values())


def test_the_manifest_has_what_a_repeat_needs_and_no_path_of_this_machine(medtasks, run, tmp_path, data_dir):
    medtasks("card", "run", "-o", "card", "--parts")
    text = (tmp_path / "card" / "medtasks-manifest.json").read_text()
    record = json.loads(text)
    assert str(tmp_path) not in text and str(data_dir) not in text
    assert {"python", "medtasks", "lm_eval", "datasets"} <= set(record["versions"])
    assert {"prompt_hash", "rows_hash", "origin"} <= set(record["tasks"][TASK]["loaded"])
    assert record["settings"]["seed"] == 1234 and record["intervals"]["seed"] == 42


def test_synthetic_rows_make_a_marked_section_and_nothing_that_machines_read(medtasks, tmp_path):
    medtasks("run", "--model", "oracle", "--tasks", TASK, "--data", "sample", "--output_path", "run")
    outcome = medtasks("card", "run", "-o", "card", "--parts")
    assert outcome.code == 0 and "SAMPLE DATA" in outcome.err
    files = {path.name for path in (tmp_path / "card").rglob("*") if path.is_file()}
    assert files == {"medical-evaluation.md", "medtasks-manifest.json", "references.bib"}
    assert "SAMPLE DATA" in (tmp_path / "card" / "medical-evaluation.md").read_text()


def test_what_cannot_make_a_card_is_refused_in_words(medtasks, run, tmp_path):
    assert "no such folder" in medtasks("card", "nowhere", "-o", "card").err
    (tmp_path / "file").write_text("")
    assert "is a file" in medtasks("card", "run", "-o", "file").err
    medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "oracle")
    outcome = medtasks("card", "run", "oracle", "-o", "card", "--parts")
    assert outcome.code == 2 and "one model" in outcome.err and "oracle" in outcome.err
