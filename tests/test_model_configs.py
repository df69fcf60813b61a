"""The configuration files of models: what lm-eval, vLLM and the reference tables say of them."""

import argparse
import ast
import csv
from functools import cache
from pathlib import Path

import lm_eval
import yaml
from lm_eval._cli.run import Run as LmEvalRun
from lm_eval.config.evaluate_config import EvaluatorConfig

from medtasks_ext.results.models import known_models

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "model_configs"
FILES = {path.stem: path for folder in (".", "open", "api") for path in (CONFIGS / folder).glob("*.yaml")}
OPEN = {name: path for name, path in FILES.items() if path.parent.name == "open"}
API = {name: path for name, path in FILES.items() if path.parent.name == "api"}
MODELS = {name: yaml.safe_load(path.read_text()) for name, path in {**OPEN, **API}.items()}

TOP = {"model", "model_args", "apply_chat_template", "gen_kwargs", "metadata"}
METADATA = {"thinking", "decoding", "system_role", "layout", "serve", "price"}
DECODING = {
    "do_sample", "temperature", "top_p", "top_k", "min_p", "reasoning_effort", "max_gen_toks",
    "repetition_penalty", "presence_penalty",
}  # fmt: skip
#: lm-eval's backend -> where its arguments are declared.
BACKENDS = {
    "vllm": ("vllm_causallms.py", "VLLM"),
    "hf": ("huggingface.py", "HFLM"),
    "local-chat-completions": ("api_models.py", "TemplateAPI"),
    "openai-chat-completions": ("api_models.py", "TemplateAPI"),
    "anthropic-chat-completions": ("api_models.py", "TemplateAPI"),
}


def reference(table: str) -> dict[str, dict[str, str]]:
    with (ROOT / "results" / "reference" / f"{table}.csv").open(encoding="utf-8") as lines:
        return {row["model"]: row for row in csv.DictReader(lines)}


TABLES = {
    "bridge": reference("bridge_models"),
    "medhelm": reference("medhelm_models"),
    "clinicbench": reference("clinicbench_zero_shot"),
    "mlb": reference("mlb_overall"),
}


def hub_id(name: str) -> str:
    arguments = MODELS[name]["model_args"]
    return arguments.get("pretrained") or arguments["model"]


#: id of the hub as files that ask a provider write it, or its own name of a model -> id of the registry
OF_PROVIDERS = {
    "claude-sonnet-4-20250514": "anthropic/claude-sonnet-4",
    "gpt-5-2025-08-07": "openai/gpt-5",
    "meta-llama/llama-3.3-70b-instruct": "meta-llama/Llama-3.3-70B-Instruct",
    "MeLLaMA-13B-chat": "me-llama/MeLLaMA-13B-chat",  # a local copy
    "MeLLaMA-70B-chat": "me-llama/MeLLaMA-70B-chat",
}


@cache
def called(name: str) -> dict[str, str]:
    """Suite -> what its table calls the model of a file, as it thinks or does not."""
    model = known_models().get(OF_PROVIDERS.get(hub_id(name), hub_id(name)))
    ways = {"thinking": True, "thinking off": False}
    thinks = MODELS[name]["metadata"]["thinking"]
    rows = model.versions if model else {}
    # a table that does not say whether the model thought has the row of its default, to think
    return {
        suite: row
        for (suite, row), version in rows.items()
        if suite in TABLES  # those of the four papers
        and ways.get(version, thinks) is thinks
        and (version in ways or thinks or len(rows) == len(model.rows))
    }


def named(name: str) -> dict[str, dict[str, str]]:
    """Suite -> the row of its table that is of the file's model."""
    return {suite: TABLES[suite][model] for suite, model in called(name).items()}


def parsed(*arguments: str) -> EvaluatorConfig:
    """What `lm_eval run ARGUMENTS` makes of its command line."""
    parser = argparse.ArgumentParser()
    LmEvalRun(parser.add_subparsers())
    return EvaluatorConfig.from_cli(parser.parse_args(["run", *arguments]))


@cache
def parameters(backend: str) -> set[str]:
    file, name = BACKENDS[backend]
    tree = ast.parse((Path(lm_eval.__file__).parent / "models" / file).read_text())
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    (init,) = (n for n in definition.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    return {argument.arg for argument in (*init.args.args, *init.args.kwonlyargs)}


def test_lm_eval_takes_the_file_as_it_is():
    for name in FILES:
        content = yaml.safe_load(FILES[name].read_text())
        config = parsed("--config", str(FILES[name]), "--tasks", "bridge_mie")
        for key in ("model", "model_args", "gen_kwargs", "apply_chat_template"):
            if key in content:
                assert getattr(config, key) == content[key], name
        assert content.get("metadata", {}).items() <= config.metadata.items(), name


def test_files_have_the_keys_that_the_page_explains():
    page = (ROOT / "docs" / "models.md").read_text()
    for name in MODELS:
        content = MODELS[name]
        assert TOP <= set(content) <= TOP | {"batch_size"}, name
        assert {"thinking", "decoding"} <= set(content["metadata"]) <= METADATA, name
        assert set(content["gen_kwargs"]) <= DECODING, name
        assert set(content["model_args"]) <= parameters(content["model"]), name
        assert "think_end_token" not in FILES[name].read_text(), name
        assert content["model_args"].get("enable_thinking", False) is False, name
        assert "enable_thinking" not in content["model_args"].get("chat_template_args", {}), name
        for key in {*content["metadata"]} - {"thinking"}:
            assert f"`metadata.{key}`" in page, name


def test_every_open_model_of_the_tables_has_one_file():
    for suite, published in TABLES.items():
        names = [called(name)[suite] for name in OPEN if suite in called(name)]
        assert len(names) == len(set(names)), suite
        assert set(names) <= set(published), suite
        if suite == "clinicbench":
            continue  # its table does not say which models are open
        missing = {model for model, row in published.items() if row["access"] == "open"} - set(names)
        assert not missing, suite
    commercial = {
        model for model, row in TABLES["clinicbench"].items() if row["params"] in ("commercial", "")
    }
    names = {called(name).get("clinicbench") for name in OPEN}
    without = set(TABLES["clinicbench"]) - commercial - names
    page = (CONFIGS / "README.md").read_text()
    assert without == {"Alpaca", "Baize-Healthcare", "Huatuo"} and all(model in page for model in without)


def test_a_file_agrees_with_the_published_tables():
    for name in OPEN:
        for suite, row in named(name).items():
            if row.get("hub_id"):
                assert hub_id(name) == row["hub_id"], (name, suite)
            if row.get("reasoning"):
                assert MODELS[name]["metadata"]["thinking"] is (row["reasoning"] == "yes"), name
        assert called(name).get("bridge", name) == name


def test_a_price_is_the_one_that_medhelm_prints():
    for name in MODELS:
        price, row = MODELS[name]["metadata"].get("price"), named(name).get("medhelm", {})
        if price is None:
            assert not row.get("price_in_usd_per_mtok_printed"), name
            continue
        assert {"input", "output"} <= set(price) <= {"input", "output", "batch"}, name
        assert 0 < price["input"] <= price["output"] and 0 < price.get("batch", 0.5) < 1, name
        if row:
            assert price["input"] == float(row["price_in_usd_per_mtok_printed"]), name
            assert price["output"] == float(row["price_out_usd_per_mtok_printed"]), name
