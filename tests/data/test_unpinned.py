"""Files that nobody has pinned: said so, recorded at first use, refused with other content later."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import _build
from medtasks_ext.registry import forget, registry
from medtasks_ext.rows.sources import source_of
from tests.conftest import declare_suites, read_json, sample_rows
from tests.rows.hub_server import Hub
from tests.rows.original_sources import as_csv, jsonl, parquet

pytestmark = pytest.mark.usefixtures("few_rows")

URL, BRANCH, COMMIT, PINNED = (
    "medhelm_live_sct_bench", "medhelm_live_healthqa_br", "medhelm_live_medxpertqa", "healthbench_full",
)  # fmt: skip
KEYS = ("medhelm_live/sct_bench", "medhelm_live/healthqa_br", "medhelm_live/medxpertqa", "healthbench/full")
UNPINNED = "(unpinned: recorded at first use, other content is refused later)"


def rows_of(name):
    return sample_rows(name, "")


def content_of(content):
    return {"digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub and a web server with the sample rows of these datasets; tasks and caches point there."""
    server, root = Hub(), tmp_path / "tasks"
    contents = {
        URL: as_csv(rows_of(URL)),
        BRANCH: parquet(rows_of(BRANCH)),
        PINNED: jsonl(rows_of(PINNED)).encode(),
    }
    contents[COMMIT] = jsonl(rows_of(COMMIT)).encode()
    for key in KEYS:
        shutil.copytree(registry().root / key, root / key)
    declare_suites(root)
    for key in (KEYS[0], KEYS[3]):
        file = root / key / "task.yaml"
        text = file.read_text(encoding="utf-8")
        for host in ("https://raw.githubusercontent.com", "https://openaipublic.blob.core.windows.net"):
            text = text.replace(host, server.url)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    server.take_place(monkeypatch, tmp_path)
    for name in (BRANCH, COMMIT):
        download = source_of(registry().datasets[name]).download
        for file in (*download.test, *download.fewshot):
            server.put(download.repo, download.revision, file, contents[name])
    for name in (URL, PINNED):
        download = source_of(registry().datasets[name]).download
        address = download.test[0].format(revision=download.revision)
        server.files[address.removeprefix(server.url)] = contents[name]
    yield server
    server.close()


def change(hub, part, more):
    """Serve other content, and forget what is here of it."""
    path = next(path for path in hub.files if part in path)
    hub.files[path] = more(hub.files[path])


def held(file):
    """What a lock says of the content of files, without who has seen it and where it is had."""
    return {name: {key: item[key] for key in ("digest", "size")} for name, item in file.items()}


def lines_of(outcome, part):
    return [line.strip() for line in outcome.out.splitlines() if part in line]


def files_of(outcome, part):
    """Lines of `data status` on the files of datasets, which stand below the table."""
    return [line.strip() for line in outcome.out.splitlines() if part in line and line.startswith("    ")]


def test_where_says_what_is_unpinned(medtasks, hub):
    outcome = medtasks.done("data", "status", URL, BRANCH, COMMIT)
    assert [line.endswith(UNPINNED) for line in files_of(outcome, "sct_cleaned_full.csv")] == [True]
    assert [line.endswith(UNPINNED) for line in files_of(outcome, "healthqa-br.parquet")] == [True]
    assert all(line.endswith(UNPINNED) for line in files_of(outcome, "MedXpertQA@"))  # the hub's word alone
    [line] = files_of(medtasks.done("data", "status", PINNED), "oss_eval.jsonl")
    assert UNPINNED not in line


@pytest.mark.parametrize(
    ("name", "part", "kept"),
    [(URL, "sct_cleaned_full.csv", "cache/*"), (BRANCH, "healthqa-br.parquet", "hub/*")],
)
def test_the_first_use_holds_also_without_data_fetch(medtasks, hub, tmp_path, name, part, kept):
    words = ("run", "--model", "oracle", "--tasks", name)
    medtasks.done(*words, "--output_path", "first")
    record = next((tmp_path / "cache" / "first_use").glob("*.json"))
    assert part in read_json(record)["source"]
    more = {
        URL: lambda text: text.replace(b" the ", b" a "),
        BRANCH: lambda text: parquet(rows_of(BRANCH)[1:]),
    }
    change(hub, part, more[name])
    for folder in tmp_path.glob(kept):
        if folder.is_dir() and folder.name != "first_use":
            shutil.rmtree(folder)
    _build.cache_clear()
    later = medtasks(*words, "--output_path", "later")
    assert later.code != 0 and "has other content than was recorded for it" in later.err
    assert f"remove {record}" in later.err
    record.unlink()
    _build.cache_clear()
    assert medtasks(*words, "--output_path", "accepted").code == 0


def test_fetch_says_it_and_status_counts_it(medtasks, hub):
    outcome = medtasks.done("data", "fetch", URL, BRANCH, COMMIT)
    said = {line.split()[1]: line.partition("; ")[2] for line in lines_of(outcome, "✓")}
    recorded = "unpinned: recorded now, other content is refused later"
    assert said == {URL: f"1 file {recorded}", BRANCH: f"1 file {recorded}", COMMIT: f"2 files {recorded}"}
    status = json.loads(medtasks("data", "status", URL, BRANCH, COMMIT, "--json").out)
    assert all(item["here"] for item in status)
    assert [item["pinned"] for item in status] == [False, False, False]
    printed = medtasks("data", "status", URL, BRANCH, COMMIT).out
    assert printed.count(" unpinned: ") == 3 and "; 3 not pinned, recorded at first use" in printed


def test_content_that_is_pinned_by_its_digest_is_taken_from_nobody_else(medtasks, hub):
    outcome = medtasks("data", "fetch", PINNED)
    assert outcome.code == 1 and "sends other content than is pinned" in outcome.err


