"""Examples: which rows leave the pool, what of a prompt is said once, and which examples are drawn."""

import json
import zipfile
from itertools import pairwise

import pytest
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle
from medtasks_ext.prompts import load, load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.originals.build import NormalisedTexts
from medtasks_ext.runner.evaluate import Settings, build_task, rendered_prompt
from tests.conftest import edited_json, read_json, sft_row, write_jsonl
from tests.run_files import samples_of

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

    def ids(test, pool, shots=5):
        load._build.cache_clear()
        said = card.replace("n_test: 1000\n", f"n_test: {len(test) + 1}\n")
        (medqa / "card.yaml").write_text(said, encoding="utf-8")
        write_jsonl(snapshot / "dev.json", [row("d0", "the question of dev")])
        write_jsonl(snapshot / "test.json", [row(f"t{n}", text) for n, text in enumerate(test)])
        write_jsonl(snapshot / "train.json", [row(f"p{n}", text) for n, text in enumerate(pool)])
        found = load_documents(Dataset(medqa), cot=False, shots=shots, origin="hub")
        assert [document["id"] for document in found["test"]] == ["d0", "t0", "t1", "t2", "t3"]
        return [document["id"] for document in found["fewshot"]]

    return ids


TEST = [f"question {n}" for n in range(4)]
POOL = [f"example {n}" for n in range(6)]
LONG = "a woman of sixty has had a dry cough for three weeks"


@pytest.mark.parametrize(
    ("asked", "shown", "leaves"),
    [
        ("question 3", "  question\n 3 ", True),  # to the letter, or with other white space
        ("question 3", "the question of dev", True),
        (LONG, f"He came in. {LONG}, and no fever.", True),  # a test row stands in an example
        (f"First this: {LONG}. Then that.", LONG, True),  # an example stands in a test row
        ("dry cough", f"{LONG}: dry cough", False),  # a few words in common are chance
    ],
)
def test_an_example_that_is_or_shares_a_text_with_a_test_row_leaves_the_pool(download, asked, shown, leaves):
    found = download([*TEST[:3], asked], [POOL[0], shown, *POOL[1:]])
    assert found == [f"p{n}" for n in range(7) if n != 1 or not leaves]


def test_what_left_the_pool_is_not_counted_among_its_rows(download):
    """Fewer examples than a prompt carries are left, and that is said."""
    assert download(TEST, [*TEST, *POOL[:4]], shots=4) == ["p4", "p5", "p6", "p7"]
    with pytest.raises(MedtasksError, match="5 shots asked for, the few-shot pool has 4 rows"):
        download(TEST, [*TEST, *POOL[:4]])


def test_test_rows_that_serve_as_shots_share_no_text_with_those_that_are_asked(data_dir):
    """Of eight notes six stand in each other; a draw by chance would nearly always take one of them."""
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
    for place in ("huggingface_hub.constants", "huggingface_hub.file_download.constants"):
        monkeypatch.setattr(f"{place}.HF_HUB_CACHE", str(chip_ctc / "hub"))
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


def asked(shots=5, **more):
    dataset = registry().datasets["bridge_chip_ctc"]
    found = load_documents(dataset, cot=False, shots=shots, origin="local", **more)
    shown = [document.input for document in found["fewshot"]]
    return len(found["test"]), shown, found["test"][0].loaded.record


@pytest.mark.parametrize(
    ("released", "examples_are", "said"),
    [(False, "named", "name of the authors' examples"), (True, "authors", "shown as they are")],
)
def test_the_authors_examples_are_asked_as_they_stand(overlapping, caplog, released, examples_are, said):
    if released:
        release(overlapping, examples())
    n, shown, record = asked()
    assert (n, len(shown), record["examples"], record["n_overlap"]) == (8, 5, examples_are, 1)
    assert CRITERION in shown[1] and said in caplog.text
    assert "1 of 5 rows of the few-shot pool hold the text of test rows" in caplog.text


def test_examples_of_that_name_which_the_release_does_not_hold_are_cleaned(overlapping, caplog):
    """In our words nothing takes their place. Four are left, too few for five shots, as for any pool."""
    release(overlapping, examples("another one"))
    with pytest.raises(MedtasksError, match="5 shots asked for, the few-shot pool has 4 rows"):
        asked(prompts="own")
    assert "1 of 5 rows of the few-shot pool are not shown, since they hold the text" in caplog.text


def test_a_test_row_that_is_an_example_of_the_authors_is_not_asked_where_that_is_shown(overlapping):
    shots = examples(CRITERION)
    (overlapping / "bridge" / "example" / "CHIP-CTC.example.json").write_text(json.dumps(shots))
    n, shown, record = asked()
    assert (n, shown[0], record["n_held_out"]) == (7, CRITERION, 1)
    assert asked(shots=0)[0] == 8


