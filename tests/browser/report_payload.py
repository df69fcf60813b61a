"""A made-up report: real tasks and published scores, invented own runs. As `medtasks_ext.report.payload` writes it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from medtasks_ext.registry import STRATEGIES, registry, taxonomy, vocabulary
from medtasks_ext.results.published import published_entries

AXES = (
    "suite", "language", "task_type", "stage", "specialties", "category", "scenario", "dimension", "access",
)  # fmt: skip
TITLES = {
    "suite": "Suite", "language": "Language", "task_type": "Task type", "stage": "Clinical stage",
    "specialties": "Specialty", "category": "MedHELM category", "scenario": "ClinicBench scenario",
    "dimension": "MLB dimension", "access": "Access",
}  # fmt: skip
SUITES = {"bridge": "BRIDGE", "medhelm": "MedHELM", "clinicbench": "ClinicBench", "mlb": "MLB"}
MODELS = (
    "Qwen3-32B", "华佗 HuatuoGPT-o1-72B", "Llama-3.3-70B-Instruct", "gemma-3-27b-it", "medgemma-27b-text-it",
    "Mistral-Small-24B", "DeepSeek-R1-Distill-Llama-70B", "Baichuan-M2-32B", "our-hospital-7b (LoRA; step 4,000)",
    "gpt-oss-120b",
)  # fmt: skip


@lru_cache(maxsize=1)
def dataset_records() -> tuple[dict[str, Any], ...]:
    records = []
    for item in registry().datasets.values():
        meta = item.metadata
        axes = {key: meta.axis(key) for key in AXES if key not in ("suite", "access")}
        records.append(
            {
                "id": item.id, "name": meta.name, "suite": meta.benchmark, "summary": meta.summary,
                **{key: value if key == "specialties" else (value[0] if value else None) for key, value in axes.items()},
                "access": meta.access.value, "scoreable": meta.access.scoreable, "licence": meta.licence,
                "url": meta.url, "citation": meta.citation, "n_test": meta.n_test, "metric": meta.primary_metric,
                "version": item.version, "oracle_max": meta.oracle_max, "twin_of": meta.twin_of,
                "assigned": [key for key in ("stage", "specialties", "access") if getattr(meta, key).assigned_by == "medtasks"],
            }
        )  # fmt: skip
    return tuple(records)


def axis_records() -> list[dict[str, Any]]:
    words = vocabulary()
    titles = {
        "suite": SUITES, "language": words["languages"], "task_type": words["task_types"], "stage": words["stages"],
        "specialties": words["specialties"], "category": {key: value["title"] for key, value in taxonomy().items()},
        "access": {"open": "open", "gated": "gated", "private": "private"},
    }  # fmt: skip
    axes = []
    for key in AXES:
        values = dict.fromkeys(value for item in dataset_records() for value in values_of(item, key))
        known = titles.get(key, {})
        order = sorted(values, key=lambda value: list(known).index(value) if value in known else 99)
        axes.append({"key": key, "title": TITLES[key], "values": [[value, known.get(value, value)] for value in order]})
    return axes


def values_of(dataset: dict[str, Any], key: str) -> list[str]:
    value = dataset[key]
    return [] if value is None else value if isinstance(value, list) else [value]


def made_report(
    own: int = 4, *, published: bool = False, sample: bool = False, prompts: bool = False, seed: int = 1
) -> dict[str, Any]:
    """A report of `own` invented runs, most of them over everything.

    Every third run lacks ClinicBench, has gaps in BRIDGE, and is of plain lm_eval.
    """
    rng = np.random.default_rng(seed)
    datasets, axes = dataset_records(), axis_records()
    entries: list[dict[str, Any]] = []
    for index in range(own):
        name = MODELS[index % len(MODELS)] + (f" (temperature: {index // len(MODELS)})" if index >= len(MODELS) else "")
        entries.append(
            {
                "label": name, "model": name, "kind": "lm_eval" if index % 3 == 2 else "medtasks", "sample": sample,
                "settings": {"temperature": "0", "max_gen_toks": "4000"},
                "notes": ["The chat template refused a system turn."] if index % 4 == 1 else [], "details": {},
                "tokens": {"input": 81_000_000 + index, "output": 9_000_000}, "usd": None,
                "price": "tokens × price in model_configs, USD 0.60 in and 1.20 out per million" if index % 2 == 0 else None,
            }
        )  # fmt: skip
    shape = (own, len(STRATEGIES), len(datasets))
    level = rng.beta(3, 2, len(datasets)) * 0.8 + 0.1
    scores = np.clip(level + rng.normal(0, 0.06, (own, 1, 1)) + rng.normal(0, 0.05, shape), 0, 1)
    spread = rng.uniform(0.004, 0.03, shape)
    present = np.ones(shape, bool)
    suites = np.array([item["suite"] for item in datasets])
    for index in range(2, own, 3):
        present[index, :, suites == "clinicbench"] = False
        present[index, :, np.flatnonzero(suites == "bridge")[::9]] = False
    rows: dict[str, list[Any]] = {name: [] for name in (
        "entry", "dataset", "strategy", "score", "low", "high", "sd", "n", "valid", "cut", "unclosed",
        "inputs_cut", "usd", "settings",
    )}  # fmt: skip
    for entry, strategy, dataset in np.argwhere(present):
        score, sd = scores[entry, strategy, dataset], spread[entry, strategy, dataset]
        cut = max(0.0, rng.normal(-0.05, 0.08))
        price = round(float(rng.uniform(0.01, 0.4)), 5) * (1 + entry) if entry % 2 == 0 else None
        add(
            rows, entry=int(entry), dataset=int(dataset), strategy=int(strategy), score=score,
            low=max(score - 2 * sd, 0.0), high=min(score + 2 * sd, 1.0), sd=sd, n=datasets[dataset]["n_test"],
            valid=1 - abs(rng.normal(0, 0.02)) - cut, cut=cut, unclosed=cut / 2, inputs_cut=0.0, usd=price,
            settings=int(entry % 3 == 2),
        )  # fmt: skip
    if published:
        add_published(entries, rows, datasets)
    report = {
        "schema": 1, "title": "Ten models on four medical benchmarks", "made": "2026-11-21T14:05:00+01:00", "version": "0.1.0",
        "sample": sample, "text": "open", "entries": entries, "datasets": list(datasets), "axes": axes,
        "strategies": [["zero_shot", "zero-shot"], ["cot", "chain of thought"], ["five_shot", "5-shot"]],
        "results": rows,
        "task_settings": [
            {"version": "1", "prompt": "own 1f3a", "data": "hub @ 4bc0", "rows": "77ab", "rebuilt": "no"},
            {"version": "1", "prompt": "official 99d0", "data": "local", "rows": "77ab", "rebuilt": "yes"},
        ],
        "groups": group_rows(entries, rows, datasets, axes),
        "comparisons": comparisons(own, entries, scores, spread, present, suites),
        "judges": judges(own, datasets, rng), "coverage": coverage(present),
        "differences": [{"text": "gemma-3-27b-it: prompt differs between bridge_mie (own) and bridge_meds (official)"}],
        "faults": [{"where": "runs/a/samples_bridge_mie.jsonl:17", "what": "the line is cut off, and left out", "remedy": "medtasks run … continues the run"}],
        "tasks": task_pages() if prompts else {},
    }  # fmt: skip
    return rounded(report)


def add(rows: dict[str, list[Any]], **values: Any) -> None:
    for name, column in rows.items():
        column.append(values.get(name))


def add_published(entries: list[dict[str, Any]], rows: dict[str, list[Any]], datasets: tuple[dict[str, Any], ...]) -> None:
    place = {item["id"]: index for index, item in enumerate(datasets)}
    for entry in published_entries(registry()):
        entries.append(
            {
                "label": entry.label, "model": entry.model, "kind": "published", "sample": False,
                "suite": entry.settings["published"], "settings": entry.settings, "notes": list(entry.notes),
                "details": entry.details, "tokens": None, "usd": None, "price": None, "groups": entry.groups,
            }
        )  # fmt: skip
        for item in entry.experiments.values():
            add(
                rows, entry=len(entries) - 1, dataset=place[item.dataset.id], strategy=STRATEGIES.index(item.strategy),
                score=item.score, n=item.n,
            )  # fmt: skip


def group_rows(
    entries: list[dict[str, Any]], rows: dict[str, list[Any]], datasets: tuple[dict[str, Any], ...], axes: list[dict[str, Any]]
) -> dict[str, list[Any]]:
    """Plain means; the mean over dimensions for MLB. Intervals are wider than the page's own, to be told apart."""
    shape = (len(entries), len(STRATEGIES), len(datasets))
    score, sd = np.full(shape, np.nan), np.full(shape, np.nan)
    at = (rows["entry"], rows["strategy"], rows["dataset"])
    score[at] = np.array(rows["score"], float)
    sd[at] = np.array(rows["sd"], float)
    groups: dict[str, list[Any]] = {name: [] for name in (
        "entry", "strategy", "axis", "value", "score", "low", "high", "scored", "tasks", "documents",
    )}  # fmt: skip
    for axis, record in enumerate(axes):
        for value, (name, _) in enumerate(record["values"]):
            members = [index for index, item in enumerate(datasets) if name in values_of(item, record["key"]) and not item["twin_of"]]
            weight = weights(members, datasets, mlb=name == "mlb")
            for entry, strategy in np.argwhere(~np.isnan(score[:, :, members]).all(2)):
                found = score[entry, strategy, members]
                known = ~np.isnan(found)
                share = weight[known] / weight[known].sum()
                mean = float((share * found[known]).sum())
                spread = 3 * float(np.sqrt((share**2 * sd[entry, strategy, members][known] ** 2).sum()))
                low, high = (None, None) if np.isnan(spread) else (mean - spread, mean + spread)
                add(
                    groups, entry=int(entry), strategy=int(strategy), axis=axis, value=value, score=mean, low=low, high=high,
                    scored=int(known.sum()), tasks=len(members), documents=0,
                )  # fmt: skip
            for entry, item in enumerate(entries):
                printed = item.get("groups", {}).get("mlb" if name == "mlb" else f"mlb_{name}")
                if printed is not None and record["key"] in ("suite", "dimension"):
                    add(groups, entry=entry, strategy=0, axis=axis, value=value, score=printed)
    for item in entries:
        item.pop("groups", None)
    return groups


