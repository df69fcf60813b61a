"""Reading and scoring responses, family by family: throughput, and the worst single hostile response.

Responses per second through a task's own filter, `process_results` and aggregations, best of three, one
task per kind of answer. Responses are in equal parts the gold, the gold after a reasoning trace, prose with
another document's gold, and prose without an answer. Then the slowest of some thousand responses of 20,000
characters, made of every pair of pieces that the patterns look for; one is given up after a second. `(x)*
y` reads: `x` repeated, then `y`. At last every kind of answers, of no paper or of one: 200 replies of 20,000
characters drawn from few marks each, the slowest by processor time, and the exponent by which time grows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import TASKS, Row, characters, fresh, text, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TARGET, LENGTH, REPEATS = 11_000, 20_000, 3
#: seconds after which one hostile response is given up, and after which no more are tried
CAP, PATIENCE = 1.0, 60.0
#: drawn replies of a kind, seconds that one may take, and the exponent of time over length
DRAWN, MOST, EXPONENT = 200, 0.3, 1.2
MARKS = [
    "*", "**A** ", "A, ", "Answer: ", "not A ", "B) cough\n", "- ", "the answer is ", "答案", "答案：", "`",
    "```\n", "E…", "{", "}", "[", "]", '"', "'", "|", "| a | b |\n", ": ", "; ", ", ", "\n", "/", "1. ", "(",
    "\\", "##", "$", "<think>", "</think>", "<answer>", "\\boxed{", "wait, ", "No, ", "If ", "and ", "or ",
    "5 ", "= ", "1,000 ", "12/", "yes ", "no. ", "A", "a", "Result: ", '{"a": "b", ', '[{"a": "b"},', "——",
]  # fmt: skip
#: kinds that no bundled dataset has
OF_NO_DATASET = {"labels": {"labels": ["fever", "cough"]}, "spans": {}, "number": {}}

#: family -> (task, a source row made from its answer block and a random generator)
FAMILIES: dict[str, tuple[str, Callable[[dict[str, Any], random.Random], dict[str, Any]]]] = {
    "label": (
        "bridge/chip_ctc",
        lambda answer, rng: _bridge(f"{answer['prefix']}: {_some(rng, answer['labels'])[0]}"),
    ),
    "label list": (
        "bridge/dialmed",
        lambda answer, rng: _bridge(f"{answer['prefix']}: {', '.join(_some(rng, answer['labels'], 3))}"),
    ),
    "code list": (
        "bridge/cblue_cdn",
        lambda answer, rng: _bridge(f"{answer['prefix']}: {', '.join(characters(rng, 6) for _ in range(3))}"),
    ),
    "events": ("bridge/mie", lambda answer, rng: _bridge("\n".join(_event(answer, rng) for _ in range(4)))),
    "bracketed events": (
        "bridge/chip_cdee",
        lambda answer, rng: _bridge(
            "\n".join(_event(answer, rng, "description", "location") for _ in range(4))
        ),
    ),
    "text, zh": ("bridge/ehrqa_qa", lambda answer, rng: _bridge(characters(rng, 60))),
    "letter": (
        "medhelm/medqa",
        lambda answer, rng: {
            "question": words(rng, 20),
            "options": {letter: words(rng, 3) for letter in "ABCD"},
            "answer_idx": rng.choice("ABCD"),
        },
    ),
    "ICD-10 codes": (
        "medhelm/mimic_iv_billing_code",
        lambda answer, rng: {"text": words(rng, 20), "target": [_code(rng) for _ in range(10)]},
    ),
    "label word": (
        "clinicbench/pubmedqa",
        lambda answer, rng: {
            "QUESTION": words(rng, 20),
            "CONTEXTS": [words(rng, 20)],
            "final_decision": rng.choice(["yes", "no", "maybe"]),
        },
    ),
    "permuted letters": (
        "mlb/cmexam",
        lambda answer, rng: {
            "Question": characters(rng, 40),
            "Options": "\n".join(f"{letter} {characters(rng, 6)}" for letter in "ABCDE"),
            "Answer": "".join(sorted(rng.sample("ABCDE", rng.choice([1, 1, 2])))),
        },
    ),
}


def _bridge(output: str) -> dict[str, Any]:
    return {"task": "bench", "split": "test", "input": output, "output": output}


def _some(rng: random.Random, labels: Any, n: int = 1) -> list[str]:
    return rng.sample(list(labels), n)


def _event(answer: dict[str, Any], rng: random.Random, *bracketed: str) -> str:
    closed = answer.get("closed_values", {})
    values = {name: rng.choice(list(closed.get(name) or [characters(rng, 4)])) for name in answer["fields"]}
    values.update({name: f"[{characters(rng, 3)},{characters(rng, 3)}]" for name in bracketed})
    return ", ".join(f"{name}: {value}" for name, value in values.items()) + ";"


def _code(rng: random.Random) -> str:
    return f"{rng.choice('ACEIJKMNZ')}{rng.randrange(10, 100)}.{rng.randrange(10)}"


def run(quick: bool) -> Iterator[Row]:
    for family, (task, _) in FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            n = _write(Path(folder), family, 1000 if quick else 10_000)
            data = {"MEDTASKS_DATA_DIR": folder}
            done = fresh("scoring", "throughput", env=data, family=family, n=n)
            name = f"read and score {n:,} responses: {family} ({task.replace('/', '_')})"
            figures = f"{done['rate']:,.0f}/s (reading {done['read']:.0%} of the time)"
            yield Row(name, figures, f"{TARGET:,}/s", done["rate"] > TARGET)
            name = f"worst response of {LENGTH:,} hostile characters: {family}"
            worst = fresh("scoring", "hostile", env=data, family=family, share=10 if quick else 1)
            figures = f"{worst['ms']:,.0f} ms"
            if worst["over"]:
                figures = f"{worst['over']} given up after {CAP:.0f} s"
            figures += f" of {worst['tried']:,} tried, {worst['what']:.40}"
            yield Row(name, figures)
    for kind, worst, exponent in fresh("scoring", "growth", n=DRAWN // 10 if quick else DRAWN):
        name = f"slowest of {DRAWN} drawn replies of {LENGTH:,} characters, processor time: {kind}"
        figures, target = f"{worst:.2f} s, exponent {exponent:.2f}", f"{MOST} s, {EXPONENT}"
        yield Row(name, figures, target, worst <= MOST and exponent < EXPONENT)


def _write(folder: Path, family: str, n: int) -> int:
    """Rows for a dataset of the family, as many as `n` or the nearest number that trials divide."""
    from medtasks_ext.registry import Dataset

    task, make = FAMILIES[family]
    block = Dataset(TASKS / task).blocks
    rng = random.Random(family)
    n -= n % block["rows"].get("option_trials", 1)
    rows = [{**make(block["answer"], rng), "id": str(number)} for number in range(n)]
    file = folder / task / "test.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return n


def _task(family: str) -> Any:
    from lm_eval.tasks import TaskManager

    file = TASKS / FAMILIES[family][0] / "task.yaml"
    return next(iter(TaskManager(include_defaults=False).load([str(file)])["tasks"].values()))


def _reader(task: Any) -> Any:
    """The task's own ParseAnswer."""
    arguments = task.config.filter_list[0]["filter"][0]
    return arguments["function"](answer=arguments["answer"])


