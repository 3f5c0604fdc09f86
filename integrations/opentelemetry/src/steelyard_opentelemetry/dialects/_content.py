"""Whether spans hold content: what decides it in each dialect, and what to do if they do not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_YES = frozenset(("1", "true", "yes", "on"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """An environment variable that decides whether content is written."""

    variable: str
    """Its name."""
    says: str
    """What to do if content is left out; `{told}` is what the variable is."""
    default: str = ""
    """Its value if it is not set."""
    shows: frozenset[str] = _YES
    """Values in lower case with which content is written."""
    hides: frozenset[str] | None = None
    """Values with which it is left out; if not given, all that do not show it."""
    unless: tuple[str, str] = ("", "")
    """A variable and its value with which this one does not matter."""

    def advice(self, environ: Mapping[str, str]) -> str:
        """What to do about it; nothing if content is written."""
        value = environ.get(self.variable, self.default).strip()
        hidden = value.lower() in self.hides if self.hides is not None else value.lower() not in self.shows
        if not hidden or (self.unless[0] and environ.get(self.unless[0]) == self.unless[1]):
            return ""
        return self.says.format(told=f"{self.variable}={value}" if value else f"{self.variable} is not set")


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What decides whether spans of a dialect hold content."""

    switch: str = ""
    """What to do if content was left out."""
    governed: re.Pattern[str] | None = None
    """Scopes whose spans obey this switch although they are in the GenAI conventions."""
    advice: Mapping[str, str] = field(default_factory=dict)
    """What to do about other causes of a diagnosis, if this dialect has an answer of its own."""
    distributions: re.Pattern[str] | None = None
    """The installed distributions that write the dialect; names in lower case, with hyphens."""
    variables: tuple[Switch, ...] = ()
    """The environment variables that keep content off its spans."""

    def governs(self, dialect: str, scope: str) -> bool:
        """Whether spans of a scope obey this switch although they are written in another dialect."""
        return dialect == "genai" and self.governed is not None and bool(self.governed.fullmatch(scope))

    def is_instrumentor(self, distribution: str) -> bool:
        """Whether an installed distribution writes this dialect."""
        return self.distributions is not None and bool(self.distributions.fullmatch(distribution))

    def hiding(self, environ: Mapping[str, str]) -> Iterator[str]:
        """What to do about each environment variable that keeps content off the spans."""
        return filter(None, (switch.advice(environ) for switch in self.variables))


def is_on(value: str) -> bool:
    """Whether an environment variable says yes."""
    return value.strip().lower() in _YES


_LIBRARIES = (
    "langchain|llamaindex|openai|anthropic|bedrock|cohere|mistralai|ollama"
    "|chromadb|pinecone|qdrant|weaviate|milvus|lancedb|haystack|vertexai"
)
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_HOOK = "OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK"

