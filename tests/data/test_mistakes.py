"""What `validate`, and `data check`, find in datasets with a mistake."""

import shutil

import pytest
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, forget, registry
from tests.conftest import problems_of, series
from tests.data.mistakes import CANARY, CHECK, MISTAKES, OWN, Mistake, local

#: Those whose task file lm-eval cannot read.
DROPPED = {
    "a block one blank too deep", "an include of no file", "an alias without its anchor", "the ending .yml",
    "saved in cp1252",
}  # fmt: skip

#: What a message names: a file, or a folder of tasks.
PLACES = (
    "task.y", "card.yaml", "citation.bib", "sample.jsonl", ".csv", "pubmedqa sv", "pubmedqa_sv:", "/empty:",
)  # fmt: skip

#: How a message says what to do.
REMEDIES = ("→", "did you mean", "should be", "missing key", "TODO:", "place {{ strategy }}", "are called")


def named(item: Mistake) -> str:
    return f"{item.dataset}: {item.name}"


@pytest.fixture
def made(tasks_of, made_rows, tmp_path, monkeypatch):
    """Make a mistake; the command that names it first, with the places of this test."""
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT", raising=False)

    def make(item: Mistake, command: str = "") -> list[str]:
        root, data = tmp_path / "tasks", tmp_path / "data"
        for folder in (root, data):
            shutil.rmtree(folder, ignore_errors=True)
        tasks_of(item.dataset)
        item.make(root / item.dataset)
        if data.is_dir():
            monkeypatch.setenv("MEDTASKS_DATA_DIR", str(data))
        forget()
        places = {"TASK": item.dataset.replace("/", "_"), "ROOT": str(root), "DATA": str(data)}
        words = (command or item.command).replace("ROWS", "local" if data.is_dir() else "sample")
        for name, place in places.items():
            words = words.replace(name, place)
        return words.split(" ")

    return make


@pytest.mark.parametrize("item", MISTAKES, ids=named)
def test_a_mistake_is_named(medtasks, made, item):
    outcome = medtasks(*made(item))
    assert "Traceback" not in outcome.text and CANARY not in outcome.text
    assert bool(outcome.code) != item.taken, outcome.text
    if outcome.code:
        assert outcome.code in (1, 2) and any(place in outcome.text for place in PLACES), outcome.text
        assert any(remedy in outcome.text for remedy in REMEDIES), outcome.text


@pytest.mark.parametrize("item", [item for item in MISTAKES if item.taken], ids=lambda item: item.name)
def test_what_does_no_harm_is_read_as_it_was_meant(medtasks, made, item):
    """The documents are those of the rows as they should stand there."""
    plain = item._replace(make=local() if item.command == CHECK else lambda folder: None)
    shown = [medtasks(*made(one, "preview TASK --data ROWS --json")).out for one in (plain, item)]
    assert shown[0] == shown[1] != ""


@pytest.mark.parametrize(
    "command",
    [
        "dev validate TASK",
        "preview TASK --data ROWS",
        "run --model oracle --tasks TASK --data ROWS --output_path out",
    ],
)
@pytest.mark.parametrize("item", series(OWN, named))
def test_no_command_has_a_traceback_for_it(medtasks, made, item, command):
    outcome = medtasks(*made(item, command))
    assert outcome.code in (0, 1, 2) and "Traceback" not in outcome.text, outcome.text
    assert "MEDTASKS_SHOW_TEXT" not in outcome.text  # what the message of a defect ends with
    assert command.startswith("preview") or CANARY not in outcome.text


@pytest.mark.parametrize("item", series(OWN, named))
def test_plain_lm_eval_says_it_in_one_message_or_does_not_see_the_file(made, item):
    """lm-eval drops task files that are no YAML, and then says that it knows no such task."""
    folder, task, data = made(item, "ROOT TASK ROWS")
    try:
        TaskManager(include_path=folder, include_defaults=False, metadata={"data": data}).load([task])
    except MedtasksError as error:
        assert "→" in str(error) and CANARY not in str(error)
    except KeyError as error:
        assert item.name in DROPPED, error


@pytest.mark.parametrize("shown", ["options | lettered", "options | join(', ')"])
def test_options_that_are_an_object_are_named(tasks_of, shown):
    """Of an object only the keys would stand in the prompt."""
    folder = tasks_of("commons/frenchmedmcqa") / "commons" / "frenchmedmcqa"
    task = folder / "task.yaml"
    text = task.read_text("utf-8").replace("options: answers | split_options", "options: answers")
    task.write_text(text.replace("options | lettered", shown), "utf-8")
    found = problems_of(registry(), Dataset(folder))
    assert any("split_options" in problem for problem in found), found
