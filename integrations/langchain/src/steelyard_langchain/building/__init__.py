"""From a turn to its Record: what ran, what it saw and what it said. Done in the background."""
