"""What people are shown of a dialogue: all its turns, as text, wherever a prompt of one turn is shown."""

import shutil

import pytest

from medtasks_ext.registry import registry
from tests.conftest import rewrite_answers, sample_rows, write_jsonl
from tests.report.made import data_of, held

TASK = "healthbench_full"
HOSTILE = "</script><img src=x onerror=alert(1)> my feet were swollen"


@pytest.fixture
def hostile(data_dir):
    """The id of a dialogue of several turns whose first turn is hostile; the sample rows are local rows."""
    dataset = registry().datasets[TASK]
    parts = {split: sample_rows(TASK, split) for split in ("test", "fewshot")}
    row = next(row for row in parts["test"] if len(row["prompt"]) > 1)
    row["prompt"][0]["content"] = HOSTILE
    for split, rows in parts.items():
        write_jsonl(data_dir / dataset.key / f"{split}.jsonl", rows)
    return row["prompt_id"]


@pytest.fixture
def run(medtasks, hostile, tmp_path):
    medtasks.done("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run")
    return tmp_path / "run"


def test_show_has_the_turns(medtasks, run, hostile):
    shown = medtasks("view", "run", TASK, hostile)
    assert shown.code == 0 and f"User: {HOSTILE}" in " ".join(shown.out.split()) and "Assistant:" in shown.out


def test_a_report_names_the_turns_and_keeps_text_as_text(medtasks, run):
    medtasks.done("report", "run", "--answers", "-o", "report")
    page = run.parent / "report" / "report.html"
    about = data_of(page)["tasks"][TASK]
    assert about["prompts"]["zero_shot"]["input"] == "{{ prompt }}, turn by turn"
    assert "each criterion of the row" in about["rule"] and "assessor" not in about["rule"]
    assert "<img src=x" not in page.read_text(encoding="utf-8")
    texts = held((page.parent / "answers" / f"{TASK}-0.js").read_text("utf-8"))
    assert "my feet were swollen" in str(texts)


@pytest.mark.parametrize("kind", ["review", "pairwise"])
def test_forms_of_experts_have_all_turns(medtasks, run, tmp_path, kind):
    shutil.copytree(run, tmp_path / "other")
    rewrite_answers(tmp_path / "other", TASK, {f"full-t{n}": f"Answer {n}." for n in range(1, 9)})
    sources = [TASK] if kind == "review" else ["run", "other", "--tasks", TASK]
    medtasks.done("study", "forms", *sources, "--kind", kind, "-o", "forms")
    forms = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / "forms").glob("expert_1.*"))]
    assert len(forms) == 1 and all("my feet were swollen" in form for form in forms)
    assert all("<img src=x" not in form for form in forms[1:])
