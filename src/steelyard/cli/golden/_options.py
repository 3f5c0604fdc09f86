"""A function of the user's own, by its name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steelyard.errors import ConfigurationError


def function_of(spec: str, *, option: str) -> Callable[..., Any]:
    """The function that `module:name` names, seen from the working directory.

    Raises:
        ConfigurationError: If there is none.
    """
    module, _, name = spec.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"{option} {spec!r} cannot be imported ({type(error).__name__}); write module:function"
        ) from None
    if not callable(found):
        raise ConfigurationError(f"{option} {spec!r} is a {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]
