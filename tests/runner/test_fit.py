"""Prompts that do not fit: shots go first, then the end of the input; the instruction stays."""

import json

import pytest

from medtasks_ext.cli.model import known_to_think
from medtasks_ext.models import Oracle
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


def test_nothing_is_cut_where_everything_fits(medtasks, chip_ctc, small, tmp_path):
    small(50_000)
    outcome = medtasks(*ARGUMENTS)
    assert all(prompt.count("[assistant]") == 5 for prompt in prompts(tmp_path))
    assert "to fit the context" not in outcome.out


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
    assert "8 prompts carry fewer shots than asked for" in outcome.out


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
    assert "1 prompt was truncated" in outcome.out


def test_answers_that_fill_the_budget_are_counted(medtasks, chip_ctc, small):
    small(50_000)
    assert "truncated at the token limit 100.0% of 8 answers" in medtasks(*ARGUMENTS).out


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


# ---------------------------------------------------------------------- one turn with its question at the end


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
        assert done.code == 0 and "1 prompt was truncated" in done.out, done.text
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


def test_a_record_without_a_rule_of_its_own_loses_its_end(medtasks, data_dir, small):
    folder = data_dir / "medhelm/pubmedqa"
    folder.mkdir(parents=True)
    row = {"QUESTION": "Does it help?", "LABELS": ["A"], "final_decision": "yes",
           "CONTEXTS": ["first " + "word " * 1000 + "last"]}  # fmt: skip
    (folder / "test.jsonl").write_text(json.dumps(row) + "\n")
    small(1500)
    done = medtasks("run", "--model", "oracle", "--tasks", "medhelm_pubmedqa",
                    "--output_path", "run", "--gen_kwargs", "max_gen_toks=10", "--prompts", "own",
                    "--no-preflight")  # fmt: skip
    assert done.code == 0, done.text
    (line,) = samples_file("run", "medhelm_pubmedqa").read_text().splitlines()
    cut = json.loads(line)["arguments"]["gen_args_0"]["arg_0"]
    assert len(cut) == 1500 - 10 and "Does it help?" in cut and "first word" in cut and "last" not in cut
    assert cut.endswith("Answer:")


# Answers have the tokens of the suite's own runs where the model is known not to reason.


DIALOG = "medhelm_med_dialog"


def budget(task, **settings):
    built = build_task(registry(), task, Settings(data="sample", **settings))
    return built.config.generation_kwargs["max_gen_toks"]


def test_a_direct_answer_has_the_suites_budget_and_any_other_the_longer_one():
    assert budget(DIALOG, official_budget=True) == budget(f"{DIALOG}_5shot", official_budget=True) == 80
    assert budget(f"{DIALOG}_cot", official_budget=True) == budget(DIALOG) == 4000


def test_a_letter_is_read_from_a_longer_response_and_keeps_its_room():
    assert registry().datasets["medhelm_medqa"].metadata.official_budget == 1
    assert budget("medhelm_medqa", official_budget=True) == 4000


def test_what_the_user_says_goes_first():
    assert budget(DIALOG, official_budget=True, gen_kwargs={"max_gen_toks": 300}) == 300


@pytest.mark.parametrize(
    ("model_args", "metadata", "expected"),
    [
        ({"pretrained": "meta-llama/Llama-3.1-8B-Instruct"}, {}, False),
        ({"pretrained": "Qwen/Qwen3-8B"}, {}, True),
        ({"pretrained": "Qwen/Qwen3-8B", "enable_thinking": False}, {}, False),
        ({"pretrained": "Qwen/Qwen3-8B"}, {"thinking": False}, False),
        ({"pretrained": "some/model"}, {"thinking": True}, True),
        ({"pretrained": "some/model"}, {}, None),
        ({}, {}, None),
    ],
)
def test_whether_a_model_reasons_is_known_from_its_configuration(model_args, metadata, expected):
    assert known_to_think(model_args, metadata) is expected


def test_a_run_asks_with_the_suites_budget_and_records_it(medtasks, tmp_path):
    command = ("run", "--tasks", DIALOG, "--data", "sample", "--model", "oracle", "--output_path")
    assert medtasks(*command, str(tmp_path / "plain"), "--metadata", '{"thinking": false}').code == 0
    assert medtasks(*command, str(tmp_path / "thinks"), "--metadata", '{"thinking": true}').code == 0
    stored = [result_of(tmp_path / run, DIALOG) for run in ("plain", "thinks")]
    assert [record["conditions"]["budget"] for record in stored] == [80, 4000]


@pytest.mark.parametrize("suffix", ["", "_cot"])
@pytest.mark.parametrize(
    ("context", "tokens"), [(4096, 512), (8192, 1024), (24_576, 3072), (131_072, 3072), (None, 3072)]
)
def test_a_suites_rule_gives_each_model_its_share_of_the_context(medtasks, tmp_path, context, tokens, suffix):
    """BRIDGE's: an eighth, at most 3,072. The figures are those of its release 1.0.0 for these contexts."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": context} if context else {}))
    done = medtasks("run", "--tasks", f"bridge_mie{suffix}", "--data", "sample", "--model", "oracle",
                    "--model_args", f"pretrained={model}", "--metadata", '{"thinking": false}',
                    "--output_path", "run")  # fmt: skip
    assert done.code == 0, done.text
    record = result_of("run", f"bridge_mie{suffix}")
    assert record["conditions"]["budget"] == tokens


def test_a_model_that_reasons_or_may_reason_keeps_the_longer_budget():
    assert budget("bridge_mie") == budget("bridge_mie", context=8192) == 4000


def test_the_budget_is_shown(medtasks):
    shown = medtasks("preview", DIALOG, "--data", "sample").out
    assert "a model that does not reason has 80 tokens" in shown
    (record,) = json.loads(medtasks("ls", DIALOG, "--json").out)
    assert record["official_budget"] == 80
    shown = " ".join(medtasks("preview", "bridge_mie", "--data", "sample").out.split())
    assert "has 3,072 tokens, or 12.5% of its context if that is less, as in the suite's own runs" in shown
    (record,) = json.loads(medtasks("ls", "bridge_mie", "--json").out)
    assert record["official_budget"] == 3072
