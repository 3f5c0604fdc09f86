"""What an alarm has to tell, and who is told: the log, OpenTelemetry, a webhook, Slack.

A webhook's address is a secret: it is never logged, stored or shown. One request per attempt, no redirects,
little of the reply read; what happens then (another attempt, giving up) is the outbox's business.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import urllib3

from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import is_http_address, printable
from steelyard.errors import ConfigurationError, SinkError
from steelyard.recording import unrecorded
from steelyard.scores import Provenance

Kind = Literal["fell", "recovered", "silent", "test"]
# Slack refuses sections of more than 3,000 characters.
_LONGEST = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A mean with its 95 % interval, in the metric's own values."""

    value: float
    """The weighted mean."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end."""
    turns: int
    """How many turns it rests on."""

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}, {_turns(self.turns)})"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstTurn:
    """A turn to look at first."""

    record_id: str
    """Its id."""
    trace_id: str
    """Its trace; empty if it has none."""
    value: float
    """What it scored."""
    quality: float
    """The same in 0..1, of which more is better."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmEvent:
    """Something that was reported, or is to be."""

    alarm: str
    """The alarm's name."""
    kind: Kind
    """`fell`, `recovered`, `silent` where no turn was scored, or `test`."""
    metric: str
    """The metric."""
    at: float
    """When it was noticed, as Unix time."""
    slice: str = ""
    """The turns watched; empty for all."""
    since: float | None = None
    """Since when the mean is worse than the target, as far as can be told; the fall may have come later."""
    target: float | None = None
    """The mean it was compared with."""
    learnt: str = ""
    """With `falls_by`: the mean that was taken for normal, and the turns it was learnt from."""
    before: Range | None = None
    """The mean of the turns before."""
    now: Range | None = None
    """The mean of the turns since."""
    late: int = 0
    """Turns that were judged late: they count among those before, on the day they happened."""
    by_order: float = 1.0
    """If no turn says its session: as many neighbours were taken to tell as much as one independent turn."""
    alpha: float = 0.05
    """The probability with which this is a false alarm."""
    judge_before: str = ""
    """How the scores before were made."""
    judge_now: str = ""
    """How the last one was made."""
    canaries: str = ""
    """What probes with a known answer say of the judge; empty where none are asked."""
    people: str = ""
    """What people's labels say of the metric; empty where nobody looks."""
    worst: tuple[WorstTurn, ...] = ()
    """The worst turns since, worst first."""
    link: str = ""
    """How to reach a turn."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The same in every form and at every attempt to tell it."""

    @property
    def judge_changed(self) -> bool:
        """Whether judge, prompt, metric or mode changed meanwhile: the fall may be the judge's."""
        return bool(self.judge_before) and self.judge_before != self.judge_now

    @property
    def title(self) -> str:
        """One line."""
        what = {
            "fell": f"{self.metric} has fallen",
            "recovered": f"{self.metric} has recovered",
            "silent": f"no turn was scored for {self.metric}",
            "test": "this is a test; nothing has fallen",
        }[self.kind]
        return printable(f"{what} ({self.slice})" if self.slice else what)

    @property
    def lines(self) -> list[str]:
        """What there is to know, line by line."""
        lines = []
        if self.since is not None:
            since = f"since {time_words(self.since)}"
            # Good and bad luck before a fall are in this mean: the day of the fall is not known so well.
            worse = f"worse than {self.target or 0.0:.3f} on average {since}; the fall may have come later"
            lines.append(worse if self.kind == "fell" else since)
        if self.kind in ("fell", "recovered"):
            lines += self._about_means()
        lines += [f"worst: {turn.value:.3f} {self.link_to(turn)}" for turn in self.worst]
        return [printable(line) for line in lines]

    def _about_means(self) -> list[str]:
        order = f"no turn says which session it is of; {self.by_order:.1f} neighbours were counted as one"
        changed = f"the judge changed meanwhile: {self.judge_before} -> {self.judge_now}"
        told = {
            f"now {self.now}": self.now,
            f"before {self.before}": self.before,
            f"compared with {self.target or 0.0:.3f}; a false alarm with at most {self.alpha:.0%}": True,
            f"what is normal was learnt from turns that scored {self.learnt}": self.learnt,
            f"{_turns(self.late)} judged late counted on the day they happened, not here": self.late,
            order: self.by_order > 1,
            changed if self.judge_changed else "the judge is the same as before": True,
            self.canaries: self.canaries,
            f"by people's labels: {self.people}": self.people,
        }
        return [line for line, there in told.items() if there]

    @property
    def text(self) -> str:
        """All of it as text."""
        return "\n".join([f"{self.title}: {printable(self.alarm)}", *self.lines])

    def link_to(self, turn: WorstTurn) -> str:
        """Where a turn can be looked at; its id where nobody said."""
        # A link with an empty id would lead to a page that says that there is no such turn.
        if not self.link or ("{trace_id}" in self.link and not turn.trace_id):
            return f"turn {turn.record_id}"
        return self.link.replace("{trace_id}", turn.trace_id).replace("{record_id}", turn.record_id)

    def to_dict(self) -> dict[str, Any]:
        """The generic JSON form."""
        plain = asdict(self)
        # Each turn has the whole link below.
        plain.pop("link")
        plain["worst"] = [
            {
                "record_id": turn.record_id,
                "trace_id": turn.trace_id,
                "value": turn.value,
                "link": self.link_to(turn),
            }
            for turn in self.worst
        ]
        return {
            "source": "steelyard",
            **plain,
            "at": time_words(self.at),
            "since": None if self.since is None else time_words(self.since),
            "judge_changed": self.judge_changed,
            "text": self.text,
        }

    def to_slack(self) -> Mapping[str, Any]:
        """The form of Slack's incoming webhooks."""
        mark = {"fell": ":red_circle:", "recovered": ":large_green_circle:"}.get(self.kind, ":white_circle:")
        # Escaped at last: judged text is in it, and may try to mention everybody.
        body = "\n".join([f"*{_escaped(self.title)}*", *map(_escaped, [printable(self.alarm), *self.lines])])
        section = {"type": "section", "text": {"type": "mrkdwn", "text": f"{mark} {body}"[:_LONGEST]}}
        return {"text": _escaped(self.title), "blocks": [section]}


