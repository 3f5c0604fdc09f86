"""What the commands `golden`, `test` and `compare` do."""
