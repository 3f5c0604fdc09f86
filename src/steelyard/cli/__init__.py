"""The command line. Each command is a file of its own in `commands/`, found by `steelyard.cli._app`."""

# `import x as x`: for the entry point and the tests, and not public.
from steelyard.cli._app import main as main
