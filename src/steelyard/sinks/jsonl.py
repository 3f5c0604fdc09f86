"""Results as lines of JSON, one Evaluation a line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import TextIO

from steelyard.errors import ConfigurationError
from steelyard.record import text_of
from steelyard.scores import Evaluation, evaluation_to_json

__all__ = ["JSONLSink"]


class JSONLSink:
    """Appends Evaluations to a file or a text stream.

    Lines are only ever appended, each batch in one write, so that several processes may share a file.
    A record that is evaluated again gets another line; `read_jsonl` keeps the last.
    """

    def __init__(self, target: str | os.PathLike[str] | TextIO) -> None:
        """Nothing is opened yet; that happens at the first write.

        Args:
            target: A path, or an open text stream such as `sys.stdout`, which stays open.

        Raises:
            ConfigurationError: If it is neither.
        """
        if not isinstance(target, str | os.PathLike) and not callable(getattr(target, "write", None)):
            raise ConfigurationError(f"JSONLSink takes a path or a text stream, not {target!r}")
        self._target = target
        stream_name = getattr(target, "name", None) or type(target).__name__
        self.name = f"jsonl:{os.fspath(target) if isinstance(target, str | os.PathLike) else stream_name}"

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Append them, and have them out of the process when it returns.

        Raises:
            ConfigurationError: If the file cannot be opened.
            OSError: If it cannot be written, e.g. because the disk is full.
        """
        text = "".join(f"{text_of(evaluation_to_json(evaluation))}\n" for evaluation in evaluations)
        if isinstance(self._target, str | os.PathLike):
            self._append(Path(self._target), text.encode())
        else:
            self._target.write(text)
            self._target.flush()

    async def aclose(self) -> None:
        """Nothing is held back, and a stream is its owner's to close."""

    def _append(self, path: Path, data: bytes) -> None:
        try:
            file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by the `with` below
        except OSError as error:
            raise ConfigurationError(
                f"results cannot be written to {os.fspath(path)!r}: {error.strerror}; "
                "give JSONLSink a path in a folder that can be written"
            ) from error
        with file:
            if _ends_within_a_line(file):
                data = b"\n" + data
            while data:
                data = data[file.write(data) :]


def _ends_within_a_line(file: FileIO) -> bool:
    """A process that died while writing leaves half a line, which must not swallow the next one."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"
