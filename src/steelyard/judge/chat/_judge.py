"""ChatJudge: any OpenAI-compatible chat model as a judge."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.errors import ConfigurationError, JudgeRejected, MalformedReply
from steelyard.judge._openai_client import Endpoint, body_of, usage_of
from steelyard.judge.chat._kinds import KINDS
from steelyard.judge.chat._logprobs import with_probabilities
from steelyard.judge.chat._parse import answers_in
from steelyard.judge.chat._prompts import Prompt, Reasoning, reasoning_of, render, schema, version_of
from steelyard.judge.chat._server_features import ServerFeatures
from steelyard.judge.middleware import AdaptiveConcurrency, Retry, RetryPolicy, Wrapper
from steelyard.questions import Answer, Capabilities, Rating, Reply, Request, Unanswered

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_REPEAT_TEMPERATURE = 0.7


class ChatJudge(Wrapper):
    """A judge that is a chat model behind an OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp, ...

    The server is asked for a strict JSON schema. If it refuses, for JSON mode; if it refuses that too, in
    plain words. What it refuses is remembered, so it costs one request once. Requests time out as a whole,
    are limited in number and retried here; the openai package's own retries are off.

    Args:
        model: The model's name.
        base_url: Where the server is. None for what the openai package goes to (OPENAI_BASE_URL, or OpenAI).
        api_key: The key. Without `base_url`, OPENAI_API_KEY where none is given. With `base_url`, a key in
            the environment is not sent: it was meant for another server. Servers without keys need none.
        timeout: Seconds until a request is given up, from its first byte to the last of the reply.
        retries: Requests after the first, where the failure may pass. Retry-After is honoured; a server that
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
        bare = _Chat(
            model,
            endpoint,
            able,
            reasoning=reasoning_of(reasons, reasoning),
            temperature=temperature,
            logprobs=logprobs,
            max_tokens=max_tokens,
        )
        super().__init__(Retry(AdaptiveConcurrency(bare, most=concurrency), RetryPolicy(retries=retries)))
        self._where = endpoint.where

    def __repr__(self) -> str:
        return f"ChatJudge({self.name.removeprefix('chat:')!r}, base_url={self._where!r})"


class _Chat:
    """One request to the model, as often as it takes to find out what the server accepts."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        capabilities: Capabilities,
        *,
        reasoning: Reasoning,
        temperature: float | None,
        logprobs: bool,
        max_tokens: int | None,
    ) -> None:
        self.name = f"chat:{model}"
        self.prompt_version = version_of(reasoning)
        self.capabilities = capabilities
        self._model = model
        self._endpoint = endpoint
        self._reasoning = reasoning
        self._temperature = temperature
        self._logprobs = logprobs
        self._max_tokens = max_tokens
        self._features = ServerFeatures()

    async def answer(self, request: Request) -> Reply:
        """Ask; on a bad request, ask in a way that the server may like better."""
        features = self._features
        prompt = render(request, reasoning=self._reasoning)
        started = time.perf_counter()
        tried = 0
        while True:
            tried += 1
            shape = schema(request, reasoning=self._reasoning, counts=features.counts)
            options = self._options(features, request, prompt, shape)
            try:
                body = await self._send(options)
                break
            except JudgeRejected as error:
                error.requests = tried
                change = features.after_refusal(str(error), options) if error.cause == "bad_request" else None
                if change is None:
                    raise
                features = change
        self._features = features
        usage = usage_of(body, requests=tried, seconds=time.perf_counter() - started)
        return Reply(answers=self._read(request, body), usage=usage)

    async def _send(self, options: dict[str, Any]) -> Mapping[str, Any]:
        # What goes through `extra_body` is sent as it is: openai converting a long schema by its type
        # hints would cost more than the rest of the request.
        more = {name: value for name, value in options.items() if name not in ("model", "messages")}
        raw = await self._endpoint.call(
            lambda client: client.chat.completions.with_raw_response.create(
                model=options["model"], messages=options["messages"], extra_body=more
            )
        )
        body = body_of(raw.http_response.content)
        if not isinstance(body.get("choices"), list) or not body["choices"]:
            raise MalformedReply(f"{self._endpoint.where} sent no choices")
        return body

    def _options(
        self, features: ServerFeatures, request: Request, prompt: Prompt, shape: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The request's body."""
        user = prompt.user
        if features.spells:
            user = prompt.spelled(shape)
        options: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": user}],
        }
        if features.form == "schema":
            wanted = {"name": "answers", "strict": True, "schema": shape}
            options["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif features.form == "json":
            options["response_format"] = {"type": "json_object"}
        if self._temperature is not None and features.temperature:
            repeated = any(q.sample > 1 and not isinstance(q, Rating) for q in request.questions.values())
            lowest = _REPEAT_TEMPERATURE if repeated or request.attempt > 1 else 0.0
            options["temperature"] = max(self._temperature, lowest)
        if self._logprobs and features.logprobs:
            options |= {"logprobs": True, "top_logprobs": 5}
        if self._max_tokens is not None:
            options[features.limit] = self._max_tokens
        return options

    def _read(self, request: Request, body: Mapping[str, Any]) -> dict[str, Answer]:
        """The answers in a reply. A refusal or nonsense answers every question with its own name."""
        choice = body["choices"][0]
        message = choice.get("message") if isinstance(choice, dict) else None
        message = message if isinstance(message, dict) else {}
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            return dict.fromkeys(request.questions, Unanswered(cause="refused", detail="the model refused"))
        content = message.get("content")
        answers, found = answers_in(content, request)
        if found is None:
            self._features = self._features.after_nonsense()
            return answers
        logprobs = choice.get("logprobs")
        if self._logprobs and isinstance(logprobs, dict):
            assert isinstance(content, str)
            answers = with_probabilities(answers, request, content, found, logprobs)
        return answers

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        await self._endpoint.aclose()
