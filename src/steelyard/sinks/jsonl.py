"""Results as lines of JSON, one Evaluation a line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from io import FileIO
from pathlib import Path
from typing import BinaryIO, TextIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from steelyard._internal.forks import ForkLock
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_words
from steelyard._internal.typed import json_pieces
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.record import text_of
from steelyard.results import check_folder
from steelyard.results.counts import ScoreCounts, ScoreLedger, key_of
from steelyard.scores import Evaluation, evaluation_from_json, evaluation_to_dict

_log = SafeLogger("steelyard.sinks")


class JSONLSink:
    """Appends Evaluations to a file or a text stream.

    Lines are only ever appended, each batch in one write, so that several processes may share a file.
    A record that is evaluated again gets another line; `read_jsonl` keeps the last. A new file can be read
    and written by its owner alone.
    """

    def __init__(self, target: str | os.PathLike[str] | TextIO) -> None:
        """Nothing is opened yet; that happens at the first write.

        Args:
            target: A path, seen from the folder the process is in now, or an open text stream such as
                `sys.stdout`, which stays open.

        Raises:
            ConfigurationError: If it is neither.
        """
        if not isinstance(target, str | os.PathLike) and not callable(getattr(target, "write", None)):
            raise ConfigurationError(f"JSONLSink takes a path or a text stream, not {target!r}")
        self._target: Path | TextIO = (
            Path(target).absolute() if isinstance(target, str | os.PathLike) else target
        )
        stream_name = getattr(target, "name", None) or type(target).__name__
        self.name = f"jsonl:{os.fspath(target) if isinstance(target, str | os.PathLike) else stream_name}"
        self._ledger = ScoreLedger(self.name)
        self._writing = ForkLock()
        self._warn = WarnOnce(_log)

    @property
    def path(self) -> Path | None:
        """The file; None where results go to a stream."""
        return self._target if isinstance(self._target, Path) else None

    @property
    def counts(self) -> ScoreCounts:
        """What became of the Scores this sink was given."""
        return self._ledger.counts

    async def check(self) -> None:
        """See whether results could be written; a file that is not there yet is not made.

        Raises:
            ConfigurationError: If they could not; the message names the path and the reason.
        """
        if isinstance(self._target, Path):
            if self._target.exists():
                self._append(self._target, b"")
            else:
                check_folder(self._target)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Append them, and have them out of the process when it returns.

        Raises:
            ConfigurationError: If the file cannot be opened.
            OSError: If it cannot be written, e.g. because the disk is full.
        """
        lines = [self._line(evaluation) for evaluation in evaluations]
        pieces = [piece for line in lines if line is not None for piece in line]
        if isinstance(self._target, Path):
            self._append(self._target, b"".join(piece.encode() for piece in pieces))
        else:
            # A fork in between would give the child a copy of what is in the buffer.
            with self._writing:
                self._target.write("".join(pieces))
                self._target.flush()
        for evaluation, line in zip(evaluations, lines, strict=True):
            keys = [key_of(score, evaluation) for score in evaluation.scores]
            if line is None:
                self._ledger.settle_all(keys, "refused", "unstorable")
            else:
                self._ledger.settle_all(keys, "written")

    async def aclose(self) -> None:
        """Nothing is held back, and a stream is its owner's to close."""

    def _line(self, evaluation: Evaluation) -> Sequence[str] | None:
        """The pieces of one line, or None where a value has no form in JSON."""
        try:
            return [*map(text_of, json_pieces(evaluation_to_dict(evaluation))), "\n"]
        except Exception as error:  # noqa: BLE001 - odd values may raise anything
            self._warn(
                "unstorable",
                "%s: an evaluation cannot be written (%s); further ones are only counted",
                self.name,
                error_words(error),
            )
            return None

    def _append(self, path: Path, data: bytes) -> None:
        try:
            # For reading as well, to see whether the last line is whole; unbuffered, so that a batch is one
            # write.
            file = open(path, "a+b", buffering=0, opener=partial(os.open, mode=0o600))  # noqa: SIM115 - closed by the `with` below
        except OSError as error:
            raise ConfigurationError(
                f"results cannot be written to {os.fspath(path)!r}: {error.strerror}; "
                "give JSONLSink a path in a folder that can be written"
            ) from error
        with file:
            # Until the file is closed: half a line may be what another process is writing just now.
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            if _ends_within_a_line(file):
                data = b"\n" + data
            # A write to a nearly full disk may take only a part.
            while data:
                data = data[file.write(data) :]


def _ends_within_a_line(file: FileIO) -> bool:
    """A process that died while writing leaves half a line, which must not swallow the next one."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[Evaluation]:
    """Evaluations from a file that `JSONLSink` wrote; of those of the same record, the last.

    Lines that hold no Evaluation, such as the half line of a process that died, are left out, and their
    number is logged.

    Raises:
        ConfigurationError: If there is no such file.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the `with` below
    except OSError as error:
        raise ConfigurationError(
            f"{os.fspath(path)!r} cannot be read: {error.strerror}; check its name and rights"
        ) from error
    with file:
        # In the order of the file, and one line at a time: files are larger than memory.
        for start, length in sorted(_latest_lines(file, os.fspath(path)).values()):
            file.seek(start)
            yield evaluation_from_json(file.read(length))


def _latest_lines(file: BinaryIO, path: str) -> dict[str, tuple[int, int]]:
    latest: dict[str, tuple[int, int]] = {}
    position = bad = 0
    for line in file:
        try:
            if line.strip():
                latest[evaluation_from_json(line).record_id] = (position, len(line))
        except InvalidRecord:
            bad += 1
        position += len(line)
    if bad:
        _log.warning("%s: %d lines hold no evaluation and were left out", path, bad)
    return latest
