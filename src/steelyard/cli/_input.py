"""Opening files of records, for the commands that read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from steelyard.errors import ConfigurationError


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file of records; `-` is standard input.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only opening it may be the user's mistake
    except OSError as error:
        raise ConfigurationError(f"cannot read {path!r}: {os.strerror(error.errno or 0)}") from None
    with file:
        yield file


def count_lines(path: str) -> int | None:
    """How many lines a regular file has, for a progress bar; None for a pipe."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
