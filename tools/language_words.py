"""Compares `languages.yaml` with public lists of words, and writes which group of words stands in which.

    npm pack cldr-misc-full@48.2.0 survey-core@3.1.1 survey-creator-core@3.0.3  # unpacked into FOLDER/NAME
    git clone https://github.com/huggingface/lighteval FOLDER/lighteval
    git clone https://github.com/h5p/h5p-multi-choice FOLDER/h5p-multi-choice
    git clone https://github.com/h5p/h5p-single-choice-set FOLDER/h5p-single-choice-set
    git clone https://github.com/h5p/h5p-true-false FOLDER/h5p-true-false
    git clone https://github.com/mudrd8mz/moodle-lang FOLDER/moodle-lang
    git clone https://github.com/wikimedia/mediawiki-extensions-Quiz FOLDER/mediawiki-quiz
    python tools/language_words.py FOLDER

It writes the line `source:` of each language, and prints words of the lists that the file lacks.
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

import lm_eval

from medtasks_ext.answers.languages import FILE, languages, own_groups
from medtasks_ext.answers.tolerant.folding import plain
from medtasks_ext.answers.tolerant.phrases import any_of

#: our codes -> those of the lists
CLDR = {"tl": "fil", "no": "nb", "arz": "ar-EG", "pnb": "pa-Arab"}
H5P = {"no": "nb", "zh": "zh-hans"}
#: whose list patterns and marks Babel does not have
NOT_IN_BABEL = ("wuu", "pnb")
MOODLE = {"no": ("no",), "zh": ("zh_cn",), "tl": ("tl", "fil"), "pt": ("pt", "pt_br"), "ta": ("ta", "ta_lk")}
QUIZ = {"no": "nb", "zh": "zh-hans", "yue": "yue-hant"}
AFRICAN = {"am": "amh", "ha": "hau", "sw": "swa", "yo": "yor", "zu": "zul"}
#: groups of which a public source is looked for; other groups are ours in any language
SOUGHT = (
    "decimal", "joins", "or_", "answer", "option", "choose", "right", "wrong", "yes", "no", "all", "none",
    "because",
)  # fmt: skip
#: words of questions and their answers, of which one may stand in a text
ASKED = ("answer", "option", "choose", "right", "wrong")
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
#: group -> what Moodle calls it
STRINGS = {
    "answer": "answer|answers|correctanswer|correctansweris",
    "option": "choice|choices|option|options",
    "choose": "choose|select",
    "right": "correct|true|correctanswer",
    "wrong": "incorrect|false",
    "yes": "yes",
    "no": "no",
    "all": "all",
    "none": "none",
}
#: of lm-eval's tasks those that are asked in one language
ASKED_IN = {
    "arz": ("egymmlu/utils.py",),
    "en": ("mmlu/flan_cot_fewshot/mmlu_philosophy.yaml",),
    "no": tuple(f"noreval/noropenbookqa/nob/noropenbookqa_nob_p{prompt}.yaml" for prompt in (1, 4)),
    "pl": ("polemo2/polemo2_in.yaml",),
    "tr": ("turkishmmlu/config/_turkishmmlu_default_yaml", "turkishmmlu/config_cot/History.yaml"),
}


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

    for name in ("h5p-multi-choice", "h5p-single-choice-set", "h5p-true-false"):
        file = folder / name / "language" / f"{H5P.get(code, code)}.json"
        if file.is_file():
            for text in texts(json.loads(file.read_text("utf-8"))):
                for group in ASKED:
                    yield Said("h5p", group, text)


def of_moodle(folder: Path, code: str) -> Iterator[Said]:
    """Questions and their answers, as a course shows them."""
    for name in MOODLE.get(code, (code,)):
        for file in sorted((folder / "moodle-lang" / f"{name}_utf8").glob("*.php")):
            text = file.read_text("utf-8", errors="replace")
            for group, keys in STRINGS.items():
                for found in re.finditer(rf"^\$string\['(?:{keys})'\] = '([^'\n]*)';", text, re.MULTILINE):
                    yield Said("moodle", group, found[1])


def of_quiz(folder: Path, code: str) -> Iterator[Said]:
    """What MediaWiki says of right and wrong answers."""
    file = folder / "mediawiki-quiz" / "i18n" / f"{QUIZ.get(code, code)}.json"
    if file.is_file():
        for key, text in json.loads(file.read_text("utf-8")).items():
            for group in ASKED if key.endswith(("-points", "-correct", "-incorrect")) else ():
                yield Said("mediawiki", group, text)


def of_lm_eval(code: str) -> Iterator[Said]:
    """Prompts of lm-eval's tasks in a language, as they are installed."""
    tasks = Path(lm_eval.__file__).parent / "tasks"

    def told(file: str, name: str) -> dict[str, Any]:
        for item in ast.parse((tasks / file).read_text("utf-8")).body:
            if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", "") == name:
                literal: dict[str, Any] = ast.literal_eval(item.value)
                return literal
        raise KeyError(f"{file} has no {name}")

    asked = told("mmlu_prox/lang_libs.py", "LANG_LIBS").get(code, [])
    asked += [(tasks / file).read_text("utf-8") for file in ASKED_IN.get(code, ())]
    if code in AFRICAN:
        asked.append(told("afrimgsm/utils.py", "languages_REGEX")[AFRICAN[code]])
        labels = told("afrixnli/utils.py", "LANGUAGES")[AFRICAN[code]]
        for group, key in (
            ("right", "QUESTION_WORD"),
            ("yes", "ENTAILMENT_LABEL"),
            ("no", "CONTRADICTION_LABEL"),
        ):
            yield Said("lm_eval", group, labels[key])
    for text in asked:
        for group in (*ASKED, "none") if code == "en" else ASKED:
            yield Said("lm_eval", group, text)


