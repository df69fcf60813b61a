"""Jinja that can neither leave its values nor keep the machine busy.

A rendering has a budget: passes of loops and calls, characters that are made, and, as a back stop, seconds.
Compiled templates count loops, joined texts and new lists by filters that are put in between (`_Counted`).
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Sized
from typing import Any, ClassVar, cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import do_join
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_eval_context
from jinja2.visitor import NodeTransformer

from medtasks_ext.privacy import RowValueError

#: What compiling raises where a text is no template: a number of 5,000 digits, brackets a thousand deep.
NO_TEMPLATE = (jinja2.TemplateError, RecursionError, ValueError, SyntaxError, MemoryError)
#: What rendering raises where a template does what it may not.
REFUSED = (SecurityError, RecursionError)
#: Of one rendering: passes of loops and calls; characters that are made.
STEPS, CHARACTERS = 1_000_000, 50_000_000
#: What a call counts in steps, and what an item of a list or object counts in characters.
_CALL, _ITEM = 10, 20
#: Of one rendering. Only for what the other limits do not count, such as a comparison of long lists.
_SECONDS = 30.0
_LONGEST_RANGE = 10_000
_BITS = 4096
_LOOK = 100  # steps between looks at the clock
_WIDE = re.compile(r"%[^%a-zA-Z]*(\d{4}|\*)")

#: Jinja's own filters whose results are about as long as what they get.
_FILTERS = frozenset(
    {"abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "groupby", "int", "items"}
    | {"join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace"}
    | {"reverse", "round", "select", "selectattr", "sort", "string", "sum", "title", "trim", "truncate"}
    | {"unique", "upper", "wordcount"}
)
#: Methods of texts, numbers, lists and objects that are like them.
_METHODS = frozenset(
    {"capitalize", "casefold", "count", "endswith", "find", "get", "index", "isalnum", "isalpha", "isascii"}
    | {"isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "items", "join"}
    | {"is_integer", "keys", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace"}
    | {"rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip"}
    | {"swapcase", "title", "upper", "values"}
)
#: Filters that hold an object for each item of what they get.
_LISTING = ("list", "sort", "unique", "groupby", "dictsort", "batch", "slice")
#: Where `split` and `splitlines` part a text.
_WORD, _LINE_END = re.compile(r"\S+"), re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_PLAIN = (str, bytes, int, float, list, tuple, dict, set, frozenset)


class _Meter(threading.local):
    def __init__(self) -> None:
        self.steps = self.made = 0
        self.began = 0.0
        self.objects: dict[int, Any] = {}  # those that the template wrote, by identity


_meter = _Meter()


def _begin() -> None:
    _meter.steps = _meter.made = 0
    _meter.began = time.monotonic()
    _meter.objects = {}


def _step(n: int = 1) -> None:
    _meter.steps += n
    if _meter.steps % _LOOK < n:
        if _meter.steps > STEPS:
            raise SecurityError(f"more than {STEPS:,} passes of loops and calls")
        if time.monotonic() - _meter.began > _SECONDS:
            raise SecurityError(f"more than {_SECONDS:.0f} seconds for one text")


def _make(size: int) -> None:
    _meter.made += size
    if _meter.made > CHARACTERS:
        raise SecurityError(f"more than {CHARACTERS:,} characters for one text")


def _size(value: Any) -> int:
    """Characters of a value as it would be printed, counted up to a little above the limit.

    Objects of rows count by their length alone: those of some sources refer to each other.
    """
    waiting, size = [value], 0
    while waiting and size <= CHARACTERS:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, list | tuple):
            size += _ITEM * len(item)
            waiting += item
        elif isinstance(item, dict):
            size += _ITEM * len(item)
            if id(item) in _meter.objects:
                waiting += item.values()
    return size


# ---------------------------------------------------------------------- what is put in between


def _steps(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _step()
        yield item


def _concat(pieces: Iterable[str]) -> str:
    texts = list(pieces)
    _make(sum(map(len, texts)))
    return "".join(texts)


def _joined(parts: list[Any]) -> str:
    return _concat(map(_string, parts))


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | dict):
        _make(_size(value))
    return str(value)


def _held(value: Any) -> Any:
    if isinstance(value, dict):
        _meter.objects[id(value)] = value
    _make(_size(value))
    return value


class _Counted(NodeTransformer):
    """Puts filters that count around loops, `~`, and lists and objects that a template writes.

    In task files it also looks at places that a template computes: a row that counts from 0 would get the
    last item.
    """

    def __init__(self, environment: jinja2.Environment) -> None:
        self._environment = environment

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.arg, nodes.BinExpr) and isinstance(self._environment, Declared):
            node.arg = self._through("_place", node.arg)
        return node

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  as jinja2 names it
        self.generic_visit(node)
        node.iter = self._through("_steps", cast(nodes.Expr, node.iter))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(node)
        return self._through("_joined", nodes.List(node.nodes, lineno=node.lineno))

    def visit_List(self, node: nodes.List) -> nodes.Expr:  # noqa: N802
        return self._measured(node, node.items)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:  # noqa: N802
        return node if node.ctx == "store" else self._measured(node, node.items)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:  # noqa: N802
        return self._measured(node, [part for pair in node.items for part in (pair.key, pair.value)])

    def _measured(self, node: nodes.Expr, parts: Sequence[nodes.Node]) -> nodes.Expr:
        if all(isinstance(part, nodes.Const) for part in parts):
            return node
        self.generic_visit(node)
        return self._through("_held", node)

    def _through(self, name: str, node: nodes.Expr) -> nodes.Filter:
        counted = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
        counted.set_environment(self._environment)
        return counted


def _place(value: Any) -> Any:
    if isinstance(value, int) and value < 0:
        raise RowValueError("a place before the first: the row counts from 0, and the template from 1")
    return value


# ---------------------------------------------------------------------- environments


class _Metered(jinja2.Template):
    """Each rendering begins with a whole budget; all kinds of rendering make a context."""

    def new_context(self, *args: Any, **kwargs: Any) -> Context:
        _begin()
        return super().new_context(*args, **kwargs)


def _range(*limits: int) -> range:
    wanted = range(*limits)
    if len(wanted) > _LONGEST_RANGE:
        raise SecurityError(f"range() of more than {_LONGEST_RANGE:,} numbers")
    return wanted


class Bounded(ImmutableSandboxedEnvironment):
    """A sandbox whose renderings have a budget."""

    template_class = _Metered
    concat = staticmethod(_concat)
    intercepted_binops: ClassVar[frozenset[str]] = frozenset({"+", "*", "**", "%"})  # type: ignore[misc]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.globals["range"] = _range
        self.globals["dict"] = lambda *args, **kwargs: _held(dict(*args, **kwargs))
        del self.globals["lipsum"]
        self.filters |= {"_steps": _steps, "_joined": _joined, "_held": _held, "_place": _place}
        self.filters |= {"join": _join, "replace": _replace, "string": _string}
        self.filters |= {name: _listing(self.filters[name]) for name in _LISTING}

    def make_globals(self, given: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The names that a template sees besides its values: a chain of maps would be copied each time."""
        return dict(super().make_globals(given))

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        _begin()  # constants are computed now
        return super()._generate(_Counted(self).visit(source), *args, **kwargs)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call what a template calls, which is a step."""
        _step(_CALL)
        if isinstance(__obj, LoopContext):  # a recursive loop
            args = (_steps(args[0]), *args[1:])
        elif isinstance(of := getattr(__obj, "__self__", None), str):
            if __obj.__name__ == "join" and args:
                args = (list(args[0]), *args[1:])
            _check_method(of, __obj.__name__, args)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The value of an operator whose result may be far larger than what it gets."""
        _check_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)


