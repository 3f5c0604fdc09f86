"""Log a problem the first time it happens, and stay silent when the same one comes again."""

from __future__ import annotations

import logging
from collections.abc import Hashable

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger

# Kinds may be made of names from outside, so there is a bound; a kind that was forgotten is said again.
_REMEMBERED = 1000


class WarnOnce:
    """Logs each kind of problem once.

    Each owner has an object of its own, so two Monitors each log their own problems.

    Args:
        logger: Where the lines go.
    """

    def __init__(self, logger: SafeLogger) -> None:
        self._logger = logger
        self._known: BoundedDict[Hashable, None] = BoundedDict(max_items=_REMEMBERED)

    def __call__(
        self,
        kind: Hashable,
        message: str,
        *args: object,
        level: int = logging.WARNING,
        exc_info: BaseException | bool | None = None,
    ) -> bool:
        """Log a problem unless one of the same kind was logged before; says whether it was logged.

        Args:
            kind: What counts as the same problem.
            message: The line, in the format of `logging`.
            *args: What its placeholders stand for.
            level: A level of `logging`.
            exc_info: An exception whose traceback is logged too.
        """
        if kind in self._known:
            return False
        self._known[kind] = None
        self._logger.log(level, message, *args, exc_info=exc_info)
        return True

    def over(self, kind: Hashable) -> bool:
        """A problem has passed, and is logged again when it comes back; says whether it had been logged."""
        return self._known.pop(kind, self) is None
