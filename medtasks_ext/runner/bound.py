"""Whether outcomes are those of the run that holds them, by lines that say so and by keys of requests.

A file that was copied from another run, and a run whose model, settings, rows or wording were renamed, do not
fit, also where somebody sealed the folder anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runner.requests import request_key
from medtasks_ext.runner.run import BOUND_TO, loaded_with
from medtasks_ext.runs.outcomes import Binding, Stored, outcome_files, read_file
from medtasks_ext.runs.samples import options_of
from medtasks_ext.runs.seal import Change

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.runs.manifest import Identity

#: In place of halves of surrogate pairs in recorded prompts.
_REPLACED = "\ufffd"


@dataclass
class BoundFiles:
    """The files of outcomes of one task, while they are read.

    Attributes:
        loose: files of an older version, whose first line does not say whose they are.
        last: whose the last lines of each file are.
        changes: what does not hold.
    """

    identity: Identity
    loose: list[str] = field(default_factory=list)
    last: list[Binding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def read(self, folder: Path, task: str) -> Iterator[Stored]:
        """The outcomes of all files.

        Raises:
            MedtasksError: a line is damaged.
        """
        for path in outcome_files(folder, task):
            bound: Binding | None = None
            name = f"{folder.name}/{path.name}"
            for number, stored in enumerate(read_file(path), start=1):
                yield stored
                if stored.of is not None:
                    bound = stored.of
                    if bound.identity != self.identity.whole:
                        self.changes.append(Change(name, f"line {number}: {self._other(bound)}"))
                elif number == 1:
                    self.loose.append(name)
            if bound is not None:
                self.last.append(bound)

    def _other(self, bound: Binding) -> str:
        named = self.identity.model_name
        if bound.model != named:
            return f"is of the model {bound.model}, and run.json names {named}"
        return "is of a model with other arguments, or of other settings, than run.json names"

    def others(self, loaded: LoadedRecord) -> list[str]:
        """In words, what a result was scored with that no file of its outcomes was asked with.

        Args:
            loaded: what was loaded for the score.
        """
        now, asked = loaded_with(loaded), [asked_with(item) for item in self.last]
        if not asked or now in asked:
            return []
        return [f"{name} {now[name]} (asked: {was})" for name, was in asked[-1].items() if now[name] != was]


def asked_with(bound: Binding) -> dict[str, str]:
    """The rows and words that outcomes are bound to."""
    return {name: getattr(bound, name) for name in BOUND_TO}


def moved(task: str, identity: Identity, samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """In words, the first document whose key does not follow from model, prompt and generation settings."""
    for number, sample in enumerate(samples, start=1):
        if (key := sample.get("request")) is None:
            continue
        argument, settings = sample["arguments"][0]
        prompt = json.loads(argument[0]) if isinstance(argument, list) else argument
        document, options = document_key(sample["doc"]), options_of(sample)
        known = request_key(identity.digest, task, document, prompt, settings, options)
        if key != known and _REPLACED not in str(prompt):
            yield f"line {number}: its request does not follow from run.json's model and the prompt"
            return
