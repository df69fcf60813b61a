"""A server on loopback whose every reply is scripted, down to the bytes. Standard library only."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any


@dataclass
class Asked:
    """One request as the server got it; `number` counts them in the order in which they came."""

    number: int
    target: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.content)

    @property
    def prompt(self) -> Any:
        """The text of the last turn, or the prompt."""
        if "messages" not in self.body:
            return self.body["prompt"]
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else content[0]["text"]


@dataclass
class Reply:
    """What the server does."""

    body: Any = None  # JSON, or the bytes themselves, or parts that come one by one
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None  # that the head announces, if not the true one
    close: bool = False  # whether the connection ends after it


#: Closes the connection instead of a reply.
HANG_UP = Reply(b"", length=-1)

Script = Callable[[Asked], Awaitable[Reply]]


def chat(text: Any = "Yes.", **more: Any) -> dict[str, Any]:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return {"id": "chat-1", "model": "m-2026", "choices": [choice], "usage": usage, **more}


def completion(text: Any = "Yes.", **more: Any) -> dict[str, Any]:
    """A completion of a text."""
    choice = {"index": 0, "text": text, "finish_reason": "stop"}
    return {**chat(), "choices": [choice], **more}


def message(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A message of Anthropic's interface."""
    content = list(blocks) or [{"type": "text", "text": "Yes."}]
    usage = {"input_tokens": 7, "output_tokens": 2}
    return {
        "id": "msg-1",
        "model": "c",
        "content": content,
        "stop_reason": "end_turn",
        "usage": usage,
        **more,
    }


async def fair(asked: Asked) -> Reply:
    """Answers whatever the address stands for."""
    by_path = {"/v1/completions": completion, "/v1/messages": message}
    return Reply(by_path.get(asked.target.partition("?")[0], chat)())


class Server:
    """Answers as a script says, in a thread of its own."""

    def __init__(self, script: Script = fair, ssl: SSLContext | None = None) -> None:
        self.script, self._ssl = script, ssl
        self.asked: list[Asked] = []
        self.connections = self.most_connections = 0  # open now, and at a time
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Any:
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._stop)
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the server's thread."""
        self._loop.call_soon_threadsafe(function)

    def die(self) -> None:
        """Take no connection any more, and drop those that are open. For scripts."""
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    def _stop(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._client, "127.0.0.1", 0, ssl=self._ssl, backlog=512)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        self._server.close()
        self._loop.close()

    async def _answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return await self.script(asked)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections += 1
        self.most_connections = max(self.most_connections, self.connections)
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.splitlines()
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines if line)}
                content = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(len(self.asked), first.split()[1], headers, content)
                if not await self._send(writer, await self._answer(asked)):
                    break
        self._writers.discard(writer)
        self.connections -= 1
        writer.close()

    @staticmethod
    async def _send(writer: asyncio.StreamWriter, reply: Reply) -> bool:
        """Whether the connection goes on."""
        if reply.length == -1:
            return False
        parts, content = reply.body, b""
        if not isinstance(parts, AsyncIterator):
            content = parts if isinstance(parts, bytes) else json.dumps(parts).encode()
        head = {"Content-Type": "application/json", **reply.headers}
        if isinstance(parts, AsyncIterator):
            head["Connection"] = "close"
        else:
            head["Content-Length"] = str(len(content) if reply.length is None else reply.length)
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {reply.status} x\r\n{lines}\r\n".encode() + content)
        if isinstance(parts, AsyncIterator):
            async for part in parts:
                writer.write(part)
                await writer.drain()
            return False
        await writer.drain()
        return not reply.close
