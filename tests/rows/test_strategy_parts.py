"""What differs between the prompts of the strategies: one line, and the cue at the end."""

import pytest

from medtasks_ext.prompts.load import load_documents
from medtasks_ext.prompts.render import LINES
from medtasks_ext.registry import registry

DATASETS = registry().datasets
OWN = [name for name, item in DATASETS.items() if item.suite.id in ("medhelm", "clinicbench", "mlb")]
OPEN = [name for name in OWN if DATASETS[name].blocks["answer"]["kind"] == "free_text"]


def prompt(name, *, cot):
    document = load_documents(DATASETS[name], cot=cot, origin="sample")["test"][0]
    return document["prompt"]


@pytest.mark.parametrize("name", OWN)
def test_a_prompt_that_asks_to_reason_first_is_the_direct_one_without_its_cue(name):
    block = DATASETS[name].blocks["prompt"]
    direct, reasoned = prompt(name, cot=False), prompt(name, cot=True)
    assert direct != reasoned
    assert direct == direct.rstrip() and "\n\n\n\n" not in direct  # nothing is left where a line is empty
    if cue := block.get("cue", "").strip().split("\n")[-1]:
        if "{" not in cue:
            assert direct.endswith(cue) and not reasoned.rstrip().endswith(cue)
    else:
        assert direct.split("\n")[-1] == reasoned.split("\n")[-1]


@pytest.mark.parametrize("name", OPEN)
def test_open_ended_questions_do_not_ask_for_nothing_but_the_answer(name):
    suite = DATASETS[name].suite
    lines = {LINES.answer, *(line.answer for line in suite.strategy_lines.values())}
    assert not any(line in prompt(name, cot=False) for line in lines)


def test_a_dataset_may_have_lines_of_its_own():
    name = "clinicbench_medqa"
    own = DATASETS[name].blocks["prompt"]["strategy_lines"]
    assert own["answer"] in prompt(name, cot=False) and own["reason"] in prompt(name, cot=True)
    assert "Result:" not in prompt(name, cot=True)  # one marker: `Answer:`
