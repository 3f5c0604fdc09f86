"""Chat completions of one model, in the form that its server accepts, learned from what it refuses.

OpenAI-compatible servers differ: some know no JSON schema, some models take no temperature. The first request
assumes the best; a refusal that names what it dislikes, or one that ends when something is left out, is
remembered for as long as the object lives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steelyard.errors import JudgeRejected, MalformedReply
from steelyard.judge._replies import usage_of
from steelyard.judge.chat._prompts import Prompt
from steelyard.judge.endpoint import Endpoint
from steelyard.scores import Usage

Form = Literal["schema", "json", "plain"]
"""How the server is held to JSON: by a strict schema, by JSON mode, or by the prompt alone."""

_REFUSABLE: Mapping[str, Mapping[str, Any]] = {
    "temperature": {"temperature": False},
    "logprobs": {"logprobs": False},
    "max_tokens": {"limit": "max_completion_tokens"},
}
"""What to change where a server refuses an option that was sent; the first one that it names."""
# A schema is dropped before JSON mode is: each step keeps as much as the server takes.
_LOWER: dict[Form, Form] = {"schema": "json", "json": "plain"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerFeatures:
    """What to send to a server."""

    form: Form = "schema"
    """How it is held to JSON."""
    spelled: bool = False
    """Whether the prompt spells the schema out as well, for servers that take the option and ignore it."""
    temperature: bool = True
    """Whether it takes a temperature."""
    logprobs: bool = True
    """Whether it takes the wish for log probabilities."""
    counts: bool = True
    """Whether lists in the schema may say how long they are."""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What it calls the limit on the reply."""

    def after_refusal(self, message: str, sent: Mapping[str, Any]) -> ServerFeatures | None:
        """What to try after a bad request, by the server's words; None where nothing is left to change."""
        words = message.lower()
        # Too long is too long in any form, and further tries would be paid for.
        if any(said in words for said in ("context length", "context_length", "maximum context")):
            return None
        refused = next((name for name in _REFUSABLE if name in words and name in sent), None)
        if refused is not None:
            return replace(self, **_REFUSABLE[refused])
        # Some servers know schemas, but not how long their lists may be.
        if self.form == "schema" and self.counts and ("minitems" in words or "maxitems" in words):
            return replace(self, counts=False)
        lower = _LOWER.get(self.form)
        return replace(self, form=lower) if lower else None

    @property
    def spells(self) -> bool:
        """Whether the prompt holds the schema."""
        return self.spelled or self.form != "schema"


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a model replied."""

    content: object = field(repr=False)
    """Its text, if the server sent one."""
    refused: bool
    """Whether the model, or a filter before it, would not answer."""
    logprobs: Mapping[str, Any] | None = field(repr=False)
    """Log probabilities of the text's tokens, where they were asked for and sent."""
    usage: Usage
    """What it cost, requests that the server refused included."""


class Completions:
    """Asks one model for JSON objects.

    Args:
        model: The model's name.
        endpoint: Its server.
        reply_name: What the schema of a reply is called.
        temperature: Sampling temperature; None to leave it to the server.
        logprobs: Whether to ask for log probabilities.
        max_tokens: Limit on a reply; None for the server's own.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        reply_name: str,
        temperature: float | None = None,
        logprobs: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._reply_name = reply_name
        self._temperature = temperature
        self._logprobs = logprobs
        self._max_tokens = max_tokens
        self._features = ServerFeatures()

    async def ask(
        self, prompt: Prompt, schema: Callable[[bool], Mapping[str, Any]], *, lowest: float = 0.0
    ) -> Completion:
        """Send a prompt; on a bad request, send it in a way that the server may like better.

        Args:
            prompt: The two messages.
            schema: The schema of the reply, given whether its lists may say how long they are.
            lowest: The least temperature, where one is sent.

        Raises:
            JudgeError: If there is no reply.
        """
        features = self._features
        started = time.perf_counter()
        tried = 0
        while True:
            tried += 1
            options = self._options(features, prompt, schema(features.counts), lowest)
            try:
                choice, body = await self._send(options)
                break
            except JudgeRejected as error:
                error.requests = tried
                change = features.after_refusal(str(error), options) if error.cause == "bad_request" else None
                if change is None:
                    raise
                features = change
        # Only after a reply: a refusal that nothing helped says nothing about the server's features.
        self._features = features
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        logprobs = choice.get("logprobs")
        return Completion(
            content=message.get("content"),
            refused=bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter",
            logprobs=logprobs if self._logprobs and isinstance(logprobs, dict) else None,
            usage=usage_of(body, requests=tried, seconds=time.perf_counter() - started),
        )

    def spell_out(self) -> None:
        """Put the schema into the prompt from now on: a reply held no JSON although it was asked for."""
        self._features = replace(self._features, spelled=True)

    async def _send(self, options: dict[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The first choice of the reply, and all of the reply."""
        body = await self._endpoint.post("/chat/completions", options)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise MalformedReply(f"{self._endpoint.where} sent no choices")
        return choices[0], body

    def _options(
        self, features: ServerFeatures, prompt: Prompt, schema: Mapping[str, Any], lowest: float
    ) -> dict[str, Any]:
        """The request's body."""
        user = prompt.spelled(schema) if features.spells else prompt.user
        options: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": user}],
        }
        if features.form == "schema":
            wanted = {"name": self._reply_name, "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif features.form == "json":
            options["response_format"] = {"type": "json_object"}
        if self._temperature is not None and features.temperature:
            # A repeat at temperature 0 would be a copy of the first answer.
            options["temperature"] = max(self._temperature, lowest)
        if self._logprobs and features.logprobs:
            options |= {"logprobs": True, "top_logprobs": 5}
        if self._max_tokens is not None:
            options[features.limit] = self._max_tokens
        return options

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        await self._endpoint.aclose()
