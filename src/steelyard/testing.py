"""Helpers for tests, yours and ours: a judge that answers from a script, a sink that keeps what it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from steelyard.questions import QUESTION_KINDS, Answer, Capabilities, Question, Reply, Request
from steelyard.scores import Evaluation, Usage

__all__ = ["MemorySink", "ScriptedJudge"]


@dataclass
class ScriptedJudge:
    """A judge without a model: a function of yours answers each question.

    The function may return None to leave a question out, or raise a JudgeError to fail the whole request.

    Attributes:
        script: From a question and what is in view to its answer.
        requests: Every request it was sent, for assertions.
    """

    script: Callable[[Question, Request], Answer | None]
    name: str = "scripted"
    prompt_version: str = "test"
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(kinds=QUESTION_KINDS))
    requests: list[Request] = field(default_factory=list)

    async def answer(self, request: Request) -> Reply:
        """Answer from the script."""
        self.requests.append(request)
        answers = {key: self.script(question, request) for key, question in request.questions.items()}
        given = {key: answer for key, answer in answers.items() if answer is not None}
        return Reply(answers=given, usage=Usage(requests=1))

    async def aclose(self) -> None:
        """Nothing to release."""


@dataclass
class MemorySink:
    """A sink that keeps Evaluations in a list, the latest for each record id."""

    name: str = "memory"
    by_record: dict[str, Evaluation] = field(default_factory=dict)

    @property
    def evaluations(self) -> list[Evaluation]:
        """What was written, in order of first arrival."""
        return list(self.by_record.values())

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Keep them."""
        self.by_record.update({evaluation.record_id: evaluation for evaluation in evaluations})

    async def aclose(self) -> None:
        """Nothing to release."""
