"""Samples files, which a run and plain `lm_eval --log_samples` write alike."""

from __future__ import annotations

import ast
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_lines

if TYPE_CHECKING:
    from medtasks_ext.runs.records import Sample

#: What mends the samples file of a run.
RESCORE = "`medtasks rescore RUN` writes the file again from the stored responses"


def samples_beside(results: Path, task: str) -> Path:
    """The samples of a task that lm-eval's names put beside a results file."""
    return results.with_name(results.name.replace("results_", f"samples_{task}_", 1)).with_suffix(".jsonl")


def task_of_samples(file: Path) -> str:
    """Whose samples a file of lm-eval's holds, by its name."""
    return file.stem.removeprefix("samples_").rpartition("_")[0]


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """As lm-eval writes them (`EvaluationTracker.save_results_samples`), whole or not at all."""
    write_lines(path, map(_as_written, samples))


def _as_written(sample: Sample) -> Mapping[str, Any]:
    from medtasks_ext.harness import sanitize_list

    arguments = {
        f"gen_args_{number}": {f"arg_{place}": part for place, part in enumerate(request)}
        for number, request in enumerate(sample["arguments"])
    }
    texts = {name: sanitize_list(sample[name]) for name in ("resps", "filtered_resps")}
    return {**sample, **texts, "arguments": arguments, "target": str(sample["target"])}


def read_samples(path: Path, first: int | None = None, *, remedy: str = RESCORE) -> list[Sample]:
    """All, or so many of its first; a damaged line is named."""
    return list(islice(iter_samples(path, remedy=remedy), first))


def iter_samples(path: Path, *, remedy: str = RESCORE) -> Iterator[Sample]:
    check_regular(path)
    try:
        with path.open("rb") as lines:  # bytes: a text may hold other line separators than \n
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _sample(line, number, path, remedy)
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy=remedy) from None


def parsed_of(sample: Sample) -> Mapping[str, Any]:
    """What the answer format read of a response (`answers.parsed.Parsed`); empty where nobody kept it.

    A file holds it as Python writes it, and not as JSON.
    """
    parsed: Any = sample["filtered_resps"][0] if sample["filtered_resps"] else {}
    if isinstance(parsed, str):
        try:
            parsed = ast.literal_eval(parsed)
        except (ValueError, SyntaxError, MemoryError, RecursionError):  # such as `nan`
            parsed = {"valid": bool(sample["valid"])} if "valid" in sample else {}
    return parsed if isinstance(parsed, dict) else {}


def request_of(sample: Sample) -> tuple[Any, Mapping[str, Any]]:
    arguments = sample["arguments"]  # a file has names in place of the lists that lm-eval hands over
    prompt, *more = arguments[0] if isinstance(arguments, list) else arguments["gen_args_0"].values()
    return prompt, more[0] if more and isinstance(more[0], dict) else {}


def options_of(sample: Mapping[str, Any]) -> tuple[str, ...]:
    """None where the model wrote its answer."""
    seconds = (pair["arg_1"] for pair in sample["arguments"].values())
    return tuple(second for second in seconds if isinstance(second, str))


def turns_of(prompt: Any) -> list[tuple[str, str]]:
    """Role and text of each turn of a recorded prompt; that of one text is `text`."""
    given: Any = prompt[0] if isinstance(prompt, list) and prompt and isinstance(prompt[0], str) else prompt
    if isinstance(given, str):
        try:
            said = json.loads(given) if given.startswith("[{") else None
        except ValueError:
            said = None
        given = said if _is_conversation(said) else given
    if _is_conversation(given):
        return [(str(turn["role"]), str(turn["content"])) for turn in given]
    return [("text", str(given))]


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(turn, dict) and {"role", "content"} <= turn.keys() for turn in value
    )


def _read(line: bytes) -> Any:
    try:
        return from_json(line)  # in half the time
    except ValueError:  # what it refuses, such as half of a surrogate pair, may be sound
        return json.loads(line)


def _sample(line: bytes, number: int, path: Path, remedy: str) -> Sample:
    try:
        sample: Sample = _read(line)
        sound = isinstance(sample["doc"], dict) and isinstance(sample["doc_id"], int)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise MedtasksError(f"line {number} is damaged or cut short", where=path, remedy=remedy)
    return sample


class SampleFile:
    """A samples file that is read as far as it is needed, and of which any record can be read again.

    A damaged line keeps its place, so that one bad line hides no other document.
    """

    def __init__(self, path: Path, *, remedy: str = RESCORE) -> None:
        self.path, self._remedy = path, remedy
        self._begins = array("Q")  # place of each record's line in the file, in bytes
        self._end = 0  # of what was read

    def __len__(self) -> int:
        return len(self._begins)

    def further(self) -> Iterator[Sample | None]:
        """From where the last call ended; None for a damaged line."""
        check_regular(self.path)
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            raise MedtasksError("no such file", where=self.path, remedy=self._remedy) from None
        with file:
            file.seek(self._end)
            for line in file:
                begin, self._end = self._end, self._end + len(line)
                if line.strip():
                    self._begins.append(begin)
                    try:
                        sample = _sample(line, len(self._begins), self.path, self._remedy)
                    except MedtasksError:
                        yield None
                    else:
                        yield sample

    def holding(self, words: str) -> Iterator[int]:
        """Places of records read before whose lines hold a text, folded as by `str.casefold`."""
        forms = {json.dumps(words, ensure_ascii=asks)[1:-1].casefold() for asks in (True, False)}
        with self.path.open("rb") as file:
            for place, begin in enumerate(self._begins):
                file.seek(begin)
                line = file.readline().decode(errors="replace").casefold()
                if any(form in line for form in forms):
                    yield place

    def record(self, place: int) -> Sample:
        try:
            with self.path.open("rb") as file:
                file.seek(self._begins[place])
                line = file.readline()
        except FileNotFoundError:
            raise MedtasksError("no such file", where=self.path, remedy=self._remedy) from None
        return _sample(line, place + 1, self.path, self._remedy)
