"""Options that several commands have, each declared once: its name, and what it means."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_type_hints

import typer

from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.diagnosis import Experiments

Metrics = Annotated[
    str,
    typer.Option(
        "--metrics", "-m", metavar="A,B", help="Names, `all`, or none for the judge's default suite."
    ),
]
JudgeName = Annotated[
    str,
    typer.Option(
        "--judge",
        "-j",
        metavar="NAME",
        help="`local` needs no key; `openai:MODEL` is any server that speaks its protocol; "
        "`decisions:MODEL`; `pair:FILE` is an ONNX model of yours.",
    ),
]
ConfiguredJudge = Annotated[
    str, typer.Option("--judge", "-j", metavar="NAME", help="As for `steelyard score`; else as configured.")
]
BaseUrl = Annotated[
    str, typer.Option(metavar="URL", help="The judge's server, e.g. http://127.0.0.1:8000/v1.")
]
KeyVariable = Annotated[
    str,
    typer.Option(
        "--api-key-env",
        metavar="VAR",
        help="The variable with the server's key; OPENAI_API_KEY goes to OpenAI only.",
    ),
]
Since = Annotated[str, typer.Option(metavar="TIME", help="Only turns since then: 24h, 7d, 2026-11-01.")]
Until = Annotated[str, typer.Option(metavar="TIME", help="Only turns before then.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Continue after the plan and its price.")]
Results = Annotated[
    str, typer.Option("--db", metavar="FILE", help="The results: a file, or the address of a database.")
]
Replay = Annotated[
    str,
    typer.Option(
        metavar="MODULE:NAME", help="`replay(question, contexts)`, which answers as your application does."
    ),
]
Retrieve = Annotated[
    str, typer.Option(metavar="MODULE:NAME", help="`retrieve(question, k)`, the best k passages.")
]
GoldenSetFile = Annotated[Path, typer.Argument(metavar="GOLDEN.jsonl", help="A golden set.")]

_Options = TypeVar("_Options")


def takes(
    options: Callable[..., _Options],
) -> Callable[[Callable[[_Options], int]], Callable[..., None]]:
    """Make a command whose options are the fields of a dataclass, each declared there and nowhere else.

    The function is given one of these, as it was typed, and returns the exit status.
    """
    hints = get_type_hints(options, include_extras=True)
    signature = inspect.signature(options)
    fields = [field.replace(annotation=hints[name]) for name, field in signature.parameters.items()]
    # What several commands share comes last in their help.
    fields.sort(key=lambda field: field.name not in options.__annotations__)

    def made(function: Callable[[_Options], int]) -> Callable[..., None]:
        @wraps(function)
        def command(**given: Any) -> None:
            raise typer.Exit(function(options(**given)))

        # Typer reads the signature; that of the function would be one parameter.
        command.__signature__ = signature.replace(parameters=fields)  # type: ignore[attr-defined]
        command.__annotations__ = hints
        return command

    return made


def listed(names: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def numbers_by_name(given: Iterable[str], *, option: str, name: str = "metric") -> dict[str, float]:
    """`faithfulness=0.8` and the like: numbers by what `name` says they are of."""
    found = {}
    for text in given:
        one, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not one.strip():
            raise ConfigurationError(f"{option} {text!r} is not of the form {name}=0.8")
        found[one.strip().lower().replace("-", "_")] = value
    return found


def experiments(replay: str, retrieve: str, **bounds: int) -> Experiments:
    """Experiments with bad turns by the application's own functions, as options name them."""
    from steelyard.diagnosis import Experiments
    from steelyard.golden.running import load_object

    search = load_object(retrieve, what="--retrieve") if retrieve else None
    answer = load_object(replay, what="--replay")
    return Experiments(replay=cast(Any, answer), retrieve=cast(Any, search), **bounds)
