"""Draw replies whose answer is known, in ten languages and every shape, and count how they are read.

    python tools/draw_answers.py [--n 100000] [--seed 1] [--keep FILE] [--against FILE]

Replies are made of the forms in `draw_answers.yaml`: an announcement between reasoning and rationales that
announce nothing, an answer alone, all options listed, an answer that is taken back, or none. A reading is
right where it is the answer, or where nothing is read of a reply that states none. `--keep` writes each
reading to a file, `--against` counts which differ from such a file: of another commit, with PYTHONPATH at
its worktree.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from medtasks_ext.answers import answer_format

#: kinds by shape; those of datasets are read under chain of thought, in the language of `ONLY`
LETTERS = ["choice", "choices", "option_letter", "exact_letter", "marked_letters"]
VALUES = ["category", "ordinal", "number", "label_word", "relation_label", "medcalc"]
ITEMS = [
    "labels", "spans", "label_set", "drug_list", "entity_list", "codes_in_text", "json", "lines", "terms",
]  # fmt: skip
ONLY = {**dict.fromkeys(["marked_letters", "json", "lines", "terms"], "zh")}
ONLY |= dict.fromkeys(["option_letter", "exact_letter", *VALUES[3:], *ITEMS[2:6]], "en")
SEVERAL = ("choices", "marked_letters")
#: what a reply does -> how often
WEIGHTS = {
    "announced": 8, "whole": 1, "below": 2, "listed": 2, "listed, announced": 1, "restated": 1,
    "explained": 1, "corrected": 2, "nothing": 3, "traced": 1,
}  # fmt: skip
Form = dict[str, list[str]]


class Drawn(NamedTuple):
    """A reply.

    Attributes:
        kind: of answers. language: of the reply. form: which of the forms it has.
        block: the `answer:` block of a task. document: its row.
        reply: what a model may write.
        gold: the answer, as a gold answer is written; empty where the reply states none.
        other: another answer, as a reply may name it.
    """

    kind: str
    language: str
    form: str
    block: dict[str, Any]
    document: dict[str, Any]
    reply: str
    gold: str
    other: str

    @property
    def says(self) -> Any:
        """The answer as the kind has it; None without any."""
        if not self.gold:
            return None
        gold = answer_format(self.block).read_gold(self.gold, self.document)
        names = {"ordinal": "level", "number": "value", "medcalc": "answer"}
        return gold[names[self.kind]] if self.kind in names else gold

    def read(self, more: str = "") -> Any:
        """What the kind reads of the reply, and of more behind it."""
        found = answer_format(self.block).read(self.reply + more, self.document, cot=True)
        if self.kind == "drug_list" and found.valid:  # names without commas in them
            return [piece for pieces in found.answer for piece in pieces]
        return found.answer if found.valid else None


@lru_cache(maxsize=1)
def forms() -> dict[str, Form]:
    """Language -> its forms."""
    said: dict[str, Form] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return said


def draw(rng: random.Random, kind: str = "") -> Drawn:
    """One reply."""
    kind = kind or rng.choice([*LETTERS, *VALUES, *ITEMS])
    language = ONLY.get(kind) or rng.choice(list(forms()))
    make = _letters if kind in LETTERS else _values if kind in VALUES else _items
    return make(rng, kind, language, forms()[language])


def _letters(rng: random.Random, kind: str, language: str, form: Form) -> Drawn:
    texts = rng.sample(form["words"], rng.choice([4, 5]))
    free = kind in ("choice", "choices")
    labels = list(
        rng.choice(
            ["ABCDE", "ABCDE", "12345", "АБВГД" if language == "ru" else "ABCDE"] if free else ["ABCDE"]
        )
    )
    block: dict[str, Any] = {"kind": kind}
    if free:
        block |= {"language": language, "labels": labels}
    elif kind != "marked_letters":
        block["letters"] = labels
    places = sorted(rng.sample(range(len(texts)), rng.choice([1, 2, 3]) if kind in SEVERAL else 1))
    other = rng.choice([place for place in range(len(texts)) if place not in places])
    style = rng.choice(["{}. {}", "{}) {}", "({}) {}", "**{}.** {}", "- {}. {}", "{}: {}"])
    lines = [style.format(label, text) for label, text in zip(labels, texts, strict=False)]
    if len(places) > 1:
        close = "" if labels[0] != "1" else ","
        joint = rng.choice(["、", "，", "和", close] if language == "zh" else [", ", ",", close])
        answer = joint.join(labels[place] for place in places)
    else:
        answer = _dressed(rng, labels[places[0]], texts[places[0]])
    gold = ("" if kind == "marked_letters" else ",").join(labels[place] for place in places)
    wrong = _dressed(rng, labels[other], texts[other], plain=True)
    reply, how, stated = _said(
        rng, form, answer, wrong, lines,
        below="\n".join(lines[place] for place in places), letters=True, several=kind in SEVERAL,
    )  # fmt: skip
    document = {"options": texts, "gold": None, "target": "", "prompt": ""}
    return Drawn(kind, language, how, block, document, reply, gold if stated else "", wrong)


def _dressed(rng: random.Random, label: str, text: str, *, plain: bool = False) -> str:
    most = ["{l}", "{l}", "({l})", "{l}. {t}", "{l}) {t}"]
    form = rng.choice(
        most if plain else [*most, "**{l}**", "**{l}. {t}**", "**{l}**. {t}", "$\\boxed{{{l}}}$"]
    )
    return form.format(l=label, t=text)


def _values(rng: random.Random, kind: str, language: str, form: Form) -> Drawn:
    block: dict[str, Any] = {"kind": kind}
    lines: list[str] = []
    if kind in ("number", "medcalc"):
        one, other = rng.sample([3, 7, 12, 42.5, 130, 0.25, 64.8], 2)
        comma = kind == "number" and language in ("es", "pt", "fr", "de", "it", "ru")
        answer, wrong = (str(value).replace(".", "," if comma else ".") for value in (one, other))
        gold = answer
        if kind == "number":
            block["language"] = language
    else:
        labels = rng.sample(form["words"], 4)
        if kind == "label_word":
            labels = ["yes", "no", "maybe"]
        elif kind == "relation_label":
            labels = ["mechanism", "effect", "advice", "None"]
        block["labels"] = labels
        if kind in ("category", "ordinal"):
            block["language"] = language
        answer, wrong = rng.sample(labels[: 3 if kind == "relation_label" else None], 2)
        gold = answer
        lines = [rng.choice(["{}", "- {}", "**{}**"])] * len(labels)
        lines = [line.format(label) for line, label in zip(lines, labels, strict=True)]
    document: dict[str, Any] = {"gold": None, "target": "", "prompt": ""}
    if kind == "medcalc":
        document |= {"category": "physical", "lower_limit": gold, "upper_limit": gold}
    reply, how, stated = _said(rng, form, answer, wrong, lines, below=answer)
    return Drawn(kind, language, how, block, document, reply, gold if stated else "", wrong)


def _said(
    rng: random.Random, form: Form, answer: str, other: str, lines: list[str], *, below: str,
    letters: bool = False, several: bool = False,
) -> tuple[str, str, bool]:  # fmt: skip
    """A reply, which form it has, and whether it states the answer.

    Args:
        answer: as it is written. other: another one. lines: all options, each on a line.
        below: the answer on lines of its own.
        letters: whether it is a letter. several: whether it may be more than one.
    """

    def filled(template: str) -> str:
        return template.replace("{x}", answer).replace("{y}", other)

    def some(name: str, most: int) -> list[str]:
        return [filled(text) for text in rng.sample(form[name], rng.randint(0, most))]

    gap = rng.choice([" ", "\n", "\n\n"])
    before, after = some("before", 2), some("after", 2)
    lead = rng.choice(form["leads"])
    announce = rng.choice([*form["announce"], *(form["letters"] if letters else ())])
    announced = filled(announce)
    weights = WEIGHTS | ({"whole": 0} if before else {})
    how = rng.choices(list(weights), list(weights.values()))[0]
    if how.startswith(("listed", "restated", "explained")) and (
        not lines or (how == "explained" and several)
    ):
        how = "announced"
    head, tail = "".join(f"{text}{gap}" for text in before), "".join(f"\n\n{text}" for text in after)
    every = "\n".join(lines)
    if how == "whole":
        return answer, how, True
    if how == "below":
        return f"{head}\n\n{lead}\n{below}{tail}", how, True
    if how == "listed":
        return f"{head}\n\n{lead}\n{every}{tail}", how, False
    if how == "listed, announced":
        return f"{head}\n\n{lead}\n{every}\n\n{announced}{tail}", f"{how} by {announce}", True
    if how == "restated":
        return f"{every}\n\n{head}{announced}{tail}", f"{how}, {announce}", True
    if how == "explained":
        return f"{head}{announced}\n\n{every}{tail}", f"{how}, {announce}", True
    if how == "traced":
        return f"<think>{head}{filled(announce.replace('{x}', '{y}'))}</think>\n{announced}{tail}", how, True
    if how == "announced":
        return f"{head}{announced}{tail}", announce, True
    template = rng.choice(form[how])
    return f"{head}{filled(template)}{tail}", template, how == "corrected"


def _items(rng: random.Random, kind: str, language: str, form: Form) -> Drawn:
    named = rng.sample(form["words"], rng.choice([2, 3]))
    prompt = ". ".join(form["words"])
    block: dict[str, Any] = {"kind": "tuples" if kind in ("json", "lines", "terms") else kind}
    document: dict[str, Any] = {"gold": None, "target": "", "prompt": prompt}
    comma = "、" if language in ("zh", "ja") else ", "
    array = json.dumps(named, ensure_ascii=False)
    written = {
        "bullets": "\n".join(f"- {name}" for name in named),
        "numbers": "\n".join(f"{place}. {name}" for place, name in enumerate(named, 1)),
        "lines": "\n".join(named),
        "commas": comma.join(named),
        "array": array,
        "fence": f"```json\n{array}\n```",
    }
    gold = "\n".join(named)
    if kind == "codes_in_text":
        named = rng.sample(["I10", "E11.9", "J18.9", "N39.0"], 2)
        gold = ", ".join(named)
        written = {
            "commas": gold,
            "lines": "\n".join(named),
            "bullets": "\n".join(f"- {code}: found" for code in named),
        }
    elif block["kind"] == "tuples":
        written, gold = _records(kind, named)
        block |= {"form": kind, **({} if kind == "terms" else {"fields": ["名称", "状态"]})}
    elif kind in ("labels", "label_set"):
        block["labels"] = form["words"]
    elif kind == "entity_list":
        block["types"] = ["disease"]
        written = {how: text for how, text in written.items() if how not in ("fence",)}
    elif kind == "drug_list":
        gold = f"Final Answer:\n{gold}"
    if kind in ("labels", "spans"):
        block["language"] = language
    how = rng.choice(list(written))
    after = rng.sample(form["after"], rng.randint(0, 1))
    other = rng.choice([word for word in form["words"] if word not in named])
    lead = f"{rng.choice(form['leads'])}\n" if after or rng.random() < 0.7 else ""
    before = rng.sample(form["before"], rng.randint(0, 2)) if lead else []
    if rng.random() < 0.1:
        return Drawn(kind, language, "refused", block, document, form["nothing"][0], "", other)
    reply = "\n\n".join([*before, f"{lead}{written[how]}", *after]).replace("{y}", other)
    form_name = f"{how}{' led' if lead else ''}{', a rationale' if after else ''}"
    return Drawn(kind, language, form_name, block, document, reply, gold, other)


def _records(kind: str, named: list[str]) -> tuple[dict[str, str], str]:
    """Records in other forms and as gold."""
    if kind == "terms":
        named = sorted(named)
        gold = "##".join(named)
        return {"asked": gold, "bullets": "\n".join(f"- {name}" for name in named)}, gold
    rows = [{"名称": name, "状态": "无" if kind == "lines" else "阳性"} for name in named]
    array = json.dumps(rows, ensure_ascii=False)
    lines = "\n".join("；".join(f"{key}：{value}" for key, value in row.items()) for row in rows)
    cells = "\n".join(f"| {' | '.join(row.values())} |" for row in rows)
    written = {
        "array": array,
        "fence": f"```json\n{array}\n```",
        "object": json.dumps({"结果": rows}, ensure_ascii=False),
        "slips": array.replace('"', "'").replace("]", ",]"),
        "full width": array.replace(",", "，").replace(":", "："),
        "lines": lines,
        "table": f"| 名称 | 状态 |\n| --- | --- |\n{cells}",
    }
    return written, array if kind == "json" else lines


def drawn(n: int, seed: int) -> Iterator[Drawn]:
    """So many replies."""
    rng = random.Random(seed)
    return (draw(rng) for _ in range(n))


def main() -> int:
    """Print what is right, wrong and unread, by kind and by form."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="write each reading to this file")
    parser.add_argument("--against", type=Path, help="count which readings differ from those of this file")
    given = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    faults: Counter[tuple[str, ...]] = Counter()
    shown: dict[tuple[str, ...], str] = {}
    before = given.against.read_text(encoding="utf-8").splitlines() if given.against else []
    kept: list[str] = []
    for place, item in enumerate(drawn(given.n, given.seed)):
        outcome, reading = judged(item)
        counts[item.kind, outcome] += 1
        kept.append(json.dumps([outcome, reading], ensure_ascii=False, default=str))
        was = json.loads(before[place]) if before else [outcome, reading]
        if (before and json.loads(kept[-1]) != was) or (not before and outcome != "right"):
            key = (item.kind, item.language, item.form, *([was[0], "->"] if before else []), outcome)
            faults[key] += 1
            shown.setdefault(key, f"{item.reply!r} read {reading!r}, was {was[1]!r}, says {item.says!r}")
    for kind in sorted({kind for kind, _ in counts}):
        print(kind, {how: counts[kind, how] for how in ("right", "wrong", "unread")})
    print(
        "all",
        {
            how: sum(n for (_, said), n in counts.items() if said == how)
            for how in ("right", "wrong", "unread")
        },
    )
    for key, n in faults.most_common():
        print(f"{n:6} {' | '.join(key)}\n       {shown[key]}")
    if given.keep:
        given.keep.write_text("\n".join(kept), encoding="utf-8")
    return 0


def judged(item: Drawn) -> tuple[str, Any]:
    """Whether a reading is right, wrong or lacking, and the reading."""
    says, reading = item.says, item.read()
    if reading == says:
        return "right", reading
    return ("unread" if reading is None else "wrong"), reading


if __name__ == "__main__":
    sys.exit(main())
