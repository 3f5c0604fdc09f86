"""`steelyard backfill`: score the turns that are stored already, in traces, tables, exports and servers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path

from typer import Argument, Option

from steelyard._internal.text import counted, printable
from steelyard.backfill import (
    Backfill,
    BackfillCounts,
    Columns,
    StoredTurnFilter,
    Task,
    TracesFound,
    Unread,
    open_sources,
)
from steelyard.cli._judges import FREE, CostEstimate, JudgeChoice, suite_of
from steelyard.cli._options import (
    BASE_URL,
    COLUMNS,
    CONFIGURED_JUDGE,
    KEY_VARIABLE,
    SINCE,
    UNTIL,
    YES,
    listed,
    takes,
)
from steelyard.cli._terminal import Terminal, progress, say_unread
from steelyard.engine import evaluate
from steelyard.online import Monitor, MonitorOptions, Price, load_settings
from steelyard.report.period import moment
from steelyard.sinks import Sink, SQLiteSink, sink_from


@dataclass(frozen=True, kw_only=True, slots=True)
class BackfillOptions:
    """One call of `steelyard backfill`, as it was typed."""

    sources: list[str] = Argument(
        ...,
        metavar="SOURCE...",
        help="Files or folders (OTLP/JSON, printed spans, Parquet, CSV, JSON lines, exports of Langfuse and "
        "LangSmith), or the address of a Phoenix server.",
    )
    since: str = SINCE
    until: str = UNTIL
    where: list[str] | None = Option(
        None, metavar="FIELD=VALUE", help="Only turns with this tag, status or metadata; repeatable."
    )
    sample: float = Option(1.0, min=0.0, max=1.0, help="The share of turns to judge.")
    budget: float | None = Option(None, min=0.0, metavar="DOLLARS", help="Stop before judging costs more.")
    metrics: str = Option(
        "", "--metrics", "-m", metavar="A,B", help="Names, `all`, or none for those configured."
    )
    judge: str = CONFIGURED_JUDGE
    base_url: str = BASE_URL
    api_key_env: str = KEY_VARIABLE
    columns: str = COLUMNS
    project: str = Option("default", metavar="NAME", help="The project on a Phoenix server.")
    db: str = Option("", "--db", metavar="FILE", help="The results file.")
    concurrency: int = Option(16, min=1, help="Turns judged at the same time.")
    plan: bool = Option(False, "--plan", help="Judge nothing: say what there is and its price.")
    yes: bool = YES


@takes(BackfillOptions)
def backfill(job: BackfillOptions) -> int:
    """Score stored turns, and write the scores where a Monitor writes them, onto the old traces, too.

    First it says what there is to do and what that costs. What the results file has already is left out, so
    that a run which was stopped resumes where it was, and turns that were scored live are not paid for twice.

    Exit status: 0 done; 1 some input was bad, or the run ended early; 2 wrong usage.

    **Examples**

    - `steelyard backfill traces/ --since 30d --plan`
    - `steelyard backfill turns.parquet --map question=prompt,contexts=docs,answer=reply`
    - `steelyard backfill http://127.0.0.1:6006 --project shop --sample 0.1`
    - `steelyard backfill export.jsonl --judge openai:gpt-4o-mini --budget 5 --yes`
    """
    console = Terminal(stderr=True)
    choice = _judge_choice(job)
    options = _options(job, choice)
    now, named = time.time(), count()

    def bad(where: str, why: str) -> None:
        if next(named) < _MOST_NAMED:
            console.say(printable(f"{where}: {why}"), "red")

    columns = Columns.parse(job.columns)
    sources = open_sources(job.sources, columns=columns, read_traces=_read_traces, project=job.project)
    make = partial(
        Backfill,
        sources,
        options=options,
        results=next((sink.path for sink in options.sinks if isinstance(sink, SQLiteSink)), None),
        meant=StoredTurnFilter(
            since=moment(job.since, now=now),
            until=moment(job.until, now=now),
            where=StoredTurnFilter.parse(job.where or ()),
        ),
        sample=job.sample,
        budget=job.budget,
        price=_price(job, choice),
    )
    planned = make(bad=bad)
    rest = planned.tasks()
    first = list(islice(rest, _PRICED))
    tasks, counts = len(first) + sum(1 for _ in rest), planned.counts
    _show_plan(console, counts, tasks, options)
    say_unread(console, sum((source.unread for source in sources), Unread()))
    if first:
        _show_price(console, first, tasks, choice, options)
    # Nothing read at all is a finding too: the path may be wrong.
    if job.plan or not first:
        return 1 if counts.bad or not counts.read else 0
    choice.check_agreed(job.yes)
    # What is bad was named while the plan was made.
    return _judge(console, make(bad=lambda *_: None), tasks, options.sinks)


# So many turns tell what one costs on average; a dry run of all of them would take too long.
_PRICED = 100
# Of a file of the wrong kind every line is bad, and a page of them says it as well.
_MOST_NAMED = 20
_INTERRUPTED = 130
_WORDS = {
    "no_time": "without a time",
    "other_time": "outside of the period",
    "other_value": "left out by --where",
    "duplicate": "found twice",
    "sampled_out": "left out by --sample",
    "missing_input": "without what the metrics need",
}


def _judge(console: Terminal, work: Backfill, tasks: int, sinks: Iterable[Sink]) -> int:
    started = time.monotonic()
    interrupted = False
    with progress(console, "Judging", total=tasks) as move:
        try:
            asyncio.run(work.run(lambda _: move(advance=1)))
        except KeyboardInterrupt:
            interrupted = True
    _sum_up(console, work.counts, time.monotonic() - started, sinks)
    if interrupted:
        console.say("interrupted; run the same again to go on", "red")
        return _INTERRUPTED
    if work.counts.stopped:
        console.say(f"stopped: {work.counts.stopped}; run the same again to go on", "red")
    return 1 if work.counts.stopped or work.counts.bad else 0


def _judge_choice(job: BackfillOptions) -> JudgeChoice:
    """The judge that was typed; the one that is configured where none was."""
    settings = load_settings().settings
    judge = job.judge or settings.judge
    is_here = judge.partition(":")[0] in ("local", "pair")
    return JudgeChoice.named(
        judge,
        base_url=job.base_url or ("" if is_here else settings.base_url or ""),
        key_variable=job.api_key_env,
        concurrency=job.concurrency,
    )


def _options(job: BackfillOptions, choice: JudgeChoice) -> MonitorOptions:
    """What a Monitor would do here, with this judge and without its limits on speed."""
    settings = load_settings().settings
    judge = choice.build()
    suite = suite_of(listed(job.metrics) or tuple(settings.metrics), judge)
    options = Monitor(metrics=suite, judge=judge, sinks=[], concurrency=job.concurrency).options
    # What is there by default writes onto live traces, of which there are none here.
    configured = [
        sink
        for name in settings.sinks
        for sink in sink_from(name)
        if name != "auto" or sink.name != "opentelemetry"
    ]
    if job.db:
        others = [sink for sink in configured if not isinstance(sink, SQLiteSink)]
        configured = [SQLiteSink(job.db), *others]
    for sink in configured:
        if isinstance(sink, SQLiteSink) and not job.plan:
            sink.open()
    return replace(options, judge=judge, sinks=configured)


def _price(job: BackfillOptions, choice: JudgeChoice) -> Price | None:
    if job.budget is None or choice.is_here:
        return None
    return Price.named(choice.model, base_url=choice.base_url or None)


def _read_traces(lines: Iterable[bytes]) -> TracesFound:
    from steelyard_opentelemetry import read_otlp, read_spans

    found = read_otlp(lines)
    reading = read_spans(found.spans)
    told = {
        trace for record in reading.records for trace in (record.trace_id, *record.metadata.get("traces", ()))
    }
    without = Counter[str](one.cause for one in reading.diagnoses if one.trace_id not in told)
    return TracesFound(records=reading.records, problems=found.problems, without=without)


def _show_plan(console: Terminal, counts: BackfillCounts, tasks: int, options: MonitorOptions) -> None:
    said = [f"{counted(counts.read, 'turn')} found"]
    if counts.known:
        said.append(f"{counts.known:,} scored already")
    said.extend(f"{number:,} {_WORDS.get(cause, cause)}" for cause, number in counts.left_out.items())
    if counts.without:
        causes = ", ".join(f"{cause} {number:,}" for cause, number in sorted(counts.without.items()))
        said.append(f"traces without a turn: {causes} (`steelyard doctor` says why)")
    if counts.bad:
        said.append(counted(counts.bad, "bad entry", "bad entries"))
    console.say("; ".join(said))
    console.say(f"{tasks:,} to judge with {', '.join(metric.name for metric in options.metrics)}", "bold")


def _show_price(
    console: Terminal, first: Sequence[Task], tasks: int, choice: JudgeChoice, options: MonitorOptions
) -> None:
    if choice.is_here:
        console.say(FREE)
        return
    judge = choice.dry_run()
    records = [task.record for task in first]
    evaluate(records, metrics=list(options.metrics), judge=judge, fuse=options.fuse, progress=False)
    estimate = CostEstimate.of(judge, choice)
    console.say(estimate.words(tasks / len(first)))
    for line in estimate.sources:
        console.say(line, "dim")


def _sum_up(console: Terminal, counts: BackfillCounts, seconds: float, sinks: Iterable[Sink]) -> None:
    usage = counts.usage
    console.say(
        f"{counted(counts.judged, 'turn')} judged in {seconds:.1f} s"
        f" ({counts.judged / seconds if seconds else 0:,.1f} a second), {counts.failed:,} with a failure; "
        f"{usage.requests:,} requests, {usage.prompt_tokens + usage.completion_tokens:,} tokens"
    )
    written = [str(Path(sink.path).name) if isinstance(sink, SQLiteSink) else sink.name for sink in sinks]
    console.say(f"written to {', '.join(written) or 'nothing'}")
