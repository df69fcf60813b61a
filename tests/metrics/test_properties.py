"""What holds for every task's filter and metrics together, whatever a model writes."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.metrics import choice, generation, labels, sets
from medtasks_ext.metrics.common import random_label
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.functions import function_named
from tests.answers import responses
from tests.conftest import ROOT
from tests.metrics.build import INVALID, columns, documents, mean, parsed

TRIALS = 3
#: gold answers of these say more than a text can: they come from the sample rows
NEED_THEIR_ROWS = {"medcalc", "panel_rating", "sql"}
UNBOUNDED = {"bleu_4", "output_words", "list_length", "mae", "kappa_linear", "kappa_quadratic"}


def one_task_per_metric_and_format() -> dict[str, Dataset]:
    tasks: dict[tuple, tuple[str, Dataset]] = {}
    for name, dataset in registry().datasets.items():
        block = dataset.blocks["answer"]
        tasks.setdefault((dataset.process_results, block["kind"]), (name, dataset))
    return dict(tasks.values())


TASKS = one_task_per_metric_and_format()


class Task:
    """Documents with random gold answers, and the way from a response to metrics."""

    def __init__(self, name: str, n: int) -> None:
        dataset, rng = TASKS[name], random.Random(name)
        self.block = dataset.blocks["answer"]
        self.process = function_named(dataset.process_results)
        self.judged = bool(dataset.blocks.get("judge"))
        self.metrics = {item["metric"]: item["aggregation"] for item in dataset.metric_list}
        self.filter = ParseAnswer(answer=self.block)
        form = answer_format(self.block)
        n_options = len(self.block.get("letters", responses.ROW["options"]))
        row = {"options": responses.ROW["options"][:n_options]}
        if self.block["kind"] in NEED_THEIR_ROWS:
            rows = load_documents(dataset, cot=False, origin="sample")["test"]
            self.documents = list(islice(cycle(rows), n))
            return
        golds = [form.read_gold(responses.gold(self.block, row, rng), row) for _ in range(n)]
        labels = {label for gold in golds for label in form.labels_of(gold)} if form.has_label_pool else ()
        self.documents = documents(golds, labels=labels, **row)
        for number, document in enumerate(self.documents):
            document.update(item=str(number // TRIALS), trial=number % TRIALS)
            if "mlb" in name:  # the trials of a question share its gold
                document["gold"] = golds[number // TRIALS * TRIALS]

    def results(self, texts: list[str]) -> list[dict[str, Any]]:
        answers = self.filter.apply([[text] for text in texts], self.documents)
        return [
            self.process(document, [answer]) for document, answer in zip(self.documents, answers, strict=True)
        ]

    def corpus(self, results: list[dict[str, Any]]) -> dict[str, float]:
        names = [name for name in self.metrics if name in results[0]]
        assert ("score" in names) is not self.judged
        columns = {name: [result[name] for result in results] for name in names}
        return {
            name: mean(values) if self.metrics[name] == "mean" else function_named(self.metrics[name])(values)
            for name, values in columns.items()
        }


FRAGMENTS = [*responses.MARKS, *responses.WORDS, *responses.TRACES, *responses.RESULTS, *responses.CHINESE]
FRAGMENTS += ["entity: ", ", type: ", ", status: ", "A", "I10", "medication: ", "]", "\ud83d", "\x00"]
#: any characters, lone surrogates included, and texts that look like answers
TEXTS = st.text(st.characters(), max_size=60) | st.lists(st.sampled_from(FRAGMENTS), max_size=15).map("".join)


@pytest.mark.parametrize("name", TASKS)
def test_no_text_makes_a_metric_fail(name):
    task = Task(name, n=1)

    @given(TEXTS)
    def is_scored(text):
        [result] = task.results([text])
        assert set(result) <= set(task.metrics)
        json.dumps(result)
        for metric, value in task.corpus([result]).items():
            assert 0 <= value <= 1 or metric in UNBOUNDED

    is_scored()


@pytest.mark.parametrize("name", TASKS)
def test_corpus_metrics_lie_within_0_and_1_and_do_not_depend_on_the_order_of_documents(name):
    task = Task(name, n=60)
    results = task.results(list(responses.many(task.block, responses.ROW, name, 60)))
    corpus = task.corpus(results)
    assert all(0 <= value <= 1 or metric in UNBOUNDED for metric, value in corpus.items())
    for seed in range(5):
        shuffled = random.Random(seed).sample(results, len(results))
        assert task.corpus(shuffled) == pytest.approx(corpus, abs=1e-12)


#: responses of one run, and which have a trace without its end. A template that opened the trace is known by
#: the end of others; a stray end in one of many makes no traces of the others.
TRACES = [
    (["<think>so", "<think>so</think>A", "A"], [1, 0, 0]),
    (["so</think>A", "so and so", "</think>A", " ", "so</think><think>so"], [0, 1, 0, 0, 1]),
    (["<think>so</think>A", "so and so", "A", " ", "<think>so"], [0, 0, 0, 0, 1]),
    (["A</think>", *["A"] * 19], [0] * 20),
    (["A</think>"] * 2 + ["A"] * 18, [0] * 2 + [1] * 18),
]


@pytest.mark.parametrize("name", TASKS)
def test_unclosed_traces_are_counted(name):
    for texts, unclosed in TRACES:
        results = Task(name, n=len(texts)).results(texts)
        assert [result["unclosed_reasoning"] for result in results] == unclosed


# What every metric shares: invalid answers, documents without gold, sample rows.


LABELS = ["a", "b", "c"]


def test_an_invalid_label_counts_as_one_drawn_uniformly_from_the_distinct_gold_labels():
    # nine in ten are "a", which does not matter
    docs = documents(["a"] * 2_700 + ["b"] * 150 + ["c"] * 150, labels=LABELS)
    got = columns(labels.process_label, docs, [INVALID] * len(docs))
    drawn = Counter(predicted for _, predicted in got["f1_macro"])
    assert set(drawn) == set(LABELS)
    assert all(900 < n < 1_100 for n in drawn.values())
    assert got["valid"] == [0] * len(docs)
    assert got["acc"] == [float(gold == predicted) for gold, predicted in got["f1_macro"]]


def test_the_draw_depends_on_the_document_alone_and_not_on_the_process():
    docs = documents(["a"] * 20, labels=[f"label {i}" for i in range(9)])
    here = [random_label(document) for document in docs]
    assert [random_label(document) for document in reversed(docs)] == here[::-1]
    code = (
        "from medtasks_ext.metrics.common import random_label\nfrom tests.metrics.build import documents\n"
        "docs = documents(['a'] * 20, labels={f'label {i}' for i in range(9)})\n"
        "print(*map(random_label, docs), sep='\\n')"
    )
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code]
        there = subprocess.run(
            run, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        )
        assert there.stdout.splitlines() == here, there.stderr


@pytest.mark.parametrize(
    ("process", "answer", "fields"),
    [
        (labels.process_label, "a", {}),
        (sets.process_codes, ["I10"], {}),
        (choice.process_choice, "A", {"options": ["yes", "no"]}),
        (generation.process_open_ended, "rest", {}),  # whose score judges give
    ],
)
def test_what_every_result_says_of_its_document(process, answer, fields):
    [document] = documents([None], labels=["a"], **fields)  # without gold there is no score
    assert process(document, [parsed(answer)]) == {"valid": 1, "unclosed_reasoning": 0, "scored": 0}
    unclosed = parsed(None, valid=False, unclosed=True)
    assert process(document, [unclosed]) == {"valid": 0, "unclosed_reasoning": 1, "scored": 0}
    [document] = documents([answer], labels=["a"], **fields)
    real = process(document, [parsed(answer)])
    document["data"] = "sample"
    assert "SAMPLE_DATA" not in real
    assert process(document, [parsed(answer)]) == {**real, "SAMPLE_DATA": 1}
    judged = process is generation.process_open_ended
    assert real["scored"] == float(not judged) and ("score" in real) is not judged
