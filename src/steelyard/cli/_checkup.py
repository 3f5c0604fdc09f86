"""What `steelyard doctor` looks at in a set-up: each finding in plain words, with its mend."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from packaging.requirements import Requirement

from steelyard._internal.threads import run_anywhere
from steelyard.cli._say import counted
from steelyard.cli._setup import score_sample
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.online import Settings, load_settings
from steelyard.report import Scope, open_results
from steelyard.sinks import Checkable, JSONLSink, Sink, SQLiteSink, read_jsonl, sink_from

_NOT_FOR_USERS = frozenset({"all", "dev", "docs", "tracers"})
Mark = Literal["ok", "note", "fix"]
MENDS: Mapping[str, str] = {
    "bad_request": "read what the server says, and give it what it can do (`judge`, `base_url`)",
    "breaker_open": "mend what failed before: the judge is asked again after a pause",
    "conflict": "see in the vendor's own log what it disputes",
    "hangs": "see whether the server runs, or lower `sink_timeout`",
    "malformed_reply": "take another model: this one does not reply in the form that was asked for",
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


@dataclass(frozen=True, slots=True)
class SetupFinding:
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
    yield from _sampling(loaded.settings)
    yield from _judge(loaded.settings)
    sinks, findings = _sinks(loaded.settings)
    yield from findings
    yield from _other_tracers(loaded.settings)
    yield from _turns(sinks)


def _installed() -> Iterator[SetupFinding]:
    yield _ok(f"steelyard {version('steelyard')}, Python {platform.python_version()}")
    wanted = _wanted()
    here: list[str] = []
    missing: list[str] = []
    for extra, requirements in wanted.items():
        found = {one.name: _version(one.name) for one in requirements}
        wrong = [
            one for one in requirements if (got := found[one.name]) and not one.specifier.contains(got, True)
        ]
        for one in wrong:
            run = f"pip install -U {f'steelyard[{extra}]' if extra else 'steelyard'!r}"
            yield _fix(f"{one.name} {found[one.name]} is not {one.specifier}, as is needed; run: {run}")
        if extra and not wrong:
            (here if all(found.values()) else missing).append(extra)
    yield _ok(f"extras that are installed: {', '.join(here) or 'none'}")
    if missing:
        names = ", ".join(missing)
        yield _note(f"extras that are not: {names}; to add one: pip install 'steelyard[NAME]'")


def _wanted() -> dict[str, list[Requirement]]:
    """By extra, what this version of the package asks for; under an empty name what it always does."""
    found: dict[str, list[Requirement]] = {"": []}
    for line in requires("steelyard") or ():
        one = Requirement(line)
        marker = str(one.marker or "")
        extra = marker.rpartition("extra == ")[2].strip("\"' ") if "extra ==" in marker else ""
        if extra not in _NOT_FOR_USERS and (one.marker is None or one.marker.evaluate({"extra": extra})):
            found.setdefault(extra, []).append(one)
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _sampling(settings: Settings) -> Iterator[SetupFinding]:
    if settings.sample_rate < 1 and not settings.sample_key:
        what = (
            "callers could choose which turns are judged: `steelyard init` makes a `sample_key` against that"
        )
        yield _note(what)


def _judge(settings: Settings) -> Iterator[SetupFinding]:
    started = time.monotonic()
    try:
        evaluation = score_sample()
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
        what = f"the sink {sink.name} writes where your application's own OpenTelemetry set-up sends it"
        return _ok(what)
    except (SteelyardError, OSError) as error:
        cause, told = getattr(error, "cause", ""), str(error).removeprefix(f"{sink.name}: ")
        return _fix(_with_mend(f"the sink {sink.name}: {told}", cause))
    finally:
        await sink.aclose()


def _other_tracers(settings: Settings) -> Iterator[SetupFinding]:
    from steelyard_opentelemetry import other_tracers

    for check in other_tracers(sinks=settings.sinks):
        yield (_note if check.ok else _fix)(check.what)


def _turns(sinks: Sequence[tuple[str, Sink]]) -> Iterator[SetupFinding]:
    """Whether anything has arrived, and whether it has scores."""
    places = [place for name, sink in sinks if (place := _place(name, sink))]
    if not places and sinks:
        yield _note("whether turns arrive, only the tools can say that your sinks write to")
    for place in places:
        try:
            turns, last, failed = _stored(place)
        except (SteelyardError, OSError):
            turns, last, failed = 0, None, Counter[str]()
        if not turns:
            what = (
                f"no turn has arrived in {place}: add the lines that `steelyard init` shows, and ask your "
                "application something; `steelyard doctor --live -- python app.py` shows what is seen of it"
            )
            yield _fix(what)
            continue
        yield _ok(f"{counted(turns, 'turn')} in {place}{_ago(last)}")
        for cause, count in failed.most_common(_LISTED):
            what = f"{counted(count, 'score')} failed there in the last day: {cause}"
            yield _fix(_with_mend(what, cause))


def _place(name: str, sink: Sink) -> str:
    if isinstance(sink, SQLiteSink | JSONLSink):
        return str(sink.path)
    return name if name.startswith(("postgres:", "postgresql:")) else ""


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
    results = open_results(place)
    try:
        totals = results.totals(Scope(), brief=True)
        failed = Counter[str]()
        for missing in results.missing(Scope(since=since)):
            if missing.status == "failed":
                failed[missing.cause] += missing.count
        return totals.turns, totals.last, failed
    finally:
        results.close()


def _ago(at: float | None) -> str:
    if at is None:
        return ""
    seconds = max(time.time() - at, 0)
    for unit, size in (("day", _DAY), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= size:
            return f", the latest {counted(int(seconds // size), unit)} ago"
    return ", the latest just now"
