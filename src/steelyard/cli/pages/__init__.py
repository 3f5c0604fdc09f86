"""What commands with much to show print."""
