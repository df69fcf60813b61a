"""Before a run one answer is looked at: wrong settings of a model are said in words."""

import json
from typing import Any, ClassVar

import pytest
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from tests.conftest import outcomes, sft_row
from tests.run_files import without_result

CHIP_CTC = "bridge_chip_ctc"
ANSWER = "clinical trial criterion: 年龄"


class Characters:
    """A tokenizer in the manner of transformers, one token per character."""

    def __init__(self, chat_template: str | None) -> None:
        self.chat_template = chat_template

    def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[ord(char) for char in text] for text in texts]}


@register_model("scripted")
class Scripted(LM):
    """Gives one reply, cut at the budget, and remembers what it was asked for."""

    reply: ClassVar[str | Exception] = ANSWER
    chat_template: ClassVar[str | None] = "yes"
    opening: ClassVar[str] = ""
    context: ClassVar[int] = 100_000
    asked: ClassVar[list[tuple[str, int]]] = []

    def __init__(self, **_: Any) -> None:
        super().__init__()
        self.tokenizer: Any = Characters(self.chat_template)
        self.max_length = self.context

    tokenizer_name = "scripted"

    def tok_encode(self, text: str) -> list[str]:
        return list(text)

    def apply_chat_template(self, chat_history, add_generation_prompt: bool = True) -> str:
        if self.chat_template is None:
            raise ValueError("tokenizer.chat_template is not set")
        return "".join(f"[{turn['role']}] {turn['content']}\n" for turn in chat_history) + self.opening

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        self.asked.extend((item.args[0], item.args[1]["max_gen_toks"]) for item in requests)
        if isinstance(self.reply, Exception):
            raise self.reply
        return [self.reply[: item.args[1]["max_gen_toks"]] for item in requests]

    loglikelihood = loglikelihood_rolling = None


@pytest.fixture
def model(monkeypatch, chip_ctc):
    """Set what the model is like; BRIDGE's CHIP-CTC with 8 documents is at hand."""
    monkeypatch.setattr(Scripted, "asked", [])

    def like(**attributes: Any) -> type[Scripted]:
        for name, value in attributes.items():
            monkeypatch.setattr(Scripted, name, value)
        return Scripted

    return like


def command(*more: object, chat: bool = True, budget: int = 300) -> list[object]:
    chat_template = ["--apply_chat_template"] if chat else []
    return ["run", "--model", "scripted", "--tasks", CHIP_CTC, "--output_path", "run",
            "--gen_kwargs", f"max_gen_toks={budget}", *chat_template, *more]  # fmt: skip


def manifest(tmp_path, folder: str = "run") -> dict[str, Any]:
    return json.loads((tmp_path / folder / "run.json").read_text())


def test_a_sound_model_is_told_so_in_one_line_and_asked_nothing_twice(medtasks, model, tmp_path):
    outcome = medtasks.done(*command())
    assert "preflight: one question of bridge_chip_ctc" in outcome.err and "!" not in outcome.err
    assert "an answer could be read" in outcome.err
    assert manifest(tmp_path)["preflight"] == {"warnings": []} and not manifest(tmp_path)["notes"]
    assert len(Scripted.asked) == 8 == len(outcomes(tmp_path / "run"))
    Scripted.asked.clear()
    outcome = medtasks.done(*command("--no-preflight", "--output_path", "without", budget=4000))
    assert "preflight" not in outcome.err and len(Scripted.asked) == 8


WRONG = {
    "no chat template applied": ({}, {"chat": False}, "it is not applied", "--apply_chat_template"),
    "reasoning does not fit": (
        {"reply": "<think>" + "hm " * 900},
        {},
        "reasoning did not end within its 300 tokens",
        "max_gen_toks=16384",
    ),
    "reasoning opened by the template": (
        {"reply": "hm " * 900, "opening": "<think>\n"},
        {"budget": 2000},
        "did not end within its 2,000 tokens",
        "max_gen_toks=16384",
    ),
    "nothing after the reasoning": ({"reply": "<think>hm</think>\n"}, {}, "nothing after its reasoning", ""),
    "an answer without an end": (
        {"reply": ANSWER * 90},
        {},
        "did not end within its 300 tokens",
        "end token",
    ),
    "an empty answer": ({"reply": " \n"}, {}, "an empty response", "check the chat template"),
    "an end token in the text": ({"reply": ANSWER + "<|im_end|>"}, {}, "'<|im_end|>'", "a turn"),
    "a conversation": ({"reply": ANSWER + "\nUser: next"}, {}, "'User:'", "a turn that is not its own"),
}


