"""The pages of the catalogue of the documentation's site: every dataset with its metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from medtasks_ext.registry.columns import BibEntry, entries_of
from medtasks_ext.registry.groups import Registry
from medtasks_ext.registry.metadata import Metadata, terms_words
from medtasks_ext.registry.suites import TERMS, Suite
from medtasks_ext.registry.tasks import Dataset, rows_words, scored_by_words
from medtasks_ext.tables import cell, table

#: axes that the index counts: metadata field -> heading, column
_INDEXED = {
    "language": ("Languages", "language"),
    "task_type": ("Task types", "task type"),
    "stage": ("Clinical stages", "stage"),
    "specialties": ("Specialties", "specialty"),
}
#: what marks a value that the suite's paper does not give
ASSIGNED = "†"
_LEGEND = f"""- {ASSIGNED}: assigned by medtasks, where the paper gives no value or one outside the shared
  vocabulary; the suite's own value stands behind it if it is another.
- *test rows*: as the paper states.
- *version*: scores are comparable where the numbers before the hyphen are the same.
- rebuilt: rows can be made from the original source; such rows are not the suite's own test rows, and
  results say so."""


def pages(registry: Registry) -> dict[str, str]:
    """The pages of the catalogue, file name -> content: an index, and a page per suite."""
    suites = [(suite, registry.datasets_of(suite)) for suite in registry.suites.values()]
    return {"README.md": _index(suites)} | {
        f"{suite.id}.md": _page(suite, datasets) for suite, datasets in suites
    }


# ---------------------------------------------------------------------- index


#: suites with the records that count, in the order of display
_Counted = list[tuple["Suite", "list[Metadata]"]]


def _index(suites: list[tuple[Suite, list[Dataset]]]) -> str:
    counted = [(suite, [item.metadata for item in items if item.metadata.grouped]) for suite, items in suites]
    every = {item.id: item for _, items in suites for item in items}
    lines = [
        "# Catalogue",
        "",
        "Every dataset with what is known of it. Each is a task in zero-shot, chain-of-thought (`TASK_cot`)",
        "and 5-shot (`TASK_5shot`). `medtasks ls` filters by the same facts; `medtasks card` writes BibTeX.",
        "",
        *table(
            ["suite", "datasets", "open", "of them scoreable", "gated", "private"],
            [_access_row(suite, records) for suite, records in counted],
        ),
    ]
    for axis, (title, _) in _INDEXED.items():
        lines += ["", f"## {title}", "", *_axis_table(axis, counted)]
    lines += ["", "A dataset of several specialties counts in each of them.", "", "## References", ""]
    entries = entries_of(every.values(), [suite for suite, _ in suites])
    lines += [_reference(suite.citation, entries) for suite, _ in suites if suite.citation]
    return "\n".join(lines) + "\n"


def _access_row(suite: Suite, records: list[Metadata]) -> list[str]:
    access = Counter(record.access for record in records)
    scoreable = sum(record.scoreable for record in records)
    counts = [len(records), access["open"], scoreable, access["gated"], access["private"]]
    return [f"[{suite.title}]({suite.id}.md)", *(str(count) for count in counts)]


def _axis_table(axis: str, counted: _Counted) -> list[str]:
    counts = [Counter(value for record in records for value in record.axis(axis)) for _, records in counted]
    titles = {value: title for suite, _ in counted for value, title in suite.terms(TERMS[axis]).items()}
    values = ((suite, value) for (suite, _), count in zip(counted, counts, strict=True) for value in count)
    titles |= {value: suite.title_of_value(axis, value) for suite, value in values if value not in titles}
    rows = [
        [title, *(str(count[value] or "") for count in counts)]
        for value, title in titles.items()
        if any(count[value] for count in counts)
    ]
    return table([_INDEXED[axis][1], *(suite.title for suite, _ in counted)], rows)


# ---------------------------------------------------------------------- a suite's page


def _page(suite: Suite, datasets: list[Dataset]) -> str:
    n_controls = sum(item.metadata.control_of is not None for item in datasets)
    n_drafts = sum(item.metadata.draft is not None for item in datasets)
    lines = [
        f"# {suite.title}",
        "",
        f"{len(datasets) - n_controls - n_drafts} datasets"
        + (f" and {n_controls} control outside all groups" if n_controls else "")
        + (
            f" and {'1 draft' if n_drafts == 1 else f'{n_drafts} drafts'} outside all groups"
            if n_drafts
            else ""
        )
        + (f" ([{suite.citation}](#ref-{suite.citation})). " if suite.citation else ". ")
        + "[All suites](README.md).",
        "",
        _LEGEND,
    ]
    for value, title in suite.titles(suite.sections).items():
        if items := [item for item in datasets if value in item.metadata.axis(suite.sections)]:
            lines += ["", f"## {title}", "", *_overview(suite, items)]
    lines += ["", "## Datasets"]
    for item in datasets:
        lines += ["", *_section(item)]
    keys = {suite.citation, *(key for item in datasets for key in item.metadata.axis("citation"))} - {""}
    entries = entries_of(datasets, [suite])
    lines += ["", "## References", "", *(_reference(key, entries) for key in sorted(keys))]
    return "\n".join(lines) + "\n"


def _overview(suite: Suite, datasets: list[Dataset]) -> list[str]:
    rows = [
        [
            f"[{item.metadata.name}](#{item.id})",
            item.metadata.language,
            f"`{item.metadata.primary_metric}`",
            f"{item.metadata.n_test:,}",
            _access(item.metadata),
        ]
        for item in datasets
    ]
    return table(["dataset", "language", "score", "test rows", "access"], rows)


def _section(dataset: Dataset) -> list[str]:
    record = dataset.metadata
    shared = [
        f"{axis.replace('_', ' ')}: {_values(record, axis)}"
        for axis in ("language", "task_type", "document_types", "stage", "specialties")
    ]
    own = [f"{dataset.suite.title_of(axis)}: {_values(record, axis)}" for axis in dataset.suite.axes]
    facts = [
        f"task `{dataset.id}`, version {dataset.version}; [files](../../tasks/{dataset.suite.id}/"
        f"{dataset.folder.name})",
        "; ".join(shared[:3]),
        "; ".join([*shared[3:], *own]),
        f"score: `{record.primary_metric}`{scored_by_words(dataset)}; test rows: {record.n_test:,}",
        *(f"official budget: {record.official_budget:,} tokens" for _ in [0] if record.official_budget),
        *("the paper's zero-shot prompt asks to reason first: its scores stand beside the chain of thought"
          for _ in [0] if record.published_strategy == "cot"),
        f"access: {_access(record)}; <{record.url}>",
        f"licence: {terms_words(record, link='<{}>')}",
        *rows_words(dataset),
        *(f"control for [{record.control_of}](#{record.control_of}), whose rows it asks in another form"
          for _ in [0] if record.control_of),
        *(f"**draft**, in no group: {record.draft}" for _ in [0] if record.draft),
        *("cite: " + ", ".join(f"[{key}](#ref-{key})" for key in cited)
          for cited in [record.axis("citation")] if cited),
    ]  # fmt: skip
    doubts = [f"unsettled: {doubt}" for doubt in record.open_questions]
    return [
        f'<a id="{dataset.id}"></a>',
        "",
        f"### {cell(record.name)}",
        "",
        record.summary,
        "",
        *(f"- {fact}" for fact in [*facts, *doubts]),
    ]


# ---------------------------------------------------------------------- values


def _values(record: Metadata, axis: str) -> str:
    shown = ", ".join(record.declared.title_of_value(axis, value) for value in record.axis(axis))
    return shown + (_mark(record, axis) if axis in ("specialties", "stage") else "")


def _access(record: Metadata) -> str:
    return record.access + (", scoreable" if record.scoreable else "") + _mark(record, "access")


def _mark(record: Metadata, axis: str) -> str:
    if record.assigned_by(axis) == "paper":
        return ""
    own = record.own_terms(axis)
    return f" {ASSIGNED}" + (f" (suite: {cell(', '.join(own))})" if own and own != record.axis(axis) else "")


def _reference(key: str, entries: Mapping[str, BibEntry]) -> str:
    """A line of the list of references, with the anchor to which datasets link."""
    entry = entries.get(key)
    if entry is None:
        return f'- <a id="ref-{key}"></a>`{key}`: no entry yet'
    link = f" <{entry.link}>" if entry.link else ""
    doubt = " (not verified)" if entry.unverified else ""
    return f'- <a id="ref-{key}"></a>`{key}`: {entry.reference}{link}{doubt}'
