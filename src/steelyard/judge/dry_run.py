"""Judging in a dry run: every request is made just as it would be sent, and answered here, in this process.

So a plan has the packing of the batcher, the wording of the prompts and the shape of the schemas by
construction; only the model's words are assumed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from steelyard.errors import ConfigurationError
from steelyard.judge import OpenAIEmbedder
from steelyard.judge.chat._obedience import KNOWN_ANSWERS, without_nonce
from steelyard.judge.endpoint import HTTPReply
from steelyard.judge.middleware import Wrapper
from steelyard.questions import (
    Claims,
    Embedder,
    Entities,
    GeneratedQuestions,
    Judge,
    Noncommittal,
    Part,
    Question,
    Reply,
    Request,
    View,
)
from steelyard.scores import Usage
from steelyard.text import sentences

ASSUMED = (
    "4 characters a token, schemas included",
    "a claim a sentence, no answer evasive, every verdict yes, reasons of 10 words",
    "no retries, nothing cached by the server",
)
"""What a plan takes for granted."""

_REASON = "the context with this number says so in these words"
_Answer = list[str] | bool
_NAME = re.compile(r"\b(?:[A-Z]\w+|\d[\d.,]*)")
_known: ContextVar[Mapping[str, _Answer]] = ContextVar("known")


class DryRunJudge(Wrapper):
    """A remote judge whose requests never leave; it counts them as the server would."""

    def __init__(self, make: Callable[..., Judge]) -> None:
        """Args: make: Makes the remote judge, given the `client` to use."""
        self.usage: dict[str, Usage] = {}
        self._client: Any = _Paper(self.usage)
        super().__init__(make(client=self._client))

    def embedder(self, model: str) -> Embedder:
        """A remote embedder whose requests are counted here as well."""
        return OpenAIEmbedder(model, client=self._client)

    async def answer(self, request: Request) -> Reply:
        """Let the remote judge write its requests, and answer them from the material."""
        assumed = {key: _assume(question, request.view) for key, question in request.questions.items()}
        _known.set({**KNOWN_ANSWERS, **assumed})
        return await self.judge.answer(request)


class _Paper:
    """A sender in place of the server's: it answers here, and counts."""

    def __init__(self, usage: dict[str, Usage]) -> None:
        self._usage = usage

    async def exchange(self, path: str, body: Mapping[str, Any]) -> HTTPReply:
        # Written and read, as on the wire: what JSON has no form for must show here.
        sent = json.loads(json.dumps(body))
        reply, spent = _WIRE[path.rpartition("/")[2]](sent)
        model = str(sent["model"])
        self._usage[model] = self._usage.get(model, Usage()) + spent
        return HTTPReply(200, {}, json.dumps(reply).encode())

    async def aclose(self) -> None:
        """Nothing is open."""


def _assume(question: Question, view: View) -> _Answer:
    """What a question is assumed to come back with: texts of the material, or yes."""
    match question:
        case Noncommittal():
            return False
        case Claims(of=of):
            return [sentence.text for sentence in sentences(_material(view, of))]
        case Entities(of=of):
            return list(dict.fromkeys(_NAME.findall(_material(view, of))))
        case GeneratedQuestions(count=count):
            return [f"What does the answer say about its subject number {number}?" for number in range(count)]
        case _:
            return True


def _material(view: View, of: Part) -> str:
    material = getattr(view, of) or ""
    return material if isinstance(material, str) else " ".join(context.text for context in material)


def _chat(body: dict[str, Any]) -> tuple[dict[str, Any], Usage]:
    wanted = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if wanted is None:
        raise ConfigurationError("a plan needs a judge that asks for a JSON schema")
    known = _known.get()
    reply = {
        key: _fill(shape, wanted.get("$defs", {}), known.get(without_nonce(key), True))
        for key, shape in wanted["properties"].items()
    }
    content = json.dumps(reply, ensure_ascii=False)
    sent = sum(len(message["content"]) for message in body["messages"])
    sent += len(json.dumps(wanted, separators=(",", ":")))
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"model": body["model"], "choices": choices}, _usage(sent, _tokens(len(content)))


def _fill(shape: dict[str, Any], shared: dict[str, Any], known: _Answer) -> Any:
    """A value that fits the schema of one answer."""
    if "$ref" in shape:
        return _fill(shared[shape["$ref"].rpartition("/")[2]], shared, known)
    if "enum" in shape:
        return shape["enum"][-1]
    match shape["type"]:
        case "object":
            return {name: _fill(inner, shared, known) for name, inner in shape["properties"].items()}
        case "array" | "boolean":
            return known
        case "string":
            return _REASON
        case _:
            return 0


def _decisions(body: dict[str, Any]) -> tuple[dict[str, Any], Usage]:
    """Yes, the first choice, or the highest level."""
    answers = []
    for one in body["questions"]:
        decided: dict[str, Any] = {"probability": 1.0}
        if one["type"] == "choice":
            decided = {"choice": one["choices"][0]["value"], "probabilities": []}
        elif one["type"] == "score":
            decided = {"probabilities": [{"label": one["levels"][-1]["label"], "probability": 1.0}]}
        answers.append({**decided, "name": one.get("name"), "type": one["type"]})
    sent = len(json.dumps(body["input"], ensure_ascii=False)) + len(json.dumps(body["questions"]))
    return {"answers": answers, "model": body["model"]}, _usage(sent, len(answers))


def _embeddings(body: dict[str, Any]) -> tuple[dict[str, Any], Usage]:
    data = [{"index": at, "embedding": [1.0]} for at in range(len(body["input"]))]
    return {"model": body["model"], "data": data}, _usage(sum(map(len, body["input"])), 0)


_WIRE = {"completions": _chat, "decisions": _decisions, "embeddings": _embeddings}


def _usage(sent: int, received: int) -> Usage:
    return Usage(requests=1, prompt_tokens=_tokens(sent), completion_tokens=received)


def _tokens(characters: int) -> int:
    return -(-characters // 4)
