"""What tasks there are: YAML files, metadata, names and groups."""

from medtasks_ext.registry.blocks import AnswerBudget
from medtasks_ext.registry.folders import tasks_folder
from medtasks_ext.registry.groups import Registry, forget, registry, suites
from medtasks_ext.registry.metadata import Metadata
from medtasks_ext.registry.strategies import STRATEGIES, SUFFIX
from medtasks_ext.registry.suites import Suite, vocabulary
from medtasks_ext.registry.tasks import Dataset

__all__ = [
    "STRATEGIES",
    "SUFFIX",
    "AnswerBudget",
    "Dataset",
    "Metadata",
    "Registry",
    "Suite",
    "forget",
    "registry",
    "suites",
    "tasks_folder",
    "vocabulary",
]
