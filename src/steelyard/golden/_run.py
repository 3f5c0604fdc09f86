"""Running a golden set: ask, judge, and judge again until the gates are decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steelyard._internal.threads import run_anywhere
from steelyard.engine import check_names, evaluate_one
from steelyard.errors import ConfigurationError
from steelyard.golden._app import App, app_from
from steelyard.golden._ask import AppRunner, AskedTurn
from steelyard.golden._gate import EarlierScores, Gate, GateCheck, Repeated, gates_from
from steelyard.golden._results import CaseResult, MetricResult, Run, named_judge
from steelyard.golden._scores import Declined, measured, merged
from steelyard.golden._set import Case, GoldenSet
from steelyard.judge import LocalJudge, StaticEmbedder, judge_from
from steelyard.judge.middleware import layers, uncached
from steelyard.metrics import Metric, default_metrics, parse_metrics
from steelyard.questions import Embedder, Judge
from steelyard.recording import unrecorded
from steelyard.scores import Usage
from steelyard.stats import repeats_order

Repeat = Literal["judge", "app"]
"""What a gate repeats: judging the same answers, or asking the application again as well."""
_FALSE_FAILURES = 0.05
"""Of all gates together that were not named one by one."""
_MEASURED = 5
"""Answers to each case where the application is only measured, and repeated."""
OnCase = Callable[[CaseResult], None]


def run_golden(golden: GoldenSet, app: object, **options: Any) -> Run:
    """Run a golden set and wait; `arun_golden` without an event loop of your own.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """
    return run_anywhere(_closing(golden, app, options))


async def _closing(golden: GoldenSet, app: object, options: dict[str, Any]) -> Run:
    """A run in a loop that ends with it: connections do not outlive a loop, whoever made the judge."""
    options = {**options, "judge": judge_from(options.get("judge", "local"))}
    try:
        return await arun_golden(golden, app, **options)
    finally:
        await options["judge"].aclose()


async def arun_golden(
    golden: GoldenSet,
    app: object,
    *,
    metrics: Sequence[Metric | str] | None = None,
    judge: Judge | str = "local",
    embedder: Embedder | None = None,
    thresholds: Mapping[str, float] | None = None,
    gates: Iterable[Gate | str] = (),
    baseline: Run | Sequence[Run] = (),
    measure: bool = False,
    repeat: Repeat = "judge",
    concurrency: int = 8,
    app_timeout: float = 60.0,
    deadline: float | None = None,
    seed: int = 0,
    on_case: OnCase | None = None,
) -> Run:
    """Put every case to an application, judge the answers, and decide the gates.

    What goes wrong with a case (the application raises, hangs, or returns something odd; the judge refuses)
    is said there by name, and the others go on.

    Args:
        golden: The cases.
        app: The application, as for `app_from`.
        metrics: Metrics or their names; the judge's default suite where None. Those that thresholds and gates
            name are added.
        judge: Who answers.
        embedder: Who embeds; local static vectors by default.
        thresholds: For a metric's name, what every case has to reach; others have none.
        gates: What the means have to reach. Without gates and thresholds, a mined set is compared with what
            production scored on its cases.
        baseline: Earlier runs: the bar for gates without a number, and how the application wavers.
        measure: Only measure: no bar is wanted. With `repeat="app"`, every case is put five times.
        repeat: What is repeated until gates are decided.
        concurrency: How many cases are in flight.
        app_timeout: Seconds that the application may take for a case.
        deadline: Seconds that judging a case may take.
        seed: Decides in which order cases are repeated.
        on_case: Called with each case when it is judged for the first time.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """
    _check(golden, concurrency, app_timeout)
    chosen = judge_from(judge)
    wanted, bars = gates_from(gates), dict(thresholds or {})
    runs = [baseline] if isinstance(baseline, Run) else baseline
    runner = _Runner(
        golden=golden,
        app=app_from(app),
        metrics=_suite(metrics, chosen, [*bars, *(gate.metric for gate in wanted)]),
        thresholds=bars,
        judge=chosen,
        embedder=embedder or StaticEmbedder(),
        concurrency=concurrency,
        app_timeout=app_timeout,
        deadline=deadline,
        repeat=repeat,
        seed=seed,
        on_case=on_case,
        # The local judge says the same each time, so that judging again would tell nothing.
        exact=repeat == "judge" and isinstance(list(layers(chosen))[-1], LocalJudge),
        measure=measure,
        earlier=EarlierScores.of_runs(runs),
    )
    runner.notes += _other_judges(runs, runner.judge_name)
    runner.set_gates(wanted)
    try:
        return await runner.run()
    finally:
        if chosen is not judge:
            await chosen.aclose()


def _check(golden: GoldenSet, concurrency: int, app_timeout: float) -> None:
    if concurrency < 1 or app_timeout <= 0:
        raise ConfigurationError("concurrency must be at least 1, and app_timeout above 0")
    if not len(golden):
        raise ConfigurationError(
            f"the golden set {golden.name!r} has no cases; add some, e.g. with `steelyard golden mine`"
        )


def _other_judges(earlier: Iterable[Run], own: str) -> list[str]:
    return [
        f"the judges differ: {judge} in the baseline, {own} in this run"
        for judge in dict.fromkeys(run.judge for run in earlier)
        if judge != own
    ]


def _suite(given: Sequence[Metric | str] | None, judge: Judge, more: Iterable[str]) -> list[Metric]:
    made = default_metrics(judge) if given is None else []
    for one in given or ():
        made += [one] if isinstance(one, Metric) else _named(one, judge)
    known = {metric.name for metric in made}
    for name in dict.fromkeys(more):
        made += [] if name in known else _named(name, judge)
    check_names(made)
    unknown = [name for name in more if name not in {metric.name for metric in made}]
    if unknown:
        raise ConfigurationError(f"no metric is named {unknown[0]!r}; take the name of one that runs")
    return made


def _named(name: str, judge: Judge) -> list[Metric]:
    return [Declined()] if name == Declined.key else parse_metrics([name], judge)


@dataclass(kw_only=True)
class _Runner:
    golden: GoldenSet
    app: App
    metrics: list[Metric]
    thresholds: Mapping[str, float]
    judge: Judge
    embedder: Embedder
    concurrency: int
    app_timeout: float
    deadline: float | None
    repeat: Repeat
    seed: int
    on_case: OnCase | None
    exact: bool
    measure: bool
    earlier: EarlierScores
    checks: list[GateCheck] = field(default_factory=list)
    results: dict[str, CaseResult] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    notes: list[str] = field(default_factory=list)

    def metrics_for(self, case: Case) -> list[Metric]:
        """The metrics for a case; declining is all that can be right about an unanswerable one."""
        if case.unanswerable:
            declined: list[Metric] = [metric for metric in self.metrics if isinstance(metric, Declined)]
            return declined or [Declined(threshold=self.thresholds.get(Declined.key))]
        return [metric for metric in self.metrics if not isinstance(metric, Declined)]

    def set_gates(self, wanted: Sequence[Gate]) -> None:
        """The gates before their first score: those asked for, or those that a mined set brings along."""
        production, missing = EarlierScores.of_production(self.golden, self.judge_name)
        if not self.earlier.scores and (not wanted or any(gate.least is None for gate in wanted)):
            self.earlier = production
        if not (wanted or self.thresholds or self.measure):
            # Otherwise a mined set would pass whatever is answered.
            wanted = self.gates_of(self.earlier)
            self.notes += [f"no bar from production: {missing}"] if missing and not wanted else []
        repeated: Repeated = "nothing" if self.exact else self.repeat
        for gate in wanted:
            metric = next(metric for metric in self.metrics if metric.name == gate.metric)
            weights = self.weights(gate.metric)
            self.checks.append(
                GateCheck(gate, metric, weights=weights, repeat=repeated, earlier=self.earlier)
            )

    def weights(self, metric: str) -> dict[str, float]:
        """How much each case counts that a metric is for."""
        return {case.id: case.weight for case in self.golden if case.unanswerable == (metric == Declined.key)}

    def gates_of(self, earlier: EarlierScores) -> list[Gate]:
        """A gate for each metric that earlier scores are known of; together they share the false failures."""
        names = [
            metric.name
            for metric in self.metrics
            if any(earlier.values(case, metric.name) for case in self.weights(metric.name))
        ]
        share = _FALSE_FAILURES / max(len(names), 1)
        return [Gate(metric=name, false_failures=share) for name in names]

    @property
    def judge_name(self) -> str:
        return named_judge(self.judge.name, self.judge.prompt_version)

    async def run(self) -> Run:
        """Ask and judge every case once, then repeat."""
        started = time.time()
        clock = time.monotonic()
        async with AppRunner.open(self.app, concurrency=self.concurrency, seconds=self.app_timeout) as runner:
            # All cases at once; the runner lets so many through as it has places.
            turns = {case.id: asyncio.create_task(self._first(runner, case)) for case in self.golden}
            try:
                asked = {name: await task for name, task in turns.items()}
            finally:
                # An interrupt would otherwise leave calls to the application running.
                for task in turns.values():
                    task.cancel()
            await self._repeat(
                runner, {name: turn for name, turn in asked.items() if turn.asked == "answered"}
            )
        same = self.exact and all(
            case.answer in self.earlier.answers.get(case.id, ()) for case in self.results.values()
        )
        return Run(
            golden=self.golden.name,
            version=self.golden.version,
            app=self.app.name,
            judge=self.judge_name,
            cases=tuple(self.results[case.id] for case in self.golden),
            gates=tuple(check.result(same_answers=same) for check in self.checks),
            usage=self.usage,
            started_at=started,
            seconds=time.monotonic() - clock,
            exact=self.exact,
            repeated=self.repeat,
            measured_only=self.measure,
            warnings=(*_warnings(self.golden), *self.notes),
        )

    async def _first(self, runner: AppRunner, case: Case) -> AskedTurn:
        turn = await runner.ask(case)
        found = await self._judged(turn, self.metrics_for(case)) if turn.asked == "answered" else {}
        result = CaseResult(
            id=case.id,
            question=case.question,
            asked=turn.asked,
            problem=turn.problem,
            answer=turn.record.answer,
            contexts=tuple(context.text for context in turn.record.contexts),
            metrics=found,
            notes=turn.record.notes,
            tags=case.tags,
            kind=case.kind,
            source=case.source,
            weight=case.weight,
            seconds=turn.seconds,
        )
        self.results[case.id] = result
        self._count(result.id, result.metrics)
        if self.on_case is not None:
            self.on_case(result)
        return turn

    async def _repeat(self, runner: AppRunner, turns: Mapping[str, AskedTurn]) -> None:
        """Repeat cases in random order, a few at a time, until every gate is decided or at its cap."""
        most = max((check.gate.passes for check in self.checks), default=1)
        # Without a gate to be decided, the repeats are what later gates learn from.
        unbounded = self.measure and self.repeat == "app" and not self.checks
        for number in range(1, _MEASURED if unbounded else most):
            order = repeats_order(list(turns), seed=self.seed, number=number)
            while order:
                names = {
                    *(
                        check.gate.metric
                        for check in self.checks
                        if check.is_open and number < check.gate.passes
                    ),
                    *(metric.name for metric in self.metrics if unbounded),
                }
                if not names:
                    break
                # A few at a time, for each batch may decide a gate and spare the rest.
                batch, order = order[: self.concurrency], order[self.concurrency :]
                await asyncio.gather(*(self._again(runner, turns[name], names) for name in batch))

    async def _again(self, runner: AppRunner, turn: AskedTurn, names: set[str]) -> None:
        metrics = [metric for metric in self.metrics_for(turn.case) if metric.name in names]
        if not metrics:
            return
        if self.repeat == "app":
            turn = await runner.ask(turn.case)
            # Not counted: the first answer says whether the case was answered.
            if turn.asked != "answered":
                return
        found = await self._judged(turn, metrics, again=True)
        result = self.results[turn.case.id]
        self.results[turn.case.id] = replace(result, metrics=merged(result.metrics, found))
        self._count(turn.case.id, found)

    async def _judged(
        self, turn: AskedTurn, metrics: list[Metric], *, again: bool = False
    ) -> dict[str, MetricResult]:
        limit = None if self.deadline is None else time.monotonic() + self.deadline
        # A repeat that is answered from a cache tells nothing.
        judge = uncached(self.judge) if again else self.judge
        # What the judge itself asks must not be taken for the application's turns.
        with unrecorded():
            evaluation = await evaluate_one(
                turn.record, metrics, judge=judge, embedder=self.embedder, deadline=limit
            )
        self.usage += evaluation.usage
        return measured(evaluation, self.thresholds)

    def _count(self, case: str, found: Mapping[str, MetricResult]) -> None:
        for check in self.checks:
            result = found.get(check.gate.metric)
            for value in result.values if result else ():
                check.add(case, value)


def _warnings(golden: GoldenSet) -> list[str]:
    found = []
    declared = golden.declared_version
    if declared is not None and declared != golden.version:
        found.append(
            f"the set was edited since it was saved: its header says version {declared}, its cases make "
            f"{golden.version}"
        )
    if count := len(golden.unreviewed):
        found.append(f"nobody has reviewed {count} of {len(golden)} cases")
    return found
