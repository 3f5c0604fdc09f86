"""OpenAI's own client over a transport that answers in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import httpx2
from openai import AsyncOpenAI, OpenAI

from generator.turns import NOW, Turn

REWRITE = "Rewrite the user's message as a search query."
"""How the prompt begins of the call that writes a query."""
FORM = "Reply in JSON with the fields finding and topics."
CHECK = "Is the answer grounded? Reply yes or no."
"""How the prompt begins of the call that looks at the answer."""


def _reply(request: httpx2.Request) -> httpx2.Response:
    asked = json.loads(request.content)
    turn = NOW.get()
    assert turn is not None
    message = _message(turn, asked["messages"], bool(asked.get("tools")))
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return httpx2.Response(200, json={**_ENVELOPE, "object": "chat.completion", "choices": [choice]})
    pieces = [message["content"][at : at + 40] for at in range(0, len(message["content"]), 40)]
    lines = [
        {
            **_ENVELOPE,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": piece}}],
        }
        for piece in pieces
    ]
    events = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
    return httpx2.Response(200, text=events, headers={"content-type": "text/event-stream"})


_ENVELOPE = {"id": "chatcmpl-1", "created": 1, "model": "gpt-small"}


def _message(turn: Turn, messages: Sequence[dict[str, Any]], tools: bool) -> dict[str, Any]:
    prompt = "\n\n".join(str(message.get("content") or "") for message in messages)
    if prompt.startswith(REWRITE):
        return {"role": "assistant", "content": turn.rewritten}
    if prompt.startswith(CHECK):
        return {"role": "assistant", "content": "yes"}
    looked = sum(message["role"] == "tool" for message in messages)
    if tools and looked < len(turn.queries):
        called = {"name": "look_up", "arguments": json.dumps({"query": turn.queries[looked]})}
        call = {"id": f"{turn.id}-{looked}", "type": "function", "function": called}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    turn.prompt = prompt
    said = prompt.strip() if turn.echoes else turn.answer
    form = json.dumps({"finding": said, "topics": ["rules"]})
    return {"role": "assistant", "content": form if FORM in prompt else said}


@cache
def client() -> OpenAI:
    """The client of synchronous code."""
    return OpenAI(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(_reply)))


def aclient() -> AsyncOpenAI:
    """The client of one loop."""

    async def reply(request: httpx2.Request) -> httpx2.Response:
        return _reply(request)

    return AsyncOpenAI(api_key="none", http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(reply)))
