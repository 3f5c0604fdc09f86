"""`steelyard prune`: delete old results from a database."""

from __future__ import annotations

import sqlite3
from typing import Annotated

import typer

from steelyard.cli._say import say
from steelyard.errors import ConfigurationError


def prune(
    keep: Annotated[
        str, typer.Option(help="What to keep: an age (`30d`, `12h`), a size (`2GB`), a number of turns.")
    ],
    results: Annotated[
        str, typer.Argument(help="The results: a file, or postgresql://HOST/DATABASE.")
    ] = "steelyard.db",
) -> None:
    """Delete the oldest results beyond an age, a size or a number of turns, and give their space back.

    Applications may keep writing. To do it all the time: `SQLiteSink(path, keep="30d")`, and the
    same for `PostgresSink`.

    **Examples**

    - `steelyard prune --keep 30d`
    - `steelyard prune prod.db --keep '90d, 2GB'`
    """
    from steelyard._internal.redact import error_words
    from steelyard.sinks import prune as prune_results

    try:
        done = prune_results(results, keep=keep)
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"{results!r} cannot be pruned: {error_words(error)}; "
            "check that it is a results file and can be written to"
        ) from None
    say(
        f"deleted {done.turns} turns, {done.left} are left; "
        f"{done.bytes_before / 1e6:.1f} MB before, {done.bytes_after / 1e6:.1f} MB now"
    )
