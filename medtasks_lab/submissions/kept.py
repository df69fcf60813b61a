"""What the check of answers found before: a leaderboard is built often, and the answers stay the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.version import __version__
from medtasks_lab.submissions.check import Answered, look_at
from medtasks_lab.submissions.examples import Example
from medtasks_lab.submissions.flags import Evidence
from medtasks_lab.submissions.record import DOCUMENTS, record_digest
from medtasks_lab.submissions.trust import Trust, Verdict

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_lab.submissions.documents import PublicScores
    from medtasks_lab.submissions.record import Place, Submission

_FOLDER = "submissions"


def answered(
    place: Place, record: Submission, documents: Mapping[str, PublicScores], tasks: Registry
) -> Answered:
    """What the answers of a submission prove; looked up where they were found good before.

    Only what was found good is kept: what could not be had may be there the next time.
    """
    file = cache_dir() / _FOLDER / f"{_key(place, record, tasks)}.json"
    if file.is_file():
        try:
            return _read(file)
        except (MedtasksError, KeyError, TypeError, ValueError):
            pass  # damaged: it is found anew
    found = look_at(place, record, documents, tasks, None)
    given = [found.verdicts[name].trust for name, item in record.tasks.items() if item.answers]
    if given and all(trust is not Trust.SELF for trust in given):
        evidence = {**asdict(found.evidence), "long": sorted(found.evidence.long)}
        write_json(
            file,
            {
                "verdicts": {name: asdict(item) for name, item in found.verdicts.items()},
                "evidence": evidence,
                "examples": [asdict(item) for item in found.examples],
            },
        )
    return found


def _read(file: Path) -> Answered:
    content = read_json(file)
    evidence = {**content["evidence"], "long": set(content["evidence"]["long"])}
    evidence["in_gold"] = tuple(evidence["in_gold"])
    verdicts = {
        name: Verdict(Trust(item["trust"]), item["why"], item["judged"], item["at_odds"])
        for name, item in content["verdicts"].items()
    }
    examples = tuple(Example(**item) for item in content["examples"])
    return Answered(verdicts, Evidence(**evidence), examples)


def _key(place: Place, record: Submission, tasks: Registry) -> str:
    """Other answers, scores, readers or prompts have another key."""
    versions = {name: asked[0].version for name in record.tasks if (asked := tasks.asked(name))}
    parts = [place.name, __version__, record_digest(record), sha256_of(place.folder / DOCUMENTS), versions]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