def weights(members: list[int], datasets: tuple[dict[str, Any], ...], *, mlb: bool) -> np.ndarray:
    if not mlb:
        return np.ones(len(members))
    dimensions = [datasets[index]["dimension"] for index in members]
    return np.array([1 / dimensions.count(one) for one in dimensions])


def comparisons(own: int, entries: Any, scores: Any, spread: Any, present: Any, suites: Any) -> list[dict[str, Any]]:
    from scipy.stats import norm

    found = []
    for suite in SUITES:
        for strategy, _ in enumerate(STRATEGIES):
            tasks = np.flatnonzero(suites == suite)
            inside = [entry for entry in range(own) if present[entry, strategy, tasks].all()]
            if len(inside) < 2:
                continue
            means = scores[inside][:, strategy, tasks].mean(1)
            error = np.sqrt((spread[inside][:, strategy, tasks] ** 2).sum(1)) / len(tasks)
            difference = means[:, None] - means
            noise = np.sqrt(error[:, None] ** 2 + error**2)
            p = 2 * norm.sf(np.abs(difference) / noise)
            raised = np.minimum(p * len(inside) * (len(inside) - 1) / 2, 1)
            wins = (scores[inside][:, None, strategy, tasks] > scores[inside][None, :, strategy, tasks]).mean(2)
            rank = (-means).argsort().argsort() + 1
            square = {
                "difference": difference, "low": difference - 2 * noise, "high": difference + 2 * noise, "p": p,
                "p_holm": raised, "p_bh": np.minimum(p * 2, 1), "wins": wins,
            }  # fmt: skip
            found.append(
                {
                    "suite": suite, "strategy": strategy, "entries": inside, "tasks": len(tasks),
                    **{name: without_diagonal(matrix) for name, matrix in square.items()},
                    "rank": rank.tolist(), "rank_low": np.maximum(rank - 1, 1).tolist(), "rank_high": np.minimum(rank + 1, len(inside)).tolist(),
                }
            )  # fmt: skip
    return found


