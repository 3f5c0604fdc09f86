"""The application's own functions for experiments with bad turns, as options name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from steelyard.diagnosis import Experiments

Replay = Annotated[
    str,
    typer.Option(
        metavar="MODULE:NAME", help="`replay(question, contexts)`, which answers as your application does."
    ),
]
Retrieve = Annotated[
    str, typer.Option(metavar="MODULE:NAME", help="`retrieve(question, k)`, the best k passages.")
]


def experiments(replay: str, retrieve: str, **bounds: int) -> Experiments:
    """What these options name."""
    from steelyard.diagnosis import Experiments
    from steelyard.golden.running import load_object

    search = load_object(retrieve, what="--retrieve") if retrieve else None
    answer = load_object(replay, what="--replay")
    return Experiments(replay=cast(Any, answer), retrieve=cast(Any, search), **bounds)
