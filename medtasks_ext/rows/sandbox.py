"""Jinja that can neither leave its values nor keep the machine busy.

A rendering has a budget: passes of loops and calls, characters that are made, and, as a back stop, seconds.
Compiled templates count by filters that are put in between (`_Counted`).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar

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
#: What rendering raises where a template does what it may not; `range` of more than 100,000 overflows.
REFUSED = (SecurityError, RecursionError, OverflowError)
#: Of one rendering: passes of loops and calls; characters that are made.
STEPS, CHARACTERS = 1_000_000, 12_000_000
#: What a call counts in steps, and what an item of a list or object counts in characters.
_CALL, _ITEM = 10, 20
#: Of one rendering. Only for what the other limits do not count, such as a comparison of long lists.
_SECONDS = 30.0
_LOOK = 100  # steps between looks at the clock
_LONGEST = 10_000  # characters or items that repeating makes, and characters of a text that is taken apart
_BITS = 4096
_WIDE = re.compile(r"\d{4}|\*")

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
#: Filters that make an object of each character of a text.
_ITERATING = _FILTERS & {"groupby", "join", "list", "map", "reject", "select", "sort", "unique"}
_PLAIN = (str, bytes, int, float, list, tuple, dict, set, frozenset)


class _Meter(threading.local):
    steps = made = 0
    began = 0.0


_meter = _Meter()


def _begin() -> None:
    _meter.steps = _meter.made = 0
    _meter.began = time.monotonic()


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


class _Object(dict[Any, Any]):
    """An object that a template wrote; those of rows may refer to each other."""


def _size(value: Any) -> int:
    """Characters of a value as it would be printed, counted up to a little above the limit.

    Objects of rows count by their length alone.
    """
    waiting, size = [value], 0
    while waiting and size <= CHARACTERS:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, list | tuple | dict):
            size += _ITEM * len(item)
            waiting += item.values() if isinstance(item, _Object) else () if isinstance(item, dict) else item
    return size


# ---------------------------------------------------------------------- what is put in between


def _steps(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _step()
        yield item


def _concat(pieces: Iterable[str]) -> str:
    return str(_held("".join(pieces)))


def _held(value: Any) -> Any:
    made = _Object(value) if isinstance(value, dict) else value
    _make(_size(made))
    return made


def _apart(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST:
        raise SecurityError(f"a text of more than {_LONGEST:,} characters is taken apart")
    return value


def _place(value: Any) -> Any:
    if isinstance(value, int) and value < 0:
        raise RowValueError("a place before the first: the row counts from 0, and the template from 1")
    return value


class _Counted(NodeTransformer):
    """Puts filters that count around what is looped over, taken apart, and written.

    In task files it also looks at places that a template computes: a row that counts from 0 would get the
    last item.
    """

    def __init__(self, environment: jinja2.Environment) -> None:
        self._environment = environment

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """The node, its parts first."""
        node = super().visit(node, *args, **kwargs)
        is_load = not isinstance(node, nodes.Tuple) or node.ctx == "load"
        if isinstance(node, nodes.Concat | nodes.List | nodes.Tuple | nodes.Dict) and is_load:
            return self._through("_held", node)
        if isinstance(node, nodes.For):
            node.iter = self._through("_steps", node.iter)
        elif isinstance(node, nodes.Filter) and node.name in _ITERATING:
            node.node = self._through("_apart", node.node)
        elif isinstance(node, nodes.Getitem) and isinstance(self._environment, Declared):
            node.arg = self._through("_place", node.arg) if isinstance(node.arg, nodes.BinExpr) else node.arg
        return node

    def _through(self, name: str, node: Any) -> nodes.Filter:
        counted = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
        counted.set_environment(self._environment)
        return counted


# ---------------------------------------------------------------------- environments


class _Metered(jinja2.Template):
    """Each rendering begins with a whole budget; all kinds of rendering make a context."""

    def new_context(self, *args: Any, **kwargs: Any) -> Context:
        _begin()
        return super().new_context(*args, **kwargs)


class Bounded(ImmutableSandboxedEnvironment):
    """A sandbox whose renderings have a budget."""

    template_class = _Metered
    concat = staticmethod(_concat)
    intercepted_binops: ClassVar[frozenset[str]] = frozenset({"+", "*", "**", "%"})  # type: ignore[misc]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.globals["dict"] = lambda *args, **kwargs: _held(dict(*args, **kwargs))
        del self.globals["lipsum"]
        self.filters |= {"_steps": _steps, "_held": _held, "_apart": _apart, "_place": _place}
        self.filters |= {"join": _join, "replace": _replace}

    def make_globals(self, given: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The names that a template sees besides its values: a chain of maps would be copied each time."""
        return dict(super().make_globals(given))

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        _begin()  # constants are computed now
        return super()._generate(_Counted(self).visit(source), *args, **kwargs)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call what a template calls, which is a step."""
        _step(_CALL)
        of, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(__obj, LoopContext):  # a recursive loop
            args = (_steps(args[0]), *args[1:])
        elif isinstance(of, str) and name == "join" and args:
            args = (list(_apart(args[0])), *args[1:])
            _make(_size(args[0]) + len(args[0]) * len(of))
        elif isinstance(of, str) and name == "replace" and len(args) > 1:
            _make(len(of) + of.count(args[0]) * len(args[1]))
        made = super().call(__context, __obj, *args, **kwargs)
        if isinstance(made, list):
            _make(_ITEM * len(made))
        return made

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The value of an operator; refused where it would be far larger than what it gets."""
        if operator == "%" and isinstance(left, str) and _WIDE.search(left):
            raise SecurityError("a text that is filled up to a great width")
        if operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
            bits = (left.bit_length() or 1) * abs(right) if operator == "**" else left.bit_length()
            if bits + right.bit_length() > _BITS:
                raise SecurityError("a number of more than a thousand digits")
        for one, other in ((left, right), (right, left)):
            is_repeated = operator == "*" and isinstance(other, int) and not isinstance(one, int | float)
            if is_repeated and _size(one) * other > _LONGEST:
                raise SecurityError(f"more than {_LONGEST:,} characters by repeating")
        return _held(super().call_binop(context, operator, left, right))


class Declared(Bounded):
    """The sandbox of task files: besides, only filters and methods from a list, and places from 0 on."""

    def __init__(self, filters: Mapping[str, Callable[..., Any]], **settings: Any) -> None:
        super().__init__(**settings)
        kept = {name: made for name, made in self.filters.items() if name in _FILTERS or name[0] == "_"}
        self.filters = {**kept, **filters}

    def wrap_str_format(self, value: Any) -> None:
        """No method `format`: its text can ask for any width."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have it."""
        is_method = isinstance(obj, _PLAIN) and callable(value)
        return (not is_method or attr in _METHODS) and super().is_safe_attribute(obj, attr, value)


# ---------------------------------------------------------------------- what makes long texts


def _replace(value: Any, old: Any, new: Any, count: int = -1) -> str:
    text, old, new = str(value), str(old), str(new)
    _make(len(text) + text.count(old) * len(new))
    return text.replace(old, new, count)


@pass_eval_context
def _join(context: EvalContext, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    items = list(value)
    _make(_size(items) + len(items) * len(d))
    return str(do_join(context, items, d, attribute))
