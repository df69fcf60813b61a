"""`medtasks study contamination`: verdicts, resumption, tables, wrong arguments."""

import json
import random
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from medtasks_ext.prompts import load, load_documents
from medtasks_ext.registry import Dataset, registry
from tests.conftest import sft_row
from tests.studies.contamination_models import Bytes, GoneError, Memory

FLAGS = ("--tasks", "bridge_chip_ctc", "--model", "memory", "-o", "probe")


def text(number: int, n: int = 50) -> str:
    """Invented words, others for each document."""
    rng = random.Random(number)
    return " ".join("".join(rng.choices("abcdefgh", k=6)) for _ in range(n))


@pytest.fixture
def rows(data_dir, monkeypatch):
    """Eight test rows of CHIP-CTC that the model knows by heart, and two that are too short."""
    known = [text(number) for number in range(8)]
    monkeypatch.setattr(Memory, "texts", known)
    monkeypatch.setattr(Memory, "prompts", [])
    monkeypatch.setattr(Memory, "settings", [])
    monkeypatch.setattr(Memory, "interrupt", None)
    write(data_dir, [*known, text(100, 34), "short"])
    return data_dir


def write(folder: Path, texts: list[str], name: str = "CHIP-CTC") -> None:
    (folder / "bridge").mkdir(exist_ok=True)
    content = [sft_row(i, item, "", task=name) for i, item in enumerate(texts)]
    (folder / "bridge" / f"{name}.SFT.json").write_text(json.dumps(content, ensure_ascii=False))
    load._build.cache_clear()


def result(folder: Path, task: str = "bridge_chip_ctc") -> dict:
    return json.loads((folder / "contamination.json").read_text())["tasks"][task]


def cells(printed: str, task: str = "bridge_chip_ctc") -> list[str]:
    return next(line for line in printed.splitlines() if task in line).split()


def test_a_model_that_knows_the_rows_by_heart_has_them_all_leaked(medtasks, rows, tmp_path):
    outcome = medtasks("study", "contamination", *FLAGS)
    assert outcome.code == 0, outcome.err
    assert cells(outcome.out) == ["bridge_chip_ctc", "10", "2", "8", "8", "100.0%", "67.6%", "–", "100.0%"]
    found = result(tmp_path / "probe")
    assert [item["n_matches"] for item in found["documents"]] == [5] * 8 + [None] * 2
    assert [item["leaked"] for item in found["documents"]] == [True] * 8 + [None] * 2
    assert (found["share"], found["n_cuts_moved"], found["origin"]) == (1, 0, "local")
    assert "SAMPLE" not in outcome.text


def test_a_model_that_knows_nothing_has_none(medtasks, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(Memory, "texts", [])
    outcome = medtasks("study", "contamination", *FLAGS)
    assert cells(outcome.out)[1:] == ["10", "2", "8", "0", "0.0%", "0.0%", "–", "32.4%"]
    assert [item["n_matches"] for item in result(tmp_path / "probe")["documents"]] == [0] * 8 + [None] * 2


@pytest.mark.parametrize(
    ("tokens", "n_matches", "n_leaked"),
    [(14, 0, 0), (22, 2, 0), (24, 2, 0), (25, 3, 8), (34, 4, 8), (35, 5, 8)],
)
def test_three_continuations_decide(medtasks, rows, tmp_path, tokens, n_matches, n_leaked):
    medtasks("study", "contamination", *FLAGS, "--model_args", f"tokens={tokens}")
    found = result(tmp_path / "probe")
    assert {item["n_matches"] for item in found["documents"]} == {n_matches, None}
    assert found["n_leaked"] == n_leaked


def test_the_model_continues_the_input_alone_and_greedily(medtasks, rows):
    medtasks("study", "contamination", *FLAGS)
    starts = {" ".join(item.split()[:cut]) for item in Memory.texts for cut in (10, 15, 20, 25, 30)}
    assert len(Memory.prompts) == 40 and set(Memory.prompts) == starts
    assert all(
        settings == {"until": [], "max_gen_toks": 5, "do_sample": False, "temperature": 0.0,
                     "repetition_penalty": 1.0}
        for settings in Memory.settings
    )  # fmt: skip


def test_chinese_texts_whose_tokens_split_characters(medtasks, data_dir, tmp_path, rows, monkeypatch):
    rng = random.Random(1)
    known = ["".join(rng.choices("患者发热三天伴咳嗽痰无胸痛既往体健", k=60)) for _ in range(4)]
    monkeypatch.setattr(Memory, "texts", known)
    monkeypatch.setattr(Memory, "tokenizer_kind", partial(Bytes, 2))
    write(data_dir, known)
    medtasks("study", "contamination", *FLAGS)
    found = result(tmp_path / "probe")
    # characters have 3 bytes and tokens 2: each cut, or the end of what follows, is inside a character
    assert (found["n_leaked"], found["n_cuts_moved"]) == (4, 20)
    assert not any("�" in prompt for prompt in Memory.prompts)
    medtasks("study", "contamination", *FLAGS[:-1], "other", "--model_args", "tokens=24")
    assert result(tmp_path / "other")["n_leaked"] == 0


def test_results_hold_no_text(medtasks, rows, tmp_path):
    medtasks("study", "contamination", *FLAGS)
    files = sorted(path.name for path in (tmp_path / "probe").iterdir())
    assert files == ["answers.jsonl", "contamination.json"]
    written = (tmp_path / "probe" / "contamination.json").read_text()
    assert not any(word in written for item in Memory.texts for word in item.split())


def kept(folder: Path) -> int:
    return (folder / "answers.jsonl").read_text().count('"outcome":"answer"')


#: wakes the main thread wherever it waits, which `_thread.interrupt_main` does not
CTRL_C = partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)


