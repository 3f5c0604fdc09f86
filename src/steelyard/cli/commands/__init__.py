"""The commands, one file each, found by `steelyard.cli._app`."""
