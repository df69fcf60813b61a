"""Texts in Python source, folded from its syntax tree. The source is never imported and nothing of it runs.

A closed set of nodes is understood: string constants, f-strings, sums, products of a constant, names of
local and module constants, `str.format`, `str.replace`, `str.strip`, `parameter or text` where nothing is
given for the parameter, and classes whose constructor hands one text to its base. Anything else must be a
slot, which a row fills, or is an error that names it.
"""

from __future__ import annotations

import ast
import re
import string
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.blocks import TextLocation

_REMEDY = "check the task's block `official` against that file; the pinned version is in suite.yaml"


@dataclass(frozen=True)
class Slot:
    """What a row fills in; `name` is the expression as the source writes it."""

    name: str


@dataclass(frozen=True)
class FoldedText:
    parts: tuple[str | Slot, ...]

    @property
    def slots(self) -> set[str]:
        return {part.name for part in self.parts if isinstance(part, Slot)}

    @property
    def text(self) -> str | None:
        return None if self.slots else "".join(str(part) for part in self.parts)

    def filled(self, value: Callable[[str], str]) -> str:
        """The text with the value of each slot in its place."""
        return "".join(part if isinstance(part, str) else value(part.name) for part in self.parts)

    def shown(self) -> str:
        """The text with the names of its slots in braces."""
        return self.filled(lambda name: name if name.startswith("{") else f"{{{name}}}")


def constant(text: str) -> FoldedText:
    return FoldedText((text,) if text else ())


def in_braces(text: str) -> FoldedText:
    """A text whose names in braces are slots, as `str.format` reads it; the braces belong to the names."""
    parts: list[str | Slot] = []
    for literal, name, _, _ in string.Formatter().parse(text):
        parts.append(literal)
        if name is not None:
            parts.append(Slot(f"{{{name}}}"))
    return FoldedText(tuple(part for part in parts if part != ""))


def split_at(text: str, names: Collection[str]) -> FoldedText:
    """A text in which these names, as they stand there, are slots."""
    longest_first = sorted(names, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text) if names else [text]
    return FoldedText(tuple(Slot(part) if part in names else part for part in parts if part))


@dataclass(frozen=True)
class _Scope:
    """Where an expression stands: the slots, the function, and what its parameters stand for."""

    slots: Collection[str]
    function: ast.FunctionDef | None = None
    bound: Mapping[str, FoldedText] = field(default_factory=dict)


