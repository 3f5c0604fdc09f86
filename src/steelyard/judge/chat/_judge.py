"""ChatJudge: any OpenAI-compatible chat model as a judge."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import ConfigurationError, JudgeRejected, MalformedReply
from steelyard.judge.chat._kinds import KINDS
from steelyard.judge.chat._obedience import Obedience, PreparedRequest, asked
from steelyard.judge.chat._parse import answers_in, with_probabilities
from steelyard.judge.chat._prompts import Prompt, Reasoning, reasoning_of, render, schema, version_of
from steelyard.judge.endpoint import Endpoint, usage_of
from steelyard.judge.middleware import AdaptiveConcurrency, Retry, RetryPolicy, Wrapper
from steelyard.questions import Answer, Capabilities, Rating, Reply, Request, Unanswered
from steelyard.scores import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI


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
    """Asks one model for JSON objects."""

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

    async def ask(self, prompt: Prompt, schema: Mapping[str, Any], *, lowest: float = 0.0) -> Completion:
        """Send a prompt; on a bad request, send it in a way that the server may like better."""
        features = self._features
        started = time.perf_counter()
        tried = 0
        while True:
            tried += 1
            options = self._options(features, prompt, schema, lowest)
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
        body = await self._endpoint.post("/chat/completions", options)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise MalformedReply(f"{self._endpoint.where} sent no choices")
        return choices[0], body

    def _options(
        self, features: ServerFeatures, prompt: Prompt, schema: Mapping[str, Any], lowest: float
    ) -> dict[str, Any]:
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
        await self._endpoint.aclose()


_REPEAT_TEMPERATURE = 0.7  # at 0 the same request has the same reply, and asking again brings nothing new


class ChatJudge(Wrapper):
    """A judge that is a chat model behind an OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp, ...

    The server is asked for a strict JSON schema. If it refuses, for JSON mode; if it refuses that too, in
    plain words. What it refuses is remembered, so it costs one request once. Requests time out as a whole,
    are limited in number and retried here.

    Args:
        model: The model's name.
        base_url: Where the server is. None for OPENAI_BASE_URL, or OpenAI.
        api_key: The key. Without `base_url`, OPENAI_API_KEY where none is given. With `base_url`, a key in
            the environment is not sent: it was meant for another server. Servers without keys need none.
        timeout: Seconds until a request is given up, from its first byte to the last of the reply.
        retries: Requests after the first, if the failure may pass. Retry-After is honoured; a server that
            asks for more than 20 seconds is not waited for.
        concurrency: Requests in flight, and connections, at most; fewer for a while after a 429 or a timeout.
        reasons: Whether each verdict comes with a short reason; without, replies are shorter and cheaper.
        reasoning: `long` for a model that thinks at length about everything in a request before it gives the
            verdicts. Replies become several times longer. The default goes by `reasons`.
        temperature: Sampling temperature; None to leave it to the server. Independent repeats of one question
            in the same words, and second tries, are drawn at no less than 0.7, or they would be copies.
        logprobs: Whether to ask for log probabilities and turn them into probabilities on the verdicts. They
            make replies many times longer, and reasoning models refuse them.
        max_tokens: Limit on a reply; None for the server's own.
        max_questions: Questions in one request.
        max_characters: Characters of material and questions in one request; lower it for small context
            windows.
        client: An `openai.AsyncOpenAI` of your own, for gateways that need more than a URL and a key. It is
            used as it is, in one event loop, and closed by you; set its `max_retries=0`.

    Raises:
        ConfigurationError: If an option makes no sense, or there is no key for an endpoint that needs one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        concurrency: int = 16,
        reasons: bool = True,
        reasoning: Reasoning | None = None,
        temperature: float | None = 0.0,
        logprobs: bool = False,
        max_tokens: int | None = None,
        max_questions: int = 60,
        max_characters: int = 400_000,
        client: AsyncOpenAI | None = None,
    ) -> None:
        if not model.strip():
            raise ConfigurationError(f"a chat judge needs a model's name, not {model!r}")
        endpoint = Endpoint(
            base_url=base_url, api_key=api_key, timeout=timeout, connections=concurrency, client=client
        )
        able = Capabilities(
            kinds=frozenset(KINDS), max_questions=max_questions, max_characters=max_characters
        )
        completions = Completions(
            model,
            endpoint,
            reply_name="answers",
            temperature=temperature,
            logprobs=logprobs,
            max_tokens=max_tokens,
        )
        bare = _Chat(model, completions, able, reasoning_of(reasons, reasoning))
        super().__init__(Retry(AdaptiveConcurrency(bare, most=concurrency), RetryPolicy(retries=retries)))
        self._where = endpoint.where

    def __repr__(self) -> str:
        return f"ChatJudge({self.name.removeprefix('chat:')!r}, base_url={self._where!r})"


class _Chat:
    """Questions as a prompt, and the model's reply as answers."""

    def __init__(
        self, model: str, completions: Completions, capabilities: Capabilities, reasoning: Reasoning
    ) -> None:
        self.name = f"chat:{model}"
        self.prompt_version = version_of(reasoning)
        self.capabilities = capabilities
        self._completions = completions
        self._reasoning = reasoning
        self._obedience = Obedience()

    async def answer(self, request: Request) -> Reply:
        repeated = any(q.sample > 1 and not isinstance(q, Rating) for q in request.questions.values())
        made = asked(request)
        completion = await self._completions.ask(
            render(made.request, reasoning=self._reasoning, nonce=made.nonce),
            schema(made.on_the_wire(), reasoning=self._reasoning),
            lowest=_REPEAT_TEMPERATURE if repeated or request.attempt > 1 else 0.0,
        )
        return Reply(answers=self._read(made, completion), usage=completion.usage)

    def _read(self, made: PreparedRequest, completion: Completion) -> dict[str, Answer]:
        """The answers in a reply. A refusal or nonsense answers every question with its own name."""
        if completion.refused:
            refused = Unanswered(cause="refused", detail="the model refused")
            return self._obedience.judged(dict.fromkeys(made.request.questions, refused), made.request)
        content = completion.content
        answers, found = answers_in(content, made.request, nonce=made.nonce)
        if found is None:
            self._completions.spell_out()
        elif completion.logprobs is not None:
            assert isinstance(content, str)
            answers = with_probabilities(answers, made.request, content, found, completion.logprobs)
        return self._obedience.judged(answers, made.request)

    async def aclose(self) -> None:
        await self._completions.aclose()
