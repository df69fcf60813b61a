"""Forms of each kind: what they show and keep, what filled ones amount to, and what is refused."""

import csv
import json
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from medtasks_ext.registry import registry
from tests.conftest import read_json
from tests.human.conftest import GATED, MODELS, QUEUE, TASK, N, key_of, text_of, write
from tests.judge.conftest import AXES
from tests.report.made import data_of
from tests.run_files import samples_file

EXPERTS = ("expert_1", "expert_2", "expert_3")


def about_of(folder, expert):
    return [row["about"] for row in key_of(folder)["forms"][expert].values()]


@pytest.fixture
def ingest(medtasks, tmp_path):
    """`ingest(folder, choose)` fills all forms by `choose(number of the expert, about, question)`."""

    def call(folder, choose, *options):
        files = [
            write(folder, expert, lambda *asked, expert=expert: choose(int(expert[-1]), *asked))
            for expert in key_of(folder)["forms"]
        ]  # fmt: skip
        done = medtasks("study", "forms", *files, "--key", folder / "key.json", "-o", "out", *options)
        return done, tmp_path / "out"

    return call


def test_every_expert_sees_the_same_pairs_in_an_order_and_with_sides_of_their_own(export):
    folder = export()
    forms = {}
    for expert in EXPERTS:
        pages = data_of(folder / f"{expert}.html")["pages"]
        forms[expert] = [(about["unit"], about["first_run_is"]) for about in about_of(folder, expert)]
        assert sorted(unit for unit, _ in forms[expert]) == sorted(f"d{i}" for i in range(N))
        assert Counter(side for _, side in forms[expert]) == {"A": N / 2, "B": N / 2}
        for page, (unit, side) in zip(pages, forms[expert], strict=True):
            first = side == "A"
            texts = [text_of(run, int(unit[1:])) or "(no answer was given)" for run in (0, 1)]
            assert [item["text"] for item in page["answer"]] == (texts if first else texts[::-1])
            assert len(page["prompts"]) == 4
    assert len({tuple(rows) for rows in forms.values()}) == 3
    again = export(out="again")  # the same call draws the same
    assert [about_of(again, expert) for expert in EXPERTS] == [about_of(folder, expert) for expert in EXPERTS]


def test_forms_name_no_run_model_task_or_document_show_no_trace_and_run_nothing(export):
    folder = export()
    for expert in EXPERTS:
        text = (folder / f"{expert}.html").read_text(encoding="utf-8")
        for secret in ("llama", "gpt-x", "oracle", "trace of", "<think>", TASK, "first_run"):
            assert secret not in text
        assert not re.search(r"\bd\d+\b", text)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
        assert "default-src 'none'" in policy
    assert [run["folder"] for run in key_of(folder)["runs"]] == list(MODELS)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_votes_become_rates_of_the_first_run_and_agreement(export, ingest):
    votes = {
        1: ["win", "win", "tie", "loss"] * 3,
        2: ["win", "tie", "tie", "loss"] * 3,
        3: ["win", "loss", "tie", "win"] * 3,
    }

    def choose(expert, about, question):
        vote = votes[expert][int(about["unit"][1:])]
        other = {"A": "B", "B": "A"}[about["first_run_is"]]
        return {"win": about["first_run_is"], "loss": other, "tie": "tie"}[vote]

    done, out = ingest(export(), choose)
    assert done.code == 0, done.text
    results = read_json(out / "results.json")
    rates = {row["by"]: row for row in results["rates"] if row["criterion"] == "safety"}
    assert rates["expert_1"]["win"] == 1 / 2 and rates["expert_3"]["win_tie"] == 3 / 4
    everything = [vote for by in votes.values() for vote in by]
    assert rates["mean"]["win"] == pytest.approx(everything.count("win") / len(everything))
    assert rates["mean"]["win_tie_low"] < rates["mean"]["win_tie"] < rates["mean"]["win_tie_high"]
    [kappa] = [
        row["value"]
        for row in results["agreement"]
        if (row["criterion"], row["between"]) == ("safety", "expert_1, expert_3")
    ]
    assert kappa == pytest.approx(cohen_kappa_score(votes[1], votes[3]))
    assert "medtasks study reproduce clinicbench:table4" in done.err and "win + tie" in done.out


def change(runs, run, edit):
    path = samples_file(runs / run, TASK)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edit(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_runs_on_other_documents_are_refused(runs, medtasks):
    for edit, said in (
        (lambda lines: lines[4]["doc"].update(question="Another question?"), "1 are others (first: d4)"),
        (lambda lines: lines.__delitem__(slice(-2, None)), "2 are others (first: d10)"),
    ):
        change(runs, MODELS[1], edit)
        done = medtasks("study", "forms", *MODELS, "--tasks", TASK, "-o", "forms")
        assert done.code == 2 and said in done.err and not (runs / "forms").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MODELS[0], MODELS[0], "--tasks", TASK), "two runs"),
        (MODELS, "--tasks"),
        ((*MODELS, "--tasks", "medhelm_qa_cot"), "medhelm_qa_cot is not finished"),
        (("--kind", "poll", *MODELS), "no kind 'poll'"),
        (("--kind", "points", *MODELS), "takes one source"),
        (("--kind", "survey", "bridge"), "no suite with a taxonomy"),
    ],
)
def test_wrong_arguments_get_one_message(runs, medtasks, arguments, message):
    done = medtasks("study", "forms", *arguments, "-o", "x")
    assert done.code == 2 and message in done.err and not (runs / "x").exists(), done.text


