"""`medtasks preview --tokenizer` of folders and files against transformers itself."""

from __future__ import annotations

import json

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.runner.preview import chat_of, renderer_of
from tests.engine.tiny_model import TEMPLATE, TEMPLATE_WITHOUT_SYSTEM, make

pytestmark = pytest.mark.engine

TURNS = [
    {"role": "system", "content": "Answer <briefly> & in “quotes”."},
    {"role": "user", "content": "  患者\t发热三天\n\n  "},
    {"role": "assistant", "content": "A"},
    {"role": "user", "content": "And now?"},
]
TEMPLATES = {
    "plain": TEMPLATE,
    "special tokens": "{{ bos_token }}" + TEMPLATE + "{{ eos_token }}",
    "blocks on own lines": "{% for m in messages %}\n {% if m %}\n{{ m.role }}\n {% endif %}\n{% endfor %}",
    "json": "{% for m in messages %}{{ m | tojson }}{{ m | tojson(indent=2) }}{% endfor %}",
    "loop controls": "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m }}{% endfor %}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "namespace": "{% set s = namespace(n=0) %}{% for m in messages %}{% set s.n = 1 %}{% endfor %}{{ s.n }}",
    "absent tools": "{% if tools is none and not documents %}{{ messages[-1]['content'] }}{% endif %}",
    "date": "{{ strftime_now('%Y') }}{{ messages[0].content }}",
}  # fmt: skip


@pytest.fixture
def tokenizer(tiny):
    return tiny


@pytest.mark.parametrize("text", TEMPLATES.values(), ids=list(TEMPLATES))
def test_a_file_renders_as_transformers_does(tokenizer, tmp_path, text):
    from transformers import AutoTokenizer

    config = json.loads((tokenizer / "tokenizer_config.json").read_text())
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({**config, "chat_template": text}))
    reference = renderer_of(AutoTokenizer.from_pretrained(tokenizer), chat_template=text)
    assert chat_of(str(file)).render(TURNS) == reference(TURNS)


def test_a_template_that_refuses_a_turn_is_an_error_in_both(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    file = tmp_path / "chat.jinja"
    file.write_text(TEMPLATE_WITHOUT_SYSTEM)
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    reference = renderer_of(loaded, chat_template=TEMPLATE_WITHOUT_SYSTEM)
    for render in (chat_of(str(file)).render, reference):
        with pytest.raises(Exception, match="no system turn"):
            render(TURNS)
        assert render(TURNS[1:])


def test_a_tokenizer_counts_the_tokens_of_its_own_template(tokenizer):
    from transformers import AutoTokenizer

    chat = chat_of(str(tokenizer))
    assert chat.count is not None
    plain = AutoTokenizer.from_pretrained(tokenizer)
    expected = plain.apply_chat_template(TURNS, add_generation_prompt=True, return_dict=False)
    assert chat.count([chat.render(TURNS)]) == [len(expected)]


def test_a_tokenizer_without_a_template_is_named(tmp_path):
    with pytest.raises(MedtasksError, match="no tokenizer can be read"):
        chat_of(str(tmp_path))
    make(tmp_path, template="")
    with pytest.raises(MedtasksError, match="has no chat template"):
        chat_of(str(tmp_path))
