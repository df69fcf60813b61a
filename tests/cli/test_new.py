"""`medtasks data new`: a complete folder from a few answers, and nothing less; datasets in other scripts."""

import json
import shutil
from pathlib import Path
from zlib import crc32

import pytest
import yaml

from medtasks_ext.registry import Registry, forget, registry
from medtasks_ext.registry.groups import PLACEHOLDER
from medtasks_ext.registry.new import template_of, templates, write
from medtasks_ext.registry.suites import TERMS
from medtasks_ext.runner.validate import RunFolder
from tests.conftest import declare_suites, write_jsonl

ALL_KINDS = [
    (name, kind)
    for name, suite in registry().suites.items()
    for kind, template in templates().items()
    if not suite.answers or template["kind"] in suite.answers
]


def first_facts(suite, name: str) -> dict:
    """What may be said of a new dataset: the first value of each vocabulary."""
    keys = ("task_type", "document_types", "specialties", "stage", "access")
    said = {"id": name, "language": "en", "axes": {}}
    said |= {key: next(iter(suite.terms(TERMS[key]))) for key in keys}
    said |= {key: [said[key]] for key in ("document_types", "specialties")}
    for key, axis in suite.axes.items():
        within = said["axes"].get(axis.within) if axis.within else None
        said["axes"][key] = next(iter(axis.known(within)))
    return said


FLAGS = {
    "id": "medhelm_falls_clinic",
    "kind": "exact_letter",
    "language": "en",
    "task_type": "text_classification",
    "document_types": "general_ehr_note",
    "specialties": "primary_care,general",
    "stage": "triage_and_referral",
    "access": "private",
    "category": "administration",
    "subcategory": "scheduling_resources_and_staff",
}


def as_arguments(flags: dict[str, str]) -> list[str]:
    options = [part for name in ("id", "kind") for part in (f"--{name}", flags[name])]
    said = {name: value for name, value in flags.items() if value and name not in ("id", "kind")}
    return options + [f"{name}={value}" for name, value in said.items()]


def small_tree(root: Path) -> Path:
    shutil.copytree(
        registry().root, root, ignore=lambda folder, names: [] if folder == str(registry().root) else
        [name for name in names if Path(folder).parent == registry().root
         and name not in ("mie", "hospice_referral", "pubmedqa", "maexam", "full", "sct_bench",
                          "crade", "m_arc", "chats")]
    )  # fmt: skip
    declare_suites(root)
    return root


