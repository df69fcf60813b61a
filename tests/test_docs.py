"""The pages: links lead somewhere, commands exist, versions agree, nothing is hidden."""

import argparse
import ast
import importlib
import re
import shlex
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from medtasks_ext import __version__, hooks, runs
from medtasks_ext.answers.formats import any_format
from medtasks_ext.egress import asks_one_by_one
from medtasks_ext.metrics import meanings
from medtasks_ext.registry import registry
from medtasks_ext.registry.columns import PACKAGE, citations
from medtasks_ext.results.conditions import RULES
from medtasks_ext.rows.expressions import FILTERS
from medtasks_ext.runs.settings import LISTS
from tests.conftest import ROOT
from tools import docs as reference
from tools.docs import internals

FOLDERS = ("docs", "tasks", "tests", "results", "benchmarks", "model_configs", ".github")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
COMMANDS = dict(reference.leaf_commands())
FENCE = re.compile(r"^ *```.*?^ *```", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^)\s]+)\)")
#: words that belong to how a page came about, not to what it says
FORBIDDEN = re.compile(r"\bissues? #?\d+|\bth(?:is|e) session\b|\bas an AI\b", re.IGNORECASE)
#: absolute paths, but for those of every machine, and those that stand for a reader's own
ABSOLUTE = re.compile(r"(?<![\w.:/~}>*-])/(?!(?:bin|data|media|path/to)\b)[a-z]+/[\w.*/-]*")
UPWARDS = re.compile(r"(?:\.\./)+[\w./-]*\w")


@cache
def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """The places of a page to which a link can lead, by GitHub's rule for headings."""
    found, seen = set(re.findall(r'<a (?:id|name)="([^"]+)"', page.read_text())), {}
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", prose(page), flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def links(page: Path) -> list[str]:
    return [unquote(target) for target in LINK.findall(re.sub(r"`[^`\n]*`", "``", prose(page)))]


def target_of(page: Path, link: str) -> Path:
    return (page.parent / link.partition("#")[0]).resolve() if link.partition("#")[0] else page


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page):
    dead = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        target, anchor = target_of(page, link), link.partition("#")[2]
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_page_of_the_documentation_is_reachable_from_its_index():
    index = ROOT / "docs" / "README.md"
    reached, waiting = {index}, [index]
    while waiting:
        page = waiting.pop()
        for link in links(page):
            target = target_of(page, link)
            if (
                target.suffix == ".md"
                and target.is_file()
                and target not in reached
                and "docs" in target.parts
            ):
                reached.add(target)
                waiting.append(target)
    lost = [
        page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md") if page not in reached
    ]
    assert lost == [], "list these pages in docs/README.md, under the reader that they are for"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_page_speaks_of_the_product_only(page):
    text = page.read_text(encoding="utf-8")
    assert FORBIDDEN.findall(text) == [] == ABSOLUTE.findall(text)
    # commands print paths as seen from the tasks, and datasets include files as seen from their folder
    places = page.parent, ROOT / "tasks", ROOT / "tasks" / "medhelm" / "medqa"
    assert [
        path for path in UPWARDS.findall(text) if not any((place / path).exists() for place in places)
    ] == []


@cache
def lm_eval_flags() -> frozenset[str]:
    from lm_eval._cli.run import Run

    parser = Run(argparse.ArgumentParser().add_subparsers())._parser
    return frozenset(flag for action in parser._actions for flag in action.option_strings)


def known_flags(words: list[str]) -> set[str]:
    item = COMMANDS.get(command_of(words)) if words[0] == "medtasks" else None
    if item and not reference.passes_flags_on(item):
        return {"--help", *(flag for parameter in item.params for flag in parameter.opts)}
    own = re.findall(r"--[a-z_-]+", reference.own_help(item)) if item else []
    return {*own, *lm_eval_flags()}


