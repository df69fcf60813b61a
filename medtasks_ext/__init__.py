"""medtasks: medical LLM benchmarks as YAML tasks for lm-evaluation-harness.

Rows become prompts, prompts documents, documents requests; engines give outcomes, answers are read from
them, metrics make scores of answers, results roll scores up. People write data, not code: `suite.yaml`,
`task.yaml`, `card.yaml`, `sample.jsonl`. The code reads these, and builds the files that lm-eval indexes.

A document's way:

1. lm-eval reads the built file of a task, which includes the hand-written one, and builds
   `task.MedicalTask`; `medtasks run` builds the same class from `task.yaml` itself.
2. `rows.sources` finds the rows, `rows.fields` matches columns with an accepted schema, checks them and
   derives fields.
3. `prompts.pool` says which rows are examples, `prompts.render` lays out the turns and reads the gold.
4. `runner.asking` makes a request of each prompt, cut to the context by BRIDGE's rule; an engine answers,
   and `runs` stores the outcome.
5. The filter `answer` reads each response by the same format as the gold.
6. `process_results` of a family turns answer and gold into values; corpus-level metrics return counts, which
   aggregations pool.

How far it walks, counted by `tools/walk.py` as changes from one room to another: one
document of MedQA (`run --limit 1 --model oracle --data sample --prompts own`) takes some 840, half of them
for the table at its end, which is the report's first screen. A report on it takes some 450 in the terminal,
and some 2,700 with its page, which describes every dataset.

Choices worth knowing:

- A run calls lm-eval's evaluator once for each task, in a thread of its own, with a model that looks answers
  up and has the engine, in the main thread, asked for the rest; one task is built, one scored at a time.
- Equal beginnings are asked together: each task is kept together, and strategies of one dataset whose prompts
  share 2,000 characters of a record are asked in turn (`runner/asking.py`). Only the order differs.
- What follows is built, not kept: tags, groups, strategies and schema are never committed; pages
  of reference are.
- A suite is data: no code names one. What only one suite needs stands in a module of `suites`, which
  `suite.yaml` names.
- `tasks.lock` has hashes of sample rows, their prompts and scores of fixed responses: if these change and
  `N` does not, a check fails.
- Umbrella groups hold partitions only: lm-eval averages over all leaves, so each task must occur equally
  often.
"""

from medtasks_ext.version import __version__

__all__ = ["__version__"]
