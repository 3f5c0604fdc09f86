"""What `steelyard judge check` does."""