def command_of(words: list[str]) -> str:
    for length in (3, 2):
        if (name := " ".join(words[:length])) in COMMANDS:
            return name
    groups = {name.rsplit(" ", 1)[0] for name in COMMANDS if name.count(" ") == 2}
    if " ".join(words[:2]) in groups or words[1:2] in ([], ["--version"], ["--help"], ["COMMAND"]):
        return ""
    raise AssertionError(f"no such command: {' '.join(words)}")


def check_flags(words: list[str]) -> None:
    if words[0] == "medtasks" and not command_of(words):
        return
    written = {word.partition("=")[0] for word in words if re.match(r"--[a-z]|-[a-z]$", word)}
    unknown = sorted(written - known_flags(words))
    assert unknown == [], f"{' '.join(words[:3])} … has no {', '.join(unknown)}"


def check_line(words: list[str]) -> None:
    """The command would accept the whole line; nothing is run."""
    check_flags(words)
    name = command_of(words) if words[0] == "medtasks" else ""
    if name and not reference.passes_flags_on(COMMANDS[name]) and "--help" not in words:
        try:
            given = words[len(name.split()) if words[: len(name.split())] == name.split() else 2 :]
            COMMANDS[name].make_context(name, given)
        except Exception as error:
            raise AssertionError(f"{' '.join(words)}: {error}") from None


def shell_calls(text: str) -> list[list[str]]:
    """The calls of `medtasks` and `lm_eval` in shell text, each as its words up to a pipe or redirection."""
    calls = []
    for line in text.replace("\\\n", " ").splitlines():
        match = re.match(r"^\s*(?:\$ )?(?:[A-Z_]+=\S* )*((?:medtasks|lm_eval) .*)", line)
        if match:
            words = shlex.split(match[1], comments=True)
            calls.append([*takewhile(lambda word: not re.match(r"(\||>>?|&&|;)$|2>", word), words)])
    return calls


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_on_a_page_exists_with_its_flags(page):
    text = page.read_text(encoding="utf-8")
    if page.name == "commands.md":  # its synopses are written from the commands, with placeholders
        return
    for block in FENCE.findall(text):
        for words in shell_calls(block):
            check_line([word for word in words if word != "…"])
    for span in re.findall(r"`(medtasks [a-z][^`]*)`", FENCE.sub("", text)):
        check_flags(span.replace("'", "").replace('"', "").split())


def lm_eval_calls(text: str) -> list[list[str]]:
    """The calls of plain lm-eval on a page, `commands.md` with all help texts included.

    In blocks, and within a line where they name tasks.
    """
    calls = [words for block in FENCE.findall(text) for words in shell_calls(block)]
    spans = re.findall(r"`(lm_eval [^`]*--tasks [^`…]*)`", FENCE.sub("", text))
    return [words for words in (*calls, *map(shlex.split, spans)) if words[0] == "lm_eval"]