def of_surveyjs(folder: Path, code: str) -> Iterator[Said]:
    """Choices of forms: none, all, yes and no; and what its editor calls answers and choices."""
    name = f"{SURVEY_NAMES.get(code, NAMES.get(code))}.js"
    file, editor = folder / "survey-core" / "i18n" / name, folder / "survey-creator-core" / "i18n" / name
    if file.is_file():
        text = file.read_text("utf-8")
        for group, keys in SURVEY.items():
            for found in re.finditer(rf"(?:{keys}): \"([^\"]*)\"", text):
                yield Said("surveyjs", group, found[1])
    if editor.is_file():
        for found in re.finditer(r"(?:correctAnswer|choices): \"([^\"]*)\"", editor.read_text("utf-8")):
            for group in ("answer", "option", "right"):
                yield Said("surveyjs", group, found[1])


def stands(said: Said, code: str) -> bool:
    """Whether a word of the group stands in the text."""
    return bool(any_of(getattr(languages()[code], said.group)).search(plain(said.text)))


def main() -> None:
    """Write the lines, and print what is lacking."""
    folder = Path(sys.argv[1])
    literals = of_lighteval(folder)
    text = FILE.read_text("utf-8")
    for code in languages():
        seen: dict[str, dict[str, None]] = defaultdict(dict)
        if code not in NOT_IN_BABEL:
            seen["cldr"] = dict.fromkeys(("decimal", "joins", "or_"))
        lacking: dict[Said, None] = {}
        for said in (
            *of_cldr(folder, code),
            *of_lm_eval(code),
            *literals.get(code, ()),
            *of_h5p(folder, code),
            *of_surveyjs(folder, code),
            *of_moodle(folder, code),
            *of_quiz(folder, code),
        ):
            if stands(said, code):
                seen[said.source][said.group] = None
            elif said.source not in ("h5p", "lm_eval", "mediawiki"):  # whose texts are sentences
                lacking[said] = None
        found = {group for groups in seen.values() for group in groups}
        if ours := [group for group in SOUGHT if group in own_groups(code) and group not in found]:
            seen["ours"] = dict.fromkeys(ours)
        lists = ", ".join(f"{source}: [{', '.join(quoted(groups))}]" for source, groups in seen.items())
        text, written = re.subn(
            rf'(?m)(^"?{code}"?:\n(?:  like: \w+\n)?)  source: .*', rf"\1  source: {{{lists}}}", text
        )
        assert written == 1, code
        for said in lacking:
            print(code, "lacks", *said)
    FILE.write_text(text, "utf-8")


def quoted(groups: Iterable[str]) -> Iterator[str]:
    """As YAML writes them."""
    return (f'"{group}"' if group in ("yes", "no") else group for group in sorted(groups, key=SOUGHT.index))


if __name__ == "__main__":
    main()
