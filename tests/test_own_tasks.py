"""Tasks and suites of one's own, from YAML and JSON lines alone, beside the built-in ones."""

import csv
import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from lm_eval.tasks import TaskManager

from medtasks_ext.registry import SUFFIX, Registry, forget, registry
from medtasks_ext.registry.build import build
from medtasks_ext.registry.folders import tasks_folder
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.report.groups import group_scores, groups_of
from medtasks_ext.results.published import published_entries
from tests.conftest import ROOT, rewrite_answers, sample_rows, write_jsonl
from tests.judge.server import Reply, Server, coded
from tests.run_files import results_of

SOURCE = Path(__file__).parent / "own_tasks"
ITALIAN, POLISH, GREEK = "wards_referti_triage", "wards_pytania_o_leki", "wards_epeigon"
ALONE = "allergie_farmaci"


@pytest.fixture
def own(tmp_path, monkeypatch, data_dir) -> Path:
    """A folder with a suite of three datasets and a dataset of no suite, which the environment names."""
    folder = tmp_path / "mine"
    shutil.copytree(SOURCE, folder)
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield folder
    forget()


@pytest.fixture
def rows(own, data_dir) -> Path:
    """The invented rows as if they were a hospital's: files in the data folder."""
    for dataset in filter(registry().is_own, registry().datasets.values()):
        for split in ("test", "fewshot"):
            write_jsonl(data_dir / dataset.key / f"{split}.jsonl", sample_rows(dataset.id, split))
    return data_dir


@pytest.fixture
def run(medtasks, rows, tmp_path):
    """Answer tasks with their references: `run("wards", folder="run")`."""

    def call(*names: str, folder: str = "run") -> Path:
        medtasks.done("run", "--model", "oracle", "--tasks", ",".join(names), "--output_path", folder)
        return tmp_path / folder

    return call


def test_datasets_are_listed_by_language_axis_and_suite(medtasks, own):
    def listed(*filters: str) -> set[str]:
        return {item["id"] for item in json.loads(medtasks("ls", "--json", *filters).out)}

    assert listed("suite=wards") == {ITALIAN, POLISH, GREEK}
    assert listed("language=it") == {ITALIAN, ALONE}
    assert listed("language=el") == {GREEK}
    assert listed("unit=emergency") == {ITALIAN, GREEK}
    assert listed("document_types=triage_note") == {ITALIAN, GREEK}
    assert listed("suite=own") == {ALONE}
    assert len(listed()) == len(Registry(tasks_folder()).datasets) + 4


def test_groups_follow_from_the_suites_file_and_the_metadata(medtasks, own):
    lines = map(str.split, medtasks("ls", "--groups", "wards").out.splitlines())
    sizes = {name: int(n) for name, n in lines}
    tasks, listed = registry(), {"wards": 3, "wards_emergency": 2}
    closed = sum(item.is_closed for item in tasks.datasets_of(tasks.suites["wards"]))
    ways = {name + suffix: n for name, n in listed.items() for suffix in SUFFIX.values()}
    assert sizes == ways | ({"wards_ll": closed} if closed > 1 else {})
    # groups of one task are not listed, and are known
    one = ("outpatient", "it", "pl", "el", "event_extraction", "question_answering", "text_classification")
    assert {len(tasks.leaves(f"wards_{name}")) for name in one} == {1}
    alone = Registry(tasks_folder())
    built_in = Counter(item.metadata.language for item in alone.datasets.values())
    added = {code: len(tasks.leaves(f"medtasks_{code}")) - built_in[code] for code in ("it", "pl", "el")}
    assert added == {"it": 2, "pl": 1, "el": 1}


def test_prompts_have_the_suites_line_of_the_language(medtasks, own):
    def prompt(task: str) -> str:
        outcome = medtasks.done("preview", task, "--data", "sample")
        return outcome.out

    lines = yaml.safe_load((own / "wards" / "suite.yaml").read_text(encoding="utf-8"))["strategy_lines"]["it"]
    assert lines["answer"] in prompt(ITALIAN) and lines["answer"] in prompt(f"{ITALIAN}_5shot")
    assert lines["reason"] in prompt(f"{ITALIAN}_cot") and lines["answer"] not in prompt(f"{ITALIAN}_cot")
    assert "- sospetto: la nota lo sospetta" in prompt(ITALIAN)
    assert lines["answer"] not in prompt(GREEK) and "μη επείγον" in prompt(GREEK)
    assert lines["answer"] not in prompt(ALONE)