def test_plain_lm_eval_is_shown_with_a_batch_size_wherever_it_runs_a_local_model(monkeypatch):
    monkeypatch.chdir(ROOT)  # for --config
    shown = {page: lm_eval_calls(page.read_text(encoding="utf-8")) for page in PAGES}
    assert sum(map(len, shown.values())) > 3
    one_by_one = [
        f"{page.relative_to(ROOT)}: {shlex.join(words)}"
        for page, calls in shown.items()
        for words in calls
        if asks_one_by_one(words)
    ]
    assert one_by_one == [], "add --batch_size auto"


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "readme").glob("README.*.md")), ids=lambda page: page.name
)
def test_a_translated_readme_has_commands_figures_names_and_links_of_the_english_one(page):
    """And the group of the language's own tasks; a sentence may order its names as the language does."""

    def parts(text: str, folder: Path) -> dict[str, list[str]]:
        others = re.compile(r"^.*README\.(?:ja|es|zh)\.md.*\n?.*$", re.MULTILINE)
        text = others.sub("", text, count=1)  # the line that leads to the other languages
        prose = FENCE.sub("", text)
        code = [
            line.partition(" #")[0].strip() for block in FENCE.findall(text) for line in block.splitlines()
        ]
        said = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
        targets = re.findall(r"\]\(([^)#]+)", prose)
        return {
            "code": [line for line in code if not line.startswith("```")],
            "words of commands": sorted(set(re.findall(r"`[^`]+`", prose))),
            "figures": re.findall(r"\d+(?:\.\d+)*", said),
            "links": [t if "//" in t else str((folder / t).resolve().relative_to(ROOT)) for t in targets],
            "headings": [line.split()[0] for line in prose.splitlines() if line.startswith("#")],
            "tables": [str(line.count("|")) for line in prose.splitlines() if line.startswith("|")],
            "cells": re.findall(r"\| (\w+ \| \d+ \| [a-z ]+) \|", prose),
        }

    english = parts((ROOT / "README.md").read_text(encoding="utf-8"), ROOT)
    translated = parts(page.read_text(encoding="utf-8"), page.parent)
    for kind in ("figures", "links"):  # of a sentence, in the order of the language
        english[kind].sort()
        translated[kind].sort()
    english["words of commands"] = sorted({*english["words of commands"], f"`medtasks_{page.name[7:9]}`"})
    assert translated == english
    assert len(english["figures"]) > 15 and len(english["links"]) > 15 and len(english["code"]) == 9


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_complete(name):
    item = COMMANDS[name]
    first, *others = [" ".join(part.split()) for part in (item.help or "").split("\n\n")]
    assert re.fullmatch(r"[A-Z].{5,70}\.", first), "the first line says in a few words what it does"
    examples = [part.removeprefix("Example: ") for part in others if part.startswith("Example: ")]
    assert examples, f"{name} --help has no Example"
    for example in examples:
        for words in shell_calls(example):
            assert words[0] == "lm_eval" or command_of(words) == name
            check_line(words)
    undocumented = [parameter.name for parameter in item.params if not parameter.help]
    assert undocumented == [], "arguments and options without a help text"


def test_pages_that_follow_from_the_code_are_up_to_date():
    stale = [path.name for path, text in reference.pages(registry()).items() if path.read_text() != text]
    assert stale == [], "run `python tools/docs.py`"


def test_the_site_shows_what_every_package_says():
    text = internals(ROOT)
    packages = [path.parent for root in ROOT.glob("medtasks_*") for path in root.rglob("__init__.py")]
    said = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert len(packages) > 20
    assert {".".join(path.relative_to(ROOT).parts) for path in packages if path.name != "page"} <= {*said}
    assert "### medtasks_ext.stats.intervals" in text


#: what `tools/docs.py` and tests write from code and data
REFERENCE = {
    *(f"docs/{name}.md" for name in ("commands", "keys", "metric_names", "columns", "conditions")),
    *(f"docs/{name}.md" for name in ("models", "glossary", "architecture")),
}
#: words that nobody has to read twice: generated ones, transcripts, translations, history, forms of GitHub
NOT_COUNTED = re.compile(r"docs/(first_hours|readme)/|CHANGELOG|\.github/")
MOST_WORDS, MOST_OF_README, MOST_OF_A_WAY = 13_600, 600, 3_000


def words(page: Path, anchor: str = "") -> int:
    """Words of a page or section, with commands and cells of tables; marks alone (`|`, `-`, `#`) are none."""
    text = section(page, anchor) if anchor else page.read_text(encoding="utf-8")
    return sum(map(bool, map(re.compile(r"\w").search, text.split())))


BY_HAND = [ROOT / name for name in NAMES if name not in REFERENCE and not NOT_COUNTED.search(name)]


def test_pages_of_words_are_few_and_short():
    assert len(BY_HAND) > 20 and words(ROOT / "README.md") <= MOST_OF_README
    assert sum(map(words, BY_HAND)) <= MOST_WORDS, (
        "state facts in code or data; a page of reference shows them"
    )


def test_each_of_the_four_ways_is_short():
    index = ROOT / "docs" / "README.md"
    ways = [line for line in section(index, "four-ways").splitlines() if line.startswith("| ")][2:]
    assert len(ways) == 4
    for way in ways:
        read = [(target_of(index, link), link.partition("#")[2]) for link in LINK.findall(way)]
        assert len(read) > 1
        assert words(ROOT / "README.md") + sum(words(*part) for part in read) <= MOST_OF_A_WAY, way


