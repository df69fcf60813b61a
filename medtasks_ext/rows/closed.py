"""What a task file says of a schema's columns: label maps, closed answers, blank golds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jinja2 import nodes

from medtasks_ext.rows.columns import Column
from medtasks_ext.rows.expressions import parsed

if TYPE_CHECKING:
    from medtasks_ext.rows.spec import DatasetSpec, RowSchema

#: Filters that leave a value of a closed list what it is.
_HARMLESS = ("trim", "string")
#: Answers that are one of the letters or labels that the format lists.
_ONE_OF = ("exact_letter", "option_letter", "label", "label_word", "relation_label")


def columns_of(spec: DatasetSpec, schema: RowSchema) -> tuple[dict[str, Column], dict[str, Column]]:
    """The schema's columns and its optional ones, with all that the task file says of them.

    Three things are derived. A map of a template that a column looks up, `{'1': 'A', '0': 'B'}[label]`,
    lists the column's values. So does the answer format, where the gold answer is the column. And the column
    whose blank rows are left out (`skip_blank`) may be blank.
    """
    columns = {name: _declared(schema, name) for name in schema.columns}
    optional = {name: _declared(schema, name) for name in schema.optional}
    if "id" not in columns:
        said = schema.types.get("id")
        optional["id"] = _declared(schema, "id") if said else Column(type="id")
    for name, values in _closed(spec, schema).items():
        found = columns.get(name) or optional.get(name)
        if found and found.type == "text" and found.values is None:
            (columns if name in columns else optional)[name] = found.model_copy(update={"values": values})
    if blank := spec.rows.skip_blank:
        source = _bare(schema.fields[blank]) if blank in schema.fields else blank
        if source in columns:
            columns[source] = columns[source].model_copy(update={"nullable": True})
    return columns, optional


def _declared(schema: RowSchema, name: str) -> Column:
    said = schema.types.get(name)
    if isinstance(said, Column):
        return said
    if isinstance(said, list):
        return Column(values=said)
    return Column(type=said or "text")


def _closed(spec: DatasetSpec, schema: RowSchema) -> dict[str, list[Any]]:
    """Column -> the values that maps and the answer format list for it."""
    prompt, found = spec.prompt, dict[str, list[Any]]()
    derived = {name: f"{{{{ {text} }}}}" for name, text in schema.fields.items()}
    for text in (*derived.values(), prompt.instruction, prompt.input, prompt.target):
        for name, keys in _maps(text):
            if name not in derived:
                found.setdefault(name, keys)
    gold = _last(prompt.target)
    given = spec.answer.get("prefix") is None  # else the gold column holds more than the label
    if gold in derived:
        gold, given = _last(derived[gold]), True
    answers = [*spec.answer.get("letters", ()), *spec.answer.get("labels", ())]
    if answers and given and gold is not None and gold in schema.columns and spec.answer["kind"] in _ONE_OF:
        found.setdefault(gold, answers)
    return found


def _maps(text: str) -> Iterator[tuple[str, list[Any]]]:
    """The columns by which constant maps are looked up, with the keys."""
    if "[" not in text:  # most texts have none, and parsing takes a millisecond
        return
    for item in parsed(text).find_all(nodes.Getitem):
        name = _column(item.arg)
        if name is None or not isinstance(item.node, nodes.Dict):
            continue
        keys = [pair.key for pair in item.node.items]
        if all(isinstance(key, nodes.Const) and isinstance(key.value, str) for key in keys):
            yield name, [key.value for key in keys if isinstance(key, nodes.Const)]


def _column(node: nodes.Node) -> str | None:
    while isinstance(node, nodes.Filter) and node.name in _HARMLESS and node.node is not None:
        node = node.node
    return node.name if isinstance(node, nodes.Name) else None


def _bare(expression: str) -> str | None:
    """The column that an expression is, if it is one."""
    return _last(f"{{{{ {expression} }}}}")


def _last(text: str) -> str | None:
    """The column that a template shows, alone or behind and before constant text."""
    shown = [node for output in parsed(text).find_all(nodes.Output) for node in output.nodes]
    shown = [
        part
        for node in shown
        for part in (node.nodes if isinstance(node, nodes.Concat) else [node])
        if not isinstance(part, nodes.TemplateData | nodes.Const)
    ]
    return _column(shown[0]) if len(shown) == 1 else None
