"""One tracer beside one framework: every way in, in both orders of set-up, in every mode; told as JSON lines.

Run as a program, since tracers are switched on for a whole process. Each arrangement runs in a fork of it, so
that frameworks are imported once. For each tenant, a line counts where a score of its turn would go: `root`
(the outermost span of its own run), `part` (another span of its own run), `own` (the application's own span
around the turn), `none`, `crossed`; or `missing`, if there is no record of the turn at all.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tracers.apps import APPS, MODES, NAME, tenants
from tracers.switching import TRACERS, Key, Tracer

ORDERS = ("before", "after")


class Receiver:
    """Takes turns as a Monitor does."""

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def submit(self, turn: Any, /) -> None:
        self.taken.append(turn)

    def records(self) -> Iterator[Any]:
        for turn in self.taken:
            record = turn.build() if hasattr(turn, "build") else turn
            if record is not None:
                yield record


class Ours:
    """Steelyard, switched on in one way."""

    def __init__(self, framework: str, way: str) -> None:
        self.way, self.framework = way, framework
        self.receiver = Receiver()
        self.processor: Any = None
        self.callbacks: list[Any] = []
        if way == "processor":
            from steelyard_opentelemetry import EvaluationSpanProcessor

            self.processor = EvaluationSpanProcessor(self.receiver, quiet=0.2)
        elif framework != "llamaindex":
            import steelyard_langchain

            if way == "attach":
                steelyard_langchain.attach(self.receiver)
            else:
                self.callbacks = [steelyard_langchain.CallbackHandler(self.receiver)]
        else:
            import steelyard_llamaindex

            if way == "attach":
                steelyard_llamaindex.instrument(self.receiver)
            else:
                from llama_index.core import Settings
                from llama_index.core.callbacks import CallbackManager

                Settings.callback_manager = CallbackManager(
                    [steelyard_llamaindex.CallbackHandler(self.receiver)]
                )


def arrange(tracer: str, framework: str, way: str, order: str, around: str, modes: list[str]) -> None:
    """Set one arrangement up and run the modes in it."""
    kind = "langchain" if framework == "langgraph" else framework
    ours = Ours(framework, way) if order == "before" else None
    theirs = TRACERS[tracer][kind]()
    ours = ours or Ours(framework, way)
    if ours.processor is not None and theirs.provider is not None:
        theirs.provider.add_span_processor(ours.processor)
    callbacks = [*ours.callbacks, *theirs.callbacks]
    app = APPS[framework](lambda: callbacks if order == "before" else callbacks[::-1])
    own: dict[Key, str] = {}
    for mode in modes:
        already = len(ours.receiver.taken)
        names = tenants(list(MODES).index(mode))
        MODES[mode](app, _around(around, theirs, own), names)
        if ours.processor is not None:
            theirs.spans()
            ours.processor.force_flush(5_000)
        spans = theirs.spans()
        places = dict.fromkeys(names, "missing")
        taken = Receiver()
        taken.taken = ours.receiver.taken[already:]
        for record in taken.records():
            if (name := NAME.search(record.question or "")) is not None and name[0] in places:
                places[name[0]] = _place(name[0], record, spans, own)
        cell = {
            "tracer": tracer,
            "framework": framework,
            "way": way,
            "order": order,
            "around": around,
            "mode": mode,
        }
        sys.stdout.write(json.dumps({**cell, "places": Counter(places.values())}) + "\n")


def _around(around: str, theirs: Tracer, own: dict[Key, str]) -> Any:
    if around == "none":
        return lambda tenant: nullcontext()

    @contextmanager
    def span(tenant: str) -> Iterator[None]:
        from opentelemetry import trace

        tracer = (theirs.provider or trace).get_tracer("shop")
        with tracer.start_as_current_span("POST /ask") as opened:
            context = opened.get_span_context()
            own[f"{context.trace_id:032x}", f"{context.span_id:016x}"] = tenant
            yield

    return span


def _place(tenant: str, record: Any, spans: Any, own: dict[Key, str]) -> str:
    trace = record.trace
    if ("run", str(trace.run_id)) in spans:  # the tracer has LangChain's own ids
        _, text = spans["run", trace.run_id]
        return "root" if tenant in text else "crossed"
    if trace.span_id is None:
        return "none"
    key = (trace.trace_id, trace.span_id)
    if key in own:
        return "own" if own[key] == tenant else "crossed"
    if key not in spans:
        return "none" if trace.trace_id is None else "unknown"
    parent, _ = spans[key]
    if _names(key, spans) != {tenant}:
        return "crossed"
    # A span that was left current may stand above it, or the application's own.
    return "part" if parent in spans and tenant in NAME.findall(spans[parent][1]) else "root"


def _names(key: Key, spans: Any) -> set[str]:
    """The tenants that a span names, or those below it if it says nothing itself."""
    named = set(NAME.findall(spans[key][1]))
    below = [other for other, (parent, _) in spans.items() if parent == key]
    return named or {name for other in below for name in _names(other, spans)}


def main(tracer: str, framework: str, ways: str, arounds: str, modes: str) -> None:
    """Fork once for each arrangement; what stands in one argument is joined by `+`."""
    for way, order, around in itertools.product(ways.split("+"), ORDERS, arounds.split("+")):
        child = os.fork()
        if not child:
            status = 1
            try:
                arrange(tracer, framework, way, order, around, modes.split("+"))
                status = 0
            except BaseException:  # noqa: BLE001 - what is left behind is not run in a fork
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{tracer} {framework} {way} {order} {around} failed")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    main(*sys.argv[1:])
