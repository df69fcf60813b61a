"""Prompts that do not fit: shots go first, then the end of the input; the instruction stays."""

import json

import pytest

from medtasks_ext.models import Oracle
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
    assert "8 answers were truncated at the token limit" in medtasks(*ARGUMENTS).out


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
