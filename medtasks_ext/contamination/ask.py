"""One task through a model: its inputs, the requests at their cuts, the verdicts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval.api.instance import Instance

from medtasks_ext.contamination.probe import CUTS, Completion, Tokenizer, Verdict, completions, is_match
from medtasks_ext.data import load_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from medtasks_ext.data.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.runner.store import StoringLM


def inputs(dataset: Dataset, origin: str | None) -> list[Document]:
    """The test documents of a dataset, each question once where options are permuted.

    Raises:
        MedtasksError: data that is missing or does not satisfy the task's schema.
    """
    documents = load_documents(dataset.folder, cot=False, origin=origin)["test"]
    return [document for document in documents if not document.get("trial")]


@dataclass(frozen=True)
class Asked:
    """What a task gave: a verdict per document, and how many cuts were moved to whole characters."""

    verdicts: list[Verdict]
    n_cuts_moved: int


def ask(
    lm: StoringLM,
    task: str,
    documents: list[Document],
    tokenizer: Tokenizer,
    *,
    fixed: dict[str, Any],
    skipped: Callable[[int], None],
) -> Asked:
    """Have a model continue the inputs of a task at each cut; stored responses are not asked for again.

    Args:
        lm: the wrapped model, its store open.
        task: its name, which with document and prompt identifies a stored response.
        documents: with their input texts.
        tokenizer: the model's.
        fixed: generation settings beside the number of tokens.
        skipped: called with the number of requests that an input too short saves.
    """
    cuts: list[list[Completion]] = []
    requests: dict[int, list[Instance]] = defaultdict(list)
    for index, document in enumerate(documents):
        cuts.append(completions(document.input, tokenizer))
        if not cuts[-1]:
            skipped(len(CUTS))
        for completion in cuts[-1]:
            requests[completion.n_tokens].append(_request(task, index, document, completion, fixed))
    matches = [0] * len(documents)
    # one call per number of tokens: the store tells the responses of a call apart by their prompts
    for group in requests.values():
        for request, response in zip(group, lm.generate_until(group), strict=True):
            matches[request.idx] += is_match(request.doc["expected"], response)
    verdicts = [
        Verdict(str(document["id"]), count if found else None)
        for document, count, found in zip(documents, matches, cuts, strict=True)
    ]
    return Asked(verdicts, sum(completion.moved for found in cuts for completion in found))


def _request(
    task: str, index: int, document: Document, completion: Completion, fixed: dict[str, Any]
) -> Instance:
    settings = {**fixed, "until": [], "max_gen_toks": completion.n_tokens}
    return Instance(
        request_type="generate_until",
        doc={"id": f"{document['id']} cut {completion.cut}", "expected": completion.expected},
        arguments=(completion.prefix, settings),
        idx=index,
        metadata=(task, index, 1),
    )
