"""`medtasks study contamination`: verdicts, resumption, tables, wrong arguments."""

import json
import random
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from medtasks_ext.prompts import load
from medtasks_ext.studies.contamination import Completion, completions, is_match
from tests.conftest import sft_row
from tests.studies.contamination_models import Bytes, GoneError, LooksAhead, Memory, Plain

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


def test_a_model_that_continues_all_inputs_has_them_leaked_and_no_text_is_kept(medtasks, rows, tmp_path):
    outcome = medtasks("study", "contamination", *FLAGS)
    assert outcome.code == 0, outcome.err
    assert cells(outcome.out) == ["bridge_chip_ctc", "10", "2", "8", "8", "100.0%", "67.6%", "–", "100.0%"]
    found = result(tmp_path / "probe")
    assert [item["n_matches"] for item in found["documents"]] == [5] * 8 + [None] * 2
    assert [item["leaked"] for item in found["documents"]] == [True] * 8 + [None] * 2
    assert (found["share"], found["n_cuts_moved"], found["origin"]) == (1, 0, "local")
    assert "SAMPLE" not in outcome.text
    files = sorted(path.name for path in (tmp_path / "probe").iterdir())
    assert files == ["answers.jsonl", "contamination.json"]
    written = (tmp_path / "probe" / "contamination.json").read_text()
    assert not any(word in written for item in Memory.texts for word in item.split())
    starts = {" ".join(item.split()[:cut]) for item in Memory.texts for cut in (10, 15, 20, 25, 30)}
    assert len(Memory.prompts) == 40 and set(Memory.prompts) == starts
    assert all(
        settings == {"until": [], "max_gen_toks": 5, "do_sample": False, "temperature": 0.0,
                     "repetition_penalty": 1.0}
        for settings in Memory.settings
    )  # fmt: skip
    outcome = medtasks("study", "contamination", *FLAGS[:-1], "named", "--model_args", "auth_token=sesame")
    assert outcome.code == 0 and "sesame" not in (tmp_path / "named" / "contamination.json").read_text()


@pytest.mark.parametrize(("tokens", "n_matches", "n_leaked"), [(14, 0, 0), (24, 2, 0), (25, 3, 8)])
def test_three_continuations_decide(medtasks, rows, tmp_path, tokens, n_matches, n_leaked):
    medtasks("study", "contamination", *FLAGS, "--model_args", f"tokens={tokens}")
    found = result(tmp_path / "probe")
    assert {item["n_matches"] for item in found["documents"]} == {n_matches, None}
    assert found["n_leaked"] == n_leaked


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


def test_another_model_does_not_get_the_responses_of_the_first(medtasks, rows, monkeypatch):
    monkeypatch.setattr(Memory, "interrupt", (3, KeyboardInterrupt()))
    medtasks("study", "contamination", *FLAGS, "--model_args", "name=a")
    outcome = medtasks("study", "contamination", *FLAGS, "--model_args", "name=b")
    assert outcome.code == 2 and "the probe of another model" in outcome.err


def test_every_dataset_with_sample_rows_can_be_probed(medtasks, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    outcome = medtasks("study", "contamination", "--tasks", "bridge,medhelm", *FLAGS[2:], "--limit", "2")
    names = json.loads((tmp_path / "probe" / "contamination.json").read_text())["tasks"]
    assert len(names) > 80 and all(task["n_leaked"] == 0 for task in names.values()), outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "local-chat-completions"), "a chat endpoint answers a text and does not continue it"),
        (("--model", "local-completions", "--model_args", "model=m,base_url=http://127.0.0.1:9/v1/completions"),
         "no server answers at http://127.0.0.1:9"),
        (("--model", "oracle"), "the model shows no tokenizer"),
        (("--model", "memry"), "unknown model type"),
        (("--model", "memory", "--apply_chat_template"), "--apply_chat_template is not for"),
        (("--model", "memory", "--bogus", "1"), "unknown: --bogus 1"),
    ],
)  # fmt: skip
def test_a_wrong_argument_gets_one_message(medtasks, rows, arguments, message):
    tasks = ("--tasks", "bridge_chip_ctc", "-o", "probe")
    outcome = medtasks("study", "contamination", *tasks, *arguments)
    assert outcome.code == 2, outcome.text
    assert message in outcome.err and "→" in outcome.err and "Traceback" not in outcome.text


# The rule of the probe: cuts and matches.


CHINESE = "患者发热三天伴咳嗽咳痰无胸痛既往体健查体双肺呼吸音粗"  # 3 bytes each
LATIN = "x" * 9 + "abc" + "y" * 40  # the tenth token is `ab`, by itself it is two


@pytest.mark.parametrize(
    ("text", "tokenizer", "first"),
    [
        # 10 tokens are 20 bytes: back to 18, which are 9 tokens and 6 characters; 15 tokens are 10 characters
        (CHINESE, Bytes(2), Completion(10, CHINESE[:6], CHINESE[6:10], 6)),
        (LATIN, LooksAhead(), Completion(10, "x" * 9, "abcyyyy", 6)),
    ],
)
def test_a_cut_moves_left_to_whole_characters_and_to_whole_tokens(text, tokenizer, first):
    assert completions(text, Plain(tokenizer))[0] == first


@pytest.mark.parametrize(
    ("expected", "predicted", "match"),
    [
        (" a b c d e", "a b c d e", True),  # the space that SentencePiece loses
        (" a b c d e", " a b c d", False),
        (" a b c d e", " a b c d ef", False),
        ("\na b c d", "a b c d", False),
        ("   ", "", False),
    ],
)
def test_a_match_is_exact_but_for_leading_spaces(expected, predicted, match):
    assert is_match(expected, predicted) is match
