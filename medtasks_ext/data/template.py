"""Templates for data that a user brings: where files go, what their columns hold, two example rows."""

from __future__ import annotations

import json
from pathlib import Path

from medtasks_ext.atomic import atomic_file
from medtasks_ext.registry import Dataset
from medtasks_ext.rows.columns import Column
from medtasks_ext.rows.fields import columns_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.rows.spec import DatasetSpec, dataset_spec
from medtasks_ext.tables import table

_EXAMPLES = 2
_NO_MEANING = "see the prompt in the task's YAML"


#: Column -> its type, what it holds, whether every row has it.
_Columns = dict[str, tuple[Column, str, bool]]


def write_template(dataset: Dataset, root: Path) -> list[Path]:
    """Write `README.md` and `example.jsonl`, two synthetic rows, for one dataset; returns the files.

    Nothing is written where the loader looks for rows: the owner's own files are never touched or hidden.
    """
    spec, authors = dataset_spec(dataset), authors_of(dataset, dataset_spec(dataset).rows)
    samples = [row for row in read_rows(dataset.sample_file) if row[SPLIT_KEY] == "test"][:_EXAMPLES]
    schemas = [*spec.rows.schemas, *([authors.schema] if authors else [])]
    schema = next(schema for schema in schemas if all(column in samples[0] for column in schema.columns))
    needed, optional = columns_of(spec, schema)
    stated = schema.columns
    meanings = stated if isinstance(stated, dict) else dict.fromkeys(stated, _NO_MEANING)
    columns = {
        name: (needed.get(name) or optional[name], meaning, name in needed)
        for name, meaning in {**meanings, **schema.optional}.items()
    }
    examples = ({name: row[name] for name in columns if row.get(name) is not None} for row in samples)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in examples)
    folder = root / dataset.metadata.suite / dataset.folder.name
    files = {"README.md": _readme(dataset, spec, columns), "example.jsonl": "".join(lines)}
    for name, content in files.items():
        with atomic_file(folder / name, remedy="choose another folder: -o DIR") as file:
            file.write(content.encode())
    return [folder / name for name in files]


def _readme(dataset: Dataset, spec: DatasetSpec, columns: _Columns) -> str:
    metadata = dataset.metadata
    lines = [
        f"# {metadata.name} ({dataset.id})",
        "",
        metadata.summary,
        "",
        f"Source: {metadata.url} ({metadata.access})",
        "",
        "Write your rows into `test.jsonl`, in the form of `example.jsonl`, which holds two invented rows",
        "and is not read; or let `medtasks data import FILE --task TASK` make it of yours. The columns:",
        "",
        *table(
            ["column", "type", "what it holds"],
            (
                (f"`{name}`", column.expected, meaning + ("" if is_needed else " (optional)"))
                for name, (column, meaning, is_needed) in columns.items()
            ),
        ),
        "",
        "Tables are read, too (`test.csv`, `test.xlsx`): lists and objects stand in their cells as JSON. No",
        "cell of a column that is needed is empty.",
        "",
        f"The gold answer is read as: `{json.dumps(spec.answer, ensure_ascii=False)}`",
        "",
        "`fewshot.jsonl`, if any, holds at least five rows of the same kind, none of them a test row;",
        "without it, five test rows are held out of the 5-shot task. A column `id` is optional.",
        "",
    ]
    return "\n".join(lines)