@pytest.fixture
def tree(tmp_path, monkeypatch):
    root = small_tree(tmp_path / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    forget()
    yield root
    forget()


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Registry:
    """A tree with a new dataset of every template that fits a suite."""
    root = small_tree(tmp_path_factory.mktemp("new") / "tasks")
    tasks = Registry(root)
    for suite, kind in ALL_KINDS:
        of = tasks.suites[suite]
        write(tasks, of, first_facts(of, f"new_{kind}"), template_of(of, kind))
    return Registry(root)


def of_every_day(suite: str, kind: str) -> bool:
    """Whether a hash draws the suite of those that have a kind of answers, or the kind of the suite's."""
    alike = ([pair for pair in ALL_KINDS if pair[at] == (suite, kind)[at]] for at in (0, 1))
    return (suite, kind) in [min(pairs, key=lambda pair: crc32(" ".join(pair).encode())) for pairs in alike]


@pytest.mark.parametrize(
    ("suite", "kind"),
    [pytest.param(*pair, marks=() if of_every_day(*pair) else pytest.mark.nightly) for pair in ALL_KINDS],
)
def test_a_new_folder_lacks_nothing_but_what_a_person_must_write(everything, suite, kind):
    dataset = everything.datasets[f"{suite}_new_{kind}"]
    problems = {
        check.what: check.problems for check in RunFolder(everything, dataset).checks() if check.problems
    }
    assert set(problems) == {"nothing is left to fill in"}
    (left,) = problems.values()
    assert sum(line.startswith(("task.yaml, line", "card.yaml, line")) for line in left) >= 7
    assert any(line.startswith("sample.jsonl: 11 of 11 rows are placeholders") for line in left)


def test_flags_alone_make_a_folder_that_is_listed_and_in_groups(medtasks, tree):
    medtasks.done("data", "new", *as_arguments(FLAGS))
    folder = tree / "medhelm" / "falls_clinic"
    assert {file.name for file in folder.iterdir()} == {"task.yaml", "card.yaml", "sample.jsonl"}
    assert '"medhelm_falls_clinic"' in medtasks("ls", "--json", "category=administration").out
    record = Registry(tree).datasets["medhelm_falls_clinic"].metadata
    assert record.specialties == ["primary_care", "general"]
    assert "medhelm_falls_clinic_cot" in Registry(tree).leaves("medtasks_spec_primary_care_cot")
    outcome = medtasks("dev", "validate", "medhelm_falls_clinic")
    assert outcome.code == 1 and "card.yaml, line 1: TODO: one sentence" in outcome.out
    rows = [json.loads(line) for line in (folder / "sample.jsonl").read_text().splitlines()]
    assert all(any(PLACEHOLDER in str(value) for value in row.values()) for row in rows)


def test_what_no_paper_has_is_said_and_not_compared_with_published_scores(medtasks, tree, data_dir):
    assert medtasks("data", "new", *as_arguments(FLAGS), "--prompt", "Which one?").code == 0
    new = [{"question": f"Q{n}", "options": ["x", "y", "z"], "answer": "ABC"[n % 3]} for n in range(6)]
    own = [{"prompt": "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(6)]
    write_jsonl(data_dir / "medhelm" / "falls_clinic" / "test.jsonl", new)
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", own)
    outcome = medtasks.done("run", "--model", "oracle", "--tasks", "medhelm_admin", "--output_path", "run")
    assert (
        "datasets that no suite's paper has: medhelm_falls_clinic; groups of their suite leave them out"
        in outcome.out
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"language": "english"}, "language: 'english' is no code of ISO 639"),
        ({"kind": "exact_leter"}, "no kind 'exact_leter' (did you mean exact_letter?)"),
        ({"id": "medhlm_falls"}, "did you mean medhelm?"),
        ({"id": "medhelm_hospice_referral"}, "there is such a folder"),
        ({"id": "medhelm_admin"}, "'medhelm_admin' is the name of a task or group"),
        ({"stage": ""}, "stage: missing key: a value of the vocabulary of stages: triage_and_referral"),
    ],
)
def test_a_wrong_answer_is_refused_with_what_is_right(medtasks, tree, change, message):
    before = sorted(tree.rglob("*"))
    outcome = medtasks("data", "new", *as_arguments({**FLAGS, **change}))
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError("no space left on device")])
def test_a_folder_is_there_as_a_whole_or_not_at_all(medtasks, tree, monkeypatch, stop):
    before, write, written = sorted(tree.rglob("*")), Path.write_text, []

    def interrupted(self, *arguments, **options):
        written.append(self)
        if len(written) == 2:
            raise stop
        return write(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", interrupted)
    outcome = medtasks("data", "new", *as_arguments(FLAGS))
    assert outcome.code == (130 if stop is KeyboardInterrupt else 2)
    assert len(written) == 2 and sorted(tree.rglob("*")) == before


def test_the_tasks_of_an_installed_package_are_left_alone(medtasks, tmp_path, monkeypatch):
    import medtasks_ext.registry.new as module

    root = small_tree(tmp_path / "medtasks_ext" / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "medtasks_ext")
    outcome = medtasks("data", "new", *as_arguments(FLAGS))
    assert outcome.code == 2
    assert "export MEDTASKS_TASKS=my_tasks" in outcome.err and "--id own_NAME" in outcome.err


OWN = ("data", "new", "--from", "rows.jsonl", "--id", "own_mine", "language=it")
EXAM = [{"stem": f"Caso {n}?", "a": "uno", "b": "due", "c d": "tre", "key": "ABC"[n % 3]} for n in range(6)]
KEYED = [{"q": f"Caso {n}?", "risposte": [{"t": "uno"}, {"t": "due"}], "ra": n % 2 + 1} for n in range(6)]
NOTES = [{"nota": f"Paziente {n}", "esito": ("ricovero", "dimissione")[n % 2]} for n in range(6)]
TAGGED = [{"tokens": ["Caso", str(n), "febbre"], "tags": ["O", "O", "B-S"]} for n in range(6)]
PLACED = [{"text": f"Caso {n}: tosse", "entities": [{"start": 8, "end": 13, "label": "S"}]} for n in range(6)]


@pytest.mark.parametrize(
    ("rows", "flags", "gold"),
    [
        (EXAM, "--kind choice --map question=stem --map options=a,b,c\u00a0d --map answer=key",
         "A. uno\nB. due\nC. tre"),
        (KEYED, "--kind choice --map question=q --map options=risposte.t --map answer=ra --count-from 1",
         "A. uno\nB. due\n── gold ──\nB"),
        (NOTES, "--kind prose --map text=nota --map reference=esito", "dimissione"),
        (NOTES, "--kind category --map text=nota --map label=esito --labels ricovero,dimissione", "ricovero"),
        (NOTES, "--kind prose --map text=esito,nota --map reference=nota", "ricovero\n\nPaziente 0"),
        (TAGGED, "--kind spans --map text=tokens --map mentions=tokens,tags", "Caso 0 febbre"),
        (PLACED, "--kind tuples --labels S,D", '{"entity": "tosse", "type": "S"}'),
    ],
)  # fmt: skip
def test_a_task_for_columns_of_a_file_shows_three_rows_and_runs(medtasks, own, data_dir, rows, flags, gold):
    write_jsonl(Path("rows.jsonl"), rows)
    said = [word.replace("\u00a0", " ") for word in flags.split(" ")]
    made = medtasks.done(*OWN, *said, "--prompt", "Rispondi come chiesto.")
    assert made.out.count("── gold ──") == 3 and gold in made.out and "Rispondi come chiesto." in made.out
    assert "6 of 6 rows can be asked as the new task file says" in made.out and "TODO" not in made.out
    forget()
    outcome = medtasks("dev", "validate", "own_mine")
    assert [line for line in outcome.out.splitlines() if line.startswith("  ✗")] == [
        "  ✗ nothing is left to fill in"
    ]
    imported = medtasks("data", "import", "rows.jsonl", "--task", "own_mine", "-o", data_dir)
    assert "the gold answers themselves score 1.0000" in imported.out and "own test part" not in imported.out
    outcome = medtasks.done(
        "run", "--model", "oracle", "--tasks", "own_mine", "--data", "local", "--output_path", "run"
    )
    assert "1.0000" in outcome.out


def test_what_a_person_has_not_written_is_previewed_and_not_run(medtasks, own, data_dir):
    write_jsonl(data_dir / "own" / "mine" / "test.jsonl", NOTES)
    write_jsonl(Path("rows.jsonl"), NOTES)
    medtasks.done(*OWN, "--kind", "prose", "--map", "text=nota", "--map", "reference=esito")
    forget()
    seen = medtasks.done("preview", "own_mine")
    assert "no run asks it: prompt.instruction" in seen.out and "Paziente 0" in seen.out
    outcome = medtasks("run", "--model", "oracle", "--tasks", "own_mine", "--output_path", "run")
    assert outcome.code == 2 and "own_mine would ask what is not written yet" in outcome.err
    assert not Path("run").exists()


def test_labels_are_never_taken_from_the_rows(medtasks, own):
    write_jsonl(Path("rows.jsonl"), NOTES)
    made = medtasks(*OWN, "--kind", "category", "--map", "text=nota", "--map", "label=esito")
    assert made.code == 0 and "ricovero" not in (own / "mine" / "task.yaml").read_text()
    assert "0 of 6 rows can be asked" in made.out and "then `medtasks preview`" in made.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--kind", "category", "--map", "text=note"), "the file has no column note"),
        (("--kind", "category", "--map", "texts=nota"), "answers of kind category have no column texts"),
        (("--kind", "prose", "--labels", "a,b"), "answers of kind prose have no closed labels"),
    ],
)
def test_a_column_or_label_that_cannot_be_is_refused(medtasks, own, flags, message):
    write_jsonl(Path("rows.jsonl"), NOTES)
    outcome = medtasks(*OWN, *flags)
    assert outcome.code == 2 and message in outcome.err and not any(own.iterdir())


