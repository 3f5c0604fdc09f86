"""`steelyard serve`: the results in a browser."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from steelyard._internal.redact import redacted_url
from steelyard.errors import ConfigurationError, MissingDependency

_TOKEN = "STEELYARD_VIEW_TOKEN"


def serve(
    db: Annotated[
        str, typer.Option("--db", metavar="FILE", help="A results file or address.")
    ] = "steelyard.db",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8321,
    read_only: Annotated[bool, typer.Option("--read-only", help="Take no labels.")] = False,
) -> None:
    """Show the results in a browser: figures, turns, claims with their evidence, labels.

    New turns appear by themselves. On an address other than 127.0.0.1 a token is required: set
    `STEELYARD_VIEW_TOKEN` to at least 16 characters; where it is set, it is asked for on 127.0.0.1 too.

    **Examples**

    - `steelyard serve`
    - `steelyard serve --db prod.db --port 9000 --read-only`
    """
    token = os.environ.get(_TOKEN) or None
    if token is None and host not in ("127.0.0.1", "localhost", "::1"):
        raise ConfigurationError(f"on {host!r} others can reach the results: set {_TOKEN} to a secret")
    from steelyard.view import app

    try:
        import uvicorn
    except ImportError:
        raise MissingDependency("uvicorn", extra="serve") from None
    application = app(db, token=token, read_only=read_only)
    shown = f"[{host}]" if ":" in host else host
    typer.echo(
        f"results of {redacted_url(db) if '://' in db else db} at http://{shown}:{port}/ (Ctrl-C ends it)",
        err=True,
    )
    uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False, server_header=False)
