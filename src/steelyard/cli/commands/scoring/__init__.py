"""Commands that score files, test applications and check judges."""
