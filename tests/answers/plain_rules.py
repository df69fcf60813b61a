"""The suites' reading rules once more: written plainly, from their description, apart from the package.

BRIDGE's rules are literal `regex` searches. They are slow on long lines with many colons, which
is why the package has its own; here they say what is right. Every rule takes the `answer:` block
of a task, a response, the document and the mode, and returns the parsed answer and whether it is
valid. Lists come sorted and without duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import regex
import yaml

import medtasks_ext

Block = Mapping[str, Any]
Read = tuple[Any, bool]
INVALID: Read = (None, False)
#: marks around reasoning, with their sources
TRACES = yaml.safe_load((Path(medtasks_ext.__file__).parent / "answers/traces.yaml").read_text())

# ---------------------------------------------------------------- BRIDGE: normalisation and cutting

WIDE = (
    "　。“”‘’＂＃＄％＆＇（）＊＋，－．／０１２３４５６７８９：；＜＝＞＠"
    "ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴＵＶＷＸＹＺ［＼］＾＿｀"
    "ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ｛｜｝～"
)
ASCII = (
    " .\"\"''\"#$%&'()*+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
)
assert len(WIDE) == len(ASCII) == 98
NARROW = dict(zip(WIDE, ASCII, strict=True))


def folded(text: str) -> str:
    return "".join(NARROW.get(character, character) for character in text.lower()).strip()


def bridge_cut(text: str, cot: bool) -> str:
    text = folded(text)
    if "</think>" in text:
        text = text.split("</think>", 1)[1]
    if cot and "result:" in text:
        text = text.split("result:", 1)[1].strip()
    if "assistantfinal" in text:
        text = text.split("assistantfinal", 1)[1]
    return text.strip()


def search(pattern: str, text: str) -> Any:
    return regex.search(pattern, text, regex.IGNORECASE)


def labels_of(block: Block) -> list[str]:
    labels = [folded(label) for label in block["labels"]]
    return sorted(labels, key=len, reverse=True) if block.get("longest_first", True) else labels


# ---------------------------------------------------------------- BRIDGE: labels and lists


def label(block: Block, text: str, row: Block, cot: bool) -> Read:
    prefix, any_label = folded(block["prefix"]), "|".join(labels_of(block))
    patterns = {
        "three_step": [rf"{prefix}: ({any_label})", rf"{prefix}:?\s*({any_label})", rf"\b({any_label})\b"],
        "two_step": [rf"{prefix}:\s*({any_label})", rf"\b({any_label})\b"],
    }[block.get("pattern_set", "three_step")]
    response = bridge_cut(text, cot)
    for pattern in patterns:
        if match := search(pattern, response):
            return match.group(1), True
    return INVALID


def pieces(block: Block, text: str, cot: bool) -> list[str]:
    prefix = folded(block["prefix"])
    exact, loose, bare = rf"{prefix}: (.+)", rf"{prefix}:?\s*(.+)", r"\b(.+)\b"
    patterns = {
        "list_three_step": [exact, loose, bare],
        "list_two_step": [exact, bare],
        "list_whole_line": [exact, loose, r"(.+)"],
    }[block.get("pattern_set", "list_three_step")]
    line = bridge_cut(text, cot)
    for pattern in patterns:
        if match := search(pattern, line):
            line = match.group(1)
            break
    return [piece.strip().replace('"', "").replace("'", "") for piece in line.split(",")]


def label_list(block: Block, text: str, row: Block, cot: bool) -> Read:
    labels, found = labels_of(block), set()
    for piece in pieces(block, text, cot):
        for name in labels:
            if name in piece:
                found.add(name)
                break
    return (sorted(found), True) if found else INVALID


def code_list(block: Block, text: str, row: Block, cot: bool) -> Read:
    return sorted(set(pieces(block, text, cot))), True


# ---------------------------------------------------------------- BRIDGE: events and free text


def event_patterns(block: Block) -> list[str]:
    names = [folded(name) for name in block["fields"]]
    last = len(names) - 1
    named = {
        "strict": [", ".join(f"{name}: (.+)" for name in names) + ";"],
        "nospace": [", ".join(f"{name}:(.+)" for name in names) + ";"],
        "loose": [r",\s*".join(r".*:\s*(.+)" if i < last else r".*:\s*([^;]+)" for i in range(last + 1))],
        "bare": {2: [r"(.+):([^;]+)"], 3: [r"(.+):(.+),([^;]+)"]}.get(len(names), []),
        "bracketed": [
            r"subject: (.+), description: \[(.*)\], location: \[(.*)\], status: (.*);",
            r".*:(.+),\s*.*:\s*\[(.*)\],\s*.*:\s*\[(.*)\],\s*.*:\s*([^;]+)",
            r"(.+):(.+),\[(.*)\],\[(.*)\],([^;]+)",
        ],
        "open_line": [
            ", ".join(f"{name}: (.+)" for name in names),
            r",\s*".join([r".*:\s*(.+)"] * len(names)),
            ",".join(["(.+)"] * len(names)),
        ],
    }
    return [pattern for name in block["patterns"] for pattern in named[name]]


def event_lines(text: str) -> list[str]:
    lines = []
    for line in text.split("\n"):
        if line.count(";") >= 2:
            lines += [part.strip() + ";" for part in line.split(";") if part.strip()]
        elif line.strip():
            lines.append(line.strip())
    return lines


def events(block: Block, text: str, row: Block, cot: bool) -> Read:
    patterns, found = event_patterns(block), set()
    for line in event_lines(bridge_cut(text, cot)):
        for pattern in patterns:
            if match := search(pattern, line):
                found.add(tuple(slot.strip() for slot in match.groups()[: len(block["fields"])]))
                break
    return (sorted(found), True) if found else INVALID


def relations(block: Block, text: str, row: Block, cot: bool) -> Read:
    found, valid = events(block, text, row, cot)
    pairs = {(tuple(sorted((one, other))), other, relation) for one, other, relation in found or []}
    return (sorted(pairs), True) if valid else INVALID


def attributes(block: Block, text: str, row: Block, cot: bool) -> Read:
    found = set()
    for line in bridge_cut(text, cot).split("\n"):
        looked_up = {name: search(rf"{name}:\s*([^;,]+)[;,]", line) for name in block["fields"]}
        if looked_up[block["fields"][0]]:
            values = {name: hit.group(1) if hit else "not mentioned" for name, hit in looked_up.items()}
            line = ", ".join(f"{name}: {value}" for name, value in values.items()) + ";"
            match = search(", ".join(f"{name}: (.+)" for name in values) + ";", line)
            found.add(tuple(slot.strip() for slot in match.groups()))
    return (sorted(found), True) if found else INVALID


def passages(block: Block, text: str, row: Block, cot: bool) -> Read:
    found: dict[str, str | None] = dict.fromkeys(map(folded, block["questions"]))
    prefix = folded(block["prefix"])
    for line in bridge_cut(text, cot).split("\n"):
        for question in [question for question, passage in found.items() if passage is None]:
            patterns = rf"{prefix} {question}: ([^;]+)", rf"{question}:\s*([^;]+)"
            if match := search(patterns[0], line.strip()) or search(patterns[1], line.strip()):
                found[question] = match.group(1).strip()
                break
    return [passage or "" for passage in found.values()], None not in found.values()


def free_text(block: Block, text: str, row: Block, cot: bool) -> Read:
    response = bridge_cut(text, cot)
    return (response, True) if response else INVALID


# ---------------------------------------------------------------- MedHELM, ClinicBench, MLB


def untraced(text: str) -> str:
    """What follows the last end of a trace, unless another one is opened there."""
    low = text.replace("İ", "i").lower()
    begins = [trace for trace in TRACES if low.lstrip(" \n*").startswith(trace["open"])]
    begin = 0
    for trace in TRACES:
        if trace["close"] in low and (trace in begins or not trace.get("at_begin")):
            begin = max(begin, len(low) - len(low.split(trace["close"])[-1]))
    rest = low[begin:]
    if any(trace["open"] in rest for trace in TRACES if not trace.get("at_begin")):
        return ""
    return "" if not begin and rest.lstrip().startswith("## thinking") else text[begin:]


def cut(text: str, cot: bool) -> str:
    """What follows the last trace; nothing of a trace that is never closed; under CoT the result."""
    text = untraced(text)
    if cot:
        text = re.split(r"(?i:result|结果)\**\s*[:：]\**", text)[-1]
    return text


def exact_letter(block: Block, text: str, row: Block, cot: bool) -> Read:
    reply = cut(text, cot).strip()
    if cot:
        reply = reply.strip("*").strip()
    elif untraced(text) == text and block.get("one_token", True):
        first, second = reply[:1], reply[1:2]
        if re.fullmatch("[A-Za-z0-9]", first) and not second.isalnum():
            reply = first
    return reply, reply in block["letters"][: len(row["options"]) if "options" in row else None]


def helm_codes(block: Block, text: str, row: Block, cot: bool) -> Read:
    found = re.findall(r"\b[A-Z]\d{1,3}(?:\.\d{1,4})?\.?\b", re.sub(r"\*\*", "", cut(text, cot)))
    codes = sorted({code.rstrip(".").strip() for code in found})
    return codes, bool(codes)


def last_tagged(text: str, tag: str) -> str:
    """What stands in the last pair of tags; nothing without a pair."""
    content, place = "", 0
    while (begin := text.find(f"<{tag}>", place)) >= 0:
        begin += len(f"<{tag}>")
        if (end := text.find(f"</{tag}>", begin)) < 0:
            break
        content, place = text[begin:end].strip(), end
    return content


def helm_text(block: Block, text: str, row: Block, cot: bool) -> Read:
    if "tag" in block:
        return (tagged, True) if (tagged := last_tagged(text, block["tag"])) else INVALID
    reply = cut(text, cot=False)
    if cot:
        lines = reply.split("\n")
        for number, line in enumerate(lines):
            mark = block.get("marker", "result")
            if begun := re.match(rf"\s*[*_#]*\s*(?i:result|{mark})[*_]*\s*[:：]", line):
                reply = "\n".join([line[begun.end() :].lstrip("*_"), *lines[number + 1 :]])
                break
    return (reply.strip(), True) if reply.strip() else INVALID


def label_word(block: Block, text: str, row: Block, cot: bool) -> Read:
    reply, named = cut(text, cot), set()
    for name in sorted(block["labels"], key=len, reverse=True):
        alone = rf"(?i)(?<!\w){re.escape(name)}(?!\w)"
        if re.search(alone, reply):
            named.add(name.lower())
            reply = re.sub(alone, "|", reply)
    return (named.pop(), True) if len(named) == 1 else INVALID


def panel_rating(block: Block, text: str, row: Block, cot: bool) -> Read:
    parts = cut(text, False).split(block.get("marker", "Rating: "))
    if len(parts) < 2:
        return None, False
    window, spelled = parts[1][:5], ""
    while window:
        name = next((f"{v:+d}" for v in block["values"] if v and window.startswith(f"{v:+d}")), None)
        name = name or ("0" if window[0] == "0" else "")
        spelled, window = spelled + name, window[len(name) or 1 :]
    try:
        value = int(spelled)
    except ValueError:
        return None, False
    return (str(value), True) if value in block["values"] else (None, False)


RULES: dict[str, Callable[[Block, str, Block, bool], Read]] = {
    "panel_rating": panel_rating,
    "label": label,
    "label_list": label_list,
    "code_list": code_list,
    "event_lines": events,
    "relation_lines": relations,
    "attribute_lines": attributes,
    "passages": passages,
    "text": free_text,
    "exact_letter": exact_letter,
    "codes_in_text": helm_codes,
    "free_text": helm_text,
    "label_word": label_word,
}


def plainly(answer: Any) -> Any:
    """A parsed answer with its events as tuples and in sorted order, as the rules give them."""
    if not isinstance(answer, list) or not answer or isinstance(answer[0], str):
        return answer
    return sorted(
        {tuple(tuple(slot) if isinstance(slot, list) else slot for slot in event) for event in answer}
    )
