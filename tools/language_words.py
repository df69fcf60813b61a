"""Compares `languages.yaml` with public lists of words, and says which group of words stands in which.

    npm pack cldr-misc-full@48.2.0 survey-core@3.1.1     # unpack each into FOLDER/NAME
    git clone https://github.com/huggingface/lighteval FOLDER/lighteval
    git clone https://github.com/h5p/h5p-multi-choice FOLDER/h5p-multi-choice
    git clone https://github.com/h5p/h5p-true-false FOLDER/h5p-true-false
    python tools/language_words.py FOLDER

It prints, for each language, the line `source:` as it should be, and words of the lists that the file lacks.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from medtasks_ext.answers.languages import languages
from medtasks_ext.answers.tolerant.folding import plain
from medtasks_ext.answers.tolerant.phrases import any_of

#: our codes -> those of the lists
CLDR = {"tl": "fil", "no": "nb", "arz": "ar-EG", "pnb": "pa-Arab"}
H5P = {"no": "nb", "zh": "zh-hans"}
#: whose list patterns and marks Babel does not have
NOT_IN_BABEL = ("wuu", "pnb")
#: group -> attribute of lighteval's literals
LITERALS = {
    "answer": "answer",
    "yes": "yes",
    "no": "no",
    "because": "cause_word",
    "or_": "or_word",
    "joins": "and_word",
    "right": "true",
    "wrong": "false",
}
#: group -> what SurveyJS calls it
SURVEY = {
    "all": "selectAllItemText",
    "none": "noneItemText",
    "choose": "chooseFileCaption|optionsCaption|chooseItemText",
    "yes": "booleanCheckedLabel",
    "no": "booleanUncheckedLabel",
}
#: our codes -> English names, as SurveyJS and lighteval spell them
NAMES = {
    "am": "amharic",
    "ar": "arabic",
    "bn": "bengali",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fa": "persian",
    "fr": "french",
    "gu": "gujarati",
    "ha": "hausa",
    "hi": "hindi",
    "id": "indonesian",
    "it": "italian",
    "ja": "japanese",
    "jv": "javanese",
    "kn": "kannada",
    "ko": "korean",
    "mr": "marathi",
    "nl": "dutch",
    "no": "norwegian",
    "pa": "punjabi",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "sw": "swahili",
    "ta": "tamil",
    "te": "telugu",
    "th": "thai",
    "tl": "philippines",
    "tr": "turkish",
    "uk": "ukrainian",
    "ur": "urdu",
    "vi": "vietnamese",
    "yo": "yoruba",
    "yue": "cantonese",
    "zh": "chinese",
    "zu": "zulu",
}
SURVEY_NAMES = {"zh": "simplified-chinese"}


class Said(NamedTuple):
    """A text of a list, and the group of words of which it may hold one."""

    source: str
    group: str
    text: str


def of_cldr(folder: Path, code: str) -> Iterator[Said]:
    """Yes and no (`posix.json`). Decimal marks and list patterns are compared by tests, with Babel."""
    file = folder / "cldr-misc-full" / "main" / CLDR.get(code, code) / "posix.json"
    if file.is_file():
        (locale,) = json.loads(file.read_text("utf-8"))["main"].values()
        for group, key in (("yes", "yesstr"), ("no", "nostr")):
            for text in re.split("[:ः]$|:|ः(?=.)", locale["posix"]["messages"][key]):
                if len(plain(text)) > 1 or code in ("zh", "yue", "wuu", "ko"):
                    yield Said("cldr", group, text)


def of_lighteval(folder: Path) -> dict[str, list[Said]]:
    """Language -> what lighteval writes into prompts and takes for answers."""
    file = (
        folder
        / "lighteval"
        / "src"
        / "lighteval"
        / "tasks"
        / "templates"
        / "utils"
        / "translation_literals.py"
    )
    codes = {name: code for code, name in NAMES.items()} | {"tagalog": "tl"}
    found: dict[str, list[Said]] = {}
    for call in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "TranslationLiterals":
            given = {item.arg: ast.unparse(item.value) for item in call.keywords}
            code = codes.get(given.pop("language").removeprefix("Language.").lower())
            if code:
                found[code] = [
                    Said("lighteval", group, ast.literal_eval(given[key]))
                    for group, key in LITERALS.items()
                    if key in given
                ]
    return found


def of_h5p(folder: Path, code: str) -> Iterator[Said]:
    """Feedback on answers: wrong, right, and the word for an answer."""

    def texts(item: Any) -> Iterator[str]:
        if isinstance(item, dict):
            for key, value in item.items():
                if isinstance(value, str) and key == "default":
                    yield value
                else:
                    yield from texts(value)
        elif isinstance(item, list):
            for value in item:
                yield from texts(value)

    for name in ("h5p-multi-choice", "h5p-true-false"):
        file = folder / name / "language" / f"{H5P.get(code, code)}.json"
        if file.is_file():
            for text in texts(json.loads(file.read_text("utf-8"))):
                for group in ("right", "wrong", "answer", "option", "choose"):
                    yield Said("h5p", group, text)


def of_surveyjs(folder: Path, code: str) -> Iterator[Said]:
    """Choices of forms: none, all, yes and no."""
    file = folder / "survey-core" / "i18n" / f"{SURVEY_NAMES.get(code, NAMES.get(code))}.js"
    if file.is_file():
        text = file.read_text("utf-8")
        for group, keys in SURVEY.items():
            for found in re.finditer(rf"(?:{keys}): \"([^\"]*)\"", text):
                yield Said("surveyjs", group, found[1])


def main() -> None:
    """Print the comparison."""
    folder = Path(sys.argv[1])
    literals = of_lighteval(folder)
    for code, words in languages().items():
        seen: dict[str, dict[str, None]] = defaultdict(dict)
        if code not in NOT_IN_BABEL:
            seen["cldr"] = dict.fromkeys(("decimal", "joins", "or_"))
        lacking: dict[Said, None] = {}
        for said in (
            *of_cldr(folder, code),
            *literals.get(code, ()),
            *of_h5p(folder, code),
            *of_surveyjs(folder, code),
        ):
            if any_of(getattr(words, said.group)).search(plain(said.text)):
                seen[said.source][said.group] = None
            elif said.source != "h5p":
                lacking[said] = None
        lists = (f"{source}: [{', '.join(quoted(groups))}]" for source, groups in seen.items())
        print(f"{code}\n  source: {{{', '.join(lists)}}}")
        for said in lacking:
            print("   lacks", *said)


def quoted(groups: Iterable[str]) -> Iterator[str]:
    """As YAML writes them."""
    return (f'"{group}"' if group in ("yes", "no") else group for group in groups)


if __name__ == "__main__":
    main()
