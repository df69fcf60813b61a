"""`medtasks data fetch`: open datasets once, for use without internet, against a hub on loopback."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from medtasks_ext.data import fetch
from medtasks_ext.data.fetch import fetch_punkt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry, registry
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.sources import source_of
from tests.conftest import ROOT, declare_suites, read_json
from tests.rows.hub_server import Hub
from tests.rows.original_sources import jsonl, parquet
from tests.run_files import results_of

pytestmark = pytest.mark.usefixtures("few_rows")

MEDQA, MMLU, BULLETS = "medhelm_medqa", "clinicbench_mmlu_med", "medhelm_medbullets"
RAW = "https://raw.githubusercontent.com"
HEADER = "question,opa,opb,opc,opd,ope,answer_idx\n"


def medqa_rows(name: str, n: int) -> bytes:
    rows = [
        {"id": f"{name}-{i}", "sent1": f"{name} question {i}", "label": i % 4}
        | {f"ending{k}": "abcd"[k] for k in range(4)}
        for i in range(n)
    ]
    return jsonl(rows).encode()


def mmlu_rows(n: int, what: str) -> bytes:
    rows = [
        {"question": f"{what} {i} {subject}", "subject": subject, "choices": list("abcd"), "answer": i % 4}
        for subject in ("anatomy", "professional_medicine", "virology")
        for i in range(n)
    ]
    return parquet(rows)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with MedQA and MMLU, and a web server with Medbullets; tasks, caches and settings point there."""
    server = Hub()
    root = tmp_path / "tasks"
    for name in ("medhelm/medqa", "medhelm/medbullets", "clinicbench/mmlu_med", "medhelm/clear"):
        shutil.copytree(registry().root / name, root / name)
    declare_suites(root)
    yaml = root / "medhelm" / "medbullets" / "task.yaml"
    yaml.write_text(yaml.read_text().replace(RAW, server.url))
    for lock in (yaml.with_name("data.lock"), root / "clinicbench" / "mmlu_med" / "data.lock"):
        pinned = {**read_json(lock), "files": {}}  # what is served here is not what is pinned
        lock.write_text(json.dumps(pinned))
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    server.take_place(monkeypatch, tmp_path)
    contents = {
        MEDQA: {"dev.json": medqa_rows("dev", 3), "test.json": medqa_rows("test", 4),
         "train.json": medqa_rows("train", 6)},
        MMLU: {"all/test-00000-of-00001.parquet": mmlu_rows(7, "test"),
         "all/dev-00000-of-00001.parquet": mmlu_rows(3, "dev"),
         "all/validation-00000-of-00001.parquet": mmlu_rows(3, "validation")},
    }  # fmt: skip
    for name, files in contents.items():
        download = source_of(registry().datasets[name]).download
        for file, content in files.items():
            server.put(download.repo, download.revision, file, content)
    bullets = remote_files(source_of(Registry(root).datasets[BULLETS]))[0]
    rows = "".join(f"What is {i}?,a,b,c,d,e,{'ABCDE'[i % 5]}\n" for i in range(9))
    server.files[bullets.name.removeprefix(server.url)] = (HEADER + rows).encode()
    yield server
    server.close()


def path_of(hub, end: str) -> str:
    return next(path for path in hub.files if path.endswith(end))


def test_open_datasets_are_fetched_once(medtasks, hub):
    outcome = medtasks.done("data", "fetch", MEDQA, MMLU, BULLETS)
    assert f"✓ {MEDQA}  3 of 3 files fetched" in outcome.out and "7 rows" in outcome.out
    size = sum(map(len, hub.files.values()))
    assert f"3 of 3 datasets here ({size / 1e3:,.1f} kB), {len(hub.files)} files fetched" in outcome.out


def test_a_second_call_checks_the_hashes_and_downloads_nothing(medtasks, hub):
    medtasks("data", "fetch", MEDQA, BULLETS)
    before = dict(hub.asked)
    hub.close()
    outcome = medtasks("data", "fetch", MEDQA, BULLETS)
    assert outcome.code == 0 and f"✓ {MEDQA}  as recorded" in outcome.out and "0 files fetched" in outcome.out
    assert dict(hub.asked) == before


def test_a_call_goes_on_where_the_last_one_stopped(medtasks, hub):
    hub.faults[path_of(hub, "train.json")] = 500
    outcome = medtasks("data", "fetch", MEDQA)
    assert outcome.code == 1 and "train.json" in outcome.err and "500" in outcome.err
    hub.faults.clear()
    hub.asked.clear()
    medtasks.done("data", "fetch", MEDQA)
    assert [path.rpartition("/")[2] for path in hub.asked] == ["train.json"]


