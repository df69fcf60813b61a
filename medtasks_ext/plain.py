"""What plain lm-eval sends where.

lm-eval asks servers itself, and calls nothing of ours before a request. So a task looks at the address when
its rows are loaded: in what lm-eval hands it (`base_url` among the model's arguments), or in the class of the
model that the command line names; and it holds lm-eval's clients to the addresses that were permitted.
`medtasks run` asks by engines, which look at every request (`egress`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from inspect import signature
from typing import Any

from medtasks_ext.batching import model_of
from medtasks_ext.egress import SERVICES, TRUSTED_HOSTS, Egress, Text, addresses, hold
from medtasks_ext.errors import MedtasksError
from medtasks_ext.keys import shown_url


def check_server(arguments: Mapping[str, Any], text: Text) -> None:
    """Refuse a text that the server of a plain lm-eval may not receive; a run of our own has no arguments."""
    if text.is_open:
        return
    given = arguments.get("base_url") or arguments.get("api_base") or _default_address(model_of(sys.argv))
    egress = Egress.of()
    for address in addresses(given):
        url = address if "//" in address else f"//{address}"
        place = egress.place(url)
        try:
            egress.check(url, [text])
        except MedtasksError as error:
            raise MedtasksError(
                error.what,
                where=shown_url(url),
                remedy="serve the model on this machine; or name the host or its network in "
                f"{TRUSTED_HOSTS}, if the institution runs it; or, if the data-use agreement permits this "
                "one host, use `medtasks run` with --allow-host",
            ) from None
        if place.by_address and find_spec("aiodns"):
            raise MedtasksError(
                "aiodns looks up names past all that holds them to this machine or a trusted network",
                where=shown_url(url),
                remedy="pip uninstall aiodns, or use `medtasks run`",
            )
        hold(place, egress)


def _default_address(model: str | None) -> str | None:
    """None of a model on this machine."""
    if model is None:
        return None
    from medtasks_ext.harness import get_model

    try:
        kind = get_model(model)
    except (ImportError, KeyError, ValueError):
        return None  # lm-eval refuses it in its own words
    stated = signature(kind.__init__).parameters.get("base_url")
    if stated is not None and isinstance(stated.default, str):
        return stated.default
    modules = {base.__module__ for base in kind.__mro__}
    return next((address for module, address in SERVICES.items() if module in modules), None)
