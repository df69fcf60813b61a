"""What a loaded model says of itself: by stand-ins with the classes' names; tests/engine asks real ones."""

from types import SimpleNamespace

import pytest

from medtasks_ext.privacy import text_hash
from medtasks_ext.results.conditions import facts
from medtasks_ext.runs.conditions import Conditions, read_conditions
from medtasks_ext.runs.manifest import EngineRecord, described

ASKED = {"template": True, "system_text": None, "layout": None}


class VLLM:
    def __init__(self, **more):
        config = SimpleNamespace(dtype="torch.bfloat16", quantization=None)
        self.model = SimpleNamespace(llm_engine=SimpleNamespace(model_config=config))
        self.tokenizer = SimpleNamespace(chat_template="{{ messages }}", name_or_path="ORG/model")
        self.enable_thinking, self.chat_template_args = None, {}
        vars(self).update(more)


class HFLM:
    def __init__(self, brought, **more):
        config = SimpleNamespace(to_diff_dict=lambda: brought)
        self.model = SimpleNamespace(generation_config=config, dtype="torch.float32", config=None)
        self.tokenizer = SimpleNamespace(chat_template={"default": "a", "tool_use": "b"}, name_or_path=".")
        vars(self).update(more)


class LocalChatCompletion:
    pass


def test_vllm_says_what_it_loaded_and_lets_no_settings_of_the_models_file_in():
    found = described(VLLM(), **ASKED)
    assert found == EngineRecord(
        name="vllm", version=found.version, dtype="bfloat16", quantisation="none", adapters="none",
        thinking=None, tools=False, system_text="", template=text_hash("{{ messages }}"),
        repository_template=True, generation={},
    )  # fmt: skip


def test_an_adapter_is_named_without_its_place():
    adapter = SimpleNamespace(lora_path="/home/someone/adapters/cardio-7b")
    assert described(VLLM(lora_request=adapter), **ASKED).adapters == "cardio-7b"


@pytest.mark.parametrize(("name", "own"), [("ORG/model", True), (".", None), ("", None)])
def test_a_template_is_known_as_the_repositorys_own_where_it_comes_from_a_repository(name, own):
    tokenizer = SimpleNamespace(chat_template="{{ messages }}", name_or_path=name)
    assert described(VLLM(tokenizer=tokenizer), **ASKED).repository_template is own


def test_transformers_says_what_the_models_file_adds():
    found = described(HFLM({"repetition_penalty": 1.05, "eos_token_id": [1, 2], "top_k": 20}), **ASKED)
    assert found.generation == {"repetition_penalty": 1.05, "top_k": 20} and found.template == text_hash("a")
    read = Conditions(decoding={"do_sample": False}, engines=(found,))
    assert read_conditions(read.record()) == read
    # where nothing is drawn, top_k does nothing
    assert facts(read)["brought"] == (("repetition_penalty", 1.05),)


def test_a_layout_of_ones_own_stands_in_place_of_the_models_template():
    layout = "{{ x }}"
    found = described(VLLM(), template=False, system_text="Be brief.", layout=layout)
    assert (found.template, found.repository_template) == (text_hash(layout), False)
    assert found.system_text == text_hash("Be brief.")


def test_a_server_tells_nothing():
    found = described(LocalChatCompletion(), **ASKED)
    assert found == EngineRecord(name="LocalChatCompletion", system_text="")
