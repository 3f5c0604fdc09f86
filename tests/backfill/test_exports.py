"""Traces that vendors stored: their turns are found, and scores go back to the ids that they know."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import use_span

from cli.running import Steelyard
from steelyard.backfill import Columns, _exports, open_sources
from steelyard.record import Record
from steelyard.scores import Evaluation
from steelyard.sinks import read_evaluations

pytest.importorskip("duckdb", reason="duckdb is not installed")

QUESTION = "What is the capital of France, Zoë?"
ANSWER = "Paris is the capital of France."
TEXTS = ("Paris is the capital of France.", "Zoë says: France is a country in Europe.")
PROMPT = f"Context: {' '.join(TEXTS)}\nQuestion: {QUESTION}"
ROOT = "0190a1b2-0000-7000-8000-00000000000a"


def langsmith_runs() -> list[dict[str, Any]]:
    """A chain with a retriever and a model, as `list_runs` and a bulk export tell them."""
    documents = [{"page_content": text, "metadata": {}, "type": "Document"} for text in TEXTS]
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["HumanMessage"],
        "kwargs": {"content": PROMPT, "type": "human"},
    }
    reply = {"text": ANSWER, "message": {"kwargs": {"content": ANSWER, "type": "ai"}}}

    def run(
        number: str, kind: str, parent: str | None, given: object, made: object, at: int
    ) -> dict[str, Any]:
        return {
            "id": f"{ROOT[:-1]}{number}",
            "trace_id": ROOT,
            "parent_run_id": parent,
            "name": kind,
            "run_type": kind,
            "start_time": f"2026-11-01T10:00:0{at}",
            "end_time": f"2026-11-01T10:00:0{9 - at}",
            "inputs": json.dumps(given),
            "outputs": json.dumps(made),
            "error": None,
            "session_id": "6e3c7c2a-5b0c-4b8e-9a53-4b1f7d2c9e10",
        }

    return [
        run("a", "chain", None, {"question": QUESTION}, {"answer": ANSWER}, 0),
        run("b", "retriever", ROOT, {"query": QUESTION}, {"documents": documents}, 1),
        run("c", "llm", ROOT, {"messages": [[message]]}, {"generations": [[reply]]}, 2),
    ]


def langfuse_observations(*, snake: bool) -> list[dict[str, Any]]:
    """The same, as Langfuse's files (with underscores) and its API tell it."""

    def observation(
        own: str, kind: str, parent: str | None, given: object, made: object, at: int
    ) -> dict[str, Any]:
        found = {
            "id": own,
            "traceId": "cmtrace0001",
            "type": kind,
            "parentObservationId": parent,
            "name": kind.lower(),
            "startTime": f"2026-11-01 10:00:0{at}.000000",
            "endTime": f"2026-11-01 10:00:0{9 - at}.000000",
            "input": given,
            "output": made,
            "level": "DEFAULT",
            "statusMessage": "",
        }
        if not snake:
            return found
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in name): value
            for name, value in found.items()
        }

    messages = [{"role": "user", "content": PROMPT}]
    return [
        observation("cmspan-root", "SPAN", None, {"question": QUESTION}, {"answer": ANSWER}, 0),
        observation("cmspan-find", "RETRIEVER", "cmspan-root", QUESTION, list(TEXTS), 1),
        observation(
            "cmspan-call", "GENERATION", "cmspan-root", messages, {"role": "assistant", "content": ANSWER}, 2
        ),
    ]


def write(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in found))
    return path


def the_turn(db: Path) -> Evaluation:
    """The one turn that was found, whole."""
    (found,) = read_evaluations(db)
    record = found.record
    assert record is not None
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert tuple(context.text for context in record.contexts) == TEXTS
    assert record.timings is not None
    assert record.timings.started_at == 1_793_527_200.0
    assert (record.timings.total or 0.0) >= 0
    return found


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_langsmith_runs_become_turns_with_their_run_id(
    steelyard: Steelyard, tmp_path: Path, form: str
) -> None:
    if form == "parquet":
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        path = tmp_path / "runs.parquet"
        pq.write_table(pa.Table.from_pylist(langsmith_runs()), path)
    else:
        path = write(tmp_path / "runs.jsonl", langsmith_runs())
    done = steelyard("backfill", path, "--db", tmp_path / "s.db", "--metrics", "faithfulness")
    assert done.status == 0, done.err
    turn = the_turn(tmp_path / "s.db")
    assert turn.trace is not None
    assert (turn.trace.run_id, turn.record_id) == (ROOT, ROOT)