def on_another_machine(hub, folder, seed):
    """Run `medtasks dev lock --data` in a process of its own with nothing in its caches; its `tasks`."""
    folder.mkdir()
    for key in KEYS:
        shutil.copytree(folder.parent / "tasks" / key, folder / "tasks" / key)
    for name, key in ((URL, KEYS[0]), (BRANCH, KEYS[1])):  # a suite's part of just these rows
        card = folder / "tasks" / key / "card.yaml"
        text = re.sub(r"n_test: \d+", f"n_test: {len(rows_of(name))}", card.read_text(encoding="utf-8"))
        card.write_text(text, encoding="utf-8")
    declare_suites(folder / "tasks")
    names = {"MEDTASKS_TASKS_DIR": "tasks", "MEDTASKS_CACHE": "cache", "HF_HOME": "hub", "HOME": "home"}
    where = {name: str(folder / place) for name, place in names.items()}
    hosts = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0"}
    own = {"PYTHONHASHSEED": str(seed), "TZ": f"X{seed}", "LC_ALL": "C" if seed else "C.UTF-8"}
    left_out = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE"}
    outcome = subprocess.run(
        [sys.executable, "-m", "medtasks_ext", "dev", "lock", "--data", URL, BRANCH],
        env={key: value for key, value in os.environ.items() if key not in left_out} | where | hosts | own,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return folder / "tasks"


def test_a_lock_that_is_rebuilt_elsewhere_is_equal_to_the_byte(medtasks, hub, tmp_path, monkeypatch):
    hub.commits = {"main": "d" * 40}
    hub.put("Larxel/healthqa-br", "d" * 40, "healthqa-br.parquet", parquet(rows_of(BRANCH)))
    one, other = (on_another_machine(hub, tmp_path / f"machine{seed}", seed) for seed in (0, 7))
    names = [f"{key}/{file}" for key in KEYS[:2] for file in ("data.lock", "documents.lock")]
    assert [name for name in names if not (one / name).is_file()] == []
    day = re.compile(rb'"day": "\d{4}-\d\d-\d\d"')  # midnight may lie between the two
    for name in names:
        left, right = (day.sub(b"", (root / name).read_bytes()) for root in (one, other))
        assert left == right, name

    # who has a lock and none of its files pins to what it says, the day of who saw it first too
    before = {name: (one / name).read_bytes() for name in names}
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(one))
    hub.take_place(monkeypatch, tmp_path / "third")
    forget()
    outcome = medtasks("dev", "lock", "--data", URL, BRANCH)
    assert outcome.code == 0 and outcome.out.count("nothing new") == 2, outcome.text
    assert {name: (one / name).read_bytes() for name in names} == before


def test_data_pin_writes_what_all_files_hold_and_refuses_what_is_pinned_otherwise(medtasks, hub, tmp_path):
    root, commit = tmp_path / "tasks", "d" * 40
    hub.commits = {"main": commit}
    hub.put("Larxel/healthqa-br", commit, "healthqa-br.parquet", parquet(rows_of(BRANCH)))
    revision = source_of(registry().datasets[COMMIT]).download.revision
    outcome = medtasks.done("dev", "lock", "--data", URL, BRANCH, COMMIT)
    locks = dict(zip((URL, BRANCH, COMMIT, PINNED), (root / key / "data.lock" for key in KEYS), strict=True))
    found = {name: read_json(locks[name]) for name in (URL, BRANCH, COMMIT)}
    assert found[BRANCH]["revision"] == commit and found[COMMIT]["revision"] == revision
    pinned, files = content_of(jsonl(rows_of(COMMIT)).encode()), held(found[COMMIT]["files"])
    assert files and all(file == pinned for file in files.values())
    hub = "https://huggingface.co/datasets/Larxel/healthqa-br/resolve/"
    assert found[BRANCH]["files"]["healthqa-br.parquet"]["hosts"] == [f"{hub}{commit}/healthqa-br.parquet"]
    assert f"sct_cleaned_full.csv: {content_of(as_csv(rows_of(URL)))['digest']}" in outcome.out
    forget()
    again = medtasks("dev", "lock", "--data", URL, BRANCH, COMMIT)
    assert again.code == 0 and again.out.count("nothing new") == 3
    before = locks[PINNED].read_text(encoding="utf-8")
    refused = medtasks("dev", "lock", "--data", PINNED)
    assert refused.code == 2 and "sends other content than is pinned" in refused.err
    assert locks[PINNED].read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"revision": 1}', "revision: "),
        ('{"revison": "1"}', "revison: unknown key"),
        ('{"files": {"a.csv": {"digest": "md5:1"}}}', "files.a.csv.digest: "),
        ('{"revision": "1", "revision": "2"}', "no JSON (a key occurs twice)"),
        ("revision: 1", "no JSON ("),
    ],
)
def test_a_lock_that_no_command_wrote_is_named_with_its_key(hub, tmp_path, content, said):
    file = tmp_path / "tasks" / KEYS[0] / "data.lock"
    file.write_text(content, encoding="utf-8")
    forget()
    with pytest.raises(MedtasksError) as error:
        source_of(registry().datasets[URL])
    assert said in error.value.what and error.value.where == file
    assert "medtasks dev lock --data" in error.value.remedy


def test_a_pin_stands_in_the_lock_alone(hub, tmp_path):
    file = tmp_path / "tasks" / KEYS[0] / "task.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count("  download: {") == 1
    file.write_text(text.replace("  download: {", '  download: {revision: "2", '), encoding="utf-8")
    forget()
    with pytest.raises(MedtasksError) as error:
        source_of(registry().datasets[URL])
    assert error.value.what == "rows.download.revision stands in the task file and in data.lock"
