"""With a key, nobody outside can choose whether a turn is judged."""

from __future__ import annotations

import uuid

import pytest

from online.helpers import turn
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor, sampling_position
from steelyard.record import TraceRef
from steelyard.testing import MemorySink

KEY = "a key of the owner's"
RATE = 0.1


def judged(ids: list[str], **options: object) -> int:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], **options)  # type: ignore[arg-type]
    for name in ids:
        monitor.submit(turn(name, trace=TraceRef(trace_id=name)))
    assert monitor.flush(60) == 0
    monitor.close()
    return len(sink.evaluations)


def test_a_caller_cannot_choose_whether_he_is_judged() -> None:
    random = (uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex for number in range(20_000))
    hidden = [name for name in random if sampling_position(name) >= RATE][:500]
    assert judged(hidden, sample_rate=RATE) == 0
    # Binomial with n = 500, p = .1: outside of this once in a hundred thousand keys, and the key is fixed.
    assert 20 <= judged(hidden, sample_rate=RATE, sample_key=KEY) <= 82


def test_processes_with_one_key_agree_and_samples_are_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_SAMPLE_KEY", "1234567890123456")
    ids = [uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex for number in range(200)]
    below = [name for name in ids if sampling_position(name, "1234567890123456") < 0.3]
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], sample_rate=0.3)
    for name in ids:
        monitor.submit(turn(name, trace=TraceRef(trace_id=name)))
    assert monitor.flush(60) == 0
    monitor.close()
    assert sorted(one.record_id for one in sink.evaluations) == sorted(below)


def test_a_key_that_could_be_guessed_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="sample_key must be a text of at least 16") as refused:
        Monitor(metrics=[], sinks=[], sample_key="secret")
    assert "'secret'" not in str(refused.value)
    assert KEY not in repr(Monitor(metrics=[], sinks=[], sample_key=KEY).options)
