"""The pool of examples of a pinned download, which nobody can mend: test rows leave it."""

import json
import zipfile

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load, load_documents
from medtasks_ext.registry import Dataset, registry
from tests.conftest import edited_json, read_json, sft_row, write_jsonl

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
    assert found["fewshot"] == ["p0", "p2", "p3", "p4", "p5", "p6"]
    assert list(found["test"]) == ["d0", "t0", "t1", "t2", "t3"]


def test_a_few_words_in_common_are_chance(download):
    found = loaded(download([*TEST[1:], "dry cough"], [POOL[0], f"{LONG}: dry cough", *POOL[1:]]))
    assert "p1" in found["fewshot"]


def test_test_rows_that_serve_as_shots_share_no_text_with_those_that_are_asked(data_dir):
    """Of eight notes six stand in each other; a draw by chance would nearly always take one of them."""
    from medtasks_ext.registry import registry
    from medtasks_ext.rows.originals.build import NormalisedTexts

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


CRITERION = "患者年龄在十八岁到六十岁之间并且已经签署知情同意书"


def examples(change="示例0"):
    texts = [change, f"入组标准：{CRITERION}", *(f"示例{n}" for n in range(2, 5))]
    return [
        sft_row(n, text, "clinical trial criterion: 饮食", split="train", task="CHIP-CTC")
        for n, text in enumerate(texts)
    ]


@pytest.fixture
def overlapping(chip_ctc, monkeypatch):
    """The authors' local files: the second example holds the text of the first test row."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(chip_ctc / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(chip_ctc / "hub"))
    with edited_json(chip_ctc / "bridge" / "CHIP-CTC.SFT.json") as rows:
        rows[0]["input"] = CRITERION
    (chip_ctc / "bridge" / "example" / "CHIP-CTC.example.json").write_text(json.dumps(examples()))
    load._build.cache_clear()
    return chip_ctc


def release(data_dir, rows):
    folder = data_dir / "fetched/hub/YLab-Open/BRIDGE-Open/main"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "Example.zip", "w") as archive:
        archive.writestr("Example/CHIP-CTC.example.json", json.dumps(rows, ensure_ascii=False))


def asked(caplog, **more):
    caplog.clear()
    found = load_documents(registry().datasets["bridge_chip_ctc"], cot=False, shots=5, origin="local", **more)
    shown = [document.input for document in found["fewshot"]]
    return len(found["test"]), shown, found["test"][0].loaded.record, caplog.text


def test_the_authors_examples_are_asked_as_they_stand(overlapping, caplog):
    n, shown, record, said = asked(caplog)
    assert (n, len(shown), record["examples"], record["n_overlap"]) == (8, 5, "named", 1)
    assert CRITERION in shown[1] and "1 of 5 rows of the few-shot pool hold the text of test rows" in said
    assert "name of the authors' examples" in said


def test_examples_that_the_release_holds_are_the_authors(overlapping, caplog):
    release(overlapping, examples())
    n, shown, record, said = asked(caplog)
    assert (n, len(shown), record["examples"]) == (8, 5, "authors")
    assert "the authors' examples are shown as they are" in said


def test_examples_of_that_name_which_the_release_does_not_hold_are_cleaned(overlapping, caplog):
    """In our words nothing takes their place. Four are left, too few for five shots, as for any pool."""
    release(overlapping, examples("another one"))
    with pytest.raises(MedtasksError, match="5 shots asked for, the few-shot pool has 4 rows"):
        asked(caplog, prompts="own")
    assert "1 of 5 rows of the few-shot pool are not shown, since they hold the text" in caplog.text


def test_a_test_row_that_is_an_example_of_the_authors_is_not_asked_where_that_is_shown(overlapping, caplog):
    shots = examples(CRITERION)
    (overlapping / "bridge" / "example" / "CHIP-CTC.example.json").write_text(json.dumps(shots))
    n, shown, record, _ = asked(caplog)
    assert (n, shown[0], record["n_held_out"]) == (7, CRITERION, 1)
    found = load_documents(registry().datasets["bridge_chip_ctc"], cot=False, origin="local")
    assert len(found["test"]) == 8


def test_a_pool_of_which_no_row_can_be_shown_says_why(overlapping, caplog):
    own = overlapping / "bridge" / "chip_ctc"
    write_jsonl(own / "fewshot.jsonl", examples()[1:2])
    write_jsonl(own / "test.jsonl", read_json(overlapping / "bridge" / "CHIP-CTC.SFT.json"))
    (overlapping / "bridge" / "CHIP-CTC.SFT.json").unlink()
    n, _, record, said = asked(caplog)
    assert (n, record["n_held_out"], record["n_overlap"], "examples" in record) == (3, 5, 1, False)
    assert "no row of the few-shot pool can be shown; 5 of 8 test rows serve as shots" in said


def test_a_run_says_what_its_examples_share_with_its_test_rows(overlapping, medtasks, tmp_path):
    asked = ("--tasks", "bridge_chip_ctc_5shot", "--prompts", "own", "--output_path", "r")
    outcome = medtasks.done("run", "--model", "oracle", *asked)
    said = " ".join(outcome.text.split())
    assert "1 row of the few-shot pool shared text with test rows, and stayed: examples, by" in said
    assert "no few-shot pool" not in said
