"""The pytest plugin: golden sets as parameters, scores as assertions, gates as tests.

It is found by pytest in every environment that has Steelyard, so it imports nothing but pytest and does
nothing until a test uses it.

```python
@pytest.mark.golden("golden.jsonl")
def test_case(case, steelyard):                       # one test for each case
    steelyard.assert_scores(case.record(answer=my_app(case.question)), faithfulness=0.8)

@pytest.mark.golden("golden.jsonl")
@pytest.mark.gate("faithfulness=0.8", fall=0.05)
def test_suite(steelyard):                            # one test for the mean
    steelyard.check(my_app)
```
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steelyard.golden import GoldenSet, MetricResult, Run
    from steelyard.questions import Embedder, Judge
    from steelyard.record import Record

__all__ = ["Steelyard"]

_PROPERTY = "steelyard"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the judge's options."""
    group = parser.getgroup("steelyard", "golden sets and scores")
    group.addoption("--steelyard-judge", metavar="NAME", help="local, openai:MODEL or decisions:MODEL")
    group.addoption("--steelyard-base-url", metavar="URL", help="the judge's server")
    group.addoption("--steelyard-no-cache", action="store_true", help="ask the judge everything anew")
    judges = "the judge of golden tests: local, openai:MODEL or decisions:MODEL"
    parser.addini("steelyard_judge", judges, default="")
    parser.addini("steelyard_base_url", "the judge's server", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    config.addinivalue_line(
        "markers", "golden(path): the golden set of a test; one test for each case where it takes `case`"
    )
    config.addinivalue_line(
        "markers",
        "gate(*gates, fall, power, false_failures, passes): what means have to reach in steelyard.check()",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case of the marked set."""
    mark = metafunc.definition.get_closest_marker("golden")
    if mark is None or "case" not in metafunc.fixturenames:
        return
    golden = _load(mark, metafunc.definition)
    metafunc.parametrize("case", golden.cases, ids=[case.id for case in golden])


@pytest.fixture
def steelyard(request: pytest.FixtureRequest) -> Steelyard:
    """Scores, and the golden set and gates of this test's marks."""
    return Steelyard(request)


class Steelyard:
    """What a test asks of Steelyard."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._config = request.config

    def assert_scores(
        self,
        record: Record,
        *,
        judge: Judge | str | None = None,
        embedder: Embedder | None = None,
        **least: float,
    ) -> None:
        """Fail unless a turn reaches its thresholds; see `steelyard.golden.assert_scores`.

        Verdicts are cached by content, so that a turn that has not changed is not judged, or paid for, again.
        """
        from steelyard.golden import assert_scores

        __tracebackhide__ = True
        try:
            found = assert_scores(record, judge=self._judge(judge), embedder=embedder, **least)
        except AssertionError:
            self._note({"scores": {}, "asserted": list(least), "failed": True})
            raise
        self._note({"scores": {name: _value(result) for name, result in found.items()}})

    def check(
        self,
        app: object,
        *,
        golden: GoldenSet | str | Path | None = None,
        judge: Judge | str | None = None,
        **options: Any,
    ) -> Run:
        """Put a golden set to an application, and fail unless it passes.

        Args:
            app: As for `steelyard.golden.run_golden`.
            golden: The set; that of the test's mark where None.
            judge: Who answers; the configured judge where None.
            options: As for `steelyard.golden.run_golden`; gates of the test's mark are added.

        Raises:
            AssertionError: If a case, a threshold or a gate fails; the message is the summary.
        """
        from steelyard.errors import ConfigurationError
        from steelyard.golden import GoldenSet, gates_from, markdown_summary, run_golden

        node = self._request.node
        if golden is None:
            mark = node.get_closest_marker("golden")
            if mark is None:
                raise ConfigurationError("check() needs golden=, or @pytest.mark.golden('set.jsonl')")
            golden = _load(mark, node)
        elif not isinstance(golden, GoldenSet):
            golden = GoldenSet.load(golden)
        gates = list(options.pop("gates", ()))
        for mark in node.iter_markers("gate"):
            gates += gates_from(mark.args, **mark.kwargs)
        run = run_golden(golden, app, judge=self._judge(judge), gates=gates, **options)
        self._note({"gates": [[gate.gate, gate.outcome, gate.mean, gate.calls] for gate in run.gates]})
        if not run.passed:
            pytest.fail(markdown_summary(run), pytrace=False)
        return run

    def _judge(self, given: Judge | str | None) -> Judge:
        """The judge, with a cache of its verdicts in pytest's own cache folder."""
        from steelyard.judge import judge_from
        from steelyard.judge.middleware import Cache

        config = self._config
        if given is None:
            name = config.getoption("--steelyard-judge") or config.getini("steelyard_judge") or "local"
            url = config.getoption("--steelyard-base-url") or config.getini("steelyard_base_url")
            judge = judge_from(name, **({"base_url": url} if url else {}))
        else:
            judge = judge_from(given)
        if config.getoption("--steelyard-no-cache") or judge.name.startswith("local"):
            return judge
        folder = getattr(config, "cache", None)
        described = f"{judge.name} {judge!r}" if " at 0x" not in repr(judge) else judge.name
        file = f"{hashlib.sha256(described.encode()).hexdigest()[:16]}.db"
        return Cache(judge, path=None if folder is None else folder.mkdir("steelyard") / file)

    def _note(self, found: dict[str, Any]) -> None:
        """Kept with the test's report, which also workers of pytest-xdist send home."""
        self._request.node.user_properties.append((_PROPERTY, json.dumps(found)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table of what was measured, where anything was."""
    gates: list[tuple[str, list[Any]]] = []
    passed: dict[str, list[float]] = {}
    failed: Counter[str] = Counter()
    for test, found in _measured(terminalreporter):
        gates += [(test, gate) for gate in found.get("gates", ())]
        failed.update(found.get("asserted", ()))
        for metric, value in found.get("scores", {}).items():
            passed.setdefault(metric, []).append(value)
    if not (gates or passed or failed):
        return
    terminalreporter.section("steelyard")
    for metric in dict.fromkeys([*passed, *failed]):
        values = passed.get(metric, [])
        mean = f"mean {sum(values) / len(values):.3f}" if values else "no mean"
        line = f"{metric:<28} {len(values)} passed, {failed[metric]} failed, {mean} of those passed"
        terminalreporter.write_line(line)
    for test, (gate, outcome, value, calls) in gates:
        shown = "-" if value is None else f"{value:.3f}"
        terminalreporter.write_line(f"gate {gate}: {outcome}, mean {shown}, {calls} scores  {test}")


def _measured(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, dict[str, Any]]]:
    """What `_note` kept, with the id of its test."""
    for report in chain.from_iterable(terminalreporter.stats.values()):
        # Set-up and tear-down carry the same properties; a test would count three times.
        if getattr(report, "when", None) == "call":
            kept = [text for name, text in report.user_properties if name == _PROPERTY]
            yield from ((report.nodeid, json.loads(text)) for text in kept)


def _value(result: MetricResult) -> float:
    return 0.0 if result.value is None else result.value


def _load(mark: pytest.Mark, node: pytest.Item | Any) -> GoldenSet:
    """The set of a mark; its path is seen from the test's file, then from the root of the tests.

    Raises:
        pytest.UsageError: If there is no such set.
    """
    from steelyard.errors import SteelyardError
    from steelyard.golden import GoldenSet

    if not mark.args:
        raise pytest.UsageError("@pytest.mark.golden needs the path of a golden set")
    path = Path(mark.args[0])
    places = [node.path.parent / path, node.config.rootpath / path]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise pytest.UsageError(
            f"no golden set {str(path)!r} beside {node.path.name} or in the root folder; "
            "correct the path in the mark"
        )
    try:
        return GoldenSet.load(found)
    except SteelyardError as error:
        raise pytest.UsageError(str(error)) from None
