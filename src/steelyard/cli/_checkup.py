"""What `steelyard doctor` looks at in a set-up: each finding in plain words, with its mend."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from steelyard._internal.text import counted
from steelyard._internal.threads import run_anywhere
from steelyard.cli.commands._settings import score_sample
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.online import Settings, load_settings
from steelyard.results import open_results
from steelyard.results.queries import Scope
from steelyard.sinks import Checkable, JSONLSink, Sink, SQLiteSink, read_jsonl, sink_from

_NOT_FOR_USERS = frozenset({"all", "dev", "docs", "tracers"})
Mark = Literal["ok", "note", "fix"]
MENDS: Mapping[str, str] = {
    "bad_request": "read what the server says, and give it what it can do (`judge`, `base_url`)",
    "breaker_open": "mend what failed before: the judge is asked again after a pause",
    "conflict": "see in the vendor's own log what it disputes",
    "hangs": "see whether the server runs, or lower `sink_timeout`",
    "malformed_reply": "take another model: this one does not reply in the form that was asked for",
    "not_an_api": "correct the server's address in the vendor's variable: a web page answers there",
    "not_found": "correct the server's address in the vendor's variable",
    "quota_exceeded": "raise the account's limit",
    "rate_limited": "wait, or lower `concurrency`",
    "redirected": "name the address that it redirects to",
    "refused": "take another model: this one will not answer about such turns",
    "rejected": "see in the vendor's own log what it disputes",
    "server_error": "wait, or see the server's own log",
    "timeout": "see whether the server is busy, or raise `deadline`",
    "too_large": "take a model with a longer window, or retrieve shorter passages",
    "trace_not_found": "see that the application's spans reach the vendor",
    "unauthorized": "set the key that the server knows: OPENAI_API_KEY, or the vendor's own variable",
    "unavailable": "wait, or see the server's own log",
    "unknown_model": "correct the model's name in `judge`",
    "unreachable": "see that the server runs, and correct its address (`base_url`, or a vendor's variable)",
}
"""By the cause of an error of a judge or a sink, what to do."""
_DAY = 86_400.0
_LISTED = 3


class SetupFinding(NamedTuple):
    """One thing that was looked at."""

    mark: Mark
    """`fix` is what keeps scores from arriving; a `note` may be as it should."""
    what: str
    """What was found, and the mend."""


_ok = partial(SetupFinding, "ok")
_note = partial(SetupFinding, "note")
_fix = partial(SetupFinding, "fix")


def look_at_setup() -> Iterator[SetupFinding]:
    """Look at everything, in the order in which a score comes about; one thing that fails hides no other."""
    from steelyard_opentelemetry import other_tracers

    yield from _installed()
    try:
        loaded = load_settings()
    except ConfigurationError as error:
        yield _fix(f"settings: {error}")
        return
    files = ", ".join(dict.fromkeys(loaded.sources.values()))
    if files:
        yield _ok(f"settings from {files}; `steelyard config` shows them")
    else:
        yield _note("no steelyard.toml here, so defaults hold: `steelyard init` writes one")
    if loaded.settings.sample_rate < 1 and not loaded.settings.sample_key:
        yield _note("callers could choose which turns are judged: set a `sample_key` (`steelyard init` does)")
    yield from _judge(loaded.settings)
    sinks, findings = _sinks(loaded.settings)
    yield from findings
    for check in other_tracers(sinks=loaded.settings.sinks):
        yield (_note if check.ok else _fix)(check.what)
    yield from _turns(sinks)


def _installed() -> Iterator[SetupFinding]:
    yield _ok(f"steelyard {version('steelyard')}, Python {platform.python_version()}")
    for line in requires("steelyard") or ():
        one = Requirement(line)
        marker = str(one.marker or "")
        extra = marker.rpartition("extra == ")[2].strip("\"' ") if "extra ==" in marker else ""
        if extra in _NOT_FOR_USERS or (one.marker and not one.marker.evaluate({"extra": extra})):
            continue
        with suppress(PackageNotFoundError):
            if not one.specifier.contains(found := version(one.name), True):
                run = f"pip install -U {f'steelyard[{extra}]' if extra else 'steelyard'!r}"
                yield _fix(f"{one.name} {found} is not {one.specifier}, as is needed; run: {run}")


def _judge(settings: Settings) -> Iterator[SetupFinding]:
    started = time.monotonic()
    try:
        evaluation = score_sample()
    except ConfigurationError as error:
        # Of whatever option: making a Monitor looks at all of them.
        yield _fix(f"settings: {error}")
        return
    except SteelyardError as error:
        yield _fix(f"the judge {settings.judge!r}: {error}")
        return
    seconds = time.monotonic() - started
    failed = Counter(
        (score.cause or "", score.explanation) for score in evaluation.scores if score.status == "failed"
    )
    for (cause, explanation), count in failed.most_common(_LISTED):
        what = f"the judge {settings.judge!r} gave no score for {counted(count, 'metric')}: {explanation}"
        yield _fix(_with_mend(what, cause))
    if not failed:
        metrics = counted(len(evaluation.scores), "metric")
        yield _ok(f"the judge {settings.judge!r} scored a turn, {metrics}, in {seconds:.1f} s")


def _with_mend(what: str, cause: str) -> str:
    return f"{what}; {MENDS[cause]}" if cause in MENDS else what


def _sinks(settings: Settings) -> tuple[list[tuple[str, Sink]], list[SetupFinding]]:
    """Those that can be reached, by the names they have in settings, and how all stand."""
    sinks, findings = [], []
    for name in settings.sinks:
        try:
            made = sink_from(name)
        except SteelyardError as error:
            findings.append(_fix(f"the sink {name!r}: {error}"))
            continue
        for sink in made:
            findings.append(run_anywhere(_reached(sink)))
            if findings[-1].mark == "ok":
                sinks.append((name, sink))
    if not settings.sinks:
        findings.append(_fix('`sinks` is empty, so results go nowhere: write sinks = ["auto"]'))
    return sinks, findings


async def _reached(sink: Sink) -> SetupFinding:
    try:
        if isinstance(sink, Checkable):
            await sink.check()
            return _ok(f"the sink {sink.name} can be written to")
        return _ok(f"the sink {sink.name} writes where your application's own OpenTelemetry set-up sends it")
    except (SteelyardError, OSError) as error:
        cause, told = getattr(error, "cause", ""), str(error).removeprefix(f"{sink.name}: ")
        return _fix(_with_mend(f"the sink {sink.name}: {told}", cause))
    finally:
        await sink.aclose()


def _turns(sinks: Sequence[tuple[str, Sink]]) -> Iterator[SetupFinding]:
    places = [str(sink.path) for _, sink in sinks if isinstance(sink, SQLiteSink | JSONLSink)]
    places += [name for name, _ in sinks if name.startswith(("postgres:", "postgresql:"))]
    if not places and sinks:
        yield _note("whether turns arrive, only the tools can say that your sinks write to")
    for place in places:
        turns, last, failed = 0, None, Counter[str]()
        with suppress(SteelyardError, OSError):
            turns, last, failed = _stored(place)
        if not turns:
            yield _fix(
                f"no turn has arrived in {place}: add the lines that `steelyard init` shows, and ask your "
                "application something; `steelyard doctor --live -- python app.py` shows what is seen of it"
            )
            continue
        yield _ok(f"{counted(turns, 'turn')} in {place}{_ago(last)}")
        for cause, count in failed.most_common(_LISTED):
            what = f"{counted(count, 'score')} failed there in the last day: {cause}"
            yield _fix(_with_mend(what, cause))


def _stored(place: str) -> tuple[int, float | None, Counter[str]]:
    """How many turns, when the last came, and the causes of scores that failed in the last day."""
    since = time.time() - _DAY
    if place.endswith(".jsonl"):
        turns, last, failed = 0, 0.0, Counter[str]()
        for one in read_jsonl(place):
            turns, last = turns + 1, max(last, one.evaluated_at)
            if one.evaluated_at >= since:
                failed.update(score.cause or "" for score in one.scores if score.status == "failed")
        return turns, last, failed
    failed = Counter[str]()
    with closing(open_results(place)) as results:
        totals = results.totals(Scope(), brief=True)
        for missing in results.missing(Scope(since=since)):
            if missing.status == "failed":
                failed[missing.cause] += missing.count
    return totals.turns, totals.last, failed


def _ago(at: float | None) -> str:
    if at is None:
        return ""
    seconds = max(time.time() - at, 0)
    for unit, size in (("day", _DAY), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= size:
            return f", the latest {counted(int(seconds // size), unit)} ago"
    return ", the latest just now"
