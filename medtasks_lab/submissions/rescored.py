"""Whether the answers of a submission give its scores: rows, prompts and scores made again by the code here.

The scores come from where those of a run come from (`runner.evaluate`), with the same readers and metrics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.collector import collector_paused
from medtasks_ext.engines.records import Likelihood
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import parse_json
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.strategies import LIKELIHOOD, by_likelihood, reasons, shots_of
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.runs.choice import Choice
from medtasks_ext.runs.samples import options_of, request_of, turns_of
from medtasks_lab.submissions.answers import (
    FinalAnswer,
    answers_digest,
    final_answer,
    read_answers,
    short_hash,
    the_file,
)
from medtasks_lab.submissions.documents import public_scores
from medtasks_lab.submissions.trust import Trust, Verdict, self_reported

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.results.experiments import Experiment
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runs.conditions import Conditions
    from medtasks_ext.runs.records import Sample
    from medtasks_lab.submissions.documents import PublicScores
    from medtasks_lab.submissions.record import Submission, TaskResult

#: sums of other versions of NumPy differ in their last digits
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Rebuilt:
    """A task as it is here, and what answers to it give."""

    dataset: Dataset
    strategy: str
    samples: Sequence[Sample]  # in the order of the test file
    prompts: Mapping[str, str]  # document -> its turns as JSON, or its text

    @property
    def keys(self) -> list[str]:
        """Of the documents that were answered."""
        return [document_key(sample["doc"]) for sample in self.samples]


class OtherDocumentsError(Exception):
    """Rows, prompts or documents here are not those of a submission; in words."""


def rebuilt(name: str, record: Conditions, answers: Mapping[str, str], tasks: Registry) -> Rebuilt:
    """Build a task as a record says that it was asked, and score answers to it.

    Args:
        record: conditions of the result.
        answers: document -> answer.

    Raises:
        MedtasksError: its rows cannot be had here.
        OtherDocumentsError: they are other ones here.
    """
    from medtasks_ext.runner.evaluate import build_task, evaluate_task
    from medtasks_ext.runner.run import loaded_record

    asked = tasks.asked(name)
    assert asked is not None  # the caller looked
    dataset, strategy = asked
    built = "cot" if reasons(strategy) else "five_shot" if strategy == "five_shot" else "zero_shot"
    likely = _likelihoods(answers) if by_likelihood(strategy) else None
    built = built if likely is None else LIKELIHOOD
    shots = record.asked.shots.k or 0
    settings = _settings(record, None if shots == shots_of(built) else shots)
    task = build_task(tasks, dataset.task(built), settings)
    loaded, said = loaded_record(task), record.asked
    if said.rows.hash is not None and loaded["rows_hash"] != said.rows.hash:
        raise OtherDocumentsError(f"rows {said.rows.hash}, and those here are {loaded['rows_hash']}")
    if said.wording.hash is not None and loaded["prompt_hash"] != said.wording.hash:
        raise OtherDocumentsError(f"words {said.wording.hash}, and those here are {loaded['prompt_hash']}")
    if record.observed.n_here not in (None, len(task.eval_docs)):
        raise OtherDocumentsError(f"{record.observed.n_here:,} rows, and here are {len(task.eval_docs):,}")
    places = {document_key(row): place for place, row in enumerate(task.eval_docs)}
    if strange := [key for key in answers if key not in places]:
        raise OtherDocumentsError(f"{len(strange):,} answers are to documents that are not here")
    chosen = Choice(samples=tuple(sorted(places[key] for key in answers)))
    outcome = evaluate_task(_turns_lm(answers, likely), task, settings, chosen)
    assert outcome is not None
    samples = sorted(outcome.samples, key=lambda sample: sample["doc_id"])
    prompts = {document_key(item["doc"]): str(request_of(item)[0]) for item in samples}
    return Rebuilt(dataset, strategy, samples, prompts)


def _settings(record: Conditions, shots: int | None) -> Settings:
    """The settings by which prompts are rendered; text of the user's in the system turn is not public."""
    from medtasks_ext.runner.evaluate import Settings

    asked, layout = record.asked, record.asked.layout
    return Settings(
        num_fewshot=shots,
        apply_chat_template=bool(layout.chat_template),
        fewshot_as_multiturn=layout.shots_as_turns,
        system_role=layout.system_role is not False,
        prompts="own" if asked.wording.kind == "own" else None,
        drop_faulty=bool(record.observed.n_faulty) or None,
    )


