"""What the files of a run hold, which plain `lm_eval --log_samples` writes alike: samples, and results.

A run adds one key to the results, `medtasks`: what it knows of each task besides (`tasks`), conditions of
tasks that are asked and not yet scored among it, and the scores of groups (`groups`).
"""

from __future__ import annotations

import ast
import json
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict, cast

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, parse_json, read_json, write_lines
from medtasks_ext.prompts.documents import document_key, repeat_key
from medtasks_ext.registry.build import group_config

if TYPE_CHECKING:
    from collections.abc import Collection

    from medtasks_ext.harness import Group
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.registry import Registry
    from medtasks_ext.runs.manifest import Manifest
    from medtasks_ext.stats.bootstrap import IntervalRecord
    from medtasks_ext.strict import Config


class Sample(TypedDict, total=False):
    """lm-eval's record of one document. The metrics of the document stand beside these keys, by name."""

    doc_id: int  # place of the document in the task
    doc: dict[str, Any]  # as it was asked (`prompts.documents.Document`)
    target: str
    #: prompt and generation settings of each request, by the names `gen_args_N` and `arg_N` in a file; a
    #: conversation is JSON in a list
    arguments: Any
    resps: list[list[str]]  # the responses to each request
    filtered_resps: list[Any]  # each as the answer format reads it (`parsed_of`)
    request: str  # key of its outcome
    valid: float  # whether an answer could be read, 0 or 1
    unclosed_reasoning: float  # whether a reasoning trace never ended, 0 or 1
    score: Any  # what the document contributed to the task's score: a number, or (run, number)


class EstimateRecord(TypedDict):
    variance: float  # of its distance to the score of all documents
    degrees: float  # of freedom
    asked: int  # documents
    of: int


class TaskRecord(TypedDict, total=False):
    """The result of a task in a results file. Plain lm_eval writes the first six."""

    task: str
    version: str  # `N-X`
    n: int
    metrics: dict[str, Any]  # metric -> value, without the name of the filter
    config: Config  # lm-eval's record of the task's configuration
    loaded: LoadedRecord  # what was loaded (`prompts.documents.Loaded.record`), a part of that
    intervals: dict[str, IntervalRecord]  # metric -> its interval and how that was taken
    conditions: dict[str, Any]  # under which it came about (`runs.conditions`)
    cut: dict[str, int]  # kind of cut -> prompts that did not fit
    tokens: dict[str, int] | None
    #: what perfect answers to these documents score by the suite's reading; None: 1, or not known
    highest: float | None
    chance: float | None  # what guessing scores; None where questions do not list their answers
    estimate: EstimateRecord  # of drawn documents, how near the score is to that of all
    #: how answers begin that hold reasoning in a form that no rule knows -> how many do
    unknown_traces: dict[str, int]
    judged_metrics: list[str]  # metrics that judges gave, which a new scoring takes out


def note_of_traces(records: Collection[Mapping[str, Any]]) -> str:
    """What share of the answers begin with reasoning that is not taken off; empty where none does."""
    begins = sum((Counter(record.get("unknown_traces")) for record in records), Counter[str]())
    if not begins:
        return ""
    share = begins.total() / sum(record["n"] * (record["config"].get("repeats") or 1) for record in records)
    return (
        f"{share:.1%} of the answers begin with what looks like reasoning ({begins.most_common(1)[0][0]}), in"
        " marks that no rule knows, and are read and judged with it → let the server take it off (vLLM:"
        " --reasoning-parser), or enter the marks in answers/traces.yaml and run `medtasks rescore`"
    )


_OWN = "medtasks"
#: Of a record, what lm-eval's own keys hold.
_THEIRS = ("task", "version", "n", "metrics", "config", "loaded")


def read_results(path: Path) -> Json:
    """MedtasksError where it is damaged, or no results file."""
    remedy = "medtasks rescore RUN, where a run wrote it; else name a `results_….json` of `lm_eval`"
    try:
        content = read_json(path)
    except MedtasksError as error:
        raise MedtasksError(error.what, where=path, remedy=remedy) from None
    keys = ("results", "configs")
    if not (isinstance(content, dict) and all(isinstance(content.get(key), dict) for key in keys)):
        raise MedtasksError("is not a results file of lm-eval", where=path, remedy=remedy)
    return content


def names_in(content: Json) -> list[str]:
    return [name for name in content["configs"] if name in content["results"]]


