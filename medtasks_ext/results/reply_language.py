"""In which language a text is written, as far as script and frequent words tell; no model is asked.

The question is whether a reply is in another language than the one asked for. A text that leaves doubt has
no language here, so that nothing is called wrong on a guess.
"""

from __future__ import annotations

import re
from collections import Counter

#: Letters that one language, or family of scripts, writes -> its code of ISO 639. Kana before Han: Japanese
#: has both.
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("el", re.compile("[\u0370-\u03ff]")),
)
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_WORD = re.compile("[^\\W\\d_]+")
#: Function words that are frequent in one of these languages and are no words of the others.
_FREQUENT = {
    "en": "the of and is was with for that this are were which has have been cannot not from be it should",
    "de": "der die das und ist nicht mit ein eine wurde den dem des auf wird sich bei für keine oder zur",
    "es": "el los las y con por una sin más paciente presenta pero también está muy según hay del fue",
    "pt": "os da do dos das e com uma não foi sem ao na são também pelo está ou em pela mais",
    "fr": "le les des du et une dans pour avec sur qui pas au aux été sans cette est il par",
    "no": "og er ikke det som på til av med ble har pasienten eller ved fra etter kan jeg at være",
}
_WORDS = {
    code: frozenset(words.split())
    - {word for other, others in _FREQUENT.items() if other != code for word in others.split()}
    for code, words in _FREQUENT.items()
}
#: The written standards of one language count as that.
_ONE = {"nb": "no", "nn": "no", "da": "no"}
_LOOKED_AT = 4000  # characters
_FEW_WORDS, _FEW_SIGNS = 8, 6
#: Share of the letters that a script must have.
_MOST = 0.5
#: Different function words that a text must have of its language, and times as many as of the next one.
_DISTINCT, _MARGIN = 3, 2


def language_of(text: str) -> str | None:
    """The code of ISO 639 of the language of a text; None where that is not clear."""
    head = text[:_LOOKED_AT]
    counts = {code: len(letters.findall(head)) for code, letters in _SCRIPTS}
    latin = len(_LATIN.findall(head))
    total = sum(counts.values()) + latin
    if counts["ja"] and counts["ja"] + counts["zh"] > _MOST * total:
        return "ja" if counts["ja"] >= _FEW_SIGNS else None
    for code, n in counts.items():
        if n >= _FEW_SIGNS and n > _MOST * total:
            return code
    return _of_words(head) if latin > _MOST * total else None


def _of_words(text: str) -> str | None:
    words = Counter(word.lower() for word in _WORD.findall(text))
    if sum(words.values()) < _FEW_WORDS:
        return None
    hits = Counter({code: sum(words[word] for word in known) for code, known in _WORDS.items()})
    (first, most), (_, second) = hits.most_common(2)
    distinct = sum(word in words for word in _WORDS[first])
    return first if distinct >= _DISTINCT and most >= _MARGIN * second else None


def in_another_language(reply: str, expected: set[str]) -> str | None:
    """The language of a reply where it is none of those expected.

    Args:
        expected: codes of ISO 639; of languages that are not told apart here, nothing is called wrong.
    """
    known = {*_WORDS, *(code for code, _ in _SCRIPTS)}
    wanted = {_ONE.get(code, code) for code in expected}
    found = language_of(reply)
    if found is None or not wanted or not wanted <= known:
        return None
    return None if found in wanted else found
