"""A judge server for tests: OpenAI's wire format on 127.0.0.1, with scripted answers and scripted faults.

It runs in a thread with an event loop of its own, speaks real HTTP/1.1, and keeps what it received. Answers
are made by a function from the parsed body, so a test decides what the model "thinks"; without one, the
schema is filled in: yes to every claim. Faults are queued: each one spoils one request, in order.

    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "0"}))
        judge = ChatJudge("model", base_url=server.url)
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Self

__all__ = ["Fault", "JudgeServer", "Received", "filled"]

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Body
    connection: int

    @property
    def text(self) -> str:
        """All message texts, or the decision's input."""
        if "messages" in self.body:
            return "\n".join(message["content"] for message in self.body["messages"])
        return str(self.body.get("input", ""))

    @property
    def questions(self) -> dict[str, str]:
        """The keyed lines of the prompt (`q1: ...`, `c2: ...`, `s1a|s1b: ...`), by the keys of the reply.

        Without those that tell whether a judge judges.
        """
        lines = re.findall(r"(?m)^([qcs]\d+\w*(?:\|[qcs]\d+\w*)*): (.*)$", self.text)
        found = re.search(r"Answer every key, with (\w+) behind it", self.text)
        nonce = found[1] if found else ""
        return {
            f"{key}{nonce}": line
            for keys, line in lines
            for key in keys.split("|")
            if key not in ("q901", "q902")
        }

    @property
    def schema(self) -> Body | None:
        """The JSON schema that was sent along."""
        wanted = self.body.get("response_format", {}).get("json_schema", {})
        return wanted.get("schema")  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong with one request."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "scripted fault"
    code: str | None = None
    content: str | None = None
    """The model's words, in place of the scripted answer."""
    raw: bytes | None = None
    """The whole HTTP body, in place of everything."""
    hang: float = 0.0
    """Seconds before the reply begins."""
    drip: float = 0.0
    """Seconds between the single bytes of the reply."""
    drop: bool = False
    """Close the connection without a reply."""
    edit: Callable[[Body], Any] | None = None
    """Change the finished reply in place."""


def filled(schema: Body, root: Body | None = None, name: str = "") -> Any:
    """A value that fits a schema: yes, the highest level, the first option, one text.

    Of the two questions that tell whether a judge judges, the one whose answer is no has that.
    """
    root = root or schema
    if "$ref" in schema:
        return filled(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, name)
    if "enum" in schema:
        return schema["enum"][0] if schema["type"] == "string" else schema["enum"][-1]
    match schema["type"]:
        case "object":
            return {key: filled(value, root, name or key) for key, value in schema["properties"].items()}
        case "array":
            return ["One.", "Two.", "Three."]
        case "boolean":
            return not name.startswith("q902")
        case "integer":
            return 0
        case _:
            return "because"


def _vector(text: str, size: int = 32) -> list[float]:
    digest = blake2b(text.encode(), digest_size=size).digest()
    return [byte / 255 - 0.5 for byte in digest]


