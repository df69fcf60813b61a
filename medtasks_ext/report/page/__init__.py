"""The page of `medtasks report`: a leaderboard, charts, a page per task, and answers from files beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics import meanings, rule
from medtasks_ext.offline_page import offline_page
from medtasks_ext.prompts.render import strategy_line
from medtasks_ext.report.pictures import FONT, kinds, licences, themes, vendored
from medtasks_ext.rows.expressions import UNFIT, Template
from medtasks_ext.rows.spec import Prompt, dataset_spec

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.experiments import Experiment
    from medtasks_ext.strict import Config

_HERE = Path(__file__).parent
#: Of the page's script what other pages build on, too: address, controls, tables, pictures, filters, frame.
SHARED = ("address", "dom", "colours", "table", "picture", "frontier", "filters", "frame")
#: The page's script, in the order in which its parts build on each other. `data` stands before the library:
#: its first line makes the whole script strict.
_SCRIPTS = (
    *SHARED, "scores", "state", "columns", "scatter", "heat_map", "live", "overview", "leaderboard",
    "profile", "pairs", "strategies", "labels", "answers", "list", "answer", "errors", "tasks", "model",
    "parts", "main",
)  # fmt: skip


def render(payload: Mapping[str, Any]) -> str:
    pictures = {"kinds": kinds(), "themes": themes(), "font": FONT, "licences": licences()}
    return offline_page(
        _HERE / "report.html",
        style=[_HERE / "report.css", _HERE / "answers.css"],
        scripts=[_HERE / "data.js", *vendored(), *(_HERE / f"{name}.js" for name in _SCRIPTS)],
        data={"answers": {"held": [], "withheld": []}, **payload, "pictures": pictures},
        language="en",
        title=str(payload["title"]),
    )


_LENGTH = 4000  # of an instruction: some list hundreds of labels
_LINE = "{{ strategy }}"
_LAST_TURN = "{{ input }}"  # what `prompt.input` is by default
_OFFICIAL = (
    "Some entries were asked in the official wording that came with the rows (see their settings); below is "
    "medtasks' own."
)


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def task_page(dataset: Dataset, strategies: Mapping[str, bool], items: Sequence[Experiment]) -> Json:
    """Prompts, rule, metrics and notes of a dataset; strategy -> whether it asks to reason first."""
    own, words = [metric["metric"] for metric in dataset.metric_list], meanings()
    names = dict.fromkeys([*own, *(name for item in items for name in item.metrics)])
    official = any(item.printed is None and item.conditions.wording not in (None, "own") for item in items)
    return {
        "prompts": _prompts(dataset, strategies),
        "rule": rule(dataset),
        "metrics": [[name, words[name]] for name in names if words.get(name)],
        "open_questions": list(dataset.metadata.open_questions),
        "note": _OFFICIAL if official else None,
    }


def _prompts(dataset: Dataset, strategies: Mapping[str, bool]) -> dict[str, dict[str, str]]:
    spec = dataset_spec(dataset)
    lines = {cot: strategy_line(dataset, spec, cot=cot) for cot in dict.fromkeys(strategies.values())}
    instruction = _instruction(dataset, spec.prompt.instruction, spec.answer)
    shown = _input(spec.prompt)
    answered_at_once = f"{shown}\n{spec.prompt.cue}" if spec.prompt.cue else shown
    prompts = {
        cot: {
            "instruction": cut(instruction.replace(_LINE, line).rstrip(), _LENGTH),
            "input": cut((shown if cot else answered_at_once).replace(_LINE, line), _LENGTH),
            "strategy_line": line,
        }
        for cot, line in lines.items()
    }
    return {strategy: prompts[cot] for strategy, cot in strategies.items()}


def _input(prompt: Prompt) -> str:
    """What follows the instruction: of a dialogue the turns, or the column that holds them."""
    if prompt.messages is None:
        return prompt.input
    turns = f"{{{{ {prompt.messages} }}}}, turn by turn"
    return turns if prompt.input == _LAST_TURN else f"{turns}\n\n{prompt.input}"


def _instruction(dataset: Dataset, text: str, answer: Config) -> str:
    """The instruction as a model reads it, but for the strategy's line; as it is where it depends on rows."""
    if "{" not in text.replace(_LINE, ""):
        return text
    try:
        values = {"strategy": _LINE, "answer_format": answer_format(answer)}
        return Template(text, dataset.file).render(values)
    except (*UNFIT, MedtasksError):
        return text
