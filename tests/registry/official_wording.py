"""Official prompts as counts and hashes, so that tests can watch over ours without a word of theirs.

Their texts may not stand in this repository. Two facts about them do: how many words each official
instruction of BRIDGE has (`official_lengths.csv`), and hashes of all runs of eight words, of fourteen
characters in Chinese and Japanese (`official_runs.txt`). Terms of art that are as long stand in
`set_phrases.csv`, each with a reason: ours may hold them. This makes the first two from the texts:

    python -m tests.registry.official_wording --bridge PAPER.txt --helm crfm_helm-0.5.16-py3-none-any.whl \
      --clinicbench PAPER.txt

BRIDGE: arXiv 2504.19467 with its supplement, as text. MedHELM: the wheel of crfm-helm on PyPI; its strings
are read, nothing is imported. ClinicBench: EMNLP 2024, main.759, as text, Table 8.
"""

from __future__ import annotations

import argparse
import ast
import base64
import csv
import hashlib
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.registry import registry
from medtasks_ext.rows.originals.build import count_words
from medtasks_ext.suites.bridge import direct_sentence

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

HERE = Path(__file__).parent
LENGTHS = HERE / "official_lengths.csv"
RUNS = HERE / "official_runs.txt"
SET_PHRASES = HERE / "set_phrases.csv"
RUN_WORDS, RUN_CHARACTERS = 8, 14
RUN_LETTERS = 24  # in fewer letters, eight words are the form of an answer: A for yes, B for no
HASH_CHARACTERS = 6  # of base64: 36 bits
PER_LINE = 18

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[^\W{_CJK}]+")
_URL = re.compile(r"https?:\S+")
#: Where a run ends: the end of a clause, quotation marks, brackets of lists, a placeholder.
_END = re.compile(r'[.;:!?。；：！？"“”«»《》\[\]{}|]')
_APOSTROPHE = re.compile("['\u2018\u2019]")


def runs(text: str) -> Iterator[str]:
    """All runs of eight words, and of fourteen Chinese or Japanese characters, that no mark interrupts.

    Case, commas, apostrophes and line ends do not count.
    """
    for clause in _END.split(_URL.sub(".", _APOSTROPHE.sub("", text))):
        for piece in re.split(rf"[{_CJK}]", clause):
            words = _WORD.findall(piece.lower())
            for start in range(len(words) - RUN_WORDS + 1):
                run = words[start : start + RUN_WORDS]
                if sum(map(len, run)) >= RUN_LETTERS:
                    yield " ".join(run)
        for piece in re.split(r"[A-Za-z0-9]+", clause):
            characters = "".join(re.findall(f"[{_CJK}]", piece))
            for start in range(len(characters) - RUN_CHARACTERS + 1):
                yield characters[start : start + RUN_CHARACTERS]


def copied(text: str, official: Container[str]) -> list[str]:
    """The runs of a file's text that are official, whether or not lines and string constants interrupt them.

    Args:
        text: of a file of ours, YAML or Python or prose.
        official: hashes of official runs.
    """
    text = re.sub(r"""["']\s*\n\s*[fr]?["']""", "", text)  # a string goes on in the next line
    text = re.sub(r"\n\s*#", " ", text.replace("\\n", " "))  # so does a comment
    return [run for run in runs(text) if hashed(run) in official and run not in _in_set_phrases()]


def set_phrases() -> dict[str, str]:
    """Phrase -> why it is nobody's sentence: a term of art, which other words would only estrange."""
    with SET_PHRASES.open(encoding="utf-8") as file:
        return {row["phrase"]: row["why"] for row in csv.DictReader(file)}


@cache
def _in_set_phrases() -> frozenset[str]:
    return frozenset(run for phrase in set_phrases() for run in runs(phrase))


