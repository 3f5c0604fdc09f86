"""What turns a claim round although its words are there: a check a file, all of them in `_turns`."""
