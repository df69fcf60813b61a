"""Fine-tune a judge model on the data of `medtasks study judge`, with TRL.

python train.py --config qwen3_14b.yaml [--any_setting VALUE ...]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from datasets import Dataset, load_dataset
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config


@dataclass
class Data:
    """What is trained on."""

    train_file: str = field(metadata={"help": "train.jsonl of `medtasks study judge`."})
    eval_file: str | None = field(
        default=None, metadata={"help": "test.jsonl of the same, for the loss while training."}
    )
    chat_template_kwargs: dict[str, Any] | None = field(
        default=None,
        metadata={"help": "Arguments of the chat template, the same that the judge is asked with."},
    )


def load(path: str, data: Data) -> Dataset:
    """Prompts and completions; TRL takes the loss on the completion alone."""
    rows = load_dataset("json", data_files=path, split="train").select_columns(["prompt", "completion"])
    if data.chat_template_kwargs:
        rows = rows.add_column("chat_template_kwargs", [data.chat_template_kwargs] * len(rows))
    return rows


def check_lengths(rows: Dataset, tokenizer: PreTrainedTokenizerBase, data: Data, longest: int | None) -> None:
    """Stop where a row does not fit: cutting it would cut the verdict off."""
    lengths = [
        len(
            tokenizer.apply_chat_template(
                row["prompt"] + row["completion"],
                tokenize=True,
                return_dict=True,
                **(data.chat_template_kwargs or {}),
            )["input_ids"]
        )
        for row in rows
    ]
    print(f"{len(rows)} rows, {min(lengths)} to {max(lengths)} tokens, {sum(lengths)} in all", flush=True)
    if longest is not None and max(lengths) > longest:
        too_long = sum(length > longest for length in lengths)
        sys.exit(f"{too_long} rows are longer than max_length {longest}: raise it to {max(lengths)} or more")


def main() -> None:
    """Train, and save a model that `vllm serve` loads."""
    data, training, model = TrlParser((Data, SFTConfig, ModelConfig)).parse_args_and_config()
    training.model_init_kwargs = {"dtype": model.dtype, "revision": model.model_revision}
    tokenizer = AutoTokenizer.from_pretrained(model.model_name_or_path, revision=model.model_revision)
    rows = load(data.train_file, data)
    check_lengths(rows, tokenizer, data, training.max_length)
    trainer = SFTTrainer(
        model=model.model_name_or_path,
        args=training,
        train_dataset=rows,
        eval_dataset=load(data.eval_file, data) if data.eval_file else None,
        processing_class=tokenizer,
        peft_config=get_peft_config(model),
    )
    trainer.train(resume_from_checkpoint=training.resume_from_checkpoint)
    if model.use_peft:  # one plain model, which needs no adapter support where it is served
        trainer.model = trainer.accelerator.unwrap_model(trainer.model).merge_and_unload()
    trainer.save_model(training.output_dir)
    trainer.save_state()  # trainer_state.json: losses by step


if __name__ == "__main__":
    main()
