"""A pipe in a run's folder is named, and never waited for, by whatever reads or goes on with the folder."""

import os
import re
import shutil
import signal

import pytest

from medtasks_ext.registry import suites
from tests.runs.changes import files_of

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "random-label", "--tasks", TASK, "--output_path")
#: How commands are called on the folder `copy`.
COMMANDS = {
    "report": ("report", "copy", "-o", "report"),
    "compare": ("compare", "copy", "run"),
    "view": ("view", "copy", TASK),
    "card": ("card", "copy", "-o", "card", "--parts"),
    "rescore": ("rescore", "copy"),
    "run": (*RUN, "copy"),
}


class WaitedError(BaseException):
    """A command waits for a pipe that nobody writes to."""


@pytest.fixture
def alarm():
    """Ends a command that waits, minutes after it should have ended."""

    def ring(*_):
        raise WaitedError

    former = signal.signal(signal.SIGALRM, ring)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_among_the_files_of_a_run_is_named_by_every_command(
    medtasks, chip_ctc, tmp_path, alarm, command
):
    assert medtasks(*RUN, "run").code == 0
    for name in [*files_of(tmp_path / "run"), ".writing.lock", "notes.txt"]:
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        (tmp_path / "copy" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "copy" / name)
        found = medtasks(*COMMANDS[command])
        # without its run.json, a folder is no run
        assert found.code == 2, (name, found.text)
        assert f"{name}: is no plain file" in found.err or (name == "run.json" and "no results" in found.err)
        shutil.rmtree(tmp_path / "copy")


#: Calls that name a pipe, or a folder that holds one, where a plain file is meant.
GIVEN = {
    "run --config": (*RUN, "other", "--config", "pipe"),
    "run --config=": (*RUN, "other", "--config=pipe"),
    "plan": ("plan", "pipe", "--tasks", TASK),
    "preview --tokenizer": ("preview", TASK, "--tokenizer", "pipe"),
    "preview --tokenizer, JSON": ("preview", TASK, "--tokenizer", "pipe.json"),
    "report": ("report", "pipe"),
    "report --by": ("report", "run", "--by", "pipe", "-o", "report"),
    "compare --by": ("compare", "run", "run", "--by", "pipe"),
    "new --from": ("data", "new", "--id", "own_wards", "--from", "pipe.csv"),
    "data import": ("data", "import", "pipe.csv", "--task", TASK),
    "data fetch official --from": ("data", "fetch", "official", "artefacts"),
    "study prompts": ("study", "prompts", "pipe"),
    "judge --jury": ("judge", "run", "--jury", "pipe"),
    "study judge --judge": ("study", "judge", "pipe", "--judge", "pipe", "-o", "o"),
    "study judge": ("study", "judge", "pipe", "-o", "o"),
    "study sample": ("study", "sample", "pipe", "-n", "3"),
    "study forms --key": ("study", "forms", "form.csv", "--key", "pipe", "-o", "ingested"),
    "rescore --check": ("rescore", "--check", "org/model/2026-11-01"),
}  # fmt: skip
SAID = (
    "is no plain file|is no file|: no file|no such file|not found|holds no|no contamination.json|"
    "no configuration"
)


@pytest.mark.parametrize("given", GIVEN)
def test_a_pipe_that_a_call_names_is_never_waited_for(medtasks, chip_ctc, tmp_path, alarm, given):
    # several suites may read one file, and an installed package's is at no place of ours
    artefacts = {item.file for suite in suites().values() if suite.official
                 for item in suite.official.artefacts.values()} - {""}  # fmt: skip
    for place in (
        "pipe", "pipe.json", "pipe.csv",
        "org/model/2026-11-01/submission.json",
        "org/model/2026-11-01/documents.parquet",
        *(f"artefacts/{name}" for name in artefacts),
    ):  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / place)
    (tmp_path / "form.csv").write_text("")
    if "run" in GIVEN[given][2:]:
        assert medtasks(*RUN, "run").code == 0
    found = medtasks(*GIVEN[given])
    assert found.code in (1, 2) and re.search(SAID, found.text.lower()), found.text


def test_a_plan_never_waits_for_pipes_in_the_folder_of_a_model(medtasks, chip_ctc, tmp_path, alarm):
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        os.mkfifo(tmp_path / "model" / name)
    found = medtasks("plan", str(tmp_path / "model"), "--tasks", TASK)
    assert found.code == 0 and "what a run asks" in " ".join(found.text.split())
