"""The runs of a recording, and what is asked of them. An item's name holds no word of a command."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from golden_server import number

if TYPE_CHECKING:
    from golden import Recorder

ROOT = Path(__file__).resolve().parents[1]
#: Every kind of answer, six languages, three strategies, judged tasks, trials, rows of all classes of access.
CLOSED = (
    "medhelm_medqa", "bridge_mednli", "bridge_mednli_cot", "bridge_mednli_5shot",
    "bridge_cares_icd10_chapter_5shot", "bridge_ade_drug_dosage", "bridge_cas_label_cot",
    "bridge_cantemist_coding", "bridge_cas_evidence", "bridge_mediqa_2023_chat_a",
    "bridge_n2c2_2018_ade_medication", "bridge_n2c2_2010_relation", "clinicbench_ddi",
    "clinicbench_hoc", "clinicbench_bc5_disease", "clinicbench_pubmedqa",
    "clinicbench_treatment_recommendation", "clinicbench_pharmacology_qa",
    "clinicbench_pharmacology_qa_shuffled", "medhelm_medcalc_bench", "medhelm_ehrsql", "medhelm_medec",
    "medhelm_mimic_iv_billing_code", "medhelm_race_bias_5shot", "medhelm_live_sct_bench", "mlb_cmexam",
    "mlb_cmeie_cot",
)  # fmt: skip
JUDGED = ("medhelm_aci_bench", "healthbench_full", "mlb_maethic", "mlb_mainspection")
FEW = ("medhelm_medqa", "bridge_mednli", "bridge_mednli_cot", "clinicbench_hoc", "mlb_cmexam")
LOCAL = ("medqa", "aci_bench", "hospice_referral")  # of MedHELM, as a user has them
ASKED, NUMBER = "golden_qa", 36  # a task of one's own, and its rows
JUDGES = ("one", "two")
SUBMITTED = "submissions/Org/random-label/2026-05-01"
OWN = {"MEDTASKS_TASKS": "own", "MEDTASKS_DATA_DIR": "data"}
SAMPLE = {"MEDTASKS_DATA": "sample"}
PANEL = ("whole", "shot", "few")

_TASK = """# Answers to invented questions.
class: !function medtasks_ext.task.MedicalTask
task: golden_qa
dataset: golden/qa
rows:
  schemas:
    - columns: {question: what is asked, reply: the reference}
  identity: question
prompt:
  instruction: "Answer the question. {{ strategy }}"
  input: "{{ question }}"
  target: "{{ reply }}"
answer: {kind: free_text, reference: question}
judge:
  protocol: likert_jury
  question: "{{ question }}"
  role: a medical expert who judges replies to patients
  axes:
    accuracy: Is everything in it correct?
    completeness: Does it answer all parts?
    clarity: Is it easy to follow?
about:
  name: Golden questions
  summary: Answer a question.
  language: en
  task_type: question_answering
  document_types: [general_ehr_note]
  specialties: [general]
  stage: initial_assessment
  axes: {ward: one}
  access: open
  url: https://example.org
  licence: none
  citation: none
  n_test: 36
  primary_metric: jury_1_to_5
metadata: {version: 1-A}
"""
_SUITE = """title: Golden
about: invented questions
citation: none
axes:
  ward:
    title: Ward
    values: {one: Ward one, two: Ward two}
