"""Turns as a plain list, and in a store: what a list answers to everything that a store may be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from report.parts import NOON
from report.test_stores import Store, label, write
from steelyard.record import Context, Record, Timings, TraceRef
from steelyard.report import TurnFilter, open_results
from steelyard.results import ResultsReader, open_labels
from steelyard.results.labels import Label
from steelyard.results.queries import EVIDENCE, STATUSES
from steelyard.scores import Diagnosis, Evaluation, Evidence, Provenance, Score, Usage, Verdict

METRICS = ("faithfulness", "noise", "own")
JUDGES = ("chat:one", "chat:two", None)
WORDS = ("Where is the harbour?", "WHERE is 100% of it?", "a_b", "a!b", "Wo ist Ähre?", "")
TIMES = tuple(NOON + 3600 * hour for hour in range(0, 120, 5))
ASKED = 100


class Turns(NamedTuple):
    """What was stored, as it is known without a database."""

    reader: ResultsReader
    turns: Sequence[Evaluation]
    labels: Sequence[Label]


def made(draw: Random, number: int) -> Evaluation:
    """A turn of which anything may be missing."""
    some = draw.choice
    metadata = {
        "version": some(["v1", "v2", "v3"]),
        "team": some(["a", "b", "c'"]),
        "beta": some([True, False]),
        "long": "x" * 81,
        "part": 0.5,
    }
    if draw.random() < 0.7:
        metadata["route"] = some(["/ask", "/chat"])
    source: Any = some(["in_prompt", "told", "guessed", "retrieved"])
    record = Record(
        id=f"r{number:03}",
        question=some(WORDS),
        answer=some(WORDS),
        contexts=(Context(text="c"),) if draw.random() < 0.8 else (),
        contexts_source=source,
        tags=tuple(draw.sample(["web", "vip", "phone"], draw.randint(0, 3))),
        metadata=metadata,
        session=some(["s1", "s2", "s3", None]),
        tenant=some(["acme", "bolt", None]),
        timings=Timings(started_at=TIMES[number * 7 % len(TIMES)]),
        trace=TraceRef(trace_id=f"{number % 40:032x}", framework=some(["langchain", "llamaindex"])),
    )
    one = Evaluation(
        record_id=record.id,
        record=record,
        scores=tuple(scored(draw, metric) for metric in draw.sample(METRICS, draw.randint(0, 3))),
        usage=Usage(
            requests=draw.randint(0, 5),
            prompt_tokens=draw.randint(0, 999),
            completion_tokens=draw.randint(0, 99),
            cost=some([None, 0.25, 0.5]),
            seconds=draw.random(),
        ),
        trace=record.trace,
        evaluated_at=some(TIMES) + 7,
        duration=draw.random(),
        diagnosis=some([None, Diagnosis(), Diagnosis(cause="invented"), Diagnosis(cause="evasive")]),
    )
    return one if draw.random() < 0.8 else replace(one, record=None)


def scored(draw: Random, metric: str) -> Score:
    judge = draw.choice(JUDGES)
    way: dict[str, Any] = {
        "direction": "lower" if metric == "noise" else "higher",
        "provenance": judge and Provenance(judge=judge, prompt_version=draw.choice("12")),
        "inclusion_probability": draw.choice([0.25, 0.5, 1.0]),
    }
    if draw.random() < 0.25:
        lack: Any = draw.choice([Score.failed, Score.not_applicable])
        cause = draw.choice(["timeout", "missing_reference"])
        made: Score = lack(metric, cause=cause, explanation="why")
        return replace(made, **way)
    value = draw.choice([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5] if metric == "own" else [0.0, 0.25, 0.5, 1.0])
    passed = draw.choice([True, False, None])
    threshold = None if passed is None else 0.5
    evidence = (Evidence(context=0),)
    verdict = Verdict(about="näh ✓", kind="supported", value=True, reason="so", evidence=evidence)
    return Score(
        metric=metric,
        status="scored",
        value=value,
        passed=passed,
        threshold=threshold,
        verdicts=(verdict,),
        **way,
    )


def stored() -> list[list[Evaluation]]:
    """Several writes, in which some turns are judged again."""
    draw = Random(11)
    return [[made(draw, number) for number in range(start, start + 60)] for start in (0, 40, 80, 0)]


def said() -> list[Label]:
    words = ("good", "bad", "supported", "not_supported")
    given = [
        label(f"r{n:03}", words[n % 4], at=TIMES[n % 24], claim=0 if n % 4 > 1 else None)
        for n in range(0, 140, 3)
    ]
    return [replace(one, note="" if place % 2 else one.note) for place, one in enumerate(given)]


def filled(store: Store) -> ResultsReader:
    for some in stored():
        write(store, some)
    open_labels(store.address).put(said())
    return open_results(store.address)


def now() -> dict[str, Evaluation]:
    """The turns by id, as they are in the end."""
    turns: dict[str, Evaluation] = {}
    for some in stored():
        turns |= {one.record_id: judged_anew(one, turns.get(one.record_id)) for one in some}
    return turns


def judged_anew(one: Evaluation, before: Evaluation | None) -> Evaluation:
    """The turn as it is now; scores of metrics that were not asked for again stay."""
    metrics = {score.metric for score in one.scores}
    stay = [score for score in before.scores if score.metric not in metrics] if before else []
    return replace(one, scores=(*one.scores, *stay))


def key(one: Evaluation) -> tuple[float, str]:
    assert one.happened_at is not None
    return one.happened_at, one.record_id


# What a turn has under each name that is asked for, read off the Evaluation.


def evidence_of(one: Evaluation) -> str:
    return one.evidence or "unknown"


def cause_of(one: Evaluation) -> str | None:
    return (one.diagnosis.cause or "fine") if one.diagnosis else None


def attribute(one: Evaluation, name: str) -> list[str]:
    if name == "tenant":
        return [one.tenant] if one.tenant else []
    if name == "framework":
        return [one.trace.framework] if one.trace and one.trace.framework else []
    if one.record is None:
        return []
    if name == "tag":
        return list(one.record.tags)
    return [str(one.record.metadata[name])] if name in one.record.metadata else []


def status_of(score: Score) -> str:
    if score.status != "scored":
        return score.status
    return {True: "passed", False: "not_passed", None: ""}[score.passed]


def judge_of(score: Score) -> str | None:
    return score.provenance.judge if score.provenance else None


def fits(one: Evaluation, wanted: TurnFilter, labels: Sequence[Label]) -> bool:
    """Whether a plain list would keep this turn."""

    def any_of(field: str, values: Iterable[str | None]) -> bool:
        return not wanted.chosen(field) or bool(set(wanted.chosen(field)) & set(values))

    own = [label for label in labels if label.record_id == one.record_id]
    of_scores = wanted.metric or wanted.status or wanted.judge
    named = {name: {value for by, value in wanted.where if by == name} for name, _ in wanted.where}
    low = wanted.text.casefold()
    content = [one.record.question, one.record.answer] if one.record else []
    return (
        (wanted.since is None or key(one)[0] >= wanted.since)
        and (wanted.until is None or key(one)[0] < wanted.until)
        and all(any_of(name, attribute(one, name)) for name in ("tag", "version", "route"))
        and any_of("evidence", [evidence_of(one)])
        and any_of("cause", [cause_of(one)])
        and any_of("session", [one.session])
        and any_of("label", [label.value for label in own])
        and (not wanted.noted or any(label.note for label in own))
        and (not wanted.trace or (one.trace is not None and one.trace.trace_id == wanted.trace))
        and all(values & (set(attribute(one, name)) or {""}) for name, values in named.items())
        and (not low or any(low in text.casefold() for text in content))
        and (
            not of_scores
            or any(
                any_of("metric", [score.metric])
                and any_of("status", [status_of(score)])
                and any_of("judge", [judge_of(score)])
                for score in one.scores
            )
        )
    )


def some_of(draw: Random, values: Sequence[str]) -> Any:
    """One of them, or several."""
    found = tuple(draw.sample(list(values), draw.randint(1, 2)))
    return found if len(found) > 1 or draw.random() < 0.5 else found[0]


def filters(seed: int) -> Iterator[TurnFilter]:
    """What somebody might ask for: up to three things at a time."""
    draw = Random(seed)
    choices: dict[str, Callable[[], Any]] = {
        "metric": lambda: some_of(draw, (*METRICS, "none")),
        "status": lambda: some_of(draw, STATUSES),
        "judge": lambda: some_of(draw, ("chat:one", "chat:two", "none")),
        "tag": lambda: some_of(draw, ("web", "vip", "phone", "none")),
        "version": lambda: some_of(draw, ("v1", "v2", "v3", "none")),
        "route": lambda: some_of(draw, ("/ask", "/chat", "none")),
        "evidence": lambda: some_of(draw, EVIDENCE),
        "cause": lambda: some_of(draw, ("invented", "evasive", "fine")),
        "label": lambda: some_of(draw, ("good", "bad", "supported", "not_supported")),
        "noted": lambda: True,
        "where": lambda: tuple(draw.sample(WHERE, draw.randint(1, 2))),
        "since": lambda: draw.choice(TIMES),
        "until": lambda: draw.choice(TIMES),
        "text": lambda: draw.choice(["where IS", "%", "_", "!", "Ähre", "nowhere"]),
        "trace": lambda: f"{draw.randint(0, 40):032x}",
        "session": lambda: some_of(draw, ("s1", "s2", "none")),
    }
    for _ in range(ASKED):
        names = draw.sample(list(choices), draw.choice([0, 1, 1, 2, 2, 3]))
        yield TurnFilter(**{name: choices[name]() for name in names})


WHERE = [
    *[("team", "a"), ("team", "b"), ("team", "c'"), ("beta", "True"), ("beta", "False")],
    *[
        ("tenant", "acme"),
        ("tenant", "bolt"),
        ("tenant", ""),
        ("team", ""),
        ("framework", "langchain"),
        ("nothing", "x"),
    ],
]
