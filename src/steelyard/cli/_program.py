"""A program of the user's, which this process becomes."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from steelyard.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program that this process becomes."""

    name: str
    """A script, a folder or archive with a `__main__.py`, or a module."""
    arguments: Sequence[str]
    is_module: bool

    def find(self) -> None:
        """See that there is a program before anything is started."""
        if not self.is_module:
            if not Path(self.name).exists():
                raise ConfigurationError(f"{self.name!r} does not exist; for a module write: -m {self.name}")
            return
        sys.path.insert(0, str(Path.cwd()))
        try:
            found = find_spec(self.name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            raise ConfigurationError(
                f"no module is named {self.name!r}; check its name, and run from its folder"
            )

    def become(self) -> None:
        """Run it as the interpreter would."""
        sys.argv = [self.name, *self.arguments]
        if self.is_module:
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
            return
        path = Path(self.name)
        if path.is_file():
            # As the interpreter does for a script; `runpy` does it only for folders and archives.
            sys.path.insert(0, str(path.absolute().parent))
        runpy.run_path(self.name, run_name="__main__")
