"""Files that nobody has pinned: said so, recorded at first use, refused with other content later."""

import gzip
import hashlib
import json
import shutil

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import _build
from medtasks_ext.registry import forget, registry
from medtasks_ext.rows import transfer
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.sources import source_of
from tests.conftest import declare_suites, read_json, sample_rows
from tests.rows.hub_server import Hub
from tests.rows.original_sources import as_csv, jsonl, parquet

URL, BRANCH, COMMIT, PINNED = (
    "medhelm_live_sct_bench", "medhelm_live_healthqa_br", "medhelm_live_medxpertqa", "healthbench_full",
)  # fmt: skip
KEYS = ("medhelm_live/sct_bench", "medhelm_live/healthqa_br", "medhelm_live/medxpertqa", "healthbench/full")


def rows_of(name):
    return sample_rows(name, "")


def content_of(content):
    return {"digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


@pytest.fixture
def hub(tmp_path, monkeypatch, few_rows):
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
    said = {line.split()[1]: line.partition("; ")[2] for line in outcome.out.splitlines() if "✓" in line}
    recorded = "unpinned: recorded now, other content is refused later"
    assert said == {URL: f"1 file {recorded}", BRANCH: f"1 file {recorded}", COMMIT: f"2 files {recorded}"}
    status = json.loads(medtasks("data", "status", URL, BRANCH, COMMIT, "--json").out)
    assert all(item["here"] for item in status)
    assert [item["pinned"] for item in status] == [False, False, False]
    printed = medtasks("data", "status", URL, BRANCH, COMMIT).out
    assert printed.count(" unpinned: ") == 3 and "; 3 not pinned, recorded at first use" in printed


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
    assert found[URL]["files"]["sct_cleaned_full.csv"]["digest"] == content_of(as_csv(rows_of(URL)))["digest"]
    assert outcome.out.count("data.lock: written") == 3
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
        ('{"revison": "1"}', "revison: unknown key"),
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


N = 40
HTML = b"<!DOCTYPE html>\n<html><head><title>Too many requests</title></head><body>wait</body></html>"
MIRROR = "/mirror/rows.csv"


def sct():
    row = sample_rows(URL)[-1]
    text = next(key for key in row if isinstance(row[key], str) and len(row[key]) > 40)
    lines = [",".join(row)]
    for i in range(N):
        made = {**row, text: f"question {i}, whose text has no end of its own", "question_id": f"q{i}"}
        lines.append(",".join('"' + str(value).replace('"', '""') + '"' for value in made.values()))
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def served(tmp_path, monkeypatch, tasks_of):
    """A web server and a mirror; the data set has 40 rows, and nobody has pinned it."""
    root = tasks_of("medhelm_live/sct_bench")
    server = Hub()
    folder = root / "medhelm_live/sct_bench"
    card = (folder / "card.yaml").read_text(encoding="utf-8")
    n = registry().datasets[URL].metadata.n_test
    (folder / "card.yaml").write_text(card.replace(f"n_test: {n}", f"n_test: {N}"), encoding="utf-8")
    lock = read_json(folder / "data.lock")
    (folder / "data.lock").write_text(json.dumps({"revision": lock["revision"]}))
    file = folder / "task.yaml"
    text = file.read_text(encoding="utf-8").replace("https://raw.githubusercontent.com", server.url)
    download = next(line for line in text.splitlines() if server.url in line)
    name = download[download.index(server.url) :].split('"')[0].split("]")[0]
    text = text.replace(
        "  download: {", f'  download: {{digests: {{"{name}": {{hosts: ["{server.url}{MIRROR}"]}}}}, '
    )
    file.write_text(text, encoding="utf-8")
    forget()
    server.take_place(monkeypatch, tmp_path)
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    server.own = remote_files(source_of(registry().datasets[URL]))[0].name.removeprefix(server.url)
    server.files |= {server.own: sct(), MIRROR: sct()}
    yield server
    server.close()


def kept(tmp_path):
    found = (tmp_path / "cache").rglob("*")
    return [path for path in found if path.name == "sct_cleaned_full.csv" or path.parent.name == "first_use"]


GOOD = sct()
#: what a server sends in place of the rows, with status 200
BAD_ROWS = {
    "a page": HTML,
    "nothing": b"",
    "one line": GOOD.split(b"\n")[0] + b"\n",
    "half, cut in a line": GOOD[: len(GOOD) // 2],
    "two thirds": b"\n".join(GOOD.split(b"\n")[: 2 * N // 3]) + b"\n",
    "twice": GOOD + GOOD.partition(b"\n")[2],
    "JSON that says no": b'{"error": "rate limit exceeded"}',
    "gzip": gzip.compress(GOOD),
    "zeros": bytes(len(GOOD)),
    "another table": b"a,b,c\n" + b"1,2,3\n" * N,
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_what_is_no_dataset_leaves_nothing_and_the_same_command_asks_again(medtasks, served, tmp_path, name):
    served.files[served.own] = served.files[MIRROR] = BAD_ROWS[name]
    outcome = medtasks("data", "fetch", URL)
    assert outcome.code == 1 and "✓" not in outcome.out, outcome.text
    assert not kept(tmp_path), kept(tmp_path)
    served.files[served.own] = sct()
    mended = medtasks("data", "fetch", URL)
    assert mended.code == 0 and f"{N} rows" in mended.out, mended.text
    assert len(kept(tmp_path)) == 2  # the file, and its record


@pytest.mark.parametrize("fault", ["unsaid", "cut for good", 403, 429, "to /nowhere"])
def test_an_answer_that_is_none_is_taken_from_the_next_host(medtasks, served, tmp_path, fault):
    served.faults[served.own] = fault
    outcome = medtasks("data", "fetch", URL)
    assert outcome.code == 0 and served.asked[MIRROR] == 1, outcome.text


def test_a_run_is_as_careful_as_a_fetch(medtasks, served, tmp_path):
    served.files[served.own] = served.files[MIRROR] = HTML
    words = ("run", "--model", "oracle", "--tasks", URL, "--output_path")
    assert medtasks(*words, "first").code != 0 and not kept(tmp_path)
    _build.cache_clear()
    served.files[served.own] = sct()
    assert medtasks(*words, "second").code == 0


def test_what_a_killed_process_left_is_looked_at_before_it_is_used(medtasks, served, tmp_path):
    file = remote_files(source_of(registry().datasets[URL]))[0]
    file._cached.parent.mkdir(parents=True)
    file._cached.write_bytes(HTML)
    assert medtasks("data", "fetch", URL).code == 1 and not kept(tmp_path)
    assert medtasks("data", "fetch", URL).code == 0
    assert file._cached.read_bytes() == sct()
