"""The class of all tasks: `class: !function medtasks_ext.task.MedicalTask` in a task file.

lm-eval hands the class what a file says, includes resolved. What is said there is what is built: rows become
documents whose prompts are rendered, and the kind of answers decides how they are read and scored. A file
that includes another one and changes a part is a task of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from jinja2 import TemplateError

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.answers.formats import AnswerFormat, Lead
from medtasks_ext.egress import check_server
from medtasks_ext.errors import MedtasksError, near, without_frames
from medtasks_ext.harness import LM, ConfigurableTask, Instance, TaskConfig
from medtasks_ext.metrics import likelihood
from medtasks_ext.metrics.repeats import AGREEMENT, over_repeats
from medtasks_ext.prompts.documents import Document, Turn, as_text, document_key, own_turns, repeat_key
from medtasks_ext.prompts.fit import PromptFitter
from medtasks_ext.prompts.load import flag, load_documents
from medtasks_ext.prompts.official.words import prompt_source_of
from medtasks_ext.prompts.pool import HELD_OUT
from medtasks_ext.prompts.shots import FirstShots, after
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.functions import MARK, TASK_CLASS, function_named, unsafe_keys
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.registry.strategies import LIKELIHOOD, by_likelihood, suffix_of
from medtasks_ext.registry.tasks import ANSWER_BUDGET, BLOCKS, TASK_FILE, check_types
from medtasks_ext.rows.sources import forced_origin
from medtasks_ext.stats.statistic import mean
from medtasks_ext.stats.statistic import over_repeats as aggregation_over_repeats
from medtasks_ext.strict import Config

without_frames()
_log = logging.getLogger(__name__)
#: Keys that lm-eval does not know.
OWN_KEYS = ("dataset", "strategy", *BLOCKS, *TaskFacts.model_fields, "about")
#: Keys of lm-eval that say where rows come from. `rows` does here, and these would have no effect.
OTHER_ROWS = ("custom_dataset", "dataset_path", "dataset_name", "dataset_kwargs")
#: Shots of the prompts of each strategy; None: as many as the caller asks for, none by default.
_SHOTS = {"zero_shot": None, "cot": 0, "five_shot": HELD_OUT, LIKELIHOOD: None}
#: What all tasks share. lm-eval looks columns of the documents up. `until: []` leaves room for models that
#: reason before they answer.
_SHARED: Config = {
    "test_split": "test",
    "fewshot_split": "fewshot",
    "description": "system",
    "doc_to_text": "prompt",
    "doc_to_target": "target",
    "target_delimiter": "\n",
    "fewshot_delimiter": "\n\n",
    "output_type": "generate_until",
}
#: Metrics that the table of plain lm_eval has rows for, of tasks that are scored by their kind of answers:
#: the suite's own metric, which `score` repeats, and what must be known of it.
_IN_TABLE = ("score", "valid", "SAMPLE_DATA", AGREEMENT)
_GENERATION = {"until": [], "max_gen_toks": ANSWER_BUDGET, "do_sample": False, "temperature": 0}


class _Counted(dict[str, Any]):
    """The metrics of a document: lm-eval counts its items, and its samples get all that it holds."""

    def __init__(self, values: Mapping[str, Any], counted: Iterable[str]) -> None:
        super().__init__(values)
        self._counted = counted

    def items(self) -> Any:
        return {name: self[name] for name in self._counted if name in self}.items()


#: Keys of lm-eval that task files state, or that builds write
_STATED = ("include", "task", "tag", "class", "metadata", "generation_kwargs")


class MedicalTask(ConfigurableTask):
    #: whether all metrics are counted, as in a run of `medtasks`
    counts_all = False
    #: whether prompts are cut to what the context of the model holds that lays them out
    fits = True
    fitter: PromptFitter | None = None  # of the model that a run of `medtasks` asks, or that was last asked
    #: called with the requests of each document as they are built
    hands_over: Callable[[list[Instance]], None] | None = None
    _fitting = False  # whether a prompt is being cut

    def __init__(self, config: Config, **kwargs: Any) -> None:
        said = config.get("metadata")
        source = Path(said.get("config_source", "inline") if isinstance(said, Mapping) else "inline")
        self._check(config, source)
        #: `zero_shot`, `cot`, `five_shot`, or `likelihood`: the likeliest of the possible answers
        self.strategy: str = config.get("strategy", "zero_shot")
        self.dataset_given = _dataset(config, self.strategy, source)  # the dataset, as the task's file has it
        if not self.dataset_given.has(self.strategy):
            what = f"{self.dataset_given.id} is not asked as {self.strategy}"
            remedy = "leave `strategy` out, or name it under `strategies` as well"
            raise MedtasksError(what, where=source, remedy=remedy)
        blocks = {key: config[key] for key in OWN_KEYS if key in config and key not in TaskFacts.model_fields}
        #: with the card, so that results hold all facts
        self.own = {**blocks, "about": dict(self.dataset_given.record)}
        #: document -> what was cut of its prompt
        self.cuts: dict[str, str] = {}
        try:
            super().__init__(config=self._complete(config), **kwargs)
            _ = self.dataset  # from version 0.5 on, lm-eval loads it no sooner than it is read
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if not (theirs := [key for key in config if key not in (*_STATED, *OWN_KEYS)]):
                raise
            what = f"{', '.join(theirs)}: lm-eval cannot take what is said ({type(error).__name__})"
            raise MedtasksError(what, where=source, remedy="leave out what is not needed") from None

    @classmethod
    def of(cls, dataset: Dataset, strategy: str, metadata: Mapping[str, Any]) -> MedicalTask:
        """As lm-eval builds it from the task's file; a `class` that the file names is honoured."""
        made = _function(dataset.config.get("class", cls), dataset.file)
        if not callable(made):
            remedy = f"write `!function {TASK_CLASS}`"
            raise MedtasksError("class: no class of tasks", where=dataset.file, remedy=remedy)
        named = {"task": dataset.task(strategy), "strategy": strategy}
        said = {**(dataset.config.get("metadata") or {}), **metadata, "config_source": str(dataset.file)}
        task: MedicalTask = made(config=deepcopy({**dataset.config, **named, "metadata": said}))
        task.counts_all = True
        return task

    @staticmethod
    def _check(config: Mapping[str, Any], source: Path) -> None:
        known = {item.name for item in fields(TaskConfig)} - {*OTHER_ROWS} | {*OWN_KEYS, "class"}
        faults = list(unsafe_keys(config))
        if unknown := [key for key in config if key not in known]:
            what = f"{unknown[0]}: unknown key{near(unknown[0], known)}"
            faults.insert(0, (what, "tasks/README.md lists the keys of a task file"))
        for key in ("dataset", "prompt", "answer"):  # `rows` may follow from the suite
            if key not in config:
                faults.append((f"{key}: missing key", "state the key whole, or `include:` a file that does"))
        if "version" not in (config.get("metadata") or ()):
            faults.append(("metadata.version: missing key", "write N-X, for example 1-A"))
        if config.get("strategy", "zero_shot") not in list(_SHOTS):  # what is said may be no name
            faults.append((f"strategy is {config['strategy']!r}", f"use {', '.join(_SHOTS)}"))
        for what, remedy in faults[:1]:
            raise MedtasksError(what, where=source, remedy=remedy)

    @cached_property
    def _answers(self) -> AnswerFormat:
        return answer_format(self.dataset_given.blocks["answer"], where=self.dataset_given.file)

    def _complete(self, config: Mapping[str, Any]) -> Config:
        """What lm-eval's own class takes: what the file says, and what follows from that."""
        said = {key: value for key, value in config.items() if key not in (*OWN_KEYS, "class")}
        dataset = self.dataset_given
        if by_likelihood(self.strategy):
            return self._by_likelihood(said)
        check_types({"generation_kwargs": said.get("generation_kwargs")}, where=dataset.file)  # it is merged
        file, read = dataset.file, {"function": ParseAnswer, "answer": dataset.blocks["answer"]}
        metrics = said.get("metric_list", dataset.metric_list)
        return {
            **_SHARED,
            "fewshot_config": {"sampler": FirstShots},
            "num_fewshot": _SHOTS[self.strategy],
            "filter_list": [{"name": "answer", "filter": [read]}],
            **said,
            "process_results": _function(said.get("process_results", dataset.process_results), file),
            "metric_list": [{key: _function(of, file) for key, of in metric.items()} for metric in metrics],
            "generation_kwargs": {**_GENERATION, **(said.get("generation_kwargs") or {})},
            "metadata": dict(said["metadata"]),
        }

    def _by_likelihood(self, said: Config) -> Config:
        """What lm-eval's own class takes to ask for the likelihood of each possible answer."""
        dataset, answers = self.dataset_given, self._answers
        if not dataset.is_closed:
            what = f"its answers ({answers.kind}) cannot be listed: likelihood chooses among possible answers"
            remedy = f"ask for a text: {dataset.id}"
            raise MedtasksError(what, where=dataset.file, remedy=remedy)
        generates = ("metric_list", "filter_list", "generation_kwargs", "process_results", "repeats")
        lead, written = self._lead()
        before = ("\n" if written else f"\n{''.join(lead)}") if lead.text else lead.delimiter
        # examples have answers as they are written, also where several are right
        shots = {"doc_to_target": "target", "gen_prefix": "", "target_delimiter": before}
        return {
            **_SHARED,
            "fewshot_config": {"sampler": FirstShots, **shots},
            "num_fewshot": _SHOTS[self.strategy],
            **{key: value for key, value in said.items() if key not in generates},
            "output_type": "multiple_choice",
            "gen_prefix": lead.text or None,
            "target_delimiter": lead.delimiter,
            "doc_to_choice": answers.possible,
            "doc_to_target": self._right_answer,
            "process_results": self._likelihoods,
            "metric_list": [dict(metric) for metric in likelihood.METRICS],
            "filter_list": [{"name": "answer", "filter": [{"function": "take_first"}]}],
            "metadata": dict(said["metadata"]),
        }

    def _lead(self) -> tuple[Lead, bool]:
        """What stands before an answer, and whether examples are written with it.

        Where neither the form of the answer nor a `cue` ends the prompt, it is what the written answer begins
        with (`Answer:`), or `Output:` of BRIDGE's frame.
        """
        prompt, lead = self.own["prompt"], self._answers.lead
        if lead.text or prompt.get("cue"):
            return lead, True
        begins = str(prompt.get("target") or "").partition("{")[0].strip()
        return (Lead(begins), True) if begins.endswith((":", "：")) else (Lead("Output:"), False)

    def _right_answer(self, document: Mapping[str, Any]) -> int | str:
        """The place of the gold answer among the possible ones.

        An empty text where there is none, or where several are right: such a document has no score.
        """
        answers, gold = self._answers, document["gold"]
        before = "".join(answers.lead) if answers.lead.text else ""
        for place, option in enumerate(answers.possible(document) or ()):
            if gold is not None and answers.read_gold(before + option, document) == gold:
                return place
        return ""

    def _likelihoods(self, document: Document, results: Any) -> Any:
        right, options = self._right_answer(document), self._answers.possible(document) or ()
        gold = right if isinstance(right, int) else None
        return likelihood.process_results(document, results, options, gold)

    def process_results(self, doc: Document, results: Any) -> Any:
        """The metrics of a document; plain lm_eval counts some, and its samples hold the others."""
        process, readings = super().process_results, results[0] if results else None
        all_counted = self.counts_all or self.dataset_given.config.get("process_results")
        if isinstance(readings, list):
            each = [process(doc, [one]) for one in readings]
            values = over_repeats(each, readings, super().aggregation())
            return _Counted(values, [*values][:-1] if all_counted else _IN_TABLE)
        values = process(doc, results)
        return values if all_counted else _Counted(values, _IN_TABLE)

    def aggregation(self) -> dict[str, Any]:
        """Over the repeats of documents, where these are asked several times."""
        found: dict[str, Any] = super().aggregation()
        if self.repeats == 1:
            return found
        each = {name: aggregation_over_repeats(of, self.repeats) for name, of in found.items()}
        return {**each, AGREEMENT: mean}

    @property
    def repeats(self) -> int:
        """How often a document is asked; for likelihoods once, since they do not vary."""
        return 1 if by_likelihood(self.strategy) else int(self.config.repeats or 1)

    def names_of(self, place: int) -> list[str]:
        """Of the requests about the document at a place of the test file: one for each repeat."""
        document = document_key(self.eval_docs[place])
        return [repeat_key(document, draw) for draw in range(self.repeats)]

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """`repeats` may stand among settings of generation: lm-eval 0.4 has no other option for it."""
        if key == "generation_kwargs" and "repeats" in value:
            value = dict(value)
            super().set_config("repeats", value.pop("repeats"))
        super().set_config(key, value, update=update)

    def check_repeats(self) -> None:
        """Refuse to ask several times for the likeliest answer, which is one."""
        n, settings = self.config.repeats, self.config.generation_kwargs or {}
        if not isinstance(n, int) or n < 1:
            raise MedtasksError(f"repeats is {n!r}", where="repeats", remedy="write a whole number from 1 on")
        if self.repeats > 1 and not float(settings.get("temperature") or 0):
            what = f"a document would be asked {n} times for its likeliest answer, which is one"
            remedy = f"set a temperature: --gen_kwargs repeats={n},temperature=0.7; or leave repeats out"
            raise MedtasksError(what, where="repeats", remedy=remedy)
        if self.repeats > 1:
            settings["do_sample"] = True  # lm-eval's engines else take the likeliest answer

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """lm-eval calls this once, as the task is built."""
        from medtasks_ext.data.check import faulty_rows  # here, since few runs need the checks
        from medtasks_ext.data.rowlock import local_rows

        metadata, shots = self.config.metadata, self.config.num_fewshot
        origin = forced_origin(metadata.get("data"))
        drops = flag(metadata.get("drop_faulty", False), "drop_faulty")
        cot, shots = self.strategy == "cot", int(metadata.get("shots", 0) if shots is None else shots)
        self.dataset = load_documents(
            self.dataset_given,
            cot=cot,
            shots=shots,
            origin=origin,
            system_role=flag(metadata.get("system_role", True), "system_role"),
            prompts=prompt_source_of(metadata.pop("prompts", None)),  # what came of it is in the record
            without=faulty_rows(self.dataset_given, origin) if drops else (),
        )
        _ = self.dataset_given.metadata  # checks what the file says, also where its rows are known already
        loaded = self.dataset["test"][0].loaded
        record = loaded.record
        check_server(metadata, loaded.text)
        if record["origin"] == "local":
            as_checked = not (cot or shots or drops)  # the rows of a check, in other words at most
            folded, differs = local_rows(self.dataset_given, self.dataset["test"] if as_checked else None)
            record |= {"folded": folded} if folded else {}
            record |= {"differs": True} if differs else {}
        # nested, so the record survives a model argument of the same name
        metadata["medtasks"] = {"loaded": record}

    def build_all_requests(self, *, cache_requests: bool = False, **kwargs: Any) -> None:
        """A cache of requests is refused."""
        if cache_requests:
            what = "lm-eval's cache does not tell rows, wording and decoding apart"
            where, remedy = f"--cache_requests, {self.config.task}", "leave the flag out"
            raise MedtasksError(what, where=where, remedy=remedy)
        self.check_repeats()
        super().build_all_requests(**kwargs)

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int, *args: Any, **kwargs: Any) -> Any:
        """The prompt of a document.

        As much of it as fits the context of the model whose chat template lays it out; of another one lm-eval
        says nothing here, and cuts the left end itself.

        lm-eval joins turns without a separator where no chat template is applied: a blank line then follows
        the instruction. `metadata.layout` of a model's configuration lays the turns out in its place.
        """
        model = getattr(kwargs.get("chat_template"), "__self__", None)
        lays_out = self.fits and kwargs.get("apply_chat_template") and isinstance(model, LM)
        if lays_out and (self.fitter is None or self.fitter.lm is not model):
            self.fitter = PromptFitter(model)
        if self.fitter is not None and not self._fitting:
            return self._fitted(self.fitter, cast("Document", doc), num_fewshot, args, kwargs)
        if (layout := self.config.metadata.get("layout")) and not kwargs.get("apply_chat_template"):
            template = layout_template(layout)
            kwargs |= {"apply_chat_template": True, "fewshot_as_multiturn": True, "chat_template": template}
        if self.own["prompt"].get("messages"):
            return self._dialogue(cast("Document", doc), num_fewshot, **kwargs)
        if doc["system"] and not kwargs.get("apply_chat_template"):
            doc = Document(doc, system=f"{doc['system']}\n\n")
        if num_fewshot:
            doc = cast("dict[str, Any]", after(doc, self.sampler.df[:num_fewshot]))
        return super().fewshot_context(doc, num_fewshot, *args, **kwargs)

    def _fitted(
        self, fitter: PromptFitter, document: Document, shots: int, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        if by_likelihood(self.strategy):
            room = fitter.longest(self.doc_to_choice(document)) + 1
        else:
            room = int((self.config.generation_kwargs or {}).get("max_gen_toks") or 0)
        self._fitting = True
        try:
            prompt, cut = fitter.fitted(
                document, shots, room, lambda item, n: self.fewshot_context(item, n, *args, **kwargs)
            )
        finally:
            self._fitting = False
        if cut:
            self.cuts[document_key(document)] = cut
        if cut and self.fits and not fitter.has_cut:
            fitter.has_cut = True
            _log.warning("%s: prompts that do not fit the context lose examples, then input", self.task_name)
        return prompt

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> Any:
        made = super().construct_requests(doc, ctx, **kwargs)
        if self.hands_over is not None:
            self.hands_over(made if isinstance(made, list) else [made])
        return made

    def build_qa_turn(self, *, gen_prefix: str | None = None, tgt_delim: str = " ", **turn: Any) -> Any:
        if gen_prefix and by_likelihood(self.strategy):
            tgt_delim = "\n"
        turns = super().build_qa_turn(gen_prefix=gen_prefix, tgt_delim=tgt_delim, **turn)
        # an example with an empty answer
        if turn.get("a") == "" and turn.get("few_delim") and len(turns) == 1:
            turns = [
                replace(turns[0], _delimiter=tgt_delim),
                replace(turns[0], role="assistant", content="", _delimiter=turn["few_delim"]),
            ]
        return turns

    def _dialogue(
        self,
        document: Document,
        num_fewshot: int,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        chat_template: Callable[..., Any] | None = None,
        gen_prefix: str | None = None,
        **_: object,
    ) -> Any:
        """They stay turns, also where shots else are text."""
        system = "\n\n".join(filter(None, (system_instruction, document["system"])))
        turns: list[Turn] = [{"role": "system", "content": system}] if system else []
        for shot in self.sampler.sample(num_fewshot, eval_doc=document) if num_fewshot else ():
            turns += own_turns(shot)
            turns.append({"role": "assistant", "content": shot["target"]})
        turns += own_turns(document)
        if not apply_chat_template or chat_template is None:
            return as_text(turns) + (f"\n{gen_prefix}" if gen_prefix else "")
        try:
            asked = chat_template(turns, add_generation_prompt=True)
        except TemplateError as error:
            # a template may say any part of them
            quotes = any(turn["content"] in str(error) for turn in turns)
            what = f"the chat template refuses the turns of {document.row}{'' if quotes else f': {error}'}"
            remedy = "choose a template that takes such roles, or lay turns out as text (metadata.layout)"
            raise MedtasksError(what, where=self.config.task, remedy=remedy) from None
        # an interface of chats takes the turns themselves, behind which nothing can stand
        return asked + gen_prefix if gen_prefix and isinstance(asked, str) else asked

    def dump_config(self) -> Config:
        return {**super().dump_config(), **self.own}


def _function(value: Any, where: Path) -> Any:
    return function_named(value, where=where) if isinstance(value, str) and value.startswith(MARK) else value


def _dataset(config: Mapping[str, Any], strategy: str, source: Path) -> Dataset:
    """The dataset that a file names by `dataset: SUITE/NAME`, with what the file says of it."""
    named = str(config["dataset"])
    folder, beside = registry().root / named, source.parent
    if not (folder / TASK_FILE).is_file() and (known := registry().dataset(named)):
        folder = known.folder  # the others are read for an own task alone
    # files that are built for lm-eval stand in folders of that name, too, without what belongs to the dataset
    if Dataset(beside).key == named and ((beside / "sample.jsonl").is_file() or not folder.is_dir()):
        folder = beside
    if not (folder / TASK_FILE).is_file():
        raise MedtasksError(
            f"dataset: there is no {named!r}",
            where=source,
            remedy=f"name a folder below {registry().root} that has a {TASK_FILE}: SUITE/NAME;"
            " MEDTASKS_TASKS names folders of tasks of your own",
        )
    task = str(config["task"]).removesuffix(suffix_of(strategy))
    return Dataset(folder, {**config, "task": task}, None if source.name == "inline" else source)
