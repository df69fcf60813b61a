"""What a task file may say at its top level."""

from __future__ import annotations

import re

from medtasks_ext.jsonfile import Json
from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.registry.metadata import TaskFacts

TEXT, LIST, MAPPING = {"type": "string"}, {"type": "array"}, {"type": "object"}
#: What a task file may say at its top level: `include`, keys of lm-eval's `TaskConfig` and of the class.
TASK_KEYS: dict[str, Json] = {
    "include": {"type": ["string", "array"], "description": "Another task file, whose keys are taken over."},
    "task": {**TEXT, "pattern": "^[a-z0-9]+(_[a-z0-9]+)+$", "description": "SUITE_DATASET"},
    "task_alias": TEXT,
    "class": {
        **TEXT,
        "pattern": f"^(!function )?{re.escape(TASK_CLASS)}$",
        "description": f"The class of all tasks: !function {TASK_CLASS}",
    },
    "dataset": {**TEXT, "description": "The folder of the dataset: SUITE/DATASET."},
    "strategy": {
        "enum": ["zero_shot"],
        "description": "`medtasks dev build` writes the others.",
    },
    "tag": {"type": ["string", "array"], "description": "Derived from the facts; do not write tags."},
    "training_split": TEXT,
    "validation_split": TEXT,
    "test_split": TEXT,
    "fewshot_split": TEXT,
    "process_docs": TEXT,
    "doc_to_text": TEXT,
    "doc_to_target": TEXT,
    "doc_to_image": TEXT,
    "doc_to_audio": TEXT,
    "doc_to_choice": {"type": ["string", "object", "array"]},
    "unsafe_code": {"type": "boolean"},
    "process_results": {**TEXT, "description": "Answer and gold to values; `!function` and its name."},
    "use_prompt": TEXT,
    "description": TEXT,
    "target_delimiter": TEXT,
    "fewshot_delimiter": TEXT,
    "fewshot_config": MAPPING,
    "num_fewshot": {"type": "integer", "minimum": 0},
    "metric_list": {**LIST, "description": "Metrics and how each is aggregated."},
    "output_type": TEXT,
    "generation_kwargs": {**MAPPING, "description": "Settings of generation, such as max_gen_toks."},
    "repeats": {"type": "integer", "minimum": 1},
    "filter_list": LIST,
    "should_decontaminate": {"type": "boolean"},
    "doc_to_decontamination_query": TEXT,
    "gen_prefix": TEXT,
    "metadata": MAPPING,
    "rows": MAPPING,
    "prompt": MAPPING,
    "answer": MAPPING,
    "judge": MAPPING,
    "official": MAPPING,
    "about": MAPPING,
    **{name: {} for name in TaskFacts.model_fields},
}
