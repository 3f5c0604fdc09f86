"""What several commands share: their options, each declared once, and what these name."""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast, get_type_hints

import typer
from typer import Argument, Option

from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.diagnosis import Experiments

COLUMNS = Option(
    "",
    "--map",
    metavar="PART=COLUMN,...",
    help="Which columns or fields hold question, contexts, answer, ...",
)
METRICS = Option(
    "", "--metrics", "-m", metavar="A,B", help="Names, `all`, or none for the judge's default suite."
)
JUDGE = Option(
    "local",
    "--judge",
    "-j",
    metavar="NAME",
    help="`local` needs no key; `openai:MODEL` is any server that speaks its protocol; "
    "`decisions:MODEL`; `pair:FILE` is an ONNX model of yours.",
)
CONFIGURED_JUDGE = Option(
    "", "--judge", "-j", metavar="NAME", help="As for `steelyard score`; else as configured."
)
BASE_URL = Option("", metavar="URL", help="The judge's server, e.g. http://127.0.0.1:8000/v1.")
KEY_VARIABLE = Option(
    "", metavar="VAR", help="The variable with the server's key; OPENAI_API_KEY goes to OpenAI only."
)
SINCE = Option("", metavar="TIME", help="Only turns since then: 24h, 7d, 2026-11-01.")
UNTIL = Option("", metavar="TIME", help="Only turns before then.")
YES = Option(False, "--yes", "-y", help="Continue after the plan and its price.")
RESULTS = Option(
    "steelyard.db", "--db", metavar="FILE", help="The results: a file, or the address of a database."
)
REPLAY = Option(
    "", metavar="MODULE:NAME", help="`replay(question, contexts)`, which answers as your application does."
)
RETRIEVE = Option("", metavar="MODULE:NAME", help="`retrieve(question, k)`, the best k passages.")
GOLDEN_SET = Argument(..., metavar="GOLDEN.jsonl", help="A golden set.")

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


def experiments(replay: str, retrieve: str) -> Experiments:
    """Experiments with bad turns by the application's own functions, as options name them."""
    from steelyard.diagnosis import Experiments
    from steelyard.golden import load_object

    search = load_object(retrieve, what="--retrieve") if retrieve else None
    answer = load_object(replay, what="--replay")
    return Experiments(replay=cast(Any, answer), retrieve=cast(Any, search))


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file of records; `-` is standard input."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only opening it may be the user's mistake
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path!r}: {os.strerror(error.errno or 0)}; check its name and rights"
        ) from None
    with file:
        yield file
