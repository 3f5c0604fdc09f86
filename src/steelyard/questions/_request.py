"""A request: what it shows, its questions by key, and the protocols of whoever answers it.

A key says where the thing stands that a question is about. `s3` is the third statement, `c2` is context 2,
and `s3c2` asks about the one in the light of the other. Where a statement is asked several things they are
told apart by letters, `s3a` and `s3b`, the same letter for the same thing throughout. Everything else is
`q1`, `q2`, ... So a model never has to count its way from a key to what it means.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from string import ascii_lowercase
from typing import Protocol, TypeVar, runtime_checkable

from steelyard.errors import Unanswerable
from steelyard.questions._answer import Answer, ChosenOption, Level, Texts, Unanswered, Vector, YesNo
from steelyard.questions._question import PARTS, Choose, Part, Question, Rating, Supported, Useful
from steelyard.record import Context, Record, text_of
from steelyard.scores import Score, Usage, clean_evidence


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The material that one request shows: a part that is not in view is None."""

    question: str | None = field(default=None, repr=False)
    contexts: tuple[Context, ...] | None = None
    answer: str | None = field(default=None, repr=False)
    reference: str | None = field(default=None, repr=False)
    reference_contexts: tuple[Context, ...] | None = None

    @classmethod
    def of(cls, record: Record, parts: frozenset[Part]) -> View:
        """The parts of a record that a request may show; an empty part is as good as none."""
        return cls(
            question=(record.asked or None) if "question" in parts else None,
            contexts=(record.contexts or None) if "contexts" in parts else None,
            answer=(record.answer or None) if "answer" in parts else None,
            reference=(record.reference or None) if "reference" in parts else None,
            reference_contexts=(record.reference_contexts or None) if "reference_contexts" in parts else None,
        )


def has(record: Record, part: Part) -> bool:
    value = record.asked if part == "question" else getattr(record, part)
    texts = (context.text for context in value) if isinstance(value, tuple) else (value,)
    return any(text and text.strip() for text in texts)


def present(record: Record) -> frozenset[Part]:
    return frozenset(part for part in PARTS if has(record, part))


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One trip to a judge: some material and the questions about it, each under its own key."""

    view: View
    questions: Mapping[str, Question]
    """By key (`s1` for the first statement, `c2` for context 2, `q1`, ...), in the order asked."""
    attempt: int = 1
    """2 where the first reply to these questions had no usable answer: they have to be asked otherwise, or a
    judge at temperature 0 says the same again."""
    tenant: str | None = None
    """Whose record it is about; what is kept of a reply is given to nobody else. Judges do not see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a judge sent back. Keys may be missing or extra; the batcher counts both."""

    answers: Mapping[str, Answer]
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a judge can do; the batcher plans by it."""

    kinds: frozenset[type[Question]]
    """The questions it can answer. All others come back `unsupported` without being sent."""
    independent: bool = False
    """Whether it answers each question of a request by itself, so that independent repeats may share one."""
    max_questions: int = 60
    """Questions in one request."""
    max_characters: int = 400_000
    """Characters of material and questions in one request."""
    max_work: int = sys.maxsize
    """Characters of material times questions in one request: work that grows with both is bounded by it."""
    calibrated: bool = False
    """Whether its probabilities were calibrated against people."""


@runtime_checkable
class Judge(Protocol):
    """Whoever answers questions about a record: a model behind an API, or the embedded local judge.

    A judge is used from one event loop at a time, but may see several in its life.
    """

    @property
    def name(self) -> str:
        """Name with model, as it stands on every Score, e.g. `chat:gpt-4o-mini`."""

    @property
    def prompt_version(self) -> str:
        """Version of the wording it puts to its model."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    async def answer(self, request: Request) -> Reply:
        """Answer as many of the questions as possible.

        Raises:
            JudgeError: If the whole request came to nothing.
        """

    async def aclose(self) -> None:
        """Release connections; the judge opens new ones if it is used again."""


@runtime_checkable
class Embedder(Protocol):
    """Whoever turns texts into vectors."""

    @property
    def name(self) -> str:
        """Name with model, as it stands on every Score that used it."""

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            JudgeError: If there are no vectors.
        """

    async def aclose(self) -> None:
        """Release connections; the embedder opens new ones if it is used again."""


_Key = TypeVar("_Key", str, float)


def check(question: Question, answer: Answer | None) -> Answer:
    """The answer if it fits the question, else an `Unanswered` that says what is wrong with it."""
    if answer is None:
        return Unanswered(cause="missing_answer", detail="the judge left the question out")
    if isinstance(answer, Unanswered):
        return answer
    if not isinstance(answer, question.form):
        return _malformed(f"a {type(answer).__name__} where a {question.form.__name__} was asked for")
    try:
        fault = _fault(question, answer)
        return _malformed(fault) if fault else _plain(answer)
    except Exception as error:  # noqa: BLE001 - the values are of a user's own making and may do anything
        return _malformed(f"{type(error).__name__} in a {question.form.__name__}")


def _plain(answer: Answer) -> Answer:
    """The answer with its numbers and texts as Python's own."""
    match answer:
        case YesNo(probability=probability, reason=reason, evidence=evidence):
            return replace(
                answer,
                probability=None if probability is None else float(probability),
                reason=text_of(reason),
                evidence=tuple(clean_evidence(piece) for piece in evidence),
            )
        case Level(value=value, probabilities=weights, reason=reason):
            own = {float(level): float(weight) for level, weight in weights.items()}
            return replace(answer, value=float(value), probabilities=own, reason=text_of(reason))
        case ChosenOption(probabilities=chances, reason=reason):
            kept = {option: float(chance) for option, chance in chances.items()}
            return replace(answer, probabilities=kept, reason=text_of(reason))
        case Texts(items=items):
            return Texts(items=tuple(map(text_of, items)))
        case _:
            return answer


