"""medtasks: medical LLM benchmarks as YAML tasks for lm-evaluation-harness."""

__version__ = "0.1.0"
