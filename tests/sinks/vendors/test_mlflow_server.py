"""Against a real MLflow server in an environment of its own; skipped where it cannot be installed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from sinks.making import failed, make_evaluation, make_score
from steelyard.record import TraceRef
from steelyard.sinks import MLflowSink

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_PINNED = ("mlflow==3.17.2", "langchain==1.*")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard-tests"


def _python() -> Path:
    """The interpreter of an environment with MLflow in it, made once; the LangChain recorder has the same."""
    name = f"{'-'.join(_PINNED)}-py{sys.version_info.major}{sys.version_info.minor}"
    folder = _CACHE / name.replace("*", "x")
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", *_PINNED, "numpy", "openai", "urllib3"]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"mlflow cannot be installed: {installed.stderr.strip()[-200:]}")
        done.touch()
    return python


@pytest.fixture(scope="module")
def mlflow() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        command = [str(_python()), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "OTEL_"))}
        server = subprocess.Popen(
            command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_it_answers(f"{url}/health", server, Path(log.name))
            yield url
        finally:
            # It has workers of its own, which go on where only the first process is told to end.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(120)


def _wait_until_it_answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"MLflow did not answer: {log.read_text()[-2000:]}")


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