groups: {ward: "", language: ""}
partition: [ward]
main_axes: [language, ward]
sections: ward
averaged_over: ward
mean_rule: Each ward counts once.
assigned_by: medtasks
datasets: [qa]
"""


def names(*tasks: str) -> str:
    """Tasks as an option takes them."""
    return ",".join(tasks)


def chat(recorder: Recorder, server: str, model: str = "served", *more: str) -> tuple[str, ...]:
    """A model behind the server on loopback."""
    address = f"base_url={recorder.server.url(server)}/chat/completions"
    arguments = ",".join((f"model={model}", address, "num_concurrent=1", "max_retries=3", *more))
    return ("--model", "local-chat-completions", "--model_args", arguments, "--apply_chat_template")


# ---------------------------------------------------------------------------------------------- making


def make(recorder: Recorder) -> None:
    """Make all runs. What the commands say is recorded as items `made.…`."""
    lay_out(recorder.runs)
    make_models(recorder)
    make_parts(recorder)
    make_files(recorder)
    make_plain(recorder)
    make_own(recorder)
    make_judged(recorder)
    make_people(recorder)
    make_submitted(recorder)
    make_labels(recorder)
    for folder in sorted(path.parent for path in recorder.runs.glob("*/run.json")):
        name = f"folder.{folder.name}"
        recorder.entry(name, (), 0, made=True)
        recorder.keep(name, folder, "files")


def lay_out(runs: Path) -> None:
    """Write tasks and rows of one's own, juries, forms' answers: what users bring."""
    task = runs / "own" / "golden" / "qa"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text(_TASK, encoding="utf-8")
    (task.parent / "suite.yaml").write_text(_SUITE, encoding="utf-8")
    rows = [
        {"id": f"d{n}", "question": f"Question number {n}?", "reply": f"Reference reply {n}."}
        for n in range(NUMBER)
    ]
    lines(
        task / "sample.jsonl",
        [{"_split": "test" if n > 5 else "fewshot", **row} for n, row in enumerate(rows)],
    )
    lines(runs / "data" / "golden" / "qa" / "test.jsonl", rows)
    for dataset in LOCAL:
        split: dict[str, list[Any]] = {"test": [], "fewshot": []}
        for row in read_lines(ROOT / "tasks" / "medhelm" / dataset / "sample.jsonl"):
            split[row.pop("_split", "test")].append(row)
        for part, found in split.items():
            if found:
                lines(runs / "data" / "medhelm" / dataset / f"{part}.jsonl", found)
    case = [
        {
            "id": f"c{n}",
            "question": f"问题 {n}",
            "answer": f"回答 {n}",
            "points": [{"id": "p1", "text": "休息", "weight": 2}, {"id": "p2", "text": "就医", "weight": 1}],
            "decisions": {"p1": n % 3 > 0, "p2": n % 2 > 0},
            "decided_by": "expert",
        }
        for n in range(12)
    ]
    lines(runs / "cases.jsonl", case)
    lines(runs / "queue.jsonl", [{k: v for k, v in item.items() if "deci" not in k} for item in case[:3]])


def lines(path: Path, rows: list[Any]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def jury(recorder: Recorder, name: str, *judges: str, adjudicator: str | None = None) -> str:
    """Write a jury file of judges on the server NAME; the file's name."""
    url = recorder.server.url(name)

    def one(judge: str) -> dict[str, Any]:
        price = {"input": 1.0, "output": 2.0, "batch": 0.5}
        return {"name": judge, "model": judge, "base_url": url, "max_concurrent": 1, "price": price}

    content: dict[str, Any] = {"judges": [one(judge) for judge in judges]}
    if adjudicator:
        content["adjudicator"] = "human" if adjudicator == "human" else one(adjudicator)
    file = recorder.runs / f"{name}.jury.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file.name


