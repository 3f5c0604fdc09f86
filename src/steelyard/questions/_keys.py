"""The keys of a request: short names that say where the thing stands that a question is about.

`s3` is the third statement, `c2` is context 2, and `s3c2` asks about the one in the light of the other. Where
a statement is asked several things they are told apart by letters, `s3a` and `s3b`, the same letter for the
same thing throughout. Everything else is `q1`, `q2`, ... So a model never has to count its way from a key to
what it means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Protocol, TypeVar

from steelyard.errors import Unanswerable
from steelyard.questions._answer import Answer, Unanswered
from steelyard.questions._question import Part, Question, Supported, Useful
from steelyard.record import Record
from steelyard.scores import Score


def keyed(questions: Sequence[Question]) -> dict[str, Question]:
    """The questions by key, in the order given; equal statements have the same number.

    Args:
        questions: The questions of one request, all different.
    """
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

    @property
    def needs(self) -> frozenset[Part]:
        """Nothing: it is not put to a judge."""
        return frozenset()

    @property
    def hides(self) -> frozenset[Part]:
        """Nothing, for the same reason."""
        return frozenset()


def require(answers: Iterable[Answer], form: type[_Form]) -> list[_Form]:
    """The answers as what they were asked to be.

    Args:
        answers: Answers to questions that all have the same form.
        form: That form.

    Raises:
        Unanswerable: At the first one that is not there; the batcher turns it into the metric's Score.
    """
    checked: list[_Form] = []
    for answer in answers:
        if isinstance(answer, Unanswered):
            raise Unanswerable(form.__name__, cause=answer.cause, detail=answer.detail)
        assert isinstance(answer, form), f"{answer!r} is not a {form.__name__}"
        checked.append(answer)
    return checked