class PythonSource:
    """A file of Python source; `beside` gives that of a module of the same artefact, by its dotted name."""

    def __init__(self, text: str, where: str, beside: Callable[[str], PythonSource] | None = None) -> None:
        self.where, self._beside = where, beside
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            raise self._error(f"is no Python source ({error})") from None

    # ------------------------------------------------------------------ finding

    @cached_property
    def _functions(self) -> list[ast.FunctionDef]:
        return [node for node in _statements(self.tree) if isinstance(node, ast.FunctionDef)]

    def taken(self, place: TextLocation, slots: Collection[str]) -> FoldedText:
        """The text at a place, with slots for what rows fill in."""
        function = self.function(place.inside) if place.inside else None
        nodes = list(_taken(function or self.tree, place.take))
        if place.key is not None:
            nodes = [value for node in nodes for value in _of_key(node, place.key)]
        named = ", ".join(filter(None, (place.inside, place.take)))
        if not nodes or (place.nth is not None and place.nth >= len(nodes)):
            raise self._error(f"{named}: there is no such text")
        if len(nodes) > 1 and place.nth is None:
            raise self._error(f"{named}: {len(nodes)} texts; say which by `nth`")
        # a text that is made of the one before it, `text = text.replace(…)`
        node, bound = nodes[place.nth or 0], dict[str, FoldedText]()
        if place.nth and any(isinstance(part, ast.Name) and part.id == place.take for part in ast.walk(node)):
            bound[place.take] = self.folded(nodes[place.nth - 1], _Scope(slots, function))
        template = self.folded(node, _Scope(slots, function, bound))
        if not (place.braces or place.marks):
            return template
        text = template.text
        if text is None:
            raise self._error(f"{named}: has slots already, so names in it cannot be filled in")
        return in_braces(text) if place.braces else split_at(text, slots)

    def listed(self, place: TextLocation, slots: Collection[str]) -> list[FoldedText]:
        function = self.function(place.inside or "")
        lists = [node for node in _taken(function, place.take) if isinstance(node, ast.List)]
        if len(lists) != 1:
            raise self._error(f"{place.inside}, {place.take}: {len(lists)} lists")
        return [self.folded(item, _Scope(slots, function)) for item in lists[0].elts]

    def function(self, name: str) -> ast.FunctionDef:
        """The function of that name, in a class or not; MedtasksError where there are several."""
        functions = [node for node in self._functions if node.name == name]
        if len(functions) != 1:
            raise self._error(f"has {len(functions)} functions {name}")
        return functions[0]

    def decorated(self, name: str) -> ast.FunctionDef:
        for node in self._functions:
            calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            firsts = [arg for call in calls for arg in call.args[:1]]
            if any(isinstance(first, ast.Constant) and first.value == name for first in firsts):
                return node
        raise self._error(f"has no function that is registered as {name}")

    def table(self, name: str) -> Any:
        """A literal of the module or of one of its classes, with what is later assigned to its keys."""
        value: Any = None
        try:
            for node in _statements(self.tree):
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                    if isinstance(target, ast.Name) and target.id == name:
                        value = ast.literal_eval(node.value)
                    elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == name:
                        value[ast.literal_eval(target.slice)] = ast.literal_eval(node.value)
        except (ValueError, TypeError):
            raise self._error(f"{name} is no literal") from None
        if value is None:
            raise self._error(f"has no {name}")
        return value

    def texts(self, name: str) -> list[str]:
        """Of a list of the module; the last assignment counts, `[text + x for text in NAME]` too."""
        texts: list[str] | None = None
        for node in self.tree.body:
            if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name):
                continue
            value = node.value
            if isinstance(value, ast.List):
                texts = [self._text(item) for item in value.elts]
            elif (
                isinstance(value, ast.ListComp)
                and len(value.generators) == 1
                and not value.generators[0].ifs
                and ast.unparse(value.generators[0].iter) == name
                and texts is not None
            ):
                item = ast.unparse(value.generators[0].target)
                texts = [self._text(value.elt, {item: constant(text)}) for text in texts]
            else:
                raise self._error(f"{name} is no list of texts")
        if texts is None:
            raise self._error(f"has no list {name}")
        return texts

    def text(self, name: str) -> str:
        return self._text(ast.Name(name))

    def _text(self, node: ast.expr, bound: Mapping[str, FoldedText] | None = None) -> str:
        text = self.folded(node, _Scope((), None, bound or {})).text
        assert text is not None  # without slots
        return text

    # ------------------------------------------------------------------ folding

    def fold_in(self, function: ast.FunctionDef, node: ast.expr, slots: Collection[str]) -> FoldedText:
        return self.folded(node, _Scope(slots, function))

    def folded(self, node: ast.expr, scope: _Scope) -> FoldedText:
        """An expression as a text with slots."""
        written = ast.unparse(node)
        if written in scope.slots:
            return FoldedText((Slot(written),))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return constant(node.value)
        if isinstance(node, ast.JoinedStr):
            return _joined(self.folded(self._bare(part), scope) for part in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _joined(self.folded(side, scope) for side in (node.left, node.right))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            text, times = node.left, node.right
            if isinstance(text, ast.Constant) and isinstance(times, ast.Constant):
                return constant(str(text.value) * int(str(times.value)))
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and _is_none(node.values[0], scope):
            return self.folded(node.values[1], scope)
        if isinstance(node, ast.Name):
            return self._named(node.id, scope)
        if isinstance(node, ast.Call):
            return self._called(node, scope)
        raise self._error(f"{_short(written)} is neither a text nor a slot")

    def _named(self, name: str, scope: _Scope) -> FoldedText:
        if name in scope.bound:
            return scope.bound[name]
        local = list(_taken(scope.function, name)) if scope.function else []
        if len(local) == 1:
            return self.folded(local[0], scope)
        assigned = [node for node in self.tree.body if isinstance(node, ast.Assign)]
        outer = [node.value for node in assigned if ast.unparse(node.targets[0]) == name]
        if not local and len(outer) == 1:
            return self.folded(outer[0], _Scope(scope.slots))
        raise self._error(f"{name} is neither one text nor a slot")

    def _called(self, node: ast.Call, scope: _Scope) -> FoldedText:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == "format" and not node.args:
            text = self.folded(called.value, scope).text
            if text is not None:
                given = {item.arg: self.folded(item.value, scope) for item in node.keywords if item.arg}
                values = {f"{{{name}}}": value for name, value in given.items()}
                parts = in_braces(text).parts
                return _joined(values[x.name] if isinstance(x, Slot) else constant(x) for x in parts)
        if isinstance(called, ast.Attribute) and called.attr == "strip" and not (node.args or node.keywords):
            text = self.folded(called.value, scope).text
            if text is not None:
                return constant(text.strip())
        if isinstance(called, ast.Attribute) and called.attr == "replace" and len(node.args) == 2:
            text, old, new = (self.folded(item, scope).text for item in (called.value, *node.args))
            if text is not None and old is not None and new is not None:
                return constant(text.replace(old, new))
        if isinstance(called, ast.Name) and (home := self._home(called.id)):
            handed = [self.folded(item, scope) for item in node.args]
            by_name = {item.arg: self.folded(item.value, scope) for item in node.keywords if item.arg}
            return home.constructed(called.id, handed, by_name)
        raise self._error(f"{_short(ast.unparse(node))} is neither a text nor a slot")

    def _home(self, name: str) -> PythonSource | None:
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and any(item.name == name for item in node.names):
                return self._beside(node.module or "") if self._beside else None
        return None

    def constructed(self, name: str, given: list[FoldedText], named: Mapping[str, FoldedText]) -> FoldedText:
        """The text that the constructor of a class hands to that of its base."""
        classes = [item for item in self.tree.body if isinstance(item, ast.ClassDef) and item.name == name]
        methods = [item for made in classes for item in made.body if isinstance(item, ast.FunctionDef)]
        method = next((item for item in methods if item.name == "__init__"), None)
        if method is None:
            raise self._error(f"has no class {name} with a constructor")
        names, defaults = [item.arg for item in method.args.args[1:]], method.args.defaults
        pairs = zip(names[len(names) - len(defaults) :], defaults, strict=True)
        bound = {name: self.folded(value, _Scope(())) for name, value in pairs}
        bound |= {**dict(zip(names, given, strict=False)), **named}
        handed = list(_taken(method, "super().__init__"))
        if len(handed) != 1:
            raise self._error(f"{method.name} hands on no single text")
        return self.folded(handed[0], _Scope((), method, bound))

    def _bare(self, part: ast.expr) -> ast.expr:
        """What an f-string formats; a conversion or format would change it."""
        if not isinstance(part, ast.FormattedValue):
            return part
        if part.conversion != -1 or part.format_spec:
            raise self._error(f"{_short(ast.unparse(part.value))} is converted or formatted")
        return part.value

    def _error(self, what: str) -> MedtasksError:
        return MedtasksError(what, where=self.where, remedy=_REMEDY)


def _is_none(node: ast.expr, scope: _Scope) -> bool:
    """Whether it is a parameter of the function whose default is, or which has none: it is handed on."""
    if not (isinstance(node, ast.Name) and scope.function):
        return False
    arguments = scope.function.args
    named = arguments.args[::-1]
    defaults = {item.arg: value for item, value in zip(named, arguments.defaults[::-1], strict=False)}
    default = defaults.get(node.id)
    return node.id in {item.arg for item in named} and (
        default is None or (isinstance(default, ast.Constant) and default.value is None)
    )


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a module, in the order of `ast.walk`, which also goes through their expressions."""
    todo: deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        for block in ("body", "handlers", "orelse", "finalbody", "cases"):
            todo.extend(getattr(node, block, ()))
        yield node


def _taken(function: ast.FunctionDef | ast.Module, take: str) -> Iterator[ast.expr]:
    """What a function or module assigns to a name, returns, or hands to a call, in order."""
    for node in _in_order(function):
        if (
            (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == take)
            or (isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == take)
            or (isinstance(node, ast.Return) and node.value and take == "return")
        ):
            assert node.value is not None  # an assignment or a return with a value
            yield node.value
        elif isinstance(node, ast.Expr) and isinstance(call := node.value, ast.Call) and call.args:
            yield from call.args[:1] if ast.unparse(call.func) == take else ()


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        yield from _in_order(child)


def _of_key(node: ast.expr, key: str) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                yield value


def _joined(templates: Iterator[FoldedText]) -> FoldedText:
    parts: list[str | Slot] = []
    for template in templates:
        for part in template.parts:
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
    return FoldedText(tuple(parts))


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
