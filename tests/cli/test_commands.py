"""The command line: listing, filtering, wrong arguments."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from medtasks_ext.cli.commands import panels
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.folders import INSTALLED
from tests.conftest import ROOT, read_json


def test_ls_filters_by_any_metadata_field_and_says_where_data_is(medtasks, chip_ctc):
    outcome = medtasks("ls", "suite=bridge", "task_type=text_classification")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert next(line for line in lines if "chip_ctc" in line).endswith("local files")
    assert next(line for line in lines if "c_emrs" in line).endswith("missing")
    assert next(line for line in lines if "dialmed" in line).endswith("download")
    assert not any("bridge_mie" in line for line in lines)


def test_ls_prints_json(medtasks):
    records = json.loads(medtasks("ls", "--json", "mie").out)
    assert [record["id"] for record in records] == ["bridge_mie"]
    assert records[0]["specialties"] == ["cardiology"]


def test_ls_names_files_that_cannot_be_read(medtasks, tmp_path, monkeypatch):
    root = tmp_path / "tasks"
    shutil.copytree(registry().root, root)
    (root / "bridge" / "mie" / "task.yaml").write_text("task: [")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    outcome = medtasks("ls")
    assert "not listed: mie" in outcome.err and "not valid YAML" in outcome.err


def test_ctrl_c_ends_any_command_with_a_word(medtasks, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("medtasks_ext.cli.report.gather", interrupted)
    monkeypatch.setattr("medtasks_ext.cli.data.chosen", interrupted)
    repeated = "; the same command begins again:\n  medtasks report run"
    for command, how in ((("report", "run"), repeated), (("data", "status"), "")):
        outcome = medtasks(*command)
        assert (outcome.code, outcome.out, outcome.err) == (130, "", f"medtasks: interrupted{how}\n")


def test_ctrl_c_says_how_a_resumable_command_goes_on(medtasks, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("medtasks_ext.cli.run.build_request", interrupted)
    monkeypatch.setattr("medtasks_ext.cli.data.chosen", interrupted)
    fetching = medtasks("data", "fetch", "bridge_mie")
    assert "the same command goes on:\n  medtasks data fetch bridge_mie\n" in fetching.err
    outcome = medtasks("run", "bridge_mie", "--model", "oracle")
    assert outcome.code == 130
    assert "the same command goes on:\n  medtasks run bridge_mie --model oracle\n" in outcome.err


def test_help_names_every_command_in_a_panel_and_imports_none(tmp_path):
    script = (
        "import sys; from medtasks_ext.cli.main import main\n"
        "sys.argv = ['medtasks', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('LOADED', [name for name in sys.modules if name.startswith('medtasks_ext.cli.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    shown, _, loaded = done.stdout.partition("LOADED ")
    assert sorted(eval(loaded)) == [f"medtasks_ext.cli.{name}" for name in ("commands", "main", "words")]
    for panel, names in panels().items():
        part = shown.partition(f"\n{panel}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in part.splitlines()] == list(names)
        assert all(len(line.split()) > 2 for line in part.splitlines())


def test_a_command_is_declared_once(medtasks):
    """The line of `medtasks --help` is the beginning of the command's own help."""
    lines = [line.strip() for line in medtasks("--help").out.splitlines()]
    for name in (name for names in panels().values() for name in names):
        short = next(line.removeprefix(name).strip() for line in lines if line.split()[:1] == [name])
        own = " ".join(medtasks(name, "--help").out.split())
        assert short in own or name == "run", name


