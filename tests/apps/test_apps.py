"""Every application of the corpus gives true records under every recorder, or such as name what they lack."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import programs
from apps.app import App
from apps.corpus import apps_of
from apps.instrumented import key_of
from apps.island import PASSAGES, marks_in
from apps.langchain import pieces
from apps.limits import LIMITS
from apps.otel import shapes
from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.recorders import INSTRUMENTORS, recorders_of, run_own, silent, ways_under, wrong
from reprs import reprs_that_show
from steelyard.record import Record, record_from_dict
from steelyard_opentelemetry import read_spans

APPS = apps_of("langchain", "llamaindex")
OWN = [(app, name) for app in APPS for name in recorders_of(app) if name not in INSTRUMENTORS]
FOREIGN = [(app, name) for app in APPS for name in INSTRUMENTORS]
FRAMEWORKS = ("langchain", "llamaindex")
IMPORTS = {
    "langchain": "import langchain.agents\nimport langchain_core.runnables\nimport langgraph.graph",
    "llamaindex": "import llama_index.core",
}

pytestmark = [
    pytest.mark.timeout(300),
    # LlamaIndex's agents read what Pydantic deprecates; the classic chains of LangChain are deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The a?apply_and_parse method is deprecated"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:<aiosqlite:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Skipping serialization of known unserializable key"),
]


def cases(pairs: list[tuple[App, str]]) -> list[Any]:
    """Parameters with readable names."""
    return [pytest.param(app, recorder, id=f"{app.name}-{recorder}") for app, recorder in pairs]


def check(app: App, recorder: str, runs: list[tuple[str, list[Record], list[str]]]) -> None:
    """Records are right; where a recorder cannot know, none is wrong or missing without its sign."""
    found = [(way, bad) for way, records, said in runs if (bad := wrong(app, recorder, records, said))]
    sign = LIMITS.get((app.name, recorder))
    if sign is None:
        assert not found, _told(found)
        return
    assert found, f"records are right: take {app.name} under {recorder} out of the limits"
    unsaid = [(way, bad) for way, records, said in runs if (bad := silent(app, sign, records, said))]
    assert not unsaid, _told(unsaid)


@pytest.mark.parametrize(("app", "recorder"), cases(OWN))
def test_records_are_true(app: App, recorder: str, every: bool) -> None:
    ways = ways_under(app, recorder, every=every)
    check(app, recorder, [(way, *run_own(app, way, recorder)) for way in ways])


@pytest.fixture(scope="module")
def every(pytestconfig: pytest.Config) -> bool:
    """Whether each application is run in every way under every recorder."""
    return bool(pytestconfig.getoption("--slow"))


@pytest.fixture(scope="module")
def processes(every: bool) -> Iterator[dict[tuple[str, str], programs.Program]]:
    """A process for each kind of instrumentor and framework, since instrumentors patch whole libraries."""
    started = {}
    folder = Path(__file__).parent.parent
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONWARNINGS": "ignore"}
    for kind in INSTRUMENTORS:
        for framework in FRAMEWORKS:
            command = ["-m", "apps.instrumented", kind, framework, "every" if every else "some"]
            started[kind, framework] = programs.start(command, source=IMPORTS[framework], ours=True, env=env)
    yield started
    for process in started.values():
        process.kill()


_told_by: dict[tuple[str, str], dict[str, Any]] = {}


def told(processes: dict[tuple[str, str], programs.Program], kind: str, framework: str) -> dict[str, Any]:
    """What a process told of each run."""
    if (kind, framework) not in _told_by:
        process = processes[kind, framework]
        out, errors = process.communicate(timeout=290)
        if process.returncode:
            raise RuntimeError(errors[-3000:])
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        _told_by[kind, framework] = {line["run"]: line for line in lines}
    return _told_by[kind, framework]


@pytest.mark.parametrize(("app", "recorder"), cases(FOREIGN))
def test_records_out_of_spans_are_true(
    app: App, recorder: str, every: bool, processes: dict[tuple[str, str], programs.Program]
) -> None:
    runs = told(processes, recorder, app.framework)
    seen = []
    for way in ways_under(app, recorder, every=every):
        run = runs[key_of(app, way)]
        if run["failed"]:
            raise RuntimeError(run["failed"])
        seen.append((way, [record_from_dict(record) for record in run["records"]], run["diagnoses"]))
    check(app, recorder, seen)


def _told(found: list[tuple[str, list[str]]]) -> str:
    return "\n".join(f"{way}: {line}" for way, bad in found for line in bad)


@pytest.mark.parametrize(
    "app", [app for app in APPS if app.framework == "langchain"], ids=lambda app: app.name
)
def test_truths_are_what_the_models_saw(app: App) -> None:
    """A passage is true only if a model saw it; passages in the answer's own prompt are these."""
    pieces.PROMPTS.clear()
    app.run({}, app.ways[0])
    prompts = list(pieces.PROMPTS)
    for truth in app.truths:
        expected = [passage for text in truth.contexts for passage in marks_in(text)]
        assert set(expected) <= {passage for prompt, _ in prompts for passage in marks_in(prompt)}
        answered = [prompt for prompt, reply in prompts if reply.strip() and reply.strip() in truth.answer]
        last = marks_in(answered[-1]) if answered else []
        if last and not truth.relayed and len(app.truths) == 1:
            assert last == expected


def test_every_application_names_its_pattern() -> None:
    assert all(app.shape for app in APPS)
    assert len({app.name for app in APPS}) == len(APPS)


def test_every_limit_is_of_an_application_of_the_corpus() -> None:
    assert set(LIMITS) <= {(app.name, name) for app, name in OWN + FOREIGN}


# The first applications of both frameworks: a chain, an engine, an agent or a chat among them.
FIRST = [app for name in ("langchain", "llamaindex") for app in apps_of(name)[:6]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("app", FIRST, ids=lambda app: app.name)
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
