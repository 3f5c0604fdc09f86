"""The report as one HTML file, and a turn cut into what its claims rest on; the live view shows the same."""
