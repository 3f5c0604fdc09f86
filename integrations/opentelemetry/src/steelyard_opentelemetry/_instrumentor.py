"""Recording under `opentelemetry-instrument`, and which instrumentors and switches this environment has."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from typing import Any

from steelyard._internal.logs import SafeLogger
from steelyard.recording import SWITCH, BaseInstrumentor, is_switched_on
from steelyard_opentelemetry.dialects._content import CONTENT, is_on

WORDS = frozenset({"1", "true", "on", "yes", "all", "opentelemetry"})
"""What turns recording on in `STEELYARD_INSTRUMENT`."""


class SteelyardInstrumentor(BaseInstrumentor):
    """What the `opentelemetry_instrumentor` entry point names."""

    words = WORDS
    log = SafeLogger("steelyard.opentelemetry")

    def instrumentation_dependencies(self) -> Collection[str]:
        """Nothing: spans come from other instrumentors."""
        return ()

    def _start(self, options: Mapping[str, Any]) -> Callable[[], object] | None:
        from opentelemetry import trace

        provider = options.get("tracer_provider") or trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            self.log.warning(
                "%s is set, but no OpenTelemetry SDK is configured, so that there are no spans: install "
                "opentelemetry-distro beside opentelemetry-sdk, or set a TracerProvider up in code",
                SWITCH,
            )
            return None
        from steelyard_opentelemetry._recorder import EvaluationSpanProcessor

        processor = EvaluationSpanProcessor(options.get("monitor"))
        provider.add_span_processor(processor)
        _read_logs(options.get("logger_provider"))
        return processor.shutdown


def _read_logs(provider: Any) -> None:
    """Content may come as log records; without a LoggerProvider of the SDK there are none."""
    from opentelemetry._logs import get_logger_provider

    provider = provider or get_logger_provider()
    if hasattr(provider, "add_log_record_processor"):
        from steelyard_opentelemetry._hook import ContentLogRecordProcessor

        provider.add_log_record_processor(ContentLogRecordProcessor())


_LIMITS = ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
_DEFAULT_COUNT = 128
_NEIGHBOURS: Mapping[str, str] = {
    "ddtrace": 'scores for spans of its own client need DatadogSink(tracer="ddtrace")',
    "langfuse": "with its CallbackHandler beside ours, scores go to its spans: add the sink langfuse",
    "langsmith": "its runs have LangChain's own ids: add the sink langsmith",
    "mlflow": "with mlflow.langchain.autolog(), scores go to its spans: add the sink mlflow",
    "openinference-instrumentation-langchain": "scores go to its spans (Phoenix): add the sink phoenix",
}
"""Tracing of vendors that runs beside ours, and what to do so that scores land there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing that was looked at."""

    ok: bool
    """Whether it lets turns be recorded."""
    what: str
    """What was found, and what to do about it."""


def check_environment(environ: Mapping[str, str] | None = None) -> list[Check]:
    """Look at the installed instrumentors and at the environment variables that decide what they write.

    Args:
        environ: The variables; those of this process if not given.
    """
    variables = os.environ if environ is None else environ
    installed = _installed()
    looks: tuple[Callable[[Mapping[str, str], Mapping[str, str]], Iterator[Check]], ...]
    looks = (_sdk, _instrumentors, _content, _limits, _zero_code, _neighbours)
    return [check for look in looks for check in look(installed, variables)]


def other_tracers(environ: Mapping[str, str] | None = None, *, sinks: Collection[str] = ()) -> list[Check]:
    """Look only at vendors' tracing that runs beside ours, and at what scores need to land there.

    Args:
        environ: The variables; those of this process if not given.
        sinks: Names of the sinks that there are; what asks for one of them is not said.
    """
    found = _neighbours(_installed(), os.environ if environ is None else environ)
    return [check for check in found if not check.ok or check.what.rpartition("sink ")[2] not in sinks]


def _installed() -> dict[str, str]:
    found = ((dist.metadata["Name"] or "", dist.version) for dist in distributions())
    return {name.lower().replace("_", "-"): version for name, version in found}


def _sdk(installed: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Check]:
    version = installed.get("opentelemetry-sdk")
    if version is None:
        yield Check(ok=False, what="opentelemetry-sdk is missing: pip install 'steelyard[opentelemetry]'")
    else:
        yield Check(ok=True, what=f"opentelemetry-sdk {version}")
    if is_on(variables.get("OTEL_SDK_DISABLED", "")):
        yield Check(ok=False, what="OTEL_SDK_DISABLED is set, so there are no spans: unset it")
    sampler = variables.get("OTEL_TRACES_SAMPLER", "")
    if sampler.endswith("always_off"):
        yield Check(ok=False, what=f"OTEL_TRACES_SAMPLER={sampler} drops every span: choose another sampler")
    elif sampler and not sampler.startswith("parentbased_"):
        advice = f"choose parentbased_{sampler}"
        what = (
            f"OTEL_TRACES_SAMPLER={sampler} lets official instrumentors write a judge's own calls: {advice}"
        )
        yield Check(ok=False, what=what)
    elif "traceidratio" in sampler:
        share = variables.get("OTEL_TRACES_SAMPLER_ARG", "1.0")
        yield Check(
            ok=True, what=f"OTEL_TRACES_SAMPLER={sampler} ({share}): only sampled traces are recorded"
        )


def _instrumentors(installed: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Check]:
    names = [name for name in installed if _dialect(name)]
    if not names:
        advice = "openinference-instrumentation-langchain, -llama-index or -openai"
        yield Check(
            ok=False, what=f"no instrumentor of a known dialect is installed: add {advice}, for example"
        )
    for name in sorted(names):
        yield Check(ok=True, what=f"{name} {installed[name]} ({_dialect(name)})")


def _dialect(name: str) -> str:
    return next((dialect for dialect, content in CONTENT.items() if content.is_instrumentor(name)), "")


def _content(installed: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Check]:
    for content in CONTENT.values():
        if any(map(content.is_instrumentor, installed)):
            yield from (Check(ok=False, what=what) for what in content.hiding(variables))


def _limits(installed: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Check]:
    name = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
    given = variables.get(name) or variables.get("OTEL_ATTRIBUTE_COUNT_LIMIT") or ""
    count = int(given) if given.isdecimal() else _DEFAULT_COUNT
    if count < _DEFAULT_COUNT:
        yield Check(ok=False, what=f"{name} is {count}; a retrieval of 30 documents needs more than 128")
    elif count == _DEFAULT_COUNT:
        yield Check(
            ok=True, what=f"{name} is 128: raise it if more than about 30 documents are retrieved at once"
        )
    for limit in _LIMITS:
        if variables.get(limit, "").isdecimal():
            what = f"{limit}={variables[limit]} cuts documents, and JSON with them: unset it"
            yield Check(ok=False, what=what)


def _zero_code(installed: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Check]:
    if is_switched_on(WORDS, variables):
        yield Check(ok=True, what=f"{SWITCH} is set: opentelemetry-instrument adds the processor")
    else:
        yield Check(
            ok=True,
            what=f"{SWITCH} is not set: add EvaluationSpanProcessor in code, or set it to opentelemetry for "
            "opentelemetry-instrument",
        )


def _neighbours(installed: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Check]:
    """Vendors' tracing beside ours: each keeps its spans in its own way, and has a sink that knows it."""
    tracing = any(is_on(variables.get(name, "")) for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"))
    for name, advice in _NEIGHBOURS.items():
        # LangChain brings langsmith along, whether or not it is used.
        if name in installed and (name != "langsmith" or tracing):
            yield Check(ok=True, what=f"{name} {installed[name]} may trace beside Steelyard: {advice}")
    if variables.get("LANGSMITH_API_KEY") and not tracing:
        what = "LANGSMITH_API_KEY is set but LANGSMITH_TRACING is not: there are no runs to attach scores to"
        yield Check(ok=False, what=f"{what}; set LANGSMITH_TRACING=true")
    if variables.get("DD_LLMOBS_ENABLED") and "ddtrace" not in installed:
        yield Check(
            ok=False, what="DD_LLMOBS_ENABLED is set but ddtrace is not installed: pip install ddtrace"
        )
