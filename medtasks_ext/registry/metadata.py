"""The metadata record of a task: strict, and the only place where a fact is written.

Tags, variants, groups, documentation and the axes of reports are derived from it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

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


def _in_vocabulary(axis: str) -> AfterValidator:
    def check(value: str) -> str:
        known = vocabulary()[axis]
        if value not in known:
            raise ValueError(f"{value!r} is not in the vocabulary of {axis}: {', '.join(known)}")
        return value

    return AfterValidator(check)


Language = Annotated[str, _in_vocabulary("languages")]
TaskType = Annotated[str, _in_vocabulary("task_types")]
Specialty = Annotated[str, _in_vocabulary("specialties")]
StageId = Annotated[str, _in_vocabulary("stages")]
AccessId = Annotated[str, _in_vocabulary("access")]
DocumentType = Annotated[str, _in_vocabulary("documents")]
Application = Annotated[str, _in_vocabulary("applications")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Assigned(_Strict):
    """A value on a shared axis, with the suite's own value and who made the match."""

    assigned_by: AssignedBy
    suite_value: str | list[str] | None = None


class Stage(Assigned):
    """Clinical stage."""

    value: StageId


class Specialties(Assigned):
    """Medical specialties; a task counts fully in each of them."""

    value: list[Specialty] = Field(min_length=1)


class Access(Assigned):
    """Who can get the data. `scoreable`: it is downloaded with its gold answers, without asking anyone."""

    value: AccessId
    scoreable: bool

    @model_validator(mode="after")
    def _open_if_scoreable(self) -> Access:
        if self.scoreable and self.value != "open":
            raise ValueError("scoreable means that anyone can download it: access must be open")
        return self


class Metadata(_Strict):
    """`metadata.medtasks` of a `zero_shot.yaml`."""

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
    citation: str
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
        required = {
            "bridge": ("application",),
            "medhelm": ("category", "subcategory"),
            "clinicbench": ("scenario", "clinical_task"),
            "mlb": ("domain", "dimension", "tertiary"),
        }[self.benchmark]
        missing = [key for key in required if getattr(self, key) is None]
        if missing:
            raise ValueError(f"{self.benchmark} tasks need: {', '.join(missing)}")
        if self.category is not None:
            known = taxonomy().get(self.category, {"subcategories": ()})["subcategories"]
            if self.subcategory not in known:
                raise ValueError(f"{self.category} / {self.subcategory} is not in taxonomy.yaml")
        return self

    def axis(self, name: str) -> list[str]:
        """The values of one axis as a list, whatever its shape (`[]` where the suite has none)."""
        value: Any = getattr(self, name)
        if isinstance(value, Assigned):
            value = value.value  # type: ignore[attr-defined]
        return (
            [] if value is None else [str(item) for item in (value if isinstance(value, list) else [value])]
        )
