"""An OpenAI-compatible server on loopback that does what a script says, and counts what it was paid for.

Standard library only.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.engines import server as scripted

FENCED = re.compile(r"^<<<(\w+) (\w{16})\n(.*?)\n\2 END OF \1>>>$", re.MULTILINE | re.DOTALL)


@dataclass
class Asked:
    model: str
    system: str
    user: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def texts(self) -> dict[str, str]:
        """label -> fenced text."""
        return {label.lower(): text for label, _, text in FENCED.findall(self.user)}

    @property
    def axes(self) -> list[str]:
        return re.search(r"Its keys are exactly ([^;]+);", self.system)[1].split(", ")

    @property
    def code(self) -> str:
        return FENCED.search(self.user)[2]


@dataclass
class Reply:
    """What the server does: a completion, an error, a delay, half an answer, or no answer."""

    content: str | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    delay: float = 0.0  # seconds before it is sent
    hang_up: bool = False
    half: bool = False
    finish: str = "stop"
    usage: dict[str, int] | None = None


#: Stands for the code of the request in what a script says.
CODE = "(the code)"


def coded(verdict: dict[str, Any]) -> str:
    """A judge's object, with the code that it was asked for."""
    return json.dumps({"code": CODE, **verdict}, ensure_ascii=False)


def verdict(axes: list[str], score: Any, explanation: str = "as it is") -> str:
    """A judge's object that rates all axes the same."""
    return coded(json.loads(bare(axes, score, explanation)))


def bare(axes: list[str], score: Any, explanation: str = "as it is") -> str:
    """The same without a code: what others forge, and what a suite's own words ask for."""
    return json.dumps({axis: {"score": score, "explanation": explanation} for axis in axes})


Script = Callable[[Asked, int], Reply]


def fair(asked: Asked, seen: int) -> Reply:
    """Rates everything 4."""
    return Reply(verdict(asked.axes, 4))


def _with_code(reply: Reply, asked: Asked) -> Reply:
    parts = {"content": reply.content, "body": reply.body}
    said = {name: text.replace(CODE, asked.code) for name, text in parts.items() if text and CODE in text}
    return replace(reply, **said)


class Server(scripted.Server):
    """`script` gets each chat request and how often that very one came before."""

    def __init__(self, script: Script = fair, models: list[str] | None = None) -> None:
        super().__init__()
        self.script, self.models = script, models
        self.probe = Reply("1", usage={"prompt_tokens": 1, "completion_tokens": 1})
        self.paid, self.under_way, self.most_under_way = Counter[str](), Counter[str](), Counter[str]()
        self.listed = 0
        self._seen: Counter[str] = Counter()

    async def _answer(self, raw: scripted.Asked) -> scripted.Reply:
        if raw.target.startswith("/v1/models"):
            self.listed += 1
            listed = [{"id": name} for name in self.models or ()]
            return scripted.Reply({"data": listed}, 404 if self.models is None else 200)
        messages, model = raw.body["messages"], raw.body["model"]
        system = messages[0]["content"] if len(messages) > 1 else ""
        asked = Asked(model, system, messages[-1]["content"], raw.body, raw.headers)
        if self.models is not None and model not in self.models:
            missing = {"message": f"The model {model} does not exist", "code": "model_not_found"}
            return scripted.Reply({"error": missing}, 404)
        probe, key = raw.body.get("max_tokens") == 1, f"{model} {asked.user}"
        if not probe:
            self.asked.append(asked)
        reply = self.probe if probe else _with_code(self.script(asked, self._seen[key]), asked)
        self._seen[key] += not probe
        self.under_way[model] += 1
        self.most_under_way[model] = max(self.most_under_way[model], self.under_way[model])
        try:
            if reply.delay:
                await asyncio.sleep(reply.delay)
        finally:
            self.under_way[model] -= 1
        if reply.hang_up:
            return scripted.HANG_UP
        text = reply.body
        if text is None and reply.status == 200:
            usage = reply.usage or {"prompt_tokens": len(asked.user) // 4, "completion_tokens": 50}
            choice = {"message": {"content": reply.content}, "finish_reason": reply.finish}
            text = json.dumps({"choices": [choice], "usage": usage})
            if not probe and not reply.half:
                self.paid[key] += 1
        data = (text or json.dumps({"error": {"message": f"status {reply.status} as scripted"}})).encode()
        if reply.half:
            return scripted.Reply(data[: len(data) // 2], length=len(data), close=True)
        return scripted.Reply(data, reply.status, dict(reply.headers))
