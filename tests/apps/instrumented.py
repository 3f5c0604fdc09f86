"""Runs all applications of a framework under the real instrumentors of one kind, in a process of its own.

Instrumentors patch whole libraries and do not take everything back. One processor sees all runs; which run a
record belongs to is told by its trace.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import logging
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from apps.app import App, Framework
from apps.corpus import apps_of
from apps.recorders import check_shown, ways_under
from fakes.receiver import Receiver
from steelyard.record import record_to_dict
from steelyard_opentelemetry import EvaluationSpanProcessor


class TracesSeen(SpanProcessor):
    """Which traces began while an application ran."""

    def __init__(self) -> None:
        self.owner: dict[str, str] = {}
        self.running = ""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.owner.setdefault(f"{span.context.trace_id:032x}", self.running)


@contextlib.contextmanager
def instrumented(kind: str, framework: str, provider: TracerProvider) -> Iterator[None]:
    """Instrument a framework."""
    made: Any
    if kind == "openinference" and framework == "langchain":
        from openinference.instrumentation.langchain import LangChainInstrumentor as made
    elif kind == "openinference":
        from openinference.instrumentation.llama_index import LlamaIndexInstrumentor as made
    elif framework == "langchain":
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor as made
    else:
        # It imports `llama_index.llms`, which any LLM package of LlamaIndex would bring.
        folder = tempfile.mkdtemp()
        (Path(folder) / "llama_index" / "llms").mkdir(parents=True)
        sys.path.append(folder)
        from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor as made
    instrumentor = made()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    yield
    instrumentor.uninstrument()


def main(kind: str, framework: Framework, ways: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    receiver, seen, provider = Receiver(), TracesSeen(), TracerProvider()
    processor = EvaluationSpanProcessor(receiver, quiet=2.0, ttl=5.0)
    provider.add_span_processor(seen)
    provider.add_span_processor(processor)
    failed: dict[str, str] = {}
    every = ways == "every"
    runs = [(app, way) for app in apps_of(framework) for way in ways_under(app, kind, every=every)]
    with instrumented(kind, framework, provider):
        for app, way in runs:
            seen.running = key_of(app, way)
            try:
                # OpenLLMetry leaves a span current after `batch`: what comes next would be below it.
                check_shown(app, contextvars.copy_context().run(app.run, {}, way))
            except Exception as error:  # noqa: BLE001 - told to the test that reads this
                failed[seen.running] = f"{type(error).__name__}: {error}"
    processor.shutdown()
    records, causes = defaultdict(list), defaultdict(list)
    for record in receiver.records:
        records[seen.owner.get(record.trace_id or "", "")].append(record_to_dict(record))
    for diagnosis in processor.diagnoses:
        causes[seen.owner.get(diagnosis.trace_id, "")].append(str(diagnosis))
    for app, way in runs:
        key = key_of(app, way)
        told = {"run": key, "failed": failed.get(key), "records": records[key], "diagnoses": causes[key]}
        sys.stdout.write(json.dumps(told) + "\n")


def key_of(app: App, way: str) -> str:
    """The name of a run."""
    return f"{app.name}-{way}"


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
