"""What to say when data is not at hand."""

from __future__ import annotations

from collections.abc import Iterable

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, Registry, registry
from medtasks_ext.rows.folders import data_dir
from medtasks_ext.rows.places import places
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import find_origin
from medtasks_ext.rows.spec import Source, dataset_spec


def origin_of(dataset: Dataset, forced: Origin | None) -> Origin | None:
    return find_origin(dataset, source_of(dataset), forced)


def source_of(dataset: Dataset) -> Source:
    return dataset_spec(dataset).rows


def where_it_goes(dataset: Dataset) -> str:
    """One line: who grants access, and where the files go."""
    metadata = dataset.metadata
    folders = dict.fromkeys(place.short for place in places(dataset, source_of(dataset)))
    download = source_of(dataset).download
    click = f"; or accept its terms: medtasks data fetch --accept {dataset.id}" if download else ""
    return f"{dataset.id} ({metadata.access}): from {metadata.url}; files go to {' or '.join(folders)}{click}"


def missing_data(dataset: Dataset, forced: Origin | None) -> MedtasksError:
    """The error for one dataset that is not at hand. It names the others of the suite, too.

    lm-eval stops at the first error, after the model was loaded; whoever reads it should not have
    to find the next missing dataset by another run.
    """
    suite = [item for item in siblings_of(dataset) if item.metadata.suite == dataset.metadata.suite]
    others = [item.id for item in suite if item != dataset and origin_of(item, forced) is None]
    mode = f" as {forced}" if forced else ""
    name = dataset.metadata.suite
    rest = f"\n  {len(others)} further datasets of {name} are missing: {', '.join(others)}" if others else ""
    return MedtasksError(
        f"{dataset.id} is not at hand{mode}, below {data_dir() or '$MEDTASKS_DATA_DIR, which is not set'}"
        f"\n  {where_it_goes(dataset)}{rest}",
        remedy="lm_eval stops here; `medtasks run` with the same --tasks runs what is there"
        f"\n  → `medtasks data status {dataset.id}` says how to get the data"
        "\n  → try all tasks on synthetic rows: add --metadata data=sample",
    )


def siblings_of(dataset: Dataset) -> Iterable[Dataset]:
    """The datasets of the registry that it belongs to; of a folder outside the registry those beside it."""
    tasks = registry()
    known = tasks if dataset in tasks.datasets.values() else Registry(dataset.folder.parents[1])
    return known.datasets.values()