def make_models(recorder: Recorder) -> None:
    """Runs of the built-in models, and of a served one, which the oracle's run teaches the right answers."""
    everything = names(*CLOSED, *JUDGED)
    few = ("--data", "sample", "--limit", "3")
    recorder.call(
        "made.oracle", "run", "--model oracle --tasks", everything, *few, "--output_path oracle", made=True
    )
    recorder.call(
        "made.random",
        "run",
        "--model random-label --tasks",
        everything,
        *few,
        "--output_path random",
        made=True,
    )
    recorder.call(
        "made.shot",
        "run",
        "--model random-label --tasks",
        names(*FEW),
        *few[:2],
        "--output_path shot",
        made=True,
    )
    recorder.call(
        "made.whole", "run", "--model oracle --tasks", names(*FEW), *few[:2], "--output_path whole", made=True
    )
    learn(recorder, recorder.runs / "oracle")
    learn(recorder, recorder.runs / "whole")
    recorder.call(
        "made.served",
        "run",
        *chat(recorder, "served"),
        "--tasks",
        everything,
        *few,
        "--output_path served",
        made=True,
    )
    recorder.asked("served", made=True)
    recorder.call(
        "made.served-again",
        "run",
        *chat(recorder, "served"),
        "--tasks",
        everything,
        *few,
        "--output_path served",
        made=True,
    )
    recorder.asked("served", made=True, item="asked.served-again")
    warm = ("--gen_kwargs", "temperature=0.7", "--tasks", names(*FEW), *few, "--output_path", "warm")
    recorder.call("made.warm", "run", *chat(recorder, "warm"), *warm, made=True)
    recorder.asked("warm", made=True)
    system = ("--system_instruction", '"Be brief."', "--num_fewshot", "2", "--seed", "7")
    recorder.call(
        "made.two-shots",
        "run",
        *chat(recorder, "two", "served"),
        *system,
        "--tasks",
        names(*FEW[:2]),
        *few,
        "--output_path two-shots",
        made=True,
    )
    recorder.asked("two", made=True)


def learn(recorder: Recorder, run: Path) -> None:
    """Teach the server the right answers, from what an oracle said."""
    for path in sorted(run.glob("samples_*.jsonl")):
        for row in read_lines(path):
            arguments = row.get("arguments")
            prompt = arguments[0][0] if isinstance(arguments, list) else arguments["gen_args_0"]["arg_0"]
            said = row["resps"][0][0] if isinstance(row.get("resps"), list) else row["target"]
            recorder.server.answers.learn(
                prompt if isinstance(prompt, str) else prompt[-1]["content"], str(said)
            )


def make_parts(recorder: Recorder) -> None:
    """A run of few tasks; one that was killed and went on."""
    shared = ("--model", "random-label", "--tasks", names(*FEW), "--data", "sample", "--output_path", "few")
    recorder.call("made.few", "run", *shared, made=True)
    command = (
        "run",
        *chat(recorder, "killed"),
        "--no-preflight",
        "--tasks",
        names(*FEW[:3]),
        "--data",
        "sample",
        "--output_path",
        "killed",
    )
    event = recorder.server.hold("killed", after=5)
    recorder.call("made.killed", *command, made=True, kill_at=event)
    recorder.value("asked.before-kill", len(recorder.server.asked("killed")), made=True)
    recorder.server.forget("killed")
    recorder.call("made.killed-on", *command, made=True)
    recorder.asked("killed", made=True)


def make_files(recorder: Recorder) -> None:
    """A run whose requests and answers travel in files: one answer comes late, one line is an error."""
    flags = (
        "--tasks",
        names("bridge_mednli", "clinicbench_hoc", "medhelm_aci_bench"),
        "--data",
        "sample",
        "--limit",
        "3",
        "--apply_chat_template",
    )
    model = ("--model", "local-chat-completions", "--model_args", "model=served", "--output_path", "filed")
    recorder.call(
        "made.filed-out", "run", *model, *flags, "--to-batch filed.jsonl", made=True, keep=("filed.jsonl",)
    )
    wanted = read_lines(recorder.runs / "filed.jsonl") if (recorder.runs / "filed.jsonl").exists() else []
    answered = [answer(recorder, line) for line in wanted]
    if answered:
        failed = {"status_code": 500, "body": {"error": {"message": "later"}}}
        lines(recorder.runs / "filed-1.jsonl", [*answered[2:], {**answered[0], "response": failed}])
        lines(recorder.runs / "filed-2.jsonl", answered[:2])
    recorder.call("made.filed-in-part", "run", *model, *flags, "--from-batch filed-1.jsonl", made=True)
    recorder.call(
        "made.filed-out-again",
        "run",
        *model,
        *flags,
        "--to-batch filed-rest.jsonl",
        made=True,
        keep=("filed-rest.jsonl",),
    )
    results = "--from-batch filed-1.jsonl filed-2.jsonl"
    recorder.call("made.filed-in", "run", *model, *flags, results, made=True)


