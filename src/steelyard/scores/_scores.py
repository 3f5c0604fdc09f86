"""What comes out: Verdicts make a Score, Scores make an Evaluation.

A Score is always in one of three states. `scored` has a value; `not_applicable` says what the record or the
judge lacks; `failed` says by name what went wrong. Absence is never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import Any, Literal, get_args

from steelyard._internal.text import is_date, printable, shorten
from steelyard.record import Record, TraceRef, is_hashed

Cause = Literal[
    "step_failed",
    "answer_cut_short",
    "nothing_retrieved",
    "passages_not_shown",
    "passage_lost",
    "passage_cut",
    "outside_collection",
    "passage_not_found",
    "passages_conflict",
    "evasive",
    "contradicted",
    "ignored",
    "distracted",
    "invented",
    "unknown",
]
"""What a turn can suffer from, in the order in which it passes through it; see docs/explain/diagnosis.md."""

CAUSES: tuple[Cause, ...] = get_args(Cause)

Backing = Literal["earned", "lucky"]
"""Whether a good answer came from passages that hold it, or from what the model knew anyway."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One time that a bad turn was answered again."""

    name: str
    """Under which condition: `as it was`, `closed book`, `wider search`, `all but passage 2` ..."""
    good: bool | None = None
    """Whether the answer was good then; None if nobody could tell."""
    same: bool = False
    """Whether it was the answer that the turn had, word for word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What one turn suffers from, or that it is fine. It holds no content: places and names alone."""

    cause: Cause | None = None
    """The cause; None for a turn in which nothing was found wrong."""
    rule: str = ""
    """The rule that found it, as docs/explain/diagnosis.md has it."""
    strength: float = 0.0
    """How much the rule is worth, in 0..1: the probability or share that it went by; 0 without a cause."""
    because: str = ""
    """What speaks for it, in a sentence without content."""
    contexts: tuple[int, ...] = ()
    """The passages that it is about, as indices into `Record.contexts`."""
    lost: tuple[int, ...] = ()
    """Passages that were found and not shown: their places in what `stage` returned, or, if that is empty, in
    `Record.retrieved`."""
    claim: int | None = None
    """The first claim that fails, as an index into the verdicts of `metric`."""
    metric: str = ""
    """The metric whose verdicts decided."""
    stage: str = ""
    """The last step of the retrieval that had them; empty if the retrieval as a whole returned them."""
    answered_anyway: bool = False
    """Whether the application answered although what was shown could not tell."""
    backing: Backing | None = None
    """Of a good turn, whether its answer was earned; None where nobody judged what was shown."""
    trials: tuple[Trial, ...] = ()
    """What experiments with the turn have tried, in this order."""

    @property
    def bad(self) -> bool:
        """Whether anything is wrong."""
        return self.cause is not None


