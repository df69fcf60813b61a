"""Chat templates in Jinja: those of files, and the layout that a model's configuration holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import jinja2
import jinja2.ext

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.sandbox import NO_TEMPLATE, REFUSED, Bounded

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.parser import Parser

_LAYOUT = "metadata.layout"


def layout_template(given: object) -> Callable[..., str]:
    """What lays turns out as plain text, by `metadata.layout` of a model's configuration."""
    if not isinstance(given, str):
        raise MedtasksError("is no text", where=_LAYOUT, remedy="write a chat template in Jinja")
    return _layout(given)


@lru_cache(maxsize=8)
def _layout(text: str) -> Callable[..., str]:
    return rendering(text, {}, _LAYOUT)


def rendering(text: str, tokens: Mapping[str, str], where: str) -> Callable[..., str]:
    """What renders turns by a chat template as transformers does (`utils/chat_template_utils.py`).

    `tokens`: special tokens that it may name, such as `bos_token`. Returns: turns -> text; further keywords
    are the template's own switches.
    """
    try:
        template = _environment().from_string(text)
    except NO_TEMPLATE as error:
        line = f" in line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        what = f"no valid Jinja{line}: {error}"
        raise MedtasksError(what, where=where, remedy="mend the template") from None

    def render(turns: list[dict[str, str]], add_generation_prompt: bool = True, **switches: object) -> str:
        said = {"messages": turns, "add_generation_prompt": add_generation_prompt, **tokens, **switches}
        try:
            return template.render(tools=None, documents=None, **said)
        except REFUSED as error:
            what = f"the chat template does what it may not: {error}"
            raise MedtasksError(what, where=where, remedy="mend the template") from None

    return render


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what the assistant says; the text is left as it is."""

    tags = {"generation"}  # noqa: RUF012  as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> Bounded:
    environment = Bounded(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)
