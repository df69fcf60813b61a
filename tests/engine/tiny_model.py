"""A tiny random Llama with a tokenizer and a chat template, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
#: a template that refuses a system turn, as some models' do
TEMPLATE_WITHOUT_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system turn') }}{% endif %}" + TEMPLATE
)
LINES = [
    "患者发热三天，伴咳嗽咳痰，无胸痛。",
    "The patient is a 67-year-old man with chest pain.",
    "entity: 头晕, type: symptom, status: 病人-阳性;",
    "department: 内科",
    "Answer with the letter A or B.",
]


#: tokens of a greedy reply of a model that ends
RUNGS = 24


def make(
    folder: Path, *, template: str = TEMPLATE, context: int = 16384, ends: bool = False, layers: int = 2
) -> Path:
    """Write model and tokenizer to a folder and return it.

    A random model hardly ever writes its end token. One that `ends` does after some tens of tokens, greedy
    or sampled, so that it can be asked with the token budgets of real models. Without a layer the last token
    alone decides what follows, and long prompts cost next to nothing.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<unk>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(LINES, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    fast.chat_template = template
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=context,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
    )
    model = LlamaForCausalLM(config).to(torch.float32)
    if ends:
        _lead_to_the_end(model, fast.eos_token_id, n_special=len(special))
    model.save_pretrained(folder)
    return folder


def _lead_to_the_end(model: LlamaForCausalLM, end: int, n_special: int) -> None:
    """Put the tokens on the rungs of a ladder: each is followed by one of the next rung, the last by the end.

    Which token of the rung it is, the random layers decide, and so the prompt.
    """
    import torch

    into, out = model.model.embed_tokens.weight, model.lm_head.weight
    with torch.no_grad():
        out *= 10
        out[:, :RUNGS] = 0
        for token in range(len(into)):
            rung = token % RUNGS
            into[token, rung] = 1
            if token >= n_special and rung > 0:
                out[token, rung - 1] = 0.5
        out[end, RUNGS - 1] = 0.5


def make_babbler(folder: Path, pieces: list[str]) -> Path:
    """Write a model that says the same pieces, a token each, over and over, whatever it is asked."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    make(folder, layers=1)
    fast = AutoTokenizer.from_pretrained(folder)
    fast.add_tokens(pieces)
    fast.save_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(fast))
    into, out, layer = model.model.embed_tokens.weight, model.lm_head.weight, model.model.layers[0]
    said = fast.convert_tokens_to_ids(pieces)
    with torch.no_grad():
        for weight in (into, out, layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight):
            weight.zero_()  # so that the last token alone decides
        into[:, len(said) - 1] = 1
        for place, token in enumerate(said):
            into[token] = 0
            into[token, place] = out[token, (place - 1) % len(said)] = 1
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    import sys

    make(Path(sys.argv[1]))
