"""Which turns a Monitor judges, with which metrics and probabilities: what the docs say, done by hand."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from online.helpers import kind_judge, turn
from steelyard.metrics import ContextRelevancy, Faithfulness, Metric
from steelyard.online import Monitor, Rule, Selection, Suspicion
from steelyard.record import Context, Record, TraceRef
from steelyard.testing import MemorySink

METRICS: list[Metric] = [Faithfulness(claims="sentences"), ContextRelevancy()]
CHOICES: dict[str, Any] = {"never": "never", "force": "force", "some": 0.4, "none": None}


class Expected(NamedTuple):
    """What is to become of a turn: its probability by metric and why it was picked, or why not."""

    probabilities: dict[str, float]
    reasons: list[str]
    skip: str = ""


def drawn_rule(draw: Random, number: int) -> Rule:
    kinds: list[dict[str, Any]] = [
        {"tags": draw.sample(["a", "b"], draw.randint(1, 2))},
        {"metadata": {"tenant": draw.choice(["x", "y"]), "plan": 1}},
        {"route": draw.choice(["/chat/*", "/c?at/help"])},
        {"status": draw.choice(["truncated", ("ok",)])},
        {"tags": ["a"], "route": "/ask"},
    ]
    ends: list[dict[str, Any]] = [
        {"force": True, "rate": 0.2},
        {"never": True, "rate": 0.0},
        {"rate": 0.8},
        {"rate": 0.3},
        {"rate": 0.0},
    ]
    return Rule(name=f"rule {number}", **draw.choice(kinds), **draw.choice(ends))


def drawn_turn(draw: Random, number: int) -> Record:
    some = draw.choice
    good = Context(text="Marie Curie found polonium in 1898.", score=some([0.9, 0.4, None]))
    return turn(
        f"turn {number}",
        answer=some(["Marie Curie found polonium."] * 3 + ["Polonium.", "I'm sorry, Marie Curie found it."]),
        contexts=some([(good,), (good,), (good,), (Context(text="Bananas grow.", score=0.8),)]),
        tags=tuple(draw.sample(["a", "b", "c"], draw.randint(0, 2))),
        metadata={
            "tenant": some("xyz"),
            "plan": some([1, 2]),
            "route": some(["/ask", "/chat/help", "/CHAT/x"]),
        },
        status=some(["ok", "ok", "truncated"]),
        notes=some([(), (), ("error: reranker",)]),
        trace=some([None, TraceRef(trace_id=f"{number:032x}")]),
        user=some(list(CHOICES)),
    )


def matches(rule: Rule, record: Record) -> bool:
    tags, route, statuses = set(rule.tags), rule.route, rule.status
    statuses = (statuses,) if isinstance(statuses, str) else statuses
    return (
        all(tag in record.tags for tag in tags)
        and all(record.metadata.get(name) == value for name, value in rule.metadata.items())
        and (route is None or fnmatchcase(record.metadata["route"], route))
        and (not statuses or record.status in statuses)
    )


def signs(record: Record, suspicion: Suspicion, *, disliked: bool) -> list[str]:
    """Those that the turns above may show, in the documented order."""
    said = {word.strip(".,'").lower() for word in record.answer.split() if len(word.strip(".,'")) > 2}
    read = {word.strip(".").lower() for context in record.contexts for word in context.text.split()}
    scores = [context.score for context in record.contexts if context.score is not None]
    least = suspicion.min_retrieval_score
    shown = {
        "disliked": disliked,
        "low_overlap": len(said & read) / len(said) < 0.3,
        "low_retrieval_score": least is not None and bool(scores) and max(scores) < least,
        "no_retrieval_score": suspicion.need_retrieval_score and not scores,
        "refusal": "sorry" in record.answer,
        "short_answer": len(record.answer.split()) < 3,
        "upstream_error": bool(record.notes),
    }
    return [name for name, there in shown.items() if there]


def expected(selection: Selection, record: Record, key: str, *, disliked: bool) -> Expected:
    rate, reasons, final = selection.rate, list[str](), ""
    chosen = selection.choose(record) if selection.choose else None
    rule = next((rule for rule in selection.rules if matches(rule, record)), None)
    if chosen is not None:
        reasons = ["choose"]
        rate, final = (1.0, chosen) if isinstance(chosen, str) else (chosen, "")
    elif rule is not None:
        reasons = [rule.name]
        rate, final = rule.rate, "force" if rule.force else "never" if rule.never else ""
        rate = 1.0 if rule.force else rate
    if final == "never":
        return Expected({}, reasons, "never")
    suspicion = selection.suspicion
    if (
        not final
        and suspicion
        and (seen := signs(record, suspicion, disliked=disliked))
        and suspicion.rate > rate
    ):
        rate, reasons = suspicion.rate, [*reasons, *seen]
    text = (record.trace.trace_id if record.trace else None) or record.id
    digest = (
        hmac.digest(key.encode(), text.encode(), "sha256") if key else hashlib.sha256(text.encode()).digest()
    )
    position = int.from_bytes(digest[:8], "big") / 2**64
    shares = {metric.name: rate * selection.metric_rates.get(metric.name, 1.0) for metric in METRICS}
    picked = {name: share for name, share in shares.items() if position < share}
    return Expected(picked, reasons, "" if picked else "sampled_out")


@pytest.mark.parametrize("seed", range(12))
def test_a_monitor_judges_what_the_documentation_says(seed: int, tmp_path: Path) -> None:
    draw = Random(seed)
    key = draw.choice(["", "a key of sixteen letters"])
    chosen: Callable[[Record], Any] = lambda record: CHOICES[record.user or "none"]  # noqa: E731
    selection = Selection(
        rate=draw.choice([0.0, 0.2, 0.7, 1.0]),
        rules=[drawn_rule(draw, number) for number in range(draw.randint(0, 3))],
        suspicion=draw.choice(
            [
                None,
                Suspicion(rate=0.9, min_retrieval_score=0.5),
                Suspicion(rate=0.5, need_retrieval_score=True),
            ]
        ),
        choose=draw.choice([None, None, chosen]),
        metric_rates=draw.choice([{}, {"context_relevancy": 0.5}, {"faithfulness": 0.0}]),
    )
    sink = MemorySink()
    monitor = Monitor(
        metrics=METRICS,
        judge=kind_judge(),
        sinks=[sink],
        selection=selection,
        sample_key=key,
        user_key="a key for users as well",
        spool=draw.choice([None, tmp_path / "spool.db"]),
    )
    turns = [drawn_turn(draw, number) for number in range(40)]
    disliked = {record.id for record in turns if draw.random() < 0.2}
    for record in turns:
        if record.id in disliked:
            monitor.feedback(record.id, False)
        monitor.submit(record)
    assert monitor.flush(60) == 0
    stats = monitor.stats()
    monitor.close()
    skipped: Counter[str] = Counter()
    for record in turns:
        right = expected(selection, record, key, disliked=record.id in disliked)
        skipped[right.skip] += 1
        found = sink.by_record.get(record.id)
        assert (found is None) == bool(right.skip), (record.id, right)
        if found is not None:
            assert {
                s.metric: pytest.approx(s.inclusion_probability) for s in found.scores
            } == right.probabilities
            assert found.record is not None
            assert found.record.metadata.get("steelyard.picked_for", []) == right.reasons
    del skipped[""]
    assert stats.skipped == skipped
