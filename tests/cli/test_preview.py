"""`medtasks preview`: the prompts are those of a run, and answers are read and scored as in a run."""

import json

import pytest

from medtasks_ext.models import Oracle
from medtasks_ext.registry import STRATEGIES, registry
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task

DATASETS = ["bridge_mie", "medhelm_hospice_referral", "clinicbench_ddi", "mlb_maexam"]


@pytest.fixture
def previewed(medtasks):
    def call(*arguments: object) -> dict:
        return json.loads(medtasks.done("preview", *arguments, "--json").out)

    return call


class Listening(Oracle):
    """Keeps the prompts that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []

    def generate_until(self, requests, disable_tqdm=False):
        self.prompts += [request.args[0] for request in requests]
        return super().generate_until(requests)


@pytest.mark.parametrize("name", DATASETS)
def test_prompts_are_to_the_letter_those_of_a_run(previewed, name):
    settings = Settings(data="sample")
    for strategy in STRATEGIES:
        task, model = registry().datasets[name].task(strategy), Listening()
        item = previewed(task, "--data", "sample", 2)
        assert item["strategy"] == strategy
        evaluate_task(model, build_task(registry(), task, settings), settings)
        assert item["prompt"] == model.prompts[2]


@pytest.mark.parametrize("name", DATASETS)
def test_the_gold_is_right_and_an_empty_answer_is_read_as_the_suite_says(previewed, name):
    dataset = registry().datasets[name]
    for item in (previewed(dataset.task(one), "--data", "sample") for one in dataset.strategies):
        gold, empty = item["answers"]
        metric = "mean_trial_accuracy" if item["trial"] is not None else "score"
        assert gold["valid"] and gold["metrics"][metric] == 1 and gold["metrics"]["SAMPLE_DATA"] == 1
        assert (empty["response"], empty["valid"], empty["parsed"]) == ("", False, empty["parsed"])
        assert item["target"] in gold["response"]


def test_a_response_of_ones_own_is_read_and_scored(medtasks, previewed):
    arguments = ("medhelm_hospice_referral_cot", "--data", "sample", "--response")
    for response, valid, score in (
        ("She is dying.\nResult: A", True, 1),
        ("Result: **A**", True, 1),
        ("Result: A. yes", True, 1),
        ("The answer is A.", True, 1),
        ("Result: A or B", False, 0),
        ("<think>Result: A", False, 0),
    ):
        *_, answer = previewed(*arguments, response)["answers"]
        assert (answer["response"], answer["valid"], answer["metrics"]["score"]) == (response, valid, score)
    printed = medtasks("preview", *arguments, "Result: B").out
    read = '  shared reading: "B" (the whole reply; characters 9 to 9)\n  SAMPLE score 0\n'
    assert f"your answer: 'Result: B'\n{read}" in printed


def test_whose_words_are_shown_is_said(medtasks, helm):
    shown = ("preview", "medhelm_medhallu", "--data", "sample")
    official, own = medtasks(*shown), medtasks(*shown, "--prompts", "own")
    assert f"official prompt of {helm.name}; settings:" in official.out and "own prompt; settings:" in own.out
    assert official.out.partition("──")[2] != own.out.partition("──")[2]
    assert medtasks(*shown, "--prompts", "theirs").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bridge_mee",), "did you mean: bridge_mie"),
        (("bridge_zh",), "'bridge_zh' stands for "),
        (("bridge_mie", "7"), "has documents 0 to 6, not 7"),
        (("bridge_mie", "--tokenizer", "nowhere"), "--tokenizer nowhere: "),
        (("bridge_brateca_mortality", "--data", "local"), "--data sample"),
    ],
)
def test_a_wrong_argument_gets_one_message(medtasks, arguments, message):
    sample = () if "--data" in arguments else ("--data", "sample")
    outcome = medtasks("preview", *arguments, *sample)
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert "Traceback" not in outcome.text
