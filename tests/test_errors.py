"""The exception tree: one root, and causes that agree with the classes that carry them."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import get_args

import pytest

from steelyard import errors
from steelyard.errors import (
    TRANSIENT_CAUSES,
    Cause,
    InvalidRecord,
    JudgeRejected,
    MalformedReply,
    MissingDependency,
    RateLimited,
    SinkError,
    SteelyardError,
    Unanswerable,
)
from steelyard.judge.endpoint import named_error


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
