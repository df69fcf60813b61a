"""Seeded random responses to one task: right, nearly right, several at once, noise, reasoning."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

Block = Mapping[str, Any]

#: the document's fields that a format may need
ROW: dict[str, Any] = {"options": ["阿司匹林", "肝素", "华法林", "氯吡格雷", "替罗非班"]}

WORDS = ["no", "yes", "none", "patient", "患者", "无", "有", "result", "analysis", "a", "4.5", "I10", "é"]
MARKS = [*":：,，;；、.。-*#`！？/()[]【】\"“”'‘’ \u3000\xa0\n\t", "  ", "\n\n", "\r\n", "**", "- ", "1. "]
MARKS += ["\x1c", "\x85", "\u2028", "\x0b", "²", "İ", "ﬁ", "e\u0301"]  # space and word to some engines only
TRACES = ["<think>", "</think>", "<THINK>", "</Think>", "assistantfinal", "AssistantFinal"]
RESULTS = ["Result:", "**Result:**", "Result：", "**Result**:", "RESULT :", "Analysis:\n...\nResult:\n"]
CHINESE = ["结果：", "答案：", "答案 为:", "答案是 ："]
CODES = ["I10", "I10.", "J44.9", "E11.65", "S72.001A", "T82.7XXA", "Z3A.01", "E1165", "e11.9", "A00-B99"]
TERMS = ["m51", "M51.2", "8140/33", "2型糖尿病", "高血压", "Hepatitis B", "胃炎 ", "'a'", ""]
VALUES = ["头晕", "chest pain", "10 mg", "a, b", "x: y", "x,y", " ", "无", "b/c", "ＣＴ", "c]", "d1,d2"]
FINDINGS = ["头晕", "Chest pain", "１０ mg", "a; b", "x：y", "无", "ＣＴ", "c]", "结节"]
DRUGS = ["Aspirin", "Ibuprofen (Advil)", "Vitamin B 12", "Insulin, regular", "Betamethasone Topical"]
MENTIONS = ["fever", "Graves ' disease", "nausea , vomiting", "G ( M2 ) gangliosidosis", "HIT", "None"]
#: official patterns need time that grows fast with the length of a line
LINE = 90


def many(block: Block, row: Block, seed: str, n: int) -> Iterator[str]:
    """n responses; a few of them have 20,000 characters."""
    rng = random.Random(seed)
    for number in range(n):
        if number % 400 == 0:
            yield long(block, rng)
        else:
            yield one(block, row, rng)


def one(block: Block, row: Block, rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.02:
        return rng.choice(["", " ", "\n", "\u3000\t", "</think>", "<think>", "Result:", ".", "；", ":", "**"])
    if kind < 0.35:
        text = gold(block, row, rng)
    elif kind < 0.75:
        lines = (damaged(gold(block, row, rng), rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
        text = rng.choice(["\n", " ", ", "]).join(lines)
    else:
        text = noise(block, row, rng)
    return in_lines(wrapped(text, block, row, rng), LINE + 25 * len(block.get("fields", [])))


def long(block: Block, rng: random.Random) -> str:
    filler = rng.choice(["病情分析。", "the patient is well, ", "no, ", "a: b ", "x"]) * 15 + "\n"
    ends = gold(block, ROW, rng), "\n" + gold(block, ROW, rng)
    text = rng.choice(ends) + "\n" + filler * 2_000 + rng.choice(ends)
    return text[:20_000] if rng.random() < 0.5 else text[-20_000:]


def in_lines(text: str, length: int) -> str:
    """Long lines broken, so that the plain rules come to an end."""
    lines = text.split("\n")
    return "\n".join(line[i : i + length] for line in lines for i in range(0, max(len(line), 1), length))


# ---------------------------------------------------------------- right answers


def gold(block: Block, row: Block, rng: random.Random) -> str:
    """A gold answer as the task's format wants it."""
    kind, prefix = block["kind"], block.get("prefix")
    labels = list(block.get("labels", []))
    match kind:
        case "label":
            return f"{prefix}: {rng.choice(labels)}"
        case "label_list":
            return f"{prefix}: " + ", ".join(rng.sample(labels, rng.randint(1, min(4, len(labels)))))
        case "code_list":
            return f"{prefix}: " + ", ".join(rng.choice(TERMS[:-1]) for _ in range(rng.randint(1, 4)))
        case "event_lines" | "relation_lines":
            return "\n".join(event(block, rng) for _ in range(rng.randint(1, 3)))
        case "attribute_lines":
            first, *others = block["fields"]
            named = [first, *rng.sample(others, rng.randint(0, len(others)))]
            return ", ".join(f"{name}: {rng.choice(VALUES)}" for name in named) + ";"
        case "passages":
            return "\n".join(f"{prefix} {question}: {rng.choice(VALUES)};" for question in block["questions"])
        case "text" | "free_text" | "prose":
            text = "".join(rng.choice([*WORDS, " ", "，", "。"]) for _ in range(12)) + "好"
            return f"<{block['tag']}>{text}</{block['tag']}>" if "tag" in block else text
        case "exact_letter":
            return rng.choice(block["letters"])
        case "label_word":
            return rng.choice(labels)
        case "option_letter":
            return f"Answer: {rng.choice(block['letters'])}"
        case "verified_letter":
            return f"\\boxed{{{rng.choice(block['letters'])}}}"
        case "drug_list":
            return "Final Answer:\n" + "\n".join(rng.sample(DRUGS, rng.randint(1, 4)))
        case "entity_list" | "spans":
            return "\n".join(rng.sample(MENTIONS, rng.randint(1, 3)))
        case "relation_label":
            return f"<{rng.choice(labels)}>"
        case "label_set" | "labels":
            return "\n".join(rng.sample(labels, rng.randint(1, 3)))
        case "codes_in_text":
            return ",".join(rng.choice(CODES) for _ in range(rng.randint(1, 5)))
        case "medcalc":
            return rng.choice(
                ["3.5", "-2", "1e3", "06/08/2024", "('14 weeks', '2 days')", "nan", "8.0 points"]
            )
        case "medec":
            return rng.choice(["CORRECT", f"{rng.randint(0, 9)} The patient takes {rng.choice(VALUES)}."])
        case "sql":
            return rng.choice(
                ["select count(*) from patient", "select 1", "drop table patient", "```sql\nselect 2\n```"]
            )
        case "panel_rating":
            return f"Rating: {rng.choice(block['values']):+d}".replace("+0", "0")
        case "marked_letters":
            return "答案：" + "".join(rng.sample("ABCDE"[: len(row["options"])], rng.choice([1, 1, 2, 3])))
        case "choice" | "category" | "ordinal":
            return rng.choice(labels[: len(row["options"])] if kind == "choice" else labels)
        case "choices":
            shown = labels[: len(row["options"])]
            return ", ".join(rng.sample(shown, rng.randint(1, len(shown))))
        case "number":
            return rng.choice(["3.5", "-2", "1250", "0.25"])
        case "tuples":
            return tuples(block, rng)
    raise KeyError(kind)


