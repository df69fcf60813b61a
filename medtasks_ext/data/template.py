"""Templates for data that a user brings: where files go, what columns they need, one example row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.rows.spec import DatasetSpec, RowSchema, dataset_spec

_NO_MEANING = "see the prompt in the task's YAML"


@dataclass(frozen=True)
class Template:
    """What became of one dataset's folder."""

    folder: Path  # of the dataset
    written: list[Path]  # files
    kept: list[Path]  # files left alone since they hold something
    downloaded: bool  # whether the rows can be downloaded, so that none need be brought


def write_template(dataset: Dataset, root: Path) -> Template:
    """Write `README.md`, `example.jsonl` and an empty `test.jsonl` for one dataset.

    The example row is synthetic. A data file that exists is never touched. Where rows can be downloaded no
    `test.jsonl` is made: an empty one would stand in for them.

    Args:
        root: data folder; the files go to `root/SUITE/DATASET/`, where the loader looks for them.

    Raises:
        MedtasksError: the folder cannot be written.
    """
    spec = dataset_spec(dataset.blocks, where=dataset.file)
    example = _example(dataset)
    schema = _schema(spec, example)
    folder = root / dataset.metadata.suite / dataset.folder.name
    files = {
        "README.md": _readme(dataset, spec, schema, example),
        "example.jsonl": json.dumps(example, ensure_ascii=False) + "\n",
        **({} if spec.rows.download else {"test.jsonl": ""}),
    }
    written, kept = [], []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name
            if path.exists() and not content:
                kept.append(path)
                continue
            path.write_text(content, encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise MedtasksError(
            f"cannot be written ({error.strerror or error})",
            where=folder,
            remedy="choose another folder: -o DIR",
        ) from None
    return Template(folder, written, kept, spec.rows.download is not None)


def columns_of(schema: RowSchema) -> dict[str, str]:
    """Column -> what it holds."""
    if isinstance(schema.columns, dict):
        return schema.columns
    return dict.fromkeys(schema.columns, _NO_MEANING)


def _example(dataset: Dataset) -> dict[str, Any]:
    rows = read_rows(dataset.sample_file)
    first = next(row for row in rows if row.get(SPLIT_KEY) == "test")
    return {key: value for key, value in first.items() if key != SPLIT_KEY}


def _schema(spec: DatasetSpec, example: dict[str, Any]) -> RowSchema:
    for schema in spec.rows.schemas:
        if all(column in example for column in schema.columns):
            return schema
    return RowSchema(
        columns={
            "task": "official name of the task",
            "split": "`test` for rows that are scored",
            "input": "the text",
            "output": "the gold answer, written as the answer format asks",
        }
    )


def _readme(dataset: Dataset, spec: DatasetSpec, schema: RowSchema, example: dict[str, Any]) -> str:
    metadata = dataset.metadata
    lines = [
        f"# {metadata.name} ({dataset.id})",
        "",
        metadata.summary,
        "",
        f"Source: {metadata.url} ({metadata.access})",
        "",
        "Write one JSON object per line into `test.jsonl`. The columns of a row:",
        "",
        "| column | type | what it holds |",
        "| --- | --- | --- |",
        *(
            f"| `{column}` | {_type(example.get(column))} | {meaning} |"
            for column, meaning in columns_of(schema).items()
        ),
        *(
            f"| `{column}` | {_type(example.get(column))} | {meaning} (optional) |"
            for column, meaning in schema.optional.items()
        ),
        "",
        f"The gold answer is read as: `{json.dumps(spec.answer, ensure_ascii=False)}`",
        "",
        "`fewshot.jsonl`, if any, holds at least five rows of the same kind, none of them a test row;",
        "without it, five test rows are held out of the 5-shot task. A column `id` is optional.",
        "`example.jsonl` shows one invented row; it is not read.",
        "",
    ]
    return "\n".join(lines)


def _type(value: Any) -> str:
    names = {
        bool: "true or false",
        int: "integer",
        float: "number",
        list: "list",
        dict: "object",
        str: "text",
    }
    return names.get(type(value), "any")
