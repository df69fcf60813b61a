"""The record of what was loaded for a task, which results carry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.prompts.documents import Document, Documents, Loaded, digest, document_key

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.prompts.render import Renderer
    from medtasks_ext.rows.row import Rows


@dataclass(frozen=True)
class LeftOut:
    """Rows that are not asked, by reason."""

    blank: int  # rows whose gold is blank
    excluded: dict[str, int]  # reason -> test rows that the task's file excludes
    n_source: int  # test rows before any was excluded
    faulty: int  # local test rows with faults, which the user lets go
    alike: int  # test rows of which the suite asks the last


def loaded(
    renderer: Renderer,
    rows: Rows,
    documents: Documents,
    shots: Documents,
    *,
    rebuilt: bool,
    n_held_out: int,
    left_out: LeftOut,
) -> Loaded:
    """What was loaded.

    Args:
        renderer: what rendered the documents.
        rows: where they come from.
        documents: the test documents.
        shots: the few-shot pool.
        rebuilt: test rows are not the suite's own.
        n_held_out: test rows moved to the pool.
        left_out: rows that are not asked.
    """
    dataset, spec, answers = renderer.dataset, renderer.spec, renderer.answers
    wording, strategy = renderer.wording, renderer.instructions.strategy
    none = set() if spec.prompt.messages else {"messages"}  # most tasks have no dialogue, and no word of one
    without: Any = {"answer": {"kind"}, "prompt": none}
    prompt = spec.model_dump_json(include={"prompt", "answer"}, exclude=without) + strategy
    if renderer.words:
        prompt = renderer.words.shown()
    elif wording != "own":
        prompt = rows.instruction or documents[0]["system"] or documents[0]["prompt"]
    golds = [document["gold"] for document in documents if document["gold"] is not None]
    labels = {label for gold in golds for label in answers.labels_of(gold)} if answers.has_label_pool else ()
    database = renderer.database
    record: dict[str, object] = {
        "task": dataset.id,
        "language": dataset.metadata.language,
        "origin": rows.origin,
        "where": rows.where,
        "revision": rows.revision,
        "instruction": wording,
        "prompt_hash": digest([prompt]),
        "rows_hash": digest(map(_row_text, documents)),
        "rebuilt": rebuilt,
        "names_hash": digest(map(document_key, documents)),
        "artefact": renderer.artefact[0] if renderer.artefact else None,
        "artefact_revision": renderer.artefact[1] if renderer.artefact else None,
        "recovered": list(rows.recovered) if rows.recovered else None,
        "database": database.digest if database else None,
        "n_test": len(documents),
        "n_fewshot": len(shots),
        "n_held_out": n_held_out,
        "n_without_gold": sum(item["gold"] is None and "points" not in item for item in documents),
        "n_dropped": left_out.blank,
        "excluded": left_out.excluded or None,
        "n_source": left_out.n_source if left_out.excluded else None,
        "n_faulty": left_out.faulty or None,
        "n_alike": left_out.alike or None,
    }
    said = {name: value for name, value in record.items() if value is not None}
    return Loaded(
        cast("LoadedRecord", said),
        labels=sorted(labels),
        targets=sorted({document["target"] for document in documents if document["target"]}),
        database_file=str(database.path) if database else None,
        shots=shots,
    )


def _row_text(document: Document) -> str:
    parts = [document["id"], document["prompt"], document["target"]]
    if "before" in document:
        parts.append(json.dumps(document["before"], ensure_ascii=False))
    if "points" in document:
        parts.append(json.dumps(document["points"], ensure_ascii=False))
    return "\x1f".join(parts)
