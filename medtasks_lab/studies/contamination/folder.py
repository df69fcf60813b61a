"""The results of one model's probe.

DIR/contamination.json                  verdicts per document and counts per task; no text
DIR/contamination.csv                   the counts, one row per model and task
DIR/contamination_responses/TASK.jsonl  what the model wrote, appended as it comes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from medtasks_ext.atomic import write_text
from medtasks_ext.csvfile import csv_lines
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, read_json, write_json
from medtasks_ext.results.frames import table_of
from medtasks_ext.runs.manifest import Identity
from medtasks_ext.version import __version__
from medtasks_lab.studies.contamination.probe import CONTINUING

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.prompts.documents import Loaded
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_lab.studies.contamination.probe import ProbeCounts

FILE, TABLE, RESPONSES = "contamination.json", "contamination.csv", "contamination_responses"
#: 2: responses are stored as runs store them, with the model in their keys
SCHEMA = 2
RULE = CONTINUING.model_dump()


class ProbedDocument(TypedDict):
    """The verdict on a document."""

    id: str
    n_matches: int | None  # None where it is too short for a verdict
    leaked: bool | None


class ProbedTask(TypedDict):
    """The results of a task."""

    benchmark: str
    language: str
    version: str
    origin: str
    revision: str | None
    rows_hash: str
    n_documents: int
    n_too_short: int
    n_probed: int
    n_cuts_moved: int
    n_leaked: int
    share: float | None
    interval_95: tuple[float, float] | None
    documents: list[ProbedDocument]


class ProbeFolder:
    """The probe of one model; continued when the same model is probed again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content: Json = {}  # of the file: `tasks`, `name`, whose model it is

    @property
    def file(self) -> Path:
        """The results."""
        return self.folder / FILE

    @property
    def responses(self) -> Path:
        """The folder of what the model wrote."""
        return self.folder / RESPONSES

    @property
    def model(self) -> str:
        """The model's name."""
        name: str = self.content["name"]
        return name

    @property
    def tasks(self) -> dict[str, ProbedTask]:
        """Task -> its results, for finished tasks."""
        tasks: dict[str, ProbedTask] = self.content["tasks"]
        return tasks

    @property
    def is_sample(self) -> bool:
        """Whether any task was probed on synthetic rows."""
        return any(task["origin"] == "sample" for task in self.tasks.values())

    def save(self) -> None:
        """Write the results; before the first request, so that a folder knows whose responses it holds."""
        self.content["SAMPLE_DATA"] = self.is_sample
        write_json(self.file, self.content)

    @property
    def identity(self) -> Identity:
        """What says which model it is."""
        return Identity(model=self.content["identity"], settings={})

    def open(self, name: str, model: Identity) -> None:
        """Create the probe, or continue it.

        Args:
            model: what says which one it is.

        Raises:
            MedtasksError: the folder holds the probe of another model.
        """
        identity = model.model
        if self.file.is_file():
            self.load()
            if self.content["identity"] != identity:
                raise MedtasksError(
                    f"this folder holds the probe of another model: {_one_line(self.content['identity'])}, "
                    f"not {_one_line(identity)}",
                    where=self.folder,
                    remedy="another --output_path; `medtasks study contamination --table DIR DIR` compares",
                )
        else:
            self.content = {
                "schema": SCHEMA,
                "name": name,
                "identity": identity,
                "versions": {"medtasks": __version__, "lm_eval": version("lm-eval")},
                "rule": RULE,
                "tasks": {},
            }

    def load(self) -> None:
        """Read an existing probe.

        Raises:
            MedtasksError: there is none, or it was made by another rule.
        """
        self.content = read_json(self.file)
        if (self.content.get("schema"), self.content.get("rule")) != (SCHEMA, RULE):
            raise MedtasksError(
                "was written by another version", where=self.file, remedy="use another --output_path"
            )

    def is_current(self, task: str, loaded: Loaded, n_documents: int) -> bool:
        """Whether the task's verdicts are there, and are of these rows."""
        stored = self.tasks.get(task)
        return stored is not None and (stored["rows_hash"], stored["n_documents"]) == (
            loaded.record["rows_hash"],
            n_documents,
        )

    def keep(self, dataset: Dataset, loaded: Loaded, counts: ProbeCounts, n_cuts_moved: int) -> None:
        """Record a task."""
        self.tasks[dataset.id] = {
            "benchmark": dataset.metadata.suite,
            "language": dataset.metadata.language,
            "version": dataset.version,
            "origin": loaded.record["origin"],
            "revision": loaded.record.get("revision"),
            "rows_hash": loaded.record["rows_hash"],
            "n_documents": counts.n_documents,
            "n_too_short": counts.n_too_short,
            "n_probed": counts.n_probed,
            "n_cuts_moved": n_cuts_moved,
            "n_leaked": counts.n_leaked,
            "share": counts.share,
            "interval_95": counts.interval,
            "documents": [
                {"id": verdict.document, "n_matches": verdict.n_matches, "leaked": verdict.leaked}
                for verdict in counts.verdicts
            ],
        }
        self.save()

    @property
    def frame(self) -> pa.Table:
        """The frame `probes`."""
        rows = []
        for name, task in self.tasks.items():
            low, high = task["interval_95"] or (None, None)
            of = {"model": self.model, "task": name, "data": task["origin"]}
            rows.append({**task, **of, "ci95_low": low, "ci95_high": high})
        return table_of("probes", rows)


