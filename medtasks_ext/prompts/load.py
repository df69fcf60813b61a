"""From source rows to documents, built once per process."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, cast

from medtasks_ext.egress import Text
from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import public_rows, what_happened
from medtasks_ext.process import collector_paused
from medtasks_ext.prompts.documents import Document, Documents, Loaded, LoadedRecord, digest
from medtasks_ext.prompts.official.words import Use, prompt_source_of
from medtasks_ext.prompts.pool import check_answers, parts, pool_rows, sampled, trials, with_own_ids
from medtasks_ext.prompts.render import Renderer
from medtasks_ext.registry import Dataset
from medtasks_ext.rows.fields import FieldReader, with_points
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.remote import NoUseError, first_use, remote_files
from medtasks_ext.rows.row import Faults, Origin, ReadRow, Rows
from medtasks_ext.rows.sources import find_origin, forced_origin, load_rows, missing_data
from medtasks_ext.rows.spec import DatasetSpec, dataset_spec

#: `test` and `fewshot`.
Splits: TypeAlias = dict[str, Sequence[Document]]


def _loaded(
    renderer: Renderer, rows: Rows, documents: Documents, shots: Documents, counted: dict[str, object]
) -> Loaded:
    """What results say of it; `counted`: of rows that are no documents."""
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
        "artefact": renderer.artefact[0] if renderer.artefact else None,
        "artefact_revision": renderer.artefact[1] if renderer.artefact else None,
        "recovered": list(rows.recovered) if rows.recovered else None,
        "database": database.digest if database else None,
        "n_test": len(documents),
        "n_fewshot": len(shots),
        "n_without_gold": sum(item["gold"] is None and "points" not in item for item in documents),
        **counted,
    }
    said = {name: record[name] for name in LoadedRecord.__annotations__ if record.get(name) is not None}
    return Loaded(
        cast("LoadedRecord", said),
        labels=sorted(labels),
        database_file=str(database.path) if database else None,
        shots=shots,
        text=Text(dataset.id, is_open=dataset.metadata.access == "open" or rows.origin == "sample"),
    )


def _row_text(document: Document) -> str:
    parts = [document["id"], document["prompt"], document["target"]]
    parts += [json.dumps(document[x], ensure_ascii=False) for x in ("before", "points") if x in document]
    return "\x1f".join(parts)


log = logging.getLogger(__name__)

#: Share of its suite's number of rows by which a file may differ that nobody has pinned: authors' files and
#: the papers' numbers differ by up to a seventh, cut downloads by more.
_NEAR = 0.2


def flag(value: Any, name: str) -> bool:
    if str(value).lower() not in ("true", "false", "0", "1"):
        raise MedtasksError(f"{name} is {value!r}", where="--metadata", remedy="use true or false")
    return str(value).lower() in ("true", "1")


def load_documents(
    dataset: Dataset,
    *,
    cot: bool,
    shots: int = 0,
    origin: str | None = None,
    system_role: bool = True,
    prompts: str | None = None,
    without: Collection[str] = (),
) -> Splits:
    """`test` and `fewshot` of one dataset, built once per process whatever the number of groups that name it.

    `shots` above 0: rows are held out where no pool exists. `system_role`: False puts instructions into the
    first user turn. `without`: rows that are left out, such as `test row 5`: their faults are known.
    """
    said = json.dumps([dataset.id, dataset.blocks, dataset.record], ensure_ascii=False, default=str)
    named = ("MEDTASKS_DATA_DIR", "MEDTASKS_DATA", "MEDTASKS_CACHE")
    environment, forced = tuple(os.environ.get(name, "") for name in named), forced_origin(origin)
    fetch = forced not in ("local", "sample")
    use = Use(cot, shots, system_role, prompt_source_of(prompts), frozenset(without), fetch)
    return _build(dataset, said, forced, use, environment)


#: how rows are read to be checked
_CHECK = Use(cot=False, shots=0, system_role=True, prompts="own")


@cache
def _build(
    dataset: Dataset, _said: str, forced: Origin | None, use: Use, _environment: tuple[str, ...]
) -> Splits:
    faults = Faults(check=bool(use.without))
    documents = _documents(dataset, forced, use, faults)
    if new := [item for item in faults.kept if not isinstance(item, RowError) or item.row not in use.without]:
        raise new[0]
    return documents


@dataclass
class RowCheck:
    test: Sequence[Document] = ()  # documents of the rows without faults
    fewshot: Sequence[Document] = ()  # the pool
    #: what is wrong. A fault that concerns no single row leaves no documents
    faults: list[MedtasksError] = field(default_factory=list)
    #: column -> rows in which it holds nothing, where that is allowed
    blanks: Counter[str] = field(default_factory=Counter)
    #: what is right but worth knowing of rows -> how many
    notes: Counter[str] = field(default_factory=Counter)


def check_rows(
    dataset: Dataset,
    origin: str | None = None,
    examine: Callable[[ReadRow, Document], None] | None = None,
) -> RowCheck:
    """Read all rows of a dataset as zero-shot prompts, and note what is wrong. Nothing is cached.

    `examine` sees each test row with what is asked about it.
    """
    faults = Faults(check=True, examine=examine)
    return _checked(faults, lambda: _documents(dataset, forced_origin(origin), _CHECK, faults))


def check_loaded_rows(dataset: Dataset, rows: Rows) -> RowCheck:
    """Read rows that are at hand as zero-shot prompts, as `check_rows` does."""
    faults, spec = Faults(check=True), dataset_spec(dataset)
    with collector_paused():
        return _checked(faults, lambda: _rendered(dataset, spec, rows, _CHECK, faults))


def _checked(faults: Faults, read: Callable[[], Splits]) -> RowCheck:
    try:
        splits = read()
    except NoUseError as error:
        return RowCheck(faults=[error])
    except MedtasksError as error:
        return RowCheck(faults=faults.kept or [error], blanks=faults.blanks, notes=faults.notes)
    return RowCheck(splits["test"], splits["fewshot"], faults.kept, faults.blanks, faults.notes)


def _documents(dataset: Dataset, forced: Origin | None, use: Use, faults: Faults) -> Splits:
    spec = dataset_spec(dataset)
    origin = find_origin(dataset, spec.rows, forced)
    if origin is None:
        raise missing_data(dataset, forced)
    with collector_paused(), public_rows(origin != "local"):
        try:

            def read() -> Splits:
                try:
                    return _rendered(dataset, spec, load_rows(dataset, spec.rows, origin), use, faults)
                except MedtasksError as error:  # of all rows; what is wrong with one of them says more
                    raise (faults.kept or [error])[0] from None

            files = remote_files(spec.rows) if origin == "hub" else []
            return first_use(files, read, lambda splits: _unlikely(dataset, splits["test"], faults))
        except (MedtasksError, MemoryError, OSError):
            raise
        except Exception as error:  # one dataset's rows never stop the others
            what = f"its rows cannot be used: {what_happened(error)}"
            remedy = "see them checked: medtasks data check"
            raise MedtasksError(what, where=dataset.id, remedy=remedy) from error


def _unlikely(dataset: Dataset, test: Sequence[Document], faults: Faults) -> MedtasksError | None:
    """Why rows of files that nobody has pinned are not the dataset's, as far as that can be told."""
    if faults.kept:
        return faults.kept[0]
    n, n_paper = len({item.get("item", item["id"]) for item in test}), dataset.n_part
    if abs(n + test[0].loaded.record["n_held_out"] - n_paper) <= _NEAR * n_paper:
        return None
    return MedtasksError(f"{n:,} test rows, where the suite's own test part has {n_paper:,}")


