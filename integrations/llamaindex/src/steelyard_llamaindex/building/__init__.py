"""From a turn, finished or open, to its Record: texts, passages, and where the answer came from."""
