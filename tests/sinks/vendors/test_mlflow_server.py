"""Against a real MLflow server in an environment of its own; skipped where it cannot be installed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from phoenix import NotInstallable, installed, until_it_answers
from servers import free_port
from sinks.making import failed, make_evaluation, make_score
from steelyard.record import TraceRef
from steelyard.sinks import MLflowSink

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_PINNED = ("mlflow==3.17.2", "langchain==1.*")


@pytest.fixture(scope="module")
def mlflow() -> Iterator[str]:
    name, port = "-".join(_PINNED).replace("*", "x"), free_port()
    try:
        # The LangChain recorder has the same environment.
        python = installed(name, *_PINNED, "numpy", "openai", "urllib3")
    except NotInstallable as problem:
        pytest.skip(str(problem))
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        command = [str(python), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "OTEL_"))}
        server = subprocess.Popen(
            command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
        url = f"http://127.0.0.1:{port}"
        try:
            until_it_answers(f"{url}/health", server, Path(log.name))
            yield url
        finally:
            # It has workers of its own, which go on where only the first process is told to end.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(120)


def _traced(url: str) -> TraceRef:
    """A trace of two spans in the server, exported over OTLP; the inner one is to be scored."""
    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"{url}/v1/traces", headers={"x-mlflow-experiment-id": "0"}, timeout=60)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("request"), tracer.start_as_current_span("rag") as scored:
        context = scored.get_span_context()
    provider.shutdown()
    return TraceRef(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")


def _assessments(url: str, ref: TraceRef) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/3.0/mlflow/traces/tr-{ref.trace_id}", timeout=60) as reply:
        found: list[dict[str, Any]] = json.load(reply)["trace"]["trace_info"].get("assessments", [])
    return found


def test_feedback_lands_on_the_scored_span_once(mlflow: str) -> None:
    ref = _traced(mlflow)
    evaluation = make_evaluation("r1", make_score(id="one"), failed(id="two"), trace=ref)
    unsampled = make_evaluation(
        "r2", make_score(id="three"), trace=TraceRef(trace_id="0" * 31 + "1", sampled=False)
    )

    async def write() -> None:
        sink = MLflowSink(mlflow, timeout=60)
        await sink.write([evaluation, unsampled])
        await sink.aclose()
        assert (sink.counts.written, dict(sink.counts.left_out)) == (2, {"unsampled": 1})

    for _ in range(2):  # the second time must not add anything
        asyncio.run(write())
    found = {one["assessment_name"]: one for one in _assessments(mlflow, ref)}
    assert len(_assessments(mlflow, ref)) == 2
    assert {one["span_id"] for one in found.values()} == {ref.span_id}
    faithful = found["faithfulness"]
    assert faithful["feedback"]["value"] == 0.75
    assert faithful["rationale"] == "One of two claims is not supported."
    assert faithful["metadata"]["steelyard.evaluation.id"] == "one"
    assert "error" in found["answer_relevancy"]["feedback"]
