"""The pages of the catalogue: every dataset with its metadata, for readers. `medtasks build` writes them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from medtasks_ext.registry.citations import SUITE_PAPERS, Entry, citations
from medtasks_ext.registry.metadata import SUITE_TITLES, taxonomy, vocabulary

if TYPE_CHECKING:
    from medtasks_ext.registry.metadata import Access, Metadata, Specialties, Stage
    from medtasks_ext.registry.tasks import Dataset, Registry

#: by which a suite's own table is divided
_SECTIONS = {"bridge": "task_type", "medhelm": "category", "clinicbench": "scenario", "mlb": "dimension"}
#: the suites' own names and order, where no vocabulary has them
_NAMES = {
    "reasoning": "Reasoning",
    "generation": "Generation",
    "understanding": "Understanding",
    "fundcap": "FundCap",
    "scenecap": "SceneCap",
    "medkqa": "MedKQA",
    "medse": "MedSE",
    "medru": "MedRU",
    "smartserv": "SmartServ",
    "smartcare": "SmartCare",
}
_VOCABULARY = {
    "language": "languages",
    "task_type": "task_types",
    "documents": "documents",
    "specialties": "specialties",
    "stage": "stages",
    "application": "applications",
}
#: axes of single suites: metadata field -> what the page calls it
_SUITE_AXES = {
    "application": "application",
    "category": "category",
    "subcategory": "subcategory",
    "scenario": "scenario",
    "clinical_task": "task",
    "domain": "domain",
    "dimension": "dimension",
    "tertiary": "scenario",
}
#: axes that the index counts: metadata field -> heading, column
_INDEXED = {
    "language": ("Languages", "language"),
    "task_type": ("Task types", "task type"),
    "stage": ("Clinical stages", "stage"),
    "specialties": ("Specialties", "specialty"),
}
#: what marks a value that the suite's paper does not give
ASSIGNED = "†"
_WRITTEN = "<!-- built from the task files by `medtasks build` -->"
_LEGEND = f"""- {ASSIGNED}: assigned by medtasks, where the paper gives no value or one outside the shared
  vocabulary; the suite's own value stands behind it if it is another.
