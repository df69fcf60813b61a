"""The axes of reports: their titles, and those of their values."""

from __future__ import annotations

from medtasks_ext.registry.metadata import SUITE_TITLES, taxonomy, vocabulary
from medtasks_ext.report.groups import ALL

#: axis -> title, in the order of display
AXES = {
    ALL: "all tasks",
    "suite": "suite",
    "language": "language",
    "specialties": "specialty",
    "stage": "clinical stage",
    "task_type": "kind of task",
    "documents": "kind of document",
    "access": "access to the data",
    "application": "application (BRIDGE)",
    "category": "category (MedHELM)",
    "subcategory": "subcategory (MedHELM)",
    "scenario": "scenario (ClinicBench)",
    "clinical_task": "task (ClinicBench)",
    "domain": "domain (MLB)",
    "dimension": "dimension (MLB)",
    "tertiary": "scenario (MLB)",
}
#: The axes that terminals show, those of the suites' own tables; the files have all of them.
MAIN_AXES = {
    "bridge": ("language", "task_type"),
    "medhelm": ("category",),
    "clinicbench": ("scenario",),
    "mlb": ("dimension",),
}
#: axis -> its list in the vocabulary
_VOCABULARY = {
    "language": "languages",
    "specialties": "specialties",
    "stage": "stages",
    "task_type": "task_types",
    "documents": "documents",
    "application": "applications",
}
_TITLES = {
    (ALL, ALL): "all tasks (plain mean)",
    **{("suite", suite): title for suite, title in SUITE_TITLES.items()},
    **{("access", value): value for value in ("open", "gated", "private")},
    ("domain", "fundcap"): "FundCap",
    ("domain", "scenecap"): "SceneCap",
    ("dimension", "medkqa"): "MedKQA",
    ("dimension", "medse"): "MedSE",
    ("dimension", "medru"): "MedRU",
    ("dimension", "smartserv"): "SmartServ",
    ("dimension", "smartcare"): "SmartCare",
}


def title(axis: str, value: str) -> str:
    """The title of a value of an axis."""
    if known := _TITLES.get((axis, value)) or vocabulary().get(_VOCABULARY.get(axis, ""), {}).get(value):
        return known
    categories = taxonomy()
    if axis == "category" and value in categories:
        return categories[value]["title"]
    for category in categories.values() if axis == "subcategory" else ():
        if value in category["subcategories"]:
            return category["subcategories"][value]["title"]
    return value.replace("_", " ").capitalize()


def order(axis: str, value: str) -> tuple[int, str]:
    """For sorting values as the README and the vocabulary list them, others by name."""
    known = list(SUITE_TITLES if axis == "suite" else vocabulary().get(_VOCABULARY.get(axis, ""), {}))
    return (known.index(value) if value in known else len(known), value)
