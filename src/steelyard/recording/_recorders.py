"""The recorders of every framework that is installed, found by entry point."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_place
from steelyard.errors import MissingDependency
from steelyard.recording._draft import TurnTarget

RECORDERS = "steelyard.recorders"
"""Entry points of this group name a module or object with `attach(monitor)` and `detach()`."""

_log = SafeLogger("steelyard.recording")


def attach_recorders(target: TurnTarget) -> list[str]:
    """Attach the recorder of every framework that is installed; a recorder that fails is left out.

    Args:
        target: Where turns go.

    Returns:
        The names of those that record now.
    """
    return [point.name for point in _points() if _attached(point, target)]


def detach_recorders() -> None:
    """Detach every recorder, whoever attached it."""
    for point in _points():
        try:
            point.load().detach()
        except Exception as error:  # noqa: BLE001 - a recorder of somebody's own may raise anything
            _log.debug("the recorder %r could not be detached: %s", point.name, error_place(error))


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=RECORDERS), key=lambda point: point.name)


def _attached(point: EntryPoint, target: TurnTarget) -> bool:
    try:
        point.load().attach(target)
    except MissingDependency:
        return False
    except Exception:  # noqa: BLE001 - a recorder of somebody's own may raise anything
        _log.warning(
            "the recorder %r could not be attached; see the error below, or upgrade its package",
            point.name,
            exc_info=True,
        )
        return False
    return True
