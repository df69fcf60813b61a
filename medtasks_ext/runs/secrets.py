"""Values that say how to log in: they are taken out before anything is recorded.

They are values of names such as `api_key`, `auth_token`, `password`, `header`, and user info and query of
addresses, wherever they stand.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from medtasks_ext.keys import shown_url
from medtasks_ext.registry.yamlfile import Config
from medtasks_ext.runs.settings import is_known
from medtasks_ext.secret_values import note

#: Parts of names whose values are secrets, whole words between `_`, `-` and changes of case.
_WORDS = frozenset(
    {"key", "apikey", "token", "secret", "password", "passwd", "pwd", "authorization", "auth", "bearer"}
    | {"header", "headers", "cookie", "credential", "credentials", "signature", "sig"}
)
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
#: an address; several of one model stand with `+` between them
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9.-]*://(?:(?!\+https?://)[^\s'\"])+")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Of a known setting it does not."""
    return any(part.lower() in _WORDS for part in _SPLIT.split(name)) and not is_known(name)


def note_secrets(content: Any, name: str = "") -> None:
    """Remember the values of secrets at any depth, so that nothing that is written or printed shows one."""
    if name and is_secret(name):
        note(content)
    elif isinstance(content, dict):
        for key, value in content.items():
            note_secrets(value, str(key))
    elif isinstance(content, list | tuple):
        for value in content:
            note_secrets(value)
    elif isinstance(content, str) and "://" in content:
        for url in _URL.findall(content):
            note_address(url)


def note_address(url: str) -> None:
    """Remember what an address holds to log in: parts of its user info and its query."""
    with suppress(ValueError):
        parts = urlsplit(url)
        note(parts.username, parts.password, *(value for _, value in parse_qsl(parts.query)))


def dropped_secrets(content: Any, *, fields: bool = False) -> Any:
    """The same content without secrets, at any depth: what can be compared between runs."""
    if isinstance(content, dict):
        kept = ((key, value) for key, value in content.items() if fields or not is_secret(str(key)))
        return {key: dropped_secrets(value, fields=key == "properties") for key, value in kept}
    if isinstance(content, list | tuple):
        return [dropped_secrets(value) for value in content]
    if isinstance(content, str) and "://" in content:
        return _URL.sub(lambda found: shown_url(found[0]), content)
    return content


def without_login(config: Config) -> Config:
    """lm-eval's record of a task's configuration, which holds all model arguments under `metadata`."""
    parts = ("generation_kwargs", "metadata")
    return {**config, **{name: dropped_secrets(config[name]) for name in parts if name in config}}
