"""Words of environments in Python source: the turns that their code would make, which is never run."""

import re
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import load_documents
from medtasks_ext.prompts.official.words import Held
from medtasks_ext.registry import registry
from medtasks_ext.registry.blocks import Artefact
from medtasks_ext.runner.proof import verify
from medtasks_ext.suites.medmarks import EnvironmentWords, OfficialEnvironment, aged

ENVIRONMENT = '''
raise SystemExit("this file was run")
TASK = """Case: {case}
{form}"""

def _ask(text, listed):
    return f"Q: {text}\\n{listed}"

def load_environment(system_prompt=None):
    chosen = system_prompt or "Be brief."
    def _map(row):
        asked = _ask(row["q"], "")
        return {"question": "Now.\\n" + asked + "\\nReply:"}
'''
SHARED = 'FORM = "One letter."\n'


def held(folder: Path) -> dict[str, Held]:
    made = {}
    for name, text in {"environment": ENVIRONMENT, "shared": SHARED}.items():
        path = folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        made[name] = Held(Artefact(file=path.name, revision="1", installed="written_here"), path)
    return made


def words(folder: Path, block: dict[str, Any]) -> EnvironmentWords:
    said = OfficialEnvironment.model_validate(block)
    assert said.artefacts[0] == "environment"
    return EnvironmentWords(said, held(folder), folder / "task.yaml")


CALLED = {
    "user": {"artefact": "environment", "in": "load_environment", "take": "return", "key": "question"},
    "system": {"in": "load_environment", "take": "chosen"},
    "pieces": {"again": {"in": "_ask", "take": "return"}},
    "slots": {"asked": "again()", "text": "question", "listed": "options | lettered('AB', ') ')"},
}
TEMPLATE = {
    "user": {"artefact": "environment", "take": "TASK", "braces": True},
    "pieces": {"form": {"artefact": "shared", "take": "FORM"}},
    "slots": {"{case}": "question | trim", "{form}": "form()"},
}
ROW = {"question": " A cough? ", "options": ["Flu", "Gout"]}


def test_a_turn_is_what_functions_return_and_the_system_turn_stands_apart(tmp_path: Path) -> None:
    turn = words(tmp_path, CALLED).turn(ROW, "row 1", lambda: "ours")
    assert (turn.system, turn.instruction) == ("Be brief.", "")
    assert turn.text == "Now.\nQ:  A cough? \nA) Flu\nB) Gout\nReply:"


def test_a_template_takes_a_sentence_of_another_file(tmp_path: Path) -> None:
    turn = words(tmp_path, TEMPLATE).turn(ROW, "row 1", lambda: "ours")
    assert (turn.system, turn.text) == ("", "Case: A cough?\nOne letter.")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({**TEMPLATE, "slots": {"{form}": "form()"}}, "'{case}' is not filled"),
        ({**CALLED, "slots": {**CALLED["slots"], "more": "1"}}, "'more' is in none of the texts"),
        ({**CALLED, "system": {"take": "MISSING"}}, "MISSING: there is no such text"),
        ({**CALLED, "slots": {"asked": "question"}}, "text is neither one text nor a slot"),
    ],
)
def test_another_file_than_the_block_is_of_is_named(tmp_path: Path, block: dict[str, Any], said: str) -> None:
    with pytest.raises(MedtasksError, match=re.escape(said)):
        words(tmp_path, block)


def test_ages_are_a_little_higher_and_the_same_each_time() -> None:
    said = "A 58-year-old man and a 3 year old, 40 years married, 7yo."
    found = [float(number) for number in re.findall(r"([\d.]+) year-old", aged(said, 4))]
    assert [int(number) for number in found] == [58, 3, 7]
    assert all(0 <= number - int(number) <= 0.04 for number in found)
    assert aged(said, 4) == aged(said, 4) != aged(said, 5)
    assert "40 years married" in aged(said, 4)


def test_message_lists_are_those_of_medmarks(released: Path) -> None:
    if not list(released.glob("official/*/careqa.py")):
        pytest.skip("the files of Medmarks are not here: medtasks data fetch official")
    verdicts = list(verify(registry(), registry().suites["medmarks"]))
    assert [verdict for verdict in verdicts if not verdict.ok] == []
    assert len(verdicts) == 11 and all(verdict.n >= 5 for verdict in verdicts)


def test_the_system_turn_joins_the_users_where_a_model_has_none(released: Path) -> None:
    if not list(released.glob("official/*/metamedqa.py")):
        pytest.skip("the files of Medmarks are not here: medtasks data fetch official")
    dataset = registry().datasets["medmarks_pubhealthbench"]
    apart, joined = (
        load_documents(dataset, cot=False, origin="sample", prompts="official", system_role=role)["test"][0]
        for role in (True, False)
    )
    assert apart["system"] and joined["system"] == ""
    assert joined["prompt"] == f"{apart['system']}\n\n{apart['prompt']}"
    assert apart.loaded.record["instruction"] == "official"