def _rendered(dataset: Dataset, spec: DatasetSpec, rows: Rows, use: Use, faults: Faults) -> Splits:
    source, authors = spec.rows, authors_of(dataset, spec.rows)
    if authors and use.shots and use.prompts != "own":
        rows = authors.with_released_examples(rows)
    theirs = authors.are_examples(rows) if authors and rows.fewshot else False
    renderer = Renderer(dataset, spec, rows, use)
    reader = FieldReader(dataset, spec, rows, faults)
    read = reader.read(rows.test, "test", use.without)
    read_pool = reader.read(pool_rows(rows.fewshot, draw=source.draw_fewshot), "few-shot", use.without)
    for split in (read.rows, read_pool.rows):
        for number, row in enumerate(split, start=1):  # before any is drawn: some official prompts print it
            row.fields.setdefault("row_number", number)
    test, pool, n_held_out, n_overlap = parts(
        read.rows, read_pool.rows, dataset, source, rows, faults, shots=use.shots, theirs=theirs
    )
    counted: dict[str, object] = {
        "rebuilt": rows.rebuilt or read.rebuilt or read_pool.rebuilt,
        "n_held_out": n_held_out,
        "n_overlap": n_overlap or None,
        "examples": {True: "authors", None: "named"}.get(theirs),
        "n_dropped": read.n_dropped + read_pool.n_dropped,
        "excluded": read.excluded or None,
        "n_source": read.n_source if read.excluded else None,
        "n_faulty": sum(name.startswith("test ") for name in use.without) or None,
        "n_alike": read.n_alike or None,
    }
    del read, read_pool
    test = sampled(test, source)
    n_own, n_paper = len(test) + n_held_out, dataset.n_part
    if rows.origin == "local" and n_own != n_paper and not faults.check:
        counts = f"{n_own:,} test rows; the suite's own test part has {n_paper:,}"
        log.warning("%s: %s", dataset.id, counts)
    test, pool = trials(test, pool, source.option_trials, faults, pinned=rows.origin == "hub")
    shots = renderer.documents(pool, faults, first=lambda index: index == 0)
    check_answers(shots, use.shots, spec, rows)
    test = with_points(with_own_ids(test, faults), spec.judge, faults, dataset.file)
    documents = renderer.documents(test, faults, first=lambda index: not use.shots)
    loaded = _loaded(renderer, rows, documents, shots, counted)
    for shot in shots:
        shot.loaded = loaded
    loaded.test = documents.at_rest(loaded)
    return {"test": loaded.test, "fewshot": shots}
