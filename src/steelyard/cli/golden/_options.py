"""What the golden commands share: thresholds, the user's mask."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from steelyard.errors import ConfigurationError


def thresholds_of(given: Iterable[str]) -> dict[str, float]:
    """`faithfulness=0.8` and the like, by metric.

    Raises:
        ConfigurationError: If one cannot be read.
    """
    found = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not name.strip():
            raise ConfigurationError(f"--threshold {text!r} is not of the form faithfulness=0.8")
        found[name.strip().lower().replace("-", "_")] = value
    return found


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