def throughput(family: str, n: int) -> dict[str, float]:
    task = _task(family)
    documents = list(itertools.islice(itertools.cycle(task.eval_docs), n))
    responses = [[response] for response in _responses(documents)]
    reader, aggregation = _reader(task), task.aggregation()
    best: tuple[float, float] = (math.inf, math.inf)  # the whole, and reading alone
    for _ in range(REPEATS):
        began = time.perf_counter()
        parsed = reader.apply(responses, documents)
        read = time.perf_counter() - began
        pairs = zip(documents, parsed, strict=True)
        results = [task.process_results(document, [answer]) for document, answer in pairs]
        for metric in results[0]:
            aggregation[metric]([result[metric] for result in results])
        best = min(best, (time.perf_counter() - began, read))
    return {"rate": n / best[0], "read": best[1] / best[0]}


def _responses(documents: list[Any]) -> list[str]:
    """The gold; the gold after a reasoning trace; prose and another's answer; prose without an answer."""
    rng, language = random.Random(0), documents[0].loaded.record["language"]
    prose = [text(rng, language, 60) for _ in range(100)]
    forms = (
        lambda i: documents[i]["target"],
        lambda i: f"<think>{prose[i % 100]}</think>\n{documents[i]['target']}",
        lambda i: f"{prose[i % 100]}\n{documents[i - 1]['target']}",
        lambda i: prose[i % 100],
    )
    return [forms[i % len(forms)](i) for i in range(len(documents))]


