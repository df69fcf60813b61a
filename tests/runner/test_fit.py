"""Prompts that do not fit: shots go first, then the end of the input; the instruction stays."""

import json
import random
import re
from types import SimpleNamespace

import pytest

from medtasks_ext.models import Oracle
from medtasks_ext.prompts.fit import PromptFitter
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task
from tests.conftest import outcomes, sft_row
from tests.run_files import result_of, samples_file


@pytest.fixture
def small(monkeypatch):
    """The oracle as a model with a context of its own: one token per character."""

    def use(context: int) -> None:
        monkeypatch.setattr(Oracle, "max_length", context, raising=False)
        monkeypatch.setattr(Oracle, "tokenizer", object(), raising=False)
        monkeypatch.setattr(Oracle, "tok_encode", lambda self, text: list(text), raising=False)

    return use


ARGUMENTS = ("run", "--model", "oracle", "--tasks", "bridge_chip_ctc_5shot", "--output_path", "run",
             "--apply_chat_template", "--gen_kwargs", "max_gen_toks=10")  # fmt: skip


def prompts(tmp_path) -> list[str]:
    lines = samples_file(tmp_path / "run", "bridge_chip_ctc_5shot").read_text().splitlines()
    return [json.loads(line)["arguments"]["gen_args_0"]["arg_0"] for line in lines]


def test_shots_are_dropped_from_the_end_and_counted(medtasks, chip_ctc, small, tmp_path):
    small(50_000)
    medtasks(*ARGUMENTS[:6], "full", *ARGUMENTS[7:])
    sample = samples_file(tmp_path / "full", "bridge_chip_ctc_5shot").read_text().splitlines()[0]
    full = json.loads(sample)["arguments"]["gen_args_0"]["arg_0"]
    small(len(full) + 10 - 1)
    outcome = medtasks(*ARGUMENTS)
    shortened = prompts(tmp_path)[0]
    assert shortened.count("[assistant]") == 4
    assert "示例0" in shortened and "示例3" in shortened and "示例4" not in shortened
    assert "prompts that carry fewer shots than asked for, to fit the context: 8" in outcome.out


def test_a_long_input_loses_its_end_and_never_the_instruction(medtasks, chip_ctc, small, tmp_path):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    rows = json.loads(path.read_text())
    rows[3] = sft_row(3, "始" + "很长" * 3000 + "末", "clinical trial criterion: 性别")
    path.write_text(json.dumps(rows))
    small(4000)
    outcome = medtasks(*ARGUMENTS)
    cut = prompts(tmp_path)[3]
    assert len(cut) == 4000 - 10
    assert cut.startswith("[system] The input is a clinical text") and "[user] 始很长" in cut
    assert "末" not in cut and "[assistant]" not in cut
    assert "prompts truncated to fit the context: 1 (most: " in outcome.out


def test_tokens_of_prompts_and_answers_are_counted_and_survive_rescoring(
    medtasks, chip_ctc, small, tmp_path, monkeypatch
):
    class Characters:
        def __call__(self, texts, **options):
            return {"input_ids": [list(text) for text in texts]}

    small(50_000)
    monkeypatch.setattr(Oracle, "tokenizer", Characters(), raising=False)
    medtasks(*ARGUMENTS)
    expected = {
        "input": sum(map(len, prompts(tmp_path))),
        "output": sum(len(row["text"]) for row in outcomes(tmp_path / "run")),
    }
    assert result_of(tmp_path / "run", "bridge_chip_ctc_5shot")["tokens"] == expected
    medtasks("rescore", "run")
    assert result_of(tmp_path / "run", "bridge_chip_ctc_5shot")["tokens"] == expected


@pytest.fixture
def record(data_dir, small):
    """MedAlign with one record, in a context of so many characters; gives the prompt."""

    def asked(medtasks, room: int, text: str, prompts: str) -> str:
        folder = data_dir / "medhelm/medalign"
        folder.mkdir(parents=True, exist_ok=True)
        row = {"question": "When did it begin?", "ehr": text, "clinician_response": "In May."}
        (folder / "test.jsonl").write_text(json.dumps(row) + "\n")
        small(room)
        done = medtasks("run", "--model", "oracle", "--tasks", "medhelm_medalign",
                        "--output_path", "run", "--gen_kwargs", "max_gen_toks=10", "--prompts", prompts,
                        "--no-preflight")  # fmt: skip
        assert done.code == 0 and "prompts truncated to fit the context: 1 (most: " in done.out, done.text
        (line,) = samples_file("run", "medhelm_medalign").read_text().splitlines()
        return json.loads(line)["arguments"]["gen_args_0"]["arg_0"]

    return asked


@pytest.mark.parametrize("prompts", ["own", "official"])
def test_a_record_is_cut_and_the_question_after_it_stays(record, medtasks, helm, prompts):
    """HELM keeps the latest events of a record, which stand at its end."""
    cut = record(medtasks, 2000, "first " + "event " * 1000 + "last", prompts)
    assert len(cut) == 2000 - 10
    assert "event last\n" in cut and "first" not in cut
    assert "When did it begin?" in cut.partition("event last")[2] and cut.rstrip().endswith("Answer:")