- *test rows*: as the paper states.
- *version*: scores are comparable where the numbers before the hyphen are the same.
- *rebuilt*: rows can be made from the original source; such rows are not the suite's own test rows, and
  results say so."""


def pages(registry: Registry) -> dict[str, str]:
    """The pages of the catalogue, file name -> content: an index, and a page per suite."""
    suites = {suite: _of_suite(registry, suite) for suite in SUITE_TITLES}
    return {"README.md": _index(suites)} | {
        f"{suite}.md": _page(suite, datasets) for suite, datasets in suites.items()
    }


def _of_suite(registry: Registry, suite: str) -> list[Dataset]:
    return [item for item in registry.datasets.values() if item.metadata.benchmark == suite]


# ---------------------------------------------------------------------- index


def _index(suites: dict[str, list[Dataset]]) -> str:
    counted = {
        suite: [item.metadata for item in items if not item.metadata.twin_of]
        for suite, items in suites.items()
    }
    lines = [
        _WRITTEN,
        "# Catalogue",
        "",
        "Every dataset with what is known of it. Each is a task in zero-shot, chain-of-thought (`TASK_cot`)",
        "and 5-shot (`TASK_5shot`). `medtasks ls` filters by the same facts; `medtasks cite` prints BibTeX.",
        "",
        *_table(
            ["suite", "datasets", "open", "of them scoreable", "gated", "private"],
            [_access_row(suite, records) for suite, records in counted.items()],
        ),
    ]
    for axis, (title, _) in _INDEXED.items():
        lines += ["", f"## {title}", "", *_axis_table(axis, counted)]
    lines += ["", "A dataset of several specialties counts in each of them.", "", "## References", ""]
    lines += [_reference(key) for key in SUITE_PAPERS.values()]
    return "\n".join(lines) + "\n"


def _access_row(suite: str, records: list[Metadata]) -> list[str]:
    access = Counter(record.access.value for record in records)
    scoreable = sum(record.access.scoreable for record in records)
    counts = [len(records), access["open"], scoreable, access["gated"], access["private"]]
    return [f"[{SUITE_TITLES[suite]}]({suite}.md)", *(str(count) for count in counts)]


def _axis_table(axis: str, counted: dict[str, list[Metadata]]) -> list[str]:
    counts = {
        suite: Counter(value for record in records for value in record.axis(axis))
        for suite, records in counted.items()
    }
    rows = [
        [title, *(str(counts[suite][value] or "") for suite in counts)]
        for value, title in vocabulary()[_VOCABULARY[axis]].items()
        if any(counts[suite][value] for suite in counts)
    ]
    return _table([_INDEXED[axis][1], *(SUITE_TITLES[suite] for suite in counts)], rows)


# ---------------------------------------------------------------------- a suite's page


def _page(suite: str, datasets: list[Dataset]) -> str:
    n_twins = sum(item.metadata.twin_of is not None for item in datasets)
    lines = [
        _WRITTEN,
        f"# {SUITE_TITLES[suite]}",
        "",
        f"{len(datasets) - n_twins} datasets"
        + (f" and {n_twins} control outside all groups" if n_twins else "")
        + f" ([{SUITE_PAPERS[suite]}](#ref-{SUITE_PAPERS[suite]})). [All suites](README.md).",
        "",
        _LEGEND,
    ]
    axis = _SECTIONS[suite]
    for value in {"task_type": vocabulary()["task_types"], "category": taxonomy()}.get(axis, _NAMES):
        if items := [item for item in datasets if value in item.metadata.axis(axis)]:
            lines += ["", f"## {_title(items[0].metadata, axis, value)}", "", *_overview(items)]
    lines += ["", "## Datasets"]
    for item in datasets:
        lines += ["", *_section(item)]
    keys = {SUITE_PAPERS[suite], *(key for item in datasets for key in item.metadata.axis("citation"))}
    lines += ["", "## References", "", *(_reference(key) for key in sorted(keys))]
    return "\n".join(lines) + "\n"


def _overview(datasets: list[Dataset]) -> list[str]:
    rows = [
        [
            f"[{_cell(item.metadata.name)}](#{item.id})",
            item.metadata.language,
            f"`{item.metadata.primary_metric}`",
            f"{item.metadata.n_test:,}",
            _access(item.metadata),
        ]
        for item in datasets
    ]
    return _table(["dataset", "language", "score", "test rows", "access"], rows)


def _section(dataset: Dataset) -> list[str]:
    """The facts of one dataset."""
    record = dataset.metadata
    shared = [
        f"{axis.replace('_', ' ')}: {_values(record, axis)}"
        for axis in ("language", "task_type", "documents", "stage", "specialties")
    ]
    own = [f"{title}: {_values(record, axis)}" for axis, title in _SUITE_AXES.items() if record.axis(axis)]
    facts = [
        f"task `{dataset.id}`, version {dataset.version}; [files](../../tasks/{dataset.folder.parent.name}/"
        f"{dataset.folder.name})",
        "; ".join(shared[:3]),
        "; ".join([*shared[3:], *own]),
        f"score: `{record.primary_metric}`{_scored_by(dataset)}; test rows: {record.n_test:,}",
        f"access: {_access(record)}; licence: {record.licence}; <{record.url}>",
        *_rows(dataset),
        *(f"control for [{record.twin_of}](#{record.twin_of}), whose rows it asks in another form"
          for _ in [0] if record.twin_of),
        "cite: " + ", ".join(f"[{key}](#ref-{key})" for key in record.axis("citation")),
    ]  # fmt: skip
    doubts = [f"unsettled: {doubt}" for doubt in record.verify]
    return [
        f'<a id="{dataset.id}"></a>',
        "",
        f"### {_cell(record.name)}",
        "",
        record.summary,
        "",
        *(f"- {fact}" for fact in [*facts, *doubts]),
    ]


def _scored_by(dataset: Dataset) -> str:
    notes = ["given by judges"] if "judge" in dataset.blocks else []
    highest = dataset.metadata.oracle_max
    if highest == "per_document":
        notes.append("what a perfect answer gets depends on the rows")
    elif highest != 1:
        notes.append(f"a perfect answer gets {highest}")
    return f" ({'; '.join(notes)})" if notes else ""


def _rows(dataset: Dataset) -> list[str]:
    """Where its rows come from without asking anyone, and whether they are the suite's own."""
    source = dataset.blocks["rows"]
    facts = []
    if download := source.get("download"):
        name = download.get("repo") or download["test"][0].split("!")[0].rsplit("/", 1)[-1]
        facts.append(f"pinned download: `{name}` at `{str(download['revision'])[:12]}`")
    layouts, schemas = source.get("original", []), source.get("schemas", [])
    if any(item.get("rebuilt", True) for item in layouts) or any(item.get("rebuilt") for item in schemas):
        facts.append("*rebuilt* where rows come from the original source")
    return ["; ".join(facts)] if facts else []


# ---------------------------------------------------------------------- values


def _values(record: Metadata, axis: str) -> str:
    """The titles of an axis' values, with the mark and the suite's own value where they differ."""
    titles = ", ".join(_title(record, axis, value) for value in record.axis(axis))
    assigned = getattr(record, axis)
    return titles + (_mark(assigned) if hasattr(assigned, "assigned_by") else "")


def _title(record: Metadata, axis: str, value: str) -> str:
    if axis in _VOCABULARY:
        return vocabulary()[_VOCABULARY[axis]][value]
    if axis == "category":
        return taxonomy()[value]["title"]
    if axis == "subcategory" and record.category:
        return taxonomy()[record.category]["subcategories"][value]["title"]
    return _NAMES.get(value) or value.replace("_", " ").capitalize().replace(" qa", " QA")


def _access(record: Metadata) -> str:
    scoreable = ", scoreable" if record.access.scoreable else ""
    return record.access.value + scoreable + _mark(record.access)


def _mark(assigned: Access | Specialties | Stage) -> str:
    if assigned.assigned_by == "paper":
        return ""
    own, value = _listed(assigned.suite_value), _listed(assigned.value)
    return f" {ASSIGNED}" + (f" (suite: {_cell(', '.join(own))})" if own and own != value else "")


def _listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _reference(key: str) -> str:
    """A line of the list of references, with the anchor to which datasets link."""
    entry: Entry | None = citations().get(key)
    if entry is None:
        return f'- <a id="ref-{key}"></a>`{key}`: no entry yet in `citations.bib`'
    link = f" <{entry.link}>" if entry.link else ""
    doubt = " (not verified)" if entry.unverified else ""
    return f'- <a id="ref-{key}"></a>`{key}`: {entry.reference}{link}{doubt}'


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