def test_ls_lists_the_tasks_of_groups_and_joins_names(medtasks):
    listed = json.loads(medtasks("ls", "bridge_zh_cot", "medhelm_medqa", "--json").out)
    assert [item["task"] for item in listed] == [*registry().leaves("bridge_zh_cot"), "medhelm_medqa"]
    outcome = medtasks("ls", "medtasks_scoreable")
    n = len(registry().leaves("medtasks_scoreable"))
    assert outcome.code == 0 and len(outcome.out.splitlines()) == n + 2 and f"{n} datasets" in outcome.out
    few = medtasks("ls", "medtasks_scoreable", "language=zh", "--json")
    assert {item["language"] for item in json.loads(few.out)} == {"zh"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["language=chinese"], "did you mean language=zh?"),
        (["language=xx"], "values: en, zh"),
        (["specialty=cardiolgy"], "did you mean specialties=cardiology "),
        (["cardiology_"], "did you mean"),
        (["Cardiology"], "did you mean specialties=cardiology?"),
        (["acess=open"], "did you mean access?"),
        (["language=ja", "suite=mlb"], "leave one out: language=ja has"),
        (["bridge_mei"], "did you mean: bridge_mie"),
        (["--groups", "nowhere"], "`medtasks ls --groups` lists all"),
    ],
)
def test_ls_never_prints_an_empty_table(medtasks, words, hint):
    outcome = medtasks("ls", *words)
    assert outcome.code == 2 and hint in outcome.err and outcome.out == ""


@pytest.mark.parametrize(
    "arguments", [["bridge_mie", "medhelm_medqa"], ["bridge_mie", "--tasks", "medhelm_medqa"]]
)
def test_run_takes_names_of_tasks_by_themselves(medtasks, tmp_path, arguments):
    asked = ("--model", "oracle", "--data", "sample", "--limit", "2", "--output_path", "r")
    medtasks.done("run", *arguments, *asked)
    found = read_json(tmp_path / "r" / "run.json")["tasks"]
    assert set(found) == {"bridge_mie", "medhelm_medqa"}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "bridge_mie", "-m", "oracle"], "did you mean --model or"),
        (["run", "bridge_mie", "--modle", "oracle"], "did you mean --model"),
        (["plan", "Qwen/Qwen3-8B", "-t", "bridge"], "did you mean --tasks"),
        (["judge", "--jury", "local", "--allow-gated"], "--allow-host HOST"),
        (["study", "gold", "a", "--jury", "local", "--allow-gated"], "--allow-host HOST"),
    ],
)
def test_an_unknown_option_gets_a_hint(medtasks, arguments, hint):
    outcome = medtasks(*arguments)
    assert outcome.code == 2 and hint in outcome.err


def test_report_takes_a_folder_of_runs(medtasks, tmp_path):
    for name in ("oracle", "random-label"):
        command = ["run", "bridge_mie", "--model", name, "--data", "sample", "--output_path", f"runs/{name}"]
        assert medtasks(*command).code == 0
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{")
    (tmp_path / "runs" / "notes").mkdir()
    outcome = medtasks("report", "runs", "--json")
    found = json.loads(outcome.out)
    assert {entry["model"] for entry in found["entries"]} == {"oracle", "random-label"}
    assert outcome.code == 1 and [Path(fault["where"]).name for fault in found["faults"]] == ["broken"]


def test_ls_groups_counts_the_tasks_behind_each(medtasks):
    outcome = medtasks("ls", "--groups", "medhelm_admin")
    admin = [
        item for item in registry().datasets.values() if item.metadata.axis("category") == ["administration"]
    ]
    assert len(admin) >= 5
    assert [line.split() for line in outcome.out.splitlines()] == [
        [f"medhelm_admin{suffix}", str(n)]
        for suffix, n in (("", len(admin)), ("_5shot", len(admin)), ("_cot", len(admin)), ("_ll", 4))
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ls", "colour=red"), "no metadata field 'colour'"),
        (("run", "--model", "oracle", "--tasks", "bridge_mee"), "did you mean: bridge_mie"),
        (("run", "--model", "oracle"), "no tasks given"),
        (("run", "--model", "oracle", "--tasks", "bridge_mie", "--data", "samples"), "unknown data origin"),
        (("run", "--model", "oracl", "--tasks", "bridge_mie", "--data", "sample"), "unknown model type"),
        (("run", "--config", "nope", "--tasks", "bridge_mie"), "no such file or bundled configuration"),
        (("run", "--config", "qwen3-8b-thinkin", "--tasks", "bridge_mie"), "did you mean Qwen3-8B-Thinking"),
        (
            ("run", "--model", "oracle", "--tasks", "bridge_brateca_mortality"),
            "files go to bridge/Brateca-Mortality.SFT.json",
        ),
        (("run", "--tasks", "bridge_mie", "--predict_only", "--output_path", "x"), "--predict_only"),
        (("run", "--tasks", "bridge_mie", "--bogus", "3"), "unknown: --bogus 3"),
        (("dev", "validate", "bridge_mee"), "did you mean: bridge_mie"),
        (("rescore", "nowhere"), "no such file"),
    ],
)  # fmt: skip
def test_a_wrong_argument_gets_one_message_and_exit_code_2(medtasks, data_dir, arguments, message):
    outcome = medtasks(*arguments)
    assert outcome.code == 2
    assert message in outcome.err and "→" in outcome.err
    assert "Traceback" not in outcome.text


