"""Says where an event loop is held up: code that blocks it shows nowhere else, everything merely waits."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
import threading
from pathlib import Path
from types import FrameType

from steelyard._internal.logs import SafeLogger
from steelyard._internal.threads import DaemonExecutor

_log = SafeLogger("steelyard")
# The loop gives a sign of life in each of them.
_TICK = 1.0
_SILENT = 10
# Frames of libraries are skipped, so that the line is one that the reader can change.
_LIBRARIES = tuple(
    {str(Path(path).resolve()) for name, path in sysconfig.get_paths().items() if "lib" in name}
    | {str(Path(__file__).resolve().parents[1])}
)


class LoopWatch:
    """Logs a warning, with file and line, when a loop has shown no sign of life for ten seconds.

    It counts its own seconds, so that a process that was stopped and goes on is not taken for one that hangs.
    """

    def __init__(self) -> None:
        self._beats = 0
        self._ident = 0
        self._ended = threading.Event()
        self._thread = DaemonExecutor(1, name="steelyard-watch")

    def start(self) -> None:
        """Start watching; without a thread, where the interpreter refuses one, nothing is said."""
        with contextlib.suppress(RuntimeError):
            self._thread.submit(self._watch)

    def beat(self) -> None:
        """A sign of life; called in the loop every second at least."""
        self._ident = threading.get_ident()
        self._beats += 1

    def stop(self) -> None:
        """Stop watching; does not wait."""
        self._ended.set()
        self._thread.shutdown()

    def _watch(self) -> None:
        seen, silent = 0, 0
        while not self._ended.wait(_TICK):
            beats = self._beats
            silent = silent + 1 if beats == seen and beats else 0
            seen = beats
            # Equal, so that it is said once: the count grows on while the loop is silent.
            if silent == _SILENT:
                self._say(silent * _TICK)

    def _say(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._ident)
        if frame is not None and not self._ended.is_set():
            place = _place(frame)
            _log.warning(
                "the background thread has been held up for %g s at %s, line %d, and all turns wait; "
                "no judge, metric, choose or on_record may block it",
                seconds,
                place.f_code.co_filename,
                place.f_lineno,
            )


def _place(innermost: FrameType) -> FrameType:
    """Where in the application's own code a thread stands; the innermost frame where it is in none."""
    frame: FrameType | None = innermost
    while frame is not None:
        if not frame.f_code.co_filename.startswith((*_LIBRARIES, "<")):
            return frame
        frame = frame.f_back
    return innermost
