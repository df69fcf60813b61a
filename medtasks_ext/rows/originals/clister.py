"""CLISTER as its copy on the hub has it: pairs of sentence ids with a score, and the sentences by id."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.originals.readers import Record
from medtasks_ext.rows.originals.tree import UNCHANGED, SourceFile, only


def rows(files: list[SourceFile]) -> Iterator[Record]:
    """The pairs of one part: `first`, `second` and `score`, from 0 to 5 in quarters."""
    pairs, names = only(files, "*.csv"), only(files, "id_to_sentence_*.json")
    sentences = json.loads(names.text("utf-8"))
    reader = csv.DictReader(io.StringIO(pairs.text(), newline=""), delimiter="\t")
    for number, row in enumerate(reader, start=1):
        # an id has the number of the sentence in its text behind the id of the text's passage
        ids = ["_".join(str(row.get(column)).split("_")[:2]) for column in ("id_1", "id_2")]
        if not all(name in sentences for name in ids) or not row.get("sim"):
            what = f"pair {number} has no score, or a sentence that {names.name} does not have"
            raise MedtasksError(what, where=pairs.where, remedy=UNCHANGED)
        fields = {
            "id": str(number), "first": sentences[ids[0]], "second": sentences[ids[1]], "score": row["sim"]
        }  # fmt: skip
        yield Record(fields, pairs.where)
