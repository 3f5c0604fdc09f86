"""What the commands that listen have in common: who may ask, and where they can be reached."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from steelyard._internal.text import LOOPBACK
from steelyard.errors import ConfigurationError, MissingDependency

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_LOOK = 15.0
"""Seconds in which a connection has to ask something, and between further looks at what it does."""


def required_token(variable: str, host: str, *, others_can: str) -> str | None:
    """The token that has to be given with each request; none is needed where only this machine can ask."""
    token = os.environ.get(variable) or None
    if token is None and host not in LOOPBACK:
        raise ConfigurationError(f"on {host!r} others can {others_can}: set {variable} to a secret")
    return token


def check_uvicorn(extra: str) -> None:
    """See that there is a server before anything is opened."""
    try:
        import uvicorn  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingDependency("uvicorn", extra=extra) from None


def serve_until_stopped(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    lifespan: bool = True,
    done: threading.Event | None = None,
) -> None:
    """Serve until a signal, Ctrl-C or `done`; `ready` is told the address once connections are accepted."""
    import uvicorn

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded_protocol(),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="auto" if lifespan else "off",
    )
    # Bound before it is said where: with `--port 0` the system chooses.
    with closing(config.bind_socket()) as listening, suppress(KeyboardInterrupt):
        listening.listen(config.backlog)
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{listening.getsockname()[1]}/")
        server = uvicorn.Server(config)
        if done is not None:
            threading.Thread(target=_stop_after, args=(done, server), daemon=True).start()
        server.run(sockets=[listening])


def obey_once() -> None:
    """Have signals end uvicorn and do nothing else: it raises them again, and there is something to close."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def _stop_after(done: threading.Event, server: Any) -> None:
    done.wait()
    server.should_exit = True


def bounded_protocol() -> type[Any]:
    """The HTTP of uvicorn that closes connections on which nothing comes, or a refused body without end.

    Each holds a file descriptor, and where they are used up nobody is answered any more.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class BoundedProtocol(base):  # type: ignore[misc]  # which of two classes it is, uvicorn finds out
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._refused: object = None
            self._next_look = self.loop.call_later(_LOOK, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._next_look.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            cycle = self.cycle
            before, self._refused = self._refused, None
            # What is still sent after the reply is read for a while, or the sender would not see the reply.
            if cycle is not None and cycle.response_complete and cycle.more_body:
                self._refused = cycle
            if cycle is None or (before is not None and before is self._refused):
                self.transport.close()
            else:
                self._next_look = self.loop.call_later(_LOOK, self._look)

    return BoundedProtocol
