"""Which few-shot rows a prompt carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import ContextSampler
from medtasks_ext.prompts.documents import Document


def after(document: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A document as it is asked after examples: an instruction that the last one obeys is not said again."""
    said = getattr(document, "instruction", "")
    if not (said and shots and getattr(shots[-1], "instruction", "") == said):
        return document
    return Document(document, prompt=document["prompt"][len(said) :].removeprefix("\n\n"))


class FirstShots(ContextSampler):
    """The first n rows of the pool, in its order, the same for every document."""

    def sample(self, n: int, eval_doc: Any = None, df: Any = None, **kwargs: Any) -> Any:
        """The shots; an instruction that several share is said by the first of them."""
        pool = self.df
        if n > len(pool):
            what = f"{n} shots asked for, the few-shot pool has {len(pool)} rows"
            remedy = "use the _5shot task, which holds test rows out, or lower --num_fewshot"
            raise MedtasksError(what, where=pool[0].loaded.record["where"] if pool else None, remedy=remedy)
        if n and "turn" in pool[0]:
            what = "system_role=false puts the instruction into the first turn, which the loader must know"
            remedy = f"add the number of shots: --metadata system_role=false shots={n}"
            raise MedtasksError(what, where="--num_fewshot", remedy=remedy)
        return [after(shot, pool[:place]) for place, shot in enumerate(pool[:n])]
