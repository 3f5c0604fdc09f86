"""`steelyard config`: which options are in force, and where each comes from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import typer


def config(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Show the options of a Monitor as `STEELYARD_*` variables and `steelyard.toml` set them here.

    Code comes first: what a program passes to `Monitor(...)` is not seen by this command. No secret is shown:
    keys are read by judges themselves, from their own variables, and are no option.
    """
    from steelyard.online import Monitor, load_settings

    loaded = load_settings()
    Monitor(sinks=[])  # raises where entries are wrong in themselves or do not go together
    options = {name: _shown(name, value) for name, value in asdict(loaded.settings).items()}
    if as_json:
        typer.echo(json.dumps({"options": options, "sources": dict(loaded.sources)}, indent=2))
        return
    width = max(map(len, options))
    for name, value in options.items():
        source = loaded.sources.get(name)
        typer.echo(f"{name:<{width}}  {json.dumps(value)}" + (f"   ({source})" if source else ""))


def _shown(name: str, value: Any) -> Any:
    """A value without a password that somebody has put into an address."""
    if name != "base_url" or "@" not in value:
        return value
    parts = urlsplit(value)
    return urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))
