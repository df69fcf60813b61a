"""Values that say how to log in: they are replaced by a salted digest before anything is recorded.

Two digests of one run are equal where the values are, so that a reader sees whether a key was changed. The
salt is the run's own and random: a digest tells nothing about a value, and digests of two runs are unlike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

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


def without_secrets(content: Any, salt: str, name: str = "") -> Any:
    """The same content with digests in place of secrets, at any depth.

    Secrets are values of names such as `api_key`, `auth_token`, `password`, `header`, and user info and query
    of addresses, wherever they stand.
    """
    if name and is_secret(name) and content not in (None, "", False, True):
        return digest(content, salt)
    if isinstance(content, dict):
        return {key: without_secrets(value, salt, str(key)) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_secrets(value, salt) for value in content]
    if isinstance(content, str) and "://" in content:
        return _URL.sub(lambda found: _bare(found[0], salt), content)
    return content


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


def digest(value: Any, salt: str) -> str:
    return f"secret-{sha256(f'{salt}{value!r}'.encode(errors='replace')).hexdigest()[:12]}"


def _bare(url: str, salt: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return digest(url, salt)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(
        parts._replace(
            netloc=f"{digest(user, salt)}@{host}" if at else host,
            query=digest(parts.query, salt) if parts.query else "",
            fragment="",
        )
    )


def model_arguments(arguments: Mapping[str, Any], salt: str) -> Config:
    plain: Config = json.loads(json.dumps(without_secrets(dict(arguments), salt), default=str))
    return plain