def test_a_data_folder_that_does_not_exist_is_named(medtasks, monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA_DIR", "/no/such/folder")
    outcome = medtasks("run", "--model", "oracle", "--tasks", "bridge_mie")
    assert outcome.code == 2 and "MEDTASKS_DATA_DIR=/no/such/folder: no such folder" in outcome.err


@pytest.fixture
def own(tasks_of):
    return tasks_of("bridge/mie", "bridge/mednli")


def test_build_prints_a_folder_that_lm_eval_can_include(medtasks, own, tmp_path):
    folder = Path(medtasks("dev", "build").out.strip())
    assert folder.is_relative_to(tmp_path / "cache")
    manager = TaskManager(include_defaults=False, include_path=str(folder), metadata={"data": "sample"})
    assert set(manager.all_subtasks) == {*Registry(own).tasks, "bridge_mednli_ll"}
    (task,) = manager.load(["bridge_mie_cot"])["tasks"].values()
    assert task.strategy == "cot" and task.dataset_given.folder == own / "bridge" / "mie"


@pytest.mark.parametrize("task", ["bridge_mie", "bridge_mie_cot"])
def test_ls_names_the_file_that_a_person_wrote(medtasks, own, task):
    [listed] = json.loads(medtasks("ls", task, "--json").out)
    assert listed["file"] == str(own / "bridge" / "mie" / "task.yaml")


def test_build_names_what_it_wrote(medtasks, own):
    outcome = medtasks("dev", "build")
    assert outcome.code == 0
    names, schemas = outcome.err.splitlines()
    assert names.startswith("7 tasks, ")
    assert (Path(outcome.out.strip()) / "bridge" / "mie" / "cot.yaml").is_file()
    of_tasks, of_cards = schemas.partition(": ")[0].split(", ")
    for path in (Path(of_tasks), Path(of_tasks).with_name(of_cards)):
        assert json.loads(path.read_text())["title"]
    assert "(0 files changed)" in medtasks("dev", "build").err


def test_build_check_writes_nothing(medtasks, own):
    assert medtasks("dev", "build", "--check").code == 0 and not (own.parent / "cache").exists()


def test_an_installed_package_is_not_built_again(medtasks, monkeypatch, tmp_path):
    monkeypatch.setattr("medtasks_ext.cli.dev.built_folder", lambda: INSTALLED)
    outcome = medtasks("dev", "build")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{INSTALLED}\n", "")


def test_run_takes_the_folder_that_lm_eval_takes(medtasks):
    arguments = "run --model oracle --tasks bridge_mie --data sample --output_path run --include_path"
    outcome = medtasks(*arguments.split(), medtasks("dev", "build").out.strip())
    assert outcome.code == 0 and "1.0000" in outcome.out


def test_templates_of_several_datasets_are_written_by_one_command(medtasks, tmp_path):
    outcome = medtasks("data", "template", "medhelm_clear", "medhelm_ehrshot", "-o", "own")
    assert outcome.code == 0 and "medtasks run medhelm_clear medhelm_ehrshot" in outcome.text
    assert {path.name for path in (tmp_path / "own" / "medhelm").iterdir()} == {"clear", "ehrshot"}


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (("judge", "runs/a"), "For example: medtasks judge runs/MODEL --jury medhelm --dry-run"),
        (("view",), "For example: medtasks view runs/A runs/B"),
        (("data", "template"), "For example: medtasks data template medhelm_clear"),
        (("study", "forms"), "For example: medtasks study forms runs/MODEL runs/GPT4"),
    ],
)
def test_what_is_left_out_is_answered_with_an_example(medtasks, command, example):
    outcome = medtasks(*command)
    assert outcome.code == 2 and "Missing " in outcome.err
    assert example in " ".join(outcome.err.split())
