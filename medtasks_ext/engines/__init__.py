"""Requests in, outcomes out in the order in which they finish: vLLM, APIs, lm-eval's other models."""

from medtasks_ext.engines.engine import Done, Engine, Feed
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Prompt, Request, Usage

__all__ = [
    "Answer",
    "Done",
    "Engine",
    "Fault",
    "FaultKind",
    "Feed",
    "Outcome",
    "Prompt",
    "Request",
    "Usage",
]