CONTENT: Mapping[str, Content] = {
    "crewai": Content(
        switch="unset TRACELOOP_TRACE_CONTENT and OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS",
    ),
    "openinference": Content(
        switch="unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS, "
        "OPENINFERENCE_HIDE_INPUT_TEXT and OPENINFERENCE_HIDE_OUTPUT_TEXT, or the same fields of TraceConfig",
        distributions=re.compile(r"openinference-instrumentation-.*"),
        variables=tuple(
            Switch(
                variable=(variable := f"OPENINFERENCE_HIDE_{part}"),
                hides=_YES,
                says=f"{variable} is set, so OpenInference leaves content out: unset it",
            )
            for part in (
                *("INPUTS", "OUTPUTS", "INPUT_MESSAGES", "OUTPUT_MESSAGES", "INPUT_TEXT", "OUTPUT_TEXT"),
            )
        ),
    ),
    "vercel": Content(
        switch="leave recordInputs and recordOutputs of experimental_telemetry unset or true (their "
        "default) in every call of the AI SDK that has telemetry enabled",
    ),
    "langchain4j": Content(
        governed=re.compile(r"io\.quarkus\.opentelemetry"),
        switch="with Quarkus set quarkus.langchain4j.tracing.include-prompt=true, "
        "quarkus.langchain4j.tracing.include-completion=true and, for tools, "
        "quarkus.langchain4j.tracing.include-tool-result=true; LangChain4j's Micrometer module writes no "
        "content: use openinference-instrumentation-langchain4j beside it, or set steelyard.question, "
        "steelyard.contexts and steelyard.answer on a span of the turn",
    ),
    "spring": Content(
        switch="releases of Spring AI write prompts and completions to the log alone "
        "(spring.ai.chat.observations.log-prompt, .log-completion): add them to each model call's "
        "observation as gen_ai.prompt and gen_ai.completion, in an ObservationFilter bean. For tools set "
        "spring.ai.tools.observations.include-content=true, which reaches spans. Documents do not: they are "
        "read from the prompt; or set steelyard.contexts and steelyard.answer on a span of the turn",
    ),
    "haystack": Content(
        switch="set HAYSTACK_CONTENT_TRACING_ENABLED=true before Haystack is imported, or "
        "haystack.tracing.tracer.is_content_tracing_enabled = True",
        distributions=re.compile(r"haystack-ai"),
        variables=(
            Switch(
                variable="HAYSTACK_CONTENT_TRACING_ENABLED",
                says=(
                    "HAYSTACK_CONTENT_TRACING_ENABLED is not true, so Haystack leaves content out of its own "
                    "spans unless the application sets "
                    "haystack.tracing.tracer.is_content_tracing_enabled = True: set it"
                ),
            ),
        ),
    ),
    "pydantic_ai": Content(
        governed=re.compile(r"(logfire\.)?pydantic-ai.*"),
        switch="leave include_content of pydantic-ai's InstrumentationSettings at True (its default)",
        distributions=re.compile(r"pydantic-ai(-slim)?"),
    ),
    "adk": Content(
        switch="set ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true, or unset it (content is on unless it is "
        "switched off)",
        distributions=re.compile(r"google-adk"),
        variables=(
            Switch(
                variable="ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS",
                default="true",
                says="{told} leaves content out of the kit's spans: set it to true, or unset it",
            ),
        ),
    ),
    "semantic_kernel": Content(
        governed=re.compile(r"(semantic_kernel|Microsoft\.SemanticKernel).*"),
        switch="set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true; in Python the "
        "content goes to log records, so add a ContentLogRecordProcessor, or export logs as well",
        advice={
            "no_question": (
                "Semantic Kernel for Python writes what a model was sent to log records: add a "
                "ContentLogRecordProcessor to the LoggerProvider, or export logs beside spans"
            )
        },
        distributions=re.compile(r"semantic-kernel"),
        variables=(
            Switch(
                variable="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE",
                says=(
                    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE is not true, so "
                    "Semantic Kernel leaves content out: set it to true"
                ),
            ),
        ),
    ),
    "autogen": Content(
        governed=re.compile(r"autogen-core"),
        switch="AutoGen's own spans never hold content: add "
        "openinference-instrumentation-autogen-agentchat, or an instrumentor of the model client with "
        "content (openinference-instrumentation-openai, opentelemetry-instrumentation-genai-openai), "
        "whose prompts hold what tools returned",
    ),
    "openllmetry": Content(
        governed=re.compile(r"opentelemetry\.instrumentation\.(?!(?:google_)?genai\b)\w+(?<!_v2)"),
        switch="set TRACELOOP_TRACE_CONTENT=true; for Elastic's instrumentor of OpenAI, which has the "
        "same scope, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, and "
        "ContentLogRecordProcessor beside it",
        advice={
            "no_answer": (
                "OpenLLMetry's LlamaIndex instrumentor never ends the root of a stream; read streams "
                "to their end"
            )
        },
        distributions=re.compile(rf"opentelemetry-instrumentation-({_LIBRARIES})"),
        variables=(
            Switch(
                variable="TRACELOOP_TRACE_CONTENT",
                default="true",
                says="{told} leaves content out: set it to true",
            ),
        ),
    ),
    "langsmith": Content(
        switch="unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS, or hide_inputs of its Client",
    ),
    "litellm": Content(
        governed=re.compile(r"litellm"),
        switch="leave litellm.turn_off_message_logging unset or False (content is on unless it is set)",
        distributions=re.compile(r"litellm"),
    ),
    "genai": Content(
        switch=f"set {_CAPTURE}=SPAN_ONLY (older releases of the official instrumentors also need "
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental); where content must not be exported, "
        f"{_HOOK}=steelyard hands it to this process alone; content that is sent as log records needs "
        "ContentLogRecordProcessor in the application, or goes to /v1/logs of steelyard collect",
        advice={
            "documents_without_text": (
                "with the official instrumentors that is opentelemetry-instrumentation-genai-openai or "
                f"its like, with {_CAPTURE}=SPAN_ONLY"
            )
        },
        distributions=re.compile(
            r"opentelemetry-instrumentation-genai-.*|[a-z-]{0,40}instrumentation-openai-v2"
        ),
        variables=(
            Switch(
                variable=_CAPTURE,
                shows=frozenset(("span_only", "span_and_event", "true")),
                unless=(_HOOK, "steelyard"),
                says="{told}, so the official instrumentors leave content out: set it to SPAN_ONLY",
            ),
        ),
    ),
    "llamaindex": Content(
        advice={
            "no_answer": (
                "LlamaIndex's own OpenTelemetry integration does not write streamed answers down; "
                "openinference-instrumentation-llama-index does"
            )
        },
        distributions=re.compile(r"llama-index-observability-otel"),
    ),
}
"""By the name of the dialect; of several that govern a span, the first counts."""
