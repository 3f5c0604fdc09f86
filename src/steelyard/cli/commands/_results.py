"""`steelyard report`, `plan`, `alarms`, `dashboards` and `prune`: what is done with a file of results."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from typer import Argument, Option

from steelyard._internal.text import counted, printable, shorten, utc
from steelyard.cli._options import RESULTS, SINCE, UNTIL
from steelyard.cli._say import say
from steelyard.cli._terminal import Terminal
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.alarms import AlarmStatus, AlarmWatcher
    from steelyard.report.planning import Way


def report(
    db: str = RESULTS,
    since: str = SINCE,
    until: str = UNTIL,
    metric: str = Option("", "--metric", "-m", metavar="NAME", help="Only this metric."),
    tag: str = Option("", metavar="TAG", help="Only turns with this tag."),
    evidence: str = Option(
        "", metavar="KIND", help="Only turns by how their passages are known: known, told, guessed, none."
    ),
    by: str = Option(
        "", metavar="FIELD", help="Compare groups: tag, judge, framework or a metadata field such as version."
    ),
    out: str = Option("", metavar="FILE.html", help="Write one HTML file instead of printing tables."),
) -> None:
    """Sum up the scores of a running application.

    Means are weighted by how likely each turn was to be picked, so that sampling suspicious turns more often
    does not make the application look worse than it is. Intervals are for the mean, at 95 %.

    **Examples**

    - `steelyard report`
    - `steelyard report --db prod.db --since 24h --metric faithfulness`
    - `steelyard report --since 7d --by version --out report.html`
    """
    from steelyard.report import print_figures
    from steelyard.report import report as make

    chosen = {"metric": metric, "tag": tag, "evidence": evidence, "by": by}
    made = make(db, since=since, until=until, **{name: value or None for name, value in chosen.items()})
    if out:
        made.write_html(out)
        Terminal().say(f"wrote {out}")
    else:
        print_figures(Terminal(), made.figures)


def plan(
    db: str = RESULTS,
    width: float = Option(
        0.02, min=0.001, max=0.5, help="The half-width to reach: .02 for a mean of .84 to .88."
    ),
    days: float = Option(7.0, min=0.04, help="Days that the mean covers."),
    since: str = SINCE,
) -> None:
    """Say what an interval costs a day: turns judged, requests, money; alone and with a screen.

    It uses what is in the results: how much scores vary, what a turn took, and what the screen explains.
    Nothing is asked. A few hundred judged turns are enough.

    **Examples**

    - `steelyard plan --width .02 --days 7`
    - `steelyard plan --width .01 --since 30d`
    """
    from steelyard.report.period import moment
    from steelyard.report.planning import plan_judging
    from steelyard.results import open_results
    from steelyard.results.queries import Scope

    scope = Scope(since=moment(since, now=time.time()))
    with closing(open_results(db)) as reader:
        found = plan_judging(reader, scope, margin=width, days=days)
    console = Terminal()
    if not found:
        console.say("No score has a value yet: judge some turns first, e.g. with sample_rate=.05.")
        return
    over = "a day" if days == 1 else f"{days:g} days"
    console.say(f"For means of {over} that are known to ± {width:g}:")
    for one in found:
        console.print()
        console.say(f"{shorten(one.metric, 60)}, of {one.turns:,.0f} turns a day", "bold")
        console.say(f"  judge alone      {_told(one.alone)}")
        if one.screened is not None:
            share = 100 * one.screened.judged / one.alone.judged
            console.say(f"  with the screen  {_told(one.screened)}; {share:.0f} % of the judging")
    if all(one.screened is None for one in found):
        console.print()
        console.say("No screen has explained anything here: run one for a day, e.g. with screen='local'.")


def _told(way: Way) -> str:
    parts = [f"{way.judged:,.0f} turns a day judged"]
    if not way.reaches:
        parts = [f"{way.judged:,.0f} turns a day, more than there are"]
    if way.requests is not None:
        parts.append(f"{way.requests:,.0f} requests")
    parts.append("price not known" if way.cost is None else f"${way.cost:,.2f}")
    return ", ".join(parts)


_MESSAGES: Final = 5


def alarms(
    test: bool = Option(False, "--test", help="Send every target a test message now."),
) -> None:
    """Show the alarms of `steelyard.toml`, the state of each, and what it reported.

    Exit status 1 if a metric has fallen, or with `--test` if a target was not reached.

    **Examples**

    - `steelyard alarms`
    - `steelyard alarms --test`
    """
    from steelyard.alarms import AlarmWatcher, alarms_from
    from steelyard.online import load_settings

    settings = load_settings().settings
    given = alarms_from(settings.alarm)
    if not given:
        say("No alarms. Write some into steelyard.toml, for instance:\n")
        say('[[alarm]]\nmetric = "faithfulness"\nfalls_by = 0.05\nto = ["log"]')
        return
    watcher = AlarmWatcher(given, file=settings.alarm_file)
    if not test:
        raise typer.Exit(_show_alarms(watcher))
    outcome = watcher.test()
    for target, problem in outcome.items():
        say(f"{target}: {'told' if problem is None else printable(problem)}")
    raise typer.Exit(1 if any(outcome.values()) else 0)


def _show_alarms(watcher: AlarmWatcher) -> int:
    status = watcher.status()
    for one in status:
        say(f"{printable(one.alarm.label)}: {_state(one)}")
        if one.now is not None:
            since = f" since {_time(one.since)}, unless by chance" if one.since is not None else ""
            say(f"  now     {one.now}{since}")
        if one.before is not None:
            say(f"  before  {one.before}")
        if one.target is not None:
            say(f"  compared with {one.target:.3f}")
        if one.learnt:
            say(f"  learnt from turns that scored {one.learnt}; if they were bad already, use `below`")
        for message in one.messages[:_MESSAGES]:
            outcome = "told" if message.told is not None else f"not told: {message.problem or 'waits'}"
            kind = message.body.get("kind", "")
            say(printable(f"  {_time(message.created)} {kind}, {message.target}: {outcome}"))
    return 1 if any(one.state == "fallen" for one in status) else 0


def _state(status: AlarmStatus) -> str:
    if not status.turns:
        return "no turn yet"
    if status.state == "learning":
        seen = status.now.turns if status.now else 0
        return f"learning what is normal, {seen} of {status.alarm.baseline} turns"
    return f"{'FALLEN' if status.state == 'fallen' else 'quiet'}, {counted(status.turns, 'turn')}"


def _time(at: float) -> str:
    return utc(at, "%Y-%m-%d %H:%M:%S")


_NEXT = """
Prometheus: name {rules} under rule_files in prometheus.yml, and scrape the
application's metrics or send them by OTLP.
Grafana: Dashboards, New, Import, and pick the Prometheus data source."""


def dashboards(
    out: Path = Option(Path("dashboards"), "--out", metavar="DIR", help="Where to put them."),
) -> None:
    """Write a Grafana dashboard and Prometheus' recording and alert rules.

    **Examples**

    - `steelyard dashboards --out monitoring`
    - `promtool check rules monitoring/prometheus-rules.yaml`
    """
    from steelyard.dashboards import write_to

    for path in write_to(out):
        say(f"wrote {path}")
    say(_NEXT.format(rules=out / "prometheus-rules.yaml"))


def prune(
    keep: str = Option(..., help="What to keep: an age (`30d`, `12h`), a size (`2GB`), a number of turns."),
    results: str = Argument("steelyard.db", help="The results: a file, or postgresql://HOST/DATABASE."),
) -> None:
    """Delete the oldest results beyond an age, a size or a number of turns, and give their space back.

    Applications may keep writing. To do it all the time: `SQLiteSink(path, keep="30d")`, and the
    same for `PostgresSink`.

    **Examples**

    - `steelyard prune --keep 30d`
    - `steelyard prune prod.db --keep '90d, 2GB'`
    """
    from steelyard._internal.text import error_words
    from steelyard.sinks import prune as prune_results

    try:
        done = prune_results(results, keep=keep)
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"{results!r} cannot be pruned: {error_words(error)}; "
            "check that it is a results file and can be written to"
        ) from None
    say(
        f"deleted {done.turns} turns, {done.left} are left; "
        f"{done.bytes_before / 1e6:.1f} MB before, {done.bytes_after / 1e6:.1f} MB now"
    )
