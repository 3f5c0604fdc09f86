"""The Sink protocol: where Evaluations go; and sinks by name, as configuration writes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, runtime_checkable

from steelyard._internal.lazy import is_installed
from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import instead_of
from steelyard.errors import ConfigurationError
from steelyard.results import ObservedMonitor, SQLiteSink
from steelyard.scores import Evaluation
from steelyard.sinks.jsonl import JSONLSink

_log = SafeLogger("steelyard.sinks")
_DATABASE = "steelyard.db"


@runtime_checkable
class Sink(Protocol):
    """Takes finished Evaluations.

    Writing the same ones again must change nothing: sinks upsert by `Score.id`. Sinks are used from one
    thread, the Monitor's, inside its event loop and its loop guard.
    """

    @property
    def name(self) -> str:
        """The sink's name in counts and log lines."""

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Take some Evaluations. Raising means that none was taken; the Monitor counts and logs it."""

    async def aclose(self) -> None:
        """Write what is held back and let go of files and connections."""


@runtime_checkable
class MonitorAware(Protocol):
    """A Sink that also wants to know the Monitor it belongs to."""

    def observe(self, monitor: ObservedMonitor, /) -> None:
        """Called once, when the Monitor is made. Must return at once and not keep the Monitor alive."""


@runtime_checkable
class Checkable(Protocol):
    """A Sink that can say whether results could be delivered."""

    async def check(self) -> None:
        """See whether they could; nothing is stored.

        Raises:
            SteelyardError: If they could not; the message says why.
        """


def sink_from(name: str) -> list[Sink]:
    """The sinks that a name stands for, as in `steelyard.toml` and `STEELYARD_SINKS`.

    | name | sinks |
    |---|---|
    | `auto` | SQLite (in memory if the folder cannot be written) and, if installed, OpenTelemetry |
    | `sqlite` or `sqlite:FILE` | `SQLiteSink`, by default `steelyard.db` |
    | `jsonl:FILE` | `JSONLSink` |
    | `opentelemetry` | `OpenTelemetrySink` |
    | `postgres` or `postgresql://HOST/DATABASE` | `PostgresSink`; `PGPASSWORD` is the password |
    | `phoenix`, `langfuse`, `mlflow`, `langsmith`, `datadog` | the vendor's sink |

    Vendors' sinks take address and key from the vendor's own environment variables. A name never holds a
    key, since names are printed and logged.

    Raises:
        ConfigurationError: If there is no such sink, or a variable that it needs is not set.
        MissingDependency: If it needs a package that is not installed.
    """
    kind, _, argument = name.strip().partition(":")
    make = _SINKS.get(kind)
    if make is None:
        raise ConfigurationError(f"there is no sink {kind!r}; {instead_of(kind, _NAMES)}")
    if argument and kind not in _WITH_FILE:
        raise ConfigurationError(f"the sink {kind!r} takes nothing after its name; write {kind!r} alone")
    return make(argument)


def _auto(_: str) -> list[Sink]:
    folder = Path(_DATABASE).absolute().parent
    existing = Path(_DATABASE) if Path(_DATABASE).exists() else folder
    path = _DATABASE
    if not (os.access(folder, os.W_OK) and os.access(existing, os.W_OK)):
        _log.warning(
            "%s cannot be written to; results are kept in memory and end with the process; "
            "set sinks to a place that can be written",
            folder,
        )
        path = ":memory:"
    more = _class("OpenTelemetrySink", expected=False)("") if is_installed("opentelemetry.trace") else []
    return [SQLiteSink(path), *more]


def _jsonl(file: str) -> list[Sink]:
    if not file:
        raise ConfigurationError("the sink 'jsonl' needs a file: 'jsonl:results.jsonl'")
    return [JSONLSink(file)]


def _postgres(address: str) -> list[Sink]:
    from steelyard.sinks import PostgresSink

    if not address:
        return [PostgresSink()]
    if not address.startswith("//") or ":" in address.rpartition("@")[0] or "password" in address:
        raise ConfigurationError(
            "the sink 'postgres' takes postgresql://USER@HOST:PORT/DATABASE without a password, since names "
            "are shown; put it into PGPASSWORD or ~/.pgpass"
        )
    return [PostgresSink(f"postgresql:{address}")]


def _class(name: str, **options: bool) -> Callable[[str], list[Sink]]:
    """A sink that the room imports when it is first asked for."""
    return lambda _: [getattr(import_module("steelyard.sinks"), name)(**options)]


_SINKS: Mapping[str, Callable[[str], list[Sink]]] = {
    "auto": _auto,
    "sqlite": lambda file: [SQLiteSink(file or _DATABASE)],
    "jsonl": _jsonl,
    "opentelemetry": _class("OpenTelemetrySink"),
    "postgres": _postgres,
    "postgresql": _postgres,
    "phoenix": _class("PhoenixSink"),
    "langfuse": _class("LangfuseSink"),
    "mlflow": _class("MLflowSink"),
    "langsmith": _class("LangSmithSink"),
    "datadog": _class("DatadogSink"),
}
_WITH_FILE = frozenset({"sqlite", "jsonl", "postgres", "postgresql"})
_NAMES = (
    "auto",
    "sqlite[:FILE]",
    "jsonl:FILE",
    *[kind for kind in _SINKS if kind not in {"auto", *_WITH_FILE}],
    "postgres",
    "postgresql://HOST/DATABASE",
)
