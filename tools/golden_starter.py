"""Starts commands as the installed console scripts do, each in a fork, so that imports are paid for once.

Run by the Python of the environment under test. Reads a JSON object a line from standard input
(`command`, `cwd`, `env`, `out`, `err`), answers each with a line {"pid": …} when it has begun and a line
{"code": …} when it has ended. Knows nothing of medtasks but the name of its script.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

#: Of other packages, those whose import takes long. What is not installed is left out.
HEAVY = (
    "numpy", "pandas", "scipy.stats", "pyarrow.parquet", "pyarrow.csv", "sklearn.metrics",
    "sklearn.preprocessing", "nltk", "sacrebleu", "rouge_score.rouge_scorer", "datasets",
    "lm_eval.evaluator", "lm_eval.models.api_models", "lm_eval.models.openai_completions", "aiohttp",
    "typer", "rich.console", "rich.table", "jinja2", "pydantic", "yaml",
)  # fmt: skip


def main() -> None:
    """Serve until standard input ends."""
    for name in HEAVY:
        with suppress(Exception):
            importlib.import_module(name)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what an import prints is no reply
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            replies.close()
            call(wanted)
        replies.write(json.dumps({"pid": child}) + "\n")
        _, status, used = os.wait4(child, 0)
        seconds = used.ru_utime + used.ru_stime
        replies.write(json.dumps({"code": os.waitstatus_to_exitcode(status), "seconds": seconds}) + "\n")


def call(wanted: dict[str, Any]) -> None:
    """Be the command; ends the process as the script would."""
    os.setsid()
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    for number, name in ((0, os.devnull), (1, wanted["out"]), (2, wanted["err"])):
        kind = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = os.open(name, kind, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False)
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    script, *arguments = wanted["command"]
    sys.argv = [str(Path(sys.executable).parent / script), *arguments]
    if "golden-memory" in arguments:
        _register_memory()
    [found] = entry_points(group="console_scripts", name=script)
    sys.exit(found.load()())


def _register_memory() -> None:
    """A model of lm-eval that continues texts by a rule, with a tokenizer of words: for probes of memory."""
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    class Words:
        clean_up_tokenization_spaces = False

        def __init__(self) -> None:
            self._ids: dict[str, int] = {}
            self._words: list[str] = []

        def encode(self, text: str, **_: Any) -> list[int]:
            import re

            words = re.findall(r"\s*\w+|\s*\W", text)
            for word in words:
                if word not in self._ids:
                    self._ids[word] = len(self._words)
                    self._words.append(word)
            return [self._ids[word] for word in words]

        def decode(self, ids: list[int], **_: Any) -> str:
            return "".join(self._words[item] for item in ids)

    @register_model("golden-memory")
    class Memory(LM):  # type: ignore[misc]
        """Says again the words of the prompt that came after its last word before, else three dots."""

        def __init__(self, name: str = "memory", **_: Any) -> None:
            super().__init__()
            self.tokenizer = Words()

        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            answers = []
            for prompt, settings in (request.args for request in requests):
                ids = self.tokenizer.encode(prompt)
                place = ids.index(ids[-1]) + 1 if ids else 0
                more = (ids[place:] * 5)[: settings["max_gen_toks"]]
                answers.append(self.tokenizer.decode(more) or " ...")
            return answers

        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood


if __name__ == "__main__":
    main()