@pytest.fixture
def own(tmp_path, monkeypatch) -> Path:
    """An empty folder of one's own tasks, below the folder in which commands are called."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder))
    monkeypatch.chdir(tmp_path)
    forget()
    yield folder
    forget()


FACTS = {
    "name": "Mine", "summary": "A question of an exam, and its answer.", "task_type": "question_answering",
    "document_types": ["exam_question"], "specialties": ["general"], "stage": "treatment_and_intervention",
    "url": "https://example.org",
    "licence": "hospital only", "n_test": 4, "access": "private",
}  # fmt: skip
ARABIC = [
    ("ما العلاج الأول للتأق؟ حالة {n}", ["الأدرينالين", "الهيبارين", "الأسبرين", "الوارفارين"], "أبجد"),
    ("كلمة السؤال هنا، حالة {n}", ["القلب", "الكبد", "الرئة", "الكلية"], "أبجد"),
]


def write_task(folder, name: str, language: str, columns: list[str], blocks: dict, rows: list[dict]) -> None:
    place = folder / name
    place.mkdir()
    task = {
        "class": "!function medtasks_ext.task.MedicalTask",
        "task": f"own_{name}",
        "dataset": f"own/{name}",
        "rows": {"schemas": [{"columns": columns, "types": blocks.pop("types", {})}], "identity": columns[0]},
        **blocks,
        "about": {**FACTS, "language": language},
        "metadata": {"version": "1-A"},
    }
    text = yaml.safe_dump(task, allow_unicode=True, sort_keys=False)
    (place / "task.yaml").write_text(text.replace("'!function medtasks_ext.task.MedicalTask'", task["class"]))
    split = [{"_split": "fewshot" if n < 5 else "test", "id": f"r{n}", **row} for n, row in enumerate(rows)]
    write_jsonl(place / "sample.jsonl", split)
    forget()


def arabic(*, options: list[str] | None = None, answer: str | None = None) -> list[dict]:
    rows = []
    for n in range(11):
        question, texts, letters = ARABIC[n % 2]
        rows.append({"q": question.format(n=n), "options": texts, "answer": letters[n % 4]})
    if options:
        rows[7]["options"] = options
    if answer:
        rows[8]["answer"] = answer
    return rows


ARABIC_BLOCKS = {
    "types": {"options": "options"},
    "prompt": {
        "instruction": "اختر الإجابة الصحيحة واكتب حرفها فقط. {{ strategy }}",
        "input": '{{ q }}\n{{ options | lettered("أبجد") }}',
        "target": "{{ answer }}",
    },
    "answer": {"kind": "choice", "labels": list("أبجد")},
}


def test_letters_of_another_script_are_validated_and_read(medtasks, own):
    write_task(own, "exam", "ar", ["q", "options", "answer"], dict(ARABIC_BLOCKS), arabic())
    medtasks.done("dev", "validate", "own_exam")
    shown = medtasks("preview", "own_exam", "--data", "sample", "--response", "الإجابة الصحيحة هي: ب")
    assert shown.code == 0 and "ب" in shown.out, shown.text
    forms = json.loads(medtasks("ls", "--json", "own_exam").out)
    assert forms[0]["language"] == "ar"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": ["القلب", "الكبد", "القلب", "الكلية"]}, "options أ and ج have the same text"),
        ({"answer": "هـ"}, "is none of أ, ب, ج, د, and no option's text"),
    ],
)
def test_a_row_that_cannot_be_answered_is_named_with_its_remedy(medtasks, own, change, said):
    write_task(own, "exam", "ar", ["q", "options", "answer"], dict(ARABIC_BLOCKS), arabic(**change))
    checked = medtasks("dev", "validate", "own_exam")
    assert checked.code != 0 and said in checked.text.replace("\n", " "), checked.text
    assert "Traceback" not in checked.text


def test_a_language_without_words_asks_for_them(medtasks, own):
    blocks = {
        "types": {"answer": ["ae", "kao"]},
        "prompt": {"instruction": "Whakautua. {{ strategy }}", "input": "{{ q }}", "target": "{{ answer }}"},
        "answer": {"kind": "category", "labels": ["ae", "kao"]},
    }
    rows = [{"q": f"He pātai {n}?", "answer": ("ae", "kao")[n % 2]} for n in range(11)]
    write_task(own, "patai", "mi", ["q", "answer"], {**blocks}, rows)
    checked = medtasks("dev", "validate", "own_patai")
    assert checked.code == 1 and "no words of the language 'mi' are known" in checked.text, checked.text
    shown = medtasks("preview", "own_patai", "--data", "sample")
    assert shown.code == 0 and "read only with English words" in shown.text
    task = own / "patai" / "task.yaml"
    said = task.read_text("utf-8").replace("  - kao\nabout", "  - kao\n  words: {answer: [whakautu]}\nabout")
    task.write_text(said, "utf-8")
    forget()
    medtasks.done("dev", "validate", "own_patai")
