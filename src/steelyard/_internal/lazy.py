"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from steelyard.errors import MissingDependency


def is_installed(module: str) -> bool:
    """Whether a module could be imported; of `package.module`, the package alone is imported to find out."""
    try:
        return find_spec(module) is not None
    # Of a package that is missing, its modules cannot be looked for.
    except ModuleNotFoundError:
        return False


def lazy_exports(
    package: str, where: Mapping[str, str], *, extras: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names are imported when they are first used.

    Example:
        ```python
        __getattr__, __dir__ = lazy_exports(__name__, {"OpenTelemetrySink": "steelyard.sinks.opentelemetry"})
        ```

    Args:
        package: The package's `__name__`.
        where: By public name, the module that defines it.
        extras: By top-level import name, the distribution that provides it and our extra that installs it:
            where such a module is missing, `MissingDependency` says so.
    """

    def getattribute(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(where[name]), name)
        except ImportError as error:
            # Also where a part of it is there: `opentelemetry` is a folder that several distributions share.
            missing = (extras or {}).get((error.name or "").partition(".")[0])
            if missing is None:
                raise
            raise MissingDependency(missing[0], extra=missing[1]) from error

    def directory() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return getattribute, directory
