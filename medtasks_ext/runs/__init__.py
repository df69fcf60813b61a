"""What a run's folder holds: typed records with one reader and one writer.

RUN/run.json               the manifest: whose responses these are, the state of every task, sealed heads
RUN/responses/TASK.jsonl   every outcome, appended as it comes, each line chained to the one before it; the
                           first says whose they are
RUN/prompts/TASK.jsonl     prompts as they were sent, until the task is scored; TASK.earlier.jsonl: those of
                           batch files whose documents are not chosen any more
RUN/tasks/TASK.json        metrics, their intervals, conditions, configuration and what was loaded
RUN/tasks/TASK.npy         its score on each bootstrap resample, for the intervals of groups
RUN/tasks/TASK.parquet     what each document contributed to the score; no text
RUN/samples_TASK.jsonl     lm-eval's record per document
RUN/results.json           all finished tasks together, in lm-eval's layout
RUN/judgements/TASK.jsonl  what judges said, in lines of the same form
RUN/sent.jsonl             which host got text of which dataset
RUN/seal.jsonl             what every file holds, and the roots of the folder's states
RUN/.lease                 the process that writes to the folder
"""

from medtasks_ext.runs.lease import Lease
from medtasks_ext.runs.manifest import RUN_SCHEMA, Identity, Manifest, Session, TaskEntry, TaskState
from medtasks_ext.runs.outcomes import (
    About,
    Binding,
    Intent,
    Judgement,
    OutcomeLog,
    Seal,
    Stored,
    read_outcomes,
)
from medtasks_ext.runs.seal import Journal, RunLease

__all__ = [
    "RUN_SCHEMA",
    "About",
    "Binding",
    "Identity",
    "Intent",
    "Journal",
    "Judgement",
    "Lease",
    "Manifest",
    "OutcomeLog",
    "RunLease",
    "Seal",
    "Session",
    "Stored",
    "TaskEntry",
    "TaskState",
    "read_outcomes",
]
