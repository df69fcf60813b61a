"""A jury's requests as batch files, and the results taken back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.engines.batch import CHAT, BatchFiles, Became, Intake, Written
from medtasks_ext.engines.faults import Asked
from medtasks_ext.engines.records import Answer, Outcome
from medtasks_ext.judge.engine import chat_body

if TYPE_CHECKING:
    from medtasks_ext.judge.asks import Ask
    from medtasks_ext.judge.jury import Judge
    from medtasks_ext.judge.planner import JuryPlanner


@dataclass(frozen=True)
class JudgeFiles:
    """The requests to one judge."""

    judge: Judge
    files: list[Written]


def by_key(asks: Iterable[Ask]) -> dict[str, list[Ask]]:
    """Key -> the requests under it: one for each run that has the same answer to the same document."""
    found: dict[str, list[Ask]] = {}
    for ask in asks:
        found.setdefault(ask.key, []).append(ask)
    return found


def write_requests(judges: Iterable[Judge], asks: Iterable[Ask], path: Path) -> list[JudgeFiles]:
    """Write requests, to files for each judge, since providers take one model a file.

    A request that was refused in an earlier batch is written without the schema of a verdict, which some
    models do not take.

    Args:
        judges: in the order of the jury.
        path: FILE; those of a judge are FILE-JUDGE.

    Raises:
        MedtasksError: the disk takes no more.
    """
    found, pending = [], by_key(asks)
    for judge in judges:
        with BatchFiles(path.with_name(f"{path.stem}-{judge.name}{path.suffix}")) as files:
            for key, same in pending.items():
                if same[0].request.judge == judge.name:
                    files.add(CHAT.line(key, _body(judge, same)))
        if files.written:
            found.append(JudgeFiles(judge, files.written))
    return found


def _body(judge: Judge, same: list[Ask]) -> dict[str, object]:
    rubric = same[0].rubric
    refused = any(ask.key in ask.store.refused for ask in same)
    messages = rubric.messages(same[0].request.texts)
    return chat_body(judge, messages, None if refused else rubric.schema)


class JudgeIntake(Intake):
    """Stores results of batches as judgements and failures."""

    def __init__(self, engine: JuryPlanner) -> None:
        super().__init__(CHAT, "these runs under this jury")
        self._engine = engine
        self._pending = by_key(engine.pending())
        self._judges = {judge.name: judge for judge in engine.jury.models}

    def knows(self, key: str) -> bool:
        """Whether it is a request of these runs."""
        return key in self._pending or any(key in run.store.by_key for run in self._engine.runs)

    def waits(self, key: str) -> bool:
        """Whether it has no verdict yet."""
        return any(ask.key not in ask.store.by_key for ask in self._pending.get(key, ()))

    def about(self, key: str) -> tuple[Asked, bool]:
        """How messages name judge and server; they quote it where texts may be quoted."""
        same = self._pending[key]
        judge = self._judges[same[0].request.judge]
        named = f"the key in {judge.api_key_env}" if judge.api_key_env else "a request without a key"
        return Asked(judge.base_url, judge.model, named), all(ask.quotable for ask in same)

    def store(self, key: str, outcome: Outcome) -> Became:
        """Record it in every run that has the answer which was judged."""
        same = [ask for ask in self._pending[key] if ask.key not in ask.store.by_key]
        known = same[0].store
        if isinstance(outcome, Answer):
            before = outcome.request_id in known.read_before
        else:
            before = known.failed.get(key) == outcome.reason
        if before:
            return Became.STORED_BEFORE
        read = [self._engine.take(ask, outcome, charged=ask is same[0]) for ask in same]
        return Became.ANSWER if all(read) else Became.FAULT
