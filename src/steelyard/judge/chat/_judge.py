"""ChatJudge: any OpenAI-compatible chat model as a judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import ConfigurationError
from steelyard.judge.chat._asked import PreparedRequest, asked
from steelyard.judge.chat._completions import Completion, Completions
from steelyard.judge.chat._kinds import KINDS
from steelyard.judge.chat._logprobs import with_probabilities
from steelyard.judge.chat._obedience import Obedience
from steelyard.judge.chat._parse import answers_in
from steelyard.judge.chat._prompts import Reasoning, reasoning_of, render, schema, version_of
from steelyard.judge.endpoint import Endpoint
from steelyard.judge.middleware import AdaptiveConcurrency, Retry, RetryPolicy, Wrapper
from steelyard.questions import Answer, Capabilities, Rating, Reply, Request, Unanswered

if TYPE_CHECKING:
    from openai import AsyncOpenAI


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
        """Ask the model."""
        repeated = any(q.sample > 1 and not isinstance(q, Rating) for q in request.questions.values())
        made = asked(request)
        put = made.on_the_wire()
        completion = await self._completions.ask(
            render(made.request, reasoning=self._reasoning, nonce=made.nonce),
            lambda counts: schema(put, reasoning=self._reasoning, counts=counts),
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
        """Close the running loop's connections."""
        await self._completions.aclose()
