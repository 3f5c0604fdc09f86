"""What a new user sets up: the lines for each framework, and a turn to try a judge with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steelyard._internal.lazy import is_installed
from steelyard._internal.text import shorten
from steelyard._internal.threads import run_anywhere
from steelyard.cli._say import amount
from steelyard.cli._summary import worst_verdict
from steelyard.engine import aevaluate
from steelyard.online import Monitor
from steelyard.record import Context, Record
from steelyard.report import explain_verdict
from steelyard.scores import Evaluation

LINES: Mapping[str, tuple[str, ...]] = {
    "langchain": ("from steelyard_langchain import attach", "attach()"),
    "llamaindex": ("from steelyard_llamaindex import instrument", "instrument()"),
    "opentelemetry": (
        "from steelyard_opentelemetry import EvaluationSpanProcessor",
        "provider.add_span_processor(EvaluationSpanProcessor())  # your TracerProvider",
    ),
    "python": (
        "from steelyard import Context, Monitor, Record",
        "monitor = Monitor()",
        "monitor.submit(Record(question=..., contexts=(Context(text=...),), answer=...))  # each turn",
    ),
}
"""By framework, the lines that record an application; they come before its first question."""
MODULES: Mapping[str, str] = {
    "langchain": "langchain_core",
    "llamaindex": "llama_index.core",
    "opentelemetry": "opentelemetry.sdk",
}
"""By framework, what has to be installed."""
SAMPLE = Record(
    id="sample",
    question="When was the lighthouse built, and by whom?",
    contexts=(Context(text="The lighthouse was built by Robert Stevenson. It was finished in 1811."),),
    answer="The lighthouse was built by Robert Stevenson. It was finished in 1911.",
)
"""A turn whose second claim is wrong."""
_WIDTH = 90


def installed_framework() -> str:
    """The framework that is installed here; `python` where none is."""
    return next((name for name, module in MODULES.items() if is_installed(module)), "python")


def score_sample() -> Evaluation:
    """Have the sample judged as settings ask for here. Nothing is written, and no budget is touched."""
    return run_anywhere(_scored(Monitor(sinks=[])))


async def _scored(monitor: Monitor) -> Evaluation:
    options = monitor.options
    try:
        [evaluation] = await aevaluate(
            [SAMPLE],
            metrics=options.metrics,
            judge=options.judge,
            embedder=options.embedder,
            fuse=options.fuse,
            deadline=options.deadline,
            progress=False,
        )
    finally:
        for made in (options.judge, options.embedder):
            if made is not None:
                await made.aclose()
    return evaluation


def lines_of_scores(evaluation: Evaluation) -> Iterator[str]:
    """A line for each score, and below it what speaks most against the answer."""
    for score in evaluation.scores:
        if score.value is None:
            yield f"  {score.metric:<20}    -  {shorten(score.explanation, _WIDTH)}"
            continue
        yield f"  {score.metric:<20} {amount(score.value)}  {shorten(score.explanation, _WIDTH)}"
        if (verdict := worst_verdict(score)) is not None:
            yield f'  {"":<20}       {explain_verdict(verdict)}: "{shorten(verdict.about, _WIDTH)}"'
