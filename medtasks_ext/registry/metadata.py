"""The metadata record of a task: strict, and the only place where a fact is written.

Tags, variants, groups, documentation and the axes of reports are derived from it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field, model_validator
from pydantic_core import core_schema

from medtasks_ext.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Iterable

VOCABULARY_FILE = Path(__file__).parent / "vocabulary.yaml"
TAXONOMY_FILE = Path(__file__).parent / "taxonomy.yaml"

Benchmark = Literal["bridge", "medhelm", "clinicbench", "mlb"]
AssignedBy = Literal["paper", "medtasks"]


@lru_cache(maxsize=1)
def vocabulary() -> dict[str, dict[str, str]]:
    """The controlled vocabulary: axis -> value id -> title."""
    return yaml.safe_load(VOCABULARY_FILE.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def taxonomy() -> dict[str, Any]:
    """MedHELM's taxonomy: category -> {title, subcategories: {id: {title, tasks}}}."""
    return yaml.safe_load(TAXONOMY_FILE.read_text(encoding="utf-8"))


#: The axes that a suite's tasks have beside the shared ones.
SUITE_KEYS: dict[str, tuple[str, ...]] = {
    "bridge": ("application",),
    "medhelm": ("category", "subcategory"),
    "clinicbench": ("scenario", "clinical_task"),
    "mlb": ("domain", "dimension", "tertiary"),
}
#: Suites as their papers write them, in the order of display.
SUITE_TITLES = {"bridge": "BRIDGE", "medhelm": "MedHELM", "clinicbench": "ClinicBench", "mlb": "MLB"}


@dataclass(frozen=True)
class _InVocabulary:
    """Marks a text that must be a value of one axis; editors get the list from the JSON Schema."""

    axis: str

    def check(self, value: str) -> str:
        known = vocabulary()[self.axis]
        if value not in known:
            raise ValueError(
                f"{value!r} is not in the vocabulary of {self.axis}{near(value, known)}: {', '.join(known)}"
            )
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        values = vocabulary()[self.axis]
        return {"type": "string", "enum": list(values), "enumDescriptions": list(values.values())}


