"""Usage statistics of the packages that medtasks calls: off, unless the user has set them otherwise."""

from __future__ import annotations

import os

#: Variable -> the value that switches reports off. Each is read by a package that medtasks may import.
SWITCHES = {
    "DO_NOT_TRACK": "1",  # huggingface_hub and all that ask it, vLLM
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, transformers, trl
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # datasets and evaluate: a request per dataset or metric loaded
    "VLLM_NO_USAGE_STATS": "1",  # vLLM
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray, which vLLM uses on several machines
}


def switch_off_telemetry() -> None:
    """Must be called before those packages are imported. Variables that are set are left as they are."""
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)