@pytest.mark.parametrize("stop", [CTRL_C, GoneError("the server has gone")])
def test_an_interrupted_probe_goes_on_and_asks_only_for_what_is_missing(
    medtasks, rows, tmp_path, monkeypatch, stop
):
    monkeypatch.setattr(Memory, "interrupt", (17, stop))
    monkeypatch.setattr(Memory, "over", threading.Event())
    outcome = medtasks("study", "contamination", *FLAGS)
    Memory.over.set()
    assert outcome.code == (1 if isinstance(stop, GoneError) else 130) and "Traceback" not in outcome.text
    asked, known = len(Memory.prompts), kept(tmp_path / "probe")
    assert asked >= 17 and known < 40
    monkeypatch.setattr(Memory, "interrupt", None)
    outcome = medtasks("study", "contamination", *FLAGS)
    assert outcome.code == 0 and result(tmp_path / "probe")["n_leaked"] == 8
    assert len(Memory.prompts) == asked + 40 - known and len(set(Memory.prompts)) == 40
    outcome = medtasks("study", "contamination", *FLAGS)
    assert len(Memory.prompts) == asked + 40 - known
    assert cells(outcome.out)[4] == "8"


def test_a_limit_takes_the_first_rows_and_a_larger_one_continues(medtasks, rows, tmp_path):
    medtasks("study", "contamination", *FLAGS, "--limit", "3")
    assert result(tmp_path / "probe")["n_documents"] == 3 and len(Memory.prompts) == 15
    medtasks("study", "contamination", *FLAGS, "--limit", "0.5")
    assert result(tmp_path / "probe")["n_documents"] == 5 and len(Memory.prompts) == 25
    medtasks("study", "contamination", *FLAGS)
    assert result(tmp_path / "probe")["n_documents"] == 10 and len(Memory.prompts) == 40


def test_a_failing_task_does_not_stop_the_others(medtasks, rows, tmp_path, monkeypatch):
    write(rows, [text(number) for number in range(3)], name="CHIP-CDEE")
    both = ("--tasks", "bridge_chip_ctc,bridge_chip_cdee", *FLAGS[2:])
    answer, failing = Memory._continue, [True]

    def once(self, prompt, n):
        if failing:
            failing.pop()
            raise GoneError("out of memory")
        return answer(self, prompt, n)

    monkeypatch.setattr(Memory, "_continue", once)
    outcome = medtasks("study", "contamination", *both)
    assert outcome.code == 1
    assert "✗ bridge_chip_ctc: 40 of 40 requests have no answer: out of memory (40)" in outcome.err
    assert result(tmp_path / "probe", "bridge_chip_cdee")["n_leaked"] == 3
    assert medtasks("study", "contamination", *both).code == 0
    assert result(tmp_path / "probe")["n_leaked"] == 8


def test_another_model_does_not_get_the_responses_of_the_first(medtasks, rows, monkeypatch):
    monkeypatch.setattr(Memory, "interrupt", (3, KeyboardInterrupt()))
    medtasks("study", "contamination", *FLAGS, "--model_args", "name=a")
    outcome = medtasks("study", "contamination", *FLAGS, "--model_args", "name=b")
    assert outcome.code == 2 and "the probe of another model" in outcome.err


def test_secrets_are_not_written(medtasks, rows, tmp_path):
    medtasks("study", "contamination", *FLAGS, "--model_args", "auth_token=sesame,name=a")
    assert "sesame" not in (tmp_path / "probe" / "contamination.json").read_text()