def _malformed(fault: str) -> Unanswered:
    return Unanswered(cause="malformed_answer", detail=fault)


def _fault(question: Question, answer: Answer) -> str | None:
    match answer:
        case YesNo(value=value) if not isinstance(value, bool):
            return f"{value!r} is neither yes nor no"
        case YesNo(probability=p) if p is not None and not _in_unit(p):
            return f"probability {p!r} outside 0..1"
        case Level():
            return _level_fault(question, answer)
        case ChosenOption():
            return _choice_fault(question, answer)
        case Texts(items=items):
            return _texts_fault(items)
        case Vector(values=values) if not values or not all(map(math.isfinite, values)):
            return "a vector that is empty or not finite"
        case _:
            return None


def _in_unit(probability: object) -> bool:
    # `Real`, since judges of users hand over numpy's numbers; NaN fails both comparisons.
    return isinstance(probability, Real) and 0 <= float(probability) <= 1


def _texts_fault(items: Sequence[object]) -> str | None:
    # A text is a sequence of texts too, and each of its letters would become a claim.
    if isinstance(items, str) or not all(isinstance(item, str) and item.strip() for item in items):
        return "an item that is empty or no text"
    return None


def _level_fault(question: Question, answer: Level) -> str | None:
    assert isinstance(question, Rating)
    scale = {value for value, _ in question.levels}
    if not isinstance(answer.value, Real) or answer.value not in scale:
        return f"level {answer.value!r} is not on the scale {sorted(scale)!r}"
    return _weights_fault(answer.probabilities, scale)


def _choice_fault(question: Question, answer: ChosenOption) -> str | None:
    assert isinstance(question, Choose)
    if answer.value not in question.options:
        return f"option {answer.value!r} is not among {list(question.options)!r}"
    return _weights_fault(answer.probabilities, set(question.options))


def _weights_fault(weights: object, known: set[_Key]) -> str | None:
    if not isinstance(weights, Mapping) or not set(weights) <= known:
        return "probabilities for something that was not offered"
    if not all(map(_in_unit, weights.values())):
        return "a probability outside 0..1"
    return None


def keyed(questions: Sequence[Question]) -> dict[str, Question]:
    """The questions by key, in the order given; equal statements have the same number."""
    quoted = list(map(_quoted, questions))
    times = Counter(text for text in quoted if text is not None)
    statements = {text: number for number, text in enumerate(times, start=1)}
    several = any(
        said is not None and times[said] > 1 and _lettered(q)
        for q, said in zip(questions, quoted, strict=True)
    )
    letters: dict[str, str] = {}
    found: dict[str, Question] = {}
    for question, said in zip(questions, quoted, strict=True):
        if said is not None:
            key = f"s{statements[said]}"
            if isinstance(question, Supported) and question.passage is not None:
                key += f"{'c' if question.by == 'contexts' else 'e'}{question.passage + 1}"
            elif several:
                key += letters.setdefault(_asked(question), ascii_lowercase[len(letters) % 26])
        elif isinstance(question, Useful):
            key = f"c{question.context + 1}"
        else:
            key = f"q{len(found) + 1}"
        found[_unused(key, found)] = question
    return found


def _quoted(question: Question) -> str | None:
    return None if question.quoted is None else " ".join(question.quoted.split())


def _lettered(question: Question) -> bool:
    """Whether a letter tells it from what else is asked of its statement, and not the number of a context."""
    return not (isinstance(question, Supported) and question.passage is not None)


def _asked(question: Question) -> str:
    """What is asked of a statement, without the statement itself."""
    named = ("by", "among", "of")
    return repr([question.kind, *(getattr(question, name, None) for name in named)])


def _unused(key: str, taken: dict[str, Question]) -> str:
    """The key, or one like it: two different questions may be about the same thing in record mode."""
    if key not in taken:
        return key
    return next(name for letter in ascii_lowercase if (name := f"{key}{letter}") not in taken)


_Form = TypeVar("_Form")

MetricRun = Generator[Sequence[Question], Sequence[Answer], Score]
"""What a metric is while it runs: it yields rounds of questions and returns its Score."""


class SupportsQuestions(Protocol):
    """What the batcher needs to know of a metric."""

    @property
    def name(self) -> str:
        """The name its Score carries."""

    def ask(self, record: Record) -> MetricRun:
        """Start asking about a record."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreOf(Question):
    """The Score of another metric on the same record, for metrics that combine others.

    The batcher runs that metric beside all the others, so its questions travel with theirs.
    """

    kind = "score_of"
    form = Score
    metric: SupportsQuestions
    """The metric; its Score comes back without an id and without provenance."""
    # It is not put to a judge.
    needs = hides = frozenset[Part]()
    # By identity: metrics of users need not be hashable.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def require(answers: Iterable[Answer], form: type[_Form]) -> list[_Form]:
    """The answers as what they were asked to be.

    The first one that is not there raises `Unanswerable`, which the batcher turns into the Score.
    """
    checked: list[_Form] = []
    for answer in answers:
        if isinstance(answer, Unanswered):
            raise Unanswerable(form.__name__, cause=answer.cause, detail=answer.detail)
        assert isinstance(answer, form), f"{answer!r} is not a {form.__name__}"
        checked.append(answer)
    return checked
