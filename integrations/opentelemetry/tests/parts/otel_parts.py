"""Parts that the tests of the OpenTelemetry recorder share: a receiver and hand-made spans."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.record import Record
from steelyard.recording import Draft
from steelyard_opentelemetry import Event, Span

QUESTION = "What is the capital of France?"
ANSWER = "Paris is the capital of France."
TEXTS = (
    "Paris is the capital of France.",
    "France is a country in Europe.",
    "Berlin is the capital of Germany.",
)
SCORES = (0.91, 0.55, 0.31)
TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER_SCOPES = ("opentelemetry.instrumentation.llamaindex", "llamaindex.opentelemetry.tracer")
SECOND = 1_000_000_000
BEGIN = 1_700_000_000 * SECOND


@dataclass
class Receiver:
    """Stands where a Monitor would: keeps what it is given."""

    records: list[Record] = field(default_factory=list)

    def submit(self, turn: Record | Draft, /) -> None:
        assert isinstance(turn, Record)
        self.records.append(turn)


def is_right(record: Record, *, answer: str = ANSWER) -> bool:
    """Whether a record is the turn that all these applications run.

    Passages that only a prompt tells are guessed as one text.
    """
    texts = tuple(context.text for context in record.contexts)
    if record.contexts_source == "guessed":
        texts = tuple(part.strip() for text in texts for part in text.split("\n\n"))
    return (record.question, texts, record.answer.strip(), record.status) == (QUESTION, TEXTS, answer, "ok")


_numbers = itertools.count(1)


def span(
    name: str,
    parent: Span | str | None = None,
    *,
    at: tuple[float, float] = (0, 1),
    trace: str = TRACE,
    scope: str = "",
    **more: Any,
) -> Span:
    """A span by hand; times are seconds from the beginning."""
    return Span(
        trace_id=trace,
        span_id=f"{next(_numbers):016x}",
        parent_id=parent.span_id if isinstance(parent, Span) else parent,
        name=name,
        scope=scope,
        service="app",
        start=BEGIN + int(at[0] * SECOND),
        end=BEGIN + int(at[1] * SECOND),
        **more,
    )


def oi(kind: str, **values: Any) -> dict[str, Any]:
    """OpenInference attributes."""
    return {"openinference.span.kind": kind, **{k.replace("__", "."): v for k, v in values.items()}}


def documents(texts: Sequence[str] = TEXTS, *, prefix: str = "retrieval.documents") -> dict[str, Any]:
    """Retrieved documents, flattened as OpenInference does it, with ids and scores."""
    found: dict[str, Any] = {}
    for index, text in enumerate(texts):
        found[f"{prefix}.{index}.document.id"] = f"d{index + 1}"
        found[f"{prefix}.{index}.document.content"] = text
        found[f"{prefix}.{index}.document.score"] = SCORES[index % 3]
    return found


def messages(*said: tuple[str, str]) -> str:
    """Messages as the GenAI conventions write them."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said])


def prompt(question: str = QUESTION, texts: Sequence[str] = TEXTS) -> str:
    joined = "\n\n".join(texts)
    return f"Answer from context.\nContext: {joined}\nQuestion: {question}"


def rag_turn(
    *,
    question: str = QUESTION,
    answer: str = ANSWER,
    at: float = 0,
    parent: Span | str | None = None,
    **more: Any,
) -> list[Span]:
    """A whole turn as OpenInference writes it, in end order."""
    root = span(
        "chain",
        parent,
        at=(at, at + 3),
        attributes=oi("CHAIN", input__value=question, output__value=answer),
        **more,
    )
    retriever = span(
        "retriever",
        root,
        at=(at, at + 1),
        attributes=oi("RETRIEVER", input__value=question, **documents()),
        **more,
    )
    sent = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": prompt(question),
    }
    got = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": answer}
    model = span("model", root, at=(at + 1, at + 2), attributes=oi("LLM", **sent, **got), **more)
    return [retriever, model, root]


def event(name: str, **attributes: Any) -> Event:
    return Event(name=name, attributes={key.replace("__", "."): value for key, value in attributes.items()})


INSTRUMENTORS = {
    "openinference": (
        ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
        ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
        ("openinference.instrumentation.llama_index", "LlamaIndexInstrumentor"),
    ),
    "openllmetry": (
        ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
        ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
        ("opentelemetry.instrumentation.llamaindex", "LlamaIndexInstrumentor"),
    ),
    "genai": (
        ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
        ("opentelemetry.instrumentation.genai.openai", "OpenAIInstrumentor"),
        ("opentelemetry.instrumentation.genai.llama_index", "LlamaIndexInstrumentor"),
    ),
}
"""The real instrumentors, by dialect."""


def instrumented(dialect: str, provider: Any) -> Iterator[None]:
    """Instrument with every instrumentor of a dialect, or of several (`a+b`), and take them off again."""
    made = []
    for path, name in [pair for part in dialect.split("+") for pair in INSTRUMENTORS[part]]:
        module = importlib.import_module(path)
        found = next(value for key, value in vars(module).items() if key.lower() == name.lower())
        instrumentor = found()
        instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
        made.append(instrumentor)
    yield
    for instrumentor in made:
        instrumentor.uninstrument()
