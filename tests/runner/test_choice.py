"""`--limit` and `--samples`: which documents of a task a run asks may change from call to call."""

import json
from pathlib import Path
from zlib import crc32

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle
from medtasks_ext.prompts import load
from medtasks_ext.registry import forget
from medtasks_ext.run import asker
from tests.conftest import outcomes
from tests.run_files import result_of, results_of, samples_file

TASK, COT = "bridge_chip_ctc", "bridge_chip_ctc_cot"
RUN = ("run", "--model", "oracle", "--tasks", TASK)
HERE = ("--output_path", "run")


@pytest.fixture
def asked(monkeypatch):
    """The documents that were asked, in order, of a model that knows half of the answers."""
    right, documents = Oracle.answer, []

    def answer(self, request, requests):
        documents.append(request.doc["id"])
        known = crc32(request.doc["id"].encode()) % 2
        return right(self, request, requests) if known else "clinical trial criterion: 睡眠"

    monkeypatch.setattr(Oracle, "answer", answer)
    return documents


def ids(*places: int) -> list[str]:
    return [f"test-{place}" for place in places]


def results(folder: str, task: str = TASK) -> dict:
    """Everything that is said of a task's result, without what the call itself leaves."""
    run = Path(folder)
    stored = result_of(run, task)
    del stored["conditions"]["versions"]
    whole = results_of(run)
    return {
        "task": stored,
        "npy": (run / "tasks" / f"{task}.npy").read_bytes(),
        "documents": (run / "tasks" / f"{task}.parquet").read_bytes(),
        "samples": samples_file(run, task).read_bytes(),
        **{part: whole[part][task] for part in ("results", "n-samples")},
        "choice": entry(folder, task).get("choice"),
    }


def entry(folder: str, task: str = TASK) -> dict:
    return json.loads(Path(folder, "run.json").read_bytes())["tasks"][task]


def n_of(folder: str, task: str = TASK) -> tuple[int, int, int]:
    """Documents of the result, of its conditions, and in the file of samples."""
    stored = result_of(folder, task)
    n_samples = len(samples_file(folder, task).read_bytes().splitlines())
    return stored["n"], stored["conditions"]["n"], n_samples


def test_a_larger_limit_asks_the_rest_and_scores_all(medtasks, chip_ctc, asked):
    seen = []
    for choice in (("--limit", 2), ("--limit", 5), (), ("--limit", 3), ("--limit", "0.5"), ()):
        asked.clear()
        outcome = medtasks(*RUN, *HERE, *choice)
        assert outcome.code == 0, outcome.text
        seen.append((list(asked), outcome.err))
        asked.clear()
        fresh = f"fresh-{len(seen)}"
        assert medtasks(*RUN, "--output_path", fresh, *choice).code == 0
        assert results("run") == results(fresh)
        assert len(set(n_of("run"))) == 1
    assert [documents for documents, _ in seen] == [ids(0, 1), ids(2, 3, 4), ids(5, 6, 7), [], [], []]
    said = [err for _, err in seen]
    assert "have an answer" not in said[0]
    assert "2 of 5 requests have an answer" in said[1]
    assert "5 of 8 requests have an answer" in said[2]
    assert "3 of 3 requests have an answer" in said[3]
    assert len(outcomes("run")) == 8


def test_lists_of_documents_are_a_choice_of_each_task(medtasks, chip_ctc, asked):
    both = ("run", "--model", "oracle", "--tasks", f"{TASK},{COT}", *HERE)
    assert medtasks(*both, "--samples", json.dumps({TASK: [6, 1, 1]})).code == 0
    assert asked.count("test-1") == 2 and asked.count("test-6") == 2 and len(asked) == 10
    assert entry("run")["choice"] == {"samples": [1, 6]} and entry("run", COT)["choice"] == {}
    asked.clear()
    assert medtasks(*RUN, *HERE, "--samples", json.dumps({TASK: [0, 6]})).code == 0
    assert asked == ids(0) and n_of("run") == (2, 2, 2) and n_of("run", COT) == (8, 8, 8)
    samples = map(json.loads, samples_file("run", TASK).read_bytes().splitlines())
    assert [sample["doc"]["id"] for sample in samples] == ids(0, 6)
    assert entry("run")["choice"] == {"samples": [0, 6]} and entry("run", COT)["choice"] == {}


def test_what_a_document_is_asked_does_not_depend_on_which_others_are_nor_on_how_many_wait(
    medtasks, chip_ctc, monkeypatch
):
    asked = {}
    some = json.dumps({f"{TASK}_5shot": [6, 2]})
    for ahead, *choice in ((4,), (64,), (1, "--limit", 3), (4, "--samples", some)):
        monkeypatch.setattr(asker, "AHEAD", ahead)
        folder = f"run-{len(asked)}"
        call = ("run", "--model", "oracle", "--tasks", f"{TASK},{TASK}_5shot", "--output_path", folder)
        assert medtasks(*call, *choice).code == 0
        asked[folder] = {(line["task"], line["document"]): line["key"] for line in outcomes(folder)}
    whole = asked["run-0"]
    assert [len(keys) for keys in asked.values()] == [16, 16, 6, 10]
    assert all(keys.items() <= whole.items() for keys in asked.values())


