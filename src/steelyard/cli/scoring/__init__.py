"""What `steelyard score` is made of: reading records, judging them, and saying what it comes to."""