def _escaped(text: str) -> str:
    """Slack's own escape of what would be a mention, a channel or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _turns(count: int) -> str:
    return f"{count} turn" if count == 1 else f"{count} turns"


def time_words(at: float) -> str:
    """A Unix time in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def how_made(provenance: Provenance | None) -> str:
    """How a score was made, in one line; two that differ are not comparable."""
    if provenance is None:
        return ""
    parts = [provenance.judge, f"prompt {provenance.prompt_version}", f"metric {provenance.metric_version}"]
    return ", ".join([*parts, f"fuse {provenance.fuse}", *(["calibrated"] if provenance.calibrated else [])])


_log = SafeLogger("steelyard.alarms")
_WEB = ("webhook", "slack")
_BARE = ("log", "opentelemetry")
_FROM_ENVIRONMENT = "env:"
# Both together must stay below the watcher's `_HOLD`, or another process would tell the same.
_TIMEOUT = urllib3.Timeout(connect=5.0, read=5.0)
_SCOPE = "steelyard"
EVENT = "steelyard.alarm"


def check_target(target: str, owner: str) -> None:
    """Refuse a target that means nothing.

    Raises:
        ConfigurationError: Without the address, which may be a secret.
    """
    kind, _, address = target.partition(":")
    if kind in _BARE and not address:
        return
    if kind not in _WEB:
        # What stands before the first colon may be all of an address's secret: only known words are repeated.
        raise ConfigurationError(
            f"{owner}: to knows log, opentelemetry, webhook:URL and slack:URL; write one of them"
        )
    if address.startswith(_FROM_ENVIRONMENT):
        if not address.removeprefix(_FROM_ENVIRONMENT).isidentifier():
            raise ConfigurationError(f"{owner}: {kind}:env: must be followed by the name of a variable")
    else:
        _check_address(address, f"{owner}: {kind}")


