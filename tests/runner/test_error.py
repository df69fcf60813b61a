"""`run --error`: some documents are asked, the score says how near it is, and the rest can follow."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from zlib import crc32

import pytest

from medtasks_ext.models import Oracle
from medtasks_ext.runs.folder import changed_in
from tests.conftest import sft_row
from tests.engines.server import Reply, Server, chat
from tests.run_files import result_of, results_of, samples_file
from tests.runner.test_kills import started

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "oracle", "--tasks", TASK, "--output_path")
LABELS = ["年龄", "疾病", "药物", "性别"]
N = 900
#: of a task, in every draw
LEAST_ASKED = 20
NUMBER = re.compile("入组标准第([0-9]+)条")


@pytest.fixture
def rows(chip_ctc):
    """900 rows."""
    test = [sft_row(i, f"入组标准第{i}条", f"clinical trial criterion: {LABELS[i % 4]}") for i in range(N)]
    text = json.dumps(test, ensure_ascii=False)
    (chip_ctc / "bridge" / "CHIP-CTC.SFT.json").write_text(text, encoding="utf-8")


#: Of ten documents, how many the model knows.
SKILL = 6


@pytest.fixture
def asked(monkeypatch):
    """The documents that were asked."""
    right, documents = Oracle.answer, []

    def answer(self, request, requests):
        documents.append(request.doc["id"])
        known = crc32(request.doc["id"].encode()) % 10 < SKILL
        return right(self, request, requests) if known else "clinical trial criterion: 睡眠"

    monkeypatch.setattr(Oracle, "answer", answer)
    return documents


def result(folder: str) -> dict:
    return result_of(folder, TASK)


def choice(folder: str) -> dict:
    return json.loads(Path(folder, "run.json").read_bytes())["tasks"][TASK]["choice"]


def comparable(folder: str) -> dict:
    found = result(folder)
    del found["conditions"]["versions"]
    files = {"samples": samples_file(folder, TASK), "documents": Path(folder, f"tasks/{TASK}.parquet")}
    return {"task": found, **{name: file.read_bytes() for name, file in files.items()}}


def test_a_part_is_asked_the_score_is_near_and_the_rest_follows(medtasks, rows, asked):
    outcome = medtasks(*RUN, "part", "--error", "5")
    assert outcome.code == 0, outcome.text
    n = len(asked)
    assert 100 < n < 0.9 * N and len(set(asked)) == n
    stored = result("part")
    assert stored["estimate"]["asked"] == n == stored["n"] and stored["estimate"]["of"] == N
    assert (stored["estimate"]["variance"] ** 0.5) * 1.9 <= 0.05
    before = comparable("part")
    for command in ((*RUN, "part", "--error", "5"), ("rescore", "part")):
        medtasks.done(*command)
        assert comparable("part") == before and len(asked) == n
    assert changed_in(Path("part")) == []
    # another model is asked the same documents
    assert medtasks(*RUN, "two", "--error", "4.5").code == 0
    assert {*asked[:n]} <= {*asked[n:]}
    del asked[n:]
    medtasks.done(*RUN, "part")
    assert len(asked) == len(set(asked)) == N
    medtasks.done(*RUN, "full")
    assert comparable("part") == comparable("full")
    assert abs(stored["metrics"]["score"] - result("full")["metrics"]["score"]) <= 0.05


def test_a_smaller_error_that_was_cut_off_leaves_a_sound_run(medtasks, rows, asked, monkeypatch):
    assert medtasks(*RUN, "part", "--error", "6").code == 0
    n, right = len(asked), Oracle.answer

    def answer(self, request, requests):
        if len(asked) == n + 20:
            raise KeyboardInterrupt
        return right(self, request, requests)

    with monkeypatch.context() as patch:
        patch.setattr(Oracle, "answer", answer)
        assert medtasks(*RUN, "part", "--error", "4").code != 0
    assert changed_in(Path("part")) == []
    again = medtasks(*RUN, "part", "--error", "6")
    assert again.code == 0 and len(asked) == n + 20, again.text
    assert result("part")["estimate"]["asked"] == n
    assert medtasks(*RUN, "part", "--error", "4").code == 0
    assert len(asked) == len(set(asked)) and choice("part")["drawn"]["error"] == 4
    assert medtasks(*RUN, "alone", "--error", "4").code == 0
    assert comparable("part") == comparable("alone")
    assert changed_in(Path("part")) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--error", "1", "--limit", "3"), "leave out --limit"),
        (("--error", "1", "--samples", '{"bridge_chip_ctc": [0]}'), "leave out --samples"),
        (("--error", "1", "--ask", "likelihood"), "leave out --ask likelihood"),
        (("--error", "nan"), "give 0.05 to 20"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_asked(medtasks, rows, asked, given, said):
    outcome = medtasks(*RUN, "part", *given)
    assert outcome.code != 0 and said in " ".join(outcome.text.split()) and not asked


def test_few_documents_are_no_estimate(medtasks, chip_ctc):
    outcome = medtasks(*RUN, "part", "--error", "5")
    assert outcome.code != 0 and "has 8 documents, and an estimate needs 100" in outcome.text


def test_tables_say_that_it_is_an_estimate(medtasks, rows, asked):
    outcome = medtasks(*RUN, "part", "--error", "5")
    words = f"{len(asked)} of {N} documents"
    assert "an estimate ± 0.0" in outcome.out and words in outcome.out
    which = "±: how far the score over all documents of the test set may be"
    assert which in outcome.out
    report = medtasks("report", "part", "--published", "none").text
    assert which in " ".join(report.split())
    assert words in " ".join(report.split()), report
    assert "drawn for ±5 points: compared only by its interval, and in no rank" in " ".join(report.split())
    medtasks("report", "part", "--published", "none", "-o", "page")
    [page] = [*Path("page").glob("*.html")]
    [half, *_] = re.findall(r"± ([0-9.]+)", outcome.out)
    assert f"an estimate ± {half}, {words}" in page.read_text()
    refused = medtasks("card", "part", "-o", "card").text
    assert f"{len(asked)} of {N} answers" in refused and not Path("card").exists()
    exported = medtasks("card", "part", "--layout", "bridge", "-o", "export").text
    assert "covers a part of the test rows (drawn for ±5 points)" in exported


@pytest.fixture
def server():
    """Answers after a moment, right to two documents of three."""

    async def script(asked) -> Reply:
        await asyncio.sleep(0.002)
        prompt = asked.body["messages"][-1]["content"]
        number = int(NUMBER.findall(prompt)[-1])
        label = LABELS[number % 4] if crc32(str(number).encode()) % 3 else "睡眠"
        return Reply(chat(f"clinical trial criterion: {label}"))

    with Server(script) as one:
        yield one


def command(server, folder: str, *more: str) -> tuple[str, ...]:
    arguments = f"model=m,num_concurrent=16,base_url={server.url}/chat/completions"
    return ("run", "--tasks", TASK, "--model", "local-chat-completions", "--model_args", arguments,
            "--apply_chat_template", "--no-preflight", "--output_path", folder, *more)  # fmt: skip


def test_killed_and_continued_to_the_end_equals_a_full_run(server, rows, medtasks, tmp_path):
    """SIGKILL within a round, the estimate to its end, then the rest: the digits of a run at once."""
    log = tmp_path / "log"
    child = started(command(server, "part", "--error", "5"), log)
    while len(server.asked) < 120:
        assert os.waitpid(child, os.WNOHANG) == (0, 0), log.read_text()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    outcome = medtasks(*command(server, "part", "--error", "5"))
    assert outcome.code == 0, outcome.text
    assert medtasks(*command(server, "alone", "--error", "5")).code == 0
    assert choice("part") == choice("alone")
    assert result("part")["metrics"] == result("alone")["metrics"]
    assert result("part")["estimate"] == result("alone")["estimate"]
    n = len(server.asked)
    assert medtasks(*command(server, "part")).code == 0
    assert len(server.asked) == n + N - result("alone")["n"]
    assert medtasks(*command(server, "full")).code == 0
    for name in ("metrics", "intervals", "n"):
        assert result("part")[name] == result("full")[name]
    assert changed_in(tmp_path / "part") == []


# ---------------------------------------------------------------------- several suites

REFERRAL = "medhelm_ent_referral"


@pytest.fixture
def notes(chip_ctc):
    """600 notes of another suite; two of three are short."""
    folder = chip_ctc / "medhelm" / "ent_referral"
    folder.mkdir(parents=True)
    for name, n in (("test", 600), ("fewshot", 5)):
        made = (
            {
                "id": f"{name}-{N + i}",
                "prompt": f"Referral {i}?",
                "context": f"{name} {i} " * (1 + 200 * (i % 3 == 0)),
                "label": "ABC"[i % 3],
            }
            for i in range(n)
        )
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))


def drawn(folder: str, task: str) -> dict:
    return json.loads(Path(folder, "run.json").read_bytes())["tasks"][task]["choice"]["drawn"]


def test_parts_of_two_suites_are_drawn_in_one_run_each_for_its_own_score(medtasks, rows, notes, asked):
    """Of groups the tasks that have rows count."""
    command = ("run", "--model", "oracle", "--tasks", "bridge_zh,medhelm_admin", "--output_path")
    outcome = medtasks(*command, "both", "--error", "5")
    n = len(asked)
    assert n == len(set(asked)) and {TASK, REFERRAL} <= set(results_of("both")["results"]), outcome.text
    parts = r"drawn until bridge_zh \(1 of [0-9]+ tasks\), medhelm_admin \(1 of [0-9]+ tasks\) is known to"
    assert re.search(parts, " ".join(outcome.err.split())), outcome.err
    for name, of in ((TASK, N), (REFERRAL, 600)):
        estimate = result_of("both", name)["estimate"]
        assert LEAST_ASKED < estimate["asked"] < of == estimate["of"]
        assert 1.96 * estimate["variance"] ** 0.5 <= 0.05
    scores = drawn("both", TASK)["scores"]
    assert scores == drawn("both", REFERRAL)["scores"] == ["bridge_zh", "medhelm_admin"], scores
    medtasks(*command, "both")
    assert len(asked) == len(set(asked)) == N + 600
    medtasks(*command, "full")
    for name in (TASK, REFERRAL):
        found, full = (result_of(run, name) for run in ("both", "full"))
        assert found["metrics"] == full["metrics"] and "estimate" not in found
