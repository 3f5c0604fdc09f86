"""Recorders hold questions, passages and answers on the host's own threads; none of it shows in a `repr`."""

from __future__ import annotations

import pytest

from apps.app import App
from apps.corpus import apps_of
from apps.island import PASSAGES
from apps.otel import shapes
from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.recorders import recorders_of, run_own
from reprs import reprs_that_show
from steelyard_opentelemetry import read_spans

# The first applications of both frameworks: a chain, an engine, an agent or a chat among them.
APPS = [app for name in ("langchain", "llamaindex") for app in apps_of(name)[:6]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_no_object_of_a_recorder_shows_what_it_holds(app: App) -> None:
    words = [passage[:20] for passage in PASSAGES] + [app.truths[0].answer, app.truths[0].question]
    with reprs_that_show(words) as found:
        records, _ = run_own(app, app.ways[0], recorders_of(app)[0])
    assert not found
    assert words[-1] in str(records[0])


def test_no_object_that_spans_are_read_into_shows_what_it_holds() -> None:
    words = [shapes.QUESTION, shapes.ANSWER, *(passage[:20] for passage in shapes.PASSAGES)]
    trace = shapes.Trace("openinference.instrumentation.llama_index")
    with trace.span("query", oi("CHAIN", shapes.QUESTION, shapes.ANSWER)):
        trace.leaf("retrieve", oi_retriever(shapes.QUESTION))
        prompt = f"{shapes.joined()}\n\nQuery: {shapes.QUESTION}"
        trace.leaf("chat", oi_model([("user", prompt)], shapes.ANSWER))
    with reprs_that_show(words) as found:
        [record] = read_spans(trace.spans).records
    assert not found
    assert shapes.ANSWER in str(record)