class JudgeServer:
    """The server. Start it with `with`."""

    def __init__(
        self,
        chat: Callable[[Received], Any] | None = None,
        *,
        decide: Callable[[Body, Body], Body] | None = None,
        latency: float = 0.0,
    ) -> None:
        self.chat = chat
        """From a request to the model's reply: a string, or anything that JSON can hold."""
        self.decide = decide
        """From a question and the whole body to its answer."""
        self.latency = latency
        self.logprobs: Callable[[str], list[Body]] | None = None
        """From the model's words to their tokens with log probabilities."""
        self.refuse: Callable[[Body], str | None] | None = None
        """From a body to why it is a bad request; None where it is a good one."""
        self.faults: deque[Fault] = deque()
        self.received: list[Received] = []
        self.connections = 0
        self.peak = 0
        self._busy = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = 0

    @property
    def url(self) -> str:
        """What to give as base_url."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def prompts(self) -> list[str]:
        """The texts of all chat requests."""
        return [request.text for request in self.received if request.path.endswith("/chat/completions")]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        try:
            while await self._request(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Received(
            path=first.split(" ")[1], headers=headers, body=json.loads(raw or b"{}"), connection=number
        )
        self.received.append(request)
        fault = self.faults.popleft() if self.faults else Fault()
        if self.refuse is not None and (why := self.refuse(request.body)):
            fault = Fault(status=400, message=why)
        self._busy += 1
        self.peak = max(self.peak, self._busy)
        try:
            await asyncio.sleep(self.latency + fault.hang)
        finally:
            self._busy -= 1
        if fault.drop:
            return False
        await self._reply(writer, fault, self._body(request, fault))
        return True

    async def _reply(self, writer: asyncio.StreamWriter, fault: Fault, body: bytes) -> None:
        more = "".join(f"{name}: {value}\r\n" for name, value in fault.headers.items())
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        data = f"HTTP/1.1 {fault.status} X\r\n{kind}{more}\r\n".encode() + body
        for piece in [data[at : at + 1] for at in range(len(data))] if fault.drip else [data]:
            writer.write(piece)
            await writer.drain()
            if fault.drip:
                await asyncio.sleep(fault.drip)

    def _body(self, request: Received, fault: Fault) -> bytes:
        if fault.raw is not None:
            return fault.raw
        if fault.status != 200:
            error = {"message": fault.message, "type": "scripted", "code": fault.code, "param": None}
            return json.dumps({"error": error}).encode()
        for end, make in (
            ("/chat/completions", self._chat),
            ("/embeddings", self._embeddings),
            ("/decisions", self._decisions),
        ):
            if request.path.partition("?")[0].endswith(end):
                reply = make(request, fault)
                if fault.edit is not None:
                    fault.edit(reply)
                return json.dumps(reply).encode()
        raise AssertionError(f"no such path: {request.path}")

    def _chat(self, request: Received, fault: Fault) -> Body:
        thought: Any = fault.content
        if thought is None and self.chat is not None:
            thought = self.chat(request)
        elif thought is None:
            thought = filled(request.schema) if request.schema else "no schema, no answer"
        content = thought if isinstance(thought, str) else json.dumps(thought)
        choice: Body = {
            "index": 0,
            "message": {"role": "assistant", "content": content},
            "finish_reason": "stop",
        }
        if request.body.get("logprobs") and self.logprobs is not None:
            choice["logprobs"] = {"content": self.logprobs(content)}
        count = len(request.text) // 4
        usage = {"prompt_tokens": count, "completion_tokens": len(content) // 4, "total_tokens": count}
        usage_details = {"prompt_tokens_details": {"cached_tokens": count // 2}}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request.body["model"],
            "choices": [choice],
            "usage": {**usage, **usage_details},
        }

    def _embeddings(self, request: Received, fault: Fault) -> Body:
        texts = request.body["input"]
        compact = request.body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": at, "embedding": _packed(vector) if compact else vector}
            for at, vector in enumerate(map(_vector, texts))
        ]
        count = sum(map(len, texts)) // 4
        return {
            "object": "list",
            "model": request.body["model"],
            "data": data,
            "usage": {"prompt_tokens": count, "total_tokens": count},
        }

    def _decisions(self, request: Received, fault: Fault) -> Body:
        decide = self.decide or _agree
        answers = [
            {"name": question.get("name"), **decide(question, request.body)}
            for question in request.body["questions"]
        ]
        count = len(request.text) // 4
        return {
            "answers": answers,
            "model": request.body["model"],
            "usage": {
                "input_tokens": count,
                "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": count // 2},
                "output_tokens": len(answers),
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": count + len(answers),
            },
        }


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _agree(question: Body, body: Body) -> Body:
    """Yes to predicates, the first choice, the highest level."""
    match question["type"]:
        case "predicate":
            return {"type": "predicate", "probability": 0.9}
        case "choice":
            values = [choice["value"] for choice in question["choices"]]
            weights = [{"value": value, "probability": float(value == values[0])} for value in values]
            return {"type": "choice", "choice": values[0], "confidence": 1.0, "probabilities": weights}
        case _:
            labels = [level["label"] for level in question["levels"]]
            top = len(labels) - 1
            weights = [
                {"label": label, "value": at, "probability": float(at == top)}
                for at, label in enumerate(labels)
            ]
            return {"type": "score", "score": float(top), "confidence": 1.0, "probabilities": weights}
