"""Where a reply announces its answer, and what is left of it without what is said around an answer.

The languages are those of the suites: en zh es fr de pt ru ja no.

An announcement is a word for an answer with a colon, a verb or a line end behind it (`Final answer:`,
`答案是`, `La respuesta es`), a verb of choosing (`故选`), a box of LaTeX, or an element `<answer>`. Strong
ones are made to be looked for: a box, an element, and a word with a colon or as a heading. Of the
strong ones the last counts, since a reply ends with its answer; without any the last weak one does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from medtasks_ext.answers.tolerant.reply import LONGEST, Reply, Span


class Marker(NamedTuple):
    """An announcement.

    Attributes:
        start: of the announcement.
        end: where the answer begins.
        strong: whether it is one that is made to be looked for.
        sentence: whether it is the beginning of a sentence that says what the answer is.
    """

    start: int
    end: int
    strong: bool
    sentence: bool = False


#: words for an answer, which announce it by themselves
_NOUNS = [
    "answer", "response", "result", "conclusion", "verdict", "judgment", "judgement", "prediction",
    "classification", "output", "label", "relation", "ans", "答", "答案", "结果", "结论", "回答", "判断",
    "答え", "解答", "正解", "結果", "結論", "respuesta", "resultado", "conclusión", "réponse", "résultat",
    "antwort", "ergebnis", "endergebnis", "lösung", "resposta", "ответ", "результат", "svaret", "svar",
    "resultat", "konklusjon", "gabarito", "solution", "my pick", "my choice",
]  # fmt: skip
#: words for an option, which announce it with `correct`, `final` and the like
_OPTIONS = [
    "option", "choice", "diagnosis", "letter", "选项", "选择", "項目", "選択肢", "opción", "alternativa",
    "opção", "bokstav", "letra", "lettre", "вариант",
]  # fmt: skip


#: verbs of choosing, with what stands before them
_VERBS = {
    **dict.fromkeys(
        ["choose", "pick", "select", "prefer", "go with", "go for"],
        re.compile(r"(?:\bi(?:'d| would| will|'ll)? (?:will |would )?|\A|[.!\n]\s{0,2})$"),
    ),
    **dict.fromkeys(
        ["elijo", "escojo", "je choisis", "ich wähle", "escolho", "jeg velger", "выбираю"],
        re.compile(r"(?<!\w)$"),
    ),
    **dict.fromkeys(["选", "選"], re.compile(r"(?<![不非勿误別])$")),
}
#: words before a conclusion, which is a letter with which the sentence ends
_CONCLUSIONS = dict.fromkeys(
    ["therefore", "thus", "hence", "so", "must be", "should be", "leaves", "it is", "it's", "es la", "é a",
     "est la", "s'agit de", "s'agit de la réponse", "korrekt ist", "richtig ist", "riktig er", "верно",
     "应该是", "应当是", "正确的是", "认为是", "而是", "适切なのは", "正しいのは", "適切なのは"],
    re.compile(r"(?<![a-zа-я])$"),
)  # fmt: skip
_CONCLUDED = re.compile(
    r"(?:(?<=[\u3040-\u9fff])[\s,:]{0,3}|[\s,:]{1,3})(?=[*(\"']{0,3}(?:[Oo]ption\s)?[*(\"']{0,3}"
    r"[A-Z](?:[、,和与及]{0,2}[A-Z]){0,9}[)*\"']{0,3}\s{0,2}(?:[.。!吧]|です|\n|\Z))"
)
_CHOSEN = re.compile(
    r"(?:择|択|ぶ)?(?:的是|了|:)?(?=[\s:*\[(\"'`]{0,8}[A-Z]{1,10}(?![A-Za-z]))|(?<=[a-zа-я])\b"
)
_BY_THEMSELVES = frozenset(_NOUNS)
_ALL = [*_NOUNS, *_OPTIONS, *_VERBS, *_CONCLUSIONS]
_ASCII = [word for word in _ALL if word.isascii()]
_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]")
_ADJECTIVE = re.compile(
    r"(?:final|correct|best|right|most\s\w+|appropriate|likely|chosen|selected|accurate|true|正确|最佳|最终|最合适|合适|正しい|"
    r"mejor|meilleure|beste|melhor|correcta|correcte|correta|richtige|korrekte|правильный|верный|riktige)的?\s*$",
    re.IGNORECASE,
)
# what may stand between the beginning of a line and the word
_LEAD = re.compile(
    r"[\s\-*#>_`\[(\"'•|~]*(?:\d{1,2}[.)]\s*)?[*_`\[(\"']*"
    r"(?:(?:so|thus|therefore|hence|the|my|your|final|correct|best|right|short|single|most|likely|appropriate|overall|in"
    r"|somit|daher|deshalb|also|ist|derfor|er"
    r"|la|le|les|el|die|das|der|det|a|o|den|réponse|meine|mi|ma|min|mon|minha|итоговый|окончательный|правильный|мой|endelige"
    r"|endgültige|richtige|korrekte|riktige)[\s,*_]+)*"
    r"(?:因此|所以|综上所述|综上|故|本题|该题|此题|最后|我|的|最终|正确|最佳|参考|标准|最終|正しい|[,，、：:\s])*",
    re.IGNORECASE,
)
_IS = (
    r"(?:(?:is|was|are|would\s+be|should\s+be|must\s+be|remains|es|sería|est|serait|ist|lautet|wäre|é|seria|это|er|будет)"
    r"(?![a-zà-ÿа-я])|是|为|應為|应为|应该是|应当是|应是|应该为|就是|选择|选|は|が)"
)
#: of which what follows is said to be so only under a condition
_CONDITIONAL = re.compile(r"would\s+be|should\s+be|sería|serait|seria|wäre", re.IGNORECASE)
_SENTENCE_BEGINS = re.compile(
    r"[.!?]\s+|[。！？]|\b(?:step|schritt|paso|étape|passo|шаг|trinn)\s\d{1,2}\s?[:.]|步骤\s?\d{0,2}\s?[:：]"
)
_CONNECT = re.compile(
    r"(?:\s+(?:option|choice|letter|finale?|correct[ae]|exacte|correta|(?:to|for)\s+(?:the|this)\s+(?:question|problem)"
    r"|here|among\s+(?:these|them|the\s+options)|\([^()\n]{1,20}\)))?"
    r"(?:选项|选择|项|部分)?[\])*_`\"']*"
    rf"(?:(?P<colon>\s{{0,3}}(?:(?:{_IS})\s{{0,3}})?:)"
    r"|(?P<line>[^\S\n]*\n)"
    rf"|\s{{0,3}}(?:therefore\s+|thus\s+|clearly\s+|donc\s+|most\s+likely\s+|probably\s+)?(?P<is>{_IS})"
    r"|(?P<dash>\s{0,2}(?:[-–—]{1,2}|=|->|→)\s)"
    r"|(?P<bracket>(?<=\])[^\S\n]?)"
    r"|(?P<bare>[^\S\n]+(?=[(\[*]*[A-Z0-9][)\]*]*[.。]?[^\S\n]*(?:\n|$))))",
    re.IGNORECASE,
)
_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*\{|<\s*(?:answer|final_answer|result|solution|label)\s*>", re.IGNORECASE
)
#: a question that a model asks itself after it has answered
_NEXT_QUESTION = re.compile(r"\n[*#\s]{0,12}(?:[Qq]uestion|[Uu]ser|[Hh]uman|题目|问题|Q)\s*\d{0,3}[*]*\s*:")
#: the longest beginning of a line before a word at its beginning
_LONGEST_LEAD = 60
#: announcements that are looked at, from the last one on: a model in a loop writes thousands
_MOST = 50


def end_of_answer(reply: Reply) -> int:
    """Where the reply ends: before the next question that a model may write itself."""
    if "\n" not in reply.text:
        return reply.end
    match = _NEXT_QUESTION.search(reply.text, reply.begin, min(reply.end, reply.begin + LONGEST))
    return match.start() if match and reply.text[reply.begin : match.start()].strip() else reply.end


def markers(text: str, begin: int, end: int) -> list[Marker]:
    """The announcements between two places of a text, in their order; of a long text those of its last
    part."""
    begin = max(begin, end - LONGEST)
    low = text[begin:end].replace("İ", "i").lower()  # the one character that grows as it gets small
    marked = []
    for word, start in _places(low, _ASCII if low.isascii() else _ALL):
        place = begin + start
        if before := _VERBS.get(word) or _CONCLUSIONS.get(word):
            after = (_CHOSEN if word in _VERBS else _CONCLUDED).match(text, place + len(word), end)
            if after and before.search(low[max(0, start - 12) : start]):
                marked.append(Marker(place, after.end(), strong=False))
        elif marker := _announcement(text, low, word, start, begin, end):
            marked.append(marker)
    if "\\" in low or "<" in low:
        boxes = deque(_BOX.finditer(text, begin, end), maxlen=_MOST)
        marked += [Marker(*match.span(), strong=True) for match in boxes]
    return sorted(marked)


def _places(low: str, words: Iterable[str]) -> list[tuple[str, int]]:
    """(word, place) of the last places of each word."""
    places = []
    for word in words:
        place, left = low.rfind(word), _MOST
        while place >= 0 and left:
            places.append((word, place))
            place, left = low.rfind(word, 0, place), left - 1
    return places


def _announcement(text: str, low: str, word: str, start: int, begin: int, end: int) -> Marker | None:
    place = begin + start
    if start and _WORD.match(low, start - 1) and _WORD.match(low, start):
        return None
    connect = _CONNECT.match(text, place + len(word), end)
    if not connect:
        return None
    line = low.rfind("\n", 0, start) + 1
    lead = low[max(line, start - _LONGEST_LEAD) : start]
    headed = start - line <= _LONGEST_LEAD and bool(_LEAD.fullmatch(lead))
    behind = low[start + len(word) : connect.end() - begin]
    if not (word in _BY_THEMSELVES or _ADJECTIVE.search(lead) or "corre" in behind or "exact" in behind):
        return None
    said = connect["is"] or ((connect["bare"] or connect["dash"]) and not headed and _ADJECTIVE.search(lead))
    if not (headed or connect["colon"] or said):
        return None
    begins = bool(_LEAD.fullmatch(_SENTENCE_BEGINS.split(lead)[-1]))
    plain = connect["is"] and not _CONDITIONAL.fullmatch(connect["is"])
    return Marker(place, connect.end(), strong=not said, sentence=bool(plain and begins))


_FENCE = re.compile(r"```[^\S\n]{0,4}([\w+-]{0,20})[^\S\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_SQL_ELEMENT = re.compile(r"<\s*sql\s*>", re.IGNORECASE)
_SQL_END = re.compile(r"</?\s*sql\s*>", re.IGNORECASE)
_SQL = re.compile(
    r"(?:^|(?<=[\n:`*]))[\s`*>]{0,8}\b((?:select\b(?![^\n]{0,200}\bthe\b[^;]{0,80}\.\s*$)|with\s+(?:recursive\s+)?\w{1,40}\s+as\s*\())",
    re.IGNORECASE | re.MULTILINE,
)
_SQL_STOP = re.compile(
    r";(?=\s*(?:\n|\Z|`))|;(?=\s+[A-Z][a-z])|\n\s*\n"
    r"|\n(?=(?:this|the|note|explanation|here|it|i|that)\b)|```|</?\s*sql",
    re.IGNORECASE,
)
_NULL = re.compile(r"(?:null|none|n/a|not\s+answerable|unanswerable|empty)?[\s`*\"'.;]*\Z", re.IGNORECASE)
_BEFORE_NULL = re.compile(r"[\s`*\"'.;]*")


def after_last_marker(reply: Reply) -> Span:
    """What follows the last strong announcement behind which something stands; without one the reply."""
    for marker in reversed(markers(reply.text, reply.begin, reply.end)):
        if marker.strong and reply.text[marker.end : reply.end].strip(" \t\n*_`#>"):
            return marker.end, reply.end
    return reply.begin, reply.end


def ends_with_marker(reply: Reply) -> bool:
    """Whether the answer is announced, and nothing follows."""
    strong = [marker for marker in markers(reply.text, reply.begin, reply.end) if marker.strong]
    return bool(strong) and not reply.text[strong[-1].end : reply.end].strip(" \t\n*_`#>")


def fenced(text: str, begin: int, end: int) -> Span | None:
    """The last block between fences, which may be open at the end."""
    span = None
    for match in _FENCE.finditer(text, begin, end):
        span = match.span(2)
    return span


def trimmed(text: str, begin: int, end: int, marks: str = " \t\n\r*_`#>\"'") -> Span:
    """A stretch without marks around it."""
    part = text[begin:end]
    begin += len(part) - len(part.lstrip(marks))
    return begin, max(begin, end - (len(part) - len(part.rstrip(marks))))


@lru_cache(maxsize=8)
def _heading(words: str) -> re.Pattern[str]:
    return re.compile(
        rf"^[^\S\n]*(?:[*_#\[]{{1,8}}[^\S\n]*)?(?:final\s+)?(?:{words})[\]*_]{{0,4}}[^\S\n]*(?::[*_]{{0,4}}|(?<=[*\]])[^\S\n]*$|$)",
        re.IGNORECASE | re.MULTILINE,
    )


def text_of(reply: Reply, words: str) -> Span:
    """A free text: what follows the first line that begins with one of the words and a colon, or is one
    of them as a heading; of a text that is one fenced block the block."""
    begin, end = reply.begin, reply.end
    if heading := _heading(words).search(reply.text, begin, end):
        begin = heading.end() if reply.text[heading.end() : end].strip() else begin
    begin, end = trimmed(reply.text, begin, end, " \t\n\r")
    whole = _FENCE.match(reply.text, begin, end)
    if whole and not reply.text[whole.end() : end].strip():
        begin, end = trimmed(reply.text, *whole.span(2), " \t\n\r")
    return begin, end


def sql_of(reply: Reply) -> Span | None:
    """The SQL statement of a reply: an element `<sql>`, a fence, or what begins with SELECT or WITH."""
    text, begin = reply.text, reply.begin
    end = min(reply.end, begin + LONGEST)
    elements = list(_SQL_ELEMENT.finditer(text, begin, end))
    if elements:
        stop = _SQL_END.search(text, elements[-1].end(), end)
        return trimmed(text, elements[-1].end(), stop.start() if stop else end, " \t\n\r`")
    if block := fenced(text, begin, end):
        begin, end = block
    begins = [match.start(1) for match in _SQL.finditer(text, begin, end)]
    if not begins:
        return None
    if block:
        return trimmed(text, begins[0], end, " \t\n\r`")
    last = next((place for place in reversed(begins)), begins[0])
    stop = _SQL_STOP.search(text, last, end)
    finish = (stop.end() if stop[0] == ";" else stop.start()) if stop else end
    return trimmed(text, last, finish, " \t\n\r`*")


def is_abstention(text: str) -> bool:
    """Whether a text says that there is no answer."""
    return bool(_NULL.match(text, _BEFORE_NULL.match(text).end()))  # type: ignore[union-attr]