def hashed(run: str) -> str:
    digest = hashlib.sha256(run.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()[:HASH_CHARACTERS]


def official_runs() -> set[str]:
    """The hashes of all official runs."""
    text = RUNS.read_text(encoding="ascii").replace("\n", "")
    return {text[start : start + HASH_CHARACTERS] for start in range(0, len(text), HASH_CHARACTERS)}


def official_lengths() -> dict[str, tuple[int, str]]:
    """By dataset of BRIDGE: words of the official instruction, and why ours has far more or fewer."""
    with LENGTHS.open(encoding="utf-8") as file:
        return {row["id"]: (int(row["words"]), row["reason"]) for row in csv.DictReader(file)}


#: Datasets whose name in the paper's headings is not that of the catalogue.
_HEADINGS = {"medicalentitytypeextraction": "mie", "rumednlinli": "rumednli"}


def bridge_instructions(text: str) -> dict[str, str]:
    """The instructions of the supplement's Section 6, by dataset."""
    names = {
        _plain(item.metadata.name): name
        for name, item in registry().datasets.items()
        if item.metadata.suite == "bridge"
    }
    found: dict[str, str] = {}
    heading, open_for = "", ""
    for line in text.replace("\f", "\n").split("\n"):
        if re.fullmatch(r"\s*\d+/\d+\s*", line):  # page numbers
            continue
        if task := re.match(r"6\.\d+\.\d+ Task: (.+)", line):
            heading, open_for = _plain(task[1]), ""
        elif line.startswith("Instruction:") and heading:
            open_for = names.get(heading) or names[_HEADINGS[heading]]
            found[open_for] = line.removeprefix("Instruction:")
        elif line.startswith("Input: ") or re.match(r"6\.\d+ ", line):
            open_for = ""
        elif open_for:
            found[open_for] += f"\n{line}"
    return {name: instruction.strip() for name, instruction in found.items()}


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def helm_strings(wheel: Path) -> Iterator[str]:
    """The strings of MedHELM's run specifications and of the scenarios and juries that these name."""
    specs = "helm/benchmark/run_specs/medhelm_run_specs.py"
    with zipfile.ZipFile(wheel) as files:
        source = files.read(specs).decode()
        modules = set(
            re.findall(r"benchmark\.((?:scenarios|annotation)\.\w+_(?:scenario|annotator))", source)
        )
        paths = [specs, *(f"helm/benchmark/{module.replace('.', '/')}.py" for module in sorted(modules))]
        for path in paths:
            if path in files.namelist():
                yield from _strings(ast.parse(files.read(path)))


def _strings(tree: ast.AST) -> Iterator[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def table_rows(text: str) -> str:
    """The prompts of ClinicBench's Table 8, without their sources."""
    table = text.partition("\nPrompts\tSources\n")[2].partition("\nTable 8:")[0]
    return "\n".join(line.partition("\t")[0] for line in table.split("\n"))


def without_facts(text: str) -> str:
    """Without lists of options, labels and names of fields: these are facts, and stand in ours, too."""
    text = re.sub(r"\[[^\]]*\]", ".", text)
    return re.sub(r'["“][^"“”\n]{1,60}["”]', ".", text)


def main() -> None:
    """Write both files; reasons that stand in the file of lengths stay."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for source in ("bridge", "helm", "clinicbench"):
        parser.add_argument(f"--{source}", type=Path, required=True)
    given = parser.parse_args()
    instructions = bridge_instructions(given.bridge.read_text(encoding="utf-8"))
    reasons = official_lengths() if LENGTHS.exists() else {}
    with LENGTHS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "words", "reason"])
        for name, instruction in sorted(instructions.items()):
            writer.writerow([name, count_words(instruction), reasons.get(name, (0, ""))[1]])
    texts: Iterable[str] = [
        *instructions.values(),
        *helm_strings(given.helm),
        table_rows(given.clinicbench.read_text(encoding="utf-8")),
    ]
    hashes = sorted({hashed(run) for text in texts for run in runs(without_facts(text))})
    lines = ["".join(hashes[start : start + PER_LINE]) for start in range(0, len(hashes), PER_LINE)]
    RUNS.write_text("\n".join(lines) + "\n", encoding="ascii")
    direct = sum(direct_sentence(" ".join(text.split())) is not None for text in instructions.values())
    print(len(instructions), "instructions,", direct, "ask for the answer alone;", len(hashes), "runs")


if __name__ == "__main__":
    main()