def record_of(content: Json, name: str) -> TaskRecord:
    """The result of a task; MedtasksError where it is none."""
    found, config = content["results"][name], content["configs"][name]
    n = ((content.get("n-samples") or {}).get(name) or {}).get("effective", 0)
    own = ((content.get(_OWN) or {}).get("tasks") or {}).get(name) or {}
    told = isinstance(n, int) and 0 <= n < 1 << 31  # more is a number that somebody made up
    if not (told and all(isinstance(item, dict) for item in (found, config, own))):
        raise MedtasksError(f"{name} is no result of a task", remedy="medtasks rescore RUN")
    record = {
        "task": name,
        "version": str((content.get("versions") or {}).get(name, "")),
        "n": n,
        "metrics": metrics_in(found),
        "config": config,
        "loaded": ((config.get("metadata") or {}).get(_OWN) or {}).get("loaded") or {},
    }
    return cast("TaskRecord", {**record, **own})


def metrics_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """Metric -> value, of what lm-eval writes by metric and filter."""
    own = ((*key.partition(","), value) for key, value in result.items() if "_stderr" not in key)
    return {name: value for name, _, filtered, value in own if filtered == "answer"}


def results_content(
    records: Mapping[str, TaskRecord],
    asked: Mapping[str, Json],
    manifest: Manifest,
    groups: Mapping[str, Group] | None = None,
    scores: Mapping[str, Json] | None = None,
) -> Json:
    """What a results file holds. `asked`: task -> its conditions; `scores`: group -> its own score."""
    from medtasks_ext.harness import EvalAcc, aggregate_groups

    found = EvalAcc(groups=dict(groups or {}))
    own: dict[str, Any] = {name: {"conditions": conditions} for name, conditions in asked.items()}
    for name, record in records.items():
        config, n = record["config"], record["n"]
        metrics = found.metrics[name] = {"name": name, "alias": name, "sample_len": n}
        for key, value in record["metrics"].items():
            metrics |= {f"{key},answer": value, f"{key}_stderr,answer": "N/A"}
        found.configs[name] = config
        found.versions[name] = record["version"]
        found.num_fewshot[name] = config.get("num_fewshot") or 0
        better = ((item["metric"], item["higher_is_better"]) for item in config.get("metric_list") or ())
        found.higher_is_better[name] = dict(better)
        found.n_samples[name] = {"original": record["loaded"].get("n_test", n), "effective": n}
        own[name] = {key: value for key, value in record.items() if key not in _THEIRS}
    identity, settings = manifest.identity, manifest.identity.settings
    return {
        **aggregate_groups(found)._to_eval_results(),
        # what lm-eval writes of a call; the model's arguments are without secrets here
        "config": {**identity.model, **{name: settings.get(name) for name in ("gen_kwargs", "seed")}},
        "date": time.mktime(time.strptime(manifest.started, "%Y-%m-%dT%H:%M:%S")),
        "lm_eval_version": manifest.versions.get("lm_eval"),
        "transformers_version": manifest.versions.get("transformers"),
        "system_instruction": settings.get("system_instruction"),
        "fewshot_as_multiturn": settings.get("fewshot_as_multiturn"),
        "model_source": identity.model["model"],
        "model_name": identity.model_name,
        _OWN: {"tasks": own, "groups": dict(scores or {})},
    }


def groups_of(registry: Registry, names: Iterable[str]) -> dict[str, Group]:
    """lm-eval's groups of these names and those below them, as the built files have them.

    Tasks stand in them by name alone, as lm-eval counts them: whoever counts has their metrics.
    """
    from medtasks_ext.harness import Group

    class Named(Group):  # type: ignore[misc]
        def get_all_tasks(self, recursive: bool = True) -> list[Any]:
            below = (made[one.task_name].get_all_tasks() if one.task_name in made else [one] for one in self)
            return [*chain.from_iterable(below)]

    made, names = dict[str, Group](), [*names]
    for name in names:
        if name not in made and not registry.asked(name):
            config = group_config(registry, name)
            made[name] = Named.from_config(config)
            names += config["task"]
            for member in config["task"]:
                made[name].add(SimpleNamespace(task_name=member))
    return made


#: What mends the samples file of a run.
RESCORE = "`medtasks rescore RUN` writes the file again from the stored responses"


