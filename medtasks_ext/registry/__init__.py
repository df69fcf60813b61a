"""What tasks there are: YAML files, metadata, names, tags and groups."""

from medtasks_ext.registry.metadata import Metadata, taxonomy, vocabulary
from medtasks_ext.registry.tasks import (
    STRATEGIES,
    SUFFIX,
    Dataset,
    Registry,
    paper_datasets,
    registry,
    tasks_folder,
)

__all__ = [
    "STRATEGIES",
    "SUFFIX",
    "Dataset",
    "Metadata",
    "Registry",
    "paper_datasets",
    "registry",
    "tasks_folder",
    "taxonomy",
    "vocabulary",
]