@pytest.mark.parametrize(("like", "how", "what", "remedy"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_at_the_start_and_at_the_end_and_kept(
    medtasks, model, tmp_path, like, how, what, remedy
):
    model(**like)
    outcome = medtasks(*command(**how))
    assert outcome.code == 0
    start, end = outcome.err.split("results: ")[0].split("[1/1] bridge_chip_ctc: done")
    assert what in start and remedy in start and f"note: {manifest(tmp_path)['notes'][-1]}" in end
    (warning,) = manifest(tmp_path)["preflight"]["warnings"]
    assert what in warning and remedy in warning
    assert len(outcomes(tmp_path / "run")) == 8


@pytest.mark.parametrize(
    "like",
    [
        {"reply": f"<think>\nhm\n</think>\n{ANSWER}"},
        {"reply": f"hm</think>{ANSWER}", "opening": "<think>\n"},
        {"reply": ANSWER, "opening": "<think>\n\n</think>\n\n"},
        {"reply": f"<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>{ANSWER}"},
    ],
    ids=["closed", "opened by the template", "switched off by the template", "channels"],
)
def test_reasoning_that_ends_is_no_fault(medtasks, model, tmp_path, like):
    model(**like)
    said = medtasks.done(*command()).err
    assert manifest(tmp_path)["preflight"] == {"warnings": []}
    assert ("it reasons first" in said) is ("hm" in like["reply"])


def test_a_continued_run_says_it_again_without_asking_again(medtasks, model, tmp_path):
    model(reply="")
    medtasks(*command(budget=4000))
    Scripted.asked.clear()
    without_result(tmp_path / "run", "bridge_chip_ctc")
    outcome = medtasks(*command(budget=4000))
    assert outcome.code == 0 and not Scripted.asked
    assert outcome.err.count("an empty response") == 1 and "preflight" not in outcome.err


def test_a_first_question_that_fails_is_looked_at_when_it_is_answered(medtasks, model, tmp_path):
    model(reply=RuntimeError("401 no such key"))
    outcome = medtasks(*command())
    assert outcome.code == 1 and "401 no such key" in outcome.err and "preflight" not in outcome.err
    model(reply=ANSWER)
    assert "preflight: one question of bridge_chip_ctc" in medtasks.done(*command()).err
    assert manifest(tmp_path)["preflight"] == {"warnings": []} and not manifest(tmp_path)["notes"]


def test_a_template_that_is_absent_is_refused_and_the_folder_stays_free(medtasks, model, tmp_path):
    model(chat_template=None)
    outcome = medtasks(*command())
    assert outcome.code == 2 and "has no chat template" in outcome.err and "leave the flag out" in outcome.err
    assert not Scripted.asked
    outcome = medtasks(*command(chat=False))
    assert outcome.code == 0 and "!" not in outcome.err


def test_the_response_is_never_shown(medtasks, model, tmp_path):
    model(reply="Maria " * 900)
    outcome = medtasks(*command("--data", "sample"))
    assert "Maria" not in outcome.err + (tmp_path / "run" / "run.json").read_text()


def prompts(tmp_path, folder: str = "full") -> list[str]:
    (file,) = (tmp_path / folder).glob("samples_*.jsonl")
    return [json.loads(line)["arguments"]["gen_args_0"]["arg_0"] for line in file.read_text().splitlines()]


@pytest.fixture
def uneven(chip_ctc):
    """Inputs of 100, 200, … 800 characters."""
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    path.write_text(json.dumps([sft_row(i, "长" * 100 * (i + 1), ANSWER) for i in range(8)]))


@pytest.mark.parametrize("fitting", [1, 5, 8])
def test_prompts_longer_than_the_context_are_counted(medtasks, model, uneven, tmp_path, fitting):
    medtasks(*command("--output_path", "full"))
    sizes = sorted(map(len, prompts(tmp_path)))
    model(context=sizes[fitting - 1] + 300)
    err = medtasks(*command()).err
    if fitting == 8:
        assert "do not fit" not in err
    else:
        assert f"! {8 - fitting} of 8 prompts do not fit a context of" in err
        assert f"most: bridge_chip_ctc, {8 - fitting} of 8" in err


def test_a_budget_above_the_stated_context_is_refused_before_the_model_is_loaded(medtasks, tmp_path):
    outcome = medtasks("run", "--tasks", CHIP_CTC, "--data", "sample", "--model", "vllm",
                       "--model_args", "pretrained=no/such-model,max_model_len=2048",
                       "--output_path", "run")  # fmt: skip
    assert outcome.code == 2 and "leaves no room in a context of 2,048" in outcome.err
    assert CHIP_CTC in outcome.err and "max_gen_toks=512" in outcome.err
    assert "such-model" not in outcome.err, "nobody looked for the model"


def test_a_context_that_takes_no_prompt_is_refused(medtasks, model, uneven, tmp_path):
    model(context=400)
    outcome = medtasks(*command())
    assert outcome.code == 2 and "none of the 8 prompts fits a context of 400 tokens" in outcome.err
    assert not Scripted.asked
    assert medtasks(*command("--no-preflight")).code == 0


def test_a_run_says_that_answers_begin_with_reasoning_that_no_rule_knows(medtasks, model):
    model(reply=f"<ponder>hm</ponder>{ANSWER}")
    said = "100.0% of the answers begin with what looks like reasoning (<ponder>),"
    assert said in medtasks(*command()).out.replace("\n", " ")
    assert said in medtasks("report", "run").out.replace("\n", " ")
