"""`medtasks model new` and `model check`: what a model's own files say, each value with its source."""

import json
from pathlib import Path

import pytest
import yaml

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
TURNS = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
ON = TURNS + (
    "{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)
OFF = TURNS + (
    "{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and enable_thinking is true %}<think>{% else %}"
    "<think></think>{% endif %}"
    "{% endif %}"
)
#: on where nothing is said; lm-eval's vLLM model says None
UNLESS_DEFINED = TURNS + (
    "{% if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}"
    "<|assistant|>{% if not enable_thinking %}<think></think>{% endif %}"
)
CARD = "---\nlicense: apache-2.0\n---\n# Model\n\n    vllm serve acme/Model --reasoning-parser qwen3\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MARK = "executed"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Writes a model's files as the hub's cache holds them, and returns their folder."""
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))

    def write(name="acme/Model", *, template=ON, config=CONFIG, generation=None, card=CARD, **files):
        place = cache / f"models--{name.replace('/', '--')}"
        folder = place / "snapshots" / COMMIT
        folder.mkdir(parents=True, exist_ok=True)
        (place / "refs").mkdir(exist_ok=True)
        (place / "refs" / "main").write_text(COMMIT)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))
        (folder / "README.md").write_text(card)
        if template is not None:
            (folder / "chat_template.jinja").write_text(template)
        if generation is not None:
            (folder / "generation_config.json").write_text(json.dumps(generation))
        for file, text in files.items():
            (folder / file.replace("__", ".")).write_text(text)
        return folder

    return write


def made(medtasks, *arguments):
    outcome = medtasks("model", "new", "acme/Model", "-o", "model.yaml", *arguments)
    assert outcome.code == 0, outcome.text
    return yaml.safe_load(Path("model.yaml").read_text()), Path("model.yaml").read_text(), outcome.text


def test_each_value_names_the_file_that_says_it(medtasks, repository):
    sampling = {"do_sample": True, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "eos_token_id": 7}
    index = json.dumps({"metadata": {"total_size": 141_000_000_000}})
    folder = repository(generation=sampling)
    (folder / "model.safetensors.index.json").write_text(index)
    content, text, _ = made(medtasks)
    assert content["model_args"] == {
        "pretrained": "acme/Model", "revision": COMMIT, "dtype": "auto", "max_model_len": 40960,
        "tensor_parallel_size": 4,
    }  # fmt: skip
    assert content["gen_kwargs"] == {
        "do_sample": True, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "max_gen_toks": 16384,
    }  # fmt: skip
    assert content["metadata"] == {"thinking": True, "decoding": "maker"}
    for line in text.splitlines():
        if line.startswith(
            ("  dtype", "  max_model_len", "  tensor", "apply", "  temperature", "  thinking")
        ):
            assert "  # " in line, line
    assert "--reasoning-parser qwen3 (README.md)" in text
    assert "max_position_embeddings" in text


@pytest.mark.parametrize(("template", "thinks"), [(ON, True), (OFF, False)], ids=["on", "off"])
def test_the_default_of_the_switch_is_found_by_rendering_both_ways(medtasks, repository, template, thinks):
    repository(template=template)
    content, text, _ = made(medtasks)
    assert content["metadata"]["thinking"] is thinks
    assert f"enable_thinking is {'on' if thinks else 'off'}" in text


def test_a_switch_that_lm_eval_sets_to_none_is_said(medtasks, repository):
    repository(template=UNLESS_DEFINED)
    content, _, said = made(medtasks)
    assert content["metadata"]["thinking"] is False
    assert "where nothing is said, thinking is on; lm-eval's vLLM model says None, which is off" in said


