"""Every name of the list of settings is in every record, whatever word it holds."""

import functools
import json
import re
from pathlib import Path

import pytest

from medtasks_ext.runs.settings import LISTS, Effect

TASK = "bridge_chip_ctc"
#: Place -> the names that it takes. Harmless arguments of a model are no part of a run's identity, and two
#: arguments name the model.
NAMES = {
    "--gen_kwargs": {name for line in LISTS["generation"] for name in line.names},
    "--model_args": {
        name for line in LISTS["model"] if line.effect is not Effect.HARMLESS for name in line.names
    }
    - {"pretrained", "model"},
}
TEMPLATE = {name for line in LISTS["template"] for name in line.names}
#: no default of any engine; as a length it is long enough for a prompt and its answer
VALUE = 7000
#: A form of answers with fields that are called as logins are.
FORM = {"properties": {"key": {"type": "string"}, "token": {"type": "integer"}}}


def given(place):
    """An option that gives every setting of a place."""
    if place == "--gen_kwargs":
        return place, json.dumps({**dict.fromkeys(sorted(NAMES[place]), VALUE), "guided_json": FORM})
    return place, json.dumps(
        {
            **dict.fromkeys(sorted(NAMES[place]), VALUE),
            "chat_template_args": dict.fromkeys(sorted(TEMPLATE), VALUE),
        }
    )


def lacking(place, text):
    """The names of a place that a text does not hold with a value."""
    names = NAMES[place] | (TEMPLATE if place == "--model_args" else set())
    return sorted(name for name in names if not re.search(rf"\b{name}\b['\"]?\s*(=|:|\|| was)", text))


@pytest.fixture
def run(medtasks, chip_ctc):
    def call(folder, *options):
        return medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", folder, *options)

    assert call("plain").code == 0
    return call


@pytest.mark.parametrize("place", NAMES)
def test_every_setting_is_recorded_compared_and_published(medtasks, run, place):
    outcome = run("set", *given(place))
    assert outcome.code == 0, outcome.err
    assert lacking(place, Path("set/run.json").read_text()) == []
    continued = run("plain", *given(place))
    assert continued.code == 2 and lacking(place, continued.err) == []
    compared = medtasks("compare", "plain", "set")
    assert lacking(place, compared.out) == [] and "the same results" not in compared.out
    assert medtasks("card", "set", "-o", "card", "--parts").code == 0
    assert lacking(place, Path("card/medtasks-manifest.json").read_text()) == []
    assert (
        medtasks("card", "--layout", "medtasks", "set", "-o", "submissions/Org/oracle/2026-05-01").code == 0
    )
    assert lacking(place, Path("submissions/Org/oracle/2026-05-01/submission.json").read_text()) == []
    if place == "--gen_kwargs":
        identity = json.loads(Path("set/run.json").read_text())["identity"]
        assert identity["settings"]["gen_kwargs"]["guided_json"] == FORM


@pytest.mark.parametrize("place", NAMES)
def test_every_setting_of_plain_lm_eval_is_read(medtasks, chip_ctc, built_tasks, monkeypatch, place):
    from lm_eval import tasks
    from lm_eval.__main__ import cli_evaluate

    import medtasks_ext.models  # noqa: F401  # `oracle`

    monkeypatch.setattr(tasks, "TaskManager", functools.partial(tasks.TaskManager, include_defaults=False))
    for folder, options in (("plain", ()), ("set", given(place))):
        call = ["lm_eval", "--model", "oracle", "--tasks", TASK, "--include_path", str(built_tasks),
                "--output_path", folder, "--log_samples", *options]  # fmt: skip
        monkeypatch.setattr("sys.argv", call)
        cli_evaluate()
    compared = medtasks("compare", "plain", "set")
    assert lacking(place, compared.out) == [] and "the same results" not in compared.out
