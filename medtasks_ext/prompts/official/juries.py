"""What judges are asked in the suite's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.choice import PromptSource, find_artefact
from medtasks_ext.prompts.official.folding import FoldedText, split_at
from medtasks_ext.prompts.official.words import Origin, origin_of, source_of
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.blocks import OfficialJury
from medtasks_ext.rows.expressions import Template as Jinja
from medtasks_ext.rows.spec import Judging


@dataclass(frozen=True)
class JuryWords:
    template: FoldedText  # with slots for the texts under review
    slots: Mapping[str, Jinja]  # slot -> what fills it
    origin: Origin  # where it was read
    jury: OfficialJury | None = None  # how its verdicts are read; None: as one JSON object

    def message(self, texts: Mapping[str, str]) -> str:
        names = {"gold": "", "item": "", "context": "", **texts}
        return self.template.filled(lambda slot: self.slots[slot].render(names))


def jury_words(dataset: Dataset, judging: Judging, prompts: PromptSource) -> JuryWords | None:
    """The official words for the judges of a dataset; None where ours are asked. `auto` downloads nothing."""
    if prompts == "own" or (judging.official is None and prompts == "auto"):
        return None
    if judging.official is None:
        what = "there are no official prompts for its judges"
        remedy = "leave it to us, --prompts auto, or name other --tasks"
        raise MedtasksError(what, where=dataset.id, remedy=remedy)
    official, must = dataset.suite.official, prompts == "official"
    if isinstance(jury := judging.official, OfficialJury):
        return _of_one_message(dataset, jury, must=must)
    if official is None or official.juries is None:
        what = "judge.official: suite.yaml declares no juries"
        raise MedtasksError(what, where=dataset.file, remedy="declare them there (docs/keys.md)")
    artefact, juries = official.artefacts[official.juries.artefact], official.juries
    path = find_artefact(artefact, must=must, fetch=False)
    if path is None:
        return None
    source = source_of(artefact, path, f"{juries.folder}/{judging.official}" if juries.folder else None)
    if juries.criteria and (axes := list(source.table(juries.criteria))) != list(judging.axes):
        what = f"judge.axes: the released jury rates {', '.join(map(str, axes))}"
        raise MedtasksError(what, where=dataset.file, remedy="name the same axes there, in the same order")
    template = split_at(source.text(juries.template), juries.slots)
    slots = {slot: Jinja(said, dataset.suite.file) for slot, said in juries.slots.items()}
    return JuryWords(template, slots, origin_of(artefact, template.shown()))


def _of_one_message(dataset: Dataset, jury: OfficialJury, *, must: bool) -> JuryWords | None:
    official = dataset.suite.official
    named = jury.text.artefact
    if official is None or named is None or named not in official.artefacts:
        what = f"judge.official: suite.yaml declares no artefact {named!r}"
        raise MedtasksError(what, where=dataset.file, remedy="declare it there (docs/evaluate.md)")
    artefact = official.artefacts[named]
    path = find_artefact(artefact, must=must, fetch=False)
    if path is None:
        return None
    template = source_of(artefact, path, jury.text.file).taken(jury.text, jury.slots)
    if wrong := sorted(template.slots ^ jury.slots.keys()):
        what = f"judge.official.slots: {wrong[0]!r} is not in both"
        raise MedtasksError(what, where=dataset.file, remedy="name the slots of that text")
    slots = {slot: Jinja(said, dataset.file) for slot, said in jury.slots.items()}
    return JuryWords(template, slots, origin_of(artefact, template.shown()), jury)