def answer(recorder: Recorder, line: dict[str, Any]) -> dict[str, Any]:
    """A line of results for a line of requests, in OpenAI's format."""
    body = recorder.server.completion(line["body"])
    response = {"status_code": 200, "request_id": f"r-{line['custom_id'][:8]}", "body": body}
    return {
        "id": f"b-{line['custom_id'][:8]}",
        "custom_id": line["custom_id"],
        "response": response,
        "error": None,
    }


def make_plain(recorder: Recorder) -> None:
    """Results of plain lm_eval; two more as if other arguments had been given."""
    recorder.call("made.path", "path", made=True)
    flags = (
        "--tasks",
        names("medhelm_medqa", "bridge_mednli_cot", "clinicbench_hoc", "medhelm_aci_bench", "medhelm_ehrsql"),
        "--limit",
        "3",
        "--log_samples",
        "--output_path",
        "plain",
    )
    given = ("--metadata", '\'{"data": "sample"}\'')
    recorder.call(
        "made.plain",
        "",
        *chat(recorder, "plain"),
        *flags,
        *given,
        made=True,
        script="lm_eval",
        env={"LMEVAL_LOG_LEVEL": "ERROR"},
    )
    recorder.asked("plain", made=True)
    for name, argument in (
        ("plain-cache", ("enable_prefix_caching", True)),
        ("plain-stop", ("eos_string", "END")),
    ):
        if not (recorder.runs / "plain").exists():
            continue
        shutil.copytree(recorder.runs / "plain", recorder.runs / name)
        for file in (recorder.runs / name).rglob("results_*.json"):
            content = json.loads(file.read_text(encoding="utf-8"))
            arguments = content["config"]["model_args"]
            if isinstance(arguments, dict):
                arguments[argument[0]] = argument[1]
            else:
                content["config"]["model_args"] = f"{arguments},{argument[0]}={argument[1]}"
            file.write_text(json.dumps(content), encoding="utf-8")


def make_own(recorder: Recorder) -> None:
    """Runs on a task of one's own."""
    shared = ("--tasks", ASKED, "--data", "local")
    recorder.call("made.own", "run", "--model oracle", *shared, "--output_path own-run", env=OWN, made=True)
    learn(recorder, recorder.runs / "own-run")
    recorder.call(
        "made.own-served",
        "run",
        *chat(recorder, "own"),
        *shared,
        "--output_path own-served",
        env=OWN,
        made=True,
    )
    recorder.asked("own", made=True)


def make_judged(recorder: Recorder) -> None:
    """Judgements: of a jury with an adjudicator, of files, with a physician, on a task of one's own."""
    few = ("--tasks", names(*JUDGED), "--data", "sample", "--limit", "3")
    for name, model in (
        ("judged", chat(recorder, "judged")),
        ("disputed", ("--model", "random-label")),
    ):
        recorder.call(f"made.{name}", "run", *model, *few, "--output_path", name, made=True)
    file = jury(recorder, "jury", *JUDGES, adjudicator="third")
    recorder.call("made.jury-cost", "judge", "judged --jury", file, "--dry-run", made=True)
    recorder.call("made.jury", "judge", "judged --jury", file, made=True)
    recorder.call("made.jury-again", "judge", "judged --jury", file, made=True)
    recorder.asked("jury", made=True)
    file = jury(recorder, "physician", *JUDGES, adjudicator="human")
    recorder.call("made.physician", "judge", "disputed --jury", file, "--tasks mlb", made=True)
    recorder.asked("physician", made=True)
    file = jury(recorder, "own", *JUDGES)
    recorder.call("made.own-jury", "judge", "own-run own-served --jury", file, env=OWN, made=True)
    recorder.asked("own", made=True, item="asked.own-jury")
    file = jury(recorder, "gold", "checker")
    recorder.call("made.gold", "gold", "own-run own-served --jury", file, env=OWN, made=True, keep=("gold",))
    recorder.asked("gold", made=True)
    recorder.call(
        "made.cases",
        "study judge",
        "cases.jsonl",
        made=True,
        keep=("judge_data",),
    )
    file = jury(recorder, "points", *JUDGES)
    recorder.call(
        "made.points",
        "study judge",
        "cases.jsonl --jury",
        file,
        made=True,
        keep=("judge_eval",),
    )
    recorder.asked("points", made=True)