@pytest.mark.parametrize(("snake", "lacking"), [(True, ()), (False, ()), (False, ("endTime", "level"))])
def test_langfuse_observations_become_turns_with_their_own_ids(
    steelyard: Steelyard, tmp_path: Path, snake: bool, lacking: tuple[str, ...]
) -> None:
    rows = [one | dict.fromkeys(lacking) for one in langfuse_observations(snake=snake)]
    path = write(tmp_path / "observations.jsonl", rows)
    done = steelyard("backfill", path, "--db", tmp_path / "s.db", "--metrics", "faithfulness")
    assert done.status == 0, done.err
    turn = the_turn(tmp_path / "s.db")
    assert turn.trace is not None
    assert (turn.trace.trace_id, turn.trace.span_id) == ("cmtrace0001", "cmspan-root")


def records(path: Path, rows: list[dict[str, Any]]) -> list[Record]:
    """What a file with one list of rows is read as."""
    path.write_text(json.dumps(rows))
    [source] = open_sources([str(path)], columns=Columns(), read_traces=lambda _: pytest.fail("no traces"))
    return list(source.records(lambda _, why: pytest.fail(why)))


def test_a_list_of_some_megabytes_is_read_whole(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"question": f"q{n}", "answer": "a" * 10_000} for n in range(300)]
    assert [one.question for one in records(tmp_path / "t.json", rows)] == [f"q{n}" for n in range(300)]


def test_a_turn_without_an_id_is_known_by_what_was_asked_found_and_answered(tmp_path: Path) -> None:
    row: dict[str, Any] = {"question": "q", "contexts": ["c"], "answer": "a", "time": 1.0}
    others = [
        {**row, name: value} for name, value in (("question", "r"), ("contexts", ["d"]), ("answer", "b"))
    ]
    first, later, *rest = records(tmp_path / "t.json", [row, {**row, "time": 2.0}, *others])
    assert first.id == later.id
    assert len({first.id, *(one.id for one in rest)}) == 4


def test_documents_are_found_in_what_langchain_writes_of_its_objects() -> None:
    plain: list[Any] = [{"page_content": text, "metadata": {}} for text in TEXTS]
    objects = [
        {"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": one} for one in plain
    ]
    for given in (plain, objects, json.dumps(objects), {"documents": objects}):
        found = _exports.documents(given)
        assert [found[f"retrieval.documents.{at}.document.content"] for at in range(2)] == list(TEXTS)


def printed_spans() -> str:
    """The same, as the exporter of the Python SDK prints it, and the program beside it."""
    out = io.StringIO()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    tracer, begin = provider.get_tracer("shop"), 1_793_527_200_000_000_000
    kind, given, made = "openinference.span.kind", "input.value", "output.value"
    documents = {f"retrieval.documents.{at}.document.content": text for at, text in enumerate(TEXTS)}
    chain = {kind: "CHAIN", given: QUESTION, made: ANSWER}
    root = tracer.start_span("chain", start_time=begin, attributes=chain)
    with use_span(root):
        for at, attributes in enumerate(
            ({kind: "RETRIEVER", given: QUESTION, **documents}, {kind: "LLM", given: PROMPT, made: ANSWER}),
            start=1,
        ):
            tracer.start_span("step", start_time=begin + at, attributes=attributes).end(begin + at)
            out.write(f"step {at} is done\n")
    root.end(begin + 9)
    return out.getvalue()