@cache
def told() -> str:
    """All pages: of words and of reference."""
    return "\n".join(page.read_text(encoding="utf-8") for page, name in zip(PAGES, NAMES, strict=True)
                     if not NOT_COUNTED.search(name))  # fmt: skip


def unsaid(names: Iterable[str]) -> list[str]:
    """Names that stand on no page, in code type."""
    return sorted(
        {name for name in names if not re.search(rf"`[^`\n]*(?<![\w-]){re.escape(name)}(?![\w-])", told())}
    )


def own_flags(name: str) -> set[str]:
    """The options of a command, those of lm-eval left out."""
    item = COMMANDS[name]
    if reference.passes_flags_on(item):
        return set(re.findall(r"(?<!\w)--[a-z][a-z_-]+", reference.own_help(item)))
    return {flag for parameter in item.params for flag in parameter.opts if flag.startswith("--")}


def test_every_command_stands_on_a_page_of_words():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in BY_HAND)
    assert [name for name in COMMANDS if not re.search(rf"{name}(?![\w-])", pages)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_stands_in_its_section(name):
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert part and [flag for flag in own_flags(name) if flag not in part] == []


def test_every_metric_answer_kind_condition_setting_and_filter_stands_on_a_page():
    kinds = any_format().json_schema()["discriminator"]["mapping"]
    settings = [name for lines in LISTS.values() for line in lines for name in line.names]
    assert min(len(kinds), len(meanings()), len(RULES), len(settings)) > 20
    assert unsaid([*kinds, *meanings(), *RULES, *settings, *FILTERS]) == []


def test_every_exit_code_variable_and_group_of_hooks_stands_on_a_page():
    code = [
        path.read_text(encoding="utf-8") for root in ROOT.glob("medtasks_*") for path in root.rglob("*.py")
    ]
    variables = {name for text in code for name in re.findall(r'"(MEDTASKS_[A-Z_]+)"', text)}
    # between the processes of one command, and how a flag is told
    own = {"MEDTASKS_STARTED_BY", "MEDTASKS_TASKS_DIR", "MEDTASKS_WITHHELD_"}
    assert variables - own == {name for name in reference.VARIABLES if name.startswith("MEDTASKS_")}
    assert unsaid([*reference.VARIABLES, *hooks.GROUPS]) == []
    said = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"{code} " in said for code in reference.EXIT_CODES)


def test_a_file_of_a_run_stands_on_a_page():
    page = (ROOT / "docs" / "read_results.md").read_text(encoding="utf-8")
    part = page.partition("## What a run's folder holds")[2]
    files = re.findall(r"^RUN/([a-z_.]+)", runs.__doc__, flags=re.MULTILINE)
    assert len({*files}) == 8
    assert [name for name in files if name.rstrip("_") not in part.lower()] == []


def test_what_commands_and_files_name_as_a_page_exists():
    places = [ROOT / name for name in ("medtasks_ext", "tasks", ".github", "tests", "tools", "Makefile")]
    files = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
    kinds = {".py", ".yaml", ".yml", ".js", ".md", ".sh", ""}
    gone = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        if path.is_file() and path.suffix in kinds and "__pycache__" not in path.parts
        for name in re.findall(r"(?<![\w/])docs/[\w/]+\.md", path.read_text(encoding="utf-8"))
        if not (ROOT / name).is_file() and not name.startswith("docs/en/")
    }
    assert gone == set()


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text()