def make_people(recorder: Recorder) -> None:
    """Forms of experts, filled in, and read."""
    pairs = ("own-run", "own-served", "--tasks", ASKED, "-n", "6", "--experts", "2")
    kinds: dict[str, tuple[str, ...]] = {
        "pairwise": pairs, "likert": pairs, "points": ("queue.jsonl",),
        "review": ("medhelm_medqa", "-n", "4"), "survey": ("medhelm",),
    }  # fmt: skip
    for kind, given in kinds.items():
        folder = f"forms-{kind}"
        env = {**OWN, **SAMPLE} if kind == "review" else OWN
        recorder.call(
            f"made.{folder}",
            "study forms",
            *given,
            "--kind",
            kind,
            "-o",
            folder,
            env=env,
            made=True,
            keep=(folder,),
        )
        files = fill(recorder.runs / folder)
        recorder.call(
            f"made.filled-{kind}",
            "study forms",
            *(f"{folder}/{file.name}" for file in files),
            "--key",
            f"{folder}/key.json",
            "-o",
            f"people-{kind}",
            env=env,
            made=True,
            keep=(f"people-{kind}",),
        )


def fill(folder: Path) -> list[Path]:
    """Answer all forms of a folder by a rule; the CSV files that their pages would export."""
    path = folder / "key.json"
    key = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"forms": {}}
    asked = {"pairwise": ["factuality", "completeness", "preference", "safety"], "points": ["decision"],
             "likert": ["rating"], "review": ["verdict"], "survey": ["answer"]}  # fmt: skip
    files = []
    for form, rows in key["forms"].items():
        questions = asked[key["kind"]]
        table = [["form", "row", *questions]]
        for row, record in rows.items():
            values = record["values"] or ["A remark."]
            said = [values[number(str(record["about"]), name) % len(values)] for name in questions]
            table.append([f"{key['export']}/{form}", row, *said])
        files.append(folder / f"{form}.csv")
        with files[-1].open("w", newline="", encoding="utf-8-sig") as file:
            csv.writer(file).writerows(table)
    return files


def make_submitted(recorder: Recorder) -> None:
    """A run on local rows, what may be public of it."""
    tasks = names(*(f"medhelm_{name}" for name in LOCAL))
    shared = ("--tasks", tasks, "--data", "local")
    recorder.call(
        "made.local", "run", "--model random-label", *shared, "--output_path local", env=OWN, made=True
    )
    recorder.call(
        "made.submission",
        "card",
        "local --layout medtasks -o",
        SUBMITTED,
        env=OWN,
        made=True,
        keep=(SUBMITTED,),
    )


