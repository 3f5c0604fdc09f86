"""Plain Python with OpenTelemetry: mark a span, and the turn behind it is scored in the background."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider

from steelyard import Monitor
from steelyard_opentelemetry import EvaluationSpanProcessor

SHELF = ["Paris is the capital of France.", "Berlin is the capital of Germany."]


def answer(question: str, provider: TracerProvider) -> str:
    with provider.get_tracer("shop").start_as_current_span("answer") as span:
        found = [text for text in SHELF if question.rstrip("?").split()[-1] in text]
        reply = found[0] if found else "I do not know."
        span.set_attribute("steelyard.question", question)
        span.set_attribute("steelyard.contexts", found)
        span.set_attribute("steelyard.answer", reply)
        return reply


def main() -> None:
    monitor = Monitor()
    monitor.on_evaluation(lambda found: print(*(f"{s.metric}={s.value}" for s in found.scores), sep="  "))
    provider = TracerProvider()
    provider.add_span_processor(EvaluationSpanProcessor(monitor))

    for country in ("France", "Germany"):
        print(answer(f"What is the capital of {country}?", provider))

    provider.force_flush()
    monitor.flush(timeout=30)


if __name__ == "__main__":
    main()
