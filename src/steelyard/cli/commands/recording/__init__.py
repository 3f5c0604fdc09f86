"""Commands that record applications, and score what they have recorded."""
