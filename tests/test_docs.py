"""The pages: links lead somewhere, commands exist, versions agree, steps can be followed."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from medtasks_ext import __version__, hooks
from medtasks_ext.answers.formats import any_format
from medtasks_ext.metrics import meanings
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.columns import PACKAGE, citations
from medtasks_ext.results.conditions import RULES
from medtasks_ext.rows.expressions import FILTERS
from medtasks_ext.runs.settings import LISTS
from tests.conftest import ROOT
from tests.run_files import results_of
from tools import docs as reference

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


# The steps of CONTRIBUTING.md.


TASK = "medhelm_falls_clinic"
BLOCK = re.compile(r"^([^\n]+)\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, str]]:
    """What a contributor types, in order: commands, or a file and its content."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```") / 2
    followed = [block for block in blocks if not block[0].startswith("<!-- not run by the test: ")]
    return [("" if kind == "sh" else re.findall(r"`([^`]+/[^`]+)`", above)[-1], content)
            for above, kind, content in followed]  # fmt: skip


def shell(tree: Path, script: str) -> str:
    """What a script prints where `medtasks` is that of a copy of the tree; it must succeed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MEDTASKS_")}
    environment |= {"PATH": f"{tree}/.bin:{os.environ['PATH']}", "PYTHONPATH": str(tree)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tree, env=environment, text=True, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree in which all steps were followed on a branch, and what was printed."""
    tree = tmp_path_factory.mktemp("contributing") / "medtasks"
    (tree / ".bin").mkdir(parents=True)
    for name in ("medtasks_ext", "tasks", "docs"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("tasks.lock", "pyproject.toml", ".gitattributes", ".gitignore"):
        shutil.copy(ROOT / name, tree)
    command = tree / ".bin" / "medtasks"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m medtasks_ext "$@"\n')
    command.chmod(0o755)
    shell(tree, "git init -q -b main; git config user.name A; git config user.email a@example.org;"
          "git config commit.gpgsign false; git add .gitattributes .gitignore tasks tasks.lock;"
          "git commit -qm base; git switch -q -c falls")  # fmt: skip
    printed = ""
    for file, content in steps():
        if file:
            assert (tree / file).parent.is_dir(), f"{file}: no earlier step made its folder"
            (tree / file).write_text(content, encoding="utf-8")
        else:
            printed += shell(tree, content)
    return tree, printed


@pytest.mark.long
def test_the_new_task_is_valid_listed_previewed_run_built_and_locked(copy):
    tree, printed = copy
    assert TASK not in registry().tasks
    assert f"✓ {TASK}\n" in printed and "1 checked, 0 with problems" in printed
    assert re.search(rf"^{TASK}  +en  +text_classification .*missing$", printed, re.MULTILINE)
    shown = printed.partition("your answer: 'A. refer'")[2].splitlines()
    assert shown[1] == '  official reading: "A" (the first token; characters 1 to 1)'
    assert shown[2].startswith("  SAMPLE score ")
    metrics = results_of(tree / "runs/try")["results"][f"{TASK}_5shot"]
    assert metrics["SAMPLE_DATA,answer"] == 1 and 0 <= metrics["score,answer"] <= 1
    shell(tree, "medtasks dev build --check")
    assert f"task: {TASK}_cot\n" in (tree / "build/tasks/medhelm/falls_clinic/cot.yaml").read_text()
    before, after = ((root / "tasks.lock").read_text().splitlines() for root in (ROOT, tree))
    (added,) = set(after) - set(before)
    assert added.startswith(f"{TASK} 1-A ") and set(before) < set(after)


def test_the_new_task_joins_its_groups(copy):
    before, after = registry(), Registry(copy[0] / "tasks")
    for group in ("medhelm", "medhelm_admin", "medtasks_en", "medtasks_spec_primary_care", "medhelm_private"):
        for suffix in ("", "_cot", "_5shot"):
            joined = set(after.leaves(group + suffix)) - set(before.leaves(group + suffix))
            assert joined == {TASK + suffix}
    assert set(after.groups) == set(before.groups)
