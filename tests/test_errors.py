"""The exception tree, its causes, and what raises it: every number beyond its bound."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest

from steelyard import errors, evaluate, view
from steelyard.alarms import Alarm
from steelyard.collect import SpanJournal
from steelyard.diagnosis import Experiments
from steelyard.errors import (
    TRANSIENT_CAUSES,
    Cause,
    ConfigurationError,
    InvalidRecord,
    JudgeRejected,
    MalformedReply,
    MissingDependency,
    RateLimited,
    SinkError,
    SteelyardError,
    Unanswerable,
)
from steelyard.judge import ChatJudge, DecisionsJudge, LocalJudge, MiniLMEmbedder, OpenAIEmbedder, PairJudge
from steelyard.judge.endpoint import named_error
from steelyard.judge.middleware import (
    AdaptiveConcurrency,
    Cache,
    CircuitBreaker,
    RateLimit,
    RetryPolicy,
)
from steelyard.online import Budget, Canaries, Monitor, Price, Rule, SpoolSettings
from steelyard.results.labels import Label
from steelyard.sinks import SQLiteSink


def test_every_error_is_in_the_tree_and_in_its_drawing() -> None:
    classes = [
        value
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, Exception) and name in errors.__all__
    ]
    assert SteelyardError in classes
    for found in classes:
        assert issubclass(found, SteelyardError), found
        assert f" {found.__name__} " in f" {errors.__doc__} ".replace("\n", " "), found


@pytest.mark.parametrize(
    "error",
    [
        JudgeRejected("no", cause="unauthorized"),
        RateLimited("slow down", retry_after=7.0),
        MalformedReply("prose"),
        SinkError("down", cause="unreachable"),
        Unanswerable("a claim", cause="missing_answer", detail="it was left out"),
        MissingDependency("numpy", extra="local"),
        InvalidRecord("no text"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_out_of_another_process_as_it_was(error: SteelyardError) -> None:
    error.add_note("in turn 3")
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 408, 409, 413, 425, 429, 500, 503])
def test_an_error_is_transient_exactly_when_its_cause_is(status: int) -> None:
    error = named_error(status, "no", code=None, headers={}, where="here")
    assert error.cause in get_args(Cause)
    assert error.transient == (error.cause in TRANSIENT_CAUSES)


def test_what_will_not_pass_is_not_transient() -> None:
    assert RateLimited("slow down").transient
    assert not JudgeRejected("no", cause="unauthorized").transient
    assert not MalformedReply("prose").transient


ABOVE_0, BELOW_1, ABOVE_1 = 5e-324, 1 - 2**-53, 1 + 2**-52
POSITIVE = ((ABOVE_0,), (0, -1))
NOT_NEGATIVE = ((0,), (-ABOVE_0,))
COUNT = ((1,), (0,))
SHARE = ((0, 1), (-ABOVE_0, ABOVE_1))
PART = ((ABOVE_0, 1), (0, ABOVE_1))
LARGE = ((1, 2**40 - 1), (0, 2**40, True))
LIMITS = [f"{what}_per_{time}" for what in ("cost", "tokens", "requests") for time in ("hour", "day")]
BETWEEN = ((ABOVE_0, BELOW_1), (0, 1))
HERE: dict[str, Any] = {"base_url": "http://127.0.0.1:9"}
NOON: dict[str, Any] = {"record_id": "r", "value": "good", "who": "Ann", "labelled_at": 1.76e9}
INNER = LocalJudge()
BOUNDS: list[tuple[Callable[..., object], dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]]] = [
    (partial(ChatJudge, "m", **HERE), {"timeout": POSITIVE, "retries": ((0,), (-1,)), "concurrency": COUNT}),
    (partial(DecisionsJudge, **HERE), {"timeout": POSITIVE, "max_questions": ((1, 400), (0, 401))}),
    (LocalJudge, {"max_share": ((ABOVE_0, 1, None), (0, ABOVE_1, float("nan")))}),
    (MiniLMEmbedder, {"threads": COUNT, "batch": COUNT}),
    (partial(OpenAIEmbedder, **HERE), {"batch": COUNT, "dimensions": ((1, None), (0,))}),
    (
        partial(PairJudge, "missing"),
        {**dict.fromkeys(("max_tokens", "threads"), ((), (0,))), "weight": ((), (0, ABOVE_1))},
    ),
    (RetryPolicy, {"retries": ((0,), (-1,)), "first_wait": NOT_NEGATIVE, "longest_wait": NOT_NEGATIVE}),
    (partial(CircuitBreaker, INNER), {"failures": COUNT, "reset_after": POSITIVE}),
    (partial(AdaptiveConcurrency, INNER, most=5), {"least": ((1, 5), (0, 6))}),
    (
        partial(RateLimit, INNER),
        {"requests_per_minute": COUNT, "tokens_per_minute": COUNT, "period": POSITIVE},
    ),
    (partial(Cache, INNER), {"entries": COUNT}),
    (Budget, dict.fromkeys(LIMITS, POSITIVE)),
    (partial(Price, input=1, output=1), dict.fromkeys(("input", "output", "cached"), NOT_NEGATIVE)),
    (Canaries, {"share": PART, "alpha": BETWEEN, "probes": ((20,), (19, 20.5, True))}),
    (Rule, {"rate": SHARE}),
    (partial(SpoolSettings, path="s.db"), {"max_bytes": COUNT, "lease_seconds": POSITIVE}),
    (
        partial(Experiments, replay=lambda question, contexts: ""),
        {"per_turn": ((1, 50), (0, 51)), "per_day": ((1, 10**9), (0, 10**9 + 1)), "timeout": POSITIVE},
    ),
    (
        partial(Monitor, metrics=[], sinks=[]),
        {
            **dict.fromkeys(("concurrency", "max_queue", "max_queue_bytes"), LARGE),
            **dict.fromkeys(("deadline", "mask_timeout", "sink_timeout"), POSITIVE),
            **dict.fromkeys(("exit_timeout", "throttle"), NOT_NEGATIVE),
            "sample_rate": SHARE,
        },
    ),
    (
        partial(Alarm, metric="m", below=0.5),
        {"alpha": BETWEEN, "baseline": ((30,), (29,)), "silent_after": POSITIVE},
    ),
    (partial(Alarm, metric="m"), dict.fromkeys(("below", "above", "falls_by"), BETWEEN)),
    (partial(Label, **NOON), {"drawn": PART, "who": (("w" * 100,), ("w" * 101,))}),
    (
        partial(Label, **NOON | {"value": "supported"}, metric="m"),
        {"claim": ((0, 99_999), (-1, 100_000, True))},
    ),
    (partial(SQLiteSink, ":memory:"), {"lock_timeout": NOT_NEGATIVE, "keep": (("1d",), (0, "0d", 1.5))}),
    (partial(SpanJournal, "journal.db"), {"max_bytes": COUNT}),
]


@pytest.mark.parametrize(
    ("make", "name", "taken", "refused"),
    [
        pytest.param(make, name, *values, id=f"{getattr(make, 'func', make).__name__}.{name}")
        for make, bounds in BOUNDS
        for name, values in bounds.items()
    ],
)
def test_a_number_is_taken_up_to_its_bound_and_refused_beyond(
    make: Callable[..., object],
    name: str,
    taken: tuple[Any, ...],
    refused: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in taken:
        make(**{name: value})
    for value in refused:
        with pytest.raises((ConfigurationError, InvalidRecord), match=name):
            make(**{name: value})


_WITHOUT: list[tuple[str, str, str, Callable[[Path], object]]] = [
    ("starlette.requests", "steelyard.view", "serve", lambda path: view.app(path)),
    ("jinja2", "steelyard.view", "serve", lambda path: view.app(path)),
    ("pandas", "", "pandas", lambda path: evaluate([], progress=False).to_pandas()),
]


@pytest.mark.parametrize(("package", "room", "extra", "use"), _WITHOUT, ids=lambda one: str(one)[:20])
def test_a_package_that_is_missing_is_named_with_its_extra_and_no_other_fault_is_taken_for_it(
    package: str,
    room: str,
    extra: str,
    use: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if room and name.startswith(f"{room}._")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"steelyard\[{extra}\]"):
        use(tmp_path / "steelyard.db")
    if room:
        monkeypatch.undo()
        for name in [name for name in sys.modules if name.startswith(f"{room}._")]:
            monkeypatch.delitem(sys.modules, name)
        # A module of our own that is not there is our fault, and no package mends it.
        monkeypatch.setitem(sys.modules, f"{room}._live", None)
        with pytest.raises(ModuleNotFoundError) as caught:
            use(tmp_path / "steelyard.db")
        assert not isinstance(caught.value, MissingDependency)