def jaeger_reply(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """The same, as Jaeger returns it."""

    def span(one: dict[str, Any]) -> dict[str, Any]:
        trace_id, own = (one["context"][name][2:] for name in ("trace_id", "span_id"))
        above = {"refType": "CHILD_OF", "traceID": trace_id, "spanID": (one["parent_id"] or "")[2:]}
        start = datetime.fromisoformat(one["start_time"]).timestamp()
        return {
            "traceID": trace_id,
            "spanID": own,
            "operationName": one["name"],
            "references": [above] if one["parent_id"] else [],
            "startTime": round(start * 1e6),
            "duration": 1,
            "tags": [{"key": key, "value": value} for key, value in one["attributes"].items()],
            "processID": "p1",
        }

    return {"data": [{"spans": list(map(span, spans)), "processes": {"p1": {"serviceName": "shop"}}}]}


def written_flat(one: dict[str, Any]) -> dict[str, Any]:
    """The same, as a program's own exporter writes it."""
    return {"traceId": one["context"]["trace_id"], "spanId": one["context"]["span_id"]} | {
        "parentSpanId": one["parent_id"],
        "startTime": one["start_time"],
        "attributes": one["attributes"],
    }


@pytest.mark.parametrize("form", ["as it is", "lines", "list", "jaeger", "flat"])
def test_spans_that_the_sdk_printed_become_turns(steelyard: Steelyard, tmp_path: Path, form: str) -> None:
    text = printed_spans()
    path = tmp_path / ("spans.log" if form == "as it is" else "spans.jsonl")
    if form != "as it is":
        spans = [json.loads(one) for one in re.findall(r"^\{$.*?^\}$", text, re.DOTALL | re.MULTILINE)]
        text = "\n".join(map(json.dumps, spans)) if form == "lines" else json.dumps(spans)
        text = json.dumps(jaeger_reply(spans)) if form == "jaeger" else text
        text = "\n".join(json.dumps(written_flat(one)) for one in spans) if form == "flat" else text
    path.write_text(text)
    done = steelyard("backfill", path, "--db", tmp_path / "s.db", "--metrics", "faithfulness")
    assert done.status == 0, done.err
    turn = the_turn(tmp_path / "s.db")
    assert turn.trace is not None and turn.trace.span_id is not None
    (line,) = steelyard("records", path).out.splitlines()
    assert json.loads(line)["question"] == QUESTION


@contextmanager
def phoenix() -> Iterator[tuple[str, list[dict[str, list[str]]]]]:
    """A server that answers as Phoenix does, two spans a page; its address and what it was asked."""
    trace, asked = "0af7651916cd43dd8448eb211c80319c", list[dict[str, list[str]]]()

    def span(own: str, kind: str, parent: str | None, at: int, **attributes: Any) -> dict[str, Any]:
        return {
            "id": own,
            "name": kind.lower(),
            "context": {"trace_id": trace, "span_id": own},
            "span_kind": kind,
            "parent_id": parent,
            "start_time": f"2026-11-01T10:00:0{at}+00:00",
            "end_time": f"2026-11-01T10:00:0{9 - at}+00:00",
            "status_code": "OK",
            "status_message": "",
            "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
            "events": [],
        }

    documents = {f"retrieval__documents__{n}__document__content": text for n, text in enumerate(TEXTS)}
    root = "00f067aa0ba902b7"
    spans = [
        span(root, "CHAIN", None, 0, input__value=QUESTION, output__value=ANSWER),
        span("00f067aa0ba902b8", "RETRIEVER", root, 1, input__value=QUESTION, **documents),
        span("00f067aa0ba902b9", "LLM", root, 2, input__value=PROMPT, output__value=ANSWER),
    ]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            asked.append(query)
            again = parts.path == "/v1/projects/again/spans"  # tells of a page after the last one
            known = again or parts.path == "/v1/projects/shop%20floor/spans"
            start = int(query.get("cursor", ["0"])[0])
            page = {
                "data": spans[start : start + 2],
                "next_cursor": "2" if start == 0 or again else None,
            }
            body = json.dumps(page if known else {}).encode()
            moved = parts.path == "/v1/projects/moved/spans"
            self.send_response(302 if moved else 200 if known else 404)
            if moved:  # as a server would that wants the key of another one
                self.send_header("location", "/v1/projects/shop%20floor/spans")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_spans_of_a_phoenix_server_become_turns(steelyard: Steelyard, tmp_path: Path) -> None:
    command = ("--db", tmp_path / "s.db", "--metrics", "faithfulness", "--project")
    with phoenix() as (address, asked):
        done = steelyard("backfill", address, *command, "shop floor")
        assert done.status == 0, done.err
        assert steelyard("backfill", address, *command, "again").status == 0
        wrong = steelyard("backfill", address, *command, "other")
        before = len(asked)
        moved = steelyard("backfill", address, *command, "moved")
        assert (moved.status, len(asked) - before) == (2, 1), moved.err
    assert (wrong.status, "HTTP 404" in wrong.err) == (2, True)
    assert asked[1]["cursor"] == ["2"]
    turn = the_turn(tmp_path / "s.db")
    assert turn.trace is not None
    assert turn.trace.span_id == "00f067aa0ba902b7"
    away = steelyard("backfill", address, *command, "shop floor")
    assert (away.status, "cannot be reached: " in away.err) == (2, True), away.err


def observation(trace: str, own: str, said: str) -> bytes:
    row = langfuse_observations(snake=True)[0] | {"trace_id": trace, "id": own}
    return _exports.span_of_observation(
        row | ({"level": "ERROR", "status_message": said} if said else {}), _exports.Tracing()
    )


def langsmith_run(trace: str, own: str, said: str) -> bytes:
    row = langsmith_runs()[0] | {"trace_id": trace, "id": own, "error": said or None}
    return _exports.span_of_run(row, _exports.Tracing())


@pytest.mark.parametrize("written", [observation, langsmith_run])
def test_a_failed_step_keeps_its_words_and_an_id_of_zeros_joins_nothing(
    written: Callable[[str, str, str], bytes],
) -> None:
    def span(trace: str, own: str, said: str = "") -> dict[str, Any]:
        (export,) = json.loads(written(trace, own, said))["resourceSpans"]
        (found,) = export["scopeSpans"][0]["spans"]
        assert isinstance(found, dict)
        return found

    assert span("t", "s", "the index is gone")["status"] == {"code": 2, "message": "the index is gone"}
    assert span("t", "s")["status"] == {}
    for trace, own in (("0" * 32, "0" * 16), ("t", "s"), ("AB" * 16, "cd" * 8)):
        made = span(trace, own)
        for key, size in (("traceId", 32), ("spanId", 16)):
            assert len(made[key]) == size and int(made[key], 16)


def test_the_plan_says_what_there_is_and_judges_nothing(steelyard: Steelyard, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    write(folder / "a.jsonl", langsmith_runs()[:2])
    write(folder / "b.jsonl", langsmith_runs()[2:])
    (folder / "c.jsonl").write_text('{"question": "Why?", "answer": "So.", "contexts": ["So."], "id": "1"}\n')
    db = tmp_path / "s.db"
    done = steelyard("backfill", folder, "--db", db, "--plan", columns=200)
    assert done.status == 0
    assert "2 turns found" in done.err
    assert "asks nobody" in done.err
    priced = steelyard(
        "backfill", folder, "--db", db, "-j", "openai", "--base-url", "http://127.0.0.1:9/v1", "--plan"
    )
    assert "requests" in priced.err
    assert not db.exists()
    refused = steelyard("backfill", folder, "--db", db, "-j", "openai", "--base-url", "http://127.0.0.1:9/v1")
    assert (refused.status, "--yes" in refused.err) == (2, True)


def test_an_otlp_file_that_is_cut_short_gives_the_turns_before(steelyard: Steelyard, tmp_path: Path) -> None:
    from collect.parts import otlp_json, turn_spans

    path = tmp_path / "t.jsonl"
    whole = [otlp_json(turn_spans()), otlp_json(turn_spans(question="Which country is Paris in?"))]
    path.write_bytes(whole[0] + b"\n" + whole[1] + b"\n" + whole[0][:300])
    done = steelyard("backfill", path, "--db", tmp_path / "s.db", "--metrics", "faithfulness", columns=200)
    assert done.status == 1
    assert "line 3: not JSON" in done.err
    assert len(list(read_evaluations(tmp_path / "s.db"))) == 2