@pytest.mark.parametrize("wrong", ['{"bridge_chip_ctc": [8]}', '{"bridge_chip_ctc": ["x"]}'])
def test_a_list_that_does_not_fit_changes_nothing(medtasks, chip_ctc, asked, wrong):
    medtasks(*RUN, *HERE, "--limit", 2)
    before = results("run")
    outcome = medtasks(*RUN, *HERE, "--samples", wrong)
    assert outcome.code == 2 and "--samples" in outcome.err
    assert results("run") == before and entry("run")["state"] == "done" and len(asked) == 2


def test_a_call_that_gets_no_model_leaves_the_scores(medtasks, chip_ctc, asked, monkeypatch):
    def fails(self, *_, **__):
        raise MedtasksError("out of memory")

    medtasks(*RUN, *HERE, "--limit", 2)
    before = results("run")
    monkeypatch.setattr(Oracle, "__init__", fails)
    outcome = medtasks(*RUN, *HERE)
    assert outcome.code != 0 and "out of memory" in outcome.err
    assert results("run") == before and entry("run")["state"] == "done"
    assert "the first 2" in medtasks("report", "run").out


def test_a_call_that_breaks_off_leaves_no_score_of_a_part(medtasks, chip_ctc, asked, monkeypatch):
    medtasks(*RUN, *HERE, "--limit", 2)
    answer = Oracle.answer

    def breaks_off(self, request, requests):
        if request.doc["id"] == "test-4":
            raise KeyboardInterrupt
        return answer(self, request, requests)

    monkeypatch.setattr(Oracle, "answer", breaks_off)
    assert medtasks(*RUN, *HERE).code == 130
    assert (entry("run")["state"], entry("run").get("n")) == ("waiting", None)
    medtasks("rescore", "run")
    assert entry("run")["state"] == "waiting"
    monkeypatch.setattr(Oracle, "answer", answer)
    asked.clear()
    assert medtasks(*RUN, *HERE, "--limit", 2).code == 0
    assert asked == [] and n_of("run") == (2, 2, 2)
    assert medtasks(*RUN, *HERE).code == 0
    assert n_of("run") == (8, 8, 8) and asked[0] in ids(2, 3, 4) and asked[-1] == "test-7"


def test_a_report_and_a_card_say_the_documents_of_each_task(medtasks, chip_ctc, asked):
    medtasks("run", "--model", "oracle", "--tasks", f"{TASK},{COT}", *HERE, "--limit", 2)
    assert "only the first 2 of each task were asked" in medtasks("report", "run").out.replace("\n  ", " ")
    medtasks(*RUN, *HERE)
    said = " ".join(medtasks("report", "run").out.split())
    assert f"only the first 2 of {COT} were asked" in said
    assert medtasks("card", "run", "-o", "card", "--parts").code == 0
    card = Path("card", "medical-evaluation.md").read_text()
    assert "documents: all or the first 2, by task" in card
    first, second = [line for line in card.splitlines() if line.startswith("medtasks run")]
    assert f"--tasks {TASK} " in first and "--limit" not in first
    assert f"--tasks {COT} " in second and second.endswith("--limit 2")
    tasks = json.loads(next(Path("card").glob("medtasks-manifest.json")).read_bytes())["tasks"]
    assert [tasks[name]["chosen"] for name in (TASK, COT)] == ["all", {"limit": 2.0}]


def test_a_later_score_keeps_the_words_that_were_asked(medtasks, tasks_of, tmp_path):
    file = tasks_of("medhelm/medqa") / "medhelm" / "medqa" / "task.yaml"
    task = "medhelm_medqa"
    call = ("run", "--tasks", task, "--data", "sample", "--model", "oracle", *HERE)
    assert medtasks(*call).code == 0
    before = result_of(tmp_path / "run", task)["conditions"]
    text = file.read_text(encoding="utf-8")
    for old, new in (
        ("instruction: Answer", "instruction: With care, answer"),
        ("{version: ", "{version: 9"),
    ):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    forget()
    load._build.cache_clear()
    assert medtasks("rescore", "run").code == 0
    after = result_of(tmp_path / "run", task)["conditions"]
    assert after == {**before, "version": f"9{before['version']}"}
    assert medtasks(*call).code == 0  # which asks the words of now
    assert result_of(tmp_path / "run", task)["conditions"]["prompt"] != before["prompt"]


def test_the_manifest_is_made_again_from_the_records_without_asking(medtasks, chip_ctc, asked):
    medtasks.done(*RUN, *HERE)
    before = result_of("run", TASK)
    Path("run/run.json").unlink()
    outcome = medtasks.done(*RUN, *HERE)
    assert "8 of 8 requests have an answer" in outcome.err
    assert result_of("run", TASK) == before and len(asked) == 8
