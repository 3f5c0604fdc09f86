"""What may be seen of a turn: masking before anything else, and stripping before results are kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_place
from steelyard._internal.threads import DaemonExecutor, ExitInThread
from steelyard._internal.warn_once import WarnOnce
from steelyard.record import Record
from steelyard.scores import Evaluation, Evidence, Score, Verdict

Mask = Callable[[Record], Record]
"""Takes a Record and returns it without what must not leave the process."""

_log = SafeLogger("steelyard.online")


class Masker:
    """Applies the user's mask in threads of its own, so that a slow one holds up nothing but itself."""

    def __init__(self, mask: Mask | None, *, timeout: float) -> None:
        self._mask = mask
        self._timeout = timeout
        self._executor: DaemonExecutor | None = None
        self._warn = WarnOnce(_log)

    def start(self) -> None:
        """Start the threads; not earlier, since a fork would leave them behind, and not at exit."""
        if self._mask is not None and self._executor is None:
            self._executor = DaemonExecutor(2, name="steelyard-mask", spares=8)
            self._executor.start()

    async def apply(self, record: Record) -> Record | None:
        """The masked Record; None where the mask failed, and then nothing of the content may be used."""
        if self._mask is None:
            return record
        self.start()
        assert self._executor is not None
        try:
            async with asyncio.timeout(self._timeout):
                masked = await self._executor.run(self._mask, record)
            if isinstance(masked, Record):
                # When it happened says nothing of what was said, and a chart without it would be wrong.
                return masked.replace(
                    id=record.id, trace=record.trace, timings=masked.timings or record.timings
                )
            problem = f"returned {type(masked).__name__} instead of a Record"
        except TimeoutError:
            problem = f"took longer than {self._timeout:g} s"
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            raised = error.__cause__ if isinstance(error, ExitInThread) else error
            problem = f"raised {error_place(raised or error)}"
        self._warn(
            "mask",
            "the mask %s; such turns are not judged (skipped as 'mask_failed')",
            problem,
            level=logging.ERROR,
        )
        return None

    def close(self) -> None:
        """Let the threads go."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None


def without_content(evaluation: Evaluation) -> Evaluation:
    """The same Evaluation without any text of the turn: no record, no quotations, no words of judges."""
    return replace(evaluation, record=None, scores=tuple(map(_bare_score, evaluation.scores)))


def _bare_score(score: Score) -> Score:
    return replace(score, explanation="", verdicts=tuple(map(_bare_verdict, score.verdicts)))


def _bare_verdict(verdict: Verdict) -> Verdict:
    evidence = tuple(Evidence(context=e.context, start=e.start, end=e.end) for e in verdict.evidence)
    return replace(verdict, about="", reason="", evidence=evidence)
