"""The batcher: it drives all metrics of one record through their rounds and fuses what they ask.

A metric is a generator: it yields questions, gets their answers back and in the end returns a Score. The
batcher gathers the questions of all metrics, drops duplicates, packs the rest into as few requests as the
views allow, and hands every metric its answers. Extractions go first: everything else waits until no
extraction is outstanding, so that verdicts which different metrics reach at different depths still travel
together. Texts to embed go last, all in one request. Most evaluations are two or three trips deep, however
many metrics they have.

Every answer is accounted for: what is missing, refused or malformed is asked once more, and then fails by
name.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, get_args

from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, JudgeError, Unanswerable
from steelyard.questions._answer import Answer, Unanswered, Vector
from steelyard.questions._packing import Fuse, Group, fitted, pack, size_of, split
from steelyard.questions._question import Embed, Noncommittal, Part, Question
from steelyard.questions._request import (
    Embedder,
    Judge,
    MetricRun,
    Request,
    ScoreOf,
    SupportsQuestions,
    View,
    check,
    keyed,
    present,
)
from steelyard.record import Record, text_of
from steelyard.recording import unrecorded
from steelyard.scores import Score, Usage, clean_usage

_Result = TypeVar("_Result")

_PAUSE = 0.002
"""Seconds that a metric pauses which is not through with a long text."""


@dataclass(slots=True)
class _Pending:
    """One metric on its way to a Score."""

    metric: SupportsQuestions
    record: Record
    judge: str
    """The judge's name, for explanations."""
    run: MetricRun | None = None
    questions: Sequence[Question] = ()
    parts: dict[Question, _Pending] = field(default_factory=dict)
    """The metrics whose Scores it asks for in this round."""
    asked: list[Question] = field(default_factory=list)
    """Everything that it and its parts asked."""
    score: Score | None = None

    def start(self) -> _Pending:
        """Get to the first round of questions."""
        self.run = _run(self.metric, self.record)
        self._resume(None)
        return self

    def advance(self, known: Mapping[Question, Answer]) -> list[Question]:
        """Go as far as the known answers carry it; returns what is still to be asked, nothing at the end."""
        while self.run is not None:
            own = [one for one in self.questions if one not in known and one not in self.parts]
            others = [one for part in self.parts.values() for one in part.advance(known)]
            if own or others or self._waits:
                return own + others
            scores = {question: part.score for question, part in self.parts.items()}
            self._resume([scores.get(one) or known[one] for one in self.questions])
            if self.pauses:
                break
        return []

    @property
    def _waits(self) -> bool:
        return any(part.pauses for part in self.parts.values())

    @property
    def pauses(self) -> bool:
        """Whether the metric asks nothing this time, so that others may go on before it does."""
        return self._waits or (self.run is not None and not self.questions)

    def _resume(self, answers: Sequence[Answer] | None) -> None:
        """Hand over the answers of the last round; leaves either new questions or a Score."""
        assert self.run is not None
        name = self.metric.name
        try:
            self.questions = self.run.send(answers) if answers is not None else next(self.run)
            # A question that cannot be hashed shows here, as this metric's error and no other's.
            _ = {hash(question) for question in self.questions}
            self.parts = {
                question: _Pending(question.metric, self.record, self.judge, asked=self.asked).start()
                for question in self.questions
                if isinstance(question, ScoreOf)
            }
            self.asked += self.questions
            return
        except StopIteration as stop:
            if isinstance(stop.value, Score):
                self.score = stop.value
            else:
                detail = f"the metric returned {type(stop.value).__name__}, not a Score"
                self.score = Score.failed(name, cause="metric_error", explanation=detail)
        except Unanswerable as problem:
            self.score = _without_answer(name, problem, self.judge)
        # Unlike others' errors an interrupt is the host's, and has to go through.
        except BaseException as error:  # a user's metric may raise anything; the others go on
            if _is_interrupt(error):
                raise
            self.score = Score.failed(
                name, cause="metric_error", explanation=f"the metric raised {_place_of(error)}"
            )
        self.run, self.questions, self.parts = None, (), {}


async def _advanced(cases: Sequence[_Pending], known: Mapping[Question, Answer]) -> list[Question] | None:
    # Each once, in the order in which metrics were given: the same record makes the same requests.
    found: dict[Question, None] = {}
    for case in cases:
        found.update(dict.fromkeys(case.advance(known)))
        if case.pauses:
            return None
        await asyncio.sleep(0)
    return list(found)


def _run(metric: SupportsQuestions, record: Record) -> MetricRun:
    """The metric's questions; a plain function that raises does so in its turn, as a generator would."""
    return (yield from metric.ask(record))


