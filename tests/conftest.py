"""Shared fixtures. Tests run offline and never see the user's own data folder."""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", TOKENIZERS_PARALLELISM="false")
# Where `medtasks data fetch official` put released files. Tests begin with an empty cache, so that none
# depends on what this machine has; processes that they start inherit it.
_kept = Path(os.environ.get("MEDTASKS_CACHE") or "~/.cache/medtasks").expanduser()
os.environ.setdefault("RELEASED", str(_kept))
_cache = tempfile.TemporaryDirectory(prefix="medtasks-tests-")
os.environ["MEDTASKS_SHOW_TEXT"] = "1"  # all rows of tests are invented; test_privacy.py tests the default
for name in ("DATA", "DATA_DIR", "TASKS", "TASKS_DIR", "CACHE", "BERTSCORE", "PROMPTS"):
    os.environ.pop(f"MEDTASKS_{name}", None)
os.environ["MEDTASKS_CACHE"] = _cache.name
os.environ.pop("COLUMNS", None)

if find_spec("hypothesis"):  # the environment of the engine tests has none
    from hypothesis import HealthCheck, settings

    # a busy machine takes its time
    settings.register_profile(
        "every day",
        deadline=None,
        derandomize=True,
        max_examples=40,
        suppress_health_check=[HealthCheck.filter_too_much],
    )
    settings.register_profile("nightly", deadline=None, max_examples=400, print_blob=True)
    settings.load_profile("every day")

ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--task", help="of the tests that are parametrised over datasets, those of this one")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what concerns the dataset of `--task`."""
    if dataset := config.getoption("--task"):
        names = {dataset, f"{dataset}_cot", f"{dataset}_5shot"}
        chosen = [item for item in items if names & names_of(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def names_of(item: pytest.Item) -> set[str]:
    """The texts with which a test is called, and the names of datasets."""
    called = getattr(item, "callspec", None)
    values = called.params.values() if called else ()
    return {str(getattr(value, "id", value)) for value in values}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def declare_suites(root: Path) -> None:
    """Declare the suites of a small tasks folder, as far as their datasets are there."""
    import yaml

    from medtasks_ext.registry.suites import SUITE_FILE

    for source in (ROOT / "tasks").glob(f"*/{SUITE_FILE}"):
        folder = root / source.parent.name
        here = {file.parent.name for file in folder.glob("*/task.yaml")}
        if here:
            content = yaml.safe_load(source.read_text(encoding="utf-8"))
            content["datasets"] = [name for name in content.get("datasets", ()) if name in here]
            left_out = content.pop("left_out", {})
            content["left_out"] = {axis: sorted(here & set(names)) for axis, names in left_out.items()}
            (folder / SUITE_FILE).write_text(
                yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8"
            )


@pytest.fixture(autouse=True)
def levels_of_logs():
    """A command sets levels for its own process; those of a test end with the test."""
    yield
    for name in ("medtasks_ext.metrics", "medtasks_ext.prompts.load"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def tasks_of(tmp_path, monkeypatch):
    """Copy datasets (`SUITE/DATASET`) into a tasks folder in place of the built-in one; caches are empty."""
    from medtasks_ext.registry import forget

    root = tmp_path / "tasks"

    def copied(*names: str) -> Path:
        for name in names:
            shutil.copytree(ROOT / "tasks" / name, root / name)
        declare_suites(root)
        forget()
        return root

    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    yield copied
    forget()


@pytest.fixture
def few_rows(monkeypatch) -> None:
    """Downloads that nobody has pinned may have any number of rows, not about as many as their suite has."""
    monkeypatch.setattr("medtasks_ext.prompts.load._NEAR", float("inf"))


@pytest.fixture
def released(tmp_path, monkeypatch) -> Path:
    """A cache with the released files that are on this machine, where official words are looked up."""
    source, cache = Path(os.environ["RELEASED"]) / "official", tmp_path / "released"
    if source.is_dir():
        shutil.copytree(source, cache / "official")
    monkeypatch.setenv("MEDTASKS_CACHE", str(cache))
    return cache


@pytest.fixture
def helm(released) -> Path:
    """The wheel of HELM; the test skips where it was not fetched."""
    found = next(iter(released.glob("official/*/crfm_helm-*.whl")), None)
    if found is None:
        pytest.skip("the wheel of crfm-helm is not here: medtasks data fetch official")
    return found


@pytest.fixture(scope="session")
def built_tasks(made_once) -> Path:
    """The tasks of this checkout as lm-eval's index needs them, for its `include_path`."""
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.build import build

    return made_once("built", lambda folder: build(Registry(ROOT / "tasks"), folder / "tasks")) / "tasks"


#: name, what fills the folder -> the folder
MadeOnce = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> MadeOnce:
    """A folder that the first of all workers makes, and that tests of every worker read and never change."""
    from filelock import FileLock

    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def made(name: str, fill: Callable[[Path], None]) -> Path:
        folder, whole = root / f"once-{name}", root / f"once-{name}.made"
        with FileLock(root / f"once-{name}.lock"):
            if not whole.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed half way
                folder.mkdir()
                fill(folder)
                whole.touch()
        return folder

    return made


def command(*arguments: object) -> None:
    """Run a command in this process, where a fixture of more than one test needs what it writes."""
    from medtasks_ext.cli.main import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["medtasks", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, arguments


@pytest.fixture
def medtasks(capsys, monkeypatch, tmp_path):
    """Run the command in this process, in an empty folder; `medtasks.done` where it must succeed."""
    from medtasks_ext.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTASKS_TASKS", os.environ.get("MEDTASKS_TASKS", ""))  # options add to it

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["medtasks", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    def done(*arguments: object) -> Outcome:
        outcome = call(*arguments)
        assert outcome.code == 0, outcome.text
        return outcome

    call.done = done  # type: ignore[attr-defined]
    return call


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(folder))
    return folder


def problems_of(registry, dataset) -> list[str]:
    """What `medtasks dev validate` finds wrong with a dataset folder, in words."""
    from medtasks_ext.runner.validate import RunFolder

    return [problem for check in RunFolder(registry, dataset).checks() for problem in check.problems]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen) -> None:
    """Wait for what a process does, as long as the process lives: a busy machine takes its time."""
    while not condition():
        assert process.poll() is None, f"ended with {process.returncode} before that"
        time.sleep(0.01)


#: for what is drawn by a hash: a part of it every day, all parts every night
PARTS = [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in (1, 2))]


def part_of(name: str) -> int:
    """The part of `PARTS` that something belongs to by its name."""
    return crc32(name.encode()) % len(PARTS)


def series(items: Sequence[Any], name: Callable[[Any], str]) -> list[Any]:
    """Parameters of a long series: a third of them, drawn by their names, every day, and all every night."""
    every_night = [() if part_of(name(item)) == 0 else pytest.mark.nightly for item in items]
    return [pytest.param(item, id=name(item), marks=m) for item, m in zip(items, every_night, strict=True)]


#: For a process of lm-eval's command: it loads what `--include_path` names, and none of its own tasks.
INCLUDED_ALONE = """import functools
import lm_eval.tasks
lm_eval.tasks.TaskManager = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)
"""


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@contextmanager
def edited_json(path: Path) -> Iterator[Any]:
    """What a file holds, and holds afterwards."""
    content = read_json(path)
    yield content
    path.write_text(json.dumps(content), encoding="utf-8")


def write_jsonl(path: Path, rows: list[dict]) -> Path:
    """Write rows, making the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def sample_rows(name: str, split: str = "test") -> list[dict]:
    """Invented rows of a dataset as its source would hold them: of one split, or all of them (``)."""
    from medtasks_ext.registry import registry

    lines = registry().datasets[name].sample_file.read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row.pop("_split") == split or not split]


def outcomes(run: Path | str, task: str = "", *kinds: str) -> list[dict[str, Any]]:
    """The lines of a run's folder: answers by default, of one task or of all."""
    lines = [line for path in sorted(Path(run).glob("answers*.jsonl")) for line in path.open("rb")]
    rows = map(json.loads, lines)
    return [row for row in rows if row["outcome"] in (kinds or ("answer",)) and task in ("", row["task"])]


def rewrite_answers(run: Path, task: str, answers: dict[str, str]) -> None:
    """Replace stored answers by document, as if the model had given them."""
    from medtasks_ext.jsonfile import json_bytes
    from medtasks_ext.run.store import _line

    path = run / "answers.jsonl"
    rows = [json.loads(line) for line in path.open("rb")]
    for row in rows:
        row.pop("hash")
        if row["outcome"] == "answer" and row["task"] == task and row["document"] in answers:
            row["text"] = answers[row["document"]]
    path.write_bytes(b"".join(_line(json_bytes(row)) for row in rows))
    hashed_anew(run)


def hashed_anew(place: Path) -> None:
    """Write the hashes of the run's folder that a path lies in anew, as if a command had edited it."""
    from medtasks_ext.run.store import working_in
    from medtasks_ext.runs.folder import SUMS

    run = next((folder for folder in (place, *place.parents) if (folder / "run.json").is_file()), None)
    if run is not None:
        (run / SUMS).unlink(missing_ok=True)
        with working_in(run, "a test"):
            pass


def sft_row(
    number: int, text: str, output: str, *, split: str = "test", task: str = "CHIP-CTC", **more
) -> dict:
    return {
        "task": task, "language": "zh", "task type": "x", "id": f"{split}-{number}", "split": split,
        "input": text, "output": output, **more,
    }  # fmt: skip


@pytest.fixture
def chip_ctc(data_dir):
    """BRIDGE's official layout for CHIP-CTC: 8 test rows, 5 examples. Returns the data folder."""
    labels = ["年龄", "疾病", "药物", "性别", "年龄", "疾病", "护理", "睡眠"]
    test = [
        sft_row(i, f"入组标准第{i}条", f"clinical trial criterion: {label}") for i, label in enumerate(labels)
    ]
    shots = [sft_row(i, f"示例{i}", "clinical trial criterion: 饮食", split="train") for i in range(5)]
    (data_dir / "bridge" / "example").mkdir(parents=True)
    (data_dir / "bridge" / "CHIP-CTC.SFT.json").write_text(
        json.dumps(test, ensure_ascii=False), encoding="utf-8"
    )
    (data_dir / "bridge" / "example" / "CHIP-CTC.example.json").write_text(
        json.dumps(shots, ensure_ascii=False), encoding="utf-8"
    )
    return data_dir


@pytest.fixture
def no_punkt(monkeypatch):
    """NLTK as installed, without its data."""
    from medtasks_ext.metrics import generation

    caches = generation.tokeniser, generation.rouge_spelling
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr("nltk.data.path", [])
    yield
    for cache in caches:
        cache.cache_clear()