def hostile(family: str, share: int) -> dict[str, Any]:
    """Read and score long responses made of every pair of pieces; of a `share` of the pairs only."""
    task = _task(family)
    document, reader = task.eval_docs[0], _reader(task)
    answer = task.config.filter_list[0]["filter"][0]["answer"]
    signal.signal(signal.SIGALRM, _give_up)

    def seconds(response: str, cot: bool) -> float:
        document["cot"] = cot
        signal.setitimer(signal.ITIMER_REAL, CAP)
        start = time.perf_counter()
        with contextlib.suppress(TimeoutError):
            task.process_results(document, reader.apply([[response]], [document]))
            signal.setitimer(signal.ITIMER_REAL, 0)
        return time.perf_counter() - start

    found: list[tuple[float, str, str, bool]] = []
    began = time.perf_counter()
    for pair in list(itertools.product(_pieces(answer, document["target"]), repeat=2))[::share]:
        if time.perf_counter() - began > PATIENCE:
            break
        for cot, (how, response) in itertools.product((False, True)[: 1 + ("result:" in pair)], _long(*pair)):
            found.append((seconds(response, cot), how, response, cot))
    slowest = sorted(found, reverse=True)[:5]  # once more, since the machine may have been busy
    worst, what = max((min(first, seconds(response, cot)), how) for first, how, response, cot in slowest)
    over = sum(item[0] >= CAP for item in found)
    return {"ms": 1000 * worst, "what": what, "over": over, "tried": len(found)}


def _give_up(*_: object) -> None:
    raise TimeoutError


def _long(one: str, other: str) -> Iterator[tuple[str, str]]:
    """The pair repeated, and the second piece repeated after or before the first; with two endings."""
    for end in ("", ";"):
        room = LENGTH - len(end)
        both, fill = one + other, other * (room // len(other))
        yield f"({both!r})* {end}", (both * (room // len(both) + 1))[:room] + end
        yield f"{one!r} ({other!r})* {end}", (one + fill)[:room] + end
        yield f"({other!r})* {one!r} {end}", (fill + one)[-room:] + end


def _pieces(answer: dict[str, Any], target: str) -> list[str]:
    common = ["a", "A", "1", " ", "\n", ":", "：", ",", ";", "[", "]", '"', "。", "的", "A1.", "a, b"]
    markers = ["<think>", "</think>", "result:", "assistantfinal", "答案：", "答案 "]
    own = [f"{field}: " for field in answer.get("fields", [])]
    if prefix := answer.get("prefix"):
        own += [prefix, f"{prefix}: "]
    if own and not prefix:
        own += [", ".join(own), ", ".join(f"{part}a" for part in own), f", {own[-1]}"]
        own.append(", ".join(f"{field}: []" for field in answer["fields"]))
    return [*common, *markers, *own, target.splitlines()[0]]


def growth(n: int) -> list[tuple[str, float, float]]:
    """Kind of answers, its slowest reply in seconds, and the exponent of time over length."""
    from medtasks_ext.answers import answer_format
    from medtasks_ext.answers.formats import KINDS
    from medtasks_ext.prompts import load_documents
    from medtasks_ext.registry import registry

    of = {dataset.blocks["answer"]["kind"]: dataset for dataset in registry().datasets.values()}
    found = []
    for kind in sorted(KINDS):
        block = of[kind].blocks["answer"] if kind in of else {"kind": kind, **OF_NO_DATASET[kind]}
        document = {"prompt": "fever and cough, rash " * 50, "gold": None, "target": ""}
        if kind in of:
            document = load_documents(of[kind], cot=True, origin="sample")["test"][0]
        own = [str(document["target"])[:40], *map(str, document.get("options", [])[:4])]
        spent = {}
        for length in (LENGTH // 4, LENGTH):
            replies = [_drawn(random.Random(i), own, length) for i in range(n)]
            spent[length] = [_spent(answer_format(block), document, reply) for reply in replies]
        exponent = math.log(sum(spent[LENGTH]) / sum(spent[LENGTH // 4]), 4)
        found.append((kind, max(spent[LENGTH]), exponent))
    return found


def _drawn(rng: random.Random, own: list[str], length: int) -> str:
    """A reply of few marks and words, some of them often."""
    marks = rng.sample([*MARKS, *filter(None, own)], rng.choice([1, 2, 3, 5, 8, len(MARKS)]))
    return "".join(rng.choices(marks, [rng.random() ** 3 for _ in marks], k=length))[:length]


def _spent(form: Any, document: Any, reply: str) -> float:
    began = time.process_time()
    form.read(reply, document, cot=True)
    return time.process_time() - began
