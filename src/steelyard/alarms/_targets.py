"""Who is told of an alarm: the log, OpenTelemetry, a webhook, Slack.

A webhook's address is a secret: it is never logged, stored or shown. One request per attempt, no redirects,
little of the reply read; what happens then (another attempt, giving up) is the outbox's business.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import urllib3

from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import is_http_address
from steelyard.alarms._event import AlarmEvent
from steelyard.errors import ConfigurationError, SinkError
from steelyard.recording import unrecorded

_log = SafeLogger("steelyard.alarms")
_WEB = ("webhook", "slack")
_BARE = ("log", "opentelemetry")
_FROM_ENVIRONMENT = "env:"
# Both together must stay below the watcher's `_HOLD`, or another process would tell the same.
_TIMEOUT = urllib3.Timeout(connect=5.0, read=5.0)
_SCOPE = "steelyard"
EVENT = "steelyard.alarm"


def check_target(target: str, owner: str) -> None:
    """Refuse a target that means nothing, without its address, which may be a secret."""
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
    """Tell one target; blocks for at most some ten seconds. Raises SinkError by cause if it was not told."""
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
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
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
