"""vLLM in this process, or one vLLM per replica: `load` is what the command line calls."""

from medtasks_ext.engines.vllm.engine import VllmEngine
from medtasks_ext.engines.vllm.load import load

__all__ = ["VllmEngine", "load"]
