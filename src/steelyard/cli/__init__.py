"""The command line. Each command is a file of its own in `commands/`, found by `steelyard.cli._app`."""

from steelyard.cli._app import main

__all__ = ["main"]