def test_folders_of_ones_own_are_several_or_that_of_lm_eval(medtasks, own, monkeypatch):
    monkeypatch.setenv("MEDTASKS_TASKS", f"{own / ALONE}:{own / 'wards'}")
    outcome = medtasks("ls", "--json")
    found = {item["id"] for item in json.loads(outcome.out)}
    assert {ITALIAN, POLISH, GREEK, ALONE} <= found
    monkeypatch.delenv("MEDTASKS_TASKS")
    outcome = medtasks(
        "run", "--model", "oracle", "--include_path", own, "--tasks", "wards_el", "--data", "sample",
        "--output_path", "run",
    )  # fmt: skip
    assert outcome.code == 0 and "1.0000" in outcome.out


@pytest.fixture
def server():
    """A judge that gives the three axes 5, 5 and 4."""
    scores = (5, 5, 4)
    with Server(
        lambda asked, seen: Reply(
            coded(
                {axis: {"score": n, "explanation": "x"} for axis, n in zip(asked.axes, scores, strict=True)}
            )
        )
    ) as one:
        yield one


@pytest.fixture
def jury(tmp_path, server) -> Path:
    judge = {"name": "one", "model": "one", "base_url": server.url, "max_concurrent": 4}
    path = tmp_path / "jury.yaml"
    path.write_text(yaml.safe_dump({"judges": [judge]}))
    return path


