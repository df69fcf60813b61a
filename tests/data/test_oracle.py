"""The oracle's score of gold answers that repeat is the score of all of them, one by one."""

import json

import pytest

from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.data.content import oracle_of
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.registry.functions import function_named

#: Kinds of which scoring looks at the gold alone, at options, at the prompt, at the number of a trial.
DATASETS = ["bridge_mednli", "medhelm_medbullets", "bridge_cblue_cdn", "mlb_cmexam"]


def one_by_one(dataset, documents):
    process = function_named(dataset.process_results)
    read = ParseAnswer(dataset.blocks["answer"]).apply([[item["target"]] for item in documents], documents)
    return [process(item, [answer])["score"] for item, answer in zip(documents, read, strict=True)]


@pytest.mark.parametrize("name", DATASETS)
def test_documents_that_repeat_are_scored_as_each_of_them(name):
    dataset = registry().datasets[name]
    documents = check_rows(dataset, "sample").test * 3
    for place, document in enumerate(documents):  # some gold answers cannot be right any more
        if place % 5 == 0:
            document["target"] = "nothing that can be read"
    single = one_by_one(dataset, documents)
    metric = next(item for item in dataset.metric_list if item["metric"] == "score")["aggregation"]
    wanted = sum(single) / len(single) if metric == "mean" else function_named(metric)(single)
    assert oracle_of(dataset, documents).score == pytest.approx(wanted, abs=1e-12)


def test_a_label_drawn_by_id_is_drawn_for_each_document():
    """What an unreadable answer counts as depends on the id: documents alike in the rest differ in that."""
    dataset = registry().datasets["bridge_mednli"]
    first = check_rows(dataset, "sample").test[0]
    documents = []
    for number in range(40):
        document = type(first)(first, id=str(number), target="nothing that can be read")
        document.loaded = first.loaded
        documents.append(document)
    single = one_by_one(dataset, documents)
    assert len({json.dumps(score) for score in single}) > 1
    metric = next(item for item in dataset.metric_list if item["metric"] == "score")["aggregation"]
    wanted = sum(single) / len(single) if metric == "mean" else function_named(metric)(single)
    assert oracle_of(dataset, documents).score == pytest.approx(wanted, abs=1e-12)
