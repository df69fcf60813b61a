"""`dataset_kwargs.medtasks_dataset`: where rows come from and how a row becomes a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.tasks import describe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RowSchema(_Strict):
    """One schema that source rows may have, and how its columns become the prompt's fields.

    Attributes:
        columns: the columns that a row must have; the first schema whose columns are all there
            is used.
        fields: field -> Jinja expression over the columns, added to them.
        rebuilt: True where the suite drew its own test rows, so that rows taken from the source
            are not the official ones.
    """

    columns: list[str] = Field(min_length=1)
    fields: dict[str, str] = {}
    rebuilt: bool = False


class Download(_Strict):
    """Public files, pinned. `repo` is a dataset on the Hugging Face hub; without it files are URLs.

    A file may name a member of an archive: `Dataset.zip!NAME.json`. Where the source has one file
    and a list of official test ids, `test_ids` names that JSON (a list, or an object keyed by id);
    the other rows are the few-shot pool.
    """

    repo: str | None = None
    revision: str
    test: list[str] = Field(min_length=1)
    fewshot: list[str] = []
    test_ids: str | None = None


class Source(_Strict):
    """Where rows come from.

    Attributes:
        official_name: BRIDGE's own name of the task, which names its files.
        other_names: other spellings of it that occur in published files.
        rows: accepted row schemas besides BRIDGE's own.
        download: public files, if there are any.
        identity: the field by which a few-shot row is recognised among test rows.
        skip_blank: leave out rows in which this field is blank, as the suite does.
        option_trials: ask each question this many times with permuted options (MLB).
        max_test: evaluate at most this many test rows, drawn as HELM does (numpy seed 0).
    """

    official_name: str | None = None
    other_names: list[str] = []
    rows: list[RowSchema] = []
    download: Download | None = None
    identity: str = "input"
    skip_blank: str | None = None
    option_trials: int = Field(default=1, ge=1)
    max_test: int | None = None

    @model_validator(mode="after")
    def _has_schema(self) -> Source:
        if not self.official_name and not self.rows:
            raise ValueError("name the accepted row schemas under `rows`")
        return self


class Prompt(_Strict):
    """Jinja templates over a row's fields. `instruction` must place `{{ strategy }}`."""

    instruction: str
    instruction_role: Literal["system", "user"] = "user"
    input: str = "{{ input }}"
    target: str = "{{ output }}"

    @model_validator(mode="after")
    def _has_strategy(self) -> Prompt:
        if "{{ strategy }}" not in self.instruction + self.input:
            raise ValueError("place {{ strategy }} where the strategy line belongs")
        return self


class DatasetSpec(_Strict):
    """The whole block."""

    source: Source
    prompt: Prompt
    answer: dict[str, Any]


def dataset_spec(block: Mapping[str, Any], *, where: Path) -> DatasetSpec:
    """Validate the block.

    Raises:
        MedtasksError: an unknown key, a missing one, or a wrong value.
    """
    try:
        return DatasetSpec(**block)
    except ValidationError as error:
        raise MedtasksError(
            "; ".join(describe(item, "medtasks_dataset") for item in error.errors()),
            where=where,
            remedy="CONTRIBUTING.md shows a complete task file",
        ) from None
