"""Documents and parsed answers for metrics, without files."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from medtasks_ext.prompts.documents import Document, Loaded


def documents(
    golds: Sequence[Any], *, labels: Iterable[str] = (), language: str = "zh", **fields: Any
) -> list:
    """One document per gold answer, all of one file. `labels`: the distinct gold labels of that file."""
    loaded = Loaded({"task": "task", "language": language, "origin": "local"}, labels=sorted(labels))
    made = []
    for number, gold in enumerate(golds):
        document = Document(id=str(number), gold=gold, cot=False, data="local", target="", **fields)
        document.loaded = loaded
        made.append(document)
    return made


def parsed(answer: Any, *, valid: bool = True, unclosed: bool = False, **more: Any) -> dict[str, Any]:
    return {"answer": answer, "valid": valid, "unclosed_reasoning": unclosed, **more}


INVALID = parsed(None, valid=False)


def columns(process: Callable[..., dict[str, Any]], docs: list, answers: Iterable[Any]) -> dict[str, list]:
    """The results of all documents, metric by metric. An answer is the parsed one or `INVALID`."""
    table: dict[str, list] = {}
    for document, answer in zip(docs, answers, strict=True):
        result = process(document, [answer if answer is INVALID else parsed(answer)])
        for name, value in result.items():
            table.setdefault(name, []).append(value)
    return table


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
