"""The end of a run: its first screen, and commands to type next."""

import re
import shlex
from pathlib import Path
from statistics import fmean

import pytest

from medtasks_ext.cli.end import shown_command
from medtasks_ext.data.fetch import needs_punkt
from medtasks_ext.models import Oracle
from medtasks_ext.registry import registry
from tests.run_files import result_of, results_of, samples_of

SAMPLE = ("run", "--model", "random-label", "--data", "sample", "--limit", 2, "--output_path", "run")


def rows(outcome) -> dict[str, list[str]]:
    """Label of a row -> its cells."""
    return {line[:44].split("  ")[0].strip(): line.split() for line in _indented(outcome)}


def _indented(outcome) -> list[str]:
    return [line[1:] for line in outcome.out.splitlines() if re.search(r" (\d\.\d{4} \[|–  )", line)]


def test_names_that_were_asked_come_first_and_a_suite_follows_its_own_rule(medtasks, tmp_path):
    outcome = medtasks(*SAMPLE, "--tasks", "medtasks_private,medhelm_admin")
    shown, stored = rows(outcome), results_of(tmp_path / "run")
    assert list(shown)[:3] == ["medtasks_private", "medhelm_admin", "MedHELM"]
    asked = stored["groups"]["medtasks_private"]["score,answer"]
    assert shown["medtasks_private"][1] == f"{asked:.4f}" and shown["medhelm_admin"][-1] == "5/5"
    scores = {
        name: item["score,answer"] for name, item in stored["results"].items() if "score,answer" in item
    }
    parts = [[name for name in part if name in scores] for part in registry().parts("mlb")]
    parts = [part for part in parts if part]
    expected = fmean(fmean(scores[name] for name in part) for part in parts)
    assert len(parts) > 1 and shown["MLB"][1] == f"{expected:.4f}"


def test_prompts_that_do_not_hold_their_examples_are_said_wherever_the_score_stands(
    medtasks, chip_ctc, monkeypatch
):
    """The context of the model is in characters; its answers take 25."""
    monkeypatch.setattr(
        Oracle, "tokenizer", lambda self, texts, **_: {"input_ids": list(map(list, texts))}, raising=False
    )
    monkeypatch.setattr(Oracle, "tok_encode", lambda self, text: list(text), raising=False)
    monkeypatch.setattr(Oracle, "max_length", 620, raising=False)
    shots = ("--num_fewshot", "3", "--gen_kwargs", "max_gen_toks=25", "--output_path", "fewer")
    fewer = medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", *shots)
    assert "prompts that carry fewer shots than asked for, to fit the context: 8" in fewer.text
    assert result_of("fewer", "bridge_chip_ctc")["cut"]["shots_dropped"] == 8
    report = " ".join(medtasks("report", "fewer").text.split())
    assert "prompts that carry fewer examples, to fit the context: bridge_chip_ctc" in report
    medtasks.done("card", "fewer", "-o", "card", "--parts")
    card = "".join(path.read_text() for path in Path("card").rglob("*.md"))
    assert "Prompts with fewer examples than asked for, to fit the context: 8." in card


def test_the_highest_possible_score_stands_beside_the_score(medtasks):
    names = ("medhelm_medcalc_bench", "bridge_ruccon", "medhelm_medec")
    asked = ("run", "--data", "sample", "--tasks", ",".join(names), "--output_path")
    medtasks.done(*asked, "perfect", "--model", "oracle")
    done = medtasks.done(*asked, "run", "--model", "random-label")
    for name in names:
        reached = result_of("perfect", name)["metrics"]["score"]
        line = next(line for line in done.out.splitlines() if line.strip().startswith(name))
        assert f" {reached:.3f} " in line
        assert result_of("run", name)["highest"] == (reached if reached < 1 else None)
    assert result_of("run", names[0])["highest"] < 1


def test_the_share_of_unreadable_answers_is_that_of_all_documents(medtasks, tmp_path):
    names = ("medhelm_medcalc_bench", "bridge_mie")
    outcome = medtasks("run", "--model", "random-label", "--data", "sample", "--output_path", "run",
                       "--tasks", ",".join(names))  # fmt: skip
    valid = [item["valid"] for name in names for item in samples_of(tmp_path / "run", name)]
    share = 1 - sum(valid) / len(valid)
    assert share and f"unreadable {share:.1%} of {len(valid)} answers (most: {names[0]}" in outcome.out


def test_scores_that_may_not_stand_beside_published_ones_say_why_and_what_to_do(medtasks, chip_ctc):
    outcome = medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "run")
    said = " ".join(outcome.out.split())
    assert "comparable with published scores: 0 of 1 task; others: " in said
    assert "rows in part in 1" in said and "→ `medtasks data" in said


def following(outcome) -> list[str]:
    """The commands below `next:`."""
    return [line.strip() for line in outcome.err.partition("next:\n")[2].splitlines()]


@pytest.mark.long
def test_after_a_run_the_report_is_next_and_its_commands_can_be_typed(medtasks, chip_ctc):
    call = ("--tasks", "bridge_chip_ctc", "--output_path", "my runs/run")
    found = following(medtasks("run", "--model", "oracle", *call))
    assert found == ["medtasks report 'my runs/run' -o report", "medtasks view 'my runs/run'"]  # and no card
    for command in (f"{found[0]} --answers", f"{found[1]} bridge_chip_ctc 0"):
        medtasks.done(*shlex.split(command)[1:])


def test_judges_are_named_only_where_answers_wait_for_them(medtasks):
    outcome = medtasks(*SAMPLE, "--tasks", "medhelm_mediqa,medhelm_admin")
    assert "1 to be judged" in outcome.out
    assert following(outcome)[0] == "medtasks judge run --jury medhelm --dry-run"
    outcome = medtasks(*SAMPLE, "--tasks", "mlb_maethic")
    assert following(outcome)[:2] == [
        "medtasks judge run --jury medhelm --tasks medhelm --dry-run",
        "medtasks judge run --jury mlb --tasks mlb --dry-run",
    ]
    for command in following(outcome)[:2]:
        assert medtasks(*shlex.split(command)[1:]).code == 0


@pytest.mark.parametrize(
    "secret",
    [
        "model=m,api_key=sk-1",
        '{"api_key": "sk-1"}',
        "base_url=https://me:sk-1@host/v1",
        'extra_headers={"Authorization": "Bearer sk-1"}',
    ],
)
def test_a_command_with_a_key_is_not_printed(secret):
    shown = shown_command(["run", "--model_args", secret, "--tasks", "bridge"])
    assert shown == "medtasks run … (the same command)"


def test_a_score_that_wants_punkt_data_is_not_called_without_gold(medtasks, no_punkt):
    leaves = {registry().tasks[name][0] for name in registry().leaves("bridge")}
    less = sum(map(needs_punkt, leaves)) - 1  # bridge_cas_evidence is in French
    asked = ("run", "--data", "sample", "--model", "oracle", "--limit", 1, "--output_path", "run")
    outcome = medtasks(*asked, "--tasks", "bridge")
    assert "86 of 87 tasks scored, 1 not computed" in outcome.out and less > 1
    assert f"no score in bridge_cas_evidence, no bleu_4 in {less} tasks; `medtasks data" in outcome.err
    assert "`medtasks rescore run`" in outcome.err
    report = medtasks("report", "run", "-o", "report")
    assert "BRIDGE, zero-shot: 1 not computed" in " ".join(report.out.split())
