"""Two judges that do not judge: what word overlap and the length of an answer are worth by themselves.

Each takes the one threshold that suits the probe set best, chosen with the right answers in view. That
flatters them, so that a judge which beats them does so honestly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from steelyard.probing._probes import Probe
from steelyard.questions import (
    Answer,
    Capabilities,
    Judge,
    Noncommittal,
    Question,
    Reply,
    Request,
    Supported,
    YesNo,
)

# A word, or one character of a script that is written without spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_KINDS: frozenset[type[Question]] = frozenset({Supported, Noncommittal})


def overlap(claim: str, contexts: Sequence[str]) -> float:
    """The share of a claim's words, 0..1, that stand in the contexts; 0 of a claim without words."""
    words = _WORD.findall(claim.casefold())
    known = {word for context in contexts for word in _WORD.findall(context.casefold())}
    return sum(word in known for word in words) / len(words) if words else 0.0


class Baseline:
    """Says yes to a claim from a measure of it alone, and that an answer evades where it would say no.

    Word overlap is not shown the contexts beside a question about evasion, so that it says of every answer
    that it evades.
    """

    prompt_version = "1"
    capabilities = Capabilities(kinds=_KINDS, independent=True, max_questions=10_000)

    def __init__(
        self, name: str, measure: Callable[[str, Sequence[str]], float], *, threshold: float, is_share: bool
    ) -> None:
        self.name = name
        self._measure = measure
        self._threshold = threshold
        self._is_share = is_share

    async def answer(self, request: Request) -> Reply:
        """Measure and compare."""
        contexts = [context.text for context in request.view.contexts or ()]
        return Reply(
            answers={
                key: self._verdict(question, request.view.answer or "", contexts)
                for key, question in request.questions.items()
            }
        )

    def _verdict(self, question: Question, answer: str, contexts: Sequence[str]) -> Answer:
        if isinstance(question, Supported):
            value = self._measure(question.claim, contexts)
            return YesNo(value=value >= self._threshold, probability=value if self._is_share else None)
        return YesNo(value=self._measure(answer, contexts) < self._threshold)

    async def aclose(self) -> None:
        """Nothing to release."""


def baselines(probes: Sequence[Probe]) -> tuple[Judge, Judge]:
    """Word overlap and answer length, each with the threshold that is right on most of these probes."""
    claims = [probe for probe in probes if probe.asks == "supported"]

    def made(name: str, measure: Callable[[str, Sequence[str]], float], *, is_share: bool) -> Baseline:
        threshold = _best([(measure(one.claim, one.contexts), one.expected) for one in claims])
        return Baseline(name, measure, threshold=threshold, is_share=is_share)

    return (
        made("word-overlap", overlap, is_share=True),
        made("answer-length", lambda claim, _: float(len(claim)), is_share=False),
    )


def _best(measured: Sequence[tuple[float, bool]]) -> float:
    """The threshold from which a yes is right most often; the lowest of several."""
    candidates = sorted({value for value, _ in measured})

    def right(threshold: float) -> int:
        return sum((value >= threshold) == expected for value, expected in measured)

    return max(candidates, key=right, default=0.0)