def without_diagonal(matrix: Any) -> list[list[float | None]]:
    return [[None if row == column else float(value) for column, value in enumerate(line)] for row, line in enumerate(matrix)]


def judges(own: int, datasets: Any, rng: Any) -> list[dict[str, Any]]:
    judged = [index for index, item in enumerate(datasets) if item["suite"] == "mlb" and "open" in item["metric"] or item["metric"] == "jury_score"][:6]
    return [
        {"entry": entry, "dataset": dataset, "strategy": 0, "judges": ["judge-a", "judge-b"], "measure": measure, "value": float(rng.uniform(0.5, 0.9)), "missing": int(entry)}
        for entry in range(own) for dataset in judged for measure in ("assessor_kappa", "assessor_agreement")
    ]  # fmt: skip


def coverage(present: Any) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {name: [] for name in ("entry", "dataset", "strategy", "reason", "state")}
    for number, (entry, strategy, dataset) in enumerate(np.argwhere(~present)):
        state = ("missing", "failed", "waiting", "not judged", "without gold", "not asked")[number % 6]
        add(rows, entry=int(entry), dataset=int(dataset), strategy=int(strategy), reason=number % 2, state=state)
    return {"reasons": ["no data in $MEDTASKS_DATA_DIR: request access on PhysioNet", "out of memory"], **rows}


def task_pages() -> dict[str, Any]:
    pages = {}
    for item in registry().datasets.values():
        prompt = item.config["dataset_kwargs"]["medtasks_dataset"]["prompt"]
        row = json.loads(item.sample_file.read_text(encoding="utf-8").splitlines()[-1])
        pages[item.id] = {
            "prompts": {
                strategy: {"instruction": str(prompt.get("instruction", "")).replace("{{ strategy }}", line), "input": str(prompt.get("input", "")), "strategy_line": line}
                for strategy, line in zip(STRATEGIES, ("Answer at once.", "Reason step by step, then write Result:", "Answer at once."), strict=True)
            },
            "rule": "An answer is right if it names the gold label and no other. Unreadable answers count as wrong.",
            "metrics": [[item.metadata.primary_metric, "the share of right answers"], ["f1_macro", "F1, the mean over labels"]],
            "verify": item.metadata.verify,
            "examples": [
                {"entry": 0, "strategy": 0, "document": 3 + index, "input": json.dumps(row, ensure_ascii=False)[:1500], "response": f"The note speaks for it.\n\nResult: {index}", "answer": ["a", index], "gold": "a", "score": score}
                for index, score in enumerate((1.0, 0.0, None))
            ] if item.metadata.access.value == "open" else [],
        }  # fmt: skip
    return pages


def rounded(value: Any) -> Any:
    """Numbers with five decimals, NaN and NumPy's types gone."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return round(value, 5) if isinstance(value, float) else value