@pytest.mark.parametrize(
    ("end", "fault", "message"),
    [
        ("test.json", "corrupt", "sends what cannot be used"),
        ("test-00000-of-00001.parquet", "corrupt", "sends what cannot be used"),
        ("test.json", 404, "is no longer on the hub"),
        ("test.json", 403, "the hub refused the download (403)\n  → accept the terms"),
        ("test.json", "cut for good", "download failed"),
        ("medbullets_op5.csv", "cut for good", "download failed"),
        ("medbullets_op5.csv", 404, "download failed (Not Found)"),
    ],
)
def test_a_file_that_cannot_be_had_is_named_and_does_not_stop_the_others(medtasks, hub, end, fault, message):
    hub.faults[path_of(hub, end)] = fault
    outcome = medtasks("data", "fetch", MEDQA, MMLU, BULLETS)
    assert outcome.code == 1
    assert message in outcome.err and end in outcome.err and outcome.err.count("✗") == 1
    assert outcome.out.count("✓") == 2 and "2 of 3 datasets here" in outcome.out
    hub.faults.clear()
    outcome = medtasks("data", "fetch", MEDQA, MMLU, BULLETS)
    assert outcome.code == 0 and outcome.out.count("✓") == 3


@pytest.mark.parametrize("to", [[], ["--to", "stick"]])
def test_a_file_that_was_damaged_on_disk_is_fetched_again(medtasks, hub, tmp_path, to):
    medtasks("data", "fetch", MEDQA, BULLETS, *to)
    copies = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    content = hub.files[path_of(hub, "medbullets_op5.csv")]
    kept = [path for path in copies if path.suffix != ".yaml" and path.read_bytes() == content]
    damaged = next(path for path in kept if not to or "stick" in path.parts)
    damaged.write_bytes(content[:-5])
    outcome = medtasks("data", "fetch", MEDQA, BULLETS, *to)
    assert outcome.code == 0 and f"✓ {BULLETS}  1 of 1 files fetched" in outcome.out
    assert f"✓ {MEDQA}  as recorded" in outcome.out and damaged.read_bytes() == content


def test_offline_nothing_is_asked_for_and_the_message_says_so(medtasks, hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    outcome = medtasks("data", "fetch", MEDQA, BULLETS)
    assert outcome.code == 1 and not hub.asked and outcome.err.count("HF_HUB_OFFLINE") >= 2


def test_data_that_is_not_open_is_not_fetched(medtasks, hub):
    outcome = medtasks("data", "fetch", "medhelm_clear")
    assert outcome.code == 2 and "medtasks data status medhelm_clear" in outcome.err
    outcome = medtasks("data", "fetch", "medhelm_clear", BULLETS)
    assert outcome.code == 0 and "to be requested (`medtasks data status TASK`): 1" in outcome.out


def test_a_carried_folder_runs_on_a_machine_without_internet(medtasks, hub, tmp_path):
    """The other machine has the folder, empty caches and no hub."""
    assert medtasks("data", "fetch", MEDQA, BULLETS, "--to", "stick").code == 0
    hub.close()
    carried = tmp_path / "elsewhere"
    shutil.move(tmp_path / "stick", carried)
    home = tmp_path / "home"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("HF_", "MEDTASKS_"))},
        "HOME": str(home), "HF_HUB_OFFLINE": "1", "MEDTASKS_DATA_DIR": str(carried),
        "MEDTASKS_TASKS_DIR": os.environ["MEDTASKS_TASKS_DIR"], "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    tasks = f"{MEDQA},{BULLETS}"
    command = ["medtasks_ext", "run", "--model", "oracle", "--tasks", tasks, "--output_path", "run"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    configs = results_of(tmp_path / "run")["configs"].values()
    loaded = [config["metadata"]["medtasks"]["loaded"] for config in configs]
    assert {(item["origin"], item["n_test"]) for item in loaded} == {("hub", 7), ("hub", 9)}
    assert not (home / ".cache").exists()


@pytest.fixture
def punkt(monkeypatch, tmp_path):
    server, packed = Hub(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for language in ("english", "french"):
            archive.writestr(f"punkt_tab/{language}/collocations.tab", "")
    content = packed.getvalue()
    server.files["/punkt_tab.zip"] = content
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    file = replace(fetch.PUNKT, name=f"{server.url}/punkt_tab.zip", digest=digest, mirrors=())
    monkeypatch.setattr(fetch, "PUNKT", file)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path / "home")])
    monkeypatch.setattr(
        "nltk.downloader.Downloader.default_download_dir", lambda self: str(tmp_path / "home")
    )
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    yield server
    server.close()


def test_it_is_fetched_once_to_the_folder_that_is_carried(punkt, tmp_path):
    assert (
        fetch_punkt(tmp_path / "stick") == fetch_punkt(tmp_path / "stick") == tmp_path / "stick" / "nltk_data"
    )
    assert (tmp_path / "stick/nltk_data/tokenizers/punkt_tab/french/collocations.tab").is_file()
    assert punkt.asked["/punkt_tab.zip"] == 1


@pytest.mark.parametrize("fault", [500, "corrupt", "cut for good"])
def test_a_server_that_fails_is_one_error_and_leaves_nothing_for_nltk(punkt, tmp_path, fault):
    punkt.faults["/punkt_tab.zip"] = fault
    with pytest.raises(MedtasksError, match="could not be fetched") as error:
        fetch_punkt(tmp_path / "stick")
    assert "the same command" in error.value.remedy and not (tmp_path / "stick").exists()
    punkt.faults.clear()
    assert fetch_punkt(tmp_path / "stick")
