"""What a run's folder holds: typed records with one reader and one writer.

RUN/run.json               the manifest: whose responses these are, what each task was asked, its state
RUN/answers.jsonl          every outcome, appended as it comes, and which hosts got text (`run.store`)
RUN/results_DATE.json      lm-eval's own file: all finished tasks, and their groups when a call has ended;
                           under `medtasks` intervals, conditions and tokens (`runs.records`)
RUN/samples_TASK_DATE.jsonl  lm-eval's own record per document, with the prompt as it was sent
RUN/tasks/TASK.npy         a task's score on each bootstrap resample, for the intervals of groups
RUN/tasks/TASK.parquet     what each document contributed to the score; no text
RUN/judgements/answers.jsonl  what judges said
RUN/sha256sums.txt         the hash of every file when the last call ended
RUN/.writing.lock          the process that writes to the folder

No file holds a key or password. Files that are not open are their owner's alone (0700, 0600).
"""