class Declared(Bounded):
    """The sandbox of task files: besides, only filters and methods from a list, and places from 0 on."""

    def __init__(self, filters: Mapping[str, Callable[..., Any]], **settings: Any) -> None:
        super().__init__(**settings)
        kept = {name: made for name, made in self.filters.items() if name in _FILTERS or name[0] == "_"}
        self.filters = {**kept, **filters}
        self._safe: dict[tuple[type, str], bool] = {}  # of plain types, whose values are all alike in this

    def wrap_str_format(self, value: Any) -> None:
        """No method `format`: its text can ask for any width."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have it."""
        if isinstance(obj, _PLAIN) and callable(value) and attr not in _METHODS:
            return False
        kind = type(obj)
        if kind not in _PLAIN:
            return super().is_safe_attribute(obj, attr, value)
        safe = self._safe.get((kind, attr))
        if safe is None:
            safe = self._safe[kind, attr] = super().is_safe_attribute(obj, attr, value)
        return safe


# ---------------------------------------------------------------------- what makes long texts


def _replace(value: Any, old: Any, new: Any, count: int = -1) -> str:
    text = str(value)
    _check_method(text, "replace", (str(old), str(new)))
    return text.replace(str(old), str(new), count)


@pass_eval_context
def _join(context: EvalContext, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    items = list(value)
    _make(_size(items) + len(items) * len(d))
    return str(do_join(context, items, d, attribute))


def _listing(made: Callable[..., Any]) -> Callable[..., Any]:
    """The same filter, which counts the items of what it gets: each may become an object of its own."""

    @functools.wraps(made)  # with what jinja2 marks filters by
    def counting(*args: Any, **kwargs: Any) -> Any:
        place = int(hasattr(made, "jinja_pass_arg"))
        items = args[place]
        if isinstance(items, Sized):
            _make(_ITEM * len(items))
        elif isinstance(items, Iterable):
            items = _counted(items)
        return made(*args[:place], items, *args[place + 1 :], **kwargs)

    return counting


def _counted(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _make(_ITEM)
        yield item


def _check_method(text: str, name: str, args: tuple[Any, ...]) -> None:
    if name in ("split", "rsplit", "splitlines"):  # into how many texts at most
        n = sum(1 for _ in (_LINE_END if name == "splitlines" else _WORD).finditer(text)) + 1
        if name != "splitlines" and args and isinstance(args[0], str) and args[0]:
            n = text.count(args[0]) + 1
        _make(_ITEM * n)
    if name == "replace" and len(args) > 1:
        _make(len(text) + text.count(args[0]) * len(args[1]))
    elif name == "join" and args:
        _make(_size(args[0]) + len(args[0]) * len(text))


def _check_operator(operator: str, left: Any, right: Any) -> None:
    """Refuse a result that would be far larger than what it is made of."""
    bits, are_integers = 0, isinstance(left, int) and isinstance(right, int)
    if operator == "+" and not isinstance(left, int | float):
        _make(_size(left) + _size(right))
    elif operator == "*":
        for one, other in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple) and isinstance(other, int):
                _make(_size(one) * max(0, other))
        bits = left.bit_length() + right.bit_length() if are_integers else 0
    elif operator == "**":
        bits = left.bit_length() * abs(right) if are_integers else 0
    elif operator == "%" and isinstance(left, str):
        if _WIDE.search(left):
            raise SecurityError("a text that is filled up to a great width")
        _make(len(left) + len(left) * _size(right))
    if bits > _BITS:
        raise SecurityError("a number of more than a thousand digits")
