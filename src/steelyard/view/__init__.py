"""Stored results in a browser, and the labels that people give them.

>>> from steelyard.view import app
>>> application = app("steelyard.db")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard._internal.text import LOOPBACK
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.results import open_results
from steelyard.view.labelling import export_labels, import_labels

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from steelyard.online import Settings
    from steelyard.results import ObservedMonitor

__all__ = ["app", "export_labels", "import_labels"]


def app(
    db: str | os.PathLike[str] = "steelyard.db",
    *,
    token: str | None = None,
    read_only: bool = False,
    hosts: Collection[str] | None = None,
    monitor: ObservedMonitor | None = None,
    spool: str | os.PathLike[str] | None = None,
    trace_url: str = "",
    settings: Settings | None = None,
) -> ASGIApp:
    """An ASGI application that shows a results database, to be served or mounted.

    Args:
        db: The path of a file that `SQLiteSink` wrote, or the address of another database; applications
            may keep writing to it.
        token: Whoever opens a page must give this, 16 characters at least. None: whoever can reach the
            server sees everything, so serve it on 127.0.0.1 only, or behind a check of your own.
        read_only: Accept no labels.
        hosts: Names this server goes by; requests for other names are refused. None: those of this machine
            itself, and any name if a token is needed.
        monitor: A Monitor of this process, whose ledger the overview shows as it is now; those of others are
            shown as they last stored them beside the results, every five seconds.
        spool: A spool file, whose ledger the overview shows.
        trace_url: Where a turn's trace is, to link to: an address with `{trace_id}`, and `{span_id}` or
            `{record_id}` if the tool wants them.
        settings: What `steelyard.toml` says, as `load_settings().settings`: its alarms and its calibration
            are shown.

    Raises:
        ConfigurationError: If there are no results there, the token is too short, or `trace_url` is not an
            address of a trace.
        MissingDependency: If Starlette or Jinja2 is not installed.
    """
    try:
        from steelyard.view._live import LiveLook
        from steelyard.view._requests import Guard
        from steelyard.view._routes import application
        from steelyard.view._site import Site
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "jinja2"):
            raise
        raise MissingDependency("starlette and jinja2", extra="serve") from None
    _check_trace_url(trace_url)
    address = os.fspath(db)
    if "://" not in address:
        address = os.path.abspath(address)  # the process may change its folder
    with closing(open_results(address)) as results:
        name = results.name if "://" in address else os.fspath(db)
    if hosts is None:
        hosts = () if token else LOOPBACK
    elif not hosts:
        raise ConfigurationError("hosts must name at least one host, or be left out")
    live = LiveLook(monitor=monitor, spool=None if spool is None else Path(spool).absolute())
    site = Site(
        address,
        name=name,
        read_only=read_only,
        asks_token=token is not None,
        live=live,
        trace_url=trace_url,
        settings=settings,
    )
    return Guard(application(site), token=token, hosts=hosts, csrf=site.csrf)


def _check_trace_url(given: str) -> None:
    """Refuse what would lead nowhere, or run as a script."""
    if given and not (given.startswith(("http://", "https://")) and "{trace_id}" in given):
        raise ConfigurationError(
            f"trace_url must be an address with {{trace_id}}, such as https://traces.example/{{trace_id}}, "
            f"not {given!r}"
        )