def near(value: str, known: Iterable[str]) -> str:
    """` (did you mean …?)` for a value that resembles a known one, else nothing."""
    close = difflib.get_close_matches(value, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _not_in_taxonomy(what: str, value: str, known: Iterable[str]) -> str:
    return f"{what} {value!r} is not in taxonomy.yaml{near(value, known)}: {', '.join(known)}"


Language = Annotated[str, _InVocabulary("languages")]
TaskType = Annotated[str, _InVocabulary("task_types")]
Specialty = Annotated[str, _InVocabulary("specialties")]
StageId = Annotated[str, _InVocabulary("stages")]
AccessId = Annotated[str, _InVocabulary("access")]
DocumentType = Annotated[str, _InVocabulary("documents")]
Application = Annotated[str, _InVocabulary("applications")]


class Assigned(Strict):
    """A value on a shared axis, with the suite's own value and who made the match."""

    assigned_by: AssignedBy = Field(description="paper if the suite's paper gives the value, else medtasks")
    suite_value: str | list[str] | None = Field(
        default=None, description="the suite's own value, where it differs"
    )


class Stage(Assigned):
    """Clinical stage.

    Attributes:
        value: the stage.
    """

    value: StageId


class Specialties(Assigned):
    """Medical specialties; a task counts fully in each of them.

    Attributes:
        value: the specialties.
    """

    value: list[Specialty] = Field(min_length=1)


class Access(Assigned):
    """Who can get the data.

    Attributes:
        value: open, gated or private.
        scoreable: whether it is downloaded with its gold answers, without asking anyone.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"scoreable": {"const": True}}, "required": ["scoreable"]},
            "then": {"properties": {"value": {"const": "open"}}},
        }
    )

    value: AccessId
    scoreable: bool

    @model_validator(mode="after")
    def _open_if_scoreable(self) -> Access:
        if self.scoreable and self.value != "open":
            raise ValueError("scoreable means that anyone can download it: access must be open")
        return self


def _suite_rules(schema: dict[str, Any]) -> None:
    """What `Metadata` asks of single suites, in JSON Schema."""
    properties, categories = schema["properties"], taxonomy()
    properties["category"] = {"enum": [*categories, None]}
    rules = [
        *(("benchmark", suite, {"required": list(keys)}) for suite, keys in SUITE_KEYS.items()),
        *(
            ("category", name, {"properties": {"subcategory": {"enum": list(category["subcategories"])}}})
            for name, category in categories.items()
        ),
    ]
    schema["allOf"] = [
        {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": rule}
        for key, value, rule in rules
    ]


class Metadata(Strict):
    """`about` of a task file.

    Attributes:
        benchmark: the suite.
        name: the suite's own name of the dataset.
        summary: one sentence: what goes in, what comes out.
        language: of the documents.
        task_type: what is done with a document.
        documents: the kinds of documents.
        specialties: medical specialties.
        stage: clinical stage.
        access: who can get the data.
        url: where the data is.
        licence: the terms under which it is.
        citation: BibTeX key of its source, or several; `registry/citations.bib` has the entries.
        n_test: number of test documents that the paper states.
        primary_metric: the metric that `score` repeats.
        oracle_max: what a perfect answer gets; 1 unless the official rule prevents it; `unbounded` if it can
            exceed 1; `per_document` if it depends on the rows, and the answer format knows.
        verify: what could not be settled, one sentence each.
        application: BRIDGE's clinical application.
        category: MedHELM's category.
        subcategory: MedHELM's subcategory.
        scenario: ClinicBench's scenario.
        clinical_task: ClinicBench's task.
        in_scenario_average: whether ClinicBench's average of the scenario counts the dataset.
        twin_of: the dataset whose rows this one asks in another form, as a control; it belongs to no group.
        domain: MLB's domain.
        dimension: MLB's dimension.
        tertiary: MLB's scenario within the dimension.
    """

    model_config = ConfigDict(json_schema_extra=_suite_rules)

    benchmark: Benchmark
    name: str
    summary: str
    language: Language
    task_type: TaskType
    documents: list[DocumentType] = Field(min_length=1)
    specialties: Specialties
    stage: Stage
    access: Access
    url: str
    licence: str
    citation: str | Annotated[list[str], Field(min_length=1)]
    n_test: int
    primary_metric: str
    oracle_max: float | Literal["unbounded", "per_document"] = 1.0
    verify: list[str] = []

    # axes of single suites
    application: Application | None = None
    category: str | None = None
    subcategory: str | None = None
    scenario: str | None = None
    clinical_task: str | None = None
    in_scenario_average: bool = True
    twin_of: str | None = None
    domain: str | None = None
    dimension: str | None = None
    tertiary: str | None = None

    @model_validator(mode="after")
    def _suite_axes(self) -> Metadata:
        missing = [key for key in SUITE_KEYS[self.benchmark] if getattr(self, key) is None]
        if missing:
            raise ValueError(f"{self.benchmark} tasks need: {', '.join(missing)}")
        if self.category is not None:
            categories = taxonomy()
            if self.category not in categories:
                raise ValueError(_not_in_taxonomy("category", self.category, categories))
            known = categories[self.category]["subcategories"]
            if self.subcategory not in known:
                raise ValueError(_not_in_taxonomy("subcategory", str(self.subcategory), known))
        return self

    def axis(self, name: str) -> list[str]:
        """The values of one axis as a list, whatever its shape (`[]` where the suite has none)."""
        value: Any = getattr(self, name)
        if isinstance(value, Assigned):
            value = value.value  # type: ignore[attr-defined]
        return (
            [] if value is None else [str(item) for item in (value if isinstance(value, list) else [value])]
        )