def test_answers_that_are_no_texts_and_a_second_export_are_refused(export, runs, medtasks):
    before = {path.name: path.read_bytes() for path in export().iterdir()}
    call = ("study", "forms", *MODELS, "--tasks", TASK, "-o")
    assert "another folder" in medtasks(*call, "forms").err
    assert {path.name: path.read_bytes() for path in (runs / "forms").iterdir()} == before

    def edit(lines):
        lines[0]["filtered_resps"] = [str({"answer": [["fever", "symptom"]], "valid": True})]

    change(runs, MODELS[0], edit)
    assert "are not texts" in medtasks(*call, "others").err


def test_a_form_with_text_that_is_not_open_says_so(runs, medtasks):
    done = medtasks("study", "forms", *MODELS, "--tasks", GATED, "-o", "gated")
    [notice] = data_of(runs / "gated" / "expert_1.html")["notices"]
    assert "agreement for the data" in notice and "agreement for the data" in done.err


def at(row, column, value):
    return lambda table: table[row].__setitem__(column, value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (at(1, 0, "mt000/expert_1"), "belongs to another export (mt000"),
        (at(1, 2, "C"), "factuality is 'C', not A or tie or B"),
        (lambda table: table.append(table[1]), "given twice"),
        (at(0, 2, "truth"), "columns are missing: factuality"),
    ],
)
def test_a_wrong_form_is_refused_with_the_place_and_nothing_is_written(export, runs, medtasks, edit, said):
    folder = export("--experts", 1)
    path = write(folder, "expert_1", lambda about, question: "tie")
    table = list(csv.reader(path.open(encoding="utf-8-sig", newline="")))
    edit(table)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(table)
    done = medtasks("study", "forms", path, "--key", folder / "key.json", "-o", "out")
    assert done.code == 2 and said in done.err and not (runs / "out").exists(), done.text


def test_a_queue_becomes_a_form_in_the_language_of_its_texts_and_decisions(queue, medtasks, ingest, tmp_path):
    medtasks.done("study", "forms", "--kind", "points", queue, "-o", "forms", "--experts", 3)
    page = data_of(tmp_path / "forms" / "expert_1.html")
    assert [one["label"] for one in page["pages"][0]["prompts"][0]["options"]] == ["满足", "不满足"]
    asked = {
        sheet["answer"][0]["text"]: [item["label"] for item in sheet["prompts"]] for sheet in page["pages"]
    }
    assert asked == {case["answer"]: [point["text"] for point in case["points"]] for case in QUEUE}

    def choose(expert, about, question):
        return "met" if about["unit"] == "p0" or (about["unit"] == "p1" and expert > 1) else "not_met"

    done, out = ingest(tmp_path / "forms", choose)
    assert done.code == 0, done.text
    cases = [json.loads(line) for line in (out / "decisions.jsonl").read_text().splitlines()]
    assert [[point["met"] for point in case["points"]] for case in cases] == [
        [True], [True, True], [True, True, False]
    ]  # fmt: skip
    assert "judge RUN --jury NAME --ratings out/decisions.jsonl" in done.err


def opinion(expert, about):
    """What an expert thinks of an answer, 1-5."""
    document, axis = int(about["unit"].split("\td")[1]), list(AXES).index(about["criterion"])
    return 1 + (document * (1 + axis) + (expert == 3)) % 5


def test_answers_are_rated_on_the_axes_of_their_jury_and_ratings_become_figures(runs, medtasks, ingest):
    call = ("study", "forms", *MODELS, "--kind", "likert", "--tasks", TASK, "--experts", 3)
    assert medtasks(*call, "-o", "forms").code == 0
    # the second run left one document without an answer, which nobody rates in either run
    assert [len({about["unit"] for about in about_of(runs / "forms", form)}) for form in EXPERTS] == [22] * 3
    prompts = data_of(runs / "forms" / "expert_1.html")["pages"][0]["prompts"]
    assert [(item["label"], item["help"]) for item in prompts] == [
        (axis.capitalize(), f"{question}\n1: very poor; 5: the best") for axis, question in AXES.items()
    ]
    done, out = ingest(runs / "forms", lambda expert, about, question: str(opinion(expert, about)))
    assert done.code == 0, done.text
    rows = list(csv.DictReader((out / "ratings.csv").open()))
    assert len(rows) == 3 * 2 * (N - 1) * len(AXES) and {row["run"] for row in rows} == set(MODELS)
    abouts = [about for about in about_of(runs / "forms", "expert_1") if about["criterion"] == "clarity"]
    table = np.array([[opinion(expert, about) for expert in (1, 2, 3)] for about in abouts], dtype=float)
    z = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    cases = 3 * np.var(z.mean(axis=1), ddof=1)
    error = ((z - z.mean(axis=1, keepdims=True)) ** 2).sum() / ((len(table) - 1) * 2)
    figures = {(row["axis"], row["measure"]): row for row in read_json(out / "results.json")["agreement"]}
    assert figures["clarity", "ICC(3,k)"]["value"] == pytest.approx((cases - error) / cases)
    assert figures["mean of axes", "mean of pairs' ICC"]["n"] == 3
    scores = read_json(out / "results.json")["scores"]
    [score] = [row for row in scores if (row["axis"], row["run"]) == ("clarity", MODELS[0])]
    mine = [about["unit"].startswith(MODELS[0]) for about in abouts]
    assert score["mean"] == pytest.approx(table[mine].mean())
    medtasks.done("judge", *MODELS, "--jury", "local", "--ratings", out / "ratings.csv", "--dry-run")


