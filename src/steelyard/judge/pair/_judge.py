"""PairJudge: a sentence-pair model of your own, combined with what the local judge sees in the words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.errors import ConfigurationError
from steelyard.judge.local._judge import LocalJudge
from steelyard.judge.pair._labels import PairLabels, find_labels
from steelyard.judge.pair._model import PairModel
from steelyard.questions import (
    Answer,
    Capabilities,
    Contradicted,
    Part,
    Question,
    Reply,
    Request,
    Same,
    Supported,
    View,
    YesNo,
)

_VERSION = "p1"
_MOST_WINDOWS = 16
"""Windows that a claim is checked against."""
_MISSING = 0.49  # below one half, for no model of pairs reads numbers well enough to outvote a missing one


class PairJudge:
    """A judge on a local model that reads a text and a claim together, such as a model of textual entailment.

    Claims are checked against each passage, cut into windows if it is long; the window that entails one
    most decides. The probability is a weighted mean of that and of the local judge's score, which knows what
    such models overlook: a claim with a number that is nowhere in the passages stays a no. Everything else
    (claims of an answer, relevance, evasive answers) is answered by the local judge. Nothing leaves the
    machine.

    The model is an ONNX file of a sequence classifier with its `tokenizer.json`. What its labels mean is
    found by asking it a few pairs whose answer is plain; a model that fails there is refused.

    Needs `pip install 'steelyard[onnx]'`.

    Args:
        model: The ONNX file, or a folder that holds `model.onnx` or `onnx/model.onnx`.
        tokenizer: The `tokenizer.json`; beside the model, or one folder up, where None.
        labels: What the labels mean; found out where None.
        weight: Share of the model in the probability, in (0, 1]; the rest is the local judge's.
        max_tokens: Tokens that the model reads at a time; the tokenizer's own limit, if that is lower.
        threads: Cores to use.

    Raises:
        ConfigurationError: If an option makes no sense, a file is not what it should be, or model and
            tokenizer do not fit together.
        MissingDependency: If onnxruntime is not installed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        tokenizer: str | Path | None = None,
        labels: PairLabels | None = None,
        weight: float = 0.5,
        max_tokens: int = 512,
        threads: int = 1,
    ) -> None:
        if max_tokens < 1 or threads < 1:
            raise ConfigurationError(f"max_tokens={max_tokens!r} and threads={threads!r} must be at least 1")
        if not 0 < weight <= 1:
            raise ConfigurationError(f"weight must be in (0, 1], not {weight!r}")
        self._model = PairModel(model, tokenizer, threads=threads, max_tokens=max_tokens)
        self.labels = find_labels(self._model, labels)
        """What the model's labels mean."""
        self._weight = weight
        self._local = LocalJudge()
        self.name = f"pair:{self._model.path.parent.name}/{self._model.path.name}:{self._model.sha256[:8]}"

    @property
    def prompt_version(self) -> str:
        """Version of the way the two are combined, the weight, and the local judge's version."""
        return f"{_VERSION}:{self._weight:g}+{self._local.prompt_version}"

    @property
    def capabilities(self) -> Capabilities:
        """Those of the local judge."""
        return self._local.capabilities

    async def answer(self, request: Request) -> Reply:
        """Answer in words first, then let the model read the claims; the model runs in a thread."""
        reply = await self._local.answer(request)
        asked = {
            key: question
            for key, question in request.questions.items()
            if self._reads(question) and isinstance(reply.answers.get(key), YesNo)
        }
        if not asked:
            return reply
        shares = await asyncio.to_thread(self._read, request.view, list(asked.values()))
        answers: dict[str, Answer] = dict(reply.answers)
        for (key, question), share in zip(asked.items(), shares, strict=True):
            in_words = answers[key]
            assert isinstance(in_words, YesNo)
            answers[key] = self._combined(question, in_words, share)
        return replace(reply, answers=answers)

    async def aclose(self) -> None:
        """Forget the texts read last; the model stays."""
        await self._local.aclose()

    def _reads(self, question: Question) -> bool:
        if isinstance(question, Contradicted):
            return self.labels.contradicted is not None
        return isinstance(question, Supported | Same)

    def _read(self, view: View, questions: Sequence[Question]) -> list[float]:
        """For each question the largest share of its label over the windows of its passages."""
        pairs: list[tuple[str, str]] = []
        ends: list[int] = []
        for question in questions:
            claim = question.quoted or ""
            windows = [
                window for text in _passages(view, question) for window in self._model.windows(text, claim)
            ]
            pairs += [
                (claim, window) if self.labels.claim_first else (window, claim)
                for window in _likest(windows, claim)
            ]
            ends.append(len(pairs))
        shares = self._model.shares(pairs)
        found, start = [], 0
        for question, end in zip(questions, ends, strict=True):
            found.append(float(shares[start:end, self._column(question)].max()))
            start = end
        return found

    def _column(self, question: Question) -> int:
        against = self.labels.contradicted
        return against if isinstance(question, Contradicted) and against is not None else self.labels.entailed

    def _combined(self, question: Question, in_words: YesNo, share: float) -> YesNo:
        words = in_words.probability if in_words.probability is not None else float(in_words.value)
        chance = self._weight * share + (1 - self._weight) * words
        if not isinstance(question, Contradicted) and not in_words.value and _lacks_a_number(in_words):
            chance = min(chance, _MISSING)
        return replace(
            in_words,
            value=chance >= 0.5,
            probability=chance,
            reason=f"the model says {share:.2f}, the words {words:.2f}: {in_words.reason}",
        )

    def __repr__(self) -> str:
        return f"PairJudge({str(self._model.path)!r})"


def _lacks_a_number(answer: YesNo) -> bool:
    return any(evidence.notes.get("missing_numbers") for evidence in answer.evidence)


def _passages(view: View, question: Question) -> list[str]:
    """The texts that a question holds its claim against; there is one, since the local judge answered."""
    part: Part = "contexts"
    passage = None
    if isinstance(question, Supported):
        part, passage = question.by, question.passage
    elif isinstance(question, Contradicted):
        part = question.by
    elif isinstance(question, Same):
        part = question.among
    if part in ("contexts", "reference_contexts"):
        texts = [context.text for context in getattr(view, part) or ()]
    else:
        texts = [getattr(view, part) or ""]
    return texts if passage is None else texts[passage : passage + 1]


def _likest(windows: Sequence[str], claim: str) -> list[str]:
    """The windows that share the most words with a claim, in their order; all where there are few."""
    if len(windows) <= _MOST_WINDOWS:
        return list(windows)
    words = set(claim.casefold().split())
    common = [len(words & set(window.casefold().split())) for window in windows]
    kept = sorted(sorted(range(len(windows)), key=lambda place: -common[place])[:_MOST_WINDOWS])
    return [windows[place] for place in kept]