def samples_beside(results: Path, task: str) -> Path:
    """The samples of a task that lm-eval's names put beside a results file."""
    return results.with_name(results.name.replace("results_", f"samples_{task}_", 1)).with_suffix(".jsonl")


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """As lm-eval writes them (`EvaluationTracker.save_results_samples`), whole or not at all."""
    from medtasks_ext.harness import sanitize_list

    def as_written(sample: Sample) -> Mapping[str, Any]:
        arguments = {
            f"gen_args_{number}": {f"arg_{place}": part for place, part in enumerate(request)}
            for number, request in enumerate(sample["arguments"])
        }
        texts = {name: sanitize_list(sample[name]) for name in ("resps", "filtered_resps")}
        return {**sample, **texts, "arguments": arguments, "target": str(sample["target"])}

    write_lines(path, map(as_written, samples))


def read_samples(path: Path, first: int | None = None, *, remedy: str = RESCORE) -> list[Sample]:
    """All, or so many of its first; a damaged line is named."""
    return list(islice(iter_samples(path, remedy=remedy), first))


def iter_samples(path: Path, *, remedy: str = RESCORE) -> Iterator[Sample]:
    file = SampleFile(path, remedy=remedy)
    for place, sample in enumerate(file):
        yield sample or file.record(place)


def names_of(sample: Sample) -> list[str]:
    """Of the requests about a document: one for each repeat."""
    return [repeat_key(document_key(sample["doc"]), draw) for draw in range(len(sample["resps"][0]))]


def parsed_of(sample: Sample, draw: int = 0) -> Mapping[str, Any]:
    """What the answer format read of a response (`answers.parsed.Parsed`); empty where nobody kept it."""
    parsed: Any = sample["filtered_resps"][0] if sample["filtered_resps"] else {}
    if isinstance(parsed, list):
        parsed = parsed[draw]
    if isinstance(parsed, str):  # a file holds it as Python writes it
        try:
            parsed = ast.literal_eval(parsed)
        except (ValueError, SyntaxError, MemoryError, RecursionError):  # such as `nan`
            parsed = {"valid": bool(sample["valid"])} if "valid" in sample else {}
    return parsed if isinstance(parsed, dict) else {}


def request_of(sample: Sample) -> tuple[Any, Mapping[str, Any]]:
    arguments = sample["arguments"]  # a file has names in place of the lists that lm-eval hands over
    prompt, *more = arguments[0] if isinstance(arguments, list) else arguments["gen_args_0"].values()
    return prompt, more[0] if more and isinstance(more[0], dict) else {}


def turns_of(prompt: Any) -> list[tuple[str, str]]:
    """Role and text of each turn of a recorded prompt; that of one text is `text`."""
    given: Any = prompt[0] if isinstance(prompt, list) and prompt and isinstance(prompt[0], str) else prompt
    with suppress(ValueError, TypeError, KeyError):
        turns = json.loads(given) if isinstance(given, str) else given
        return [(str(turn["role"]), str(turn["content"])) for turn in turns]
    return [("text", str(given))]


def _sample(line: bytes) -> Sample | None:
    """None of a damaged line."""
    with suppress(ValueError, KeyError, TypeError):
        sample: Sample = parse_json(line)
        if isinstance(sample["doc"], dict) and isinstance(sample["doc_id"], int):
            return sample
    return None


class SampleFile:
    """A samples file, of which any record that was read can be read again.

    A damaged line keeps its place, so that one bad line hides no other document.
    """

    def __init__(self, path: Path, *, remedy: str = RESCORE) -> None:
        self.path, self._remedy = path, remedy
        self._begins = array("Q")  # place of each record's line in the file, in bytes

    def _open(self) -> BinaryIO:
        check_regular(self.path)
        try:
            return self.path.open("rb")  # bytes: a text may hold other line separators than \n
        except FileNotFoundError:
            raise MedtasksError("no such file", where=self.path, remedy=self._remedy) from None

    def __iter__(self) -> Iterator[Sample | None]:
        """All records; None for a damaged line."""
        end = 0
        with self._open() as file:
            for line in file:
                begin, end = end, end + len(line)
                if line.strip():
                    self._begins.append(begin)
                    yield _sample(line)

    def record(self, place: int) -> Sample:
        """MedtasksError of a damaged line."""
        with self._open() as file:
            file.seek(self._begins[place])
            if sample := _sample(file.readline()):
                return sample
        what = f"line {place + 1} is damaged or cut short"
        raise MedtasksError(what, where=self.path, remedy=self._remedy)