def tuples(block: Block, rng: random.Random) -> str:
    if block["form"] == "terms":
        return "##".join(rng.choice(TERMS[:-1]) for _ in range(rng.randint(1, 4)))
    closed = {field: list(values) for field, values in block.get("closed_values", {}).items()}
    records = []
    for _ in range(rng.randint(1, 3)):
        record = {field: rng.choice(closed.get(field, FINDINGS)) for field in block["fields"]}
        for field in block.get("lists", []):
            record[field] = "，".join(rng.sample(FINDINGS, rng.randrange(3)))
        for field in block.get("attributes", []):
            record[field] = rng.choice([record[field], ""])
        records.append(record)
    if block["form"] == "json":
        return "[\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]"
    return "\n".join("；".join(f"{field}：{value}" for field, value in record.items()) for record in records)


def event(block: Block, rng: random.Random) -> str:
    closed = {field: list(values) for field, values in block.get("closed_values", {}).items()}
    inventory = [item for items in block.get("inventory", {}).values() for item in items]
    first, *others = block.get("all_fields", block["fields"])
    values = {first: rng.choice(inventory or VALUES[:3])}
    for field in others:
        values[field] = rng.choice(closed.get(field) or VALUES[:3])
        if block["patterns"] == ["bracketed"] and field in ("description", "location"):
            values[field] = f"[{rng.choice(['', '双侧', '间断,加重'])}]"
    end = "" if "open_line" in block["patterns"] else ";"
    return ", ".join(f"{field}: {value}" for field, value in values.items()) + end


# ---------------------------------------------------------------- what models make of them


def damaged(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice([1, 1, 2, 4])):
        i = rng.randrange(len(text) + 1)
        text = rng.choice(
            [
                text[:i] + text[i + 1 :],
                text[:i] + rng.choice(MARKS) + text[i:],
                text[:i] + rng.choice(WORDS + VALUES) + text[i:],
                text[:i] + "\n" + text[i:],
                text.replace(": ", rng.choice([":", "：", ":\n", " ", ": **", " : "])),
                text.replace(", ", rng.choice([",", "，", "、", ";", "\n", " ,"])),
                text.rstrip(";"),
                text.replace(";\n", "; "),
                text.upper(),
                text.title(),
                "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
                f"**{text}**",
                f"“{text}”",
                f"- {text}.",
                text[i:],
                text[:i],
                f"{text} {text}",
            ]
        )
    return text


def noise(block: Block, row: Block, rng: random.Random) -> str:
    own = [item for key in ("labels", "fields", "letters", "questions") for item in block.get(key, [])]
    own += [block.get("prefix", ""), gold(block, row, rng), gold(block, row, rng)]
    pools = [own, WORDS, VALUES, TERMS, CODES, MARKS, MARKS, TRACES, RESULTS, CHINESE]
    return "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 20)))


def wrapped(text: str, block: Block, row: Block, rng: random.Random) -> str:
    other = gold(block, row, rng)
    match rng.randrange(14):
        case 0:
            return f"<think>{other}</think>{text}"
        case 1:
            return f"<think>\n{other}\n</think>\n\n<think>{text}</think> {other}"
        case 2:
            return f"<think>{other} {text}"
        case 3:
            return f"{text}\n<think>{other}"
        case 4:
            return f"Analysis:\n{other}\nResult:\n{text}"
        case 5:
            return f"{other}\n{rng.choice(RESULTS)} {text}"
        case 6:
            return f"Result: {other}\nResult: {text}"
        case 7:
            return f"analysis {other} assistantfinal{text}"
        case 8:
            return f"{noise(block, row, rng)}{text}{noise(block, row, rng)}"
    return text