CHOICE, OPEN = "mlb_maexam", "mlb_maethic"


def test_items_are_asked_about_what_they_have_and_accepted_or_not(medtasks, ingest, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    medtasks.done("study", "forms", CHOICE, OPEN, "--kind", "review", "-n", 3, "-o", "forms")
    asked = defaultdict(list)
    for about in about_of(tmp_path / "forms", "expert_1"):
        asked[about["task"], about["unit"]].append(about["criterion"])
    assert len(asked) == 6
    for (task, _), criteria in asked.items():
        own = "distractors" if task == CHOICE else "rubric"
        assert criteria == ["natural", "valid", "answer", own, "remark"]
    failed, disputed, accepted = sorted(unit for task, unit in asked if task == CHOICE)

    def choose(expert, about, question):
        if about["criterion"] == "remark":
            return "=改为每日一次" if about["unit"] == failed and about["task"] == CHOICE else ""
        doubt = about["task"] == CHOICE and about["criterion"] == "answer"
        no = doubt and (about["unit"] == failed or (about["unit"] == disputed and expert == 1))
        return "no" if no else "yes"

    done, out = ingest(tmp_path / "forms", choose)
    assert done.code == 0, done.text
    rows = {(row["task"], row["criterion"]): row for row in read_json(out / "results.json")["rates"]}
    assert (rows[CHOICE, "answer"]["by"], rows[CHOICE, "answer"]["met"]) == ("mean", 3 / 6)
    with (out / "votes.csv").open(newline="") as file:
        votes = [row for row in csv.DictReader(file) if row["task"] == CHOICE]
    doubted = Counter(row["unit"] for row in votes if row["said"] == "no")
    assert doubted == {failed: 2, disputed: 1} and accepted in {row["unit"] for row in votes}
    remarks = [row["said"] for row in votes if row["criterion"] == "remark"]
    assert remarks == ["'=改为每日一次"] * 2  # no formula
    assert "SAMPLE" in done.out


def test_answers_to_the_survey_that_give_the_papers_figures_give_them(medtasks, ingest, tmp_path):
    """96.7 % of all assignments, 4.21 with s.d. 0.675 of 29 clinicians, and comments by lines."""
    medtasks("study", "forms", "medhelm", "--kind", "survey", "--experts", 29, "-o", "forms")
    key = key_of(tmp_path / "forms")
    intended, axis = key["intended"], registry().suites["medhelm"].axes["subcategory"]
    page = data_of(tmp_path / "forms" / "expert_1.html")["pages"]
    assert sorted(item["label"] for item in page[0]["prompts"]) == sorted(axis.titles.values())
    wrong = 29 * len(intended) - round(0.967 * 29 * len(intended))
    stars = [3] * 4 + [4] * 15 + [5] * 10  # the only counts without a 1 or 2 that give mean and s.d.
    number = {expert: place for place, expert in enumerate(key["forms"])}

    def choose(place, about):
        if about["criterion"] == "comprehensiveness":
            return str(stars[place])
        if about["criterion"] == "comments":
            return "- one thing\n\nanother; thing" if place < 2 and not about["unit"] else ""
        right = intended[about["unit"]]
        off = place < wrong and about["unit"] == "care_coordination_and_planning"
        return next(value for value in intended.values() if value != right) if off else right

    files = [
        write(tmp_path / "forms", expert, lambda about, _, place=place: choose(place, about))
        for expert, place in number.items()
    ]
    medtasks.done("study", "forms", *files, "--key", "forms/key.json", "-o", "out")
    results = read_json(tmp_path / "out" / "results.json")
    [rate] = [row["as_intended"] for row in results["rates"] if row["by"] == "mean"]
    assert rate == pytest.approx(1 - wrong / (29 * len(intended)))
    [stars_of_all] = results["comprehensiveness"]
    assert (f"{stars_of_all['mean']:.2f}", f"{stars_of_all['sd']:.3f}") == ("4.21", "0.675")
    comments = [row["said"] for row in results["votes"] if row["criterion"] == "comments"]
    assert comments == ["- one thing\n\nanother; thing"] * 2
    fleiss = next(row for row in results["agreement"] if row["measure"] == "fleiss_kappa")
    assert 0.8 < fleiss["value"] < 1 and fleiss["n"] == 22