Direction = Literal["higher", "lower"]
_BAD_WHEN_TRUE = frozenset({"contradicted", "led_astray", "noncommittal"})
"""Kinds of verdict whose yes speaks against the answer."""
Outcome = Literal["scored", "not_applicable", "failed"]
TurnEvidence = Literal["known", "told", "guessed", "none"]
"""How the passages of a turn are known: what `Record.evidence` says, or that there are none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The piece of text a verdict rests on."""

    context: int | None = None
    """Index into the record's contexts, from 0; None where the evidence is not in a context."""
    start: int | None = None
    """First character of the piece in that context."""
    end: int | None = None
    """One past its last character."""
    text: str = field(default="", repr=False)
    """The piece itself."""
    located: bool = False
    """Whether the place was found by aligning words, and is not what the judge itself named."""
    notes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What else the judge saw, by name: `missing_numbers`, `missing_names`, `negation_flip`, ..."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One judged thing: a claim, a sentence, a context, a rating."""

    about: str = field(repr=False)
    """The text or name of what was judged."""
    kind: str
    """What was asked of it: `supported`, `useful`, `relevant`, `rating`, ..."""
    value: bool | float | str | None
    """The answer; None where the judge gave none."""
    probability: float | None = None
    """The judge's probability of "yes", in 0..1, if it gave one."""
    reason: str = field(default="", repr=False)
    """The judge's words for it."""
    evidence: tuple[Evidence, ...] = ()
    """What it rests on."""
    span: tuple[int, int] | None = None
    """First character in the answer of the sentence it is about, and one past its last; None for a verdict
    about something else, or where the place cannot be told."""
    cause: str | None = None
    """Why there is no value."""

    @property
    def good(self) -> bool | None:
        """Whether it speaks for the answer; None if it is not a yes or no."""
        # Ratings and levels have no yes and no.
        return self.value != self._bad_when_true if isinstance(self.value, bool) else None

    @property
    def probability_of_good(self) -> float | None:
        """The judge's probability that it speaks for the answer, in 0..1, if it gave one."""
        if self.probability is None:
            return None
        return 1 - self.probability if self._bad_when_true else self.probability

    @property
    def _bad_when_true(self) -> bool:
        return self.kind in _BAD_WHEN_TRUE


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What judging cost; adds up with `+`."""

    requests: int = 0
    """Judge and embedding requests sent, retries included."""
    questions: int = 0
    """Questions asked, duplicates removed."""
    reasked: int = 0
    """Questions asked a second time because their answer was missing, refused or malformed."""
    extra: int = 0
    """Answers to questions that nobody asked."""
    prompt_tokens: int = 0
    """Tokens sent, as the server counted them."""
    completion_tokens: int = 0
    """Tokens received."""
    cached_tokens: int = 0
    """Part of `prompt_tokens` that the server had cached."""
    cost: float | None = None
    """US dollars, where a price is known."""
    seconds: float = 0.0
    """Seconds waited for judges, summed over requests."""

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        names = (one.name for one in fields(self) if one.name != "cost")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        # Unknown stays unknown; a part that is known is not taken for the whole being free.
        return Usage(**sums, cost=sum(known) if known else None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """How a number was made: two Scores are comparable only where these agree."""

    judge: str
    """The judge's name, e.g. `local-lexical` or `chat:gpt-4o-mini`."""
    embedder: str | None = None
    """The embedder's name, where embeddings were used."""
    prompt_version: str = ""
    """Version of the wording put to the judge."""
    metric_version: str = ""
    """Version of the metric's definition here."""
    fuse: str = "view"
    """How questions shared requests."""
    calibrated: bool = False
    """Whether the judge's probabilities were calibrated against people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One metric's result on one record."""

    metric: str
    """The metric's name."""
    status: Outcome
    """Whether there is a value, and if not, whose doing that is."""
    value: float | None = None
    """In the metric's own range; None unless `scored`. Where the judge gave probabilities it is the formula's
    expectation under them, and else the formula on its verdicts."""
    hard_value: float | None = None
    """The formula on bare verdicts, where `value` is an expectation; None where the two are the same."""
    explanation: str = field(default="", repr=False)
    """One or two sentences a person can act on."""
    cause: str | None = None
    """A stable word for why there is no value: `missing_contexts`, `timeout`, `malformed_reply`, ..."""
    options: str = ""
    """All options of the metric that decide its value, in words: `claims=extracted, variant=entailment`."""
    verdicts: tuple[Verdict, ...] = ()
    """What the value was computed from."""
    standard_error: float | None = None
    """Standard error of the value from the judge's own probabilities, where it gave any."""
    label: str | None = None
    """`pass` or `fail` against the threshold, or the level's name; None where neither applies."""
    passed: bool | None = None
    """Whether the value is on the right side of the threshold; None without one."""
    threshold: float | None = None
    """The bar it was compared with."""
    direction: Direction = "higher"
    """Which way is better."""
    inclusion_probability: float = 1.0
    """The probability with which this turn was picked for this metric, in (0, 1]."""
    provenance: Provenance | None = None
    """How the number was made."""
    calibrated_value: float | None = None
    """The probability, in 0..1, that people would call the turn good by this metric, whichever way is better;
    of a screen that was fitted, the value that the judge would give it. None where nothing was fitted."""
    calibration: str | None = None
    """Version of the calibration that it comes from."""
    also_seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Parts of the record that the judge had in view beside what a kind of question needs, by kind: what
    questions in the same request brought along. Empty where every question had its own view."""
    left_out: int = 0
    """Characters of the contexts that the judge had no room for; what bears on the questions was kept."""
    id: str = ""
    """Result id: the same record, metric, options, judge and wording give the same id, so sinks upsert."""

    @classmethod
    def not_applicable(cls, metric: str, *, cause: str, explanation: str) -> Score:
        """A Score without a value because the record or the judge lacks something."""
        return cls(metric=metric, status="not_applicable", cause=cause, explanation=explanation)

    @classmethod
    def failed(
        cls, metric: str, *, cause: str, explanation: str, verdicts: tuple[Verdict, ...] = ()
    ) -> Score:
        """A Score without a value because something went wrong."""
        return cls(metric=metric, status="failed", cause=cause, explanation=explanation, verdicts=verdicts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Everything that was found out about one record."""

    record_id: str
    """The record's id."""
    scores: tuple[Score, ...]
    """One per metric asked for, in that order; none where only a screen saw the turn."""
    screen: tuple[Score, ...] = ()
    """What a screen, a cheaper judge beside the judge, said of the same metrics; never among `scores`."""
    usage: Usage = field(default_factory=Usage)
    """What it cost, over all metrics."""
    record: Record | None = None
    """The judged record; None where storing content is switched off."""
    trace: TraceRef | None = None
    """Where the turn lives in the host's traces."""
    session: str | None = None
    """The conversation that the turn belongs to; the record's own."""
    user: str | None = field(default=None, repr=False)
    """Who asked, as a keyed hash; the record's own."""
    tenant: str | None = None
    """The customer that the turn belongs to; the record's own."""
    happened_at: float | None = None
    """Unix time in seconds at which the turn began; the record's own, and None where nothing says."""
    evidence: TurnEvidence | None = None
    """How its passages are known, or that it has `none`; the record's own, and None where nothing says."""
    evaluated_at: float = 0.0
    """Unix time in seconds at which it was judged."""
    duration: float = 0.0
    """Seconds the evaluation took."""
    diagnosis: Diagnosis | None = None
    """What the turn suffers from; None where there was nothing to go by."""
    retry_after: float | None = None
    """The longest wait in seconds that a server asked for when it failed; None where none did. Not stored."""

    def __post_init__(self) -> None:
        # They stay when the record is taken off, since storing content is switched off.
        if (record := self.record) is None:
            return
        started_at = getattr(record.timings, "started_at", None)
        told = {
            "session": record.session,
            "user": record.user if is_hashed(record.user) else None,
            "tenant": record.tenant,
            "happened_at": started_at if is_date(started_at) else None,
            "evidence": record.evidence or "none",
        }
        for name, value in told.items():
            if getattr(self, name) is None and value is not None:
                object.__setattr__(self, name, value)

    @property
    def at(self) -> float:
        """Where it stands in time: when the turn happened, or, if nothing says, when it was judged."""
        return self.evaluated_at if self.happened_at is None else self.happened_at

    @property
    def unit(self) -> str | None:
        """What turns are alike by: who asked, or else the session, of one tenant; None if untold."""
        own = self.user or self.session
        return f"{len(self.tenant)}:{self.tenant}{own}" if self.tenant and own else own

    def __getitem__(self, metric: str) -> Score:
        """The Score of the metric with this name."""
        for score in self.scores:
            if score.metric == metric:
                return score
        raise KeyError(metric)

    def __str__(self) -> str:
        """The turn and its scores for people; `repr` leaves out what they say, since that may be logged."""
        return as_text(self)

    def _repr_html_(self) -> str:
        """What notebooks show: the scores, and the turn where its content is stored."""
        return as_html(self)

    def replace(self, **changes: Any) -> Evaluation:
        """A copy with some fields changed."""
        return replace(self, **changes)


