"""Which servers may receive which text. Whoever opens a connection for prompts asks here.

Text of open datasets may go anywhere. Text that is gated or private goes to addresses of this machine, to
hosts and networks that `$MEDTASKS_TRUSTED_HOSTS` names, and to hosts that a command permits by name.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.keys import host_of, shown_url

#: Variable that names trusted hosts and networks, separated by commas.
TRUSTED_HOSTS = "MEDTASKS_TRUSTED_HOSTS"
#: Modules of lm-eval's models that ask a service of their own -> its address, where no other is given.
#: LiteLLM chooses among many.
SERVICES = {
    "lm_eval.models.anthropic_llms": "https://api.anthropic.com",
    "lm_eval.models.textsynth": "https://api.textsynth.com",
    "lm_eval.models.ibm_watsonx_ai": "https://watsonx.ai",
    "lm_eval.models.litellm_llms": "https://litellm.invalid",
}
#: Where a connection ends that no permission covers.
LEFT = "an address that is neither of this machine nor of a trusted network"
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Text:
    dataset: str  # its name; empty where nobody says
    is_open: bool  # whether everyone may read it


#: A request that holds no text of a row.
NO_TEXT = Text("", is_open=True)
#: Nobody says whose text it is, so it is treated as text that is not open.
UNKNOWN_TEXT = Text("", is_open=False)


class Permission(str, Enum):
    LOOPBACK = "loopback"  # it is on this machine
    TRUSTED = "trusted"  # `$MEDTASKS_TRUSTED_HOSTS` names it
    ALLOWED = "allowed"  # the command permits it
    OPEN_ONLY = "open text only"


@dataclass(frozen=True, slots=True)
class AskedServer:
    host: str  # name or address, in lower case
    way: Permission  # what it may receive
    #: the permission rests on the addresses of the host: whoever opens a connection looks whether it leads
    #: to one of them
    by_address: bool = False
    encrypted: bool = False  # whether it is asked over https

    @property
    def uses_proxy(self) -> bool:
        """Over http a proxy reads what it carries."""
        return self.way is Permission.OPEN_ONLY or (self.way is Permission.ALLOWED and self.encrypted)

    def permits(self, text: Text) -> bool:
        return text.is_open or self.way is not Permission.OPEN_ONLY


@dataclass(frozen=True)
class Egress:
    names: frozenset[str] = frozenset()  # of trusted hosts
    networks: tuple[Network, ...] = ()  # that are trusted
    allowed: frozenset[str] = frozenset()  # hosts that the command permits
    #: called before a server receives a text
    record: Callable[[AskedServer, Text], None] = lambda place, text: None

    @classmethod
    def of(cls, allowed: Iterable[str] = ()) -> Egress:
        """What `$MEDTASKS_TRUSTED_HOSTS` says, and hosts that a command permits."""
        names, networks = set(), []
        for item in filter(None, re.split(r"[\s,]+", os.environ.get(TRUSTED_HOSTS, "").lower())):
            try:
                networks.append(ipaddress.ip_network(item, strict=False))
            except ValueError:
                if not _NAME.fullmatch(item) or re.fullmatch(r"[\d.]+", item):
                    what = f"{item!r} is neither the name of a host nor a network"
                    remedy = "write names and networks with commas between: gpu1.hospital.lan,10.0.0.0/8"
                    raise MedtasksError(what, where=TRUSTED_HOSTS, remedy=remedy) from None
                names.add(item.rstrip("."))
        return cls(frozenset(names), tuple(networks), frozenset(map(_allowed_host, allowed)))

    def recording(self, record: Callable[[AskedServer, Text], None]) -> Egress:
        return replace(self, record=record)

    def place(self, url: str) -> AskedServer:
        """Looks up the addresses of a name that is not permitted by itself, if networks are trusted."""
        host, way, by_address = host_of(url), Permission.OPEN_ONLY, False
        if is_loopback(url):
            way, by_address = Permission.LOOPBACK, True
        elif host in self.names:
            way = Permission.TRUSTED
        elif host in self.allowed:
            way = Permission.ALLOWED
        elif self.networks or _address(host):
            ways = {self._way(address) for address in ([host] if _address(host) else _addresses(host))}
            if ways and Permission.OPEN_ONLY not in ways:
                way = Permission.LOOPBACK if ways == {Permission.LOOPBACK} else Permission.TRUSTED
                by_address = True
        return AskedServer(host, way, by_address, encrypted=urlsplit(url).scheme == "https")

    def holds(self, address: str) -> bool:
        return self._way(address) is not Permission.OPEN_ONLY

    def _way(self, address: str) -> Permission:
        parsed = _address(address)
        if parsed and parsed.is_loopback:
            return Permission.LOOPBACK
        trusted = parsed and any(parsed in network for network in self.networks)
        return Permission.TRUSTED if trusted else Permission.OPEN_ONLY

    def check(self, url: str, texts: Iterable[Text]) -> None:
        closed = list(dict.fromkeys(text.dataset for text in texts if not text.is_open))
        if not closed or (place := self.place(url)).way is not Permission.OPEN_ONLY:
            return
        named = some([name or "a dataset without a name" for name in closed])
        what = f"text of {named} is not open to everyone, and would be sent to {place.host}"
        raise MedtasksError(what, where=place.host, remedy=remedy_for(place.host))


def hold(place: AskedServer, egress: Egress) -> None:
    """Have clients of other packages ask a server in the way that its permission covers, from now on.

    No proxy where none may carry the text; where the permission rests on addresses, such addresses alone.
    """
    if not place.uses_proxy:
        for name in ("NO_PROXY", "no_proxy"):
            hosts = filter(None, os.environ.get(name, "").split(","))
            os.environ[name] = ",".join(dict.fromkeys([*hosts, place.host]))
    if place.by_address:
        look_up: Any = socket.getaddrinfo
        if not isinstance(look_up, _HeldNames):
            vars(socket)["getaddrinfo"] = look_up = _HeldNames(look_up)
        look_up.held[place.host] = egress


class _HeldNames:
    """Those of a host that is held have to be permitted."""

    def __init__(self, look_up: Callable[..., Any]) -> None:
        self._look_up = look_up
        self.held: dict[str, Egress] = {}

    def __call__(self, host: str | bytes | None, *rest: Any, **more: Any) -> Any:
        found = self._look_up(host, *rest, **more)
        name = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
        egress = self.held.get(name.lower().rstrip("."))
        if egress and not all(egress.holds(str(item[4][0])) for item in found):
            raise socket.gaierror(socket.EAI_FAIL, f"{name} leads to {LEFT}")
        return found


_REMEDY = (
    f"serve the model on this machine; or name the host or its network in {TRUSTED_HOSTS}, if the "
    "institution runs it; or, if the data-use agreement permits this one host, "
)


def remedy_for(host: str) -> str:
    return f"{_REMEDY}add --allow-host {host} (`run`, `judge`)"


def addresses(base_url: object) -> list[str]:
    return re.split(r"\+(?=https?://)", str(base_url)) if base_url else []


def is_loopback(url: str) -> bool:
    """One that cannot be read is not."""
    try:
        host = host_of(url)
    except MedtasksError:
        return False
    address = _address(host)
    return address.is_loopback if address else f".{host}".endswith(".localhost")


@lru_cache(maxsize=1024)  # each request asks for the other end of its connection
def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text is, without its zone; an IPv4 address in the form of IPv6 is the former."""
    bare = host.partition("%")[0] if ":" in host else host
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _addresses(host: str) -> list[str]:
    """None where it cannot be looked up."""
    try:
        return [str(item[4][0]) for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def _allowed_host(given: str) -> str:
    host = given.strip().lower().rstrip(".")
    bare = host.removeprefix("[").removesuffix("]")
    if _address(bare) or _NAME.fullmatch(host):
        return bare
    try:
        remedy = f"write --allow-host {host_of(given if '//' in given else f'//{given}')}"
    except MedtasksError:
        remedy = "write a name such as api.openai.com"
    raise MedtasksError(f"{given!r} is not the name of a host", where="--allow-host", remedy=remedy)


#: Models of lm-eval that run vLLM in this process.
VLLM_MODELS = frozenset({"vllm", "vllm-vlm"})
#: Models of lm-eval that find the size of their batches themselves, and ask one by one unless told to.
BATCHING_MODELS = VLLM_MODELS | {"hf", "hf-auto", "huggingface", "hf-multimodal", "sglang"}


def check_server(arguments: Mapping[str, Any], text: Text) -> None:
    """Refuse a text that the server of a plain lm-eval may not receive; a run of our own has no arguments."""
    if text.is_open:
        return
    given = arguments.get("base_url") or arguments.get("api_base") or _default_address()
    egress = Egress.of()
    for address in addresses(given):
        url = address if "//" in address else f"//{address}"
        place = egress.place(url)
        try:
            egress.check(url, [text])
        except MedtasksError as error:
            remedy = f"{_REMEDY}use `medtasks run` with --allow-host"
            raise MedtasksError(error.what, where=shown_url(url), remedy=remedy) from None
        if place.by_address and find_spec("aiodns"):
            what = "aiodns looks up names past all that holds them to this machine or a trusted network"
            remedy = "pip uninstall aiodns, or use `medtasks run`"
            raise MedtasksError(what, where=shown_url(url), remedy=remedy)
        hold(place, egress)


def _default_address() -> str | None:
    """That of the service of the model which `lm_eval` or `python -m lm_eval` names; else None."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name.removesuffix(".exe")
    if name not in ("lm_eval", "lm-eval"):
        return None
    from medtasks_ext.harness import get_model

    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--model", "-M")
    parser.add_argument("--config", "-C")
    try:
        given, _ = parser.parse_known_args(sys.argv[1:])
        stated = yaml.safe_load(Path(given.config).read_text(encoding="utf-8")) if given.config else {}
        kind = get_model(given.model or stated.get("model") or "hf")
    except (
        argparse.ArgumentError,
        ImportError,
        OSError,
        LookupError,
        ValueError,
        yaml.YAMLError,
        AttributeError,
    ):
        return None  # lm-eval refuses it in its own words
    url = signature(kind.__init__).parameters.get("base_url")
    if url is not None and isinstance(url.default, str):
        return url.default
    modules = {base.__module__ for base in kind.__mro__}
    return next((address for module, address in SERVICES.items() if module in modules), None)
