"""Beside a vendor's own tracing: the span that it keeps for a run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_parts import QUESTION, Receiver, lcel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from steelyard.record import TraceRef
from steelyard_langchain import CallbackHandler, _neighbours
from steelyard_langchain._neighbours import are_tracers_active, trace_of_run

# On the lowest versions that are supported there is no tracer beside us.
LangChainInstrumentor = pytest.importorskip("openinference.instrumentation.langchain").LangChainInstrumentor


class Asking(BaseCallbackHandler):
    """Asks at the root's start, at the start of runs below it and at the root's end, until one answers."""

    def __init__(self) -> None:
        self.root: UUID | None = None
        self.found: TraceRef | None = None

    def _ask(self) -> None:
        if self.found is None and self.root is not None:
            self.found = trace_of_run(self.root)

    def on_chain_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        if parent_run_id is None:
            self.root = run_id
        self._ask()

    def on_chain_end(self, *args: Any, **_: Any) -> None:
        self._ask()


def chain() -> Runnable[str, Any]:
    return RunnableLambda(lambda text: text) | FakeListChatModel(responses=["Paris."])


def invoke(handler: BaseCallbackHandler) -> None:
    chain().invoke("Where?", config={"callbacks": [handler]})


def ainvoke(handler: BaseCallbackHandler) -> None:
    asyncio.run(chain().ainvoke("Where?", config={"callbacks": [handler]}))


def stream(handler: BaseCallbackHandler) -> None:
    list(chain().stream("Where?", config={"callbacks": [handler]}))


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    yield exporter
    LangChainInstrumentor().uninstrument()
    provider.shutdown()


@pytest.mark.parametrize("run", [invoke, ainvoke, stream])
def test_openinference_tells_the_span_of_a_run(spans: InMemorySpanExporter, run: Any) -> None:
    asking = Asking()
    run(asking)
    (root,) = [span for span in spans.get_finished_spans() if span.parent is None]
    assert root.context is not None
    assert asking.found == TraceRef(
        trace_id=f"{root.context.trace_id:032x}",
        span_id=f"{root.context.span_id:016x}",
        framework="langchain",
    )


def test_records_carry_the_span_of_their_root(spans: InMemorySpanExporter, receiver: Receiver) -> None:
    lcel().invoke(QUESTION, {"callbacks": [CallbackHandler(receiver)]})
    (root,) = [span for span in spans.get_finished_spans() if span.parent is None]
    trace = receiver.record.trace
    assert root.context is not None and trace is not None
    assert trace.trace_id == f"{root.context.trace_id:032x}"
    assert trace.span_id == f"{root.context.span_id:016x}"
    assert trace.run_id == receiver.record.id


def test_runs_at_the_same_time_have_their_own_spans(spans: InMemorySpanExporter) -> None:
    asking = [Asking() for _ in range(20)]

    async def together() -> None:
        await asyncio.gather(*(chain().ainvoke("Where?", config={"callbacks": [one]}) for one in asking))

    asyncio.run(together())
    found = {one.found.trace_id for one in asking if one.found}
    assert len(found) == 20
    roots = {span.context.trace_id for span in spans.get_finished_spans() if span.context and not span.parent}
    assert found == {f"{trace_id:032x}" for trace_id in roots}


def test_an_unsampled_span_is_told_as_such() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF)
    LangChainInstrumentor().instrument(tracer_provider=provider)
    asking = Asking()
    invoke(asking)
    LangChainInstrumentor().uninstrument()
    assert asking.found is not None
    assert asking.found.sampled is False


def test_without_a_tracer_there_is_none_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    asking = Asking()
    invoke(asking)
    assert asking.found is None
    assert trace_of_run(uuid4()) is None
    assert trace_of_run("not an id") is None
    assert capsys.readouterr() == ("", "")


def test_a_tracer_that_raises_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @staticmethod
        def LangChainInstrumentor() -> Any:
            raise RuntimeError("no")

    monkeypatch.setitem(sys.modules, "openinference.instrumentation.langchain", Broken)
    assert trace_of_run(uuid4()) is None


def test_tracers_are_active_once_the_program_has_imported_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert are_tracers_active()
    monkeypatch.delitem(sys.modules, "openinference.instrumentation.langchain")
    assert not are_tracers_active()


_PINNED = {
    "mlflow": ["mlflow==3.17.2", "langchain==1.*"],
    "langfuse": ["langfuse==5.0.4", "langchain==1.*"],
    "ddtrace": ["ddtrace==4.16.0", "langchain==1.*"],
}
_PROGRAMS = {
    "mlflow": """
