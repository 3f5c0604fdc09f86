"""`steelyard config`: which options are in force, and where each comes from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from steelyard._internal.redact import redacted_url
from steelyard.cli._say import say

_SECRET = ("key", "token", "secret", "password")


def config(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Show the options of a Monitor as `STEELYARD_*` variables and `steelyard.toml` set them here.

    Code comes first: what a program passes to `Monitor(...)` is not seen by this command. `metrics` are those
    that run, even those of the judge's default suite. No secret is shown: keys are read by judges
    themselves, from their own variables, and are not options; those inside addresses are left out.

    **Examples**

    - `steelyard config`
    - `STEELYARD_SAMPLE_RATE=0.1 steelyard config --json`
    """
    from steelyard.online import Monitor, load_settings

    loaded = load_settings()
    # Raises where entries are wrong in themselves or do not go together. Sinks are not made: some open files.
    monitor = Monitor(sinks=[])
    in_force = {**asdict(loaded.settings), "metrics": [metric.name for metric in monitor.options.metrics]}
    options = {name: _shown(name, value) for name, value in in_force.items()}
    sources = {name: loaded.sources.get(name, "default") for name in options}
    if as_json:
        say(json.dumps({"options": options, "sources": sources}, indent=2))
        return
    width = max(map(len, options))
    for name, value in options.items():
        say(f"{name:<{width}}  {json.dumps(value)}   ({sources[name]})")


def _shown(name: str, value: Any) -> Any:
    """A value without what may be a secret: entries with such a name, and parts of addresses."""
    if isinstance(value, dict):
        return {entry: _shown(str(entry), inner) for entry, inner in value.items()}
    if isinstance(value, list):
        return [_shown(name, inner) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    if any(part in _SECRET for part in name.lower().split("_")):
        return "***"
    return redacted_url(value) if "://" in value else value
