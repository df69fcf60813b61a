"""The base of what users write: task files, juries, forms."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Refuses fields that it does not know, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