def make_labels(recorder: Recorder) -> None:
    """Levels of difficulty, a sample, departments, a probe of memory."""
    recorder.call("made.levels", "difficulty", *PANEL, "--tasks mlb_cmexam", made=True, keep=("difficulty",))
    recorder.call(
        "made.drawn",
        "sample",
        "difficulty/mlb_cmexam.json --size 2",
        made=True,
        keep=("samples.json",),
    )
    file = jury(recorder, "labeller", "labeller")
    recorder.call(
        "made.departments",
        "departments",
        "--tasks mlb_cmexam --jury",
        file,
        env=SAMPLE,
        made=True,
        keep=("departments",),
    )
    recorder.asked("labeller", made=True)
    flags = ("--tasks", "bridge_mednli,medhelm_medqa", "--output_path", "probe")
    recorder.call(
        "made.probe",
        "contamination",
        "--model golden-memory --model_args name=a",
        *flags,
        env=SAMPLE,
        made=True,
        keep=("probe",),
    )


# --------------------------------------------------------------------------------------------- reading


def read(recorder: Recorder) -> None:
    """Record what reading commands say of the runs."""
    read_reports(recorder)
    read_comparisons(recorder)
    read_documents(recorder)
    read_publications(recorder)
    read_tasks(recorder)
    read_again(recorder)


def read_reports(recorder: Recorder) -> None:
    """Reports: of all runs, of plain results, of published models, by labels."""
    call = recorder.call
    every = ("oracle", "random", "shot", "served", "warm", "two-shots", "few", "filed", "killed")
    call("scores.all", "report", *every, "-o {out}")
    call("scores.all-json", "report", *every, "--json")
    call("scores.cot", "report", "oracle served --published none --json")
    call("scores.judged", "report", "judged disputed -o {out}")
    call("scores.own", "report", "own-run own-served -o {out}", env=OWN)
    call("scores.local", "report", "local --published medhelm -o {out} --answers", env=OWN)
    call("scores.plain", "report", "plain served -o {out}")
    call("scores.plain-other-arguments", "report", "plain plain-cache plain-stop --json")
    call(
        "scores.by-label",
        "report",
        "oracle served random --by difficulty --by departments --by probe -o {out}",
    )
    call("scores.published", "report", "--published medhelm -o {out}")
    call("scores.published-bridge", "report", "--published bridge")
    call("scores.published-clinicbench", "report", "--published clinicbench --json")
    call("scores.none", "report", "no-such-folder")


def read_comparisons(recorder: Recorder) -> None:
    """What changed between runs."""
    call = recorder.call
    call("changes.two", "compare", "random served -o {out}")
    call("changes.two-json", "compare", "random served --json")
    call("changes.strategies", "compare", "served --json")
    call("changes.settings", "compare", "served warm")
    call("changes.labels", "compare", "random served --by difficulty --json")
    call("changes.judged", "compare", "judged disputed")
    call("changes.published", "compare", "GPT-4o Llama-3.1-8B-Instruct")


def read_documents(recorder: Recorder) -> None:
    """Documents, their pages, and whether a folder is whole."""
    call = recorder.call
    call("documents.pages", "report", "served random -o {out} --answers")
    call("documents.one", "show", "served medhelm_medqa 0")
    call("documents.one-whole", "show", "judged medhelm_aci_bench 1")
    call("documents.errors", "show", "served bridge_ade_drug_dosage")
    call("documents.none", "show", "served bridge_mie")
    if recorder.wants("whole.broken"):
        broken = recorder.runs.parent / "scratch" / "broken"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(recorder.runs / "served", broken)
        file = broken / "answers.jsonl"
        file.write_text(
            file.read_text(encoding="utf-8").replace('"text":"', '"text":"x', 1), encoding="utf-8"
        )
        call("whole.broken", "report", broken)


def read_publications(recorder: Recorder) -> None:
    """What goes to others."""
    call = recorder.call
    call("public.card", "card", "served -o {out}")
    call("public.card-local", "card", "local -o {out} --parts", env=OWN)
    call("public.card-judged", "card", "own-served -o {out} --parts", env=OWN)
    call("public.layout", "card", "random --layout bridge -o {out} --parts")
    call("public.checked", "check", SUBMITTED)
    call("public.site", "site", "--submissions submissions -o {out}")
    call("public.site-all", "site", "-o", recorder.out / "scratch" / "site")
    call("public.figures", "reproduce")
    call("public.figure", "reproduce", "bridge:tables3 -o {out}")
    call("public.figure-judges", "reproduce", "clinicbench")


