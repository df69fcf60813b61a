"""A run with a stated error as a planner of the stream: documents are asked in rounds until scores are known.

Between two rounds the engine waits for the answers under way. They are read, and a further round is drawn or
none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import atomic_file
from medtasks_ext.engines.records import Answer, Outcome, Request
from medtasks_ext.engines.stream import Settled
from medtasks_ext.privacy import public_rows
from medtasks_ext.runner.drawing import Design, Scoring
from medtasks_ext.runner.stream import RunPlanner

if TYPE_CHECKING:
    from typing import IO

    from medtasks_ext.runner.work import RunWork


class _Asking:
    """What the rounds keep of a task."""

    def __init__(self, planner: RoundsPlanner, work: RunWork, record: IO[bytes]) -> None:
        self.builder, self.record = planner.builder(work), record
        self.stored = {
            stored.key: stored.entry.text for stored in work.log.read() if isinstance(stored.entry, Answer)
        }


class RoundsPlanner(RunPlanner):
    """Asks what a design draws, round by round.

    Args:
        design: of the run, of the same tasks.
        said: called after each round.
    """

    def __init__(self, *arguments: Any, design: Design, said: Callable[[], None], **further: Any) -> None:
        super().__init__(*arguments, **further)
        self._design, self._said = design, said
        self._unread: deque[tuple[str, str, str]] = deque()  # task, document, text of an answer
        self._asking: dict[str, _Asking] = {}
        self._scoring = {name: Scoring(work.task) for name, work in self._works.items()}

    def requests(self, engine: str, rest: Callable[[], bool]) -> Generator[Request, None, None]:
        """The requests of all rounds; the tasks are closed after the last."""
        together = list(self.together())
        with ExitStack() as records:
            while (drawn := self._design.draw()) is not None:
                for works in together:
                    asked = [work for work in works if drawn.get(work.name)]
                    rounds = [(work, self._round_of(work, drawn[work.name], records)) for work in asked]
                    yield from self.merged(rounds)
                while self._waits():
                    if self.over or not rest():
                        return
                self._read()
                scored = {name: scoring.scored for name, scoring in self._scoring.items()}
                self._design.settle(scored)
                self._said()
        self._close_all()

    def _waits(self) -> bool:
        with self.lock:  # an outcome is counted and put by under it
            return any(work.under_way for work in self._works.values())

    def _round_of(
        self, work: RunWork, places: list[int], records: ExitStack
    ) -> Generator[Request, None, None]:
        already = 0
        try:
            if (asking := self._asking.get(work.name)) is None:
                record = records.enter_context(atomic_file(self._run.files.asked_file(work.name)))
                asking = self._asking[work.name] = _Asking(self, work, record)
                if work.log.unsure:
                    self._watcher.stored(work.name, 0, work.log.unsure)
            for place in places:
                asked = asking.builder.build(place)
                asking.record.write(asked.line())
                if (text := asking.stored.get(asked.key)) is not None:
                    already += 1
                    self._unread.append((work.name, asked.document, text))
                    continue
                with self.lock:
                    work.under_way += 1
                yield asking.builder.request(asked, place)
        except Exception as error:  # any fault of one task must not cost the others
            self.failed(work, error)
        self._watcher.stored(work.name, already)

    def outcome(self, request: Request, outcome: Outcome, settles: float | None) -> Settled:
        """Store what became of a request; an answer is read at the end of its round."""
        settled = super().outcome(request, outcome, settles)
        if isinstance(outcome, Answer):
            self._unread.append((request.task, request.document, outcome.text))
        return settled

    def _read(self) -> None:
        while self._unread:
            task, document, text = self._unread.popleft()
            try:
                with public_rows(self._works[task].public):
                    self._scoring[task].add(document, text)
            except Exception as error:  # any fault of one task must not cost the others
                self.failed(self._works[task], error)

    def _close_all(self) -> None:
        """Note which documents the results stand over, and have the tasks scored."""
        tasks = {name: work.task for name, work in self._works.items()}
        with self.lock:
            self._run.note_drawn(tasks, self._design.choices())
            for work in self._works.values():
                work.places = self._run.places(work.task)
                work.fed = True
                self._complete.append(work)
