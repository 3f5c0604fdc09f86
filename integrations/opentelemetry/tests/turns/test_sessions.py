"""Whose turn it was: the session, the user and the tenant that spans name."""

from __future__ import annotations

import json

import pytest
from otel_turns import one, pieces_in_two_traces

from steelyard_opentelemetry import read_spans

_LONG = "5f0c2a9e41d84b7c"


@pytest.mark.parametrize(
    "name", ["session.id", "langfuse.session.id", "mlflow.trace.session", "ai.telemetry.metadata.sessionId"]
)
def test_a_record_has_the_session_that_its_spans_name(name: str) -> None:
    assert one(list(pieces_in_two_traces({name: _LONG}, {name: _LONG}))).session == _LONG


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("traceloop.association.properties.thread_id", "ride-7"),
        ("copilot.chat_session.conversationId", "ride-7"),
        ("langfuse.trace.metadata.session_id", "ride-7"),
        ("mlflow.traceTag.conversation_id", "ride-7"),
        ("thread.id", None),
        ("db.session.id", None),
    ],
)
def test_a_name_that_ends_like_a_conversations_id_is_one(name: str, session: str | None) -> None:
    linked: dict[str, object] = {"gen_ai.response.id": _LONG, name: "ride-7"}
    assert one(list(pieces_in_two_traces(linked, linked))).session == session


@pytest.mark.parametrize("place", ["metadata", "langfuse.trace.metadata"])
@pytest.mark.parametrize("name", ["session_id", "threadId", "conversation_id", "mlflow.trace.session"])
def test_metadata_that_is_one_attribute_names_session_user_and_tenant(place: str, name: str) -> None:
    told = {name: "ride-7", "user_id": 42, "tenant": "acme", "channel": "web"}
    linked: dict[str, object] = {"gen_ai.response.id": _LONG, place: json.dumps(told)}
    record = one(list(pieces_in_two_traces(linked, linked)))
    assert (record.session, record.metadata["user"], record.tenant) == ("ride-7", "42", "acme")


def test_of_several_names_in_metadata_the_sessions_own_counts_and_a_span_before_it() -> None:
    told = json.dumps({"thread_id": "thread", "session_id": "session"})
    linked: dict[str, object] = {"gen_ai.response.id": _LONG, "metadata": told}
    assert one(list(pieces_in_two_traces(linked, linked))).session == "session"
    linked["session.id"] = "said"
    assert one(list(pieces_in_two_traces(linked, linked))).session == "said"


@pytest.mark.parametrize("name", ["mlflow.trace.session", "session.id"])
def test_an_id_that_was_written_as_json_is_what_was_given(name: str) -> None:
    linked: dict[str, object] = {"gen_ai.response.id": _LONG, name: '"ride-7"', "mlflow.trace.user": '"ada"'}
    record = one(list(pieces_in_two_traces(linked, linked)))
    assert (record.session, record.metadata["user"]) == ("ride-7", "ada")


@pytest.mark.parametrize("told", ["no json", "{", "[1]", '{"session_id": ["a"]}', '{"session_id": null}'])
def test_metadata_that_names_nobody_gives_no_session(told: str) -> None:
    linked: dict[str, object] = {"gen_ai.response.id": _LONG, "metadata": told}
    assert one(list(pieces_in_two_traces(linked, linked))).session is None


def test_pieces_whose_metadata_names_two_sessions_are_not_joined() -> None:
    told: list[dict[str, object]] = [
        {"request.id": _LONG, "metadata": json.dumps({"mlflow.trace.session": name})} for name in "ab"
    ]
    (record,) = read_spans(pieces_in_two_traces(*told)).records
    assert "traces" not in record.metadata
