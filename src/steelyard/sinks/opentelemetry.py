"""Results into OpenTelemetry: an event per score, an evaluation span per record, and metrics.

Needs only `opentelemetry-api`. Everything refers to the SpanContext that came in with the record, so that it
works after the scored span has ended and in another thread. Nothing here uses the current context: the
Monitor's own is marked as not to be recorded.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from opentelemetry import metrics, trace
from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger_provider
from opentelemetry.context import Context

import steelyard.sinks._attributes as names
from steelyard import __version__ as VERSION
from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import error_words
from steelyard._internal.threads import DaemonExecutor, ThreadHangs
from steelyard.errors import SinkError
from steelyard.record import TraceRef
from steelyard.recording import unrecorded
from steelyard.results import ObservedMonitor
from steelyard.results.counts import ScoreCounts, ScoreLedger, key_of
from steelyard.scores import Evaluation, Score
from steelyard.sinks._attributes import (
    diagnosis_attributes,
    event_attributes,
    span_attributes,
    turn_attributes,
    usage_attributes,
    written_time,
)
from steelyard.sinks.monitoring import Instruments, observe_monitor

_log = SafeLogger("steelyard.sinks")
# What is delivered twice comes again within seconds, after a write that timed out.
_REMEMBERED = 20_000


def context_of(ref: TraceRef | None) -> Context | None:
    """A fresh context in which the span a record came from is current; None where it came with none."""
    if ref is None or not ref.trace_id or not ref.span_id:
        return None
    try:
        span_context = trace.SpanContext(
            trace_id=int(ref.trace_id, 16),
            span_id=int(ref.span_id, 16),
            is_remote=False,
            trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED if ref.sampled else 0),
        )
    except ValueError:
        return None
    if not span_context.is_valid:
        return None
    return trace.set_span_in_context(trace.NonRecordingSpan(span_context), Context())


class OpenTelemetrySink:
    """Emits `gen_ai.evaluation.result` events, evaluation spans and metrics.

    Events and metrics belong to the scored span. The evaluation span begins a trace of its own and links to
    the scored span: below it, the seconds that judging took would count as the application's latency. Results
    written before are not emitted again (of the last 20,000). What could not be emitted is in `undelivered`,
    by signal and reason; `counts` says of each Score whether any signal got out.
    """

    name = "opentelemetry"

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        explanations: bool = True,
        new_trace: bool = True,
        expected: bool = True,
    ) -> None:
        """Providers not given here are the global ones, even if they are set later.

        Args:
            tracer_provider: For evaluation spans.
            logger_provider: For events.
            meter_provider: For metrics.
            explanations: Whether to write the judges' words, which may quote the turn.
            new_trace: Put each evaluation span in a trace of its own, with a link to the scored span. False
                puts it below the scored span, where its seconds count as part of the host's trace.
            expected: Whether to warn, once, if there is no provider at all; `auto` does not, since nobody has
                asked for this sink.
        """
        self._tracer_provider = tracer_provider
        self._logger_provider = logger_provider
        self._meter_provider = meter_provider
        self._explanations = explanations
        self._new_trace = new_trace
        self._expected = expected
        # In one thread: the SDK's exporters may block, and events of a turn keep their order.
        self._executor = DaemonExecutor(1, name="steelyard-opentelemetry")
        self._emitted: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._undelivered: Counter[str] = Counter()
        self._missed: set[tuple[str, str]] = set()
        self._ledger = ScoreLedger(self.name)
        self._instruments: Instruments | None = None
        # Weak, since a provider's end is the host's affair.
        self._alive: WeakSet[Any] = WeakSet()
        for provider in (tracer_provider, logger_provider, meter_provider):
            self._is_shut_down(provider)

    @property
    def counts(self) -> ScoreCounts:
        """What became of the Scores this sink was given: one is written if any signal of it got out."""
        return self._ledger.counts

    @property
    def undelivered(self) -> Mapping[str, int]:
        """How many events, spans and records' metrics did not get out, by reason."""
        return dict(self._undelivered)

    def observe(self, monitor: ObservedMonitor) -> None:
        """Report what the Monitor says of itself, to where this sink's metrics go."""
        observe_monitor(monitor, meter_provider=self._meter_provider)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Emit them in a thread of this sink's own, since exporters may block.

        Raises:
            SinkError: If an exporter still hangs from an earlier write.
        """
        try:
            await self._executor.run(self._emit, evaluations)
        except ThreadHangs as error:
            raise SinkError(str(error), cause="hangs") from None

    async def aclose(self) -> None:
        """Let the thread go; exporting what was emitted is the providers' business."""
        self._executor.shutdown()

    def _emit(self, evaluations: Sequence[Evaluation]) -> None:
        with unrecorded():
            for evaluation in evaluations:
                self._emit_one(evaluation)

    def _emit_one(self, evaluation: Evaluation) -> None:
        key = (evaluation.record_id, *(score.id or score.metric for score in evaluation.scores))
        if key in self._emitted:
            return
        # Before emitting: a processor that raises halfway must not make the rest come twice.
        self._emitted[key] = None
        if len(self._emitted) > _REMEMBERED:
            self._emitted.popitem(last=False)
        scored = context_of(evaluation.trace)
        context = _nowhere() if scored is None else scored
        # What a screen alone has seen is not judged: only what it cost is told.
        if evaluation.scores or not evaluation.screen:
            with self._counted("span"):
                context = self._emit_span(evaluation, scored)
        with self._counted("event"):
            self._emit_events(evaluation, context)
        with self._counted("metrics"):
            self._record_metrics(evaluation, context)
        self._settle(evaluation)

    def _settle(self, evaluation: Evaluation) -> None:
        missed, self._missed = self._missed, set()
        reasons = {reason for _, reason in missed}
        keys = [key_of(score, evaluation) for score in evaluation.scores]
        if {signal for signal, _ in missed} != {"span", "event", "metrics"}:
            self._ledger.settle_all(keys, "written")
        elif reasons == {"no_provider"}:
            self._ledger.settle_all(keys, "left_out", "no_provider")
        else:
            # The name that sorts first, so that the same failures always give the same reason.
            self._ledger.settle_all(keys, "lost", min(reasons - {"no_provider"}))
        if self._expected or reasons != {"no_provider"}:
            self._ledger.warn_if_nothing_arrives()

    def _emit_span(self, evaluation: Evaluation, scored: Context | None) -> Context:
        """Returns the context that the scores belong to: the scored span's, else the new span's."""
        provider = self._tracer_provider or trace.get_tracer_provider()
        if scored is not None and evaluation.trace is not None and not evaluation.trace.sampled:
            # A span that begins a trace may be sampled again; this one would link to nothing.
            self._miss("span", provider, "scored_span_unsampled")
            return scored
        links = [] if scored is None else [trace.Link(trace.get_current_span(scored).get_span_context())]
        # The times of judging itself: the span is made afterwards.
        end = round(written_time(evaluation.evaluated_at) * 1e9)
        span = provider.get_tracer(names.SCOPE, VERSION).start_span(
            "evaluation",
            context=_nowhere() if scored is None or self._new_trace else scored,
            links=links,
            start_time=end - round(evaluation.duration * 1e9),
            attributes={
                names.OPERATION: "evaluation",
                names.SPAN_KIND: "EVALUATOR",
                **turn_attributes(evaluation),
                **diagnosis_attributes(evaluation),
                **usage_attributes(evaluation),
                **span_attributes(evaluation.scores, explanations=self._explanations),
            },
        )
        if not span.is_recording():
            self._miss("span", provider, "not_sampled")
        elif self._is_shut_down(provider):
            self._miss("span", provider, "provider_shut_down")
        _mark_if_failed(span, evaluation.scores)
        span.end(end)
        return trace.set_span_in_context(span, Context()) if scored is None else scored

    def _emit_events(self, evaluation: Evaluation, context: Context) -> None:
        provider = self._logger_provider or get_logger_provider()
        logger = provider.get_logger(names.SCOPE, VERSION)
        for score in evaluation.scores:
            if not logger.enabled(
                context=context, severity_number=SeverityNumber.INFO, event_name=names.EVENT
            ):
                self._miss("event", provider, "disabled")
                continue
            if self._is_shut_down(provider):
                self._miss("event", provider, "provider_shut_down")
            logger.emit(
                timestamp=round(written_time(evaluation.evaluated_at) * 1e9),
                context=context,
                severity_number=SeverityNumber.INFO,
                event_name=names.EVENT,
                attributes={
                    **turn_attributes(evaluation),
                    **diagnosis_attributes(evaluation),
                    **event_attributes(score, explanations=self._explanations),
                },
            )

    def _record_metrics(self, evaluation: Evaluation, context: Context) -> None:
        provider = self._meter_provider or metrics.get_meter_provider()
        if _is_api_only(provider):
            self._miss("metrics", provider, "")
            return
        if self._is_shut_down(provider):
            self._miss("metrics", provider, "provider_shut_down")
            return
        # From here on it is the same one: a global provider is set once.
        if self._instruments is None:
            self._instruments = Instruments(provider.get_meter(names.SCOPE, VERSION))
        self._instruments.record(evaluation, context)

    def _miss(self, signal: str, provider: object, reason: str) -> None:
        reason = "no_provider" if _is_api_only(provider) else reason
        self._undelivered[f"{signal}:{reason}"] += 1
        self._missed.add((signal, reason))

    @contextmanager
    def _counted(self, signal: str) -> Iterator[None]:
        """A processor of the host's may raise; that must not cost the other signals."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the host's processors may raise anything
            reason = f"{signal}:{type(error).__name__}"
            if not self._undelivered[reason]:
                _log.warning(
                    "OpenTelemetry did not take a %s: %s; further ones are only counted",
                    signal,
                    error_words(error),
                )
            self._undelivered[reason] += 1
            self._missed.add((signal, type(error).__name__))

    def _is_shut_down(self, provider: Any) -> bool:
        """Whether a provider has been shut down since it was first seen.

        The API does not tell. The SDK lets go of its exit handler (tracer, logger) or sets a flag (meter);
        where a provider has neither, it counts as running.
        """
        if getattr(provider, "_shutdown", False) is True:
            return True
        handler: Callable[[], None] | None = getattr(provider, "_atexit_handler", None)
        if handler is None:
            handler = getattr(provider, "_at_exit_handler", None)
        if handler is not None:
            self._alive.add(provider)
        return handler is None and provider is not None and provider in self._alive


def _nowhere() -> Context:
    """A context without a span. An empty one would do as little: the API takes the current one instead."""
    return trace.set_span_in_context(trace.INVALID_SPAN, Context())


def _mark_if_failed(span: trace.Span, scores: Sequence[Score]) -> None:
    if not scores or any(score.status != "failed" for score in scores):
        return
    cause = scores[0].cause or ""
    span.set_attribute(names.ERROR_TYPE, cause)
    span.set_status(trace.StatusCode.ERROR, f"every metric failed: {cause}")


def _is_api_only(provider: object) -> bool:
    """Whether it is one of the API's own placeholders, which do nothing."""
    return type(provider).__module__.startswith(
        ("opentelemetry.trace", "opentelemetry._logs", "opentelemetry.metrics")
    )