_WIDTH = 200
_MOST_CHARACTERS = 2_000
_MOST_CONTEXTS = 20
# Notebooks align cells to the right, where sentences are hard to read.
_CELL = '<{tag} style="text-align:left">{text}</{tag}>'


def as_text(evaluation: Evaluation) -> str:
    """The turn, if its content is stored, and one line a metric; no character acts as code in a terminal."""
    turn = str(evaluation.record) if evaluation.record else shorten(f"turn {evaluation.record_id}", _WIDTH)
    suffers = evaluation.diagnosis
    lines = [turn, *map(_line, evaluation.scores)]
    if suffers is not None and suffers.cause:
        lines.append(shorten(f"{suffers.cause.replace('_', ' '):<24} {suffers.because}", _WIDTH))
    return "\n".join(lines)


def as_html(evaluation: Evaluation) -> str:
    """The scores as a table, the turn below it, if its content is stored; everything escaped."""
    rows = "".join(_row("td", _cells(score)) for score in evaluation.scores)
    table = f"<table><thead>{_row('th', ('metric', 'value', '', 'why'))}</thead><tbody>{rows}</tbody></table>"
    terms = "".join(f"<dt>{_escaped(name)}</dt><dd>{_escaped(said)}</dd>" for name, said in _turn(evaluation))
    return f"{table}<dl>{terms}</dl>" if terms else table


def _line(score: Score) -> str:
    metric, value, label, why = (shorten(cell, _WIDTH) for cell in _cells(score))
    return f"{metric:<24} {value:<14} {label:<5} {why}".rstrip()


def _cells(score: Score) -> tuple[str, str, str, str]:
    value = score.status.replace("_", " ") if score.value is None else f"{score.value:.3f}"
    if score.value is not None and score.standard_error is not None:
        value += f" ± {score.standard_error:.3f}"
    return score.metric, value, score.label or "", score.explanation


def _turn(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    record = evaluation.record
    if record is None:
        return
    contexts = ((f"context {rank}", context.text) for rank, context in enumerate(record.contexts))
    texts = (("question", record.asked), ("answer", record.answer), ("reference", record.reference))
    yield from ((name, said) for name, said in (*texts, *list(contexts)[:_MOST_CONTEXTS]) if said)


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(_CELL.format(tag=tag, text=_escaped(cell)) for cell in cells)}</tr>"


def _escaped(text: str) -> str:
    cut = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
    return escape(printable(cut, lines=True))