def _said(sample: Sample) -> str:
    """The answer in a sample; of options, JSON of their log-likelihoods and whether each is greedy.

    lm-eval's own log holds numbers and truth values as texts.
    """
    if not options_of(sample):
        return str(sample["resps"][0][0])
    pairs: list[Any] = [response[0] for response in sample["resps"]]
    return json.dumps([[float(value), str(greedy) == "True"] for value, greedy in pairs])


def _likelihoods(answers: Mapping[str, str]) -> dict[str, list[Likelihood]]:
    """Document -> those of its options, as `_said` wrote them."""
    try:
        found = {
            key: [Likelihood(float(value), bool(greedy)) for value, greedy in parse_json(text, strict=True)]
            for key, text in answers.items()
        }
    except (ValueError, TypeError):
        raise OtherDocumentsError("answers that are no likelihoods of options") from None
    return found


def _turns_lm(answers: Mapping[str, str], likely: Mapping[str, Sequence[Likelihood]] | None) -> Any:
    """A model that gives these answers, and whose template writes the turns as they are."""
    from medtasks_ext.runner.stored import StoredLM

    class Turns(StoredLM):
        def apply_chat_template(
            self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
        ) -> str:
            turns = [{"role": turn["role"], "content": turn["content"]} for turn in chat_history]
            return json.dumps(turns, ensure_ascii=False)

    return Turns(answers, {}, Path("answers"), likely)


# ---------------------------------------------------------------------- what a submission carries


def answers_of(
    name: str, item: Experiment, tasks: Registry, reasoning: Mapping[str, str] | None = None
) -> list[FinalAnswer]:
    """The final answers of a result, in the order of the test file.

    Args:
        reasoning: key of a request -> what its server returned apart from the text.

    Raises:
        MedtasksError: no texts are kept, or the rows cannot be had here.
        OtherDocumentsError: they are other ones than the result's.
    """
    assert item.read_samples is not None  # the caller looked
    samples = {document_key(sample["doc"]): sample for sample in item.read_samples()}
    parts = {key: final_answer(_said(sample)) for key, sample in samples.items()}
    found = rebuilt(name, item.conditions, {key: answer for key, (answer, _) in parts.items()}, tasks)
    answers = []
    for key in found.keys:
        answer, thought = parts[key]
        thought = (reasoning or {}).get(samples[key].get("request", ""), "") + thought
        turns = found.prompts[key]
        answers.append(
            FinalAnswer(
                document=key,
                prompt=short_hash(turns),
                as_rendered=_stands_in(turns, request_of(samples[key])[0]),
                answer=answer,
                reasoning=len(thought),
                reasoning_hash=short_hash(thought) if thought else "",
            )
        )
    return answers


def _stands_in(turns: str, sent: Any) -> bool:
    """Whether the texts of turns stood in a prompt as it was recorded."""
    text = "\n".join(said for _, said in turns_of(sent))
    return all(said.strip() in text for _, said in turns_of(turns))


def why_no_answers(item: Experiment) -> str:
    """Why the answers of a result do not go into a file; empty where they do."""
    if item.dataset.metadata.access != "open":
        return "its data is not open"
    if item.read_samples is None:
        return "no answers are kept (`--log_samples`)"
    return ""


# ---------------------------------------------------------------------- the check


def check_answers(
    record: Submission,
    documents: Mapping[str, PublicScores],
    tasks: Registry,
    here: Path | None,
    watch: Callable[[str, Rebuilt], None] = lambda *_: None,
) -> dict[str, Verdict]:
    """Task -> what its answers prove; of all tasks of a record.

    Args:
        documents: task -> what its documents contributed, as submitted.
        here: the file of answers; None: it is downloaded.
        watch: told of each task whose answers fit.
    """
    verdicts = {name: self_reported(_lack(name, item, record, tasks)) for name, item in record.tasks.items()}
    if record.answers is None:
        return verdicts
    try:
        for name, answers in _once(read_answers(the_file(record.answers, here)), record):
            with collector_paused():
                verdicts[name] = _verdict(name, record.tasks[name], documents[name], answers, tasks, watch)
    except MedtasksError as error:
        why = f"its answers cannot be checked: {error.what}"
        for name, found in verdicts.items():
            if record.tasks[name].answers is not None and found.trust is Trust.SELF:
                verdicts[name] = self_reported(why)
    return verdicts