def test_the_suites_own_figure_is_the_mean_over_its_axis(medtasks, run, jury, server):
    folder = run("wards", "wards_cot", "wards_5shot", "own")
    # two of six labels are wrong, and two of the 21 findings are missing
    rewrite_answers(folder, GREEK, {"t1": "μη επείγον", "t2": "επείγον"})
    rewrite_answers(
        folder, ITALIAN, {"t6": "reperto: orticaria, stato: presente;\nreperto: prurito, stato: presente;"}
    )
    medtasks.done("rescore", folder)
    greek, italian, polish = 4 / 6, 2 * 19 / (2 * 19 + 0 + 2), ((5 + 5 + 4) / 3 - 1) / 4

    def groups() -> dict:
        return results_of(folder)["medtasks"]["groups"]

    assert groups()["wards"]["score"] == pytest.approx((greek + italian) / 2)
    assert (groups()["wards"]["n_scored"], groups()["wards"]["n_tasks"]) == (2, 3)
    medtasks.done("judge", "--jury", jury)
    assert {asked.axes[1] for asked in server.asked} == {"safety"} and len(server.asked) == 3 * 6
    assert "Czy doksycyklinę można popijać mlekiem?" in {asked.texts["question"] for asked in server.asked}
    found = groups()
    assert found["wards"]["score"] == pytest.approx(((greek + italian) / 2 + polish) / 2)
    assert found["wards_emergency"]["score"] == pytest.approx((greek + italian) / 2)
    assert found["wards_outpatient"]["score"] == pytest.approx(polish)
    for suffix in ("_cot", "_5shot"):
        assert found[f"wards{suffix}"]["score"] == pytest.approx((1 + polish) / 2)
    assert found["own"]["score"] == 1
    assert all(row["n_scored"] == row["n_tasks"] for row in found.values())

    medtasks.done("report", "run", "-o", "report")
    table = list(csv.DictReader((folder.parent / "report" / "groups.csv").open(encoding="utf-8")))
    rows = {(row["axis"], row["value"]): row for row in table if row["strategy"] == "zero_shot"}
    assert rows["suite", "wards"]["title"] == "WardBench"
    assert float(rows["suite", "wards"]["score"]) == pytest.approx(((greek + italian) / 2 + polish) / 2)
    assert (rows["suite", "wards"]["tasks_scored"], rows["suite", "wards"]["tasks"]) == ("3", "3")
    assert {row["value"] for row in table if row["suite"] == "wards" and row["axis"] == "unit"} == {
        "emergency", "outpatient", "average",
    }  # fmt: skip
    assert {row["suite"] for row in table} == {"", "wards", "own"}
    medtasks.done("card", "run", "-o", "card", "--parts")
    card = (folder.parent / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert "| WardBench | zero-shot |" in card and f"| `{POLISH}` |" in card


def test_published_scores_of_built_in_suites_stay_as_they_are(own):
    """An own dataset in the language of a suite takes nothing from the suite's row."""
    folder = own / ALONE
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    (folder / "task.yaml").write_text(text.replace("language: it", "language: de"), encoding="utf-8")
    alone, beside = Registry(tasks_folder()), registry()
    assert len(beside.leaves("medtasks_de")) == len(alone.leaves("medtasks_de")) + 1

    def inside_suites(tasks: Registry) -> dict:
        groups = tuple(group for group in groups_of(tasks) if group.suite)
        return {
            tuple(row[name] for name in ("entry", "strategy", "suite", "axis", "value")): (
                row["score"], row["tasks_scored"], row["partial"],
            )
            for entry in published_entries(tasks)[::20]
            for strategy in SUFFIX
            for row in group_scores(entry, strategy, groups)
        }  # fmt: skip

    assert inside_suites(beside) == inside_suites(alone)


def test_lm_eval_finds_the_same_groups(medtasks, own, tmp_path):
    """lm-eval's own index over the built-in tasks and what `medtasks dev build` prints."""
    tasks, alone = registry(), Registry(tasks_folder())
    build(alone, tmp_path / "built_in")
    folders = [str(tmp_path / "built_in"), medtasks.done("dev", "build").out.strip()]
    manager = TaskManager(include_defaults=False, include_path=folders, metadata={"data": "sample"})
    closed = {item.task(LIKELIHOOD) for item in tasks.datasets.values() if item.is_closed}
    assert set(manager.all_subtasks) == {*tasks.tasks, *closed} and "allergie_farmaci_ll" in closed
    assert set(manager.all_groups) == {*tasks.listed, *alone.listed}

    def leaves(name: str) -> set[str]:
        entry = manager.task_index[name]
        groups = entry.cfg["task"] if entry.kind.name == "GROUP" else ()
        return {leaf for member in groups for leaf in leaves(member)} or {name}

    assert {name: leaves(name) for name in tasks.listed} == {
        name: set(members) for name, members in tasks.listed.items()
    }


def test_results_without_the_folder_of_their_tasks_say_what_to_name(medtasks, run, monkeypatch):
    run("wards_el")
    monkeypatch.delenv("MEDTASKS_TASKS")
    for command in (("report", "run", "-o", "report"), ("rescore", "run")):
        outcome = medtasks(*command)
        assert outcome.code != 0 and "MEDTASKS_TASKS=FOLDER" in outcome.err, (command, outcome.text)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def edited(name: str, old: str, new: str):
    return lambda own: change(own / name, old, new)


TRIAGE, SUITE, LONE = "wards/epeigon/task.yaml", "wards/suite.yaml", f"{ALONE}/task.yaml"
#: what is done to the folder, the file that the message names, and what it says
FAULTS = {
    "a built-in name": (edited(LONE, f"task: {ALONE}", "task: bridge_mie"), LONE,
                        "task 'bridge_mie' is also in"),
    "a built-in suite": (lambda own: (own / "wards").rename(own / "bridge"), "bridge/suite.yaml",
                         "the suite's name 'bridge' is taken by"),
    "no YAML": (edited(TRIAGE, "rows:", "rows: ["), f"{TRIAGE}:", "not valid YAML"),
    "no value": (edited(TRIAGE, "unit: emergency", "unit: emergancy"), TRIAGE,
                 "'emergancy' is no value of unit (did you mean emergency?)"),
    "an axis of no suite": (edited(LONE, "  access: private", "  axes: {unit: emergency}\n  access: private"),
                            LONE, "only datasets of a suite have axes"),
    "a value of no vocabulary": (edited(LONE, "specialties: [general]", "specialties: [geriatrics]"), LONE,
                                 "vocabulary.yaml in your folder, under specialties"),
    "no such dataset": (edited(SUITE, "epeigon]", "epeigo]"), SUITE,
                        "no dataset 'epeigo' in the folder (did you mean epeigon?)"),
    "no task": (lambda own: [(own / "readme.txt").touch(), *map(shutil.rmtree, (own / "wards", own / ALONE))],
                "mine", "no task.yaml in this folder"),
    "no folder": (shutil.rmtree, "mine", "no such folder"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "where", "what"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_message_with_file_and_remedy(medtasks, tasks_of, own, tmp_path, spoil, where, what):
    spoil(own)
    tasks_of("bridge/mie")
    asked = ("run", "--model", "oracle", "--tasks", "wards", "--data", "sample", "-o", "run")
    for command in (("dev", "build"), asked):
        outcome = medtasks(*command)
        assert outcome.code == 2, outcome.text
        first, *rest = outcome.err.splitlines()
        assert where in first and what in first
        assert len(rest) == 1 and rest[0].startswith("  → ")
        assert not (tmp_path / "run").exists()


def section() -> str:
    """What docs/add_a_dataset.md says of tasks of one's own."""
    text = (ROOT / "docs" / "add_a_dataset.md").read_text(encoding="utf-8")
    return text.partition("\n## Tasks and suites of your own\n")[2].partition("\n## ")[0]


def test_the_page_shows_commands_that_do_what_it_says(medtasks, data_dir, tmp_path, monkeypatch):
    for name in ("MEDTASKS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    notes = "".join(f"Paziente {n},{('sì', 'no')[n % 2]}\n" for n in range(6))
    Path("note.csv").write_text(f"nota,esito\n{notes}", encoding="utf-8")
    datasets, suite, in_suite, lm_eval = re.findall(r"```(?:yaml)?\n(.*?)```", section(), re.DOTALL)
    for line in datasets.replace("\\\n", " ").splitlines():
        name, *words = shlex.split(line, comments=True)
        if name == "mkdir":
            Path(*words).mkdir(parents=True)
        elif name == "export":
            monkeypatch.setenv(*words[0].split("="))
        else:
            outcome = medtasks(*words)
            assert outcome.code == (1 if "validate" in words else 0), outcome.text
            forget()
    assert registry().leaves("medtasks_it") == ["own_cadute"]
    place = re.match(r"# (\S+)\n", suite)[1]
    assert place == "my_tasks/wards/suite.yaml"
    Path(place).parent.mkdir()
    Path(place).write_text(suite, encoding="utf-8")
    forget()
    for line in in_suite.replace("\\\n", " ").splitlines():
        outcome = medtasks.done(*shlex.split(line, comments=True)[1:])
        forget()
    assert registry().leaves("wards") == ["wards_triage"] == registry().leaves("wards_emergency")
    assert '--include_path "$(medtasks dev build)"' in lm_eval
    folder = medtasks("dev", "build").out.strip()
    manager = TaskManager(include_defaults=False, include_path=folder, metadata={"data": "sample"})
    names = re.search(r"--tasks (\S+)", lm_eval)[1].split(",")
    assert set(manager.load(names)["tasks"]) == {"own_cadute", "wards_triage"}


FLAGS = (
    "--kind", "label_word", "language=it", "task_type=text_classification",
    "document_types=general_ehr_note", "specialties=general", "stage=research", "access=private",
)  # fmt: skip


def test_new_writes_into_the_folder_of_ones_own(medtasks, own):
    medtasks.done("data", "new", "--id", "own_cadute", *FLAGS)
    assert (own / "cadute" / "sample.jsonl").is_file()
    assert registry().datasets["own_cadute"].key == "own/cadute"
    outcome = medtasks("data", "new", "--id", "wards_cadute", *FLAGS, "unit=emergency")
    assert outcome.code == 0 and "until `datasets` in" in outcome.text
    assert (own / "wards" / "cadute" / "task.yaml").is_file()
    assert sorted(path.name for path in own.iterdir()) == ["allergie_farmaci", "cadute", "wards"]
    outcome = medtasks("dev", "validate", "own_cadute", "wards_cadute")
    lines = [line for line in outcome.out.splitlines() if line.startswith("  ✗")]
    assert lines == ["  ✗ nothing is left to fill in"] * 2