def write_probe(probe: ProbeFolder) -> None:
    """Write the table of a probe."""
    write_text(probe.folder / TABLE, "".join(csv_lines(probe.frame)))


@dataclass(frozen=True)
class Probes:
    """What models know by heart: rows of the frame `probes`, each with a mark.

    Attributes:
        tasks: of one model.
        models: of several, side by side.
    """

    tasks: Sequence[Json] = ()
    models: Sequence[Json] = ()

    @classmethod
    def of(cls, probe: ProbeFolder, tasks: Collection[str]) -> Probes:
        """Some tasks of one model."""
        rows = [row for row in probe.frame.to_pylist() if row["task"] in tasks]
        return cls(tasks=[{**row, "mark": _mark(row)} for row in rows])

    @classmethod
    def compared(cls, probes: Sequence[ProbeFolder]) -> Probes:
        """All tasks of several models."""
        named = Counter(probe.model for probe in probes)
        rows = [
            {**row, "label": probe.model + f" ({probe.folder.name})" * (named[probe.model] > 1)}
            for probe in probes
            for row in probe.frame.to_pylist()
        ]
        marks: dict[str, list[str]] = {}
        for row in rows:
            marks.setdefault(row["task"], []).append(_mark(row))
        unlike = unlike_rows(probes)
        said = {
            task: ", ".join(filter(None, (max(some), "other rows" * (task in unlike))))
            for task, some in marks.items()
        }
        return cls(models=[{**row, "mark": said[row["task"]]} for row in rows])

    @property
    def model(self) -> str:
        """The one model."""
        return str(self.tasks[0]["model"]) if self.tasks else ""

    @property
    def n_tasks(self) -> int:
        """Tasks of the one model."""
        return len(self.tasks)

    @property
    def n_tasks_leaked(self) -> int:
        """Of them, those with a leaked input."""
        return sum(row["n_leaked"] > 0 for row in self.tasks)

    @property
    def n_probed(self) -> int:
        """Inputs with a verdict."""
        return sum(row["n_probed"] for row in self.tasks)

    @property
    def n_leaked(self) -> int:
        """Leaked inputs."""
        return sum(row["n_leaked"] for row in self.tasks)


def _mark(row: Json) -> str:
    return "SAMPLE" if row["data"] == "sample" else ""


def unlike_rows(probes: Sequence[ProbeFolder]) -> list[str]:
    """Tasks of which the models saw different rows."""
    seen: dict[str, set[tuple[str, int]]] = {}
    for probe in probes:
        for name, task in probe.tasks.items():
            seen.setdefault(name, set()).add((task["rows_hash"], task["n_documents"]))
    return [name for name, rows in seen.items() if len(rows) > 1]


def _one_line(identity: Config) -> str:
    return " ".join(
        [identity["model"], ",".join(f"{key}={value}" for key, value in identity["model_args"].items())]
    ).strip()


def read_probes(folders: Iterable[Path]) -> list[ProbeFolder]:
    """The probes in folders, or in the folders directly below them.

    Raises:
        MedtasksError: a folder holds none.
    """
    probes = []
    for folder in folders:
        files = [folder / FILE] if (folder / FILE).is_file() else sorted(folder.glob(f"*/{FILE}"))
        if not files:
            raise MedtasksError(
                f"no {FILE} here or one folder below",
                where=folder,
                remedy="name folders that `medtasks study contamination` wrote",
            )
        for file in files:
            probe = ProbeFolder(file.parent)
            probe.load()
            probes.append(probe)
    return probes