def test_a_pool_of_which_no_row_can_be_shown_says_why(overlapping, caplog):
    own = overlapping / "bridge" / "chip_ctc"
    write_jsonl(own / "fewshot.jsonl", examples()[1:2])
    write_jsonl(own / "test.jsonl", read_json(overlapping / "bridge" / "CHIP-CTC.SFT.json"))
    (overlapping / "bridge" / "CHIP-CTC.SFT.json").unlink()
    n, _, record = asked()
    assert (n, record["n_held_out"], record["n_overlap"], "examples" in record) == (3, 5, 1, False)
    assert "no row of the few-shot pool can be shown; 5 of 8 test rows serve as shots" in caplog.text


def test_a_run_says_what_its_examples_share_with_its_test_rows(overlapping, medtasks):
    tasks = ("--tasks", "bridge_chip_ctc_5shot", "--prompts", "own", "--output_path", "r")
    said = " ".join(medtasks.done("run", "--model", "oracle", *tasks).text.split())
    assert "1 row of the few-shot pool shared text with test rows" in said


SETTINGS = Settings(data="sample", prompts="own")


def task_and_prompt(name, document=0):
    """A task, one of its documents, and the whole prompt of it."""
    task = build_task(registry(), name, SETTINGS)
    item = task.test_docs()[document]
    return task, item, rendered_prompt(task, item, SETTINGS, None)


def turns(task, document):
    def chat(turns, add_generation_prompt=True):
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)

    given = {"apply_chat_template": True, "fewshot_as_multiturn": True, "chat_template": chat}
    return task.fewshot_context(document, 5, **given)


@pytest.mark.parametrize("name", ["medhelm_ehrsql", "medhelm_noteextract", "mlb_cmexam", "commons_crade"])
def test_an_instruction_that_all_share_is_said_once(name):
    task, document, prompt = task_and_prompt(f"{name}_5shot")
    assert document.instruction and prompt.startswith(document.instruction)
    assert prompt.count(document.instruction) == 1
    rows = [*task.fewshot_docs()[:5], document]
    places = [prompt.index(row["prompt"].removeprefix(row.instruction).strip()) for row in rows]
    assert places == sorted(places)
    _, first, *further = turns(task, document).split("<user>")
    assert first.startswith(document.instruction) and len(further) == 5
    assert not any(document.instruction in turn for turn in further)
    assert task.fewshot_context(document, 0) == document["prompt"]


@pytest.mark.parametrize("place", range(2))
def test_an_instruction_of_the_row_is_said_again_where_it_changes(place):
    task, document, prompt = task_and_prompt("medhelm_ehrshot_5shot", place)
    said = [row.instruction for row in (*task.fewshot_docs()[:5], document)]
    changes = 1 + sum(before != now for before, now in pairwise(said))
    assert sum(prompt.count(instruction) for instruction in set(said)) == changes
    assert prompt.rindex(document.instruction) == max(prompt.rindex(item) for item in said)


def test_an_example_with_an_empty_answer_ends_before_the_next_one():
    """EHRSQL's questions that cannot be answered have an empty query."""
    task, document, prompt = task_and_prompt("medhelm_ehrsql_5shot")
    assert any(row["target"] == "" for row in task.fewshot_docs()[:5])
    assert "SQL Query:-- Question:" not in prompt
    assert turns(task, document).count("<assistant>") == 5


def test_no_example_contradicts_the_instruction():
    """HEAD-QA has questions with five options."""
    prompt = task_and_prompt("medhelm_head_qa_5shot")[2]
    assert "\nE\n" in prompt and "A, B, C or D" not in prompt


class Small(Oracle):
    """A context of so many characters, one token each; keeps what it was asked."""

    tokenizer = object()

    def __init__(self, room: int) -> None:
        super().__init__()
        self.max_length, self.asked = room, []

    def tok_encode(self, text: str) -> list[str]:
        return list(text)

    def generate_until(self, requests, disable_tqdm=False):
        self.asked += [request.args[0] for request in requests]
        return super().generate_until(requests)


@pytest.mark.parametrize("room", [600, 100_000])
def test_prompts_are_cut_as_a_run_of_our_own_cuts_them(medtasks, built_tasks, monkeypatch, tmp_path, room):
    name, more = "bridge_chip_ctc_5shot", {"apply_chat_template": True, "fewshot_as_multiturn": True}
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    model, own = Small(room), {"prompts": "own"}
    tasks = TaskManager(include_defaults=False, include_path=str(built_tasks), metadata=own)
    more |= {"task_manager": tasks, "gen_kwargs": "max_gen_toks=10", "bootstrap_iters": 0}
    simple_evaluate(model, tasks=[name], **more)
    for key, value in (("max_length", room), ("tokenizer", object()), ("tok_encode", Small.tok_encode)):
        monkeypatch.setattr(Oracle, key, value, raising=False)
    run = ("run", "--model", "oracle", "--tasks", name, "--prompts", "own", "--output_path", "run")
    medtasks.done(*run, "--apply_chat_template", "--gen_kwargs", "max_gen_toks=10")
    samples = samples_of(tmp_path / "run", name)
    assert model.asked == [sample["arguments"]["gen_args_0"]["arg_0"] for sample in samples]
    assert all(len(prompt) <= room - 10 for prompt in model.asked)
