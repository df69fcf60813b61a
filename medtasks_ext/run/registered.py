"""lm-eval's models with a memory: `medtasks-NAME` is lm-eval's NAME, with `run=FOLDER` among its
arguments."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import private_files
from medtasks_ext.egress import addresses
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.lm import engine_of
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.run.lm import Remembering
from medtasks_ext.run.store import Answers
from medtasks_ext.runs.manifest import Identity, identity_of
from medtasks_ext.runs.secrets import note_secrets

PREFIX = "medtasks-"
#: The name that finds out by its address which interface a server has.
API = f"{PREFIX}api"
_CHAT, _TEXT = "local-chat-completions", "local-completions"
#: File of a folder that says whose answers it holds.
IDENTITY = "model.json"
_RUN_KEYS = ("batch_size", "max_batch_size", "device")


def register() -> None:
    """Add a model with a memory for each of lm-eval's, and the built-in ones."""
    import medtasks_ext.models  # noqa: F401  registers the built-in ones
    from medtasks_ext.harness import model_registry

    for name in [API.removeprefix(PREFIX), *model_registry.keys()]:
        if not name.startswith(PREFIX) and PREFIX + name not in model_registry:
            kind = type("RememberingModel", (_Remembered,), {"of": name})
            model_registry.register(PREFIX + name)(kind)


class _Remembered(Remembering):
    """What lm-eval makes of `--model medtasks-NAME --model_args run=FOLDER,…`."""

    of: str

    def __init__(self, run: str = "", **arguments: Any) -> None:
        if not run:
            raise MedtasksError(
                "the folder is missing that keeps the answers", where="--model_args", remedy="add run=FOLDER"
            )
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise MedtasksError(
                "several processes cannot write one folder",
                where=f"--model_args run={run}",
                remedy="start one process: a server at several addresses (base_url=URL+URL), or vLLM's"
                " data_parallel_size, uses several GPUs",
            )
        extra = {name: arguments.pop(name) for name in _RUN_KEYS if arguments.get(name) is not None}
        folder, of = Path(run), self.of
        if of == "api":
            of = _CHAT if "/chat/" in str(arguments.get("base_url")) else _TEXT
        note_secrets(arguments)
        model, engine = _loaded(of, arguments, extra)
        answers = Answers(folder)
        try:
            identity = _identity(folder, of, arguments, model)
        except BaseException:
            answers.close()
            raise
        for line in answers.damaged:
            print(f"medtasks: {folder}: {line} is damaged; its request is asked again")
        super().__init__(model, engine, answers, identity)
        atexit.register(self.close)


def _loaded(of: str, arguments: dict[str, Any], extra: dict[str, Any]) -> tuple[LM, Engine]:
    """A model of lm-eval, and the engine that answers with it."""
    from medtasks_ext.harness import get_model

    if of == "vllm":
        from medtasks_ext.engines.vllm import load

        loaded = load(arguments, extra)
        return loaded.lm, loaded
    urls = addresses(arguments.get("base_url"))
    given = {**arguments, **({"base_url": urls[0]} if urls else {})}
    model = get_model(of).create_from_arg_obj(given, extra)
    return model, engine_of(model, say=print, replicas=urls[1:])


def _identity(folder: Path, of: str, arguments: dict[str, Any], model: LM) -> str:
    """Digest of what tells a model's answers from those of another; the folder says it, and holds one."""
    info: dict[str, Any] = getattr(model, "get_model_info", dict)() or {}
    weights = {name: info[name] for name in ("model_sha", "peft_sha", "delta_sha") if info.get(name)}
    mine, path = identity_of(of, {**arguments, **weights}, {}), folder / IDENTITY
    if not path.is_file():
        with private_files(True):
            write_json(path, mine.model_dump())
    elif different := Identity(**read_json(path)).differs_from(mine):
        raise MedtasksError(
            f"{'; '.join(different)}: the folder holds other answers",
            where=path,
            remedy="name another folder, or ask as before",
        )
    return mine.digest