import mlflow
mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.langchain.autolog()
def truth():
    mlflow.flush_trace_async_logging()
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
    (root,) = [span for span in trace.data.spans if span.parent_id is None]
    return trace.info.trace_id.removeprefix("tr-"), root.span_id
""",
    "langfuse": """
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
Langfuse(public_key="pk", secret_key="sk", host="http://127.0.0.1:1")
beside, spans = [CallbackHandler()], InMemorySpanExporter()
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
def truth():
    root = [span for span in spans.get_finished_spans() if span.parent is None][-1]
    return f"{root.context.trace_id:032x}", f"{root.context.span_id:016x}"
""",
    "ddtrace": """
import ddtrace
from ddtrace.trace import TraceFilter
ended = []
class Keep(TraceFilter):
    def process_trace(self, trace):
        ended.extend(span for span in trace if span.parent_id is None)
        return None
ddtrace.tracer.configure(trace_processors=[Keep()])
ddtrace.patch(langchain=True)
def truth():
    return f"{ended[-1].trace_id:032x}", f"{ended[-1].span_id:016x}"
""",
}
_RUN = """
import asyncio, importlib.util, json, os, sys
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
sys.path.insert(0, {src!r})
spec = importlib.util.spec_from_file_location("neighbours", {module!r})
neighbours = importlib.util.module_from_spec(spec)
spec.loader.exec_module(neighbours)
beside = []
{program}
class Asking(BaseCallbackHandler):
    root = found = None
    def ask(self):
        self.found = self.found or neighbours.trace_of_run(self.root)
    def on_chain_start(self, *_, run_id, parent_run_id=None, **__):
        self.root = self.root or run_id
        self.ask()
    def on_chain_end(self, *_, **__):
        self.ask()
results = []
for asynchronous in (False, True):
    asking = Asking()
    config = {{"callbacks": [asking, *beside]}}
    chain = RunnableLambda(lambda text: text) | FakeListChatModel(responses=["Paris."])
    asyncio.run(chain.ainvoke("Where?", config)) if asynchronous else chain.invoke("Where?", config)
    results.append([[asking.found.trace_id, asking.found.span_id] if asking.found else None, truth()])
print("\\n" + json.dumps(results), flush=True)
os._exit(0)
"""


def environment(name: str) -> Path:
    """The interpreter of an environment with a vendor's tracer in it, made once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard-tests"
    folder = cache / f"{'-'.join(_PINNED[name])}-py{sys.version_info.major}{sys.version_info.minor}".replace(
        "*", "x"
    )
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        needed = [*_PINNED[name], "numpy", "openai", "urllib3"]
        command = [str(python), "-m", "pip", "install", "-q", *needed]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"{name} cannot be installed: {installed.stderr.strip()[-200:]}")
        done.touch()
    return python


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", _PINNED)
def test_real_tracers_tell_the_span_of_a_run(name: str, tmp_path: Path) -> None:
    import steelyard

    src = str(Path(steelyard.__file__).parents[1])
    script = _RUN.format(src=src, module=_neighbours.__file__, program=_PROGRAMS[name])
    env = {**os.environ, "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false"}
    done = subprocess.run(
        [str(environment(name)), "-c", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for found, truth in json.loads(done.stdout.splitlines()[-1]):
        assert found == truth
