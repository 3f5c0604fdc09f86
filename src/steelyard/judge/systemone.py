"""SystemOneJudge: servers of typed decisions that speak `/v1/systemone`, hosted or on your own machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge._openai_client import Endpoint, usage_of
from steelyard.judge.chat._prompts import Material
from steelyard.judge.decisions import (
    NOT_ASKED,
    DecisionRequests,
    DecisionsJudge,
    instructions_of,
    material_of,
    most_probable,
    probability_of,
)
from steelyard.questions import (
    Answer,
    Capabilities,
    Choose,
    ChosenOption,
    Judge,
    Level,
    Question,
    Rating,
    Reply,
    Request,
    Unanswered,
    YesNo,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["SystemOneJudge"]

_VERSION = "s1"
_MOST = 64


class SystemOneJudge(DecisionsJudge):
    """A judge on a server that answers typed questions about one state at `/v1/systemone`.

    That is the form of TypeSafe's Jev; Ollama, vLLM, LiteLLM and hosts of such models offer it too. What is
    asked, and how an answer counts, is as for `DecisionsJudge`; questions go as `noul` (yes or no), `score`
    and `choice`. A question that the server leaves out has no answer, and fails by name.

    Args:
        model: The model's name.
        base_url: Where the server is, ending in `/v1`, e.g. `http://127.0.0.1:11434/v1` for Ollama.
        api_key: The key, where the server wants one; a key in the environment is not sent.
        max_questions: Questions in one request.
        max_characters: Characters of material and questions in one request; such models read less at a time
            than chat models do.
        extractor: As for `DecisionsJudge`, like `timeout`, `retries`, `concurrency` and `client`.

    Raises:
        ConfigurationError: If an option makes no sense, or there is no `base_url`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        extractor: Judge | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        concurrency: int = 16,
        max_questions: int = _MOST,
        max_characters: int = 60_000,
        client: AsyncOpenAI | None = None,
    ) -> None:
        if base_url is None and client is None:
            raise ConfigurationError(
                f"judge 'systemone:{model}' needs the server's address: base_url='http://127.0.0.1:11434/v1'"
            )
        super().__init__(
            model,
            base_url=base_url,
            api_key=api_key,
            extractor=extractor,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            max_questions=max_questions,
            max_characters=max_characters,
            client=client,
        )

    def _bare(self, model: str, endpoint: Endpoint, able: Capabilities) -> Judge:
        return _SystemOne(model, endpoint, able)

    @property
    def prompt_version(self) -> str:
        """That of `DecisionsJudge`, whose words these are, with the version of this form."""
        return f"{_VERSION}+{super().prompt_version}"


class _SystemOne(DecisionRequests):
    """One request to the server."""

    kind = "systemone"
    prompt_version = _VERSION

    async def answer(self, request: Request) -> Reply:
        """Ask, and hold each answer against its question by name."""
        started = time.perf_counter()
        material, state = material_of(request)
        questions = {key: _put(question, material) for key, question in request.questions.items()}
        body = {"model": self.model, "state": state, "questions": questions}
        reply = await self.endpoint.call(lambda client: client.post("/systemone", cast_to=object, body=body))
        answers = reply.get("answers") if isinstance(reply, dict) else None
        if not isinstance(answers, dict):
            raise MalformedReply(f"{self.endpoint.where} sent no answers")
        found: dict[str, Answer] = {key: NOT_ASKED for key in answers if key not in request.questions}
        for key, question in request.questions.items():
            if key in answers:
                found[key] = _answer_of(question, answers[key])
        usage = usage_of(reply, requests=1, seconds=time.perf_counter() - started)
        return Reply(answers=found, usage=usage)


def _put(question: Question, material: Material) -> dict[str, Any]:
    """A question as the server takes it."""
    instructions = instructions_of(question, material)
    if isinstance(question, Rating):
        return {
            "type": "score",
            "instructions": instructions,
            "criteria": [text for _, text in question.levels],
        }
    if isinstance(question, Choose):
        criteria = dict.fromkeys(question.options)
        return {"type": "choice", "instructions": instructions, "criteria": criteria}
    return {"type": "noul", "instructions": instructions}


def _answer_of(question: Question, body: Any) -> Answer:
    try:
        if isinstance(question, Rating):
            return _level(question, body)
        if isinstance(question, Choose):
            return _option(question, body)
        chance = probability_of(body["noul"])
        return YesNo(value=chance >= 0.5, probability=chance)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        detail = f"{type(error).__name__} in an answer to a {question.kind!r} question"
        return Unanswered(cause="malformed_answer", detail=detail)


def _level(question: Rating, body: Mapping[str, Any]) -> Level:
    weights = {question.levels[_place(key)][0]: probability_of(p) for key, p in body["probabilities"].items()}
    return most_probable(weights)


def _option(question: Choose, body: Mapping[str, Any]) -> ChosenOption:
    chances = {str(name): probability_of(chance) for name, chance in body["probabilities"].items()}
    if body["choice"] not in question.options:
        raise ValueError("an option that was not offered")
    return ChosenOption(value=body["choice"], probabilities=chances)


def _place(key: str) -> int:
    place = int(key)
    if place < 0:
        raise ValueError("a level below the first")
    return place