def _lack(name: str, item: TaskResult, record: Submission, tasks: Registry) -> str:
    """Why a result without checked answers has none."""
    asked = tasks.asked(name)
    if asked is not None and asked[0].metadata.access != "open":
        return "its data is not open, and no second site has confirmed it"
    if record.answers is None:
        return "the submission names no file of answers"
    return "its answers are not in the file" if item.answers else "no answers were submitted"


def _once(
    found: Iterator[tuple[str, list[FinalAnswer]]], record: Submission
) -> Iterator[tuple[str, list[FinalAnswer]]]:
    """The tasks of a file that a record has, each once.

    Raises:
        MedtasksError: a task stands there twice.
    """
    seen: set[str] = set()
    for name, answers in found:
        if name in seen:
            raise MedtasksError(f"holds {name[:80]} twice", where="answers", remedy="submit anew")
        seen.add(name)
        if name in record.tasks:
            yield name, answers


def _verdict(
    name: str,
    item: TaskResult,
    documents: PublicScores,
    answers: Sequence[FinalAnswer],
    tasks: Registry,
    watch: Callable[[str, Rebuilt], None],
) -> Verdict:
    asked = tasks.asked(name)
    if asked is None or asked[0].metadata.access != "open":
        return self_reported("no answers are checked of such a task")
    if answers_digest(answers) != item.answers:
        return self_reported("other answers than submission.json names", at_odds=True)
    given = {answer.document: answer.answer for answer in answers}
    if len(given) != len(answers) or len(given) != item.n:
        why = f"answers to {len(given):,} documents, and the record says {item.n:,}"
        return self_reported(why, at_odds=True)
    try:
        found = rebuilt(name, item.conditions, given, tasks)
    except OtherDocumentsError as error:
        return self_reported(f"other documents: {error}", at_odds=True)
    except MedtasksError as error:
        return self_reported(f"its rows cannot be had here: {error.what}")
    judged = "judge" in found.dataset.config
    if why := _other_prompts(found, answers, item) or _other_scores(found, documents, judged=judged):
        return self_reported(why, at_odds=True)
    watch(name, found)
    why = "the verdicts of judges are as submitted" if judged else ""
    return Verdict(Trust.ANSWERS, why, judged)


def _other_prompts(found: Rebuilt, answers: Sequence[FinalAnswer], item: TaskResult) -> str:
    """Why answers are not to the prompts that are rendered here; empty where they are."""
    if [answer.document for answer in answers] != found.keys:
        return "the answers stand in another order than the documents"
    other = sum(short_hash(found.prompts[answer.document]) != answer.prompt for answer in answers)
    if other:
        return f"other documents: {other:,} of {len(answers):,} prompts are others here"
    cut = item.conditions.cut
    changed = sum(not answer.as_rendered for answer in answers)
    if changed > cut.get("inputs_cut", 0) + cut.get("shots_dropped", 0):
        return f"{changed:,} prompts were sent otherwise than they are rendered here"
    return ""


def _other_scores(found: Rebuilt, documents: PublicScores, *, judged: bool) -> str:
    """Why the scores are not those of the answers; empty where they are, to the digit."""
    statistic = score_statistic(found.dataset, found.strategy)
    here = public_scores(document_scores(found.samples, statistic), is_open=True).scores
    stated = documents.scores
    pairs = {"readable shares": (stated.valid, here.valid), "unclosed": (stated.unclosed, here.unclosed)}
    if not judged:
        pairs |= {
            "documents that count": (stated.scored, here.scored),
            "scores": (stated.scores, here.scores),
            "counts": (stated.counts, here.counts),
            "units": (stated.units, here.units),
        }
    for what, (one, other) in pairs.items():
        one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
        if one.shape != other.shape:
            return f"the answers give other {what}"
        differs = ~np.isclose(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        if n := int(np.atleast_2d(differs.T).any(axis=0).sum()):
            return f"the answers give other {what} of {n:,} of {len(stated.scores):,} documents"
    return ""


def with_trust(record: Submission, verdicts: Mapping[str, Verdict]) -> Submission:
    """The record with the levels that were found."""
    tasks = {
        name: item.model_copy(update={"trust": verdicts[name].trust}) for name, item in record.tasks.items()
    }
    return record.model_copy(update={"tasks": tasks})
