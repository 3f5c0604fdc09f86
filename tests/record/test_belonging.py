"""Where a turn belongs: session, tenant and user, whatever an application puts there."""

from __future__ import annotations

import math
from typing import Any

import pytest

from steelyard.errors import ConfigurationError
from steelyard.record import (
    Record,
    Timings,
    TraceRef,
    clean,
    record_from_json,
    record_to_json,
    with_hashed_user,
)
from steelyard.scores import Evaluation, evaluation_from_json, evaluation_to_json

KEY = "a key of more than sixteen"


def test_sessions_and_tenants_are_kept_in_json() -> None:
    record = Record(session="chat-7", tenant="acme")
    assert record_from_json(record_to_json(record)) == record
    assert clean(record) is record


@pytest.mark.parametrize("name", ["session", "tenant"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [("", None), ("  ", None), (" a ", "a"), (7, "7"), ("a\0b", "a\N{REPLACEMENT CHARACTER}b")],
)
def test_odd_ids_become_text_or_nothing(name: str, given: Any, kept: str | None) -> None:
    assert getattr(clean(Record(**{name: given})), name) == kept


def test_an_id_that_cannot_be_shown_is_made_anew() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    odd: Any = Odd()
    assert len(Record(id=odd).id) == 32 and TraceRef(trace_id=odd).trace_id == ""


def test_ids_of_a_million_characters_stay_apart() -> None:
    begun = "x" * 1_000_000
    one, other = (clean(Record(session=begun + end)) for end in "ab")
    assert one.session != other.session and one.truncated == ("session",)
    assert one.session is not None and len(one.session) == 200
    assert clean(one) is one


def test_a_user_is_told_apart_and_never_written_as_it_is() -> None:
    record = Record(user="ann@example.com")
    assert "ann" not in record_to_json(record) and clean(record).user is None
    assert with_hashed_user(record, "").user is None
    hashed = with_hashed_user(record, KEY)
    assert hashed.user is not None and "ann" not in hashed.user and clean(hashed) is hashed
    assert with_hashed_user(hashed, KEY) is hashed
    assert with_hashed_user(hashed, "").user is None
    assert with_hashed_user(record, KEY[::-1]).user != hashed.user
    assert with_hashed_user(Record(user="bob@example.com"), KEY).user != hashed.user
    assert record_from_json(record_to_json(hashed)).user == hashed.user
    assert "ann" not in repr(record)


def test_an_evaluation_keeps_what_its_record_said_when_that_is_taken_off() -> None:
    record = with_hashed_user(Record(session="s", tenant="t", user="u", timings=Timings(started_at=5.0)), KEY)
    bare = Evaluation(record_id=record.id, scores=(), record=record, evaluated_at=9.0).replace(record=None)
    assert (bare.session, bare.tenant, bare.user, bare.at) == ("s", "t", record.user, 5.0)
    assert evaluation_from_json(evaluation_to_json(bare)) == bare


@pytest.mark.parametrize("started_at", [None, math.nan, math.inf, "noon"])
def test_a_time_that_is_not_one_leaves_the_time_of_judging(started_at: Any) -> None:
    record = Record(timings=Timings(started_at=started_at))
    written = evaluation_to_json(Evaluation(record_id="r", scores=(), record=record, evaluated_at=9.0))
    assert evaluation_from_json(written).at == 9.0


def test_an_evaluation_written_before_there_was_a_time_has_the_one_of_its_record() -> None:
    record = '{"timings": {"started_at": 5}}'
    line = f'{{"schema": 2, "record_id": "r", "scores": [], "evaluated_at": 9, "record": {record}}}'
    assert evaluation_from_json(line).at == 5.0


@pytest.mark.parametrize("key", ["short", 7])
def test_keys_that_can_be_guessed_are_refused(key: Any) -> None:
    from steelyard import Monitor

    with pytest.raises(ConfigurationError, match="user_key must be a text of at least 16") as refused:
        Monitor(sinks=[], metrics=[], user_key=key)
    assert str(key) not in str(refused.value).replace("16", "")
