"""Experiments with one bad turn: what is tried in which order, and which cause the differences name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

import numpy as np

from steelyard._internal.threads import DaemonExecutor
from steelyard.diagnosis._facts import Facts, text_key
from steelyard.errors import ConfigurationError
from steelyard.judge import StaticEmbedder
from steelyard.record import Context, Record
from steelyard.recording import unrecorded
from steelyard.scores import Cause, Diagnosis, Evaluation, Trial, Usage

Replay = Callable[[str, Sequence[Context]], "str | Awaitable[str]"]
"""Answers a question from some passages, as the application does, without searching."""
Retrieve = Callable[[str, int], "Sequence[Context | str] | Awaitable[Sequence[Context | str]]"]
"""The best so many passages for a question, best first."""
_SPARES = 2


@runtime_checkable
class CountsReplays(Protocol):
    """A store that counts the calls of experiments for all processes that write to it."""

    def count_replay(self, day: str, *, most: int) -> bool:
        """Count one more call on a day; False if there were `most`. May block, and raise where it cannot."""


class ReplayFailed(Exception):
    """The application could not be asked again; the message says why, without content."""


@dataclass(frozen=True, kw_only=True)
class Experiments:
    """Bad turns are answered again under other conditions, to see what they suffer from.

    What is given here is the application's own code, called in a thread of its own, and not recorded as
    long as it does not start further threads that record.
    """

    replay: Replay = field(repr=False)
    """`replay(question, contexts) -> answer`, sync or async."""
    retrieve: Retrieve | None = field(default=None, repr=False)
    """`retrieve(question, k) -> passages`, texts or Contexts, best first; without it nobody can tell a
    passage that ranks too low from one that is not there."""
    per_turn: int = 6
    """Calls of `replay` for one turn at most: 1 to 50."""
    per_day: int = 200
    """Calls of `replay` a day (UTC) at most: by all processes that store results in the same SQLite file or
    Postgres database, else by this process."""
    timeout: float = 60.0
    """Seconds that one call may take."""

    def __post_init__(self) -> None:
        for name in ("replay", "retrieve"):
            value = getattr(self, name)
            if not callable(value) and not (name == "retrieve" and value is None):
                raise ConfigurationError(f"experiments: {name} must be a function, not {value!r}")
        for name, most in (("per_turn", 50), ("per_day", 10**9)):
            number: object = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise ConfigurationError(f"experiments: {name} must be a whole number from 1 to {most}")
        timeout: object = self.timeout
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
            raise ConfigurationError(f"experiments: timeout must be above 0 seconds, not {self.timeout!r}")


class Laboratory:
    """Calls what `Experiments` names, within its bounds; counts the calls."""

    def __init__(
        self,
        options: Experiments,
        *,
        is_ended: Callable[[], bool] = lambda: False,
        store: CountsReplays | None = None,
    ) -> None:
        self.options = options
        self._is_ended = is_ended
        self._store = store
        self.replays = 0
        """Calls of `replay` since the start."""
        self._day, self._today = "", 0
        self._threads = DaemonExecutor(1, name="steelyard-replay", spares=_SPARES)

    async def replay(self, question: str, contexts: Sequence[Context]) -> str:
        """The answer from these passages."""
        if self._is_ended():
            raise ReplayFailed("the Monitor is being closed")
        if not await self._is_granted():
            raise ReplayFailed("the calls of this day are used up")
        self.replays += 1
        answer = await self._call("replay", self.options.replay, question, tuple(contexts))
        if not isinstance(answer, str) or not answer.strip():
            raise ReplayFailed("replay returned no answer")
        return answer

    async def retrieve(self, question: str, count: int) -> tuple[Context, ...] | None:
        """So many passages, as `Record` takes them; None if nobody said how to search."""
        if self.options.retrieve is None:
            return None
        found = await self._call("retrieve", self.options.retrieve, question, count)
        try:
            return Record(contexts=tuple(list(found)[:count])).contexts
        except TypeError:
            raise ReplayFailed("retrieve returned no passages") from None

    def close(self) -> None:
        """Let the thread end; a later call starts another."""
        self._threads.shutdown()

    async def _is_granted(self) -> bool:
        """Whether there is a call left today, which is then counted."""
        day, most = datetime.now(UTC).date().isoformat(), self.options.per_day
        if day != self._day:
            self._day, self._today = day, 0
        if self._today >= most:
            return False
        self._today += 1
        try:
            if self._store is None:
                return True
            return await asyncio.to_thread(self._store.count_replay, day, most=most)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way, and the turn has its scores
            raise ReplayFailed(f"nobody could count the calls of this day: {type(error).__name__}") from None

    async def _call(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        async def awaited() -> Any:
            with unrecorded():
                found = await self._threads.run(function, *given)
                return await found if inspect.isawaitable(found) else found

        try:
            return await asyncio.wait_for(awaited(), self.options.timeout)
        except TimeoutError:
            raise ReplayFailed(f"{name} took longer than {self.options.timeout:g} s") from None
        except Exception as error:  # noqa: BLE001 - the application's own code may raise anything
            raise ReplayFailed(f"{name} raised {type(error).__name__}") from None


def laboratory_of(
    options: Experiments | None, stores: Sequence[object], *, is_ended: Callable[[], bool]
) -> Laboratory | None:
    """Who makes the experiments that were asked for, counted by the first store that can; None without."""
    store = next((one for one in stores if isinstance(one, CountsReplays)), None)
    return None if options is None else Laboratory(options, is_ended=is_ended, store=store)


Scoring = Callable[[Record], Awaitable[Evaluation]]
"""Scores a turn with the metrics that the one under experiment was scored with."""
_WIDER = 4
_LEAST_WIDER = 12
_MOST_EMBEDDED = 4_000
"""Characters of a passage that are compared with the question."""
_ABOUT_IT = 0.6
"""Likeness and share of words, added, from which a question is about what the collection is about; chosen on
the first text of docs/check/measured.md and on these docs, each searched by words and by vectors."""
_NOT_TRIED = frozenset({"step_failed", "answer_cut_short"})
"""Causes that answering again tells nothing of."""


@dataclass(frozen=True, slots=True)
class _Tried:
    good: bool | None
    lucky: bool
    """Whether it is good although the judge says that what it is judged by does not hold what was asked."""
    answer: str
    facts: Facts


class _Bench:
    """One turn under experiment."""

    def __init__(self, record: Record, laboratory: Laboratory, score: Scoring) -> None:
        self.record = record
        self.trials: list[Trial] = []
        self.usage = Usage()
        self._laboratory = laboratory
        self._score = score

    @property
    def is_spent(self) -> bool:
        """Whether this turn may not be answered once more."""
        return len(self.trials) >= self._laboratory.options.per_turn

    async def ask(self, name: str, contexts: Sequence[Context], judged: Sequence[Context] = ()) -> _Tried:
        """Answer from some passages; judged by them, or by others if those are named."""
        answer = await self._laboratory.replay(self.record.asked, contexts)
        try:
            shown = {"contexts": tuple(judged or contexts), "retrieved": (), "stages": ()}
            made = await self._score(self.record.replace(**shown, answer=answer, status="ok"))
        except Exception as error:  # noqa: BLE001 - a judge may raise anything, and the turn has its scores
            raise ReplayFailed(f"an answer could not be judged: {type(error).__name__}") from None
        self.usage += made.usage
        good = None if made.diagnosis is None else not made.diagnosis.bad
        same = " ".join(answer.split()) == " ".join(self.record.answer.split())
        self.trials.append(Trial(name=name, good=good, same=same))
        lucky = made.diagnosis is not None and made.diagnosis.backing == "lucky"
        return _Tried(good, lucky, answer, Facts(made.record or self.record, made.scores))

    async def wider(self) -> tuple[Context, ...] | None:
        """What a search for more passages brings; None if nobody said how to search."""
        count = max(_WIDER * len(self.record.contexts), _LEAST_WIDER)
        return await self._laboratory.retrieve(self.record.asked, count)


async def experiment(evaluation: Evaluation, laboratory: Laboratory, score: Scoring) -> Evaluation:
    """Answer a bad turn again under other conditions, and name the cause that the differences show.

    First as it was: an answer that is good now is one that comes and goes. If what was asked is not among the
    passages, from those that were expected, if they are known, and from a wider search: an answer that is
    good now lacked a passage. If it is, with nothing to read: an answer that stays the same was not made from
    the passages; then from the best passage alone, in another order, and with one left out after the other:
    an answer that is good now was led astray by the others.

    The diagnosis has the trials; it is the one by rules where experiments show nothing or cannot be made, and
    `unknown` where the answer comes and goes. Usage has what judging cost; nobody knows what generating did.
    """
    given, record = evaluation.diagnosis, evaluation.record
    if given is None or record is None or not given.bad or given.cause in _NOT_TRIED:
        return evaluation
    if not record.asked or not record.answer:
        return evaluation
    bench = _Bench(record, laboratory, score)
    try:
        found = await _tried(bench, given, Facts(record, evaluation.scores))
    except ReplayFailed as problem:
        found = replace(given, because=f"{given.because}; no experiment: {problem}")
    return evaluation.replace(
        diagnosis=replace(found, trials=tuple(bench.trials)), usage=evaluation.usage + bench.usage
    )


async def _tried(bench: _Bench, given: Diagnosis, facts: Facts) -> Diagnosis:
    again = await bench.ask("as it was", bench.record.contexts or bench.record.retrieved)
    # An answer that passes although the passages cannot tell was lucky, and they still lack what was asked.
    if again.good and not again.lucky:
        return _now_good(given, facts)
    if given.cause == "passages_not_shown":
        return given  # that was seen in the prompt, and the prompt is as it was
    if facts.cut:
        # That a passage was cut is known; whether it matters, fewer passages tell.
        return await _of_passages(bench, given, facts) or given
    if not facts.is_sufficient or bench.record.reference_contexts:
        return await _of_search(bench, given, facts) or given
    if await _is_unread(bench, again, facts):
        return _named("ignored", "it says the same with nothing to read", "closed book", given)
    return await _of_passages(bench, given, facts) or given


def _now_good(given: Diagnosis, facts: Facts) -> Diagnosis:
    """An answer that was bad and is good now, made from the passages that the turn had."""
    if not facts.record.contexts:
        return _named("passages_not_shown", "given what was retrieved, it answers well", "as it was", given)
    if facts.cut:
        return _named("passage_cut", "given the whole passages, it answers well", "as it was", given)
    because = "asked again with the same passages, it answers well: it comes and goes"
    return _named("unknown", because, "as it was", given)


async def _is_unread(bench: _Bench, again: _Tried, facts: Facts) -> bool:
    if bench.is_spent or not bench.record.contexts:
        return False
    alone = await bench.ask("closed book", (), judged=bench.record.contexts)
    return alone.answer == again.answer and not facts.is_evasive


async def _of_search(bench: _Bench, given: Diagnosis, facts: Facts) -> Diagnosis | None:
    if bench.record.reference_contexts and not bench.is_spent:
        expected = await bench.ask("expected passages", bench.record.reference_contexts)
        if not expected.good:
            return None
    wider = None if bench.is_spent else await bench.wider()
    if not wider:
        return None
    shown = {text_key(one) for one in bench.record.contexts}
    new = [one for one in wider if text_key(one) not in shown]
    if new:
        outcome = await bench.ask("wider search", wider)
        if outcome.good:
            return _missed(given, facts, new, wider)
        if outcome.facts.is_sufficient:
            return None
    if await _is_outside(facts, wider):
        return _named("outside_collection", "a wider search does not find it either", "wider search", given)
    return _named("passage_not_found", "a wider search does not find it either", "wider search", given)


async def _is_outside(facts: Facts, wider: Sequence[Context]) -> bool:
    """Whether a question is about something else than the collection.

    A judge that reads says so. Where words were compared, what the collection is about tells better than the
    passages shown: how like the question is to what a wider search brings, as a share of how like these
    passages are to each other, and how many of its words they have.
    """
    if not facts.is_by_words or len(wider) < 2:
        return facts.is_elsewhere
    texts = [facts.record.asked, *(one.text[:_MOST_EMBEDDED] for one in wider)]
    found = np.array((await StaticEmbedder().embed(texts))[0])
    unit = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    asked, passages = unit[0], unit[1:]
    among = (passages @ passages.T)[~np.eye(len(passages), dtype=bool)].mean()
    if among <= 0:
        return facts.is_elsewhere
    return bool((passages @ asked).mean() / among + (facts.covered or 0.0) < _ABOUT_IT)


def _missed(given: Diagnosis, facts: Facts, new: Sequence[Context], wider: Sequence[Context]) -> Diagnosis:
    """A passage that a wider search brings: lost by a step that had it, or ranked too low."""
    best = max(new, key=lambda one: facts.gain(one.text))
    rank = [text_key(one) for one in wider].index(text_key(best)) + 1
    had = next((one for one in facts.unshown if text_key(one[2]) == text_key(best)), None)
    because = f"with passage {rank} of a wider search, it answers well"
    if had is None:
        return _named("passage_not_found", because, "wider search", given)
    found = _named("passage_lost", because, "wider search", given)
    return replace(found, stage=had[0], lost=(had[1],))


async def _of_passages(bench: _Bench, given: Diagnosis, facts: Facts) -> Diagnosis | None:
    """Whether some of the passages lead it astray, though what was asked is among them."""
    shown = bench.record.contexts
    if len(shown) < 2:
        return None
    best = max(range(len(shown)), key=lambda at: facts.covers(shown[at].text))
    tries: list[tuple[str, tuple[Context, ...], tuple[int, ...]]] = [
        ("its best passage alone", (shown[best],), ()),
        ("the passages in another order", shown[::-1], ()),
    ]
    tries += [
        (f"all but passage {at + 1}", (*shown[:at], *shown[at + 1 :]), (at,))
        for at in range(len(shown))
        if at != best
    ]
    for name, contexts, places in tries:
        if bench.is_spent:
            return None
        if (await bench.ask(name, contexts, judged=shown)).good:
            cause: Cause = "passage_cut" if facts.cut else "distracted"
            return replace(
                _named(cause, f"from {name}, it answers well", name, given), contexts=places or (best,)
            )
    return None


def _named(cause: Cause, because: str, trial: str, given: Diagnosis) -> Diagnosis:
    return Diagnosis(
        cause=cause,
        because=because,
        rule=f"experiment: {trial}",
        strength=1.0 if cause != "unknown" else 0.0,
        answered_anyway=given.answered_anyway,
        contexts=given.contexts if cause == given.cause else (),
    )
