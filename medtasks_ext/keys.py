"""Which hosts may receive the key in a variable of the environment. Whoever sends a key asks here.

A file of a stranger may name any variable and any address. So a key goes only where the user bound it
(`$MEDTASKS_KEYS`, an address on the command line), where a bundled file binds it, or to the
provider whose variable it is.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from medtasks_ext.errors import MedtasksError

#: Variable that binds keys to hosts: NAME@HOST, separated by commas.
KEYS = "MEDTASKS_KEYS"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_BINDING = re.compile(rf"({NAME})@(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)")
# a label of a name; a zone is that of an interface, behind `%` or `%25`
_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_SERVER = re.compile(
    r"(?:[\w.~!$&'()*+,;=:%-]*@)?"
    rf"(?:\[(?P<address>[0-9a-f:.]*:[0-9a-f:.]*(?:%[\w.-]+)?)\]|(?P<name>{_LABEL}(?:\.{_LABEL})*)\.?)(?::\d{{0,5}})?",
    re.ASCII | re.IGNORECASE,
)
_OF_PROVIDERS = frozenset({("OPENAI_API_KEY", "api.openai.com"), ("ANTHROPIC_API_KEY", "api.anthropic.com")})


@dataclass(frozen=True)
class Keys:
    bound: frozenset[tuple[str, str]] = _OF_PROVIDERS

    @classmethod
    def of_environment(cls) -> Keys:
        """The providers' own, and those that the environment binds, each NAME@HOST."""
        given = [item for item in re.split(r"[\s,]+", os.environ.get(KEYS, "")) if item]
        return cls(_OF_PROVIDERS | {_binding(item) for item in given})

    def with_host(self, name: str, url: str) -> Keys:
        return Keys(self.bound | {(name, host_of(url))})

    def permit(self, name: str, url: str) -> bool:
        return (name, host_of(url)) in self.bound

    def check(self, name: str, url: str, where: str) -> None:
        if not self.permit(name, url):
            host = host_of(url)
            what = f"{where} would send the key in {name} to {host}, to which nobody has bound it"
            remedy = f"if the key is for it, set {KEYS}={name}@{host}"
            raise MedtasksError(what, where=name, remedy=remedy)


def host_of(url: str) -> str:
    """The host of an address, in lower case: a name without a dot at its end, or an address without brackets.

    Clients read odd spellings in ways of their own: some decode `%2e`, some end a host at a backslash. So a
    host of other characters than names and addresses have is no host. Raises MedtasksError: it cannot be read
    in one way alone.
    """
    try:
        server = urlsplit(url).netloc if url.isascii() and url.isprintable() and " " not in url else ""
    except ValueError:
        server = ""
    match = _SERVER.fullmatch(server)
    address = match["address"] or "" if match else ""
    if match is None or unquote(zone := address.replace("%25", "%")) != zone:
        raise MedtasksError(
            "names no host that all programs read alike",
            where=shown_url(url),
            remedy="write a name of letters, digits, hyphens and dots (an international one in its form with "
            "xn--), or an address such as 127.0.0.1 or [::1]",
        )
    return (address or match["name"]).lower()


def shown_url(url: str) -> str:
    """An address as messages show it: without user info and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _binding(given: str) -> tuple[str, str]:
    name, _, host = given.strip().partition("@")
    match = _BINDING.fullmatch(f"{name}@{host.lower().rstrip('.')}")
    if match is None:
        what, remedy = f"{given!r} binds no key to a host", "write NAME@HOST: MY_API_KEY@api.example.org"
        raise MedtasksError(what, where=KEYS, remedy=remedy)
    return match[1], match[2].strip("[]")