def _without_answer(name: str, problem: Unanswerable, judge: str) -> Score:
    if problem.cause == "unsupported":
        return Score.not_applicable(name, cause="unsupported", explanation=problem.detail)
    explanation = f"{judge}: {problem.detail or problem.cause}"
    return Score.failed(name, cause=problem.cause, explanation=explanation)


@dataclass
class QuestionBatcher:
    """Asks one judge and one embedder on behalf of any number of metrics.

    Attributes:
        judge: Answers every question but `Embed`.
        embedder: Answers `Embed`; without one those are `unsupported`.
        fuse: How questions share requests.
        deadline: `time.monotonic()` after which nothing more is asked; None for none.
        usage: What it has cost so far.
        retry_after: The longest wait in seconds that a failed request was told to keep; None for none.
    """

    judge: Judge
    embedder: Embedder | None = None
    fuse: Fuse = "view"
    deadline: float | None = None
    usage: Usage = field(default_factory=Usage)
    retry_after: float | None = None
    _shown: dict[Question, frozenset[Part]] = field(default_factory=dict, repr=False)
    _left_out: dict[Question, int] = field(default_factory=dict, repr=False)
    _tenant: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.fuse not in get_args(Fuse):
            words = ", ".join(map(repr, get_args(Fuse)))
            raise ConfigurationError(f"fuse={self.fuse!r} is not one of {words}")

    async def run(self, record: Record, metrics: Sequence[SupportsQuestions]) -> list[Score]:
        """Drive every metric to its Score, in the order given. Errors become Scores, never exceptions."""
        known: dict[Question, Answer] = {}
        self._tenant = record.tenant
        cases = [_Pending(metric, record, self.judge.name) for metric in metrics]
        for case in cases:
            case.start()
            await asyncio.sleep(0)  # of a large record each takes some milliseconds
        while (outstanding := await _advanced(cases, known)) != []:
            if outstanding is None:
                await asyncio.sleep(_PAUSE)
            else:
                known.update(await self._round(record, outstanding))
        return [self._with_view(case.score, case) for case in cases if case.score is not None]

    def _with_view(self, score: Score, case: _Pending) -> Score:
        """A Score with what the judge saw, or was not shown, while it answered the metric's questions."""
        more: dict[str, set[Part]] = {}
        for question in case.asked:
            own = question.needs | question.shows
            if extra := self._shown.get(question, own) - own:
                more.setdefault(question.kind, set()).update(extra)
        left_out = max((self._left_out.get(question, 0) for question in case.asked), default=0)
        if not more and not left_out and not score.also_seen and not score.left_out:
            return score  # as nearly every one is: no copy for those
        also_seen = {kind: tuple(sorted(parts)) for kind, parts in sorted(more.items())}
        return replace(score, also_seen=also_seen, left_out=left_out)

    async def _round(self, record: Record, questions: list[Question]) -> dict[Question, Answer]:
        """Ask what can be asked now: unsupported questions fall at once, extractions go first, texts last."""
        answers = {question: lack for question in questions if (lack := self._unsupported(question))}
        # Before anything is sent: a metric that learns of it may end here, and ask nothing more.
        if answers:
            return answers
        rest = [question for question in questions if not isinstance(question, Embed)]
        texts = [question for question in questions if isinstance(question, Embed)]
        groups = self._groups(record, rest)
        if any(question.extracts for question in rest):
            groups = [group for group in groups if any(question.extracts for question in group.questions)]
        # Texts wait until the judge is through, so that all of them fit into one request.
        jobs = [self._ask(record, group) for group in groups] or [self._embed(texts)]
        for found in await asyncio.gather(*jobs):
            answers.update(found)
        self.usage += Usage(questions=len(answers))
        return answers

    def _unsupported(self, question: Question) -> Answer | None:
        if isinstance(question, Embed):
            if self.embedder is not None:
                return None
            return Unanswered(cause="unsupported", detail="no embedder is configured")
        if type(question) in self.judge.capabilities.kinds:
            return None
        detail = f"the judge {self.judge.name!r} cannot answer {question.kind!r} questions"
        return Unanswered(cause="unsupported", detail=detail)

    def _groups(self, record: Record, questions: Sequence[Question]) -> list[Group]:
        """The requests of a round. While something is to be extracted, only what costs nothing goes along.

        That is a second or later repeat: it needs a request of its own anyway, which can do the extracting.
        And it is what may see no more than an extraction does: it would need a request of its own later.
        """
        able = self.judge.capabilities
        if any(question.extracts for question in questions):
            lone = not able.independent and self.fuse != "off"
            questions = [
                q for q in questions if q.extracts or (lone and (q.sample > 1 or isinstance(q, Noncommittal)))
            ]
        there = present(record)
        packed = pack(questions, fuse=self.fuse, independent=able.independent, present=there)
        # As it was packed: splitting by size shows the same parts to all of them.
        for group in packed:
            shown = group.parts.union(*(question.shows for question in group.questions))
            self._shown.update(dict.fromkeys(group.questions, shown & there))
        return [piece for group in packed for piece in split(group, View.of(record, group.parts), able)]

    async def _ask(self, record: Record, group: Group) -> dict[Question, Answer]:
        """Ask a group, and once more what did not come back well."""
        view = View.of(record, group.parts)
        able = self.judge.capabilities
        most = min(able.max_characters, able.max_work // len(group.questions))
        if (size := size_of(view)) > most:
            view, left_out = await asyncio.to_thread(fitted, view, group.questions, characters=most)
            if left_out is None:
                detail = f"{size} characters of material, and the judge {self.judge.name!r} takes {most}"
                return dict.fromkeys(group.questions, Unanswered(cause="too_large", detail=detail))
            self._left_out.update(dict.fromkeys(group.questions, left_out))
        answers = await self._request(view, group.questions)
        poor = [q for q, one in answers.items() if isinstance(one, Unanswered) and one.cause in _REASKED]
        # Once more and not again: what two tries do not bring fails by name.
        if poor:
            self.usage += Usage(reasked=len(poor))
            answers.update(await self._request(view, poor, attempt=2))
        return answers

    async def _request(
        self, view: View, questions: Sequence[Question], *, attempt: int = 1
    ) -> dict[Question, Answer]:
        named = keyed(questions)

        async def send() -> dict[Question, Answer]:
            request = Request(view=view, questions=named, attempt=attempt, tenant=self._tenant)
            reply = await self.judge.answer(request)
            answers = {question: check(question, reply.answers.get(key)) for key, question in named.items()}
            self.usage += clean_usage(reply.usage) + Usage(extra=len(reply.answers.keys() - named.keys()))
            return answers

        found = await self._call(send)
        return dict.fromkeys(questions, found) if isinstance(found, Unanswered) else found

    async def _embed(self, questions: Sequence[Embed]) -> dict[Question, Answer]:
        embedder = self.embedder
        assert embedder is not None

        async def send() -> dict[Question, Answer]:
            vectors, usage = await embedder.embed([question.text for question in questions])
            self.usage += clean_usage(usage)
            detail = ""
            if len(vectors) != len(questions):
                detail = f"{len(vectors)} vectors for {len(questions)} texts"
            elif len(lengths := {len(vector) for vector in vectors}) > 1:
                detail = f"vectors of different lengths: {sorted(lengths)}"
            if detail:
                return dict.fromkeys(questions, Unanswered(cause="malformed_reply", detail=detail))
            found = (Vector(values=tuple(map(float, vector))) for vector in vectors)
            return {question: check(question, one) for question, one in zip(questions, found, strict=True)}

        found = await self._call(send)
        return dict.fromkeys(questions, found) if isinstance(found, Unanswered) else found

    async def _call(self, send: Callable[[], Awaitable[_Result]]) -> _Result | Unanswered:
        """Send one request, unseen by any recorder and within the deadline; what goes wrong has a name."""
        left = None if self.deadline is None else self.deadline - time.monotonic()
        late = Unanswered(cause="deadline", detail="the time for this record ran out")
        if left is not None and left <= 0:
            return late
        try:
            # What a judge's own chain does is not a turn of the application.
            with unrecorded():
                async with asyncio.timeout(left) as limit:
                    return await send()
        except JudgeError as error:
            self.usage += clean_usage(Usage(requests=error.requests))
            if (wait := _seconds(error.retry_after)) is not None:
                self.retry_after = max(wait, self.retry_after or 0.0)
            return Unanswered(cause=error.cause, detail=text_of(error))
        except BaseException as error:  # a user's judge may raise anything
            if _is_interrupt(error):
                raise
            # Nobody knows whether it was sent; a request too many is counted rather than one too few.
            self.usage += Usage(requests=1)
            if limit.expired():
                return late
            detail = f"the judge or embedder raised {_place_of(error)}"
            return Unanswered(cause="judge_error", detail=detail)


def _seconds(value: object) -> float | None:
    """A number of seconds that makes sense; a judge of somebody's own may pass a header on as it is."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def _is_interrupt(error: BaseException) -> bool:
    """Whether an exception is meant for us: our task is cancelled or closed, or somebody pressed Ctrl-C.

    What a judge or a metric raises of the same kinds is its own affair, and harms nobody else.
    """
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return isinstance(error, GeneratorExit)
    if isinstance(error, GeneratorExit):
        return task is None
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _place_of(error: BaseException) -> str:
    """What was raised, and in which line; the message may quote the record or a key, so it is left out."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{error_words(error)}{where}"


_REASKED = frozenset({"missing_answer", "malformed_answer", "malformed_reply", "refused", "instructed"})