def test_one_version_stands_everywhere(medtasks):
    (packaged,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## \[?([^\]\s]+)", changelog(), flags=re.MULTILINE)[1]
    said = medtasks("--version").out.split()[-1]
    cited = citations()[PACKAGE].fields["version"]
    assert {packaged, newest, str(cff["version"]), said, cited} == {__version__}


def test_the_citation_file_has_what_its_format_asks_for():
    record = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert record["cff-version"] == "1.2.0" and record["type"] == "software"
    assert record["license"] == "Apache-2.0"
    assert set(record) <= {
        "cff-version", "message", "title", "abstract", "type", "version", "license", "authors", "keywords",
        "repository-code", "url", "date-released", "doi",
    }  # fmt: skip
    assert record["message"] and record["title"] == re.sub("[{}]", "", citations()[PACKAGE].fields["title"])
    assert record["authors"] == [{"name": "The medtasks contributors"}]


def test_the_changelog_names_every_task_whose_scores_stopped_being_comparable():
    raised = {
        item.id: (item.suite.title, item.version)
        for item in registry().datasets.values()
        if item.version.split("-")[0] != "1"
    }
    unnamed = [
        task
        for task, (suite, version) in raised.items()
        if not re.search(rf"({task}|All {suite} tasks)\b.*{version}", changelog())
    ]
    assert unnamed == [], "say under `Task versions` in CHANGELOG.md why N rose"
    assert raised or "`N` has risen for none" in changelog()


#: what a reader who knows lm-eval, but not this package, asks -> where the answer stands, and what it says
QUESTIONS = {
    "Where do my files go?": ("docs/data.md#where-rows-are-read-from", "MEDTASKS_DATA_DIR"),
    "Are my files right?": ("docs/data.md#is-it-right", "medtasks data check"),
    "Is my score comparable with the leaderboard?": (
        "docs/compare.md#what-may-stand-side-by-side",
        "no rank",
    ),
    "Were models asked in the paper's words?": ("docs/evaluate.md#prompt-wording", "data status official"),
    "How do I add a dataset in Italian?": (
        "docs/add_a_dataset.md#tasks-and-suites-of-your-own",
        "language=it",
    ),
    "How do I ask a task in other words?": ("docs/add_a_dataset.md#a-variant-of-a-task", "include"),
    "What left my machine?": ("docs/safety.md#where-text-may-go", "answers.jsonl"),
    "What do I tell the data protection officer?": (
        "docs/safety.md#for-a-data-protection-officer",
        "How are they deleted?",
    ),
    "What happens when I press Ctrl-C?": ("docs/evaluate.md#stop-and-go-on", "same command"),
    "Why has an open-ended task no score?": ("docs/evaluate.md#open-ended-answers", "jury"),
    "What does the interval say?": ("docs/compare.md#intervals", "choice of test documents"),
    "Why is my score low though the answers look right?": (
        "docs/read_results.md#answers-that-cannot-be-read",
        "valid",
    ),
    "Does a score on sample rows mean anything?": ("docs/data.md#the-invented-rows", "means nothing"),
}


def section(page: Path, anchor: str) -> str:
    """The text below a heading, up to the next heading of its rank or above."""
    text = page.read_text(encoding="utf-8")
    for heading in re.finditer(r"^(#+) +(.+?)$", text, flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading[2].replace("`", "").lower()).replace(" ", "-")
        if slug == anchor:
            rest = text[heading.end() :]
            end = re.search(rf"^#{{1,{len(heading[1])}}} ", rest, flags=re.MULTILINE)
            return rest[: end.start()] if end else rest
    raise AssertionError(f"{page}: no heading {anchor}")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_two_links_from_the_readme(question):
    place, answer = QUESTIONS[question]
    name, _, anchor = place.partition("#")
    page = ROOT / name
    assert answer in (section(page, anchor) if anchor else page.read_text(encoding="utf-8"))
    first = {target_of(ROOT / "README.md", link) for link in links(ROOT / "README.md") if "://" not in link}
    second = {target_of(near, link) for near in first if near.suffix == ".md" for link in links(near)}
    assert page in first | second


def test_every_public_name_of_the_page_for_python_has_a_docstring():
    """Elsewhere names and types say enough, or a docstring says what they do not."""
    modules = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(modules) >= 3
    for name in modules:
        tree = ast.parse(Path(importlib.import_module(name).__file__ or "").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), name
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{name}.{node.name}"