def budget(task, **settings):
    built = build_task(registry(), task, Settings(data="sample", **settings))
    return built.config.generation_kwargs["max_gen_toks"]


def test_a_direct_answer_has_the_suites_budget_and_any_other_the_longer_one():
    dialog = "medhelm_med_dialog"
    assert budget(dialog, official_budget=True) == budget(f"{dialog}_5shot", official_budget=True) == 80
    assert budget(f"{dialog}_cot", official_budget=True) == budget(dialog) == 4000
    assert budget(dialog, official_budget=True, gen_kwargs={"max_gen_toks": 300}) == 300
    # a letter is read from a longer response, and keeps its room
    assert registry().datasets["medhelm_medqa"].metadata.official_budget == 1
    assert budget("medhelm_medqa", official_budget=True) == 4000


@pytest.mark.parametrize(("context", "tokens"), [(4096, 512), (24_576, 3072), (131_072, 3072), (None, 3072)])
def test_a_suites_rule_gives_each_model_its_share_of_the_context(medtasks, tmp_path, context, tokens):
    """BRIDGE's: an eighth, at most 3,072. The figures are those of its release 1.0.0 for these contexts."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": context} if context else {}))
    done = medtasks("run", "--tasks", "bridge_mie", "--data", "sample", "--model", "oracle",
                    "--model_args", f"pretrained={model}", "--metadata", '{"thinking": false}',
                    "--output_path", "run")  # fmt: skip
    assert done.code == 0, done.text
    record = result_of("run", "bridge_mie")
    assert record["conditions"]["budget"] == tokens


# A prompt that does not fit is cut where counting each text as a whole cuts it, at a tenth of the work.


WORDS = [
    *("patient", "admitted", "12.5mg", "twice", "daily;", "history:", "患者发热三天，伴咳嗽咳痰。", "Fieber"),
    *("Übelkeit", "heart-failure\n\n", "2021-03-04T10:00", "🫀", "e\u0301", "\t", "<event>", "lab=4.2"),
    *("</event>", "unauffällig"),
]


class Pieces:
    """A fast tokenizer in Python: words by a pattern, in pieces of three letters."""

    is_fast = True
    pattern = re.compile(r" ?\w{1,3}|\s+(?!\S)|\s|[^\w\s]+")

    def __call__(self, text, **_):
        # a rare character is several tokens, as its bytes are
        pieces = [one for one in self.pattern.finditer(text) for _ in range(1 + (ord(one[0][0]) > 10_000))]
        return {
            "input_ids": [hash(one[0]) for one in pieces],
            "offset_mapping": [one.span() for one in pieces],
        }


class Model:
    """A model of lm-eval as far as prompts are fitted to it; `plain` has no places of tokens."""

    def __init__(self, tokenizer, context, *, plain=False, begin=()):
        self._tokenizer, self.max_length, self.begin = tokenizer, context, list(begin)
        self.tokenizer = SimpleNamespace(is_fast=False) if plain else tokenizer

    def tok_encode(self, text):
        return self.begin + list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


@pytest.mark.parametrize("name", ["bridge_chip_ctc_5shot", "medhelm_medalign", "medhelm_medalign_5shot"])
def test_prompts_are_cut_where_whole_counts_cut_them(name):
    """Of inputs that lose their end, and of records that lose their beginning."""
    task = build_task(registry(), name, Settings(data="sample", prompts="own"))
    chance, tokenizer = random.Random(5), Pieces()
    for document in task.eval_docs:
        record = document.record or document["prompt"]
        longer = " ".join(chance.choices(WORDS, k=1500))
        document["prompt"] = document["prompt"].replace(record, longer, 1)
        if document.record:
            document.record = longer
    shots = int(task.config.num_fewshot or 0)
    prompts = [task.fewshot_context(one, shots) for one in task.eval_docs]
    longest = max(len(tokenizer(text)["input_ids"]) for text in prompts)
    cuts, tokenised, otherwise = set(), 0, 0
    for context in (*range(300, 2500, 700), *range(longest - 900, longest + 100, 240)):
        ours, theirs = (Model(tokenizer, context, plain=plain, begin=(1,)) for plain in (False, True))
        fitter, plain = PromptFitter(ours), PromptFitter(theirs)
        for document in task.eval_docs[:2]:
            found = fitter.fitted(document, shots, 32, task.fewshot_context)
            assert found == plain.fitted(document, shots, 32, task.fewshot_context)
            cuts.add(found[1])
        tokenised += fitter._counter.characters
        otherwise += plain._counter.characters
    assert "input" in cuts and "" in cuts and ("shots" in cuts or "5shot" not in name)
    assert tokenised < otherwise / 2  # of short prompts; the windows are as small for long ones
