"""From the spans of a trace to the records of its turns: contexts, question, answer, and what is missing."""