def shown(target: str) -> str:
    """A target as it may be printed and stored: kind, host, and a hash that tells two addresses apart."""
    kind, _, address = target.partition(":")
    if not address or address.startswith(_FROM_ENVIRONMENT):
        return target
    digest = hashlib.sha256(address.encode()).hexdigest()[:8]
    return f"{kind}:{urlsplit(address).hostname}#{digest}"


def tell(target: str, event: AlarmEvent) -> None:
    """Tell one target; blocks for at most some ten seconds.

    Raises:
        SinkError: If it was not told, by cause.
        ConfigurationError: If the variable with its address is not set, or holds none.
        MissingDependency: If `opentelemetry` is meant and not installed.
    """
    kind, _, address = target.partition(":")
    if kind == "log":
        level = logging.WARNING if event.kind in ("fell", "silent") else logging.INFO
        _log.log(level, "%s", event.text)
    elif kind == "opentelemetry":
        _emit(event)
    else:
        _post(_resolved(kind, address), event.to_slack() if kind == "slack" else event.to_dict())


def _resolved(kind: str, address: str) -> str:
    if not address.startswith(_FROM_ENVIRONMENT):
        return address
    variable = address.removeprefix(_FROM_ENVIRONMENT)
    found = os.environ.get(variable, "").strip()
    if not found:
        raise ConfigurationError(f"{kind}: the variable {variable} is not set; set it to the address")
    _check_address(found, f"{kind}: {variable}")
    return found


def _check_address(address: str, owner: str) -> None:
    if not is_http_address(address):
        raise ConfigurationError(
            f"{owner}: this is not an http(s) address; write one that begins with https://"
        )


def _post(address: str, body: Mapping[str, Any]) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "steelyard"}
    with unrecorded(), urllib3.PoolManager(num_pools=1, timeout=_TIMEOUT, retries=False) as pool:
        try:
            reply = pool.request(
                "POST",
                address,
                body=json.dumps(body, allow_nan=False).encode(),
                headers=headers,
                redirect=False,
                # The status is all that counts, and the body may be endless.
                preload_content=False,
            )
            reply.close()
        except urllib3.exceptions.HTTPError as error:
            raise SinkError(f"not reached: {type(error).__name__}", cause="unreachable") from None
        except (ValueError, OSError, UnicodeError) as error:
            raise SinkError(f"not reached: {type(error).__name__}", cause="unreachable") from None
    if 300 <= reply.status < 400:
        raise SinkError(f"HTTP {reply.status}: redirects are not followed", cause="redirected")
    if not 200 <= reply.status < 300:
        raise SinkError(f"HTTP {reply.status}", cause="refused")


def _emit(event: AlarmEvent) -> None:
    from opentelemetry._logs import SeverityNumber, get_logger

    from steelyard.sinks import OpenTelemetrySink  # noqa: F401 - says which extra is missing

    fallen = event.kind in ("fell", "silent")
    attributes: dict[str, Any] = {
        "steelyard.alarm.name": event.alarm,
        "steelyard.alarm.kind": event.kind,
        "steelyard.alarm.id": event.id,
        "steelyard.alarm.slice": event.slice,
        "steelyard.alarm.judge_changed": event.judge_changed,
        "gen_ai.evaluation.name": event.metric,
    }
    for name, figures in (("now", event.now), ("before", event.before)):
        if figures is not None:
            attributes |= {
                f"steelyard.alarm.{name}.mean": figures.value,
                f"steelyard.alarm.{name}.low": figures.low,
                f"steelyard.alarm.{name}.high": figures.high,
                f"steelyard.alarm.{name}.turns": figures.turns,
            }
    if event.target is not None:
        attributes["steelyard.alarm.target"] = event.target
    get_logger(_SCOPE).emit(
        timestamp=round(event.at * 1e9),
        severity_number=SeverityNumber.WARN if fallen else SeverityNumber.INFO,
        event_name=EVENT,
        body=event.text,
        attributes=attributes,
    )