def test_what_cannot_be_known_is_said_and_left_out(medtasks, repository):
    config = {key: value for key, value in CONFIG.items() if key != "max_position_embeddings"}
    repository(template=TURNS + "{{ reasoning_effort }}", config=config, card="")
    content, _, said = made(medtasks)
    assert "max_model_len" not in content["model_args"]
    assert "context unknown" in said and "thinking unknown" in said and "reasoning_effort" in said


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"template": None}, "no chat template"),
        ({"config": {**CONFIG, "quantization_config": {"quant_method": "fp8"}}}, "quantised (fp8)"),
        ({"template": "{% for %}"}, "cannot be rendered"),
        ({"template": "{{ raise_exception('need tools') }}"}, "refuses a plain question: need tools"),
        ({"template": "<|assistant|>"}, "does not show the question"),
        ({"template": None, "params__json": "{}"}, "the tokenizer is Mistral's own"),
        ({"quantize_config__json": '{"bits": 4}'}, "quantised (gptq, 4 bits)"),
        (
            {"config": {**CONFIG, "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP4"}}},
            "quantised (modelopt FP4)",
        ),
        ({"config": {**CONFIG, "is_encoder_decoder": True}}, "an encoder and a decoder"),
    ],
    ids=[
        "no template", "quantised", "broken template", "template refuses", "template without the question",
        "Mistral's tokenizer", "older GPTQ", "FP4", "encoder and decoder",
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_one_line(medtasks, repository, change, line):
    repository(**change)
    _, _, said = made(medtasks)
    assert sum(line in row for row in said.splitlines()) == 1


def test_an_architecture_that_transformers_does_not_know_is_one_line(medtasks, repository):
    pytest.importorskip("transformers")
    repository(config={**CONFIG, "model_type": "ours"})
    _, _, said = made(medtasks)
    assert sum("is unknown to the transformers" in row for row in said.splitlines()) == 1


def test_code_of_a_repository_is_never_run(medtasks, repository, tmp_path):
    code = f"open({str(tmp_path / MARK)!r}, 'w')\n"
    config = {**CONFIG, "auto_map": {"AutoConfig": "own.Own"}}
    folder = repository(config=config, own__py=code)
    (folder / "conftest.py").write_text(code)
    _, _, said = made(medtasks)
    assert sum("code of its own" in row for row in said.splitlines()) == 1
    assert medtasks("model", "check", "model.yaml").code == 0
    assert not (tmp_path / MARK).exists()


def test_a_template_that_does_what_it_may_not_is_said(medtasks, repository):
    repository(template="{{ cycler.__init__.__globals__.os.system('touch executed') }}")
    _, _, said = made(medtasks)
    assert not Path(MARK).exists()
    assert "unknown" in said or "cannot" in said


def test_a_gated_model_is_one_line(medtasks, monkeypatch, tmp_path):
    from huggingface_hub.errors import GatedRepoError

    class GatedError(GatedRepoError):
        def __init__(self):
            Exception.__init__(self, "gated")

    def refuse(*_, **__):
        raise GatedError

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    outcome = medtasks("model", "new", "acme/Gated")
    assert outcome.code == 2
    assert "acme/Gated: is gated" in outcome.text or "is gated" in outcome.text
    assert "https://huggingface.co/acme/Gated" in outcome.text


@pytest.mark.parametrize("name", ["acme/Nowhere", "nonsense", "a/b/c"])
def test_a_model_that_is_not_here_is_one_error(medtasks, repository, monkeypatch, name):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    outcome = medtasks("model", "new", name)
    assert outcome.code == 2
    assert "Traceback" not in outcome.text


def test_a_model_that_writes_no_text_is_refused(medtasks, repository):
    repository(config={**CONFIG, "architectures": ["BertModel"]})
    outcome = medtasks("model", "new", "acme/Model")
    assert outcome.code == 2 and "BertModel is no model that writes text" in outcome.text


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"model-Q4_K_M.gguf": "x"}, "holds GGUF files"),
        ({"adapter_config.json": '{"base_model_name_or_path": "acme/Base"}'}, "an adapter of acme/Base"),
        ({"params.json": "{}", "tekken.json": "{}"}, "Mistral's own form"),
        ({"pytorch_model.bin": "x"}, "holds no config.json"),
    ],
    ids=["GGUF", "adapter", "Mistral's own form", "something else"],
)
def test_what_a_repository_holds_in_place_of_a_model_is_named(medtasks, tmp_path, files, line):
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    outcome = medtasks("model", "new", str(tmp_path))
    assert outcome.code == 2 and line in outcome.text