def read_tasks(recorder: Recorder) -> None:
    """What is known of tasks, their prompts and their data; what contributors start with."""
    call = recorder.call
    call("known.list", "ls", "--json")
    call("known.some", "ls", "language=zh access=open")
    call("known.groups", "ls", "--groups")
    call("known.own", "ls", "golden", env=OWN)
    call("known.group", "ls", "medhelm_admin")
    call(
        "estimate.model",
        "plan",
        "Qwen3-8B-Thinking --tasks bridge_zh,medhelm_admin",
    )
    call("estimate.json", "plan", "Qwen3-8B-Non-Thinking --tasks mlb --json")
    for task, answer_ in (
        ("medhelm_medqa", "The answer is B."),
        ("bridge_ade_drug_dosage", "entity: x"),
        ("mlb_cmexam", "ABC"),
        ("healthbench_full", "Rest."),
        ("clinicbench_hoc", "none"),
    ):
        call(
            f"words.{task}",
            "preview",
            task,
            "--data sample --response",
            shlex.quote(answer_),
            "--json --prompts own",
        )
    call("words.read", "preview", "medhelm_ehrsql --data sample --response 'SELECT 1' --prompts own")
    call("rows.known", "data status")
    call("rows.where", "data status", "medhelm_medqa")
    call("rows.checked", "data check", "data --json", env=OWN)
    call("rows.pattern", "data template", "bridge_mednli -o {out}")
    call(
        "contribute.dataset",
        "new",
        "--id medhelm_falls_clinic --kind exact_letter",
        cwd=folder(recorder, "new"),
        env={"MEDTASKS_TASKS": "."},
    )
    if recorder.wants("contribute.dataset"):
        recorder.keep("contribute.dataset", recorder.scratch / "new", "files")
    call("contribute.valid", "validate", "golden_qa medhelm_medqa", env=OWN)
    call("contribute.locked", "lock", "--check medhelm_medqa bridge_mednli")
    call("help.all", "", "--help")
    call("help.unknown", "no-such-command")


def folder(recorder: Recorder, name: str) -> Path:
    """An empty folder."""
    place = recorder.scratch / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def read_again(recorder: Recorder) -> None:
    """Runs that go on: nothing is asked again, and nothing is scored otherwise. On copies."""
    few = ("--data", "sample", "--limit", "3")
    wanted = {
        "again.served": (
            "served",
            ("run", *chat(recorder, "again"), "--tasks", names(*CLOSED, *JUDGED), *few),
        ),
        "again.oracle": ("oracle", ("run", "--model", "oracle", "--tasks", names(*CLOSED, *JUDGED), *few)),
        "again.killed": (
            "killed",
            (
                "run",
                *chat(recorder, "again"),
                "--no-preflight",
                "--tasks",
                names(*FEW[:3]),
                "--data",
                "sample",
            ),
        ),
        "again.scores": ("served", ("rescore",)),
        "again.judged": ("judged", ("judge",)),
    }
    for name, (run, (act, *arguments)) in wanted.items():
        if not recorder.wants(name):
            continue
        copy = f"{name}-copy"
        shutil.copytree(recorder.runs / run, recorder.runs / copy)
        if act == "run":
            arguments += ["--output_path", copy]
        elif act == "rescore":
            arguments = [copy, *arguments]
        else:
            arguments = [copy, "--jury", jury(recorder, "again", *JUDGES, adjudicator="third")]
        recorder.call(name, act, *arguments)
        recorder.keep(name, recorder.runs / copy / "tasks", "tasks")
        [results] = (recorder.runs / copy).glob("results*.json")
        recorder.keep(name, results, "results.json")
        recorder.asked("again", item=f"{name}-asked")
        shutil.rmtree(recorder.runs / copy)
