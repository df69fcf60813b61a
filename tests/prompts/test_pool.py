"""The pool of examples of a pinned download, which nobody can mend: test rows leave it."""

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load, load_documents
from medtasks_ext.registry import Dataset
from tests.conftest import write_jsonl

REVISION = "17af9355ef89fba60de966eabaeba797c695f86e"


def row(name, question):
    options = {f"ending{place}": letter for place, letter in enumerate("abcd")}
    return {"id": name, "sent1": question, "label": 0, **options}


@pytest.fixture
def download(tmp_path, monkeypatch, tasks_of):
    """Write files of MedQA as the hub's cache holds them, dev.json with one row: questions of test and pool.

    The dataset's card says as many test rows as there are: files that nobody pinned are used only then.
    """
    medqa = tasks_of("medhelm/medqa") / "medhelm" / "medqa"
    card = (medqa / "card.yaml").read_text(encoding="utf-8")
    snapshot = tmp_path / "datasets--GBaker--MedQA-USMLE-4-options-hf" / "snapshots" / REVISION
    for place in ("huggingface_hub.constants", "huggingface_hub.file_download.constants"):
        monkeypatch.setattr(f"{place}.HF_HUB_CACHE", str(tmp_path))

    def write(test, pool):
        load._build.cache_clear()
        said = card.replace("n_test: 1000\n", f"n_test: {len(test) + 1}\n")
        assert said != card
        (medqa / "card.yaml").write_text(said, encoding="utf-8")
        write_jsonl(snapshot / "dev.json", [row("d0", "the question of dev")])
        write_jsonl(snapshot / "test.json", [row(f"t{n}", text) for n, text in enumerate(test)])
        write_jsonl(snapshot / "train.json", [row(f"p{n}", text) for n, text in enumerate(pool)])

        return medqa

    return write


def loaded(medqa, shots=5):
    found = load_documents(Dataset(medqa), cot=False, shots=shots, origin="hub")
    return {split: [document["id"] for document in found[split]] for split in ("test", "fewshot")}


TEST = [f"question {n}" for n in range(4)]
POOL = [f"example {n}" for n in range(6)]


@pytest.mark.parametrize("shown", ["question 2", "  question\n 2 ", "the question of dev"])
def test_a_row_of_the_pool_that_is_a_test_row_is_no_example(download, shown):
    """To the letter or with other white space; the test rows stay as they are."""
    assert loaded(download(TEST, [POOL[0], shown, *POOL[1:]])) == {
        "test": ["d0", "t0", "t1", "t2", "t3"],
        "fewshot": ["p0", "p2", "p3", "p4", "p5", "p6"],
    }


def test_a_pool_without_test_rows_is_kept_whole_and_in_its_order(download):
    assert loaded(download(TEST, POOL))["fewshot"] == [f"p{n}" for n in range(6)]


def test_what_left_the_pool_is_not_counted_among_its_rows(download):
    """Fewer examples than a prompt carries are left, and that is said."""
    medqa = download(TEST, [*TEST, *POOL[:4]])
    assert loaded(medqa, shots=4)["fewshot"] == ["p4", "p5", "p6", "p7"]
    with pytest.raises(MedtasksError, match="5 shots asked for, the few-shot pool has 4 rows"):
        loaded(medqa, shots=5)


LONG = "a woman of sixty has had a dry cough for three weeks"


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (LONG, f"He came in. {LONG}, and no fever."),  # a test row stands in an example
        (f"First this: {LONG}. Then that.", LONG),  # an example stands in a test row
    ],
)
def test_an_example_that_shares_a_text_with_a_test_row_leaves_the_pool(download, asked, shown):
    found = loaded(download([*TEST[1:], asked], [POOL[0], shown, *POOL[1:]]))
    assert found["fewshot"] == ["p0", "p2", "p3", "p4", "p5", "p6"] and found["test"] == [
        "d0",
        "t0",
        "t1",
        "t2",
        "t3",
    ]


def test_a_few_words_in_common_are_chance(download):
    found = loaded(download([*TEST[1:], "dry cough"], [POOL[0], f"{LONG}: dry cough", *POOL[1:]]))
    assert "p1" in found["fewshot"]


def test_test_rows_that_serve_as_shots_share_no_text_with_those_that_are_asked(data_dir):
    """Of eight notes six stand in each other; a draw by chance would nearly always take one of them."""
    from medtasks_ext.registry import registry
    from medtasks_ext.rows.overlap import NormalisedTexts

    notes = [f"{LONG} and now number {n}" for n in range(30)]
    notes += [f"Before. {note}. After that nothing." for note in notes[:24]]
    rows = [{"prompt": "P?", "context": note, "label": "AB"[n % 2]} for n, note in enumerate(notes)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    load._build.cache_clear()
    found = load_documents(
        registry().datasets["medhelm_hospice_referral"], cot=False, shots=5, origin="local"
    )
    shown = [document.input for document in found["fewshot"]]
    assert len(shown) == 5
    asked = NormalisedTexts(document.input for document in found["test"])
    assert not any(asked.overlap(text) for text in shown)