@pytest.mark.parametrize("text", ["[1]", "{", '"x"'])
def test_a_file_that_is_no_object_is_named(medtasks, repository, text):
    folder = repository()
    (folder / "generation_config.json").write_text(text)
    outcome = medtasks("model", "new", "acme/Model")
    assert outcome.code == 2 and "generation_config.json" in outcome.text


def test_a_mirror_and_a_folder_are_read_like_the_hub(medtasks, repository, tmp_path):
    folder = repository()
    mirror = tmp_path / "mirror" / "acme"
    mirror.mkdir(parents=True)
    (mirror / "Model").symlink_to(folder)
    content, _, _ = made(medtasks, "--from", str(tmp_path / "mirror"))
    assert content["model_args"]["pretrained"] == "acme/Model"
    outcome = medtasks("model", "new", str(folder), "-o", "folder.yaml")
    assert outcome.code == 0
    assert yaml.safe_load(Path("folder.yaml").read_text())["model_args"]["pretrained"] == str(folder)


def test_a_file_that_is_there_is_not_written_over(medtasks, repository):
    repository()
    made(medtasks)
    assert medtasks("model", "new", "acme/Model", "-o", "model.yaml").code == 2


def test_what_new_writes_check_accepts(medtasks, repository):
    repository()
    made(medtasks)
    outcome = medtasks("model", "check", "model.yaml")
    assert outcome.code == 0 and "✓ model" in outcome.text


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("max_model_len: 40960", "max_model_len: 65536", "a context of 65536"),
        ("thinking: true", "thinking: false", "thinking is false"),
        ("apply_chat_template: true", "apply_chat_template: false", "no chat template is applied"),
        ("  dtype: auto", "  trust_remote_code: true\n  dtype: auto", "no code of its own"),
    ],
)
def test_check_names_what_the_repository_contradicts(medtasks, repository, before, after, said):
    repository()
    _, text, _ = made(medtasks)
    Path("model.yaml").write_text(text.replace(before, after))
    outcome = medtasks("model", "check", "model.yaml")
    assert outcome.code == 1 and said in outcome.text


def test_check_names_a_template_that_refuses_a_system_turn(medtasks, repository):
    repository(template="{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + ON)
    content, text, _ = made(medtasks)
    assert content["metadata"]["system_role"] is False
    Path("model.yaml").write_text("\n".join(line for line in text.splitlines() if "system_role" not in line))
    outcome = medtasks("model", "check", "model.yaml")
    assert outcome.code == 1 and "shows no system turn" in outcome.text


def test_a_plan_takes_what_new_writes(medtasks, repository):
    repository()
    made(medtasks)
    outcome = medtasks("plan", "model.yaml", "--tasks", "bridge_mednli")
    assert outcome.code == 0, outcome.text


def test_the_registry_gets_a_row_in_its_order(repository, tmp_path, monkeypatch):
    from medtasks_ext.results.models import known_models
    from medtasks_lab.models import ready
    from medtasks_lab.models.facts import read_facts
    from medtasks_lab.models.repository import find_repository

    (tmp_path / "models.yaml").write_text("# models\na/A: {}\nz/Z: {}\n")
    monkeypatch.setattr(ready, "reference_folder", lambda: tmp_path)
    repository()
    found = find_repository("acme/Model")
    row = ready.registry_row(found, read_facts(found))
    assert ready.add_to_registry("acme/Model", row) == tmp_path / "models.yaml"
    known_models.cache_clear()
    content = yaml.safe_load((tmp_path / "models.yaml").read_text())
    assert list(content) == ["a/A", "acme/Model", "z/Z"]
    assert content["acme/Model"] == {"access": "open", "reasoning": "yes", "licence": "apache-2.0"}