def test_sample_rows_are_said_to_say_nothing(medtasks, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    outcome = medtasks("study", "contamination", *FLAGS)
    assert outcome.code == 0
    assert outcome.out.lstrip().startswith("SAMPLE DATA")
    assert result(tmp_path / "probe")["origin"] == "sample"


def test_the_strategies_of_a_dataset_share_its_inputs(medtasks, rows):
    outcome = medtasks(
        "study", "contamination", "--tasks", "bridge_chip_ctc_cot,bridge_chip_ctc_5shot", *FLAGS[2:]
    )
    assert [line.split()[0] for line in outcome.out.splitlines() if "chip_ctc" in line] == ["bridge_chip_ctc"]


def test_questions_with_permuted_options_are_asked_once(medtasks, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    medtasks("study", "contamination", "--tasks", "mlb_cmexam", *FLAGS[2:])
    documents = load_documents(registry().datasets["mlb_cmexam"], cot=False, origin="sample")["test"]
    items = {document["item"] for document in documents}
    assert result(tmp_path / "probe", "mlb_cmexam")["n_documents"] == len(items) < len(documents)


def test_every_dataset_with_sample_rows_can_be_probed(medtasks, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    outcome = medtasks("study", "contamination", "--tasks", "bridge,medhelm", *FLAGS[2:], "--limit", "2")
    names = json.loads((tmp_path / "probe" / "contamination.json").read_text())["tasks"]
    assert len(names) > 80 and all(task["n_leaked"] == 0 for task in names.values()), outcome.err


@pytest.mark.parametrize("system_role", [True, False])
def test_the_text_that_is_probed_holds_no_instruction(system_role):
    for name in ("bridge_chip_ctc", "medhelm_medqa"):
        folder = registry().datasets[name].folder
        for document in load_documents(Dataset(folder), cot=False, origin="sample", system_role=system_role)[
            "test"
        ]:
            assert document.input in document["prompt"]
            assert "Answer with" not in document.input and "eligibility criterion" not in document.input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "local-chat-completions"), "a chat endpoint answers a text and does not continue it"),
        (("--model", "local-completions", "--model_args", "model=m,base_url=http://127.0.0.1:9/v1/chat/completions"),
         "a chat endpoint"),
        (("--model", "local-completions", "--model_args", "model=m,base_url=http://127.0.0.1:9/v1/completions"),
         "no server answers at http://127.0.0.1:9"),
        (("--model", "oracle"), "the model shows no tokenizer"),
        (("--model", "memry"), "unknown model type"),
        (("--model", "memory", "--apply_chat_template"), "--apply_chat_template is not for"),
        (("--model", "memory", "--num_fewshot", "5"), "--num_fewshot is not for"),
        (("--model", "memory", "--gen_kwargs", "temperature=1"), "--gen_kwargs is not for"),
        (("--model", "memory", "--limit", "0"), "leave nothing"),
        (("--model", "memory", "--bogus", "1"), "unknown: --bogus 1"),
    ],
)  # fmt: skip
def test_a_wrong_argument_gets_one_message(medtasks, rows, arguments, message):
    tasks = ("--tasks", "bridge_chip_ctc", "-o", "probe")
    outcome = medtasks("study", "contamination", *tasks, *arguments)
    assert outcome.code == 2, outcome.text
    assert message in outcome.err and "→" in outcome.err and "Traceback" not in outcome.text


def test_missing_data_is_said_before_the_model_is_loaded(medtasks, rows):
    outcome = medtasks("study", "contamination", "--tasks", "bridge_chip_ctc,bridge_mimic_iv_bhc", *FLAGS[2:])
    assert outcome.code == 1 and "✗ bridge_mimic_iv_bhc: bridge_mimic_iv_bhc is not at hand" in outcome.err
    outcome = medtasks("study", "contamination", "--tasks", "bridge_mimic_iv_bhc", "--model", "nope")
    assert outcome.code == 2 and "unknown model type" not in outcome.err


def test_a_configuration_made_for_chats_gives_its_model_only(medtasks, rows, tmp_path):
    (tmp_path / "chat.yaml").write_text("model: memory\napply_chat_template: true\n")
    outcome = medtasks(
        "study", "contamination", "--config", "chat.yaml", "--tasks", "bridge_chip_ctc", "-o", "probe"
    )
    assert outcome.code == 0 and result(tmp_path / "probe")["n_leaked"] == 8


def test_help_lists_only_flags_that_mean_something(medtasks):
    shown = medtasks("study", "contamination", "--help").out
    assert "--model_args" in shown and "--num_fewshot" not in shown
