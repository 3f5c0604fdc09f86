"""Extraction OTLP/JSON: every form a value may have, and every way a line may be wrong."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from otel_parts import ANSWER, BEGIN, QUESTION, TEXTS, documents, is_right, messages, oi, prompt

from steelyard_opentelemetry import read_otlp, read_spans

TRACE, ROOT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def value(given: Any) -> dict[str, Any]:
    match given:
        case bool():
            return {"boolValue": given}
        case int():
            return {"intValue": str(given)}
        case float():
            return {"doubleValue": given}
        case list():
            return {"arrayValue": {"values": [value(item) for item in given]}}
        case dict():
            return {"kvlistValue": {"values": attributes(given)}}
        case _:
            return {"stringValue": given}


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(item)} for key, item in given.items()]


def item(name: str, span_id: str = ROOT, **more: Any) -> dict[str, Any]:
    found = {"traceId": TRACE, "spanId": span_id, "name": name, "startTimeUnixNano": str(BEGIN), **more}
    found.setdefault("endTimeUnixNano", str(BEGIN + 1_000_000_000))
    return found


def line(*spans: Any, scope: Any = "app") -> str:
    resource = {"attributes": attributes({"service.name": "shop", "service.version": "7"})}
    scoped = {"scope": {"name": scope}, "spans": list(spans)}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]})


def turn() -> list[dict[str, Any]]:
    root = item("chain", attributes=attributes(oi("CHAIN", input__value=QUESTION, output__value=ANSWER)))
    found = attributes(oi("RETRIEVER", input__value=QUESTION, **documents()))
    return [item("find", "b7ad6b7169203332", parentSpanId=ROOT, attributes=found), root]


def test_a_turn_in_one_line_or_in_two() -> None:
    together = read_spans(read_otlp([line(*turn())]).spans).records
    assert (together[0].metadata["service"], together[0].metadata["version"]) == ("shop", "7")
    apart = read_spans(read_otlp([line(span) for span in turn()]).spans).records
    assert [is_right(record) for record in together] == [True]
    assert together == apart


def test_every_part_of_a_span_is_read() -> None:
    (span,) = read_otlp(
        [
            line(
                item(
                    "ask",
                    parentSpanId="00f067aa0ba902b7",
                    status={"code": "STATUS_CODE_ERROR", "message": "broken"},
                    droppedAttributesCount=2,
                    flags=0x300,
                    attributes=attributes({"a": 1, "b": 0.5, "c": True, "d": ["x", 2], "e": {"f": "g"}}),
                    events=[
                        {"name": "exception", "attributes": attributes({"exception.type": "ValueError"})}
                    ],
                ),
                scope="openinference.instrumentation.langchain",
            )
        ]
    ).spans
    assert (span.name, span.parent_id, span.service, span.dropped) == ("ask", "00f067aa0ba902b7", "shop", 2)
    assert (span.failed, span.error, span.sampled) == (True, "broken", True)
    assert span.attributes == {"a": 1, "b": 0.5, "c": True, "d": ["x", 2], "e": {"f": "g"}}
    assert span.events[0].attributes == {"exception.type": "ValueError"}
    assert span.scope == "openinference.instrumentation.langchain"


@pytest.mark.parametrize(("flags", "remote"), [(0x300, True), (0x100, False), (0x200, False), (0xFF, False)])
def test_a_parent_is_in_another_process_where_both_flags_say_so(flags: int, remote: bool) -> None:
    (span,) = read_otlp([line(item("ask", flags=flags))]).spans
    assert span.remote_parent is remote


def test_ids_may_be_base64_and_upper_case() -> None:
    encoded = base64.b64encode(bytes.fromhex(TRACE)).decode()
    spans = read_otlp(
        [line({**item("a"), "traceId": encoded}), line({**item("b"), "spanId": "B7AD6B7169203339"})]
    ).spans
    assert [(span.trace_id, span.span_id) for span in spans] == [(TRACE, ROOT), (TRACE, "b7ad6b7169203339")]


def test_the_same_span_twice_counts_once() -> None:
    found = read_otlp([line(*turn()), line(*turn())])
    assert (len(found.spans), found.repeated) == (2, 2)
    assert len(read_spans(found.spans).records) == 1


def test_own_spans_are_left_out() -> None:
    assert read_otlp([line(*turn(), scope="steelyard")]).spans == []


def test_a_bad_line_does_not_stop_the_rest() -> None:
    found = read_otlp(["{not json", "[]", "", '{"other": 1}', line({"name": "no ids"}), line(*turn())])
    assert len(found.spans) == 2
    assert [problem.split(":")[0] for problem in found.problems] == ["line 1", "line 2", "line 4", "line 5"]


def test_content_in_log_events_is_put_on_its_span() -> None:
    """With content as events, and the span bare."""
    chat = item("chat", attributes=attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}))
    content = {
        "gen_ai.input.messages": json.loads(messages(("user", prompt()))),
        "gen_ai.output.messages": json.loads(messages(("assistant", ANSWER))),
    }
    log = {
        "traceId": TRACE,
        "spanId": ROOT,
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": attributes(content),
    }
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]})
    (record,) = read_spans(read_otlp([logs, line(chat)]).spans).records
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")


def test_content_in_the_older_log_events() -> None:
    chat = item("chat", attributes=attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}))
    found = [
        ("gen_ai.system.message", {"content": "Be short."}),
        ("gen_ai.user.message", {"content": prompt()}),
        ("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": ANSWER}}),
    ]
    logs = [
        {
            "traceId": TRACE,
            "spanId": ROOT,
            "attributes": attributes({"event.name": name}),
            "body": value(body),
        }
        for name, body in found
    ]
    data = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]})
    (record,) = read_spans(read_otlp([line(chat), data]).spans).records
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")


def test_spans_in_any_order_and_half_of_them() -> None:
    spans = turn()
    assert len(read_spans(read_otlp([line(*reversed(spans))]).spans).records) == 1
    (diagnosis,) = read_spans(read_otlp([line(spans[0])]).spans).diagnoses
    assert diagnosis.cause == "unlinked"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        *("traceId", "spanId", "parentSpanId", "attributes", "events", "status", "startTimeUnixNano"),
        *("endTimeUnixNano", "name", "droppedAttributesCount", "flags"),
    ]
)


@given(st.dictionaries(FIELDS, JSON, max_size=5), JSON)
def test_wrong_types_anywhere_never_raise(fields: dict[str, Any], scope: Any) -> None:
    found = read_otlp([line({**item("any"), **fields}, scope=scope)])
    read_spans(found.spans)
    assert len(found.spans) + len(found.problems) >= 1


@given(JSON)
def test_any_json_is_read_or_told(data: Any) -> None:
    found = read_otlp([json.dumps(data)])
    assert found.spans == []
    if not (isinstance(data, dict) and "resourceSpans" in data):
        assert found.problems


def test_texts_are_kept_as_they_are() -> None:
    (span,) = read_otlp([line(item("a", attributes=attributes({"text": TEXTS[0] + " \N{SNOWMAN}"})))]).spans
    assert span.attributes["text"] == TEXTS[0] + " \N{SNOWMAN}"


def printed(name: str, span_id: str, **more: Any) -> dict[str, Any]:
    context = {"trace_id": f"0x{TRACE}", "span_id": f"0x{span_id}", "trace_state": "[]"}
    times = {"start_time": "2026-03-01T20:47:18.711501Z", "end_time": "2026-03-01T20:47:19.711501Z"}
    return {"name": name, "context": context, "parent_id": None, **times, "attributes": {}, **more}


@given(
    st.lists(
        st.sampled_from(["indented", "line", "otlp", "words", "log", "blank", "list", "cut"]), max_size=12
    )
)
def test_whatever_stands_in_a_file_of_spans_each_span_is_read(forms: list[str]) -> None:
    """A program prints beside the SDK, and one that was killed leaves a span cut off."""
    text, expected = "", []
    for at, form in enumerate(forms):
        one, own = printed(f"step {at}", own_id := f"{at + 1:016x}"), f"{at + 1:016x}"
        written = {
            "indented": json.dumps(one, indent=4),
            "line": json.dumps(one),
            "list": json.dumps([one]),
            "otlp": line(item(f"step {at}", own_id)),
            "words": "loading the index {",
            "log": "[INFO] ready",
            "blank": "",
            "cut": json.dumps(one, indent=4)[:60],
        }[form]
        expected += [own] if form in ("indented", "line", "list", "otlp") else []
        text += written + "\n"
    found = read_otlp(text.splitlines())
    assert [span.span_id for span in found.spans] == expected
    # The words are the program's own if the SDK printed a span beside them.
    words = forms.count("words") + forms.count("log")
    most = forms.count("cut") + (0 if "indented" in forms else words)
    assert forms.count("cut") <= len(found.problems) <= most


def test_every_part_of_a_printed_span_is_read() -> None:
    below = printed(
        "ask",
        "00f067aa0ba902b7",
        parent_id=f"0x{ROOT}",
        status={"status_code": "ERROR", "description": "broken"},
        attributes={"a": 1, "d": ["x", 2]},
        events=[{"name": "exception", "timestamp": "", "attributes": {"exception.type": "ValueError"}}],
        links=[{"context": printed("other", ROOT)["context"], "attributes": {}}],
        resource={"attributes": {"service.name": "shop", "service.version": "7"}, "schema_url": ""},
    )
    (span,) = read_otlp([json.dumps(below)]).spans
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE, "00f067aa0ba902b7", ROOT)
    assert (span.failed, span.error, span.service, span.version) == (True, "broken", "shop", "7")
    assert (span.attributes, span.links) == ({"a": 1, "d": ["x", 2]}, ((TRACE, ROOT),))
    assert span.events[0].attributes == {"exception.type": "ValueError"}
    assert (span.start, span.end - span.start) == (1_772_398_038_711_501_000, 1_000_000_000)


@pytest.mark.parametrize(
    ("written", "start"),
    [
        (1_774_454_069_561_232_700, 1_774_454_069_561_232_700),
        ("2026-03-01T21:47:18+01:00", 1_772_398_038_000_000_000),
        ("2026-03-01T20:47:18", 1_772_398_038_000_000_000),
        (None, 0),
        ("soon", 0),
    ],
)
def test_a_printed_time_is_iso_8601_or_nanoseconds(written: object, start: int) -> None:
    (span,) = read_otlp([json.dumps(printed("ask", ROOT, start_time=written, end_time=None))]).spans
    assert (span.start, span.end) == (start, start)


def test_a_printed_span_whose_ids_are_zeros_is_left_out_with_a_word() -> None:
    found = read_otlp([json.dumps(printed("ask", "0" * 16))])
    assert (found.spans, len(found.problems)) == ([], 1)


@pytest.mark.parametrize("clock", ["timeUnixNano", "observedTimeUnixNano"])
def test_messages_are_in_the_order_of_their_times_whoever_wrote_them(clock: str) -> None:
    def log(at: int) -> dict[str, Any]:
        said = {"body": value({"content": f"{at}"}), "eventName": "gen_ai.user.message"}
        return {"traceId": TRACE, "spanId": ROOT, clock: str(at), **said}

    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [log(3), log(1), log(2)]}]}]})
    (span,) = read_otlp([logs, line(item("chat"))]).spans
    assert [one["content"] for one in span.attributes["gen_ai.input.messages"]] == ["1", "2", "3"]


def test_whatever_was_dropped_of_a_span_is_counted() -> None:
    for attributes_, events in ((3, 0), (0, 2), (3, 2)):
        counts: dict[str, Any] = {"droppedAttributesCount": attributes_, "droppedEventsCount": events}
        (span,) = read_otlp([line(item("chat", **counts))]).spans
        assert span.dropped == attributes_ + events


def jaeger(own: str, **more: Any) -> dict[str, Any]:
    times = {"startTime": BEGIN // 1_000, "duration": 1_500}
    return {"traceID": TRACE, "spanID": own, "operationName": "ask", **times, "processID": "p1", **more}


def test_every_part_of_a_span_that_jaeger_returns_is_read() -> None:
    def tags(**told: Any) -> list[dict[str, Any]]:
        return [{"key": key.replace("__", "."), "type": "string", "value": one} for key, one in told.items()]

    references = [
        {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "a1"},
        {"refType": "CHILD_OF", "traceID": "12", "spanID": "b2"},
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": ROOT},
    ]
    told = tags(a=1, error=True, otel__status_description="broken", otel__scope__name="app")
    logs = [{"timestamp": 1, "fields": tags(event="exception", exception__type="ValueError")}]
    process = {"serviceName": "shop", "tags": tags(service__version="7")}
    trace = {
        "traceID": TRACE,
        "spans": [jaeger("a2", references=references, tags=told, logs=logs), jaeger("")],
        "processes": {"p1": process},
    }
    found = read_otlp([json.dumps({"data": [trace], "total": 0, "errors": None})])
    (span,) = found.spans
    assert len(found.problems) == 1, "the one without an id"
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE, f"{0xA2:016x}", ROOT)
    assert (span.failed, span.error, span.scope) == (True, "broken", "app")
    assert (span.service, span.version, span.attributes["a"]) == ("shop", "7", 1)
    assert (span.events[0].name, span.events[0].attributes) == ("exception", {"exception.type": "ValueError"})
    assert span.links == ((TRACE, f"{0xA1:016x}"),)
    assert (span.start, span.end) == (BEGIN, BEGIN + 1_500_000)


def test_the_batches_that_tempo_returns_are_read() -> None:
    batches = json.loads(line(*turn()))["resourceSpans"]
    assert len(read_spans(read_otlp([json.dumps({"batches": batches})]).spans).records) == 1
    assert len(read_otlp(['{"data": [{"question": "Q"}]}']).problems) == 1
