"""Who may read what a run leaves: its owner alone where a text is not open, whom the umask says otherwise."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from medtasks_ext.atomic import make_private
from medtasks_ext.registry import registry
from tests.conftest import write_jsonl
from tests.run_files import without_result

OPEN, PRIVATE = "medhelm_medqa", "medhelm_hospice_referral"


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    assert os.umask(before) == 0o022, "a command left another umask"


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder.parent)): oct(stat.S_IMODE(path.stat().st_mode))[2:]
        for path in (folder, *folder.rglob("*"))
    }


def are_private(folder: Path) -> bool:
    return all(
        mode == ("700" if Path(folder.parent, name).is_dir() else "600")
        for name, mode in modes(folder).items()
    )


@pytest.fixture
def medqa(data_dir):
    place = data_dir / "medhelm/medqa/test.jsonl"
    place.parent.mkdir(parents=True)
    shutil.copy(registry().datasets[OPEN].sample_file, place)


@pytest.fixture
def hospice(data_dir):
    rows = [{"prompt": "?", "context": f"note {i}", "label": "AB"[i % 2]} for i in range(6)]
    write_jsonl(data_dir / "medhelm/hospice_referral/test.jsonl", rows)


def test_open_texts_are_as_the_umask_says(medtasks, medqa, tmp_path):
    assert medtasks("run", "--model", "oracle", "--tasks", OPEN, "--output_path", "run").code == 0
    found = modes(tmp_path / "run")
    assert found["run"] == "755" and {mode for name, mode in found.items() if "." in name} == {"644"}


def test_what_is_written_beside_private_texts_is_its_owners_alone(medtasks, hospice, tmp_path):
    run = tmp_path / "run"
    command = ("run", "--model", "random-label", "--tasks", PRIVATE, "--output_path", "run")
    assert medtasks(*command).code == 0 and are_private(run)
    assert medtasks("rescore", "run").code == 0 and are_private(run)
    assert medtasks("report", "run", "--published", "none", "--answers", "-o", "shown").code == 0
    files = [path for path in (tmp_path / "shown").rglob("*") if path.is_file()]
    assert files and {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert medtasks("report", "run", "--published", "none", "-o", "plain").code == 0
    assert modes(tmp_path / "plain")["plain/report.html"] == "644"


def test_a_folder_that_gets_private_texts_later_becomes_private_and_stays_so(
    medtasks, medqa, hospice, tmp_path
):
    command = ("run", "--model", "oracle", "--output_path", "run", "--tasks")
    assert medtasks(*command, OPEN).code == 0 and not are_private(tmp_path / "run")
    assert medtasks(*command, f"{OPEN},{PRIVATE}").code == 0 and are_private(tmp_path / "run")
    without_result(tmp_path / "run", OPEN)
    assert medtasks(*command, OPEN).code == 0 and are_private(tmp_path / "run")
    synthetic = ("--data", "sample", "--output_path", "synthetic")
    assert medtasks(*command[:3], *synthetic, "--tasks", PRIVATE).code == 0
    assert modes(tmp_path / "synthetic")["synthetic"] == "755"


def test_files_of_requests_with_private_texts_are_their_owners_alone(medtasks, hospice, tmp_path):
    flags = ("--model", "local-chat-completions", "--model_args", "model=m", "--apply_chat_template")
    out = ("--output_path", "run", "--to-batch", "asked.jsonl")
    made = medtasks("run", "--tasks", PRIVATE, *flags, *out)
    assert made.code == 0, made.text
    assert stat.S_IMODE((tmp_path / "asked.jsonl").stat().st_mode) == 0o600 and are_private(tmp_path / "run")


def test_what_a_leaderboard_gets_of_a_private_run_is_its_owners_alone(medtasks, chip_ctc, tmp_path):
    task = "bridge_chip_ctc"
    assert medtasks("run", "--model", "random-label", "--tasks", task, "--output_path", "run").code == 0
    make_private(tmp_path / "run")
    assert medtasks("card", "run", "--layout", "bridge", "--parts", "-o", "sent").code == 0
    assert are_private(tmp_path / "sent/result")
