"""Jury files: which models judge, where they are served, what they cost."""

from __future__ import annotations

import json
import os
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, field_validator, model_validator

from medtasks_ext.egress import is_loopback
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.keys import Keys, host_of, note
from medtasks_ext.registry.folders import bundled_configs
from medtasks_ext.results.prices import Price
from medtasks_ext.run.charge import check_refused
from medtasks_ext.runs.settings import dropped_secrets
from medtasks_ext.strict import Strict, read_yaml, validated

if TYPE_CHECKING:
    from medtasks_ext.engines import Usage


class Judge(Strict):
    """One model behind an OpenAI-compatible endpoint."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")  #: how results name it.
    model: str = Field(min_length=1)  #: how the server names it.
    base_url: str  #: address of the server, up to `/v1`.
    #: environment variable with the key; the key itself is never written anywhere. It goes to a host to which
    #: the user bound it (`MEDTASKS_KEYS`) or a bundled file.
    api_key_env: str | None = None
    #: `{input, output}` in USD per million tokens, for estimates and `--max-cost`; a server on this machine
    #: costs nothing. `batch` is the share of it that the provider's batch interface costs.
    price: Price | None = None
    max_concurrent: int = Field(default=8, ge=1)  #: requests under way at a time.
    max_tokens: int = Field(default=4096, ge=1)  #: of a reply, a judge's own reasoning included.
    #: what the server calls that limit.
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: float | None = Field(default=0.0, ge=0)  #: `null` leaves it to the server.
    timeout: float = Field(default=300, gt=0)  #: seconds that a reply may take.
    #: more fields of the request, sent as they are; not the model, the messages, the number of replies or
    #: their length. Under `--max-cost` only those that are known to cost nothing.
    extra_body: Json = {}
    _keys: Keys = PrivateAttr(default_factory=Keys)  # which hosts may receive which key

    @field_validator("base_url")
    @classmethod
    def _is_base(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("give an address such as http://localhost:8000/v1")
        try:
            host_of(url)
        except MedtasksError as error:
            raise ValueError(f"{error.what}: {error.remedy}") from None
        if parts.username or parts.password:
            raise ValueError("put the key into an environment variable, api_key_env")
        if parts.path.rstrip("/").endswith("/completions"):
            raise ValueError("give the address up to /v1, without /chat/completions")
        return url.rstrip("/")

    @cached_property
    def is_local(self) -> bool:
        return is_loopback(self.base_url)

    @property
    def api_key(self) -> str | None:
        """None where there is none, or its server may not receive it."""
        name = self.api_key_env
        key = os.environ.get(name) or None if name and self._keys.permit(name, self.base_url) else None
        note(key)
        return key

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """USD; 0 where no price is known."""
        return self.price.of(prompt_tokens, completion_tokens) if self.price else 0.0

    def spent(self, usage: Usage) -> float | None:
        """USD, nothing on this machine; None where no price is known."""
        if self.price is None:
            return 0.0 if self.is_local else None
        return self.cost(usage.prompt, usage.completion)

    @property
    def request(self) -> str:
        """What its requests say besides the question, as JSON: settings, limit, further fields but logins."""
        said = self.model_dump(include={"max_tokens", "temperature", "asks"})
        return json.dumps({**said, **dropped_secrets(self.extra_body)}, sort_keys=True, ensure_ascii=False)

    def identity(self) -> Json:
        """Not the address, nor limits: a judgement stays valid without them."""
        return self.model_dump(include={"name", "model", "temperature", "extra_body"})


class Adjudicator(Judge):
    """The judge of disputed cases."""

    #: about all scoring points of a case in one request, or about each in a request of its own, with the
    #: prompt that `medtasks study judge` writes for training
    asks: Literal["all_points", "points_one_by_one"] = "all_points"


#: Who adjudicates where no model does: a physician, through a queue.
HUMAN = "human"
#: The physician's identity as it goes into the keys of judgements.
HUMAN_IDENTITY = json.dumps({"name": HUMAN})


class Jury(Strict):
    """The judges, by distinct names, and who decides where two assessors differ.

    `adjudicator` is None where that is a physician; the file says `human`, or nothing.
    """

    judges: list[Judge] = Field(min_length=1)
    adjudicator: Adjudicator | None = None

    @field_validator("adjudicator", mode="before")
    @classmethod
    def _human(cls, value: Any) -> Any:
        if isinstance(value, str) and value != HUMAN:
            raise ValueError(f"a judge with name, model and base_url, or the word {HUMAN}")
        return None if value == HUMAN else value

    @model_validator(mode="after")
    def _distinct(self) -> Jury:
        names = [*self.names, self.adjudicator_name]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two judges are named {repeated[0]}")
        return self

    @property
    def models(self) -> list[Judge]:
        """The adjudicator last."""
        return [*self.judges, *([self.adjudicator] if self.adjudicator else [])]

    @cached_property
    def identities(self) -> dict[str, str]:
        dump = partial(json.dumps, sort_keys=True, ensure_ascii=False, default=str)
        return {HUMAN: HUMAN_IDENTITY, **{judge.name: dump(judge.identity()) for judge in self.models}}

    @property
    def adjudicator_name(self) -> str:
        """`human` for a physician."""
        return self.adjudicator.name if self.adjudicator else HUMAN

    @property
    def points_one_by_one(self) -> bool:
        return self.adjudicator is not None and self.adjudicator.asks == "points_one_by_one"

    @property
    def names(self) -> list[str]:
        return [judge.name for judge in self.judges]


def load_jury(name: str) -> Jury:
    """By path, or by the name of a bundled one, which binds its own keys; further hosts as NAME@HOST."""
    bundled = bundled_configs(["juries"])
    if not Path(name).is_file() and name not in bundled:
        what, remedy = "no such file or bundled jury", f"bundled: {', '.join(sorted(bundled))}"
        raise MedtasksError(what, where=f"--jury {name}", remedy=remedy)
    path = Path(name) if Path(name).is_file() else bundled[name]
    keys, remedy = Keys.of_environment(), "docs/keys.md lists the keys of a jury file"
    jury = validated(lambda: Jury(**read_yaml(path)), "jury", where=path, remedy=remedy)
    for judge in jury.models:
        check_refused(judge.extra_body, f"{path}: extra_body of {judge.name}")
        own = judge.api_key_env if path.resolve() in bundled.values() else None
        judge._keys = keys.with_host(own, judge.base_url) if own else keys
    return jury


def check_keys(judges: list[Judge]) -> None:
    for judge in judges:
        if judge.api_key_env:
            judge._keys.check(judge.api_key_env, judge.base_url, f"judge {judge.name}")
    absent = {judge.api_key_env: judge.name for judge in judges if judge.api_key_env and not judge.api_key}
    if absent:
        lacking = [f"judge {name} needs {variable}, which is not set" for variable, name in absent.items()]
        remedy = " ".join(f"export {variable}=…" for variable in absent)
        raise MedtasksError("; ".join(lacking), where="--jury", remedy=remedy)


#: Bytes per token where a server does not count: English and Chinese text come close to it.
BYTES_PER_TOKEN = 4
