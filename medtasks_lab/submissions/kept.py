"""What the check of answers found before: a leaderboard is built often, and the answers stay the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.version import __version__
from medtasks_lab.submissions.check import Answered, look_at
from medtasks_lab.submissions.record import DOCUMENTS, record_digest
from medtasks_lab.submissions.trust import Trust

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_lab.submissions.documents import PublicScores
    from medtasks_lab.submissions.record import Place, Submission

_FOLDER = "submissions"
_ANSWERED = TypeAdapter(Answered)


def answered(
    place: Place, record: Submission, documents: Mapping[str, PublicScores], tasks: Registry
) -> Answered:
    """What the answers of a submission prove; looked up where they were found good before.

    Only what was found good is kept: what could not be had may be there the next time.
    """
    file = cache_dir() / _FOLDER / f"{_key(place, record, tasks)}.json"
    if file.is_file():
        try:
            return _ANSWERED.validate_python(read_json(file))
        except (MedtasksError, ValueError):
            pass  # damaged: it is found anew
    found = look_at(place, record, documents, tasks, None)
    given = [found.verdicts[name].trust for name, item in record.tasks.items() if item.answers]
    if given and all(trust is not Trust.SELF for trust in given):
        write_json(file, _ANSWERED.dump_python(found, mode="json"))
    return found


def _key(place: Place, record: Submission, tasks: Registry) -> str:
    """Other answers, scores, readers or prompts have another key."""
    versions = {name: asked[0].version for name in record.tasks if (asked := tasks.asked(name))}
    parts = [place.name, __version__, record_digest(record), sha256_of(place.folder / DOCUMENTS), versions]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
