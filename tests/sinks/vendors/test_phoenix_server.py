"""Against a real Phoenix server in an environment of its own; skipped where it cannot be installed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from sinks.making import failed, make_evaluation, make_score
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import Evaluation, Verdict
from steelyard.sinks import PhoenixSink

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_VERSION = "20.26.1"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard-tests"


def _python() -> Path:
    """The interpreter of an environment with Phoenix in it, made once."""
    folder = _CACHE / f"phoenix-{_VERSION}-py{sys.version_info.major}{sys.version_info.minor}"
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", f"arize-phoenix=={_VERSION}"]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"arize-phoenix cannot be installed: {installed.stderr.strip()[-200:]}")
        done.touch()
    return python


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def phoenix() -> Iterator[str]:
    python, port = _python(), _free_port()
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PHOENIX_", "OTEL_"))}
        env |= {
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(_free_port()),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(python), "-m", "phoenix.server.main", "serve"]
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(
                lambda: _get(f"{url}/healthz", parse=False),
                600,
                lambda: server.poll() is None,
                Path(log.name),
            )
            yield url
        finally:
            server.terminate()
            server.wait(120)


def _wait(look: Callable[[], Any], seconds: float, alive: Callable[[], bool], log: Path) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        try:
            if found := look():
                return found
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"Phoenix did not answer: {log.read_text()[-2000:]}")


def _get(url: str, *, parse: bool = True) -> Any:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.load(reply) if parse else reply.status == 200


def _traced(url: str) -> tuple[TraceRef, str]:
    """A RAG trace in the server, exported over OTLP."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("app")
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "first",
        "retrieval.documents.1.document.content": "second",
    }
    with (
        tracer.start_as_current_span("rag", attributes={"openinference.span.kind": "CHAIN"}) as root,
        tracer.start_as_current_span("docs", attributes=documents) as retrieval,
    ):
        pass
    provider.shutdown()
    context = root.get_span_context()
    ref = TraceRef(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")
    return ref, f"{retrieval.get_span_context().span_id:016x}"


def _write(sink: PhoenixSink, evaluation: Evaluation) -> None:
    async def run() -> None:
        await sink.write([evaluation])
        await sink.aclose()

    asyncio.run(run())


def _graphql(url: str, query: str) -> Any:
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["data"]


def _annotations(url: str) -> list[Any]:
    try:
        found: list[Any] = _get(url)["data"]
    except urllib.error.HTTPError as error:
        assert error.code == 404  # the span has not been written yet
        return []
    return found


def _eventually(look: Callable[[], Any], seconds: float = 300) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    return found


def test_annotations_appear_on_spans_and_documents_once(phoenix: str) -> None:
    ref, retrieval = _traced(phoenix)
    contexts = (Context(text="first"), Context(text="second"))
    verdicts = (
        Verdict(about="first", kind="useful", value=True, reason="says it"),
        Verdict(about="second", kind="useful", value=False, probability=0.25),
    )
    scores = (
        make_score(id="one"),
        failed(id="two"),
        make_score("context_utilization", 1.0, id="three", verdicts=verdicts),
    )
    record = Record(id="r1", contexts=contexts, metadata={"retrieval_span": retrieval}, trace=ref)
    evaluation = make_evaluation("r1", *scores, record=record, trace=ref)
    _write(PhoenixSink(phoenix, timeout=60), evaluation)
    _write(PhoenixSink(phoenix, timeout=60), evaluation)

    url = f"{phoenix}/v1/projects/default/span_annotations?span_ids={ref.span_id}"
    _eventually(lambda: len(_annotations(url)) >= 3)
    time.sleep(3)  # the second write must not add anything
    found = {one["name"]: one for one in _annotations(url)}
    assert sorted(one["name"] for one in _annotations(url)) == [
        "answer_relevancy",
        "context_utilization",
        "faithfulness",
    ]
    assert found["faithfulness"]["result"] == {
        "score": 0.75,
        "label": "pass",
        "explanation": "One of two claims is not supported.",
    }
    assert found["faithfulness"]["identifier"] == "one"
    assert found["answer_relevancy"]["result"]["score"] is None
    assert found["answer_relevancy"]["result"]["label"] == "failed"

    query = """{ projects { edges { node { spans(first: 50) { edges { node {
        spanId documentEvaluations { name score label documentPosition } } } } } } } }"""
    spans = {
        span["node"]["spanId"]: span["node"]["documentEvaluations"]
        for project in _graphql(phoenix, query)["projects"]["edges"]
        for span in project["node"]["spans"]["edges"]
    }
    assert sorted(
        (one["documentPosition"], one["name"], one["score"], one["label"]) for one in spans[retrieval]
    ) == [
        (0, "context_utilization", 1.0, "useful"),
        (1, "context_utilization", 0.0, "not useful"),
    ]
    query = """{ projects { edges { node { documentEvaluationSummary(evaluationName: "context_utilization") {
        averagePrecision hitRate } } } } }"""
    (project,) = _graphql(phoenix, query)["projects"]["edges"]
    assert project["node"]["documentEvaluationSummary"] == {"averagePrecision": 0.5, "hitRate": 1.0}
